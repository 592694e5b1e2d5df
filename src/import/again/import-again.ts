import { createHash } from 'node:crypto';
import { type Credentials, credentialsOf, isStored } from '../../domain/config/authentication.ts';
import type { UrlRule } from '../../domain/config/server-rules.ts';
import { type View, type ViewTool, viewToolOf } from '../../domain/config/view.ts';
import { checkViews, type ViewContext } from '../../domain/config/view-rules.ts';
import { parseJson } from '../../domain/json/json.ts';
import { ProblemList } from '../../domain/problems.ts';
import { invalid } from '../../errors.ts';
import type { JsonFields } from '../document/lenient.ts';
import type { ApiDescription } from '../model.ts';
import { type ImportChoices, questionsOf } from '../plan/choices.ts';
import { type ImportPlan, operationKeys, planImport, sizeProblem } from '../plan/plan-import.ts';
import { select } from '../plan/selection.ts';
import { type AgainReport, type OfferedKind, planBounds } from '../plan-outline.ts';
import { readDescription } from '../read-description.ts';
import { keyOf, type MergedServer, reportOf } from './again-report.ts';
import {
  type Generated,
  generatedFields,
  generatedServer,
  idsOf,
  movedOperations,
  operationDigest,
  readGenerated,
  toolsByOperation,
} from './generated.ts';
import { type AnyTool, type MergedTools, mergeTools } from './merge-tools.ts';
import { type Conflict, isEqual, mergeRecords, type Value } from './merge-values.ts';

export type AgainChoices = {
  /** Operations whose tools are to be added, as selectors like in `include`. */
  add: readonly string[];
  /** Conflicts that the document wins: `tool.path`, a server field, or `*`. */
  take: readonly string[];
  /** Operations without a tool that the report lists. */
  offered: OfferedKind;
};

/**
 * Re-import result as plain data. `config` and `generated` are JSON. `answers` holds the replies to questions that the
 * document still asks.
 */
export type ImportedAgain = {
  report: AgainReport;
  isSameDocument: boolean;
  config: string;
  generated: string;
  documentHash: string;
  answers: Readonly<Record<string, string>>;
};

export function documentHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** Current server configuration, and the configuration that its last import generated. Both are JSON. */
export type ImportedServer = { config: string; generated: string | undefined; documentHash: string | undefined };

/**
 * Reads a document again and merges the newly generated tools and fields into a server that was imported from it.
 * @throws AppError invalid if the document cannot be read, has too many answers, or results in a configuration that is
 * too large
 */
export function mergeImport(
  document: string,
  choices: ImportChoices,
  imported: ImportedServer,
  again: AgainChoices & { urlProblem?: UrlRule },
): ImportedAgain {
  const description = readDescription(document);
  const answers = stillAsked(description, choices.answers ?? {});
  const config = parseJson(imported.config) as JsonFields & { tools: AnyTool[] };
  const before = readGenerated(imported.generated);
  const keys = operationKeys(description.operations);
  const moves = movedOperations(
    new Set(config.tools.flatMap(({ imported_from: operation }) => operation ?? [])),
    description.operations.map(({ operationId }, index) => ({ key: keys[index] as string, id: operationId })),
    before,
  );
  const present = new Set(
    config.tools.flatMap(({ credential, imported_from: operation }) =>
      operation === undefined || credential !== undefined ? [] : (moves.get(operation) ?? operation),
    ),
  );
  const isAlone = callersBringCredential(config as Credentials & JsonFields);
  const asked = { ...choices, answers, include: ['*'], deprecated: true, present, isAlone };
  const plan = planImport(description, asked, again.urlProblem);
  const now = nowOf(plan, config, before);
  const wanted = new Set(
    select(plan.all, { include: again.add, deprecated: true }).chosen.map(({ tool }) => tool?.imported_from),
  );
  const takes = new Set(again.take);
  const choose = (key: string) => (takes.has('*') || takes.has(key) ? ('theirs' as const) : ('yours' as const));
  const server = mergeServer(config, before.server, now.server, choose);
  const merged = mergeTools(config.tools, new Map(Object.entries(before.tools)), new Map(Object.entries(now.tools)), {
    adds: (operation) => wanted.has(operation),
    moves,
    choose: (conflict) => choose(keyOf(conflict)),
  });
  const hash = documentHash(document);
  const withTools = {
    ...withServerFields(config, server.fields),
    ...namedIn(merged.tools, config.credentials as NamedCredentials, plan.credentials),
    tools: merged.tools,
  };
  const views = renamedViews({ before: config, after: withTools });
  const next = { ...withTools, ...(views && { views }) };
  const text = JSON.stringify(next);
  const tooLarge = sizeProblem(text);
  if (tooLarge !== undefined) throw invalid([{ path: again.add.length > 0 ? 'add' : 'document', message: tooLarge }]);
  const tools = keptTools(merged, before, now);
  return {
    report: {
      ...reportOf({ tools: merged, server, plan, before }, again.offered),
      views: viewSentences({ before: config, after: next }, merged.gone),
    },
    isSameDocument: hash === imported.documentHash,
    config: text,
    generated: JSON.stringify({
      server: now.server,
      tools,
      known: plan.keys.map(operationDigest),
      ids: idsOf(tools, plan, before),
    } satisfies Generated),
    documentHash: hash,
    answers,
  };
}

type NamedCredentials = ImportPlan['credentials'];

/** Returns true if tools cannot name a credential, because callers bring the server's credential. */
function callersBringCredential({ oauth, authentication }: Credentials & JsonFields): boolean {
  return oauth !== undefined || !credentialsOf(authentication).every(isStored);
}

/** Returns the server's credentials, plus missing ones that its tools name. */
function namedIn(tools: readonly AnyTool[], yours: NamedCredentials, theirs: NamedCredentials = {}): JsonFields {
  const named = new Set(tools.map(({ credential }) => credential));
  const added = Object.entries(theirs).filter(([name]) => named.has(name) && !Object.hasOwn(yours ?? {}, name));
  return added.length === 0 ? {} : { credentials: { ...yours, ...Object.fromEntries(added) } };
}

/**
 * Drops answers to questions that the document no longer asks. Answers are stored with each import, so all of them
 * together must stay within the limit. @throws AppError invalid
 */
function stillAsked(
  description: ApiDescription,
  answers: NonNullable<ImportChoices['answers']>,
): NonNullable<ImportChoices['answers']> {
  const known = new Set(questionsOf(description));
  const kept = Object.entries(answers).filter(([name]) => known.has(name));
  if (kept.length <= planBounds.entries) return Object.fromEntries(kept);
  const message = `found ${kept.length}, including those of the last import; allowed: at most ${planBounds.entries} answers`;
  throw invalid([{ path: 'answers', message }]);
}

/**
 * Generates tools and server fields from the current document. While a question is open, the server fields keep their
 * generated values.
 */
function nowOf(plan: ImportPlan, config: JsonFields & { tools: AnyTool[] }, before: Generated): Generated {
  const server = plan.config ? generatedServer(plan.config as JsonFields) : before.server;
  const tools = toolsByOperation(plan.all.flatMap(({ tool }) => (tool ? [tool as AnyTool] : [])));
  const present = toolsByOperation(config.tools);
  // An operation that exists but currently cannot become a tool leaves its existing tool unchanged.
  for (const [index, { isRefused }] of plan.all.entries()) {
    const operation = plan.keys[index] as string;
    const yours = present[operation];
    if (isRefused && yours) tools[operation] = before.tools[operation] ?? yours;
  }
  // If the description was removed from the configuration, the document's description is not restored.
  const wasRemoved = before.server.description === undefined && config.description === undefined;
  return { server: wasRemoved ? without(server, 'description') : server, tools };
}

function without(fields: JsonFields, name: string): JsonFields {
  return Object.fromEntries(Object.entries(fields).filter(([other]) => other !== name));
}

function mergeServer(
  config: JsonFields,
  before: JsonFields,
  now: JsonFields,
  choose: (key: string) => 'yours' | 'theirs',
): MergedServer {
  const conflicts: Conflict[] = [];
  const yours = generatedServer(config);
  const fields = mergeRecords({ before, yours, theirs: now }, '', {
    choose: ({ path }) => choose(path),
    onConflict: (conflict) => conflicts.push(conflict),
  });
  const changes = generatedFields
    .filter((name) => !isEqual(yours[name], fields[name]))
    .map((name) => ({ path: name, before: yours[name], after: fields[name] }));
  return { fields, changes, conflicts };
}

/** Replaces generated fields of a configuration in place. New fields come first. */
function withServerFields(config: JsonFields, fields: JsonFields): JsonFields {
  const isGenerated = (name: string) => generatedFields.some((field) => field === name);
  const added = Object.entries(fields).filter(([name]) => !Object.hasOwn(config, name));
  const kept = Object.entries(config).flatMap(([name, value]): [string, Value][] => {
    if (!isGenerated(name)) return [[name, value]];
    return Object.hasOwn(fields, name) ? [[name, fields[name]]] : [];
  });
  const { name, slug, ...rest } = Object.fromEntries(kept);
  return { name, slug, ...Object.fromEntries(added), ...rest };
}

/**
 * Returns the generated tools to store: current tools that the server has, and tools of the last import whose operation
 * was removed.
 */
function keptTools({ tools, moved }: MergedTools, before: Generated, now: Generated): Generated['tools'] {
  const left = new Set(moved.map(({ from }) => from));
  const present = new Set(tools.map(({ imported_from: operation }) => operation));
  const known = [
    ...Object.keys(before.tools).filter((operation) => !left.has(operation)),
    ...[...present].filter((operation) => operation !== undefined),
  ];
  return Object.fromEntries(
    [...new Set(known)].flatMap((operation) => {
      const tool = now.tools[operation] ?? before.tools[operation];
      return tool ? [[operation, tool]] : [];
    }),
  );
}

/** Server before and after a re-import. Its first tools are the previous ones, in the same order. */
type MergedConfig = { before: JsonFields & { tools: AnyTool[] }; after: JsonFields & { tools: AnyTool[] } };

const mostSentences = 200;

/** Returns the views with the new names of tools that the document renames. */
function renamedViews({ before, after }: MergedConfig): Record<string, View> | undefined {
  const views = before.views as Record<string, View> | undefined;
  const names = renames({ before, after });
  if (!views || names.size === 0) return views;
  const renamed = (entry: string | ViewTool) => {
    const name = names.get(viewToolOf(entry).name);
    if (name === undefined) return entry;
    return typeof entry === 'string' ? name : { ...entry, name };
  };
  return Object.fromEntries(
    Object.entries(views).map(([name, view]) => [
      name,
      { ...view, ...(view.tools && { tools: view.tools.map(renamed) }) },
    ]),
  );
}

/** Describes the changes to views, one sentence each: tools that are renamed, are removed, or no longer fit. */
function viewSentences(merged: MergedConfig, gone: readonly string[]): string[] {
  const views = merged.before.views as Record<string, View> | undefined;
  if (!views) return [];
  const names = renames(merged);
  const lost = new Set(gone);
  const found = Object.entries(views).flatMap(([view, { tools = [] }]) =>
    tools.flatMap((entry) => {
      const { name } = viewToolOf(entry);
      const now = names.get(name) ?? name;
      if (lost.has(now))
        return [`${view}: the tool "${now}" was removed from the document, so it is removed from the view`];
      return now === name ? [] : [`${view}: the tool "${name}" is renamed to "${now}"`];
    }),
  );
  const problems = new ProblemList();
  checkViews(merged.after as unknown as ViewContext, problems, () => true);
  const refused = problems
    .all()
    .map(({ path, message }) => `${path}: ${message}; change the view before you apply the import`);
  return [...refused, ...found].slice(0, mostSentences);
}

function renames({ before, after }: MergedConfig): Map<string, string> {
  return new Map(
    before.tools.flatMap(({ name }, index) => {
      const now = after.tools[index]?.name;
      return now === undefined || now === name ? [] : [[name, now] as const];
    }),
  );
}

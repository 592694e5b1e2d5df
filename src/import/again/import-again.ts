import { createHash } from 'node:crypto';
import type { JsonFields } from '../document/lenient.ts';
import type { ApiDescription } from '../model.ts';
import { questionsOf } from '../plan/check-answers.ts';
import type { ImportChoices, Question } from '../plan/choices.ts';
import { type ImportPlan, planImport } from '../plan/plan-import.ts';
import { select } from '../plan/selection.ts';
import { readDescription } from '../read-description.ts';
import { type Generated, generatedFields, generatedServer, readGenerated, toolsByOperation } from './generated.ts';
import { type AnyTool, type MergedTools, mergeTools, type ToolConflict } from './merge-tools.ts';
import { type Conflict, isEqual, mergeRecords, type Value } from './merge-values.ts';

export type AgainChoices = {
  /** Operations whose tools are to be added, in the words of `include`. */
  add: readonly string[];
  /** Conflicts in which the document is right: `tool.path`, a field of the server, or `*`. */
  take: readonly string[];
};

/** A difference as text; `undefined` is a value that is not there. */
export type ValueChange = { path: string; before?: string; after?: string };

/** What importing again would change. Lists are cut at `mostListed`; the counts are whole. */
export type AgainReport = {
  title: string;
  isSameDocument: boolean;
  counts: { changed: number; conflicts: number; added: number; offered: number; gone: number; unchanged: number };
  server: ValueChange[];
  changed: { tool: string; operation: string; fields: ValueChange[] }[];
  conflicts: { tool?: string; path: string; key: string; before?: string; yours?: string; document?: string }[];
  added: string[];
  offered: { operation: string; tool: string; tokens: number; removed?: true }[];
  gone: string[];
  questions: Question[];
};

/** The result as plain data. `config` and `generated` are JSON. */
export type ImportedAgain = { report: AgainReport; config: string; generated: string; documentHash: string };

const mostListed = 500;
const mostFields = 50;
const mostQuestions = 200;
const longestValue = 300;

export function documentHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** The server as it is, and as its last import generated it: both as JSON. */
export type ImportedServer = { config: string; generated: string | undefined; documentHash: string | undefined };

/**
 * Reads a document again and merges what it gives today into a server that was imported from it.
 * @throws AppError invalid when the document cannot be read
 */
export function mergeImport(
  text: string,
  choices: ImportChoices,
  imported: ImportedServer,
  again: AgainChoices,
): ImportedAgain {
  const description = readDescription(text);
  const plan = planImport(description, { ...stillAsked(description, choices), include: ['*'], deprecated: true });
  const config = JSON.parse(imported.config) as JsonFields & { tools: AnyTool[] };
  const before = readGenerated(imported.generated);
  const now = nowOf(plan, config, before);
  const wanted = new Set(
    select(plan.all, { include: again.add, deprecated: true }).chosen.map(({ tool }) => tool?.imported_from),
  );
  const takes = new Set(again.take);
  const choose = (key: string) => (takes.has('*') || takes.has(key) ? ('theirs' as const) : ('yours' as const));
  const server = mergeServer(config, before.server, now.server, choose);
  const merged = mergeTools(config.tools, new Map(Object.entries(before.tools)), new Map(Object.entries(now.tools)), {
    adds: (operation) => wanted.has(operation),
    choose: (conflict) => choose(keyOf(conflict)),
  });
  const hash = documentHash(text);
  const next = { ...withServerFields(config, server.fields), tools: merged.tools };
  return {
    report: {
      ...reportOf(merged, server, plan),
      title: plan.title,
      isSameDocument: hash === imported.documentHash,
      questions: plan.questions.filter(({ name }) => name !== 'client_secret').slice(0, mostQuestions),
    },
    config: JSON.stringify(next),
    generated: JSON.stringify({ server: now.server, tools: keptTools(merged, before, now) } satisfies Generated),
    documentHash: hash,
  };
}

/** A question that was answered at the last import may not be in the document any more. */
function stillAsked(description: ApiDescription, choices: ImportChoices): ImportChoices {
  const known = new Set(questionsOf(description));
  const answers = Object.entries(choices.answers ?? {}).filter(([name]) => known.has(name));
  return { ...choices, answers: Object.fromEntries(answers) };
}

/** What the document gives today. While a question is open the fields of the server stay as they were generated. */
function nowOf(plan: ImportPlan, config: JsonFields, before: Generated): Generated {
  const server = plan.config ? generatedServer(plan.config as JsonFields) : before.server;
  const tools = toolsByOperation(plan.all.flatMap(({ tool }) => (tool ? [tool as AnyTool] : [])));
  // Where the description was taken out of the configuration, that of the document does not come back.
  const wasRemoved = before.server.description === undefined && config.description === undefined;
  return { server: wasRemoved ? without(server, 'description') : server, tools };
}

function without(fields: JsonFields, name: string): JsonFields {
  return Object.fromEntries(Object.entries(fields).filter(([other]) => other !== name));
}

type MergedServer = { fields: JsonFields; changes: ValueChange[]; conflicts: Conflict[] };

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
    .map((name) => change(name, yours[name], fields[name]));
  return { fields, changes, conflicts };
}

/** Replaces the generated fields of a configuration in their places; new ones come first. */
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

/** The tools of today that the server has, and those of the last import that it had and whose operation is gone. */
function keptTools({ tools }: MergedTools, before: Generated, now: Generated): Generated['tools'] {
  const present = new Set(tools.map(({ imported_from: operation }) => operation));
  const known = [...Object.keys(before.tools), ...[...present].filter((operation) => operation !== undefined)];
  return Object.fromEntries(
    [...new Set(known)].flatMap((operation) => {
      const tool = now.tools[operation] ?? before.tools[operation];
      return tool ? [[operation, tool]] : [];
    }),
  );
}

const keyOf = ({ tool, path }: Pick<ToolConflict, 'tool' | 'path'>) => `${tool}.${path}`;

function reportOf(merged: MergedTools, server: MergedServer, plan: ImportPlan) {
  const tokens = new Map(plan.all.map(({ tool, tokens: cost }) => [tool?.imported_from, cost]));
  const conflicts = [
    ...server.conflicts.map((conflict) => ({ ...sides(conflict), path: conflict.path, key: conflict.path })),
    ...merged.conflicts.map((conflict) => ({
      ...sides(conflict),
      tool: conflict.tool,
      path: conflict.path,
      key: keyOf(conflict),
    })),
  ];
  return {
    counts: {
      changed: merged.changed.length,
      conflicts: conflicts.length,
      added: merged.added.length,
      offered: merged.offered.length,
      gone: merged.gone.length,
      unchanged: merged.unchanged,
    },
    server: server.changes,
    changed: merged.changed.slice(0, mostListed).map(({ tool, operation, fields }) => ({
      tool,
      operation,
      fields: fields.slice(0, mostFields).map(({ path, before, after }) => change(path, before, after)),
    })),
    conflicts: conflicts.slice(0, mostListed),
    added: merged.added.slice(0, mostListed),
    offered: merged.offered.slice(0, mostListed).map(({ operation, tool, wasRemoved }) => ({
      operation,
      tool: tool.name,
      tokens: tokens.get(operation) ?? 0,
      ...(wasRemoved && { removed: true as const }),
    })),
    gone: merged.gone.slice(0, mostListed),
  };
}

function sides({ before, yours, theirs }: Conflict) {
  return { ...textOf('before', before), ...textOf('yours', yours), ...textOf('document', theirs) };
}

function change(path: string, before: Value, after: Value): ValueChange {
  return { path, ...textOf('before', before), ...textOf('after', after) };
}

function textOf<Name extends string>(name: Name, value: Value): { [name in Name]?: string } {
  if (value === undefined) return {};
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return { [name]: text.length > longestValue ? `${text.slice(0, longestValue)}…` : text } as {
    [name in Name]?: string;
  };
}

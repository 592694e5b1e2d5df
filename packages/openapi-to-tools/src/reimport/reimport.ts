import { createHash } from 'node:crypto';
import { invalidInputError } from '@toolhost/errors/errors';
import { ProblemList } from '@toolhost/errors/problems';
import { parseJson } from '@toolhost/json/json';
import { type Credentials, isStored, toCredentialList } from '@toolhost/tool-config/authentication';
import { formatImportedFrom, parseImportedFrom } from '@toolhost/tool-config/imports';
import type { UrlRule } from '@toolhost/tool-config/server-rules';
import { toViewTool, type View, type ViewTool } from '@toolhost/tool-config/view';
import { checkViews, type ViewContext } from '@toolhost/tool-config/view-rules';
import type { JsonFields } from '../document/lenient.ts';
import type { ApiDescription } from '../model.ts';
import { getQuestionNames, type ImportChoices } from '../plan/choices.ts';
import { getSizeProblem, type ImportPlan, listOperationKeys, planImport } from '../plan/plan-import.ts';
import { select } from '../plan/selection.ts';
import { type OfferedKind, planLimits, type ReimportReport } from '../plan-outline.ts';
import { readDescription } from '../read-description.ts';
import {
  collectIds,
  findMovedOperations,
  type Generated,
  generatedFields,
  getOperationDigest,
  mapToolsByOperation,
  pickGeneratedFields,
  readGenerated,
} from './generated.ts';
import { type ConfigTool, type MergedTools, mergeTools } from './merge-tools.ts';
import { type Conflict, isEqual, mergeRecords, type Value } from './merge-values.ts';
import { createReport, getConflictKey, type MergedServer } from './reimport-report.ts';

export type ReimportChoices = {
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
export type ReimportResult = {
  report: ReimportReport;
  isSameDocument: boolean;
  config: string;
  generated: string;
  documentHash: string;
  answers: Readonly<Record<string, string>>;
};

export function hashDocument(text: string): string {
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
  reimportChoices: ReimportChoices & { urlProblem?: UrlRule },
): ReimportResult {
  const description = readDescription(document);
  const answers = dropObsoleteAnswers(description, choices.answers ?? {});
  const { prefix } = choices;
  const stored = parseJson(imported.config) as JsonFields & { tools: ConfigTool[] };
  const config: typeof stored = { ...stored, tools: stored.tools.map((tool) => toLocalTool(tool, prefix)) };
  const before = readGenerated(imported.generated);
  const keys = listOperationKeys(description.operations);
  const moves = findMovedOperations(
    new Set(config.tools.flatMap(({ imported_from: operation }) => operation ?? [])),
    description.operations.map(({ operationId }, index) => ({ key: keys[index] as string, id: operationId })),
    before,
  );
  const existingKeys = new Set(
    config.tools.flatMap(({ credential, imported_from: operation }) =>
      operation === undefined || credential !== prefix ? [] : (moves.get(operation) ?? operation),
    ),
  );
  const isOnlyCredential = prefix === undefined && hasCallerCredential(config as Credentials & JsonFields);
  const planChoices = { ...choices, answers, include: ['*'], deprecated: true, existingKeys, isOnlyCredential };
  const plan = planImport(description, planChoices, reimportChoices.urlProblem);
  if (prefix !== undefined) requireAnswers(plan);
  const regenerated = regenerate(plan, config, before);
  const addedOperations = new Set(
    select(plan.all, { include: reimportChoices.add, deprecated: true }).chosen.map(({ tool }) => tool?.imported_from),
  );
  const takenConflicts = new Set(reimportChoices.take);
  const choose = (key: string) =>
    takenConflicts.has('*') || takenConflicts.has(key) ? ('theirs' as const) : ('yours' as const);
  const server = mergeServer(config, before.server, regenerated.server, choose);
  const merged = mergeTools(
    config.tools,
    new Map(Object.entries(before.tools)),
    new Map(Object.entries(regenerated.tools)),
    {
      shouldAdd: (operation) => addedOperations.has(operation),
      moves,
      choose: (conflict) => choose(getConflictKey(conflict)),
    },
  );
  const newHash = hashDocument(document);
  const withTools = {
    ...replaceServerFields(config, server.fields),
    ...addNamedCredentials(merged.tools, config.credentials as NamedCredentials, plan.credentials),
    tools: merged.tools,
  };
  const views = renameViews({ before: config, after: withTools });
  const mergedConfig = { ...withTools, ...(views && { views }) };
  const tools = merged.tools.map((tool, index) => toStoredTool(tool, stored.tools[index], prefix));
  const configJson = serializeConfig({ ...mergedConfig, tools }, reimportChoices);
  const generatedTools = selectGeneratedTools(merged, before, regenerated);
  return {
    report: {
      ...createReport({ tools: merged, server, plan, before }, reimportChoices.offered),
      views: describeViewChanges({ before: config, after: mergedConfig }, merged.gone),
    },
    isSameDocument: newHash === imported.documentHash,
    config: configJson,
    generated: JSON.stringify({
      server: regenerated.server,
      tools: generatedTools,
      known: plan.keys.map(getOperationDigest),
      ids: collectIds(generatedTools, plan, before),
    } satisfies Generated),
    documentHash: newHash,
    answers,
  };
}

/** @throws AppError invalid if the configuration is too large */
function serializeConfig(config: JsonFields, { add }: ReimportChoices): string {
  const json = JSON.stringify(config);
  const sizeError = getSizeProblem(json);
  if (sizeError === undefined) return json;
  throw invalidInputError([{ path: add.length > 0 ? 'add' : 'document', message: sizeError }]);
}

/** Returns a tool as its own description sees it. A tool of another description counts as written by hand. */
function toLocalTool(tool: ConfigTool, prefix: string | undefined): ConfigTool {
  if (tool.imported_from === undefined) return tool;
  const { imported_from: from, ...withoutOrigin } = tool;
  const operation = parseImportedFrom(from);
  return operation.prefix === prefix ? { ...tool, imported_from: operation.key } : withoutOrigin;
}

/** Returns a merged tool as it is stored. `stored` is the tool before the merge; undefined for an added one. */
function toStoredTool(tool: ConfigTool, stored: ConfigTool | undefined, prefix: string | undefined): ConfigTool {
  const { imported_from: key } = tool;
  if (key !== undefined) return { ...tool, imported_from: formatImportedFrom({ key, prefix }) };
  return stored?.imported_from === undefined ? tool : stored;
}

/** Requires all answers, because the tools of an added description contain the address. @throws AppError invalid */
function requireAnswers({ questions }: ImportPlan): void {
  const open = questions.filter(({ required }) => required);
  if (open.length === 0) return;
  throw invalidInputError(
    open.map(({ name, question }) => ({ path: `answers.${name}`, message: `required: ${question}` })),
  );
}

type NamedCredentials = ImportPlan['credentials'];

/** Returns true if tools cannot name a credential, because callers bring the server's credential. */
function hasCallerCredential({ oauth, authentication }: Credentials & JsonFields): boolean {
  return oauth !== undefined || !toCredentialList(authentication).every(isStored);
}

/** Returns the server's credentials, plus missing ones that its tools name. */
function addNamedCredentials(
  tools: readonly ConfigTool[],
  yours: NamedCredentials,
  theirs: NamedCredentials = {},
): JsonFields {
  const namedCredentials = new Set(tools.map(({ credential }) => credential));
  const added = Object.entries(theirs).filter(
    ([name]) => namedCredentials.has(name) && !Object.hasOwn(yours ?? {}, name),
  );
  return added.length === 0 ? {} : { credentials: { ...yours, ...Object.fromEntries(added) } };
}

/**
 * Drops answers to questions that the document no longer asks. Answers are stored with each import, so all of them
 * together must stay within the limit. @throws AppError invalid
 */
function dropObsoleteAnswers(
  description: ApiDescription,
  answers: NonNullable<ImportChoices['answers']>,
): NonNullable<ImportChoices['answers']> {
  const questionNames = new Set(getQuestionNames(description));
  const remaining = Object.entries(answers).filter(([name]) => questionNames.has(name));
  if (remaining.length <= planLimits.entries) return Object.fromEntries(remaining);
  const message = `found ${remaining.length}, including those of the last import; allowed: at most ${planLimits.entries} answers`;
  throw invalidInputError([{ path: 'answers', message }]);
}

/**
 * Generates tools and server fields from the current document. While a question is open, the server fields keep their
 * generated values.
 */
function regenerate(plan: ImportPlan, config: JsonFields & { tools: ConfigTool[] }, before: Generated): Generated {
  const server = plan.config ? pickGeneratedFields(plan.config as JsonFields) : before.server;
  const tools = mapToolsByOperation(plan.all.flatMap(({ tool }) => (tool ? [tool as ConfigTool] : [])));
  const currentTools = mapToolsByOperation(config.tools);
  // An operation that exists but currently cannot become a tool leaves its existing tool unchanged.
  for (const [index, { isRejected }] of plan.all.entries()) {
    const operation = plan.keys[index] as string;
    const yours = currentTools[operation];
    if (isRejected && yours) tools[operation] = before.tools[operation] ?? yours;
  }
  // A description that people removed from the configuration is not restored.
  const wasRemoved = before.server.description === undefined && config.description === undefined;
  return { server: wasRemoved ? omitField(server, 'description') : server, tools };
}

function omitField(fields: JsonFields, name: string): JsonFields {
  return Object.fromEntries(Object.entries(fields).filter(([otherName]) => otherName !== name));
}

function mergeServer(
  config: JsonFields,
  before: JsonFields,
  theirs: JsonFields,
  choose: (key: string) => 'yours' | 'theirs',
): MergedServer {
  const conflicts: Conflict[] = [];
  const yours = pickGeneratedFields(config);
  const fields = mergeRecords({ before, yours, theirs }, '', {
    choose: ({ path }) => choose(path),
    onConflict: (conflict) => conflicts.push(conflict),
  });
  const changes = generatedFields
    .filter((name) => !isEqual(yours[name], fields[name]))
    .map((name) => ({ path: name, before: yours[name], after: fields[name] }));
  return { fields, changes, conflicts };
}

/** Replaces generated fields of a configuration where they are. New fields follow the name and slug. */
function replaceServerFields(config: JsonFields, fields: JsonFields): JsonFields {
  const isGenerated = (name: string) => generatedFields.some((field) => field === name);
  const added = Object.entries(fields).filter(([name]) => !Object.hasOwn(config, name));
  const entries = Object.entries(config).flatMap(([name, value]): [string, Value][] => {
    if (!isGenerated(name)) return [[name, value]];
    return Object.hasOwn(fields, name) ? [[name, fields[name]]] : [];
  });
  const { name, slug, ...otherFields } = Object.fromEntries(entries);
  return { name, slug, ...Object.fromEntries(added), ...otherFields };
}

/**
 * Returns the generated tools to store: current tools that the server has, and tools of the last import whose operation
 * was removed.
 */
function selectGeneratedTools(
  { tools, moved }: MergedTools,
  before: Generated,
  regenerated: Generated,
): Generated['tools'] {
  const movedFrom = new Set(moved.map(({ from }) => from));
  const currentOperations = new Set(tools.map(({ imported_from: operation }) => operation));
  const operations = [
    ...Object.keys(before.tools).filter((operation) => !movedFrom.has(operation)),
    ...[...currentOperations].filter((operation) => operation !== undefined),
  ];
  return Object.fromEntries(
    [...new Set(operations)].flatMap((operation) => {
      const tool = regenerated.tools[operation] ?? before.tools[operation];
      return tool ? [[operation, tool]] : [];
    }),
  );
}

/** Server before and after a re-import. The tools of `after` begin with the tools of `before`, in the same order. */
type MergedConfig = { before: JsonFields & { tools: ConfigTool[] }; after: JsonFields & { tools: ConfigTool[] } };

const maxSentences = 200;

/** Returns the views with the new names of tools that the document renames. */
function renameViews({ before, after }: MergedConfig): Record<string, View> | undefined {
  const views = before.views as Record<string, View> | undefined;
  const names = getRenames({ before, after });
  if (!views || names.size === 0) return views;
  const renameEntry = (entry: string | ViewTool) => {
    const name = names.get(toViewTool(entry).name);
    if (name === undefined) return entry;
    return typeof entry === 'string' ? name : { ...entry, name };
  };
  return Object.fromEntries(
    Object.entries(views).map(([name, view]) => [
      name,
      { ...view, ...(view.tools && { tools: view.tools.map(renameEntry) }) },
    ]),
  );
}

/** Describes the changes to views, one sentence each: tools that are renamed, are removed, or no longer fit. */
function describeViewChanges(merged: MergedConfig, removedTools: readonly string[]): string[] {
  const views = merged.before.views as Record<string, View> | undefined;
  if (!views) return [];
  const names = getRenames(merged);
  const removedNames = new Set(removedTools);
  const changes = Object.entries(views).flatMap(([view, { tools = [] }]) =>
    tools.flatMap((entry) => {
      const { name } = toViewTool(entry);
      const newName = names.get(name) ?? name;
      if (removedNames.has(newName))
        return [`${view}: the tool "${newName}" was removed from the document, so it is removed from the view`];
      return newName === name ? [] : [`${view}: the tool "${name}" is renamed to "${newName}"`];
    }),
  );
  const problems = new ProblemList();
  checkViews(merged.after as unknown as ViewContext, problems, () => true);
  const problemSentences = problems
    .all()
    .map(({ path, message }) => `${path}: ${message}; change the view before you apply the import`);
  return [...problemSentences, ...changes].slice(0, maxSentences);
}

function getRenames({ before, after }: MergedConfig): Map<string, string> {
  return new Map(
    before.tools.flatMap(({ name }, index) => {
      const newName = after.tools[index]?.name;
      return newName === undefined || newName === name ? [] : [[name, newName] as const];
    }),
  );
}

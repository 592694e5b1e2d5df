import { z } from 'zod';
import { changeText } from '../domain/change-text.ts';
import { accessKinds } from '../domain/config/server-wide.ts';
import { singleLineText } from '../domain/config/tool.ts';
import { mostViews } from '../domain/config/view.ts';
import type { FieldChange } from '../domain/config-changes.ts';
import { type Guesses, listed, mostNamed, nearest, nearestOrAll, newGuesses } from '../domain/problems.ts';
import { AppError, mostProblems, type Problem, shortProblem } from '../errors.ts';
import { decodeCursor, type Page } from '../store/page.ts';
import { wordsIn } from '../store/search.ts';
import { type ImportCheck, watchings } from '../store/servers/imports.ts';
import {
  type ConfigSummary,
  findServer,
  type ServerFilter,
  type ServerSummary,
  type StoredServer,
  serverSorts,
  slugsAround,
} from '../store/servers/servers.ts';
import { programName } from '../version.ts';
import { changesText } from './import-changes.ts';
import type { Context } from './operation.ts';
import { nameSchema } from './schema-names.ts';

/** Input and output fields that several operations share. */
export const slugInput = z.string().min(1).max(100).describe('Slug of the hosted server.');
export const toolInput = z.string().min(1).max(100).describe('Name of the tool.');
export const viewInput = z.string().min(1).max(40);
export const argumentsInput = z.record(z.string(), z.unknown()).default({}).describe('Arguments of the call, by name.');
export const versionInput = z
  .int()
  .min(1)
  .optional()
  .describe('Version that the change builds on; a newer one is a conflict.');
export const messageInput = singleLineText(200).optional().describe('What the change is for; shown with the version.');
export const pageInputs = {
  limit: z.int().min(1).max(200).default(50).describe('Most entries to return.'),
  cursor: z.string().max(500).optional().describe('next_cursor of the page before.'),
};
export const nextCursor = z.string().optional().describe('Pass as cursor for the next page; absent on the last one.');
export const time = z.iso.datetime().describe('ISO 8601, UTC.');

/** Field of an answer when a change found everything already as requested. */
export const unchangedShape = z.literal(true).optional().describe('It was like this before, so nothing was stored.');
export const isUnchanged = (output: { unchanged?: true | undefined }): boolean => output.unchanged === true;

export const problemShape = z.object({ path: z.string(), message: z.string() });
nameSchema('FieldProblem', problemShape);
/** Length of a list, including the line that says how many more there are. */
export const problemsShape = z.array(problemShape).max(mostProblems + 1);

const mostWarnings = 100;
export const warningsShape = z
  .array(problemShape)
  .max(mostWarnings)
  .describe('What is valid but will probably disappoint.');

/** The first warnings; the last entry gives the number of the others. */
export function firstWarnings(warnings: readonly Problem[]): Problem[] {
  if (warnings.length <= mostWarnings) return warnings.map(shortProblem);
  const shown = warnings.slice(0, mostWarnings - 1).map(shortProblem);
  return [...shown, { path: '', message: `and ${warnings.length - shown.length} more warnings` }];
}

export const mostChanges = 500;
export const changesShape = z
  .array(
    z.object({
      path: z.string(),
      text: z.string().describe('What the change means, such as "list_orders: timeout changed".'),
      before: z.unknown().optional().describe('Absent where the field does not exist; a secret is not shown.'),
      after: z.unknown().optional().describe('Absent where the field is removed; a secret is not shown.'),
    }),
  )
  .max(mostChanges)
  .describe(`The first ${mostChanges} differences.`);

export function shownChanges(changes: readonly FieldChange[]): z.input<typeof changesShape> {
  return changes.slice(0, mostChanges).map((change) => ({ ...change, text: changeText(change) }));
}

const mostServerTags = 10;
const tagInput = singleLineText(40).regex(/^[^",\\]*$/, 'has a quotation mark, a comma, or a backslash');
export const tagsInput = z.array(tagInput).max(mostServerTags);

const mostQuery = 100;
/** A text to search for, as words in lower case. */
export const queryInput = z.string().trim().min(1).max(mostQuery);

/** Which servers are listed, and in what order. */
export const serverFilterInputs = {
  query: queryInput.optional().describe('In slug, name, tags'),
  sort: z.enum(serverSorts).optional(),
};

export function serverFilterFrom({ query, ...filter }: z.output<z.ZodObject<typeof serverFilterInputs>>): ServerFilter {
  return { ...filter, words: query === undefined ? [] : wordsIn(query) };
}

const count = z.int();

/** Facts about the description that a server was imported from. */
export const importState = z.object({
  watch: z.enum(watchings).describe('daily: the service reads the description once a day and compares it.'),
  checked_at: time.optional(),
  next_check_at: time.optional(),
  changed: z
    .boolean()
    .optional()
    .describe('Whether importing again would change or offer anything; absent before the first check.'),
  counts: z
    .object({
      changed: count.describe('Tools that would follow the description.'),
      conflicts: count,
      new: count.describe('Operations that were not there at the last import.'),
      gone: count,
      server: count.describe('Fields of the server that would follow.'),
    })
    .optional()
    .describe('What importing again would change.'),
  error: z.string().optional().describe('Why the last check failed; the counts are those of the check before.'),
});
nameSchema('ImportState', importState);

export const serverRecord = z.object({
  id: z.string(),
  name: z.string(),
  slug: z.string(),
  description: z.string().optional(),
  url: z.string().describe('Address of the MCP server.'),
  host_url: z
    .string()
    .optional()
    .describe('A second address, on a host of its own; only where the operator has set SERVER_HOSTS.'),
  access: z
    .enum(accessKinds)
    .describe(
      'Who may call it: oauth and passthrough by login, api_key with a key of the workspace, caller_token with a token of the upstream.',
    ),
  open: z
    .literal(true)
    .optional()
    .describe('Present for caller_token where the upstream gets no credential; then any token of a caller will do.'),
  tool_count: z.int().describe('Tools that agents get; disabled ones do not count.'),
  views: z.array(z.string()).max(mostViews).optional().describe('Names of its views.'),
  version: z.int(),
  created_at: time,
  updated_at: time,
  created_by: z.string(),
  label: z.string().optional().describe('Set of files that it was applied from (apply --label).'),
  tags: z.array(z.string()).max(mostServerTags).optional().describe('Words that people sort their servers by.'),
  imported: importState.optional().describe('Only for imported servers, in a list and by getMcpServer.'),
});
nameSchema('Server', serverRecord);

export const actorName = z
  .string()
  .optional()
  .describe(
    'What the API key is called now, the client called itself, or the person is called, which only people in the dashboard see; absent where it has no name.',
  );

export function isoTime(at: number): string {
  return new Date(at).toISOString();
}

export function pageFrom(input: { limit: number; cursor?: string | undefined }): Page {
  return { limit: input.limit, after: input.cursor === undefined ? undefined : decodeCursor(input.cursor) };
}

const hostUrl = (address: string | undefined) => (address === undefined ? {} : { host_url: address });

export function toRecord(
  server: Omit<ServerSummary, keyof ConfigSummary>,
  { description, access, isOpen, toolCount, views }: ConfigSummary,
  { serverUrl, ownAddress }: Pick<Context, 'serverUrl' | 'ownAddress'>,
): z.input<typeof serverRecord> {
  return {
    id: server.id,
    name: server.name,
    slug: server.slug,
    ...(description !== undefined && { description }),
    url: serverUrl(server.slug),
    ...hostUrl(ownAddress(server.slug)),
    access,
    ...(isOpen && { open: true as const }),
    tool_count: toolCount,
    ...(views && { views }),
    version: server.version,
    created_at: isoTime(server.createdAt),
    updated_at: isoTime(server.updatedAt),
    created_by: server.createdBy,
    ...(server.label !== undefined && { label: server.label }),
    ...(server.tags !== undefined && { tags: server.tags }),
  };
}

/** A server of the actor's workspace. @throws AppError notFound, also for a server of another workspace */
export async function getServer(context: Context, slug: string): Promise<StoredServer> {
  const server = await findOwnServer(context, slug);
  if (!server) throw await unknownServer(context, slug);
  return server;
}

/** A server of the workspace. A long configuration is read when there is memory for it. @throws AppError tooMany */
export function findOwnServer(
  { db, actor, room }: Pick<Context, 'db' | 'actor' | 'room'>,
  slug: string,
): Promise<StoredServer | undefined> {
  return findServer(db, actor.workspaceId, slug, room);
}

/** Whether the calls of a server are captured at time `now`. */
export function isCaptured(server: StoredServer, now: number): server is StoredServer & { captureUntil: number } {
  return server.captureUntil !== undefined && now < server.captureUntil;
}

type Asking = Pick<Context, 'db' | 'actor'>;

const noServer = 'there is no such server in this workspace';

/** The error is the same for a server of another workspace as for a missing one. It names only slugs that the actor may see. */
async function unknownServer(context: Asking, slug: string): Promise<AppError> {
  return new AppError('notFound', noServer + (await insteadOf(context, slug, newGuesses())));
}

/** The error for a key that is limited to some servers: for it no others exist. */
export function serverOutsideOf(limits: readonly string[], slug: string): AppError {
  return new AppError('notFound', noServer + withinLimits(limits, slug, newGuesses()));
}

/** Advice for an unknown slug: similar slugs, or how to list them. */
export async function insteadOf({ db, actor }: Asking, slug: string, guesses: Guesses): Promise<string> {
  if (actor.servers) return withinLimits(actor.servers, slug, guesses);
  const around = await slugsAround(db, actor.workspaceId, slug);
  if (around.length <= mostNamed) return nearestOrAll(slug, around.toSorted(), guesses);
  return nearest(slug, around, guesses, `; listMcpServers (${programName} servers list) lists them`);
}

function withinLimits(limits: readonly string[], slug: string, guesses: Guesses): string {
  if (limits.length === 0) return '; the credential is limited to views, and only calls their tools over MCP';
  const others = limits.filter((own) => own !== slug);
  return nearest(slug, others, guesses, `; the credential is limited to: ${listed(limits)}`);
}

export function importStateOf(check: ImportCheck): z.input<typeof importState> {
  const { watch, checkedAt, dueAt, counts, error } = check;
  return {
    watch,
    ...(checkedAt !== undefined && { checked_at: isoTime(checkedAt) }),
    ...(dueAt !== undefined && { next_check_at: isoTime(dueAt) }),
    ...(counts && { changed: Object.values(counts).some((number) => number > 0), counts }),
    ...(error !== undefined && { error }),
  };
}

/** The field `imported` of a server in a list; nothing for a server that was not imported. */
export function importedField(check: ImportCheck | undefined): { imported?: z.input<typeof importState> } {
  return check ? { imported: importStateOf(check) } : {};
}

/** The state as text, such as "2 tools change, 1 new operation". */
export function saidOfState({ changed, counts, error, checked_at: checkedAt }: z.input<typeof importState>): string {
  if (error !== undefined) return `The last check failed: ${error}`;
  if (checkedAt === undefined || !counts) return 'Not checked since the last import.';
  if (!changed) return 'Nothing has changed since the last import.';
  return `Changed since the last import: ${changesText(counts)}.`;
}

import { maxListedProblems, type Problem, shortenProblem } from '@toolhost/errors/errors';
import type { FieldChange } from '@toolhost/tool-config/config-changes';
import { accessKinds } from '@toolhost/tool-config/server-wide';
import { singleLineText } from '@toolhost/tool-config/tool';
import { maxViews } from '@toolhost/tool-config/view';
import { z } from 'zod';
import { formatChange } from '../change-text.ts';
import { exampleSlug, exampleToken } from '../example-server.ts';
import { decodeCursor, type Page } from '../store/page.ts';
import { splitSearchWords } from '../store/search.ts';
import { type ImportCheck, watchFrequencies } from '../store/servers/imports.ts';
import {
  type ConfigSummary,
  type ServerFilter,
  type ServerSummary,
  type StoredServer,
  serverSorts,
} from '../store/servers/servers.ts';
import { formatImportChanges } from './import-changes.ts';
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
  .describe('Version that the change is based on; fails with a conflict if there is a newer one.');
export const messageInput = singleLineText(200).optional().describe('Reason for the change, shown with the version.');
export const pageInputs = {
  limit: z.int().min(1).max(200).default(50).describe('Maximum number of entries.'),
  cursor: z.string().max(500).optional().describe('The next_cursor of the previous page.'),
};
export const nextCursor = z.string().optional().describe('Cursor for the next page; absent on the last page.');
export const time = z.iso.datetime().describe('Time in ISO 8601 format, UTC.');
export const lastUse = time
  .optional()
  .describe('Time of the last use, to the minute: it is updated at most once per minute. Absent if there was none.');

/** Output field of an operation whose requested state was already stored. */
export const unchangedShape = z.literal(true).optional().describe('True if nothing changed, so nothing was stored.');
export const isUnchanged = (output: { unchanged?: true | undefined }): boolean => output.unchanged === true;

export const problemShape = z.object({ path: z.string(), message: z.string() });
nameSchema('FieldProblem', problemShape);
/** List of problems, including a last line with the number of omitted ones. */
export const problemsShape = z.array(problemShape).max(maxListedProblems + 1);

const maxWarnings = 100;
export const warningsShape = z
  .array(problemShape)
  .max(maxWarnings)
  .describe('Settings that are valid but probably do not work as intended.');

/** Returns the first warnings; the last entry gives the number of omitted ones. */
export function limitWarnings(warnings: readonly Problem[]): Problem[] {
  if (warnings.length <= maxWarnings) return warnings.map(shortenProblem);
  const visible = warnings.slice(0, maxWarnings - 1).map(shortenProblem);
  return [...visible, { path: '', message: `and ${warnings.length - visible.length} more warnings` }];
}

export const maxChanges = 500;
export const changesShape = z
  .array(
    z.object({
      path: z.string(),
      text: z.string().describe('Description of the change, such as "list_orders: timeout changed".'),
      before: z
        .unknown()
        .optional()
        .describe('Value before the change; absent if the field did not exist. Secrets are not shown.'),
      after: z
        .unknown()
        .optional()
        .describe('Value after the change; absent if the field was removed. Secrets are not shown.'),
    }),
  )
  .max(maxChanges)
  .describe(`Differences; at most ${maxChanges}.`);

export function formatChanges(changes: readonly FieldChange[]): z.input<typeof changesShape> {
  return changes.slice(0, maxChanges).map((change) => ({ ...change, text: formatChange(change) }));
}

const maxServerTags = 10;
const tagInput = singleLineText(40).regex(/^[^",\\]*$/, 'has a quotation mark, a comma, or a backslash');
export const tagsInput = z.array(tagInput).max(maxServerTags);

const maxQueryLength = 100;
/** Search query; it is split into lowercase words. */
export const queryInput = z.string().trim().min(1).max(maxQueryLength);

/** Filter and order of a server list. */
export const serverFilterInputs = {
  query: queryInput.optional().describe('Words to find in the slug, name, and tags.'),
  sort: z.enum(serverSorts).optional(),
};

export function toServerFilter({ query, ...filter }: z.output<z.ZodObject<typeof serverFilterInputs>>): ServerFilter {
  return { ...filter, words: query === undefined ? [] : splitSearchWords(query) };
}

const count = z.int();

/** State of the API description that a server was imported from. */
export const importState = z.object({
  watch: z
    .enum(watchFrequencies)
    .describe('With daily, Toolhost fetches the API description once a day and compares it with the last import.'),
  checked_at: time.optional(),
  next_check_at: time.optional(),
  changed: z
    .boolean()
    .optional()
    .describe('True if a re-import would change or offer anything; absent before the first check.'),
  counts: z
    .object({
      changed: count.describe('Tools that a re-import would update.'),
      conflicts: count,
      new: count.describe('Operations that were added since the last import.'),
      gone: count,
      server: count.describe('Server fields that a re-import would update.'),
    })
    .optional()
    .describe('Number of changes that a re-import would make.'),
  error: z.string().optional().describe('Reason why the last check failed. The counts are from the check before it.'),
});
nameSchema('ImportState', importState);

export const serverRecord = z.object({
  id: z.string(),
  name: z.string(),
  slug: z.string(),
  description: z.string().optional(),
  url: z.string().describe('URL of the MCP server.'),
  host_url: z
    .string()
    .optional()
    .describe('Second URL, on a separate host. Only present if the operator has set SERVER_HOSTS.'),
  access: z
    .enum(accessKinds)
    .describe(
      'How callers authenticate: with a login at a provider (oauth, passthrough) or at this service (login), with an API key of the workspace (api_key), or with an upstream token (caller_token).',
    ),
  open: z
    .literal(true)
    .optional()
    .describe(
      'True if access is caller_token and the upstream gets no credential, so that any caller token is accepted.',
    ),
  example_token: z
    .string()
    .optional()
    .describe('Token that the API of the example server accepts. Only present for the example server of local mode.'),
  tool_count: z.int().describe('Number of tools that agents get. Disabled tools are not counted.'),
  views: z.array(z.string()).max(maxViews).optional().describe('Names of the views.'),
  version: z.int(),
  created_at: time,
  updated_at: time,
  created_by: z.string(),
  label: z.string().optional().describe('Set of files that the server was applied from (apply --label).'),
  tags: z.array(z.string()).max(maxServerTags).optional().describe('Tags that people use to organize servers.'),
  imported: importState
    .optional()
    .describe('State of the import. Only present for imported servers, in lists and from getMcpServer.'),
});
nameSchema('Server', serverRecord);

export const actorName = z
  .string()
  .optional()
  .describe(
    'Current name of the API key, name that the client gave itself, followed by the person who logged in with it, or name of the person. Only people in the dashboard see names of people. Absent if there is no name.',
  );

export function toIsoTime(at: number): string {
  return new Date(at).toISOString();
}

export function parsePage(input: { limit: number; cursor?: string | undefined }): Page {
  return { limit: input.limit, after: input.cursor === undefined ? undefined : decodeCursor(input.cursor) };
}

const toHostUrlField = (url: string | undefined) => (url === undefined ? {} : { host_url: url });

export function toServerRecord(
  server: Omit<ServerSummary, keyof ConfigSummary>,
  { description, access, isOpen, toolCount, views }: ConfigSummary,
  context: Pick<Context, 'serverUrl' | 'serverHostUrl' | 'exampleWorkspaceId' | 'actor'>,
): z.input<typeof serverRecord> {
  return {
    id: server.id,
    name: server.name,
    slug: server.slug,
    ...(description !== undefined && { description }),
    url: context.serverUrl(server.slug),
    ...toHostUrlField(context.serverHostUrl(server.slug)),
    access,
    ...(isOpen && { open: true as const }),
    ...(isExample(server.slug, context) && { example_token: exampleToken }),
    tool_count: toolCount,
    ...(views && { views }),
    version: server.version,
    created_at: toIsoTime(server.createdAt),
    updated_at: toIsoTime(server.updatedAt),
    created_by: server.createdBy,
    ...(server.label !== undefined && { label: server.label }),
    ...(server.tags !== undefined && { tags: server.tags }),
  };
}

function isExample(slug: string, context: Pick<Context, 'exampleWorkspaceId' | 'actor'>): boolean {
  return slug === exampleSlug && context.actor.workspaceId === context.exampleWorkspaceId;
}

/** Returns true if the calls of a server are captured at time `now`. */
export function isCaptured(server: StoredServer, now: number): server is StoredServer & { captureUntil: number } {
  return server.captureUntil !== undefined && now < server.captureUntil;
}

export function toImportState(check: ImportCheck): z.input<typeof importState> {
  const { watch, checkedAt, dueAt: nextCheckAt, counts, error } = check;
  return {
    watch,
    ...(checkedAt !== undefined && { checked_at: toIsoTime(checkedAt) }),
    ...(nextCheckAt !== undefined && { next_check_at: toIsoTime(nextCheckAt) }),
    ...(counts && { changed: Object.values(counts).some((number) => number > 0), counts }),
    ...(error !== undefined && { error }),
  };
}

/** Returns the field `imported` for a server in a list, or nothing if the server was not imported. */
export function toImportedField(check: ImportCheck | undefined): { imported?: z.input<typeof importState> } {
  return check ? { imported: toImportState(check) } : {};
}

/** Formats the state as text, such as "2 tools change, 1 new operation". */
export function formatImportState({
  changed,
  counts,
  error,
  checked_at: checkedAt,
}: z.input<typeof importState>): string {
  if (error !== undefined) return `The last check failed: ${error}`;
  if (checkedAt === undefined || !counts) return 'Not checked since the last import.';
  if (!changed) return 'Nothing has changed since the last import.';
  return `Changed since the last import: ${formatImportChanges(counts)}.`;
}

import { z } from 'zod';
import { accessKinds } from '../domain/config/access.ts';
import { mostProblems, type Problem, shortProblem } from '../errors.ts';
import { decodeCursor, type Page } from '../store/page.ts';
import type { ConfigSummary, ServerSummary } from '../store/servers/server-list.ts';
import { findServer, type StoredServer } from '../store/servers/servers.ts';
import type { Context } from './operation.ts';
import { unknownServer } from './servers/unknown-server.ts';

/** Input and output fields that several operations share. */
export const slugInput = z.string().min(1).max(100).describe('Slug of the hosted server.');
export const toolInput = z.string().min(1).max(100).describe('Name of the tool.');
export const viewInput = z.string().min(1).max(40);
export const argumentsInput = z.record(z.string(), z.unknown()).default({}).describe('Arguments of the call, by name.');
export const versionInput = z
  .int()
  .min(1)
  .optional()
  .describe('Version that the change was made from; a conflict is reported when it is not the current one.');
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
  version: z.int(),
  created_at: time,
  updated_at: time,
  created_by: z.string(),
  label: z.string().optional().describe('Set of files that it was applied from, with toolhost apply --label.'),
});

export const actorName = z
  .string()
  .optional()
  .describe('What the user or the API key is called now, or the client called itself; absent where it has no name.');

export function isoTime(at: number): string {
  return new Date(at).toISOString();
}

export function pageFrom(input: { limit: number; cursor?: string | undefined }): Page {
  return { limit: input.limit, after: input.cursor === undefined ? undefined : decodeCursor(input.cursor) };
}

const hostUrl = (address: string | undefined) => (address === undefined ? {} : { host_url: address });

export function toRecord(
  server: Omit<ServerSummary, keyof ConfigSummary>,
  { description, access, isOpen, toolCount }: ConfigSummary,
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
    version: server.version,
    created_at: isoTime(server.createdAt),
    updated_at: isoTime(server.updatedAt),
    created_by: server.createdBy,
    ...(server.label !== undefined && { label: server.label }),
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

export function sameOrigins(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((origin, index) => origin === b[index]);
}

/** Whether the calls of a server are captured at time `now`. */
export function isCaptured(server: StoredServer, now: number): server is StoredServer & { captureUntil: number } {
  return server.captureUntil !== undefined && now < server.captureUntil;
}

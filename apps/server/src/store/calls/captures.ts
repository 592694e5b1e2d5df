import type { FieldStats } from '@toolhost/json/field-selection/field-statistics';
import type { ReadableRequest } from '@toolhost/tool-config/request/upstream-request';
import { type SqlBool, sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause, runInSteps } from '../delete-in-steps.ts';
import { isInWorkspace } from '../page.ts';
import { contexts, type Keyring } from '../sealing/sealing.ts';

/** Exchange with the upstream during a call. Credentials are masked in the request and redacted everywhere else. */
export type Capture = {
  /** Absent if too long to be stored. */
  arguments?: { [name: string]: unknown };
  argumentsBytes: number;
  /** Absent if the call was rejected before a request was built. */
  request?: ReadableRequest;
  /** Absent if the upstream did not respond. */
  response?: CapturedResponse;
  /** Absent if the caller received no result. */
  result?: CapturedResult;
  /** Absent if the response was not JSON that could be measured. */
  fields?: MeasuredResponse;
  /** Absent if no part was shortened beyond the usual limits. */
  shortened?: ShortenedField[];
};

/** Parts that are shortened further if a capture would be too long, as named by `getCall`. */
export const shortenableFields = [
  'result.text',
  'request.headers',
  'request.body',
  'response.headers',
  'request.url',
  'response.body',
  'arguments',
] as const;
export type ShortenedField = (typeof shortenableFields)[number];

/** Statistics of a response before its `response_transform`. `answer` is the name in stored captures. */
export type MeasuredResponse = { transform: string; answer: FieldStats };

export type CapturedResponse = {
  status: number;
  headers: [name: string, value: string][];
  /** Start of the decoded body; absent if it is not text. */
  body?: string;
  bodyBytes: number;
};

/** Result that the caller received. */
export type CapturedResult = {
  isError: boolean;
  /** Start of the text; absent if it begins with a long file. */
  text?: string;
  /** Size of the complete content as JSON. */
  bytes: number;
};

/** Capture as delivered by the gateway. `document` is the JSON text of a `Capture`. */
export type CaptureRow = { callId: string; workspaceId: string; serverId: string; at: number; document: string };

/**
 * Maximum retention of captures. Their number per server and per workspace is also limited, so that no server or
 * workspace can fill the disk.
 */
export const captureRetentionMs = 24 * 60 * 60_000;
export const maxCapturesPerServer = 1000;
export const maxCapturesPerWorkspace = 4000;

/** Number of captures per delete statement. Low, because captures are long. */
const capturesPerDelete = 50;

/** Writes captures of any workspaces; each row names its own. Stored rows remain unchanged. */
export async function insertCaptures(db: Db, keyring: Keyring, rows: readonly CaptureRow[]): Promise<void> {
  const values = rows.map(({ callId, workspaceId, serverId, at, document }) => ({
    call_id: callId,
    workspace_id: workspaceId,
    server_id: serverId,
    at,
    sealed_document: keyring.seal(document, contexts.capture(workspaceId, callId)),
  }));
  await db
    .insertInto('captures')
    .values(values)
    .onConflict((c) => c.column('call_id').doNothing())
    .execute();
  // Deletes more than were added, so that too many captures become fewer. The remaining ones expire within a day.
  const limit = rows.length + capturesPerDelete;
  for (const id of new Set(rows.map(({ serverId }) => serverId)))
    await trimCaptures(db, { column: 'server_id', id, maxCaptures: maxCapturesPerServer }, limit);
  for (const id of new Set(rows.map(({ workspaceId }) => workspaceId)))
    await trimCaptures(db, { column: 'workspace_id', id, maxCaptures: maxCapturesPerWorkspace }, limit);
}

/**
 * Deletes captures beyond the newest of a server or a workspace, at most `limit`, because other work must not wait for a
 * long deletion. Takes no workspace for a server, because the rows were just written for it.
 */
async function trimCaptures(
  db: Db,
  { column, id, maxCaptures }: { column: 'server_id' | 'workspace_id'; id: string; maxCaptures: number },
  limit: number,
): Promise<void> {
  const surplus = await db
    .selectFrom('captures')
    .select('call_id')
    .where(column, '=', id)
    .orderBy('at', 'desc')
    .limit(limit)
    .offset(maxCaptures)
    .execute();
  if (surplus.length === 0) return;
  const ids = surplus.map(({ call_id }) => call_id);
  await db.deleteFrom('captures').where('call_id', 'in', ids).execute();
}

/** Returns the JSON text of a capture that has not expired at `now` and whose server is not deleted. */
export async function findCapture(
  db: Db,
  keyring: Keyring,
  { workspaceId, callId }: Pick<CaptureRow, 'workspaceId' | 'callId'>,
  now: number,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('captures')
    .select('sealed_document')
    .where('call_id', '=', callId)
    .where(isInWorkspace(workspaceId))
    .where('at', '>', now - captureRetentionMs)
    .where(sql<SqlBool>`not ${isServerDeleted}`)
    .executeTakeFirst();
  return row && keyring.open(row.sealed_document, contexts.capture(workspaceId, callId));
}

/** Returns the newest captures of a tool that have not expired at `now`, sealed. */
export async function findToolCaptures(
  db: Db,
  { workspaceId, serverId, tool }: { workspaceId: string; serverId: string; tool: string },
  now: number,
  limit: number,
): Promise<{ callId: string; sealed: string }[]> {
  const recent = await db
    .selectFrom('captures')
    .select('call_id')
    .where('server_id', '=', serverId)
    .where(isInWorkspace(workspaceId))
    .where('at', '>', now - captureRetentionMs)
    .orderBy('at', 'desc')
    .limit(maxCapturesPerServer)
    .execute();
  if (recent.length === 0) return [];
  const ids = recent.map(({ call_id }) => call_id);
  const calls = await db
    .selectFrom('calls')
    .select('id')
    .where('id', 'in', ids)
    .where(isInWorkspace(workspaceId))
    .where('tool', '=', tool)
    .execute();
  const toolCallIds = new Set(calls.map(({ id }) => id));
  const selected = ids.filter((id) => toolCallIds.has(id)).slice(0, limit);
  if (selected.length === 0) return [];
  const rows = await db
    .selectFrom('captures')
    .select(['call_id', 'sealed_document'])
    .where('call_id', 'in', selected)
    .where(isInWorkspace(workspaceId))
    .execute();
  return rows.map(({ call_id, sealed_document }) => ({ callId: call_id, sealed: sealed_document }));
}

/** Returns the JSON text of a sealed capture. */
export function openCapture(keyring: Keyring, workspaceId: string, row: { callId: string; sealed: string }): string {
  return keyring.open(row.sealed, contexts.capture(workspaceId, row.callId));
}

const isServerDeleted = sql<SqlBool>`exists (select 1 from servers
  where servers.id = captures.server_id and servers.deleted_at is not null)`;

/** Deletes at most `limit` captures of a server. Returns their number. */
export async function deleteServerCaptures(
  db: Db,
  server: { workspaceId: string; id: string },
  limit: number,
): Promise<number> {
  const batch = db
    .selectFrom('captures')
    .select('call_id')
    .where('server_id', '=', server.id)
    .where(isInWorkspace(server.workspaceId))
    .limit(limit);
  const { numDeletedRows } = await db.deleteFrom('captures').where('call_id', 'in', batch).executeTakeFirst();
  return Number(numDeletedRows);
}

/**
 * Deletes captures of calls that started before `before`, and captures of deleted servers. Takes no workspace, because
 * retention is the same for all.
 */
export async function pruneCaptures(db: Db, before: number, pause?: Pause): Promise<void> {
  const table = { table: 'captures', key: ['call_id'], maxRows: capturesPerDelete } as const;
  await deleteInSteps(db, { ...table, where: sql`at < ${before}` }, pause);
  const { rows } = await sql<{ id: string; workspaceId: string }>`
    select servers.id, servers.workspace_id as "workspaceId"
    from (select distinct server_id from captures) as captures join servers on servers.id = captures.server_id
    where servers.deleted_at is not null`.execute(db);
  for (const server of rows)
    await runInSteps((limit) => deleteServerCaptures(db, server, limit), pause, capturesPerDelete);
}

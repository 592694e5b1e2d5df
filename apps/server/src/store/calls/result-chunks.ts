import { remainderRetentionMs } from '@toolhost/tool-config/read-more';
import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import { contexts, type Keyring } from '../sealing/sealing.ts';
import { type StoredRemainder, selectEvictedRemainders } from './evicted-remainders.ts';

/** Consecutive chunks of a result. `json` is the JSON text of a list of them. */
export type ResultChunks = {
  id: string;
  workspaceId: string;
  serverId: string;
  caller: string;
  at: number;
  chunkCount: number;
  json: string;
  /** Identifies the address of an unverified caller. */
  unverifiedCaller?: string | undefined;
};

/** Maximum number of rows, and of sealed characters, per workspace. */
export const maxStored = { rows: 2000, characters: 64_000_000 };

export async function insertResultChunks(db: Db, keyring: Keyring, row: ResultChunks): Promise<void> {
  const sealed = keyring.seal(row.json, contexts.resultChunks(row.workspaceId, row.id));
  await db
    .insertInto('result_chunks')
    .values({
      id: row.id,
      workspace_id: row.workspaceId,
      server_id: row.serverId,
      caller: row.caller,
      unverified_caller: row.unverifiedCaller ?? null,
      at: row.at,
      chunks: row.chunkCount,
      characters: sealed.length,
      sealed_chunks: sealed,
    })
    .execute();
}

/**
 * Deletes results of a workspace that exceeds its limits: first those that expired before `now`, then the oldest of the
 * caller, or the address of unverified callers, that stores most.
 */
export async function trimResultChunks(db: Db, workspaceId: string, now: number): Promise<void> {
  const rows = await db
    .selectFrom('result_chunks')
    .select(['id', 'caller', 'unverified_caller', 'at', 'characters'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('at', 'desc')
    .limit(2 * maxStored.rows)
    .execute();
  const remainders = new Map<string, StoredRemainder>();
  const rowIds = new Map<string, string[]>();
  const deleted: string[] = [];
  for (const { id: rowId, caller, unverified_caller: unverifiedCaller, at, characters } of rows) {
    if (Number(at) <= now - remainderRetentionMs) {
      deleted.push(rowId);
      continue;
    }
    // All rows of a result have its ID, followed by a dot and a number.
    const [id = rowId] = rowId.split('.', 1);
    // A caller has one share across all views of a server.
    const [identity = caller] = caller.split(' ', 1);
    const remainder = remainders.get(id) ?? {
      id,
      caller: unverifiedCaller ?? identity,
      isUnverified: unverifiedCaller !== null,
      rows: 0,
      characters: 0,
    };
    remainder.rows++;
    remainder.characters += Number(characters);
    remainders.set(id, remainder);
    rowIds.set(id, [...(rowIds.get(id) ?? []), rowId]);
  }
  for (const { id } of selectEvictedRemainders([...remainders.values()], maxStored))
    deleted.push(...(rowIds.get(id) ?? []));
  if (deleted.length === 0) return;
  await db.deleteFrom('result_chunks').where('workspace_id', '=', workspaceId).where('id', 'in', deleted).execute();
}

export type ResultOwner = { workspaceId: string; serverId: string; caller: string };

/** Returns the chunks of a row that this caller of a server may read at `now`. */
export async function findResultChunks(
  db: Db,
  keyring: Keyring,
  { id, workspaceId, serverId, caller }: ResultOwner & { id: string },
  now: number,
): Promise<{ json: string; chunkCount: number } | undefined> {
  const row = await db
    .selectFrom('result_chunks')
    .select(['sealed_chunks', 'chunks'])
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .where('server_id', '=', serverId)
    .where('caller', '=', caller)
    .where('at', '>', now - remainderRetentionMs)
    .executeTakeFirst();
  if (!row) return undefined;
  return {
    json: keyring.open(row.sealed_chunks, contexts.resultChunks(workspaceId, id)),
    chunkCount: Number(row.chunks),
  };
}

/** Deletes chunks older than `before`. Takes no workspace, because their retention is the same for all. */
export async function pruneResultChunks(db: Db, before: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'result_chunks', key: ['id'], where: sql`at < ${before}` }, pause);
}

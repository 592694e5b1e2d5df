import { getFairShare } from '@toolhost/limits/concurrency-limiter';
import { type FileHead, fileRetentionMs } from '@toolhost/tool-config/file-names';
import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import { contexts, type Keyring } from '../sealing/sealing.ts';

/** Stored file without its bytes. */
export type FileRow = {
  /** Digest of the id in the file's URL. */
  id: string;
  workspaceId: string;
  serverId: string;
  /** Path of the server below `/mcp/`: its slug, or slug and view. */
  address: string;
  /** Digest of the caller's identity. */
  caller: string;
  at: number;
  bytes: number;
  head: FileHead;
};

/** Maximum number of files, and of their bytes, per workspace. Counts files whose URL is still valid. */
export const maxStoredFiles = { files: 1000, bytes: 100 * 1024 * 1024 };

/** Share of a workspace's space that all unverified callers may fill together. */
const unverifiedShare = 3 / 4;

/** Reason why a file has no space, and the time when the oldest file in its way expires, in epoch ms. */
export type NoSpace = { scope: 'workspace' | 'address'; freeAt: number };

/** Time that rows are retained after the URL expires, so that downloads in progress can finish. */
const graceMs = 60_000;

/**
 * Stores a file without its bytes. `unverifiedCaller` identifies the address of an unverified caller. Returns the
 * reason if there is no space. The row is inserted first and counted with the others, so two processes cannot both take the
 * last space.
 */
export async function reserveFile(
  db: Db,
  keyring: Keyring,
  { unverifiedCaller, ...file }: FileRow & { unverifiedCaller?: string | undefined },
): Promise<NoSpace | undefined> {
  const { id, workspaceId, at } = file;
  await deleteExpired(db, workspaceId, at);
  await db
    .insertInto('files')
    .values({
      id,
      workspace_id: workspaceId,
      server_id: file.serverId,
      address: file.address,
      caller: file.caller,
      at,
      bytes: file.bytes,
      sealed_head: keyring.seal(JSON.stringify(file.head), contexts.file(workspaceId, id)),
      unverified_caller: unverifiedCaller ?? null,
    })
    .execute();
  const used = await countUsedSpace(db, { workspaceId, at, unverifiedCaller });
  const rejection = checkSpace(used, unverifiedCaller !== undefined);
  if (rejection) await db.deleteFrom('files').where('workspace_id', '=', workspaceId).where('id', '=', id).execute();
  return rejection;
}

/** Files with a valid URL: of all callers in a workspace, of all unverified ones, and of one unverified address. */
type UsedSpace = { [Group in 'all' | 'unverified' | 'address']: { files: number; bytes: number; oldest: number } };

async function countUsedSpace(
  db: Db,
  { workspaceId, at, unverifiedCaller = '' }: { workspaceId: string; at: number; unverifiedCaller: string | undefined },
): Promise<UsedSpace> {
  const rows = await db
    .selectFrom('files')
    .select(({ fn }) => [
      sql<'verified' | 'address' | 'other'>`case when unverified_caller is null then 'verified'
        when unverified_caller = ${unverifiedCaller} then 'address' else 'other' end`.as('caller_group'),
      fn.countAll<number>().as('files'),
      fn.sum<number>('bytes').as('bytes'),
      fn.min('at').as('oldest'),
    ])
    .where('workspace_id', '=', workspaceId)
    .where('at', '>', at - fileRetentionMs)
    .groupBy(sql`1`)
    .execute();
  const sumGroups = (...groups: readonly (typeof rows)[number]['caller_group'][]) => {
    const groupRows = rows.filter(({ caller_group }) => groups.includes(caller_group));
    return {
      files: groupRows.reduce((sum, { files }) => sum + Number(files), 0),
      bytes: groupRows.reduce((sum, { bytes }) => sum + Number(bytes), 0),
      oldest: Math.min(...groupRows.map(({ oldest }) => Number(oldest))),
    };
  };
  const all = sumGroups('verified', 'address', 'other');
  return { all, unverified: sumGroups('address', 'other'), address: sumGroups('address') };
}

/** Checks the limits. Each address of unverified callers has a fair share, so some space is left for the next one. */
function checkSpace({ all, unverified, address }: UsedSpace, isUnverified: boolean): NoSpace | undefined {
  const exceeds = (isOver: (item: 'files' | 'bytes', limit: number) => boolean) =>
    isOver('files', maxStoredFiles.files) || isOver('bytes', maxStoredFiles.bytes);
  if (exceeds((item, limit) => all[item] > limit)) return { scope: 'workspace', freeAt: all.oldest + fileRetentionMs };
  if (!isUnverified) return undefined;
  if (exceeds((item, limit) => address[item] > getFairShare(limit - all[item], address[item])))
    return { scope: 'address', freeAt: address.oldest + fileRetentionMs };
  if (exceeds((item, limit) => unverified[item] > unverifiedShare * limit))
    return { scope: 'address', freeAt: unverified.oldest + fileRetentionMs };
  return undefined;
}

/** Deletes the expired files of a workspace, so that it never stores many more bytes than its limit. */
async function deleteExpired(db: Db, workspaceId: string, now: number): Promise<void> {
  const before = now - fileRetentionMs - graceMs;
  await deleteFiles(db, sql`workspace_id = ${workspaceId} and at < ${before}`);
}

/** Number of chunks per delete statement. SQLite needs 0.3 ms per chunk, during which no other connection can write. */
const chunksPerDelete = 100;

async function deleteFiles(db: Db, where: RawBuilder<unknown>, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'file_chunks', key: ['file_id', 'number'], where, maxRows: chunksPerDelete }, pause);
  await deleteInSteps(db, { table: 'files', key: ['id'], where }, pause);
}

export type ChunkKey = Pick<FileRow, 'id' | 'workspaceId'> & { number: number };

export async function insertFileChunk(
  db: Db,
  keyring: Keyring,
  { id, workspaceId, number, at }: ChunkKey & { at: number },
  bytes: Uint8Array,
): Promise<void> {
  const sealed_chunk = keyring.seal(bytes, contexts.fileChunk(workspaceId, id, number));
  await db
    .insertInto('file_chunks')
    .values({ file_id: id, number, workspace_id: workspaceId, at, sealed_chunk })
    .execute();
}

/** Finds a file whose URL is valid at `now`. Takes no workspace, because the URL of a file names none. */
export async function findFile(db: Db, keyring: Keyring, id: string, now: number): Promise<FileRow | undefined> {
  const row = await db
    .selectFrom('files')
    .selectAll()
    .where('id', '=', id)
    .where('at', '>', now - fileRetentionMs)
    .executeTakeFirst();
  if (!row) return undefined;
  const { workspace_id: workspaceId, server_id: serverId, address, caller } = row;
  const head = JSON.parse(keyring.open(row.sealed_head, contexts.file(workspaceId, id))) as FileHead;
  return { id, workspaceId, serverId, address, caller, at: Number(row.at), bytes: Number(row.bytes), head };
}

/** Returns the bytes of a chunk; undefined if it was deleted. */
export async function findFileChunk(
  db: Db,
  keyring: Keyring,
  { id, workspaceId, number }: ChunkKey,
): Promise<Buffer | undefined> {
  const row = await db
    .selectFrom('file_chunks')
    .select('sealed_chunk')
    .where('workspace_id', '=', workspaceId)
    .where('file_id', '=', id)
    .where('number', '=', number)
    .executeTakeFirst();
  return row && keyring.openBytes(row.sealed_chunk, contexts.fileChunk(workspaceId, id, number));
}

/** Deletes files that have expired at `now`. Takes no workspace, because retention is the same for all. */
export async function pruneFiles(db: Db, now: number, pause?: Pause): Promise<void> {
  await deleteFiles(db, sql`at < ${now - fileRetentionMs - graceMs}`, pause);
}

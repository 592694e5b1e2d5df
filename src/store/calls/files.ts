import { type RawBuilder, sql } from 'kysely';
import { type FileHead, fileKeptMs } from '../../domain/files/kept-files.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import { contexts } from '../sealing/sealed-columns.ts';
import type { Keyring } from '../sealing/sealing.ts';

/** A stored file without its bytes. */
export type FileRow = {
  /** Digest of the id in its address. */
  id: string;
  workspaceId: string;
  serverId: string;
  /** The address of the server below `/mcp/`: its slug, or slug and view. */
  address: string;
  /** Digest of the caller's identity. */
  caller: string;
  at: number;
  bytes: number;
  head: FileHead;
};

/** Most files, and most bytes of files, of one workspace whose addresses work. */
export const mostOfFiles = { files: 1000, bytes: 100 * 1024 * 1024 };

/** Rows outlive the address by this time, so that downloads that have begun can end. */
const graceMs = 60_000;

/**
 * Stores a file without its bytes. Returns undefined, or when a file expires if the workspace has no space for this one.
 * The row is inserted first and counted with the others, so two processes cannot both take the last space.
 */
export async function reserveFile(db: Db, keyring: Keyring, file: FileRow): Promise<{ freeAt: number } | undefined> {
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
    })
    .execute();
  const used = await db
    .selectFrom('files')
    .select(({ fn }) => [
      fn.countAll<number>().as('files'),
      fn.sum<number>('bytes').as('bytes'),
      fn.min('at').as('oldest'),
    ])
    .where('workspace_id', '=', workspaceId)
    .where('at', '>', at - fileKeptMs)
    .executeTakeFirstOrThrow();
  if (Number(used.files) <= mostOfFiles.files && Number(used.bytes) <= mostOfFiles.bytes) return undefined;
  await db.deleteFrom('files').where('workspace_id', '=', workspaceId).where('id', '=', id).execute();
  return { freeAt: Number(used.oldest) + fileKeptMs };
}

/** Deletes the expired files of a workspace, so that it never holds many more bytes than it may. */
async function deleteExpired(db: Db, workspaceId: string, now: number): Promise<void> {
  const before = now - fileKeptMs - graceMs;
  await deleteFiles(db, sql`workspace_id = ${workspaceId} and at < ${before}`);
}

/** SQLite needs 0.3 ms for each chunk, in which nobody else can write. */
const chunksAtOnce = 100;

async function deleteFiles(db: Db, where: RawBuilder<unknown>, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'file_chunks', key: ['file_id', 'number'], where, most: chunksAtOnce }, pause);
  await deleteInSteps(db, { table: 'files', key: ['id'], where }, pause);
}

export type ChunkOf = Pick<FileRow, 'id' | 'workspaceId'> & { number: number };

export async function insertFileChunk(
  db: Db,
  keyring: Keyring,
  { id, workspaceId, number, at }: ChunkOf & { at: number },
  bytes: Uint8Array,
): Promise<void> {
  const sealed_chunk = keyring.seal(bytes, contexts.fileChunk(workspaceId, id, number));
  await db
    .insertInto('file_chunks')
    .values({ file_id: id, number, workspace_id: workspaceId, at, sealed_chunk })
    .execute();
}

/** The file with this digest whose address works at `now`. No workspace: the address of a file names none. */
export async function findFile(db: Db, keyring: Keyring, id: string, now: number): Promise<FileRow | undefined> {
  const row = await db
    .selectFrom('files')
    .selectAll()
    .where('id', '=', id)
    .where('at', '>', now - fileKeptMs)
    .executeTakeFirst();
  if (!row) return undefined;
  const { workspace_id: workspaceId, server_id: serverId, address, caller } = row;
  const head = JSON.parse(keyring.open(row.sealed_head, contexts.file(workspaceId, id))) as FileHead;
  return { id, workspaceId, serverId, address, caller, at: Number(row.at), bytes: Number(row.bytes), head };
}

/** The bytes of a chunk; undefined when it was deleted. */
export async function findFileChunk(
  db: Db,
  keyring: Keyring,
  { id, workspaceId, number }: ChunkOf,
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

/** Deletes files that have expired at `now`. No workspace: they are kept equally long in all. */
export async function pruneFiles(db: Db, now: number, pause?: Pause): Promise<void> {
  await deleteFiles(db, sql`at < ${now - fileKeptMs - graceMs}`, pause);
}

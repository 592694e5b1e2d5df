import { sql } from 'kysely';
import { displacedRests, type KeptRest } from '../../domain/pieces/displaced-answers.ts';
import { restKeptMs } from '../../domain/pieces/read-more.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import { contexts, type Keyring } from '../sealing/sealing.ts';

/** Consecutive chunks of a result. `json` is the JSON text of a list of them. */
export type AnswerPieces = {
  id: string;
  workspaceId: string;
  serverId: string;
  caller: string;
  at: number;
  pieces: number;
  json: string;
  /** Identifies the address of an unverified caller. */
  stranger?: string | undefined;
};

/** Maximum number of rows, and of sealed characters, per workspace. */
export const mostOfAnswers = { rows: 2000, characters: 64_000_000 };

export async function insertAnswerPieces(db: Db, keyring: Keyring, row: AnswerPieces): Promise<void> {
  const sealed = keyring.seal(row.json, contexts.answerPieces(row.workspaceId, row.id));
  await db
    .insertInto('answer_pieces')
    .values({
      id: row.id,
      workspace_id: row.workspaceId,
      server_id: row.serverId,
      caller: row.caller,
      stranger: row.stranger ?? null,
      at: row.at,
      pieces: row.pieces,
      characters: sealed.length,
      sealed_pieces: sealed,
    })
    .execute();
}

/**
 * Deletes results of a workspace that exceeds its limits: first those that expired before `now`, then the oldest of the
 * caller, or the address of unverified callers, that stores most.
 */
export async function trimAnswerPieces(db: Db, workspaceId: string, now: number): Promise<void> {
  const rows = await db
    .selectFrom('answer_pieces')
    .select(['id', 'caller', 'stranger', 'at', 'characters'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('at', 'desc')
    .limit(2 * mostOfAnswers.rows)
    .execute();
  const rests = new Map<string, KeptRest>();
  const rowsOf = new Map<string, string[]>();
  const deleted: string[] = [];
  for (const { id: row, caller, stranger, at, characters } of rows) {
    if (Number(at) <= now - restKeptMs) {
      deleted.push(row);
      continue;
    }
    const [id = row] = row.split('.', 1);
    // A caller has one share across all views of a server.
    const [identity = caller] = caller.split(' ', 1);
    const party = stranger ?? identity;
    const rest = rests.get(id) ?? { id, party, isStranger: stranger !== null, rows: 0, characters: 0 };
    rest.rows++;
    rest.characters += Number(characters);
    rests.set(id, rest);
    rowsOf.set(id, [...(rowsOf.get(id) ?? []), row]);
  }
  for (const { id } of displacedRests([...rests.values()], mostOfAnswers)) deleted.push(...(rowsOf.get(id) ?? []));
  if (deleted.length === 0) return;
  await db.deleteFrom('answer_pieces').where('workspace_id', '=', workspaceId).where('id', 'in', deleted).execute();
}

export type AnswerOf = { workspaceId: string; serverId: string; caller: string };

/** Returns the chunks of a row that this caller of a server may read at `now`. */
export async function findAnswerPieces(
  db: Db,
  keyring: Keyring,
  { id, workspaceId, serverId, caller }: AnswerOf & { id: string },
  now: number,
): Promise<{ json: string; pieces: number } | undefined> {
  const row = await db
    .selectFrom('answer_pieces')
    .select(['sealed_pieces', 'pieces'])
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .where('server_id', '=', serverId)
    .where('caller', '=', caller)
    .where('at', '>', now - restKeptMs)
    .executeTakeFirst();
  if (!row) return undefined;
  return { json: keyring.open(row.sealed_pieces, contexts.answerPieces(workspaceId, id)), pieces: Number(row.pieces) };
}

/** Deletes chunks older than `before`. Takes no workspace, because their retention is the same for all. */
export async function pruneAnswerPieces(db: Db, before: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'answer_pieces', key: ['id'], where: sql`at < ${before}` }, pause);
}

import { sql } from 'kysely';
import { restKeptMs } from '../../domain/pieces/read-more.ts';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import { contexts } from '../sealing/sealed-columns.ts';
import type { Keyring } from '../sealing/sealing.ts';

/** Some pieces of an answer; `json` is the JSON text of a list of them. */
export type AnswerPieces = {
  id: string;
  workspaceId: string;
  serverId: string;
  caller: string;
  at: number;
  pieces: number;
  json: string;
};

/** Most rows, and most sealed characters, of one workspace. The oldest answers are deleted first. */
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
      at: row.at,
      pieces: row.pieces,
      characters: sealed.length,
      sealed_pieces: sealed,
    })
    .execute();
}

/** Deletes the oldest answers of a workspace that has more than it may. */
export async function trimAnswerPieces(db: Db, workspaceId: string): Promise<void> {
  const rows = await db
    .selectFrom('answer_pieces')
    .select(['at', 'characters'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('at', 'desc')
    .limit(mostOfAnswers.rows + 1)
    .execute();
  let characters = 0;
  const oldest = rows.find((row, index) => {
    characters += Number(row.characters);
    return index === mostOfAnswers.rows || characters > mostOfAnswers.characters;
  });
  if (!oldest) return;
  await db.deleteFrom('answer_pieces').where('workspace_id', '=', workspaceId).where('at', '<=', oldest.at).execute();
}

export type AnswerOf = { workspaceId: string; serverId: string; caller: string };

/** The pieces of a row that the caller of a server may read at `now`. */
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

/** Deletes pieces from before `before`. No workspace: they are kept equally long in all. */
export async function pruneAnswerPieces(db: Db, before: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'answer_pieces', key: ['id'], where: sql`at < ${before}` }, pause);
}

import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';

/** Signed-in browser: its person, and the workspace that it shows. */
export type Session = { userId: string; workspaceId: string; expiresAt: number };

// No query here takes a workspace, because a session is found only by its cookie, and names its workspace.

/** Maximum number of concurrent sessions per person. */
export const maxSessionsPerPerson = 50;

/** Stores a session, and ends the person's oldest sessions above the limit. */
export async function insertSession(db: Db, session: Session & { hash: string; at: number }): Promise<void> {
  const { hash, userId, workspaceId, at, expiresAt } = session;
  await db
    .insertInto('sessions')
    .values({ hash, user_id: userId, workspace_id: workspaceId, created_at: at, expires_at: expiresAt })
    .execute();
  const surplus = await db
    .selectFrom('sessions')
    .select('hash')
    .where('user_id', '=', userId)
    .where('hash', '!=', hash)
    .orderBy('created_at', 'desc')
    .limit(maxSessionsPerPerson)
    .offset(maxSessionsPerPerson - 1)
    .execute();
  if (surplus.length === 0) return;
  const hashes = surplus.map((row) => row.hash);
  await db.deleteFrom('sessions').where('hash', 'in', hashes).execute();
}

export async function findSession(db: Db, hash: string, now: number): Promise<Session | undefined> {
  const row = await db
    .selectFrom('sessions')
    .selectAll()
    .where('hash', '=', hash)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return row && { userId: row.user_id, workspaceId: row.workspace_id, expiresAt: row.expires_at };
}

/** Switches a session to another workspace. */
export async function moveSession(db: Db, hash: string, workspaceId: string): Promise<void> {
  await db.updateTable('sessions').set({ workspace_id: workspaceId }).where('hash', '=', hash).execute();
}

/** Switches each session in a workspace to the other workspace that its person chose last. */
export async function moveSessionsFrom(db: Db, workspaceId: string): Promise<void> {
  const otherWorkspace = db
    .selectFrom('members')
    .select('members.workspace_id')
    .where('members.user_id', '=', sql<string>`sessions.user_id`)
    .where('members.workspace_id', '<>', workspaceId)
    .orderBy(sql`coalesce(members.selected_at, 0)`, 'desc')
    .orderBy('members.created_at')
    .orderBy('members.workspace_id')
    .limit(1);
  await db
    .updateTable('sessions')
    .set({ workspace_id: sql`coalesce(${otherWorkspace}, sessions.workspace_id)` })
    .where('workspace_id', '=', workspaceId)
    .execute();
}

export async function deleteSession(db: Db, hash: string): Promise<void> {
  await db.deleteFrom('sessions').where('hash', '=', hash).execute();
}

/** Ends the sessions of a person that show a workspace, except the one with the hash `excludedHash`. */
export async function deleteMemberSessions(
  db: Db,
  person: { workspaceId: string; userId: string },
  excludedHash?: string,
): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where('workspace_id', '=', person.workspaceId)
    .where('user_id', '=', person.userId)
    .where('hash', '!=', excludedHash ?? '')
    .execute();
}

export async function pruneSessions(db: Db, now: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'sessions', key: ['hash'], where: sql`expires_at < ${now}` }, pause);
}

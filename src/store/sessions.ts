import type { Db } from './database.ts';

/** A signed-in browser: who it is, and the workspace that it shows. */
export type Session = { userId: string; workspaceId: string; expiresAt: number };

// A session is found by its cookie alone, which says the workspace.

export async function insertSession(db: Db, session: Session & { hash: string; at: number }): Promise<void> {
  const { hash, userId, workspaceId, at, expiresAt } = session;
  await db
    .insertInto('sessions')
    .values({ hash, user_id: userId, workspace_id: workspaceId, created_at: at, expires_at: expiresAt })
    .execute();
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

/** The session shows another workspace from now on. */
export async function moveSession(db: Db, hash: string, workspaceId: string): Promise<void> {
  await db.updateTable('sessions').set({ workspace_id: workspaceId }).where('hash', '=', hash).execute();
}

export async function deleteSession(db: Db, hash: string): Promise<void> {
  await db.deleteFrom('sessions').where('hash', '=', hash).execute();
}

/** Ends the sessions of a person that show a workspace, but for the one with the hash `kept`. */
export async function deleteSessionsOf(
  db: Db,
  person: { workspaceId: string; userId: string },
  kept?: string,
): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where('workspace_id', '=', person.workspaceId)
    .where('user_id', '=', person.userId)
    .where('hash', '!=', kept ?? '')
    .execute();
}

export async function pruneSessions(db: Db, now: number): Promise<void> {
  await db.deleteFrom('sessions').where('expires_at', '<', now).execute();
}

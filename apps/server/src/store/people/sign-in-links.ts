import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';

// No query here takes a workspace, because a link is found only by its secret, and signs in the person of local mode.

export async function insertSignInLink(db: Db, hash: string, expiresAt: number): Promise<void> {
  await db.insertInto('sign_in_links').values({ hash, expires_at: expiresAt }).execute();
}

/** Returns true if a link has neither been used nor expired. */
export async function isSignInLinkValid(db: Db, hash: string, now: number): Promise<boolean> {
  const row = await db
    .selectFrom('sign_in_links')
    .select('hash')
    .where('hash', '=', hash)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return row !== undefined;
}

/** Uses a link up. Returns false if it has been used or has expired. */
export async function consumeSignInLink(db: Db, hash: string, now: number): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('sign_in_links')
    .where('hash', '=', hash)
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

export async function pruneSignInLinks(db: Db, now: number, pause?: Pause): Promise<void> {
  await deleteInSteps(db, { table: 'sign_in_links', key: ['hash'], where: sql`expires_at < ${now}` }, pause);
}

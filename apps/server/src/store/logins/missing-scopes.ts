import { type SqlBool, sql } from 'kysely';
import type { Db } from '../db.ts';

/** Minimum time between two challenges of one login, in ms. */
const minChallengeIntervalMs = 60_000;
/** Time for which people may log in with scopes that an upstream reported as missing, in ms. */
const missingScopeTtlMs = 24 * 60 * 60_000;
/** Maximum number of recent reports that a login considers. */
const maxReports = 100;

type ScopeReport = { scope: string; now: number };

// No query here takes a workspace, because the ids of a grant and of a server imply it.

/**
 * Stores the scopes that an upstream reported as missing for a login. Returns false if the login got a challenge within
 * the last minute. Only one of several concurrent callers succeeds.
 */
export async function reportMissingScope(db: Db, grantId: string, { scope, now }: ScopeReport): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('grants')
    .set({ missing_scope: scope, challenged_at: now })
    .where('id', '=', grantId)
    .where(isChallengeDue(now))
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Stores such a report for a token that the agent holds itself. Also returns false for a token of unknown origin. */
export async function reportMissingPassthroughScope(
  db: Db,
  token: { serverId: string; hash: string },
  { scope, now }: ScopeReport,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('passthrough_tokens')
    .set({ missing_scope: scope, challenged_at: now })
    .where('server_id', '=', token.serverId)
    .where('hash', '=', token.hash)
    .where(isChallengeDue(now))
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

function isChallengeDue(now: number) {
  return sql<SqlBool>`(challenged_at is null or challenged_at <= ${now - minChallengeIntervalMs})`;
}

/** Returns the scopes that the upstream of a server has recently reported as missing. */
export async function findMissingScopes(db: Db, serverId: string, now: number): Promise<string[]> {
  const since = now - missingScopeTtlMs;
  const texts: (string | null)[] = [];
  for (const table of ['grants', 'passthrough_tokens'] as const) {
    const rows = await db
      .selectFrom(table)
      .select('missing_scope')
      .where('server_id', '=', serverId)
      .where('challenged_at', '>', since)
      .orderBy('challenged_at', 'desc')
      .limit(maxReports)
      .execute();
    texts.push(...rows.map((row) => row.missing_scope));
  }
  return texts.flatMap((text) => text?.split(' ') ?? []);
}

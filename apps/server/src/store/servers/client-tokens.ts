import { type Selectable, sql } from 'kysely';
import type { Db } from '../db.ts';
import { deleteInSteps, type Pause } from '../delete-in-steps.ts';
import type { Tables } from '../schema.ts';
import { contexts, type Keyring } from '../sealing/sealing.ts';

/**
 * Identifies a token of a server. `location` is where the token is sent. `fingerprint` represents all parameters of
 * the token request.
 */
export type ClientTokenKey = { workspaceId: string; serverId: string; location: string; fingerprint: string };

/** Stored token with its state. Times are database times in epoch ms. */
export type ClientToken = {
  version: number;
  /** Undefined before the first token. */
  token: string | undefined;
  issuedAt: number | undefined;
  renewAt: number | undefined;
  expiresAt: number | undefined;
  requestingUntil: number | undefined;
  retryAt: number | undefined;
  failures: number;
  failure: string | undefined;
};

/** Retention of a token that no process requests. */
export const clientTokenRetentionMs = 30 * 24 * 60 * 60_000;

function toToken(row: Selectable<Tables['client_tokens']>, keyring: Keyring): ClientToken {
  const { workspace_id: workspaceId, server_id: id, location, sealed_token: sealed } = row;
  return {
    version: row.version,
    token: sealed === '' ? undefined : keyring.open(sealed, contexts.clientToken({ workspaceId, id }, location)),
    issuedAt: row.issued_at ?? undefined,
    renewAt: row.renew_at ?? undefined,
    expiresAt: row.expires_at ?? undefined,
    requestingUntil: row.requesting_until ?? undefined,
    retryAt: row.retry_at ?? undefined,
    failures: row.failures,
    failure: row.failure ?? undefined,
  };
}

/** Returns the token of a key; undefined if there is no row, or if its token was requested with other parameters. */
export async function findClientToken(db: Db, keyring: Keyring, key: ClientTokenKey): Promise<ClientToken | undefined> {
  const row = await db
    .selectFrom('client_tokens')
    .selectAll()
    .where('workspace_id', '=', key.workspaceId)
    .where('server_id', '=', key.serverId)
    .where('location', '=', key.location)
    .where('fingerprint', '=', key.fingerprint)
    .executeTakeFirst();
  return row && toToken(row, keyring);
}

/** Creates the row of a key. Replaces a row whose token was requested with other parameters. */
export async function prepareClientToken(db: Db, key: ClientTokenKey, now: number): Promise<void> {
  const { workspaceId, serverId, location, fingerprint } = key;
  const emptyToken = {
    fingerprint,
    sealed_token: '',
    issued_at: null,
    renew_at: null,
    expires_at: null,
    requesting_until: null,
    retry_at: null,
    failures: 0,
    failure: null,
    updated_at: now,
  };
  await db
    .insertInto('client_tokens')
    .values({ workspace_id: workspaceId, server_id: serverId, location, version: 0, ...emptyToken })
    .onConflict((c) =>
      c
        .columns(['server_id', 'location'])
        .doUpdateSet({ ...emptyToken, version: sql`client_tokens.version + 1` })
        .where('client_tokens.fingerprint', '<>', fingerprint),
    )
    .execute();
}

function updateRow(db: Db, { workspaceId, serverId, location, fingerprint }: ClientTokenKey) {
  return db
    .updateTable('client_tokens')
    .where('workspace_id', '=', workspaceId)
    .where('server_id', '=', serverId)
    .where('location', '=', location)
    .where('fingerprint', '=', fingerprint);
}

/** Claims the right to request a token until `until`. Only one of several concurrent callers receives it. */
export async function claimClientToken(
  db: Db,
  key: ClientTokenKey,
  version: number,
  { now, until }: { now: number; until: number },
): Promise<boolean> {
  const result = await updateRow(db, key)
    .set({ requesting_until: until, updated_at: now })
    .where('version', '=', version)
    .where((e) => e.or([e('requesting_until', 'is', null), e('requesting_until', '<', now)]))
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Stores a token and ends the claim. */
export async function saveClientToken(
  db: Db,
  keyring: Keyring,
  key: ClientTokenKey,
  token: { value: string; issuedAt: number; renewAt: number; expiresAt: number | undefined },
): Promise<void> {
  const context = contexts.clientToken({ workspaceId: key.workspaceId, id: key.serverId }, key.location);
  await updateRow(db, key)
    .set({
      sealed_token: keyring.seal(token.value, context),
      version: sql<number>`version + 1`,
      issued_at: token.issuedAt,
      renew_at: token.renewAt,
      expires_at: token.expiresAt ?? null,
      requesting_until: null,
      retry_at: null,
      failures: 0,
      failure: null,
      updated_at: token.issuedAt,
    })
    .execute();
}

/** Records that the token endpoint issued no token, and ends the claim. No process retries before `retryAt`. */
export async function saveClientTokenFailure(
  db: Db,
  key: ClientTokenKey,
  attempt: { at: number; retryAt: number; failure: string },
): Promise<void> {
  await updateRow(db, key)
    .set({
      version: sql<number>`version + 1`,
      requesting_until: null,
      retry_at: attempt.retryAt,
      failures: sql<number>`failures + 1`,
      failure: attempt.failure,
      updated_at: attempt.at,
    })
    .execute();
}

/**
 * Deletes tokens that no process has requested since `before`. Takes no workspace, because retention is the same in
 * all of them.
 */
export async function pruneClientTokens(db: Db, before: number, pause?: Pause): Promise<void> {
  const table = { table: 'client_tokens', key: ['server_id', 'location'] } as const;
  await deleteInSteps(db, { ...table, where: sql`updated_at < ${before}` }, pause);
}

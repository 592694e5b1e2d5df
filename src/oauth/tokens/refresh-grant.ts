import { runningNow } from '../../domain/work/running-time.ts';
import { AppError, isUnavailable, OAuthError } from '../../errors.ts';
import { recordChange } from '../../store/changes/changes.ts';
import type { Db } from '../../store/db.ts';
import {
  breakGrant,
  claimRefresh,
  findGrant,
  type Grant,
  prolongRefresh,
  releaseRefresh,
  saveRefreshedTokens,
} from '../../store/logins/grants.ts';
import { contexts } from '../../store/sealing/sealed-columns.ts';
import { transact } from '../../store/transact.ts';
import { openTokens, sealTokens } from '../credentials.ts';
import type { LoginServer, ProviderTokens } from '../login-server.ts';
import type { OAuthParts } from '../parts.ts';

/** The grant behind one of our access tokens, decrypted. */
export type OpenGrant = {
  grant: Omit<Grant, 'sealed_tokens'>;
  grantKey: Buffer;
  tokens: ProviderTokens;
  accessExpiresAt: number;
};

/**
 * How long a claim to refresh lasts. The working replica prolongs it, and keeps it when it or the database stops for most
 * of this time; a dead one blocks a login only for seconds.
 */
const claimMs = 5000;
const prolongMs = 1000;
/** How long to wait for another replica, whose provider may be slow. */
const waitMs = 15_000;
const pollMs = 100;

export function isAlive(grant: Grant | undefined): grant is Grant {
  return grant !== undefined && grant.revoked_at === null && grant.broken_at === null;
}

export function openGrantTokens(grant: Grant, grantKey: Buffer, parts: OAuthParts): ProviderTokens {
  const sealed = parts.keyring.open(grant.sealed_tokens, contexts.grantTokens(grant.workspace_id, grant.id));
  return openTokens(sealed, grantKey, grant.id);
}

/**
 * Refreshes at the provider, or waits for the replica that does. Undefined when the grant is broken.
 * @throws AppError unavailable when the provider or the database is down
 */
export async function refreshAtProvider(
  server: LoginServer,
  open: OpenGrant,
  parts: OAuthParts,
): Promise<OpenGrant | undefined> {
  const { grant } = open;
  const { refreshToken } = open.tokens;
  const unsaved = parts.unsaved.find(grant);
  if (unsaved) return { ...open, tokens: unsaved };
  if (refreshToken === undefined) return breakOff(open, parts);
  const now = parts.now();
  const until = now + claimMs;
  if (!(await claimRefresh(parts.db, grant, now, until))) {
    return waitForOther(server, open, parts);
  }
  const claim = keepClaim(grant.id, until, parts);
  try {
    const fresh = await server.provider.refresh(refreshToken);
    parts.onEvent('refreshed');
    // What an answer to a refresh leaves out is as before (RFC 6749, 6).
    const scope = fresh.scope ?? open.tokens.scope;
    return await save(open, { ...fresh, refreshToken: fresh.refreshToken ?? refreshToken, scope }, parts);
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    parts.onEvent('refresh_failed');
    parts.log('a provider did not refresh a login', { slug: server.slug, error: error.code, detail: error.detail });
    if (error.code === 'invalid_grant') return breakOff(open, parts);
    await releaseRefresh(parts.db, grant.id, await claim.end());
    throw new AppError('unavailable', 'the login could not be refreshed at its provider; try again in a moment', {
      retryAfterS: 5,
    });
  } finally {
    await claim.end();
  }
}

/** Prolongs a claim until `end`, which returns the time until which it holds. That time identifies the claim. */
function keepClaim(id: string, claimedUntil: number, parts: OAuthParts): { end: () => Promise<number> } {
  let until = claimedUntil;
  let prolonging: Promise<void> | undefined;
  const prolong = async () => {
    const next = parts.now() + claimMs;
    if (await prolongRefresh(parts.db, id, until, next)) until = next;
  };
  const timer = setInterval(() => {
    // Without a database the claim expires. The provider's answer is still stored unless another replica was faster.
    prolonging ??= prolong()
      .catch((error: unknown) => parts.log('a claim to refresh a login could not be prolonged', { err: error }))
      .finally(() => {
        prolonging = undefined;
      });
  }, prolongMs);
  timer.unref();
  return {
    async end() {
      clearInterval(timer);
      await prolonging;
      return until;
    },
  };
}

/**
 * Stores the provider's new tokens, unless the grant has ended or another replica was faster. While the database is
 * unavailable they are kept in memory: the provider has ended the old ones, so this is the only valid copy.
 */
async function save(open: OpenGrant, tokens: ProviderTokens, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const { id, workspace_id, tokens_version } = open.grant;
  const sealed = parts.keyring.seal(sealTokens(tokens, open.grantKey, id), contexts.grantTokens(workspace_id, id));
  const store = () => changeGrant(id, (db) => saveRefreshedTokens(db, id, sealed, tokens_version + 1), parts);
  const fresh = { ...open, tokens };
  try {
    return (await store()) ? fresh : await asStored(open, parts);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    parts.unsaved.keep(open.grant, tokens, store);
    return fresh;
  }
}

/** Marks a grant as broken, unless another replica has newer tokens for it. */
export async function breakOff(open: OpenGrant, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const { id, tokens_version } = open.grant;
  const isBroken = await changeGrant(id, (db) => breakGrant(db, id, tokens_version, parts.now()), parts);
  return isBroken ? undefined : asStored(open, parts);
}

/** Changes a grant in every replica. */
async function changeGrant(id: string, change: (db: Db) => Promise<boolean>, parts: OAuthParts): Promise<boolean> {
  const isChanged = await transact(parts.db, async (db) => {
    if (!(await change(db))) return false;
    await recordChange(db, parts, 'grant', id);
    return true;
  });
  await parts.onCommitted();
  return isChanged;
}

async function asStored(open: OpenGrant, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const grant = await findGrant(parts.db, open.grant.id);
  return isAlive(grant) ? { ...open, grant, tokens: openGrantTokens(grant, open.grantKey, parts) } : undefined;
}

/** Waits for the result of the replica that refreshes. */
async function waitForOther(server: LoginServer, open: OpenGrant, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const until = runningNow() + waitMs;
  while (runningNow() < until) {
    const unsaved = parts.unsaved.find(open.grant);
    if (unsaved) return { ...open, tokens: unsaved };
    const current = await asStored(open, parts);
    if (!current || current.grant.tokens_version > open.grant.tokens_version) return current;
    if ((current.grant.refreshing_until ?? 0) < parts.now()) return refreshAtProvider(server, current, parts);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new AppError('unavailable', 'the login is being refreshed; try again in a moment', { retryAfterS: 5 });
}

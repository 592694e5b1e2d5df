import { LRUCache } from 'lru-cache';
import { newId } from '../domain/ids.ts';
import { AppError, OAuthError } from '../errors.ts';
import { recordChange } from '../store/changes.ts';
import {
  breakGrant,
  claimRefresh,
  findGrant,
  type Grant,
  releaseRefresh,
  saveRefreshedTokens,
} from '../store/grants.ts';
import { findToken } from '../store/tokens.ts';
import { hashOf, openTokens, sealTokens, tokensPlace, unwrapKey } from './credentials.ts';
import type { LoginServer, ProviderTokens } from './login-server.ts';
import type { OAuthParts } from './parts.ts';

/** A grant that one of our access tokens stands for, open. */
export type OpenGrant = { grant: Grant; grantKey: Buffer; tokens: ProviderTokens; accessExpiresAt: number };

/** Turns our access tokens into what they stand for. */
export type GrantUse = {
  /** Undefined for anything that is not a live token of this server. @throws AppError unavailable when the provider is down */
  open(server: LoginServer, bearer: string): Promise<OpenGrant | undefined>;
  /** After the upstream refused a token: a new one, or undefined when the grant is broken for good. */
  renew(server: LoginServer, bearer: string, refused: string): Promise<string | undefined>;
  forget(grantId: string): void;
  clear(): void;
};

const maxRemembered = 10_000;
/** A token this close to its end is refreshed before it is used. */
const marginMs = 20_000;
/** How long one replica may take to refresh before another may try; longer than a provider may take to answer. */
const claimMs = 15_000;
const pollMs = 100;

export function createGrantUse(parts: OAuthParts, isFresh: () => boolean): GrantUse {
  const remembered = new LRUCache<string, OpenGrant>({ max: maxRemembered });
  const refreshing = new Map<string, Promise<OpenGrant | undefined>>();

  async function load(bearer: string): Promise<OpenGrant | undefined> {
    const token = await findToken(parts.db, hashOf(bearer));
    if (!token || token.kind !== 'access') return undefined;
    const grant = await findGrant(parts.db, token.grant_id);
    if (!grant || grant.revoked_at !== null || grant.broken_at !== null) return undefined;
    const grantKey = unwrapKey(token.wrapped_key, bearer, grant.id);
    return { grant, grantKey, tokens: openGrantTokens(grant, grantKey, parts), accessExpiresAt: token.expires_at };
  }

  async function find(server: LoginServer, bearer: string): Promise<OpenGrant | undefined> {
    if (!/^tha_[0-9A-Za-z]{43}$/.test(bearer)) return undefined;
    const hash = hashOf(bearer);
    const open = (isFresh() ? remembered.get(hash) : undefined) ?? (await load(bearer));
    if (!open || open.accessExpiresAt <= parts.now()) return undefined;
    if (open.grant.server_id !== server.id || open.grant.agreement !== server.agreement) return undefined;
    remembered.set(hash, open);
    return open;
  }

  /** In this process one refresh a grant; across processes the claim in the database sees to it. */
  function refresh(server: LoginServer, bearer: string, open: OpenGrant): Promise<OpenGrant | undefined> {
    const { id } = open.grant;
    const underWay = refreshing.get(id);
    if (underWay) return underWay;
    const started = refreshOnce(server, open, parts)
      .then((renewed) => {
        if (renewed) remembered.set(hashOf(bearer), renewed);
        else forget(id);
        return renewed;
      })
      .finally(() => refreshing.delete(id));
    refreshing.set(id, started);
    return started;
  }

  function forget(grantId: string): void {
    for (const [hash, open] of remembered.entries()) if (open.grant.id === grantId) remembered.delete(hash);
  }

  return {
    async open(server, bearer) {
      const open = await find(server, bearer);
      const expiresAt = open?.tokens.expiresAt;
      if (!open || expiresAt === undefined || expiresAt - marginMs > parts.now()) return open;
      if (open.tokens.refreshToken === undefined) return expiresAt > parts.now() ? open : undefined;
      return refresh(server, bearer, open);
    },
    async renew(server, bearer, refused) {
      const open = await find(server, bearer);
      if (!open) return undefined;
      // Another call may have refreshed meanwhile.
      if (open.tokens.accessToken !== refused) return open.tokens.accessToken;
      const renewed = await refresh(server, bearer, open);
      return renewed?.tokens.accessToken;
    },
    forget,
    clear: () => remembered.clear(),
  };
}

function openGrantTokens(grant: Grant, grantKey: Buffer, parts: OAuthParts): ProviderTokens {
  const sealed = parts.keyring.open(grant.sealed_tokens, tokensPlace(grant.workspace_id, grant.id));
  return openTokens(sealed, grantKey, grant.id);
}

/** Refreshes at the provider, or waits for the replica that does. Undefined when the grant is broken. */
async function refreshOnce(server: LoginServer, open: OpenGrant, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const { grant } = open;
  const refreshToken = open.tokens.refreshToken;
  if (refreshToken === undefined) return markBroken(grant.id, parts);
  const now = parts.now();
  if (!(await claimRefresh(parts.db, grant.id, grant.tokens_version, now, now + claimMs))) {
    return waitForOther(server, open, parts);
  }
  try {
    const fresh = await server.provider.refresh(refreshToken);
    const tokens = { ...fresh, refreshToken: fresh.refreshToken ?? refreshToken };
    const version = grant.tokens_version + 1;
    const sealed = parts.keyring.seal(
      sealTokens(tokens, open.grantKey, grant.id),
      tokensPlace(grant.workspace_id, grant.id),
    );
    await parts.db.transaction().execute(async (db) => {
      await saveRefreshedTokens(db, grant.id, sealed, version);
      await recordChange(db, { id: newId(parts.random, 'chg'), at: parts.now(), kind: 'grant', ref: grant.id });
    });
    await parts.onCommitted();
    return { ...open, tokens, grant: { ...grant, tokens_version: version, sealed_tokens: sealed } };
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    parts.log('a provider did not refresh a login', { slug: server.slug, error: error.code, detail: error.detail });
    if (error.code === 'invalid_grant') return markBroken(grant.id, parts);
    await releaseRefresh(parts.db, grant.id);
    throw new AppError('unavailable', 'the login could not be refreshed at its provider; try again in a moment', {
      retryAfterS: 5,
    });
  }
}

async function markBroken(grantId: string, parts: OAuthParts): Promise<undefined> {
  await parts.db.transaction().execute(async (db) => {
    await breakGrant(db, grantId, parts.now());
    await recordChange(db, { id: newId(parts.random, 'chg'), at: parts.now(), kind: 'grant', ref: grantId });
  });
  await parts.onCommitted();
  return undefined;
}

/** Another replica refreshes: its result is taken as soon as it is stored. */
async function waitForOther(server: LoginServer, open: OpenGrant, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const until = parts.now() + claimMs;
  while (parts.now() < until) {
    const grant = await findGrant(parts.db, open.grant.id);
    if (!grant || grant.revoked_at !== null || grant.broken_at !== null) return undefined;
    if (grant.tokens_version > open.grant.tokens_version) {
      return { ...open, grant, tokens: openGrantTokens(grant, open.grantKey, parts) };
    }
    if ((grant.refreshing_until ?? 0) < parts.now()) return refreshOnce(server, { ...open, grant }, parts);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new AppError('unavailable', 'the login is being refreshed; try again in a moment', { retryAfterS: 5 });
}

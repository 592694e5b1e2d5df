import { newId } from '../domain/ids.ts';
import { type Look, lookDirectly } from '../domain/visit.ts';
import { AppError, OAuthError } from '../errors.ts';
import { recordChange } from '../store/changes.ts';
import type { Db } from '../store/database.ts';
import {
  breakGrant,
  claimRefresh,
  findGrant,
  type Grant,
  releaseRefresh,
  saveRefreshedTokens,
} from '../store/grants.ts';
import { createRemembered, type Freshness } from '../store/remembered.ts';
import { contexts } from '../store/sealed-columns.ts';
import { findToken } from '../store/tokens.ts';
import { transact } from '../store/transact.ts';
import { hashOf, openTokens, sealTokens, unwrapKey } from './credentials.ts';
import type { LoginServer, ProviderTokens } from './login-server.ts';
import type { OAuthParts } from './parts.ts';

/** A grant that one of our access tokens stands for, open. */
export type OpenGrant = { grant: Grant; grantKey: Buffer; tokens: ProviderTokens; accessExpiresAt: number };

/** Turns our access tokens into what they stand for. */
export type GrantUse = {
  /** Undefined for anything that is not a live token of this server. @throws AppError unavailable when the provider is down */
  open(server: LoginServer, bearer: string, look?: Look): Promise<OpenGrant | undefined>;
  /** After the upstream refused a token: another one, or undefined when there is none, now or for good. */
  renew(server: LoginServer, bearer: string, refused: string): Promise<string | undefined>;
  /** After the upstream refused the renewed token too: the next request makes the agent log in again. */
  giveUp(server: LoginServer, bearer: string, refused: string): Promise<void>;
  forget(grantId: string): void;
  /** Since the start, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
  clear(): void;
};

const maxRemembered = 10_000;
/** A token this close to its end is refreshed before it is used. */
const marginMs = 20_000;
/** How long one replica may take to refresh before another may try; longer than a provider may take to answer. */
const claimMs = 15_000;
const pollMs = 100;

export function createGrantUse(parts: OAuthParts, freshness: Freshness): GrantUse {
  const remembered = createRemembered<OpenGrant>({ max: maxRemembered, freshness, idsOf: ({ grant }) => [grant.id] });
  const refreshing = new Map<string, Promise<OpenGrant | undefined>>();

  async function find(server: LoginServer, bearer: string, look = lookDirectly): Promise<OpenGrant | undefined> {
    if (!/^tha_[0-9A-Za-z]{43}$/.test(bearer)) return undefined;
    const hash = hashOf(bearer);
    const ask = () => load(bearer, hash, parts);
    const open = remembered.get(hash) ?? (await remembered.load(hash, (before) => (before ? ask() : look(ask))));
    if (!open || open.accessExpiresAt <= parts.now()) return undefined;
    if (open.grant.server_id !== server.id || open.grant.agreement !== server.agreement) return undefined;
    return open;
  }

  /** In this process one refresh a grant; across processes the claim in the database sees to it. */
  function refresh(server: LoginServer, open: OpenGrant): Promise<OpenGrant | undefined> {
    const { id } = open.grant;
    const underWay = refreshing.get(id);
    if (underWay) return underWay;
    const started = refreshAtProvider(server, open, parts).finally(() => {
      refreshing.delete(id);
      remembered.forget(id);
    });
    refreshing.set(id, started);
    return started;
  }

  return {
    async open(server, bearer, look) {
      const open = await find(server, bearer, look);
      const expiresAt = open?.tokens.expiresAt;
      if (!open || expiresAt === undefined || expiresAt - marginMs > parts.now()) return open;
      const lastResort = expiresAt > parts.now() ? open : undefined;
      if (open.tokens.refreshToken === undefined) return lastResort;
      return refresh(server, open).catch((error: unknown) => {
        if (lastResort && isUnavailable(error)) return lastResort;
        throw error;
      });
    },
    async renew(server, bearer, refused) {
      const open = await find(server, bearer);
      // Another call may have refreshed meanwhile.
      if (open?.tokens.accessToken !== refused) return open?.tokens.accessToken;
      const renewed = await refresh(server, open).catch((error: unknown) => {
        if (isUnavailable(error)) return undefined;
        throw error;
      });
      return renewed?.tokens.accessToken;
    },
    async giveUp(server, bearer, refused) {
      const open = await find(server, bearer);
      if (open?.tokens.accessToken === refused) await breakOff(open, parts);
    },
    forget: remembered.forget,
    clear: remembered.clear,
    counts: remembered.counts,
  };
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.kind === 'unavailable';
}

async function load(bearer: string, hash: string, parts: OAuthParts): Promise<{ value: OpenGrant } | undefined> {
  const token = await findToken(parts.db, hash);
  if (token?.kind !== 'access') return undefined;
  const grant = await findGrant(parts.db, token.grant_id);
  if (!isAlive(grant)) return undefined;
  const grantKey = unwrapKey(token.wrapped_key, bearer, grant.id);
  const tokens = openGrantTokens(grant, grantKey, parts);
  return { value: { grant, grantKey, tokens, accessExpiresAt: token.expires_at } };
}

function isAlive(grant: Grant | undefined): grant is Grant {
  return grant !== undefined && grant.revoked_at === null && grant.broken_at === null;
}

function openGrantTokens(grant: Grant, grantKey: Buffer, parts: OAuthParts): ProviderTokens {
  const sealed = parts.keyring.open(grant.sealed_tokens, contexts.grantTokens(grant.workspace_id, grant.id));
  return openTokens(sealed, grantKey, grant.id);
}

/** Refreshes at the provider, or waits for the replica that does. Undefined when the grant is broken. */
export async function refreshAtProvider(
  server: LoginServer,
  open: OpenGrant,
  parts: OAuthParts,
): Promise<OpenGrant | undefined> {
  const { grant } = open;
  const { refreshToken } = open.tokens;
  if (refreshToken === undefined) return breakOff(open, parts);
  const now = parts.now();
  const until = now + claimMs;
  if (!(await claimRefresh(parts.db, grant.id, grant.tokens_version, now, until))) {
    return waitForOther(server, open, parts);
  }
  try {
    const fresh = await server.provider.refresh(refreshToken);
    parts.onEvent('refreshed');
    return await save(open, { ...fresh, refreshToken: fresh.refreshToken ?? refreshToken }, parts);
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    parts.onEvent('refresh_failed');
    parts.log('a provider did not refresh a login', { slug: server.slug, error: error.code, detail: error.detail });
    if (error.code === 'invalid_grant') return breakOff(open, parts);
    await releaseRefresh(parts.db, grant.id, until);
    throw new AppError('unavailable', 'the login could not be refreshed at its provider; try again in a moment', {
      retryAfterS: 5,
    });
  }
}

/** Stores the provider's new tokens, unless the grant ended meanwhile or another replica was faster. */
async function save(open: OpenGrant, tokens: ProviderTokens, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const { id, workspace_id, tokens_version } = open.grant;
  const sealed = parts.keyring.seal(sealTokens(tokens, open.grantKey, id), contexts.grantTokens(workspace_id, id));
  const isSaved = await changeGrant(id, (db) => saveRefreshedTokens(db, id, sealed, tokens_version + 1), parts);
  return isSaved ? { ...open, tokens } : asStored(open, parts);
}

/** Marks a grant as broken, unless another replica has newer tokens for it. */
async function breakOff(open: OpenGrant, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const { id, tokens_version } = open.grant;
  const isBroken = await changeGrant(id, (db) => breakGrant(db, id, tokens_version, parts.now()), parts);
  return isBroken ? undefined : asStored(open, parts);
}

/** Changes a grant and makes every replica notice. */
async function changeGrant(id: string, change: (db: Db) => Promise<boolean>, parts: OAuthParts): Promise<boolean> {
  const isChanged = await transact(parts.db, async (db) => {
    if (!(await change(db))) return false;
    await recordChange(db, { id: newId(parts.random, 'chg'), at: parts.now(), kind: 'grant', ref: id });
    return true;
  });
  await parts.onCommitted();
  return isChanged;
}

async function asStored(open: OpenGrant, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const grant = await findGrant(parts.db, open.grant.id);
  return isAlive(grant) ? { ...open, grant, tokens: openGrantTokens(grant, open.grantKey, parts) } : undefined;
}

/** Another replica refreshes: its result is taken as soon as it is stored. */
async function waitForOther(server: LoginServer, open: OpenGrant, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const until = performance.now() + claimMs;
  while (performance.now() < until) {
    const current = await asStored(open, parts);
    if (!current || current.grant.tokens_version > open.grant.tokens_version) return current;
    if ((current.grant.refreshing_until ?? 0) < parts.now()) return refreshAtProvider(server, current, parts);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw new AppError('unavailable', 'the login is being refreshed; try again in a moment', { retryAfterS: 5 });
}

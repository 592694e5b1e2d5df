import type { QueryCharge } from '@toolhost/credentials/client-request';
import { hashSecret } from '@toolhost/credentials/ids';
import { AppError, getErrorMessage, isUnavailableError, OAuthError } from '@toolhost/errors/errors';
import { createFairCache } from '@toolhost/limits/fair-cache';
import { getRunningTimeMs } from '@toolhost/limits/running-time';
import { createReadThroughCache, type Freshness } from '../store/changes/cache.ts';
import { recordChange } from '../store/changes/follow-changes.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import {
  breakGrant,
  claimRefresh,
  findGrant,
  type Grant,
  isAgreed,
  releaseRefresh,
  saveRefreshedTokens,
} from '../store/logins/grants.ts';
import { findToken } from '../store/logins/issued-tokens.ts';
import { durations, type LoginServer, type OAuthDeps, type ProviderTokens } from './oauth-deps.ts';
import { countCharacters, openTokens, sealTokens, unwrapKey } from './provider.ts';

export const maxCachedGrants = 10_000;
/**
 * Maximum total characters of the cached logins. Fewer logins are cached if their tokens are as long as a provider may
 * issue them.
 */
const maxCharacters = 30_000_000;
/** Remaining lifetime below which a token is refreshed before use, in ms. */
const marginMs = 20_000;

/** Finds and refreshes the provider tokens behind our access tokens. */
export type GrantTokens = ReturnType<typeof createGrantTokens>;

export function createGrantTokens(deps: OAuthDeps, freshness: Freshness) {
  const cache = createGrantCache(freshness);
  const refreshesInProgress = new Map<string, Promise<OpenGrant | undefined>>();
  const unsent = createUnsentTokens();

  async function find(server: LoginServer, bearer: string, chargeQuery?: QueryCharge): Promise<OpenGrant | undefined> {
    if (!/^tha_[0-9A-Za-z]{43}$/.test(bearer)) return undefined;
    const hash = hashSecret(bearer);
    const loadGrant = (previous?: OpenGrant) => load(bearer, hash, deps, previous ? undefined : chargeQuery);
    const openGrant = cache.get(hash) ?? (await cache.load(hash, loadGrant));
    if (!openGrant || openGrant.accessExpiresAt <= deps.now()) return undefined;
    if (openGrant.grant.server_id !== server.id || !isAgreed(openGrant.grant.agreement, server)) return undefined;
    const unsaved = deps.unsavedTokens.find(openGrant.grant);
    return unsaved ? { ...openGrant, tokens: unsaved } : openGrant;
  }

  /** Runs one refresh per grant at a time in this process. Across processes, a claim in the database ensures that. */
  function refresh(
    server: LoginServer,
    openGrant: OpenGrant,
    part: RefreshedPart = 'tokens',
  ): Promise<OpenGrant | undefined> {
    const { id } = openGrant.grant;
    const running = refreshesInProgress.get(id);
    if (running) return running;
    const started = refreshAtProvider(server, openGrant, part, deps).finally(() => {
      refreshesInProgress.delete(id);
      // Tokens that could not be stored belong to the cached version of the grant, which must then remain cached.
      if (!deps.unsavedTokens.find(openGrant.grant)) cache.invalidate(id);
    });
    refreshesInProgress.set(id, started);
    return started;
  }

  return {
    /**
     * Finds the grant of a token. Returns undefined for anything that is not a live token of this server. @throws
     * AppError unavailable if the provider is down
     */
    async open(server: LoginServer, bearer: string, chargeQuery?: QueryCharge): Promise<OpenGrant | undefined> {
      const openGrant = await find(server, bearer, chargeQuery);
      if (!openGrant) return undefined;
      deps.onTokenUse(openGrant.grant.id);
      return refreshIfDue(openGrant, deps.now, (current, part) => refresh(server, current, part));
    },
    /**
     * Returns a newer token after the upstream refused one, or undefined if there is none for now or permanently.
     * `isSent` is true if the caller sends it now.
     */
    async renew(server: LoginServer, bearer: string, refused: string, isSent: boolean): Promise<string | undefined> {
      const openGrant = await find(server, bearer);
      // Another call may have refreshed the token in the meantime.
      if (openGrant?.tokens.accessToken !== refused) return openGrant?.tokens.accessToken;
      const renewed = await refresh(server, openGrant).catch((error: unknown) => {
        if (isUnavailableError(error)) return undefined;
        throw error;
      });
      if (renewed && !isSent) unsent.add(renewed);
      return renewed?.tokens.accessToken;
    },
    getOnAccepted: unsent.getOnAccepted,
    /**
     * Marks the grant as broken after the upstream has also refused the renewed token, so that the agent must log in
     * again.
     */
    async discardToken(server: LoginServer, bearer: string, refused: string): Promise<void> {
      const openGrant = await find(server, bearer);
      if (openGrant?.tokens.accessToken === refused) await markBroken(openGrant, deps);
    },
    invalidate: cache.invalidate,
    clear: cache.clear,
    getCounts: cache.counts,
  };
}

/**
 * Refreshes the parts of a login that have expired or are about to. Returns undefined if the person must log in again.
 * Until the expiry, an unavailable provider has no effect.
 * @throws AppError unavailable
 */
async function refreshIfDue(
  openGrant: OpenGrant,
  now: () => number,
  refresh: (openGrant: OpenGrant, part: RefreshedPart) => Promise<OpenGrant | undefined>,
): Promise<OpenGrant | undefined> {
  const { part, expiresAt, isRenewable } = getNextExpiry(openGrant.tokens);
  // An identity is checked when its time has passed. Before that, the identity provider has nothing new to say.
  const refreshMs = part === 'identity' ? 0 : marginMs;
  if (expiresAt === undefined || expiresAt - refreshMs > now()) return openGrant;
  const fallback = expiresAt > now() ? openGrant : undefined;
  if (!isRenewable) return fallback;
  const refreshed = await refresh(openGrant, part).catch((error: unknown) => {
    if (fallback && isUnavailableError(error)) return fallback;
    throw error;
  });
  // The token of the provider may have expired, too.
  const hasOtherPart = refreshed && part === 'identity' && getNextExpiry(refreshed.tokens).part === 'tokens';
  return hasOtherPart ? refreshIfDue(refreshed, now, refresh) : refreshed;
}

/** Time for which a renewed token counts as never sent, in ms. It is about the lifetime of a token. */
const unsentTtlMs = 60 * 60_000;

/** Tokens, by grant, that were renewed after a refusal and that the upstream has not accepted yet. */
function createUnsentTokens() {
  const unsent = createFairCache<{ token: string; workspaceId: string }>({
    max: maxCachedGrants,
    getOwner: ({ workspaceId }) => workspaceId,
  });
  return {
    add({ grant: { id, workspace_id: workspaceId }, tokens: { accessToken: token } }: OpenGrant): void {
      unsent.set(id, { token, workspaceId }, unsentTtlMs);
    },
    /**
     * Returns a function to call once the upstream has accepted the grant's token. Undefined if the token is not in
     * this list.
     */
    getOnAccepted({ grant: { id }, tokens }: OpenGrant): (() => void) | undefined {
      return unsent.peek(id)?.token === tokens.accessToken ? () => unsent.delete(id) : undefined;
    },
  };
}

function createGrantCache(freshness: Freshness) {
  return createReadThroughCache<OpenGrant>({
    max: maxCachedGrants,
    maxSize: maxCharacters,
    getSize,
    freshness,
    getIds: ({ grant: { id, workspace_id, user_id, person_id } }) => [
      id,
      workspace_id,
      ...[user_id, person_id].filter((userId) => userId !== null),
    ],
    getOwner: ({ grant }) => grant.workspace_id,
  });
}

function getSize({ grant, tokens }: OpenGrant): number {
  const lengths = Object.values(grant).map((value) => (typeof value === 'string' ? value.length : 0));
  return lengths.reduce((sum, length) => sum + length, countCharacters(tokens));
}

/** Loads the grant of a bearer token. `chargeQuery` charges the query, because the token may be made up. */
async function load(
  bearer: string,
  hash: string,
  deps: OAuthDeps,
  chargeQuery: QueryCharge,
): Promise<{ value: OpenGrant } | undefined> {
  chargeQuery?.();
  const token = await findToken(deps.db, hash);
  if (token?.kind !== 'access') return undefined;
  const storedGrant = await findGrant(deps.db, token.grant_id);
  if (!isAlive(storedGrant)) return undefined;
  const grantKey = unwrapKey(token.wrapped_key, bearer, storedGrant.id);
  const tokens = openTokens(deps.keyring, storedGrant, grantKey);
  // The sealed tokens are dropped, because they are longer than the opened ones.
  const { sealed_tokens: _, ...grant } = storedGrant;
  return { value: { grant, grantKey, tokens, accessExpiresAt: token.expires_at } };
}

/** Part of a login that is refreshed: the identity of the person, or the provider's tokens. */
export type RefreshedPart = 'identity' | 'tokens';

/** Returns the part of a login that expires first. `expiresAt` is undefined if nothing expires. */
export function getNextExpiry({ identity, expiresAt, refreshToken }: ProviderTokens): {
  part: RefreshedPart;
  expiresAt: number | undefined;
  isRenewable: boolean;
} {
  return identity && identity.expiresAt <= (expiresAt ?? Number.POSITIVE_INFINITY)
    ? { part: 'identity', expiresAt: identity.expiresAt, isRenewable: identity.refreshToken !== undefined }
    : { part: 'tokens', expiresAt, isRenewable: refreshToken !== undefined };
}

/** The grant behind one of our access tokens, decrypted. */
export type OpenGrant = {
  grant: Omit<Grant, 'sealed_tokens'>;
  grantKey: Buffer;
  tokens: ProviderTokens;
  accessExpiresAt: number;
};

/**
 * Duration of a refresh claim. It exceeds the provider timeout, and a crashed replica blocks a login only for seconds.
 */
const claimMs = durations.providerTimeout + 2000;
/** Time to wait for another replica, whose provider may be slow, in ms. */
const waitMs = 15_000;
const pollMs = 100;

function isAlive(grant: Grant | undefined): grant is Grant {
  return grant !== undefined && grant.revoked_at === null && grant.broken_at === null;
}

/**
 * Refreshes at the provider, or waits for the replica that does. Returns undefined if the grant is broken.
 * @throws AppError unavailable if the provider or the database is down
 */
export async function refreshAtProvider(
  server: LoginServer,
  openGrant: OpenGrant,
  part: RefreshedPart,
  deps: OAuthDeps,
): Promise<OpenGrant | undefined> {
  const renewed = await refreshOrWait(server, openGrant, part, deps);
  // Rejects a refresh token without an ID token, because it proves nothing about the person.
  if (part === 'identity' && renewed?.tokens.identity && renewed.tokens.identity.expiresAt <= deps.now())
    throw createRetryError('the person could not be checked at the identity provider');
  return renewed;
}

const createRetryError = (problem: string) =>
  new AppError('unavailable', `${problem}; retry in a few seconds`, { retryAfterS: 5 });

async function refreshOrWait(
  server: LoginServer,
  openGrant: OpenGrant,
  part: RefreshedPart,
  deps: OAuthDeps,
): Promise<OpenGrant | undefined> {
  const { grant, tokens } = openGrant;
  const unsaved = deps.unsavedTokens.find(grant);
  if (unsaved) return { ...openGrant, tokens: unsaved };
  const refreshToken = part === 'identity' ? tokens.identity?.refreshToken : tokens.refreshToken;
  if (refreshToken === undefined) return markBroken(openGrant, deps);
  const now = deps.now();
  const claimedUntil = now + claimMs;
  if (!(await claimRefresh(deps.db, grant, now, claimedUntil))) {
    return waitForOtherReplica(server, openGrant, part, deps);
  }
  try {
    const refreshedTokens =
      part === 'identity' ? await checkIdentity(server, tokens, deps) : await refreshTokens(server, tokens);
    deps.onEvent('refreshed');
    return await save(openGrant, refreshedTokens, deps);
  } catch (caught) {
    if (!(caught instanceof OAuthError)) throw caught;
    deps.onEvent('refresh_failed');
    const error = deps.refreshRefusals.classify(caught, `${grant.id} ${grant.tokens_version}`, grant.workspace_id);
    const { code, detail, providerMessage } = error;
    deps.log('a provider did not refresh a login', { slug: server.slug, error: code, detail, said: providerMessage });
    if (code === 'invalid_grant') return markBroken(openGrant, deps);
    await releaseRefresh(deps.db, grant.id, claimedUntil);
    throw createRetryError('the login could not be refreshed at its provider');
  }
}

/** Refreshes the tokens at the provider. @throws OAuthError */
export async function refreshTokens(server: LoginServer, tokens: ProviderTokens): Promise<ProviderTokens> {
  if (!server.provider) throw new OAuthError('invalid_grant', 'the server no longer has a provider');
  const refreshed = await server.provider.refresh(tokens);
  return {
    ...tokens,
    ...refreshed,
    // Values that a refresh response omits are unchanged (RFC 6749, 6).
    refreshToken: refreshed.refreshToken ?? tokens.refreshToken,
    scope: refreshed.scope ?? tokens.scope,
    ...((tokens.values || refreshed.values) && { values: { ...tokens.values, ...refreshed.values } }),
  };
}

/** Asks the identity provider about the person of a login again. @throws OAuthError invalid_grant, temporarily_unavailable */
async function checkIdentity(server: LoginServer, tokens: ProviderTokens, deps: OAuthDeps): Promise<ProviderTokens> {
  const { login } = server;
  const { identity } = tokens;
  if (!login || !identity) throw new OAuthError('invalid_grant', 'the server no longer identifies people');
  try {
    return { ...tokens, identity: await deps.people.check(identity, { ...server, login }) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const code = error.kind === 'unavailable' ? 'temporarily_unavailable' : 'invalid_grant';
    throw new OAuthError(code, error.message);
  }
}

/**
 * Stores the provider's new tokens, unless the grant has ended or another replica was faster. While the database is
 * unavailable, they stay in memory. The provider has invalidated the old ones, so this is the only valid copy.
 */
async function save(openGrant: OpenGrant, tokens: ProviderTokens, deps: OAuthDeps): Promise<OpenGrant | undefined> {
  const { id, tokens_version } = openGrant.grant;
  const sealed = sealTokens(deps.keyring, openGrant.grant, openGrant.grantKey, tokens);
  const store = () => changeGrant(id, (db) => saveRefreshedTokens(db, id, sealed, tokens_version + 1), deps);
  const refreshedGrant = { ...openGrant, tokens };
  try {
    return (await store()) ? refreshedGrant : await reloadGrant(openGrant, deps);
  } catch (error) {
    if (!isUnavailableError(error)) throw error;
    deps.unsavedTokens.retain(openGrant.grant, { tokens, store });
    return refreshedGrant;
  }
}

/** Marks a grant as broken, unless another replica has newer tokens for it. */
async function markBroken(openGrant: OpenGrant, deps: OAuthDeps): Promise<OpenGrant | undefined> {
  const { id, tokens_version } = openGrant.grant;
  const isBroken = await changeGrant(id, (db) => breakGrant(db, id, tokens_version, deps.now()), deps);
  return isBroken ? undefined : reloadGrant(openGrant, deps);
}

/** Changes a grant in all replicas. */
async function changeGrant(id: string, change: (db: Db) => Promise<boolean>, deps: OAuthDeps): Promise<boolean> {
  const isChanged = await transact(deps.db, async (db) => {
    if (!(await change(db))) return false;
    await recordChange(db, deps, 'grant', id);
    return true;
  });
  await deps.onCommitted();
  return isChanged;
}

async function reloadGrant(openGrant: OpenGrant, deps: OAuthDeps): Promise<OpenGrant | undefined> {
  const grant = await findGrant(deps.db, openGrant.grant.id);
  return isAlive(grant)
    ? { ...openGrant, grant, tokens: openTokens(deps.keyring, grant, openGrant.grantKey) }
    : undefined;
}

/** Waits for the result of the replica that refreshes. */
async function waitForOtherReplica(
  server: LoginServer,
  openGrant: OpenGrant,
  part: RefreshedPart,
  deps: OAuthDeps,
): Promise<OpenGrant | undefined> {
  const deadline = getRunningTimeMs() + waitMs;
  while (getRunningTimeMs() < deadline) {
    const unsaved = deps.unsavedTokens.find(openGrant.grant);
    if (unsaved) return { ...openGrant, tokens: unsaved };
    const current = await reloadGrant(openGrant, deps);
    if (!current || current.grant.tokens_version > openGrant.grant.tokens_version) return current;
    if ((current.grant.refreshing_until ?? 0) < deps.now()) return refreshOrWait(server, current, part, deps);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  throw createRetryError('the login is being refreshed');
}

/** Tokens of a login at a server of this workspace. */
type OwnedTokens = { workspaceId: string; tokens: ProviderTokens };
type UnsavedGrant = Pick<Grant, 'id' | 'tokens_version' | 'workspace_id'>;
type Unsaved = OwnedTokens & { version: number; store: () => Promise<boolean> };

const retryMs = 100;

/**
 * Limits for unsaved tokens: the number of logins in one outage, and the characters of their tokens. Above them, the
 * oldest entries are dropped, and their people must log in again. If one tenant has more than half, its entries are
 * dropped first. One tenant can use three quarters of the space.
 */
const cacheLimits = {
  max: 13_500,
  maxSize: 40_000_000,
  getSize: ({ tokens }: OwnedTokens) => countCharacters(tokens),
  getOwner: ({ workspaceId }: OwnedTokens) => workspaceId,
};

/**
 * New provider tokens that the database could not store. This is their only copy, so they are retained until they can
 * be stored.
 */
export type UnsavedTokens = ReturnType<typeof createUnsavedTokens>;

export function createUnsavedTokens(log: (message: string, fields: { [key: string]: unknown }) => void) {
  const unsavedTokens = createFairCache<Unsaved>(cacheLimits);
  let timer: NodeJS.Timeout | undefined;
  let storeInProgress: Promise<unknown> | undefined;
  const pendingResponses = createFairCache<OwnedTokens>(cacheLimits);

  /**
   * Stores entries until none remains or the database is unavailable. Returns the number of entries that can never be
   * stored.
   */
  async function storeAll(): Promise<number> {
    let storedCount = 0;
    let lostCount = 0;
    for (const id of [...unsavedTokens.keys()]) {
      const unsaved = unsavedTokens.peek(id);
      if (!unsaved) continue;
      try {
        await unsaved.store();
        storedCount++;
      } catch (error) {
        if (isUnavailableError(error)) return lostCount;
        lostCount++;
        log('refreshed tokens of a login could not be stored and are lost', {
          grant: id,
          reason: getErrorMessage(error),
        });
      }
      if (unsavedTokens.peek(id) === unsaved) unsavedTokens.delete(id);
    }
    if (storedCount > 0) log('refreshed tokens that waited for the database have been stored', { logins: storedCount });
    return lostCount;
  }

  function scheduleRetry(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      storeInProgress = storeAll().finally(() => {
        storeInProgress = undefined;
        if (unsavedTokens.size() > 0) scheduleRetry();
      });
    }, retryMs).unref();
  }

  return {
    /**
     * Responses of providers to refresh tokens that agents hold themselves, by the hash of the refresh token. They are
     * retained until they can be delivered, when the agent retries with the old refresh token.
     */
    pendingResponses,
    /** Returns the unsaved tokens that replace those of a grant at its `tokens_version`. */
    find({ id, tokens_version }: Pick<Grant, 'id' | 'tokens_version'>): ProviderTokens | undefined {
      if (unsavedTokens.size() === 0) return undefined;
      const unsaved = unsavedTokens.peek(id);
      return unsaved?.version === tokens_version ? unsaved.tokens : undefined;
    },
    /** Retains tokens and retries `store`, which returns false if another replica was faster. */
    retain(
      { id, tokens_version: version, workspace_id: workspaceId }: UnsavedGrant,
      unsaved: Pick<Unsaved, 'tokens' | 'store'>,
    ) {
      if (unsavedTokens.size() === 0) log('refreshed tokens are waiting for the database', {});
      unsavedTokens.set(id, { version, workspaceId, ...unsaved });
      scheduleRetry();
    },
    /**
     * Tries to store everything once more, and then drops it. Returns false if some tokens were lost, which is logged.
     */
    async close(): Promise<boolean> {
      clearTimeout(timer);
      await storeInProgress;
      clearTimeout(timer);
      const unstorableCount = unsavedTokens.size() > 0 ? await storeAll() : 0;
      // Pending responses cannot be stored, because only the agents that retry know the keys that would seal them. The
      // keys are counted, because expired entries still count until they are removed.
      const logins = unsavedTokens.size() + [...pendingResponses.keys()].length;
      if (logins > 0) log('refreshed tokens of logins were lost; their users must log in again', { logins });
      unsavedTokens.clear();
      pendingResponses.clear();
      return logins + unstorableCount === 0;
    },
  };
}

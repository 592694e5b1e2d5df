import type { QueryCharge } from '@toolhost/credentials/client-request';
import { hashSecret, type Random } from '@toolhost/credentials/ids';
import { isUnavailableError, OAuthError } from '@toolhost/errors/errors';
import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import { createReadThroughCache, type Freshness } from '../store/changes/cache.ts';
import { recordChange } from '../store/changes/follow-changes.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import { formatAgreement, getAgreedView, isAgreed } from '../store/logins/grants.ts';
import {
  findPassthroughAgreement,
  hasOtherAgreement,
  savePassthroughToken,
} from '../store/logins/passthrough-tokens.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import { createInvalidGrantError } from './clients.ts';
import { durations, type LoginServer, type OAuthDeps, type ProviderTokens, type TokenResponse } from './oauth-deps.ts';
import { refreshTokens } from './provider-tokens.ts';

/**
 * With passthrough, agents hold the provider's access tokens, and its refresh tokens sealed. Returns the context of the
 * seal, which binds a refresh token to one client, and to one server with its current endpoints.
 */
function getSealContext(server: LoginServer, clientId: string, view: string | undefined): string {
  return `passthrough|${server.id}|${formatAgreement(server.agreement, view)}|${clientId}`;
}

/** A provider's refresh token, and the view that its login is limited to. */
type PassthroughRefreshToken = { refreshToken: string; view: string | undefined };

/** Opens a sealed refresh token. Returns undefined if `wrapped` was not sealed by us for this server and client. */
export function openRefreshToken(
  keyring: Keyring,
  server: LoginServer,
  clientId: string,
  wrapped: string,
): PassthroughRefreshToken | undefined {
  if (!wrapped.startsWith('thp_')) return undefined;
  for (const view of [undefined, ...server.views]) {
    const refreshToken = keyring.openFromClient(wrapped.slice('thp_'.length), getSealContext(server, clientId, view));
    if (refreshToken !== undefined) return { refreshToken, view };
  }
  return undefined;
}

type IssuedLogin = { clientId: string; tokens: ProviderTokens; view: string | undefined };

/**
 * Issues the provider's own token to the agent, together with its refresh token in sealed form, which is usable only
 * here with our client secret. The token's agreement is stored first and the server is read again afterwards, so that
 * one side notices a concurrent change of the server.
 */
export async function issueProviderToken(
  server: LoginServer,
  { clientId, tokens, view }: IssuedLogin,
  deps: OAuthDeps,
): Promise<TokenResponse> {
  const { accessToken, expiresAt = deps.now() + durations.access, refreshToken, scope } = tokens;
  const agreement = formatAgreement(server.agreement, view);
  await deps.passthroughTokens.add({ id: server.id, agreement }, accessToken, expiresAt);
  await deps.onCommitted();
  const current = await deps.findServer(server.slug);
  if (current?.agreement !== server.agreement)
    throw createInvalidGrantError('the server changed after the person agreed');
  return {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: Math.max(1, Math.floor((expiresAt - deps.now()) / 1000)),
    ...(refreshToken !== undefined && {
      refresh_token: `thp_${deps.keyring.seal(refreshToken, getSealContext(server, clientId, view))}`,
    }),
    ...(scope !== undefined && { scope }),
  };
}

type RefreshRequest = { clientId: string; openedToken: PassthroughRefreshToken; key: string };

/**
 * Refreshes a token that an agent holds. `key` is its hash. Concurrent requests with the same token share the response
 * of the provider and the database, because a provider that sees a refresh token twice may consider it stolen and end
 * the login.
 */
export function refreshAndShare(server: LoginServer, request: RefreshRequest, deps: OAuthDeps): Promise<TokenResponse> {
  const { refreshesInProgress } = deps;
  const { key } = request;
  const running = refreshesInProgress.get(key);
  if (running) return running;
  const response = refreshOnce(server, request, deps).finally(() => refreshesInProgress.delete(key));
  refreshesInProgress.set(key, response);
  return response;
}

async function refreshOnce(
  server: LoginServer,
  { clientId, openedToken, key }: RefreshRequest,
  deps: OAuthDeps,
): Promise<TokenResponse> {
  const { pendingResponses } = deps.unsavedTokens;
  const tokens =
    pendingResponses.get(key)?.tokens ?? (await refreshHeldToken(server, openedToken.refreshToken, key, deps));
  pendingResponses.delete(key);
  try {
    return await issueProviderToken(server, { clientId, tokens, view: openedToken.view }, deps);
  } catch (error) {
    // The agent will retry with a refresh token that the provider may have invalidated.
    if (isUnavailableError(error))
      pendingResponses.set(key, { workspaceId: server.workspaceId, tokens }, getPendingMs(tokens, deps.now()));
    throw error;
  }
}

const maxPendingMs = 10 * 60_000;

/**
 * Returns the time for which a response waits, in ms. An agent that has not returned by then has logged in again, or
 * does not need it.
 */
function getPendingMs({ expiresAt }: ProviderTokens, now: number): number {
  return Math.max(1, Math.min(maxPendingMs, (expiresAt ?? Number.POSITIVE_INFINITY) - now));
}

async function refreshHeldToken(
  server: LoginServer,
  refreshToken: string,
  key: string,
  deps: OAuthDeps,
): Promise<ProviderTokens> {
  try {
    const heldTokens = { accessToken: '', refreshToken, expiresAt: undefined, scope: undefined };
    const tokens = await refreshTokens(server, heldTokens);
    deps.onEvent('refreshed');
    return tokens;
  } catch (error) {
    deps.onEvent('refresh_failed');
    throw error instanceof OAuthError ? deps.refreshRefusals.classify(error, key, server.workspaceId) : error;
  }
}

/** A server with the agreement of its logins (undefined if it no longer has a login), and the names of its views. */
export type ServerAgreement = {
  id: string;
  workspaceId: string;
  agreement?: string;
  view?: string | undefined;
  views?: readonly string[];
};

/**
 * Time for which a row outlives its token, in ms. An upstream may accept a token for a while after its stated expiry.
 */
const retentionMs = 24 * 60 * 60_000;
/** Maximum number of cached entries. One workspace can use three quarters of it. */
const maxCached = 13_500;

/**
 * Cached facts about a server or a token. `hasOutdated` is true if any token of a server without views may be outdated,
 * which is rare. `agreement` is that of a token; undefined for one that was not issued.
 */
type CachedFact = { serverId: string; owner: string; hasOutdated?: boolean; agreement?: string | undefined };

/** Owner of cached tokens that were not issued. Anyone can make them up, so they evict no other entries. */
const noOwner = 'not-issued';

/**
 * Provider tokens that agents hold themselves (passthrough). A token issued under an earlier agreement must not reach
 * hosts that the server has added since, and a token of a login for a view must not reach tools outside that view.
 */
export type PassthroughTokens = ReturnType<typeof createPassthroughTokens>;

export function createPassthroughTokens(db: Db, freshness: Freshness, source: { random: Random; now: () => number }) {
  const cache = createReadThroughCache<CachedFact>({
    max: maxCached,
    freshness,
    getIds: ({ serverId }) => [serverId],
    getOwner: ({ owner }) => owner,
  });

  /** Returns true if a token was issued under another agreement than the server's. */
  function isTokenOutdated(server: ServerAgreement, token: string, chargeQuery: QueryCharge): MaybePromise<boolean> {
    const { id: serverId, agreement: currentAgreement, view, workspaceId } = server;
    const isOtherAgreement = (agreement: string | undefined) =>
      agreement !== undefined &&
      (currentAgreement === undefined || !isAgreed(agreement, { agreement: currentAgreement, view }));
    const hash = hashSecret(token);
    const key = `${serverId} ${hash}`;
    const cached = cache.get(key);
    if (cached && !isOtherAgreement(cached.agreement)) return false;
    // Reads the database before refusing, because the person may have agreed again at another replica.
    const entryPromise = cache.load(key, async (previous) => {
      const wasIssued = previous?.agreement !== undefined && !isOtherAgreement(previous.agreement);
      if (!wasIssued) chargeQuery?.();
      const agreement = await findPassthroughAgreement(db, serverId, hash);
      return { value: { serverId, owner: agreement === undefined ? noOwner : workspaceId, agreement } };
    });
    return entryPromise.then((fact) => isOtherAgreement(fact?.agreement));
  }

  return {
    /** Stores the agreement under which a token is issued. `expiresAt` is in epoch ms. */
    async add(server: Pick<LoginServer, 'id' | 'agreement'>, token: string, expiresAt: number): Promise<void> {
      const hash = hashSecret(token);
      const { id: server_id, agreement } = server;
      const key = `${server_id} ${hash}`;
      await transact(db, async (transaction) => {
        await savePassthroughToken(transaction, { server_id, hash, agreement, expires_at: expiresAt + retentionMs });
        // Other processes may have cached the same token as valid for the whole server.
        if (getAgreedView(agreement) !== undefined) await recordChange(transaction, source, 'grant', key);
      });
      cache.invalidate(key);
    },
    /**
     * Returns true if a token was issued under another agreement than the server's current one. `chargeQuery` charges
     * the query for a token that may be made up.
     */
    isOutdated(server: ServerAgreement, token: string, chargeQuery: QueryCharge): MaybePromise<boolean> {
      // Any process may issue a token for a view at any time, so no earlier read shows that there is none.
      if (server.views?.length) return isTokenOutdated(server, token, chargeQuery);
      const { id: serverId, workspaceId: owner, agreement } = server;
      const key = `${serverId} ${agreement ?? ''}`;
      const cached = cache.get(key);
      if (cached) return cached.hasOutdated === true && isTokenOutdated(server, token, chargeQuery);
      return cache
        .load(key, async () => ({
          value: { serverId, owner, hasOutdated: await hasOtherAgreement(db, serverId, agreement) },
        }))
        .then((entry) => entry?.hasOutdated !== false && isTokenOutdated(server, token, chargeQuery));
    },
    /** Invalidates the cache entries of a changed server, or of one token by its key. */
    invalidate: cache.invalidate,
    clear: cache.clear,
  };
}

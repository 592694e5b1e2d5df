import { hashOf, type Random } from '../domain/ids.ts';
import type { Lookup } from '../domain/visit.ts';
import type { MaybePromise } from '../domain/work/next-turn.ts';
import { isUnavailable, OAuthError } from '../errors.ts';
import { createRemembered, type Freshness } from '../store/changes/cache.ts';
import { recordChange } from '../store/changes/follow-changes.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import { agreementFor, isAgreed, viewOfAgreement } from '../store/logins/grants.ts';
import { findHandedOutAgreement, hasOtherAgreement, saveHandedOutToken } from '../store/logins/handed-out-tokens.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import { refused } from './clients.ts';
import { type LoginServer, type OAuthParts, type ProviderTokens, spans, type TokenAnswer } from './parts.ts';

/**
 * Returns the context of the seal. It binds a refresh token to one server with its current endpoints, and to one
 * client.
 */
function wrapContext(server: LoginServer, clientId: string, view: string | undefined): string {
  return `passthrough|${server.id}|${agreementFor(server.agreement, view)}|${clientId}`;
}

/** A provider's refresh token, and the view that its login is limited to. */
type HeldToken = { refreshToken: string; view: string | undefined };

/** Opens a sealed refresh token. Returns undefined if `wrapped` was not sealed by us for this server and client. */
export function openRefreshToken(
  keyring: Keyring,
  server: LoginServer,
  clientId: string,
  wrapped: string,
): HeldToken | undefined {
  if (!wrapped.startsWith('thp_')) return undefined;
  for (const view of [undefined, ...server.views]) {
    const refreshToken = keyring.openReturned(wrapped.slice('thp_'.length), wrapContext(server, clientId, view));
    if (refreshToken !== undefined) return { refreshToken, view };
  }
  return undefined;
}

type PassedOn = { clientId: string; tokens: ProviderTokens; view: string | undefined };

/**
 * Issues the provider's own token to the agent, together with its refresh token in sealed form, which is usable only
 * here with our client secret. The token's agreement is stored first and the server is read again afterwards, so that
 * one side notices a concurrent change of the server.
 */
export async function passOn(
  server: LoginServer,
  { clientId, tokens, view }: PassedOn,
  parts: OAuthParts,
): Promise<TokenAnswer> {
  const { accessToken, expiresAt = parts.now() + spans.access, refreshToken, scope } = tokens;
  const agreement = agreementFor(server.agreement, view);
  await parts.handedOut.add({ id: server.id, agreement }, accessToken, expiresAt);
  await parts.onCommitted();
  const current = await parts.findServer(server.slug);
  if (current?.agreement !== server.agreement) throw refused('the server changed after the person agreed');
  return {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: Math.max(1, Math.floor((expiresAt - parts.now()) / 1000)),
    ...(refreshToken !== undefined && {
      refresh_token: `thp_${parts.keyring.seal(refreshToken, wrapContext(server, clientId, view))}`,
    }),
    ...(scope !== undefined && { scope }),
  };
}

type HeldBy = { clientId: string; held: HeldToken; key: string };

/**
 * Refreshes a token that an agent holds. `key` is its hash. Concurrent requests with the same token share the response
 * of the provider and the database, because a provider that sees a refresh token twice may consider it stolen and end
 * the login.
 */
export function refreshHeld(server: LoginServer, { key, ...held }: HeldBy, parts: OAuthParts): Promise<TokenAnswer> {
  const { refreshing } = parts;
  const underWay = refreshing.get(key);
  if (underWay) return underWay;
  const answer = refreshOnce(server, { key, ...held }, parts).finally(() => refreshing.delete(key));
  refreshing.set(key, answer);
  return answer;
}

async function refreshOnce(
  server: LoginServer,
  { clientId, held, key }: HeldBy,
  parts: OAuthParts,
): Promise<TokenAnswer> {
  const { answers } = parts.unsaved;
  const tokens = answers.get(key)?.tokens ?? (await refreshed(server, held.refreshToken, key, parts));
  answers.delete(key);
  try {
    return await passOn(server, { clientId, tokens, view: held.view }, parts);
  } catch (error) {
    // The agent will retry with a refresh token that the provider may have invalidated.
    if (isUnavailable(error))
      answers.set(key, { workspaceId: server.workspaceId, tokens }, lifeOfAnswer(tokens, parts.now()));
    throw error;
  }
}

const longestAnswerMs = 10 * 60_000;

/**
 * Returns the time for which a response waits, in ms. An agent that has not returned by then has logged in again, or
 * does not need it.
 */
function lifeOfAnswer({ expiresAt }: ProviderTokens, now: number): number {
  return Math.max(1, Math.min(longestAnswerMs, (expiresAt ?? Number.POSITIVE_INFINITY) - now));
}

async function refreshed(
  server: LoginServer,
  refreshToken: string,
  key: string,
  parts: OAuthParts,
): Promise<ProviderTokens> {
  try {
    const tokens = await server.provider.refresh(refreshToken);
    parts.onEvent('refreshed');
    return { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken };
  } catch (error) {
    parts.onEvent('refresh_failed');
    throw error instanceof OAuthError ? parts.refusals.judge(error, key, server.workspaceId) : error;
  }
}

/** A server with the agreement of its logins (undefined if it no longer has a login), and the names of its views. */
export type AgreedServer = {
  id: string;
  workspaceId: string;
  agreement?: string;
  view?: string | undefined;
  views?: readonly string[];
};

/**
 * Time for which a row outlives its token, in ms. An upstream may accept a token for a while after its stated expiry.
 */
const keptMs = 24 * 60 * 60_000;
/** Maximum number of cached entries. One workspace can use three quarters of it. */
const maxRemembered = 13_500;

/**
 * Cached facts about a server or a token. `hasOlder` is true if any token of a server without views may be outdated,
 * which is rare. `agreement` is that of a token; undefined for one that was not issued.
 */
type Known = { serverId: string; owner: string; hasOlder?: boolean; agreement?: string | undefined };

/** Owner of cached tokens that were not issued. Anyone can make them up, so they evict no other entries. */
const nobody = 'nobody';

/**
 * Provider tokens that agents hold themselves (passthrough). A token issued under an earlier agreement must not reach
 * hosts that the server has added since, and a token of a login for a view must not reach tools outside that view.
 */
export type HandedOutTokens = ReturnType<typeof createHandedOutTokens>;

export function createHandedOutTokens(db: Db, freshness: Freshness, source: { random: Random; now: () => number }) {
  const known = createRemembered<Known>({
    max: maxRemembered,
    freshness,
    idsOf: ({ serverId }) => [serverId],
    ownerOf: ({ owner }) => owner,
  });

  /** Returns true if a token was issued under another agreement than the server's. */
  function isOlder(server: AgreedServer, token: string, look: Lookup): MaybePromise<boolean> {
    const { id: serverId, agreement: own, view, workspaceId } = server;
    const isOther = (agreement: string | undefined) =>
      agreement !== undefined && (own === undefined || !isAgreed(agreement, { agreement: own, view }));
    const hash = hashOf(token);
    const key = `${serverId} ${hash}`;
    const cached = known.get(key);
    if (cached && !isOther(cached.agreement)) return false;
    // Reads the database before refusing, because the person may have agreed again at another replica.
    const found = known.load(key, async (before) => {
      const isGood = before?.agreement !== undefined && !isOther(before.agreement);
      if (!isGood) look?.();
      const agreement = await findHandedOutAgreement(db, serverId, hash);
      return { value: { serverId, owner: agreement === undefined ? nobody : workspaceId, agreement } };
    });
    return found.then((value) => isOther(value?.agreement));
  }

  return {
    /** Stores the agreement under which a token is issued. `expiresAt` is in epoch ms. */
    async add(server: Pick<LoginServer, 'id' | 'agreement'>, token: string, expiresAt: number): Promise<void> {
      const hash = hashOf(token);
      const { id: server_id, agreement } = server;
      const key = `${server_id} ${hash}`;
      await transact(db, async (transaction) => {
        await saveHandedOutToken(transaction, { server_id, hash, agreement, expires_at: expiresAt + keptMs });
        // Other processes may have cached the same token as valid for the whole server.
        if (viewOfAgreement(agreement) !== undefined) await recordChange(transaction, source, 'grant', key);
      });
      known.invalidate(key);
    },
    /**
     * Returns true if a token was issued under another agreement than the server's current one. `look` charges the
     * query for a token that may be made up.
     */
    isOutdated(server: AgreedServer, token: string, look: Lookup): MaybePromise<boolean> {
      // Any process may issue a token for a view at any time, so no earlier read shows that there is none.
      if (server.views?.length) return isOlder(server, token, look);
      const { id: serverId, workspaceId: owner, agreement } = server;
      const key = `${serverId} ${agreement ?? ''}`;
      const cached = known.get(key);
      if (cached) return cached.hasOlder === true && isOlder(server, token, look);
      return known
        .load(key, async () => ({
          value: { serverId, owner, hasOlder: await hasOtherAgreement(db, serverId, agreement) },
        }))
        .then((found) => found?.hasOlder !== false && isOlder(server, token, look));
    },
    /** Invalidates the cache entries of a changed server, or of one token by its key. */
    invalidate: known.invalidate,
    clear: known.clear,
  };
}

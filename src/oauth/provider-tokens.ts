import { hashOf } from '../domain/ids.ts';
import type { Lookup } from '../domain/visit.ts';
import { createOwnedMemory } from '../domain/work/owned-memory.ts';
import { runningNow } from '../domain/work/running-time.ts';
import { AppError, isUnavailable, messageOf, OAuthError } from '../errors.ts';
import { createRemembered, type Freshness } from '../store/changes/cache.ts';
import { recordChange } from '../store/changes/follow-changes.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import {
  breakGrant,
  claimRefresh,
  findGrant,
  findToken,
  type Grant,
  isAgreed,
  releaseRefresh,
  saveRefreshedTokens,
} from '../store/logins/grants.ts';
import { type LoginServer, type OAuthParts, type ProviderTokens, spans } from './parts.ts';
import { charactersOf, openTokens, sealTokens, unwrapKey } from './provider.ts';

export const mostGrantsRemembered = 10_000;
/**
 * Maximum total characters of the cached logins. Fewer logins are cached if their tokens are as long as a provider may
 * issue them.
 */
const maxCharacters = 30_000_000;
/** Remaining lifetime below which a token is refreshed before use, in ms. */
const marginMs = 20_000;

/** Finds and refreshes the provider tokens behind our access tokens. */
export type GrantUse = ReturnType<typeof createGrantUse>;

export function createGrantUse(parts: OAuthParts, freshness: Freshness) {
  const remembered = createRememberedGrants(freshness);
  const refreshing = new Map<string, Promise<OpenGrant | undefined>>();
  const unsent = createUnsentTokens();

  async function find(server: LoginServer, bearer: string, look?: Lookup): Promise<OpenGrant | undefined> {
    if (!/^tha_[0-9A-Za-z]{43}$/.test(bearer)) return undefined;
    const hash = hashOf(bearer);
    const read = (before?: OpenGrant) => load(bearer, hash, parts, before ? undefined : look);
    const open = remembered.get(hash) ?? (await remembered.load(hash, read));
    if (!open || open.accessExpiresAt <= parts.now()) return undefined;
    if (open.grant.server_id !== server.id || !isAgreed(open.grant.agreement, server)) return undefined;
    const unsaved = parts.unsaved.find(open.grant);
    return unsaved ? { ...open, tokens: unsaved } : open;
  }

  /** Runs one refresh per grant in this process. The claim in the database ensures the same across processes. */
  function refresh(server: LoginServer, open: OpenGrant): Promise<OpenGrant | undefined> {
    const { id } = open.grant;
    const underWay = refreshing.get(id);
    if (underWay) return underWay;
    const started = refreshAtProvider(server, open, parts).finally(() => {
      refreshing.delete(id);
      // Tokens that could not be stored belong to the cached version of the grant, which must then remain cached.
      if (!parts.unsaved.find(open.grant)) remembered.invalidate(id);
    });
    refreshing.set(id, started);
    return started;
  }

  return {
    /**
     * Finds the grant of a token. Returns undefined for anything that is not a live token of this server. @throws
     * AppError unavailable if the provider is down
     */
    async open(server: LoginServer, bearer: string, look?: Lookup): Promise<OpenGrant | undefined> {
      const open = await find(server, bearer, look);
      if (!open) return undefined;
      parts.onUse(open.grant.id);
      const { expiresAt } = open.tokens;
      if (expiresAt === undefined || expiresAt - marginMs > parts.now()) return open;
      const lastResort = expiresAt > parts.now() ? open : undefined;
      if (open.tokens.refreshToken === undefined) return lastResort;
      return refresh(server, open).catch((error: unknown) => {
        if (lastResort && isUnavailable(error)) return lastResort;
        throw error;
      });
    },
    /**
     * Returns a newer token after the upstream refused one, or undefined if there is none for now or permanently.
     * `isSent` is true if the caller sends it now.
     */
    async renew(server: LoginServer, bearer: string, refused: string, isSent: boolean): Promise<string | undefined> {
      const open = await find(server, bearer);
      // Another call may have refreshed the token in the meantime.
      if (open?.tokens.accessToken !== refused) return open?.tokens.accessToken;
      const renewed = await refresh(server, open).catch((error: unknown) => {
        if (isUnavailable(error)) return undefined;
        throw error;
      });
      if (renewed && !isSent) unsent.add(renewed);
      return renewed?.tokens.accessToken;
    },
    onTaken: unsent.onTaken,
    /**
     * Marks the grant as broken after the upstream has also refused the renewed token, so that the agent must log in
     * again.
     */
    async giveUp(server: LoginServer, bearer: string, refused: string): Promise<void> {
      const open = await find(server, bearer);
      if (open?.tokens.accessToken === refused) await breakOff(open, parts);
    },
    invalidate: remembered.invalidate,
    clear: remembered.clear,
    counts: remembered.counts,
  };
}

/** Time for which a renewed token counts as never sent, in ms. It is about the lifetime of a token. */
const unsentMs = 60 * 60_000;

/** Tokens, by grant, that were renewed after a refusal and that the upstream has not accepted yet. */
function createUnsentTokens() {
  const unsent = createOwnedMemory<{ token: string; workspaceId: string }>({
    max: mostGrantsRemembered,
    ownerOf: ({ workspaceId }) => workspaceId,
  });
  return {
    add({ grant: { id, workspace_id: workspaceId }, tokens: { accessToken: token } }: OpenGrant): void {
      unsent.set(id, { token, workspaceId }, unsentMs);
    },
    /**
     * Returns a function to call once the upstream has accepted the grant's token. Undefined if the token is not in
     * this list.
     */
    onTaken({ grant: { id }, tokens }: OpenGrant): (() => void) | undefined {
      return unsent.peek(id)?.token === tokens.accessToken ? () => unsent.delete(id) : undefined;
    },
  };
}

function createRememberedGrants(freshness: Freshness) {
  return createRemembered<OpenGrant>({
    max: mostGrantsRemembered,
    maxSize: maxCharacters,
    sizeOf,
    freshness,
    idsOf: ({ grant }) => [grant.id, grant.workspace_id, ...(grant.user_id === null ? [] : [grant.user_id])],
    ownerOf: ({ grant }) => grant.workspace_id,
  });
}

function sizeOf({ grant, tokens }: OpenGrant): number {
  const lengths = Object.values(grant).map((value) => (typeof value === 'string' ? value.length : 0));
  return lengths.reduce((sum, length) => sum + length, charactersOf(tokens));
}

/** Loads the grant of a bearer token. `look` charges the query, because the token may be made up. */
async function load(
  bearer: string,
  hash: string,
  parts: OAuthParts,
  look: Lookup,
): Promise<{ value: OpenGrant } | undefined> {
  look?.();
  const token = await findToken(parts.db, hash);
  if (token?.kind !== 'access') return undefined;
  const found = await findGrant(parts.db, token.grant_id);
  if (!isAlive(found)) return undefined;
  const grantKey = unwrapKey(token.wrapped_key, bearer, found.id);
  const tokens = openTokens(parts.keyring, found, grantKey);
  // The sealed tokens are dropped, because they are longer than the opened ones.
  const { sealed_tokens: _, ...grant } = found;
  return { value: { grant, grantKey, tokens, accessExpiresAt: token.expires_at } };
}

/** The grant behind one of our access tokens, decrypted. */
type OpenGrant = {
  grant: Omit<Grant, 'sealed_tokens'>;
  grantKey: Buffer;
  tokens: ProviderTokens;
  accessExpiresAt: number;
};

/**
 * Duration of a refresh claim. It exceeds the provider timeout, and a crashed replica blocks a login only for seconds.
 */
const claimMs = spans.askProvider + 2000;
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
  try {
    const fresh = await server.provider.refresh(refreshToken);
    parts.onEvent('refreshed');
    // Values that a refresh response omits are unchanged (RFC 6749, 6).
    const scope = fresh.scope ?? open.tokens.scope;
    return await save(open, { ...fresh, refreshToken: fresh.refreshToken ?? refreshToken, scope }, parts);
  } catch (thrown) {
    if (!(thrown instanceof OAuthError)) throw thrown;
    parts.onEvent('refresh_failed');
    const error = parts.refusals.judge(thrown, `${grant.id} ${grant.tokens_version}`, grant.workspace_id);
    parts.log('a provider did not refresh a login', {
      ...{ slug: server.slug, error: error.code, detail: error.detail, said: error.said },
    });
    if (error.code === 'invalid_grant') return breakOff(open, parts);
    await releaseRefresh(parts.db, grant.id, until);
    throw new AppError('unavailable', 'the login could not be refreshed at its provider; retry in a few seconds', {
      retryAfterS: 5,
    });
  }
}

/**
 * Stores the provider's new tokens, unless the grant has ended or another replica was faster. While the database is
 * unavailable, they stay in memory. The provider has invalidated the old ones, so this is the only valid copy.
 */
async function save(open: OpenGrant, tokens: ProviderTokens, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const { id, tokens_version } = open.grant;
  const sealed = sealTokens(parts.keyring, open.grant, open.grantKey, tokens);
  const store = () => changeGrant(id, (db) => saveRefreshedTokens(db, id, sealed, tokens_version + 1), parts);
  const fresh = { ...open, tokens };
  try {
    return (await store()) ? fresh : await asStored(open, parts);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    parts.unsaved.keep(open.grant, { tokens, store });
    return fresh;
  }
}

/** Marks a grant as broken, unless another replica has newer tokens for it. */
async function breakOff(open: OpenGrant, parts: OAuthParts): Promise<OpenGrant | undefined> {
  const { id, tokens_version } = open.grant;
  const isBroken = await changeGrant(id, (db) => breakGrant(db, id, tokens_version, parts.now()), parts);
  return isBroken ? undefined : asStored(open, parts);
}

/** Changes a grant in all replicas. */
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
  return isAlive(grant) ? { ...open, grant, tokens: openTokens(parts.keyring, grant, open.grantKey) } : undefined;
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
  throw new AppError('unavailable', 'the login is being refreshed; retry in a few seconds', { retryAfterS: 5 });
}

/** Tokens of a login at a server of this workspace. */
type Owned = { workspaceId: string; tokens: ProviderTokens };
type KeptOf = Pick<Grant, 'id' | 'tokens_version' | 'workspace_id'>;
type Unsaved = Owned & { version: number; store: () => Promise<boolean> };

const retryMs = 100;

/**
 * Limits for unsaved tokens: the number of logins in one outage, and the characters of their tokens. Above them, the
 * oldest entries are dropped, and their people must log in again. If one tenant has more than half, its entries are
 * dropped first. One tenant can use three quarters of the space.
 */
const most = {
  max: 13_500,
  maxSize: 40_000_000,
  sizeOf: ({ tokens }: Owned) => charactersOf(tokens),
  ownerOf: ({ workspaceId }: Owned) => workspaceId,
};

/**
 * New provider tokens that the database could not store. This is their only copy, so they are retained until they can
 * be stored.
 */
export type UnsavedTokens = ReturnType<typeof createUnsavedTokens>;

export function createUnsavedTokens(log: (message: string, fields: { [key: string]: unknown }) => void) {
  const kept = createOwnedMemory<Unsaved>(most);
  let timer: NodeJS.Timeout | undefined;
  let storing: Promise<unknown> | undefined;
  const answers = createOwnedMemory<Owned>(most);

  /**
   * Stores entries until none remains or the database is unavailable. Returns the number of entries that can never be
   * stored.
   */
  async function storeAll(): Promise<number> {
    let stored = 0;
    let lost = 0;
    for (const id of [...kept.keys()]) {
      const unsaved = kept.peek(id);
      if (!unsaved) continue;
      try {
        await unsaved.store();
        stored++;
      } catch (error) {
        if (isUnavailable(error)) return lost;
        lost++;
        log('refreshed tokens of a login could not be stored and are lost', { grant: id, reason: messageOf(error) });
      }
      if (kept.peek(id) === unsaved) kept.delete(id);
    }
    if (stored > 0) log('refreshed tokens that waited for the database have been stored', { logins: stored });
    return lost;
  }

  function tryLater(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      storing = storeAll().finally(() => {
        storing = undefined;
        if (kept.size() > 0) tryLater();
      });
    }, retryMs).unref();
  }

  return {
    /**
     * Responses of providers to refresh tokens that agents hold themselves, by the hash of the refresh token. They are
     * retained until they can be delivered, when the agent retries with the old refresh token.
     */
    answers,
    /** Returns the unsaved tokens that replace those of a grant at its `tokens_version`. */
    find({ id, tokens_version }: Pick<Grant, 'id' | 'tokens_version'>): ProviderTokens | undefined {
      if (kept.size() === 0) return undefined;
      const unsaved = kept.peek(id);
      return unsaved?.version === tokens_version ? unsaved.tokens : undefined;
    },
    /** Retains tokens and retries `store`, which returns false if another replica was faster. */
    keep(
      { id, tokens_version: version, workspace_id: workspaceId }: KeptOf,
      unsaved: Pick<Unsaved, 'tokens' | 'store'>,
    ) {
      if (kept.size() === 0) log('refreshed tokens are waiting for the database', {});
      kept.set(id, { version, workspaceId, ...unsaved });
      tryLater();
    },
    /**
     * Tries to store everything once more, and then drops it. Returns false if some tokens were lost, which is logged.
     */
    async close(): Promise<boolean> {
      clearTimeout(timer);
      await storing;
      clearTimeout(timer);
      const never = kept.size() > 0 ? await storeAll() : 0;
      // Pending responses cannot be stored, because only the agents that retry know the keys that would seal them. The
      // keys are counted, because expired entries still count until they are removed.
      const logins = kept.size() + [...answers.keys()].length;
      if (logins > 0) log('refreshed tokens of logins were lost; their users must log in again', { logins });
      kept.clear();
      answers.clear();
      return logins + never === 0;
    },
  };
}

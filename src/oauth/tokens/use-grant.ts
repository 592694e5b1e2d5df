import { isAgreed } from '../../domain/credentials/agreement.ts';
import type { Lookup } from '../../domain/visit.ts';
import { isUnavailable } from '../../errors.ts';
import { createRemembered, type Freshness } from '../../store/changes/cache.ts';
import { findGrant } from '../../store/logins/grants.ts';
import { findToken } from '../../store/logins/tokens.ts';
import { charactersOf, hashOf, unwrapKey } from '../credentials.ts';
import type { LoginServer } from '../login-server.ts';
import type { OAuthParts } from '../parts.ts';
import { breakOff, isAlive, type OpenGrant, openGrantTokens, refreshAtProvider } from './refresh-grant.ts';

/** Finds and refreshes the provider's tokens behind our access tokens. */
export type GrantUse = {
  /** Undefined for anything that is not a live token of this server. @throws AppError unavailable when the provider is down */
  open(server: LoginServer, bearer: string, look?: Lookup): Promise<OpenGrant | undefined>;
  /** After the upstream refused a token: a newer one, or undefined when there is none for now or for good. */
  renew(server: LoginServer, bearer: string, refused: string): Promise<string | undefined>;
  /** Breaks the grant after the upstream refused the renewed token too, so that the agent must log in again. */
  giveUp(server: LoginServer, bearer: string, refused: string): Promise<void>;
  invalidate(grantId: string): void;
  /** Counts of the cache since the start, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
  clear(): void;
};

const maxRemembered = 10_000;
/** Most characters of the remembered logins: with tokens as long as a provider may give them, fewer are remembered. */
const maxCharacters = 30_000_000;
/** A token that expires within this time is refreshed before it is used. */
const marginMs = 20_000;

export function createGrantUse(parts: OAuthParts, freshness: Freshness): GrantUse {
  const remembered = createRemembered<OpenGrant>({
    max: maxRemembered,
    maxSize: maxCharacters,
    sizeOf,
    freshness,
    idsOf: ({ grant }) => [grant.id, grant.workspace_id, ...(grant.user_id === null ? [] : [grant.user_id])],
    ownerOf: ({ grant }) => grant.workspace_id,
  });
  const refreshing = new Map<string, Promise<OpenGrant | undefined>>();

  async function find(server: LoginServer, bearer: string, look?: Lookup): Promise<OpenGrant | undefined> {
    if (!/^tha_[0-9A-Za-z]{43}$/.test(bearer)) return undefined;
    const hash = hashOf(bearer);
    const read = async (before: OpenGrant | undefined) => {
      if (!before) look?.();
      return load(bearer, hash, parts);
    };
    const open = remembered.get(hash) ?? (await remembered.load(hash, read));
    if (!open || open.accessExpiresAt <= parts.now()) return undefined;
    if (open.grant.server_id !== server.id || !isAgreed(open.grant.agreement, server)) return undefined;
    const unsaved = parts.unsaved.find(open.grant);
    return unsaved ? { ...open, tokens: unsaved } : open;
  }

  /** Runs one refresh per grant in this process; the claim in the database ensures it across processes. */
  function refresh(server: LoginServer, open: OpenGrant): Promise<OpenGrant | undefined> {
    const { id } = open.grant;
    const underWay = refreshing.get(id);
    if (underWay) return underWay;
    const started = refreshAtProvider(server, open, parts).finally(() => {
      refreshing.delete(id);
      // Tokens that could not be stored belong to the cached version of the grant, which must then stay.
      if (!parts.unsaved.find(open.grant)) remembered.invalidate(id);
    });
    refreshing.set(id, started);
    return started;
  }

  return {
    async open(server, bearer, look) {
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
    async renew(server, bearer, refused) {
      const open = await find(server, bearer);
      // Another call may have refreshed the token meanwhile.
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
    invalidate: remembered.invalidate,
    clear: remembered.clear,
    counts: remembered.counts,
  };
}

function sizeOf({ grant, tokens }: OpenGrant): number {
  const lengths = Object.values(grant).map((value) => (typeof value === 'string' ? value.length : 0));
  return lengths.reduce((sum, length) => sum + length, charactersOf(tokens));
}

async function load(bearer: string, hash: string, parts: OAuthParts): Promise<{ value: OpenGrant } | undefined> {
  const token = await findToken(parts.db, hash);
  if (token?.kind !== 'access') return undefined;
  const found = await findGrant(parts.db, token.grant_id);
  if (!isAlive(found)) return undefined;
  const grantKey = unwrapKey(token.wrapped_key, bearer, found.id);
  const tokens = openGrantTokens(found, grantKey, parts);
  // The sealed tokens are longer than the open ones.
  const { sealed_tokens: _, ...grant } = found;
  return { value: { grant, grantKey, tokens, accessExpiresAt: token.expires_at } };
}

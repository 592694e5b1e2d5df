import { isAgreed, viewOfAgreement } from '../../domain/credentials/agreement.ts';
import type { Random } from '../../domain/ids.ts';
import type { Lookup } from '../../domain/visit.ts';
import { type MaybePromise, whenKnown } from '../../domain/work/maybe-promise.ts';
import { createRemembered, type Freshness } from '../../store/changes/cache.ts';
import { recordChange } from '../../store/changes/changes.ts';
import type { Db } from '../../store/db.ts';
import { findHandedOutAgreement, hasOtherAgreement, saveHandedOutToken } from '../../store/logins/handed-out-tokens.ts';
import { transact } from '../../store/transact.ts';
import { hashOf } from '../credentials.ts';

/** A server with the agreement of its logins, undefined when it no longer has a login, and the names of its views. */
export type AgreedServer = {
  id: string;
  workspaceId: string;
  agreement?: string;
  view?: string | undefined;
  views?: readonly string[];
};

/**
 * Provider tokens that agents hold themselves (passthrough). A token handed out under an earlier agreement must not reach
 * the hosts that the server has added since, and one of a login for a view none of its other tools.
 */
export type HandedOutTokens = {
  /** `expiresAt` in epoch ms. */
  add(server: AgreedServer, token: string, expiresAt: number): Promise<void>;
  /**
   * Whether a token was handed out under another agreement than the server's present one. `look` counts the query
   * for a token that may be made up.
   */
  isOutdated(server: AgreedServer, token: string, look: Lookup): MaybePromise<boolean>;
  /** Removes the cache entries of a changed server, or of one token by its key. */
  invalidate(id: string): void;
  clear(): void;
};

/** How long a row outlives its token: an upstream may accept a token for a while after its stated expiry. */
const keptMs = 24 * 60 * 60_000;
/** One workspace can fill three fourths of it. */
const maxRemembered = 13_500;

function isGoodAt(found: string, { agreement, view }: AgreedServer): boolean {
  return agreement !== undefined && isAgreed(found, { agreement, view });
}

/** `hasOlder`: whether any token of a server without views can be outdated, which is rare. */
type KnownServer = { id: string; workspaceId: string; hasOlder: boolean };
/** `agreement`: undefined for a token that was not handed out. */
type KnownToken = { serverId: string; workspaceId: string; agreement: string | undefined };

/** Owner of the cached tokens that were not handed out: anybody can make them up, so they displace no others. */
const nobody = 'nobody';

function rememberServers(freshness: Freshness) {
  return createRemembered<KnownServer>({
    max: maxRemembered,
    freshness,
    idsOf: ({ id }) => [id],
    ownerOf: ({ workspaceId }) => workspaceId,
  });
}

function rememberTokens(freshness: Freshness) {
  return createRemembered<KnownToken>({
    max: maxRemembered,
    freshness,
    idsOf: ({ serverId }) => [serverId],
    ownerOf: ({ workspaceId, agreement }) => (agreement === undefined ? nobody : workspaceId),
  });
}

export function createHandedOutTokens(
  db: Db,
  freshness: Freshness,
  source: { random: Random; now: () => number },
): HandedOutTokens {
  const servers = rememberServers(freshness);
  const tokens = rememberTokens(freshness);
  const serverKey = ({ id, agreement = '' }: AgreedServer) => `${id} ${agreement}`;
  const tokenKey = (serverId: string, hash: string) => `${serverId} ${hash}`;

  async function readServer({ id, workspaceId, agreement }: AgreedServer): Promise<{ value: KnownServer }> {
    return { value: { id, workspaceId, hasOlder: await hasOtherAgreement(db, id, agreement) } };
  }

  /** The agreement that a token was handed out under; undefined for a token that was not handed out. */
  function agreementOf(server: AgreedServer, token: string, look: Lookup): MaybePromise<string | undefined> {
    const hash = hashOf(token);
    const key = tokenKey(server.id, hash);
    const isGood = (found: KnownToken | undefined) =>
      found?.agreement !== undefined && isGoodAt(found.agreement, server);
    const cached = tokens.get(key);
    if (cached && (cached.agreement === undefined || isGood(cached))) return cached.agreement;
    // Read from the database before refusing: the person may have agreed again at another replica.
    const found = tokens.load(key, async (before) => {
      if (!isGood(before)) look?.();
      const agreement = await findHandedOutAgreement(db, server.id, hash);
      return { value: { serverId: server.id, workspaceId: server.workspaceId, agreement } };
    });
    return found.then((value) => value?.agreement);
  }

  function isOlder(server: AgreedServer, token: string, look: Lookup): MaybePromise<boolean> {
    return whenKnown(
      agreementOf(server, token, look),
      (agreement) => agreement !== undefined && !isGoodAt(agreement, server),
    );
  }

  return {
    async add(server, token, expiresAt) {
      const hash = hashOf(token);
      const { id: server_id, agreement = '' } = server;
      const key = tokenKey(server_id, hash);
      await transact(db, async (transaction) => {
        await saveHandedOutToken(transaction, { server_id, hash, agreement, expires_at: expiresAt + keptMs });
        // Other processes may have seen the same token where it was good at the whole server.
        if (viewOfAgreement(agreement) !== undefined) await recordChange(transaction, source, 'grant', key);
      });
      tokens.invalidate(key);
    },
    isOutdated(server, token, look) {
      // Any process may hand out a token for a view at any time, so nothing that was read before says that there is none.
      if (server.views?.length) return isOlder(server, token, look);
      const key = serverKey(server);
      const known = servers.get(key);
      if (known) return known.hasOlder && isOlder(server, token, look);
      return servers
        .load(key, () => readServer(server))
        .then((found) => found?.hasOlder !== false && isOlder(server, token, look));
    },
    invalidate(id) {
      servers.invalidate(id);
      tokens.invalidate(id);
    },
    clear() {
      servers.clear();
      tokens.clear();
    },
  };
}

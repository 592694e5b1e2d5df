import { LRUCache } from 'lru-cache';
import type { MaybePromise } from '../domain/maybe-promise.ts';
import type { Db } from '../store/database.ts';
import { findHandedOutAgreement, hasOtherAgreement, saveHandedOutToken } from '../store/handed-out-tokens.ts';
import { hashOf } from './credentials.ts';

/** A server and what a login at it agrees to; without an agreement it has no login any more. */
export type AgreedServer = { id: string; agreement?: string };

/**
 * Tokens of providers that agents hold themselves. One that was handed out before the server changed what people agree to
 * must not reach the hosts that were added since.
 */
export type HandedOutTokens = {
  /** `expiresAt` in epoch ms. */
  add(server: AgreedServer, token: string, expiresAt: number): Promise<void>;
  /** Whether a token was handed out under another agreement than the server's present one. */
  isOutdated(server: AgreedServer, token: string): MaybePromise<boolean>;
};

/** How long what was read may be used, in ms. */
const lifeMs = 60_000;
/** A token may be honoured a little beyond the end that its provider told. */
const keptMs = 24 * 60 * 60_000;
const maxRemembered = 10_000;

/** What is known of a server: whether any of its tokens can be outdated. Hardly ever one can. */
type Known = { hasOlder: boolean; until: number };

export function createHandedOutTokens(db: Db): HandedOutTokens {
  // Keyed by the object, which is made anew whenever its server changes.
  const servers = new WeakMap<AgreedServer, Known>();
  const reading = new WeakMap<AgreedServer, Promise<boolean>>();
  const agreements = new LRUCache<string, { agreement: string | undefined }>({ max: maxRemembered, ttl: lifeMs });

  function hasOlder(server: AgreedServer): Promise<boolean> {
    const underWay = reading.get(server);
    if (underWay) return underWay;
    const started = hasOtherAgreement(db, server.id, server.agreement)
      .then((found) => {
        servers.set(server, { hasOlder: found, until: performance.now() + lifeMs });
        return found;
      })
      .finally(() => reading.delete(server));
    reading.set(server, started);
    return started;
  }

  async function isOlder(server: AgreedServer, token: string): Promise<boolean> {
    const hash = hashOf(token);
    const key = `${server.id} ${hash}`;
    const fits = (agreement: string | undefined) => agreement === undefined || agreement === server.agreement;
    const known = agreements.get(key);
    if (known && fits(known.agreement)) return false;
    // Before a refusal the database is asked: the person may have agreed anew at another replica.
    const agreement = await findHandedOutAgreement(db, server.id, hash);
    agreements.set(key, { agreement });
    return !fits(agreement);
  }

  return {
    async add(server, token, expiresAt) {
      const hash = hashOf(token);
      const { id: server_id, agreement = '' } = server;
      await saveHandedOutToken(db, { server_id, hash, agreement, expires_at: expiresAt + keptMs });
      agreements.set(`${server_id} ${hash}`, { agreement });
    },
    isOutdated(server, token) {
      const known = servers.get(server);
      if (known && performance.now() < known.until) return known.hasOlder && isOlder(server, token);
      return hasOlder(server).then((found) => found && isOlder(server, token));
    },
  };
}

import { hash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { apiKeyId } from '../domain/api-key.ts';
import type { MaybePromise } from '../domain/maybe-promise.ts';
import { type ApiKey, findApiKey } from '../store/api-keys.ts';
import type { Db } from '../store/database.ts';

/** Tells whose key a presented one is. One check serves calling and managing. */
export type ApiKeyCheck = {
  /** The key, or undefined for anything that is not a valid one now: the reasons are not told apart. */
  verify(presented: string): MaybePromise<ApiKey | undefined>;
  /** Forgets a key by its id, because it changed. */
  forget(id: string): void;
  /** Since the start, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

const maxRemembered = 10_000;

/** SHA-256 in hex of a credential: how it is stored and remembered. */
export function credentialHash(credential: string): string {
  return hash('sha256', credential, 'hex');
}

/**
 * Keys are remembered by their hash until a change is reported or `isFresh` says that changes are no longer seen.
 * Junk is refused by its checksum, without asking the database.
 */
export function createApiKeyCheck(db: Db, now: () => number, isFresh: () => boolean): ApiKeyCheck {
  const remembered = new LRUCache<string, ApiKey>({ max: maxRemembered });
  let forgotten = 0;
  const counts = { hits: 0, misses: 0 };
  const isValid = (key: ApiKey) =>
    key.revokedAt === undefined && (key.expiresAt === undefined || key.expiresAt > now());
  async function look(id: string, secretHash: string): Promise<ApiKey | undefined> {
    const before = forgotten;
    const key = await findApiKey(db, id);
    if (!key || !timingSafeEqual(Buffer.from(key.secretHash), Buffer.from(secretHash))) return undefined;
    // What changed while it was being read must not be remembered in its old form.
    if (before === forgotten) remembered.set(secretHash, key);
    return isValid(key) ? key : undefined;
  }

  return {
    verify(presented) {
      const secretHash = credentialHash(presented);
      const known = isFresh() ? remembered.get(secretHash) : undefined;
      if (known) {
        counts.hits++;
        return isValid(known) ? known : undefined;
      }
      const id = apiKeyId(presented);
      if (id === undefined) return undefined;
      counts.misses++;
      return look(id, secretHash);
    },
    counts: () => ({ entries: remembered.size, ...counts }),
    forget(id) {
      forgotten++;
      for (const [hash, key] of remembered.entries()) if (key.id === id) remembered.delete(hash);
    },
  };
}

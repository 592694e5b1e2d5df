import { hash, timingSafeEqual } from 'node:crypto';
import { apiKeyId } from '../../domain/credentials/api-key.ts';
import type { Lookup } from '../../domain/visit.ts';
import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import { type ApiKey, findApiKey } from '../../store/api-keys.ts';
import { createRemembered, type Freshness } from '../../store/changes/cache.ts';
import type { Db } from '../../store/db.ts';

/** Identifies presented API keys, both for calls and for management. */
export type ApiKeyCheck = {
  /**
   * The key, or undefined for anything that is not currently valid; the reasons are not distinguished. `look` counts the
   * query for a key that was not seen before.
   */
  verify(presented: string, look?: Lookup): MaybePromise<ApiKey | undefined>;
  /** Drops a key by its id, because it changed. */
  invalidate(id: string): void;
  clear(): void;
  /** Since the start, for metrics. */
  counts(): { entries: number; hits: number; misses: number };
};

/** One workspace can fill three fourths of it. */
export const mostKeysRemembered = 13_500;

/** SHA-256 of a credential in hex, the form in which it is stored and remembered. */
export function keyHash(credential: string): string {
  return hash('sha256', credential, 'hex');
}

export type ApiKeyCheckOptions = {
  /** The database's time, epoch ms. */
  now: () => number;
  freshness: Freshness;
  /** Called with the id of each valid key that was presented. */
  onUse: (id: string) => void;
};

/** Remembers keys by their hash. A malformed key fails its checksum, without a query to the database. */
export function createApiKeyCheck(db: Db, { now, freshness, onUse }: ApiKeyCheckOptions): ApiKeyCheck {
  const remembered = createRemembered<ApiKey>({
    max: mostKeysRemembered,
    freshness,
    idsOf: (key) => [key.id],
    ownerOf: (key) => key.workspaceId,
  });
  const ifValid = (key: ApiKey | undefined) => {
    if (!key || key.revokedAt !== undefined || (key.expiresAt !== undefined && key.expiresAt <= now()))
      return undefined;
    onUse(key.id);
    return key;
  };
  async function read(id: string, secretHash: string, look: Lookup): Promise<{ value: ApiKey } | undefined> {
    look?.();
    const key = await findApiKey(db, id);
    if (!key || !timingSafeEqual(Buffer.from(key.secretHash), Buffer.from(secretHash))) return undefined;
    return { value: key };
  }

  return {
    verify(presented, look) {
      const secretHash = keyHash(presented);
      const known = remembered.get(secretHash);
      if (known) return ifValid(known);
      const id = apiKeyId(presented);
      if (id === undefined) return undefined;
      return remembered.load(secretHash, (before) => read(id, secretHash, before ? undefined : look)).then(ifValid);
    },
    invalidate: remembered.invalidate,
    clear: remembered.clear,
    counts: remembered.counts,
  };
}

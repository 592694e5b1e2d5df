import { LRUCache } from 'lru-cache';

/** How often one address may use the open endpoints. */
export type RateLimit = { take(address: string): boolean };

const windowMs = 60_000;
const maxAddresses = 100_000;

/** So many requests a minute and address; the memory it takes is bounded. */
export function createRateLimit(perMinute: number): RateLimit {
  const counts = new LRUCache<string, { left: number }>({ max: maxAddresses, ttl: windowMs });
  return {
    take(address) {
      let count = counts.get(address);
      if (!count) {
        count = { left: perMinute };
        counts.set(address, count);
      }
      return count.left-- > 0;
    },
  };
}

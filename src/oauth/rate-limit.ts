import ipaddr from 'ipaddr.js';
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
      const network = networkOf(address);
      let count = counts.get(network);
      if (!count) {
        count = { left: perMinute };
        counts.set(network, count);
      }
      return count.left-- > 0;
    },
  };
}

/** One household or server has a whole /64 of IPv6 addresses, so they count as one. */
function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4' ? parsed.toString() : (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':');
}

import { isIP, isIPv4 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Visit } from '../domain/visit.ts';

/**
 * Returns the client's network, which address limits count. Only the proxies in front of the service are trusted: with
 * n of them, the outermost one wrote the n-th entry of X-Forwarded-For from the right. Entries further left are claims
 * of the client. An entry that is not an address, such as `unknown`, counts as the connected proxy; otherwise each such
 * text would get its own limit.
 */
export function clientNetwork({ headers, socket }: Visit, trustedProxies: number): string {
  const direct = socket.remoteAddress ?? '';
  const entries = trustedProxies === 0 ? [] : String(headers['x-forwarded-for'] ?? '').split(',');
  const forwarded = entries.at(-trustedProxies)?.trim();
  return (forwarded && networkOf(forwarded)) || networkOf(direct) || direct;
}

const mostRemembered = 1000;
/**
 * Cache of recent addresses. Most requests come from an address that has just sent another one, and every request uses
 * this cache.
 */
const recentNetworks = new Map<string, string>();

/** Returns undefined if the text is not an address. */
function networkOf(written: string): string | undefined {
  const known = recentNetworks.get(written);
  if (known !== undefined) return known;
  // A copy, because a substring of a header keeps the whole header in memory.
  const address = written.length > longest ? written : Buffer.from(written).toString();
  const network = readNetwork(address);
  if (network === undefined) return undefined;
  if (recentNetworks.size >= mostRemembered) recentNetworks.clear();
  recentNetworks.set(address, network);
  return network;
}

/**
 * Returns the network of an address. A household or server usually has a whole /64 of IPv6 addresses, so a /64 counts
 * as one.
 */
function readNetwork(written: string): string | undefined {
  const address = plainAddress(written);
  if (address === undefined || isIPv4(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4' ? parsed.toString() : (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':');
}

/** Maximum length of an address, including everything that a proxy adds. */
const longest = 100;

/**
 * Extracts the address. Some proxies add its port, and then brackets or quotes (`"[2001:db8::1%eth0]:4711"`, RFC 7239,
 * 6).
 */
function plainAddress(written: string): string | undefined {
  if (isIPv4(written)) return written;
  if (written.length > longest) return undefined;
  const bare = written.replace(/^"(.+)"$/, '$1');
  const whole = /^\[(.+)\](?::[\w.-]+)?$/.exec(bare)?.[1] ?? bare;
  // Unchanged first, because the last group of an IPv6 address looks like a port.
  return [whole, whole.replace(/:[\w.-]+$/, '')]
    .map((text) => text.replace(/%.*$/, ''))
    .find((text) => isIP(text) !== 0);
}

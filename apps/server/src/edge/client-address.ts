import { isIP, isIPv4 } from 'node:net';
import type { ClientRequest } from '@toolhost/credentials/client-request';
import ipaddr from 'ipaddr.js';

/**
 * Returns the client's network, which address limits count. Only the proxies in front of the service are trusted: with
 * n of them, the outermost one wrote the n-th entry of X-Forwarded-For from the right. Entries further left are claims
 * of the client. An entry that is not an address, such as `unknown`, counts as the connected proxy; otherwise each such
 * text would get its own limit.
 */
export function getClientNetwork({ headers, socket }: ClientRequest, trustedProxies: number): string {
  const connectedAddress = socket.remoteAddress ?? '';
  const entries = trustedProxies === 0 ? [] : String(headers['x-forwarded-for'] ?? '').split(',');
  const forwarded = entries.at(-trustedProxies)?.trim();
  return (forwarded && getNetwork(forwarded)) || getNetwork(connectedAddress) || connectedAddress;
}

const maxCachedNetworks = 1000;
/**
 * Cache of recent addresses. Most requests come from an address that has just sent another one, and every request uses
 * this cache.
 */
const recentNetworks = new Map<string, string>();

/** Returns undefined if the text is not an address. */
function getNetwork(addressText: string): string | undefined {
  const cached = recentNetworks.get(addressText);
  if (cached !== undefined) return cached;
  // A copy, because a substring of a header keeps the whole header in memory.
  const address = addressText.length > maxAddressLength ? addressText : Buffer.from(addressText).toString();
  const network = parseNetwork(address);
  if (network === undefined) return undefined;
  if (recentNetworks.size >= maxCachedNetworks) recentNetworks.clear();
  recentNetworks.set(address, network);
  return network;
}

/**
 * Returns the network of an address. A household or server usually has a whole /64 of IPv6 addresses, so a /64 counts
 * as one.
 */
function parseNetwork(addressText: string): string | undefined {
  const address = extractAddress(addressText);
  if (address === undefined || isIPv4(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4' ? parsed.toString() : (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':');
}

/** Maximum length of an address, including everything that a proxy adds, in characters. */
const maxAddressLength = 100;

/**
 * Extracts the address. Some proxies add its port, and then brackets or quotes (`"[2001:db8::1%eth0]:4711"`, RFC 7239,
 * 6).
 */
function extractAddress(addressText: string): string | undefined {
  if (isIPv4(addressText)) return addressText;
  if (addressText.length > maxAddressLength) return undefined;
  const unquoted = addressText.replace(/^"(.+)"$/, '$1');
  const unbracketed = /^\[(.+)\](?::[\w.-]+)?$/.exec(unquoted)?.[1] ?? unquoted;
  // Unchanged first, because the last group of an IPv6 address looks like a port.
  return [unbracketed, unbracketed.replace(/:[\w.-]+$/, '')]
    .map((text) => text.replace(/%.*$/, ''))
    .find((text) => isIP(text) !== 0);
}

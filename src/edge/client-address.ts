import ipaddr from 'ipaddr.js';
import type { Visit } from '../domain/visit.ts';

/**
 * The address of the client. Only the proxies in front of the service are believed: with n of them, the outermost wrote
 * the n-th entry of X-Forwarded-For from the right, and anything further left is the client's own claim.
 */
export function clientAddress({ headers, socket }: Visit, trustedProxies: number): string {
  const direct = socket.remoteAddress ?? '';
  if (trustedProxies === 0) return direct;
  const forwarded = String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((entry) => entry.trim());
  return forwarded.at(-trustedProxies) || direct;
}

/** A household or server usually has a whole /64 of IPv6 addresses, so a /64 counts as one. */
export function networkOf(address: string): string {
  if (/^[\d.]*$/.test(address) || !ipaddr.isValid(address)) return address.slice(0, 100);
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4' ? parsed.toString() : (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':');
}

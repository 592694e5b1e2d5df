import { literalAddress } from '../../outbound/address.ts';

const longestPath = 200;
/** A part of a path that is longer than any name is likely to be a token. */
const longestSegment = 40;
/** Stands for the host that answered, which need not be named. */
const sameHost = 'http://same-host.invalid';

/**
 * Target of a redirect, for a person who corrects a URL: origin and path of a `Location`, or its path if it is relative.
 * No query, no fragment, no user name, no address and nothing that looks like a token. Undefined without one.
 */
export function shownRedirectTarget(location: string): string | undefined {
  const path = locationPath(location);
  if (path === undefined) return undefined;
  const { origin, hostname } = new URL(location, sameHost);
  if (origin === sameHost) return `${path} on the same host`;
  return literalAddress(hostname) === undefined ? `${origin}${path}` : `${path} on a host that is given by its address`;
}

/** The path of a `Location`, without what looks like a token. Undefined without one. */
export function locationPath(location: string): string | undefined {
  if (location === '' || !URL.canParse(location, sameHost)) return undefined;
  const { protocol, pathname } = new URL(location, sameHost);
  if (protocol !== 'http:' && protocol !== 'https:') return undefined;
  return pathname
    .split('/')
    .map((segment) => (segment.length > longestSegment ? '…' : segment))
    .join('/')
    .slice(0, longestPath);
}

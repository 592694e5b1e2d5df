import type { Redactor } from '../../domain/credentials/redactor.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { literalAddress } from '../../outbound/address.ts';

const longestPath = 200;
/** A part of a path that is longer than any name is likely to be a token. */
const longestSegment = 40;
/** Stands for the host that answered, which need not be named. */
const sameHost = 'http://same-host.invalid';

/**
 * Target of a redirect, for a person who corrects a URL: origin and path of a `Location`, or its path if it is relative.
 * No query, no fragment, no user name, no address, no credential and nothing that looks like a token. Undefined without
 * one.
 */
export function shownRedirectTarget(location: string, redact: Redactor): string | undefined {
  const target = targetOf(location, redact);
  if (!target) return undefined;
  const path = shownPath(target, redact);
  const { origin, hostname } = target;
  if (origin === sameHost) return `${path} on the same host`;
  if (redact.text(origin) !== origin) return undefined;
  return literalAddress(hostname) === undefined ? `${origin}${path}` : `${path} on a host that is given by its address`;
}

/** The path of a `Location`, without what looks like a token. Undefined without one. */
export function locationPath(location: string, redact: Redactor): string | undefined {
  const target = targetOf(location, redact);
  return target && shownPath(target, redact);
}

/**
 * A credential is removed before the URL is parsed, which takes segments of dots away, and once more afterwards. Tabs
 * and ends of lines do not belong to a URL (WHATWG URL, 4.4), and may stand between parts of a credential.
 */
function targetOf(location: string, redact: Redactor): URL | undefined {
  const clean = redact.text(location.replaceAll(/[\t\n\r]/g, ''));
  const target = clean === '' ? undefined : readUrl(clean, sameHost);
  return target?.protocol === 'http:' || target?.protocol === 'https:' ? target : undefined;
}

/** The path, cut only after a credential has been removed, because cutting leaves parts of one. */
function shownPath({ pathname }: URL, redact: Redactor): string {
  return redact
    .text(pathname)
    .split('/')
    .map((segment) => (segment.length > longestSegment ? '…' : segment))
    .join('/')
    .slice(0, longestPath);
}

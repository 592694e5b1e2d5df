import type { LoginServer } from '../login-server.ts';

/**
 * A parameter of a request as a message shows it: a word of a standard, such as `plain`. Anything else could be a secret, or
 * a text of a stranger for the person who reads it.
 */
export function shownWord(value: string | null): string {
  if (value === null || value === '') return 'missing';
  return isWord(value) ? `"${value}"` : 'something else';
}

export function isWord(value: string): boolean {
  return /^(?:[A-Za-z_:-]{1,60}|[A-Za-z0-9_]{1,8})$/.test(value);
}

const longestPath = 100;

/** An address that a request names. Of a path at another host nothing is shown, because it could hold a secret. */
export function shownAddress({ issuer }: LoginServer, text: string): string {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) return 'something that is no web address';
  if (url.origin !== new URL(issuer).origin) return url.origin.slice(0, longestPath);
  const more = url.search + url.hash === '' ? '' : ' with more behind it';
  return `${url.origin}${url.pathname.slice(0, longestPath)}${more}`;
}

/** The address of a server or of a view of it. */
export function resourceOf({ issuer }: LoginServer, view: string | undefined): string {
  return view === undefined ? issuer : `${issuer}/${view}`;
}

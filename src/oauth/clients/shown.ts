import { readUrl } from '../../domain/http/read-url.ts';
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

/**
 * An address that a request names. Only that of a server here is shown: any other could hold a secret, such as the link of
 * a file.
 */
export function shownAddress({ issuer }: LoginServer, text: string): string {
  const url = readUrl(text);
  if (!url || !/^https?:$/.test(url.protocol)) return 'something that is no web address';
  if (url.origin !== new URL(issuer).origin || !isServerPath(url.pathname)) return 'another address';
  return `${url.origin}${url.pathname}${url.search + url.hash === '' ? '' : ' with more behind it'}`;
}

/** Whether a path has the form of that of a server, or of a view of it. */
function isServerPath(path: string): boolean {
  return /^\/mcp(?:\/[a-z0-9-]{1,63}){1,2}$/.test(path);
}

/** The address of a server or of a view of it. */
export function resourceOf({ issuer }: LoginServer, view: string | undefined): string {
  return view === undefined ? issuer : `${issuer}/${view}`;
}

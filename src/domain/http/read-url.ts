/** Longest name of a host, and longest part of it between two dots, in characters (RFC 1035, 2.3.4). */
const longestName = 253;
const longestLabel = 63;
/** A port with its colon. */
const longestPort = 6;

/** What comes before the host, in URLs whose host is a name; and the host with what may stand beside it. */
const beforePath = /^(?:(?:https?|wss?|ftp|file):[/\\]*|[/\\]{2,})([^/\\?#]*)/i;
/** Characters that the standard reads as a dot in a host. */
const dots = /[.\u3002\uff0e\uff61]|%2e/gi;

/**
 * Reads a URL that somebody else wrote, by the WHATWG standard; undefined when it is none, or has a host that cannot exist.
 * The parser takes a time that grows with the square of a part of a host (punycode), so a host is measured before.
 */
export function readUrl(text: string, base?: string | URL): URL | undefined {
  if (!canHaveHost(text)) return undefined;
  const url = URL.parse(text, base) ?? undefined;
  return url && isShortName(url.hostname) ? url : undefined;
}

/** Whether the host of a URL, if it has one, is short enough to exist. */
export function canHaveHost(text: string): boolean {
  const [, authority = ''] = beforePath.exec(bare(text)) ?? [];
  const host = authority.slice(authority.lastIndexOf('@') + 1).replaceAll(/%[0-9a-f]{2}/gi, 'x');
  return host.length <= longestName + longestPort && isShortName(host.replace(/:\d*$/, ''));
}

/** The parser leaves these characters out too. */
function bare(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is left out
  return text.replace(/^[\u0000-\u0020]+/, '').replaceAll(/[\t\n\r]/g, '');
}

function isShortName(name: string): boolean {
  return name.length <= longestName && name.split(dots).every(({ length }) => length <= longestLabel);
}

/**
 * A query with parameters at its end, each in place of those with its name; `removed` are left out as well. All else stays
 * as it is written, which OAuth demands of the addresses of clients and providers (RFC 6749, 3.1 and 3.1.2);
 * `searchParams` would write it anew.
 */
export function addedQuery(
  query: string,
  added: readonly (readonly [name: string, value: string])[],
  removed: readonly string[] = [],
): string {
  const names = new Set([...removed, ...added.map(([name]) => name)]);
  const isReplaced = (pair: string) => [...new URLSearchParams(pair).keys()].some((name) => names.has(name));
  const kept = query === '' ? [] : query.split('&').filter((pair) => !isReplaced(pair));
  return [...kept, new URLSearchParams(added.map(([name, value]) => [name, value]))].join('&');
}

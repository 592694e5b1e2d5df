/** Maximum length of a host name, and of one of its labels, in characters (RFC 1035, 2.3.4). */
const maxHostLength = 253;
const maxLabelLength = 63;
/** Maximum length of a port with its colon. */
const maxPortLength = 6;

/**
 * Matches the scheme and the authority of a URL with a host; the group contains the host with user information and
 * port.
 */
const authorityPattern = /^(?:(?:https?|wss?|ftp|file):[/\\]*|[/\\]{2,})([^/\\?#]*)/i;
/** Characters that the WHATWG standard reads as a dot in a host. */
const dotPattern = /[.\u3002\uff0e\uff61]|%2e/gi;

/**
 * Parses an untrusted URL by the WHATWG standard. Undefined if it is not a URL or its host cannot exist. The parser's
 * time grows with the square of a host label's length (punycode), so hosts are measured first.
 */
export function parseUrl(text: string, base?: string | URL): URL | undefined {
  if (!isHostShortEnough(text)) return undefined;
  const url = URL.parse(text, base) ?? undefined;
  return url && isShortHostName(url.hostname) ? url : undefined;
}

/** Returns true if the host of a URL, if any, is short enough to exist. */
export function isHostShortEnough(text: string): boolean {
  const [, authority = ''] = authorityPattern.exec(removeIgnoredCharacters(text)) ?? [];
  const host = authority.slice(authority.lastIndexOf('@') + 1).replaceAll(/%[0-9a-f]{2}/gi, 'x');
  return host.length <= maxHostLength + maxPortLength && isShortHostName(host.replace(/:\d*$/, ''));
}

/** Removes characters that the URL parser ignores. */
function removeIgnoredCharacters(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters on purpose
  return text.replace(/^[\u0000-\u0020]+/, '').replaceAll(/[\t\n\r]/g, '');
}

function isShortHostName(name: string): boolean {
  return name.length <= maxHostLength && name.split(dotPattern).every(({ length }) => length <= maxLabelLength);
}

/**
 * Adds parameters to the end of a query. Each replaces existing ones with its name; those in `removed` are removed.
 * Everything else stays as written, as OAuth requires for the URLs of clients and providers (RFC 6749, 3.1 and 3.1.2);
 * `searchParams` would reformat it.
 */
export function addQueryParameters(
  query: string,
  added: readonly (readonly [name: string, value: string])[],
  removed: readonly string[] = [],
): string {
  const names = new Set([...removed, ...added.map(([name]) => name)]);
  const isReplaced = (pair: string) => [...new URLSearchParams(pair).keys()].some((name) => names.has(name));
  const retainedPairs = query === '' ? [] : query.split('&').filter((pair) => !isReplaced(pair));
  return [...retainedPairs, new URLSearchParams(added.map(([name, value]) => [name, value]))].join('&');
}

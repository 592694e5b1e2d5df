import { isIP } from 'node:net';
import type { EgressProxy } from '@toolhost/safe-http/egress-proxy';
import { toHostName } from '@toolhost/safe-http/host-name';

/** Parsers for settings that name an origin, a URL, a host, or an address. */

/** Parses an http or https URL with a valid host, without `*`, and by default without a user name and password. */
export function parseWebUrl(text: string, { allowsCredentials = false } = {}): URL | undefined {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  if (!allowsCredentials && (url.username || url.password)) return undefined;
  return isHost(url.hostname.replace(/^\[(.*)\]$/, '$1')) ? url : undefined;
}

/** Normalizes an http or https origin to the form that browsers send. Returns undefined if there is a path. */
export function parseWebOrigin(text: string): string | undefined {
  const url = parseWebUrl(text);
  return url && /^https?:\/\/[^/?#\\]+\/?$/i.test(text) ? url.origin : undefined;
}

/** Normalizes a service URL: an origin and an optional base path, without a trailing slash. */
export function parseServiceUrl(text: string): string | undefined {
  const [, originText = '', path = ''] = /^(\w+:\/\/[^/?#\\]+)((?:\/[\w~-][\w.~-]*)*)\/?$/.exec(text) ?? [];
  const origin = parseWebOrigin(originText);
  return origin && origin + path;
}

/** Returns true if the text is an IP address or a valid host name. */
export function isHost(text: string): boolean {
  return isIP(text) !== 0 || toHostName(text) !== undefined;
}

export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** Quotes a setting for a message: without user name, password, and query, and truncated to 100 characters. */
export function quoteSetting(text: string): string {
  const [withoutSecrets = ''] = text.replace(/\/\/[^/]*@/g, '//…@').split('?');
  return JSON.stringify(withoutSecrets.slice(0, 100));
}

/** Matches origins with a custom scheme, such as those of browser extensions. */
const programOrigin = /^(?!(?:https?|wss?|ftp|file):)([a-z][a-z0-9+.-]*):\/\/([\w.-]+(?::\d+)?)\/?$/i;

/** Parses `ALLOWED_ORIGINS`. @throws Error that names the invalid entry */
export function parseOrigins(text: string): string[] {
  return splitEntries(text).map((entry) => {
    const [, scheme = '', originHost] = programOrigin.exec(entry) ?? [];
    const origin = originHost === undefined ? parseWebOrigin(entry) : `${scheme.toLowerCase()}://${originHost}`;
    if (origin !== undefined) return origin;
    throw new Error(
      `ALLOWED_ORIGINS: found ${quoteSetting(entry)}; allowed: origins such as https://app.example.com, comma-separated, each with scheme and host, without a path or *`,
    );
  });
}

/** Parses `ALLOWED_HOSTS`: host names of this machine, each with an optional port. @throws Error */
export function parseAllowedHosts(text: string): string[] {
  return splitEntries(text).map((entry) => {
    const [, name = '', port] = /^(.+?)(?::(\d{1,5}))?$/.exec(entry) ?? [];
    const isValidName = isHost(name.replace(/^\[(.*)\]$/, '$1')) && (name.startsWith('[') || !name.includes(':'));
    if (isValidName && Number(port ?? 1) > 0 && Number(port ?? 1) <= 65_535) return entry.toLowerCase();
    throw new Error(
      `ALLOWED_HOSTS: found ${quoteSetting(entry)}; allowed: hosts such as toolhost or host.docker.internal:8080, comma-separated, without a scheme or *`,
    );
  });
}

/** A host name with an optional port, and a token of printable ASCII. */
const challengePattern = /^([\w.-]+(?::\d{1,5})?)=([\x21-\x2b\x2d-\x7e]{1,500})$/;

/** Parses `OPENAI_APPS_CHALLENGE`. Returns the token of each host. @throws Error */
export function parseAppsChallenges(text: string): Map<string, string> {
  return new Map(
    splitEntries(text).map((entry) => {
      const [, host = '', token = ''] = challengePattern.exec(entry) ?? [];
      if (isHost(host.replace(/:\d+$/, ''))) return [host.toLowerCase(), token];
      throw new Error(
        `OPENAI_APPS_CHALLENGE: found ${quoteSetting(entry.split('=')[0] ?? '')}; allowed: host=token entries such as tools.example.com=abc123, comma-separated`,
      );
    }),
  );
}

/** Splits a comma-separated setting. */
function splitEntries(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/**
 * Returns the problem of an issuer, or undefined. The issuer may also be the URL of the provider's metadata document,
 * which for some providers requires a query.
 */
export function checkIssuer(text: string, mode: 'local' | 'production'): string | undefined {
  const url = parseWebUrl(text);
  if (url?.hash !== '')
    return `OIDC_ISSUER: found ${quoteSetting(text)}; allowed: the provider's issuer URL, such as https://login.example.com`;
  if (url.protocol === 'https:' || mode === 'local' || isLoopback(url.hostname)) return undefined;
  return `OIDC_ISSUER: found ${quoteSetting(text)}; allowed in production mode: https://, because the client secret is sent there, or http:// on this machine`;
}

/** Parses `EGRESS_PROXY`. @throws Error whose message contains no password */
export function parseEgressProxy(text: string): EgressProxy | undefined {
  if (text === '') return undefined;
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' || url.hostname === '' || url.pathname !== '/' || url.search || url.hash)
    throw new Error(
      'EGRESS_PROXY: allowed: the URL of a proxy that supports CONNECT, such as http://proxy.example.com:3128 or http://user:password@proxy.example.com:3128',
    );
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || 80),
    authorization: credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`,
  };
}

import { isIP } from 'node:net';
import type { EgressProxy } from './outbound/egress-proxy.ts';
import { hostNameOf } from './outbound/host-name.ts';

/** Settings that name an origin, a URL, a host or an address. */

/** A URL of the web whose host can exist, without `*`. Only where it says so may it have a user name and a password. */
export function webUrl(text: string, user: 'without a password' | 'with a password' = 'without a password') {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  if (user === 'without a password' && (url.username || url.password)) return undefined;
  return isHost(url.hostname.replace(/^\[(.*)\]$/, '$1')) ? url : undefined;
}

/** An origin as browsers write it, without a path, in any spelling that a URL may have. */
export function webOrigin(text: string): string | undefined {
  const url = webUrl(text);
  return url && /^https?:\/\/[^/?#\\]+\/?$/i.test(text) ? url.origin : undefined;
}

/** The address of a service: an origin, and the path that everything of the service is below, without a slash at its end. */
export function serviceAddress(text: string): string | undefined {
  const [, start = '', path = ''] = /^(\w+:\/\/[^/?#\\]+)((?:\/[\w~-][\w.~-]*)*)\/?$/.exec(text) ?? [];
  const origin = webOrigin(start);
  return origin && origin + path;
}

/** Whether a text is an address, or can be the name of a host. */
export function isHost(text: string): boolean {
  return isIP(text) !== 0 || hostNameOf(text) !== undefined;
}

export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/** A setting in a message: no user name, password or query, and not all of a long one. */
export function quotedSetting(text: string): string {
  const [plain = ''] = text.replace(/\/\/[^/]*@/g, '//…@').split('?');
  return JSON.stringify(plain.slice(0, 100));
}

/** Origins of pages that belong to a program, such as a browser extension; the part after the scheme is the program's. */
const programOrigin = /^(?!(?:https?|wss?|ftp|file):)([a-z][a-z0-9+.-]*):\/\/([\w.-]+(?::\d+)?)\/?$/i;

/** Parses `ALLOWED_ORIGINS`. @throws Error with a sentence that names the entry */
export function parseOrigins(text: string): string[] {
  return entriesOf(text).map((entry) => {
    const [, scheme = '', rest] = programOrigin.exec(entry) ?? [];
    const origin = rest === undefined ? webOrigin(entry) : `${scheme.toLowerCase()}://${rest}`;
    if (origin !== undefined) return origin;
    throw new Error(
      `ALLOWED_ORIGINS: found ${quotedSetting(entry)}; allowed: origins such as https://app.example.com, comma-separated; name each page's scheme and host, without a path and without *`,
    );
  });
}

/** Names of this machine, each with a port or without. @throws Error */
export function parseAllowedHosts(text: string): string[] {
  return entriesOf(text).map((entry) => {
    const [, name = '', port] = /^(.+?)(?::(\d{1,5}))?$/.exec(entry) ?? [];
    const isName = isHost(name.replace(/^\[(.*)\]$/, '$1')) && (name.startsWith('[') || !name.includes(':'));
    if (isName && Number(port ?? 1) > 0 && Number(port ?? 1) <= 65_535) return entry.toLowerCase();
    throw new Error(
      `ALLOWED_HOSTS: found ${quotedSetting(entry)}; allowed: hosts such as toolhost or host.docker.internal:8080, comma-separated, without a scheme and without *`,
    );
  });
}

/** Entries of a setting with commas between them. */
function entriesOf(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/**
 * Why an issuer cannot be used, or undefined. It may be the address of the provider's document, which some providers
 * have only with a query.
 */
export function issuerProblem(text: string, mode: 'local' | 'production'): string | undefined {
  const url = webUrl(text);
  if (url?.hash !== '')
    return `OIDC_ISSUER: found ${quotedSetting(text)}; allowed: the URL that the provider calls its issuer, such as https://login.example.com`;
  if (url.protocol === 'https:' || mode === 'local' || isLoopback(url.hostname)) return undefined;
  return `OIDC_ISSUER: found ${quotedSetting(text)}; allowed in production mode: https://, because the client secret is sent there; http:// only to this machine`;
}

/** Reads `EGRESS_PROXY`. @throws Error with a sentence that holds no password */
export function parseEgressProxy(text: string): EgressProxy | undefined {
  if (text === '') return undefined;
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' || url.hostname === '' || url.pathname !== '/' || url.search || url.hash)
    throw new Error(
      'EGRESS_PROXY: allowed: the address of a proxy that takes CONNECT, such as http://proxy.example.com:3128 or http://user:password@proxy.example.com:3128',
    );
  const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || 80),
    authorization: user === ':' ? undefined : `Basic ${Buffer.from(user).toString('base64')}`,
  };
}

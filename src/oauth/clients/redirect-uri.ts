import { knownClients } from '../../domain/clients/clients.ts';
import { clientSchemes, wellKnownMakers } from '../../domain/clients/redirect-schemes.ts';
import type { OwnHosts } from '../../domain/http/own-hosts.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { routes } from '../../routes.ts';

/** Reversed domain of the program's maker, such as com.example.agent (RFC 8252, 7.1). */
const reverseDomain = /^(?:[a-z]{2,}|xn--[a-z0-9-]+)(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;

function isPrivateUse(scheme: string): boolean {
  return clientSchemes.includes(scheme) || (reverseDomain.test(scheme) && !isOfWellKnownMaker(scheme));
}

/** The maker's name is one of the first three labels: after the top-level domain, or first where it uses no domain. */
function isOfWellKnownMaker(scheme: string): boolean {
  return scheme.split('.', 3).some((label) => wellKnownMakers.includes(label));
}

const loopback = /^(127\.0\.0\.1|localhost|\[::1\])$/;

export function isLoopbackRedirect(uri: string): boolean {
  const url = readUrl(uri);
  return url?.protocol === 'http:' && loopback.test(url.hostname);
}

/**
 * The reason why a client may not register a redirect URI, or undefined. Without a port, a loopback address stands for
 * any; whether the answer would lead here is known when a port is requested.
 */
export function redirectUriProblem(uri: string, ownHosts: OwnHosts): string | undefined {
  const problem = formProblem(uri);
  if (problem !== undefined || (isLoopbackRedirect(uri) && new URL(uri).port === '')) return problem;
  return leadsHere(uri, ownHosts) ? 'leads to this service itself, where no client waits for the answer' : undefined;
}

/**
 * Whether a redirect URI leads to this service, other than to the dashboard's check of a login. The callbacks of all
 * servers are here: they pass a code on to the token endpoint of a tenant, and the person who is asked to consent would
 * only see the name of this service.
 */
export function leadsHere(uri: string, { names, path, include }: OwnHosts): boolean {
  const url = new URL(uri);
  if (!/^https?:$/.test(url.protocol) || !include(url)) return false;
  return !names.has(url.host) || uri !== url.origin + path + routes.loginCheck;
}

/**
 * The reason why a URI is no redirect URI, or undefined. Allowed are https anywhere, http on
 * loopback only, and private-use schemes that are a reversed domain (RFC 8252, 7.1) or belong to a known client. Any
 * other scheme could start a program that has nothing to do with logins. The same holds for makers whose programs are
 * on nearly every device: none of their programs is an agent that logs in with such a scheme.
 */
function formProblem(uri: string): string | undefined {
  if (uri.length > 2000) return 'is longer than 2000 characters';
  const url = /[^\x21-\x7e]|[\\<>"^`{|}]/.test(uri) ? undefined : readUrl(uri);
  if (!url) return 'is not a URI';
  if (url.hash || uri.includes('#')) return 'must not have a #fragment';
  if (url.username || url.password) return 'must not have a user name or password';
  if (url.protocol === 'https:') return undefined;
  if (url.protocol === 'http:')
    return loopback.test(url.hostname) ? undefined : 'must be https, or http on a loopback address';
  const scheme = url.protocol.slice(0, -1);
  if (isPrivateUse(scheme)) return undefined;
  return `has the scheme ${scheme.slice(0, 40)}; allowed: https, http on loopback, a reversed domain of the agent’s maker such as com.example.agent, ${clientSchemes.join(', ')}`;
}

/**
 * Whether an answer may be redirected there before anyone has consented. Loopback leads to a program on the person's
 * own device. The URIs of known clients belong to them, no matter who registers them.
 */
export function isKnownRedirect(uri: string): boolean {
  return isLoopbackRedirect(uri) || knownClients.some(({ redirectUris }) => redirectUris.includes(uri));
}

/** Whether a requested URI equals a registered one; the port of a loopback address may differ (RFC 8252, 7.3). */
export function isRegisteredRedirect(registered: readonly string[], requested: string): boolean {
  if (formProblem(requested) !== undefined) return false;
  if (registered.includes(requested)) return true;
  if (!isLoopbackRedirect(requested)) return false;
  const bare = withoutPort(requested);
  return registered.some((uri) => isLoopbackRedirect(uri) && withoutPort(uri) === bare);
}

/** The URI without its port. Nothing else is normalised, so that dot segments and the like stay different. */
function withoutPort(uri: string): string {
  return uri.replace(/^(http:\/\/(?:\[::1\]|[^/:?#]+))(?::\d{1,5})?(?=[/?#]|$)/i, '$1');
}

/** Whether the answer stays on the person's device, where any program could be waiting for it (RFC 8252, 8.6). */
export function isLocalRedirect(uri: string): boolean {
  return new URL(uri).protocol !== 'https:';
}

/** Text for people: the host of a web address, anything else with its scheme so that it cannot pass for a web address. */
export function redirectTarget(uri: string): string {
  const { protocol, host } = new URL(uri);
  if (/^https?:$/.test(protocol)) return host;
  return host === '' ? protocol : `${protocol}//${host}`;
}

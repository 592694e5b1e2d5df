import { OAuthError } from '@toolhost/errors/errors';
import { commandLineRedirectUri } from '@toolhost/mcp-clients/clients';
import type { LoginRules } from '@toolhost/tool-config/login';
import { routes } from '../routes.ts';
import { findMissingScopes } from '../store/logins/missing-scopes.ts';
import {
  createMissingError,
  findClient,
  formatWord,
  isKnownRedirect,
  isOwnServiceUrl,
  isRegisteredRedirect,
  type OAuthClient,
  rejectDuplicates,
  resolveResource,
} from './clients.ts';
import { showConsent } from './consent.ts';
import { startIdentification } from './identification.ts';
import { createClientRedirect, createErrorWithLink } from './login-pages.ts';
import { type BrowserResponse, type LoginServer, offlineScope, type RequestDeps } from './oauth-deps.ts';

/**
 * Handles `GET /mcp/{slug}/authorize`: validates the request and shows our own consent page. Nothing is stored and no
 * one is redirected before a person has agreed. Anyone can register a client and send such a link, so an error
 * redirects without a click only to a known redirect URI (RFC 9700, 4.11.2).
 * @throws OAuthError before the redirect URI is verified; the router shows it as a page
 */
export async function authorize(
  server: LoginServer,
  query: URLSearchParams,
  cookieHeader: string | undefined,
  deps: RequestDeps,
): Promise<BrowserResponse> {
  rejectDuplicates(query);
  const client = await findClient(server, query.get('client_id'), deps);
  const redirectUri = checkRedirectUri(client, query.get('redirect_uri'), deps);
  try {
    checkResponseType(query);
    checkResponseMode(query);
    checkNoRequestObject(query);
    const codeChallenge = checkPkce(query);
    const { login } = server;
    if (login && !isAllowedClient(login.rules, client, redirectUri, deps)) throw createClientError();
    const requestedView = resolveResource(server, query.getAll('resource'));
    const request = {
      clientId: client.id,
      clientName: client.name,
      redirectUri,
      state: query.get('state') ?? undefined,
      codeChallenge,
      scope: await getGrantedScope(server, query.get('scope'), deps),
      // Rules for people decide the view of each person at every URL of the server.
      view: login?.rules.views ? undefined : requestedView,
    };
    return login?.identifiesPeople
      ? await startIdentification({ ...server, login }, client, request, cookieHeader, deps)
      : await showConsent(server, client, request, cookieHeader, deps);
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    const outcome = { error, state: query.get('state') ?? undefined };
    if (isKnownRedirect(redirectUri)) return createClientRedirect(server, redirectUri, outcome);
    return createErrorWithLink(server, client, redirectUri, outcome);
  }
}

/**
 * Returns true if a client may log in: the URL of its document is listed, or the redirect URIs that it registered are
 * all listed. Its name and its id prove nothing. The login check of the dashboard and the command line are always
 * allowed.
 */
function isAllowedClient(
  { clients }: LoginRules,
  { id, host, redirectUris }: OAuthClient,
  redirectUri: string,
  { ownHosts, baseUrl }: RequestDeps,
): boolean {
  if (clients === undefined) return true;
  if ([...ownHosts.names].some((name) => redirectUri === ownHosts.getBaseUrl(name) + routes.loginCheck)) return true;
  if (redirectUri === baseUrl + routes.loginCheck) return true;
  if (host !== undefined) return clients.includes(id) || isRegisteredRedirect(clients, redirectUri);
  return redirectUris.every((uri) => isRegisteredRedirect([...clients, commandLineRedirectUri], uri));
}

function createClientError(): OAuthError {
  return new OAuthError(
    'access_denied',
    'this server does not allow this client; use one of the clients that its owner has listed, or ask the owner to add it',
  );
}

function checkRedirectUri(client: OAuthClient, requested: string | null, { ownHosts }: RequestDeps): string {
  if (!requested) throw createMissingError('redirect_uri');
  if (!isRegisteredRedirect(client.redirectUris, requested))
    throw new OAuthError('invalid_request', 'the client has not registered this redirect_uri');
  // Checked again, because since the registration this service may have got other hosts, or the port may differ.
  if (isOwnServiceUrl(requested, ownHosts)) {
    throw new OAuthError(
      'invalid_request',
      'redirect_uri leads to this service itself, where no client waits for the response',
    );
  }
  return requested;
}

function checkResponseType(query: URLSearchParams): void {
  const type = query.get('response_type');
  if (type === 'code') return;
  throw new OAuthError(
    type ? 'unsupported_response_type' : 'invalid_request',
    `response_type is ${formatWord(type)}; it must be "code"`,
  );
}

function checkResponseMode(query: URLSearchParams): void {
  const mode = query.get('response_mode') ?? 'query';
  if (mode === 'query') return;
  throw new OAuthError('invalid_request', `response_mode is ${formatWord(mode)}; it must be "query" or absent`);
}

function checkNoRequestObject(query: URLSearchParams): void {
  const name = ['request', 'request_uri'].find((parameter) => query.has(parameter));
  if (name === undefined) return;
  throw new OAuthError('invalid_request', `${name} is not supported; send the parameters themselves`);
}

/** Validates PKCE, which is required, with S256 only (RFC 7636; RFC 9700, 2.1.1). */
function checkPkce(query: URLSearchParams): string {
  const method = query.get('code_challenge_method');
  if (method !== 'S256')
    throw new OAuthError('invalid_request', `code_challenge_method is ${formatWord(method)}; it must be "S256" (PKCE)`);
  const challenge = query.get('code_challenge') ?? '';
  if (/^[A-Za-z0-9_-]{43}$/.test(challenge)) return challenge;
  const found = challenge === '' ? 'missing' : `${challenge.length} characters`;
  throw new OAuthError('invalid_request', `code_challenge is ${found}; it must be 43 characters of base64url (PKCE)`);
}

/**
 * Returns the requested scopes that the server has, or all scopes of the server if there are none. Offline access is
 * always included if the server has it, because it is not advertised and no client requests it. A scope that the server
 * does not have is included if its upstream recently reported it as missing.
 */
async function getGrantedScope(server: LoginServer, requested: string | null, deps: RequestDeps): Promise<string> {
  const requestedScopes = (requested ?? '').split(' ');
  const hasRequested = server.scopes.some((scope) => requestedScopes.includes(scope));
  const granted = server.scopes.filter(
    (scope) => !hasRequested || requestedScopes.includes(scope) || scope === offlineScope,
  );
  const otherScopes = requestedScopes.filter((scope) => scope !== '' && !server.scopes.includes(scope));
  const missingScopes = otherScopes.length === 0 ? [] : await findMissingScopes(deps.db, server.id, deps.now());
  return [...new Set([...granted, ...otherScopes.filter((scope) => missingScopes.includes(scope))])].join(' ');
}

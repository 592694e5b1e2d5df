import { OAuthError } from '../../errors.ts';
import type { OAuthClient } from '../clients/client.ts';
import { isKnownRedirect, isRegisteredRedirect, leadsHere } from '../clients/redirect-uri.ts';
import { checkResource, findClient, rejectDuplicates, shownWord } from '../clients/request-checks.ts';
import { hashOf, newSecret } from '../credentials.ts';
import type { LoginServer } from '../login-server.ts';
import { offlineScope } from '../metadata.ts';
import { type OAuthAnswer, type RequestParts, spans } from '../parts.ts';
import { clientRedirect, errorWithLink } from './client-redirect.ts';
import { type ConsentRequest, consentContext } from './consent.ts';
import { consentCookie, consentPrefix, cookieJar } from './cookies.ts';
import { consentPage } from './pages.ts';

/**
 * `GET /mcp/{slug}/authorize`: checks the request and shows our own consent page. Nothing is stored and nobody is
 * redirected before a person has agreed. Anyone can register a client and send such a link, so an error redirects
 * without a click only to a known redirect URI (RFC 9700, 4.11.2).
 * @throws OAuthError before the redirect URI is verified; the router shows it as a page
 */
export async function authorize(
  server: LoginServer,
  query: URLSearchParams,
  cookieHeader: string | undefined,
  parts: RequestParts,
): Promise<OAuthAnswer> {
  rejectDuplicates(query);
  const client = await findClient(server, query.get('client_id'), parts);
  const redirectUri = checkRedirectUri(client, query.get('redirect_uri'), parts);
  try {
    checkResponseType(query);
    checkResponseMode(query);
    checkNoRequestObject(query);
    const codeChallenge = checkPkce(query);
    const view = checkResource(server, query.getAll('resource'));
    const jar = cookieJar(parts.baseUrl);
    const browser = newSecret(parts.random);
    const consentId = newSecret(parts.random);
    const request: ConsentRequest = {
      consentId,
      clientId: client.id,
      clientName: client.name,
      redirectUri,
      state: query.get('state') ?? undefined,
      codeChallenge,
      scope: grantedScope(server, query.get('scope')),
      view,
      browser: hashOf(browser),
      expiresAt: parts.now() + spans.consent,
    };
    const sealed = parts.keyring.seal(JSON.stringify(request), consentContext(server, view));
    const html = consentPage(server, client, request, sealed);
    const cookies = [
      jar.set(consentCookie(hashOf(consentId)), browser, spans.consent),
      ...jar.clearOlder(cookieHeader, consentPrefix),
    ];
    return { kind: 'page', status: 200, html, cookies };
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    const outcome = { error, state: query.get('state') ?? undefined };
    if (isKnownRedirect(redirectUri)) return clientRedirect(server, redirectUri, outcome);
    return errorWithLink(server, client, redirectUri, outcome);
  }
}

function checkRedirectUri(client: OAuthClient, requested: string | null, { ownHosts }: RequestParts): string {
  if (!requested) throw new OAuthError('invalid_request', 'redirect_uri is missing');
  if (!isRegisteredRedirect(client.redirectUris, requested)) {
    throw new OAuthError('invalid_request', 'redirect_uri is not one that the client has registered');
  }
  // Checked again: the client may have registered before this service had its hosts, or with another port.
  if (leadsHere(requested, ownHosts)) {
    throw new OAuthError('invalid_request', 'redirect_uri leads to this service itself, where no client waits for it');
  }
  return requested;
}

function checkResponseType(query: URLSearchParams): void {
  const type = query.get('response_type');
  if (type === 'code') return;
  throw new OAuthError('unsupported_response_type', `response_type is ${shownWord(type)}; it must be "code"`);
}

function checkResponseMode(query: URLSearchParams): void {
  const mode = query.get('response_mode') ?? 'query';
  if (mode === 'query') return;
  throw new OAuthError('invalid_request', `response_mode is ${shownWord(mode)}; it must be "query", or left out`);
}

function checkNoRequestObject(query: URLSearchParams): void {
  const name = ['request', 'request_uri'].find((each) => query.has(each));
  if (name === undefined) return;
  throw new OAuthError('invalid_request', `${name} is not supported; give the parameters themselves`);
}

/** PKCE is required, with S256 only (RFC 7636; RFC 9700, 2.1.1). */
function checkPkce(query: URLSearchParams): string {
  const method = query.get('code_challenge_method');
  if (method !== 'S256')
    throw new OAuthError('invalid_request', `code_challenge_method is ${shownWord(method)}; it must be "S256" (PKCE)`);
  const challenge = query.get('code_challenge') ?? '';
  if (/^[A-Za-z0-9_-]{43}$/.test(challenge)) return challenge;
  const found = challenge === '' ? 'missing' : `${challenge.length} characters`;
  throw new OAuthError('invalid_request', `code_challenge is ${found}; it must be 43 characters of base64url (PKCE)`);
}

/**
 * The requested scopes that the server has, or all of its scopes when it has none of those. Offline access is always
 * included where the server has it: it is not advertised, so no client requests it.
 */
function grantedScope(server: LoginServer, requested: string | null): string {
  const wanted = (requested ?? '').split(' ');
  const hasRequested = server.scopes.some((scope) => wanted.includes(scope));
  return server.scopes.filter((scope) => !hasRequested || wanted.includes(scope) || scope === offlineScope).join(' ');
}

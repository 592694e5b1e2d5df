import { hashSecret, newSecret } from '@toolhost/credentials/ids';
import { OAuthError } from '@toolhost/errors/errors';
import { findOldestIds, getCookieScope, getUniqueCookie } from '../http/cookies.ts';
import { formatAgreement, insertAuthorization } from '../store/logins/grants.ts';
import { findMissingScopes } from '../store/logins/missing-scopes.ts';
import { contexts } from '../store/sealing/sealing.ts';
import { findWorkspace } from '../store/workspaces.ts';
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
import { createClientRedirect, createErrorWithLink, renderConsentPage, renderDeparturePage } from './login-pages.ts';
import {
  type BrowserResponse,
  durations,
  type LoginServer,
  type OAuthDeps,
  offlineScope,
  type RequestDeps,
} from './oauth-deps.ts';

/** A client's request that a person is asked to allow. The consent form contains it in sealed form. */
export type ConsentRequest = {
  consentId: string;
  clientId: string;
  clientName: string;
  redirectUri: string;
  state: string | undefined;
  codeChallenge: string;
  scope: string;
  /** View that the login is limited to. Undefined for the whole server. */
  view: string | undefined;
  /** Hash of the cookie of the browser that was shown the form. */
  browser: string;
  expiresAt: number;
};

/**
 * Returns the context in which a form is sealed. A form of another server, another view, or an earlier agreement of
 * this server cannot be opened.
 */
function getConsentContext(server: LoginServer, view: string | undefined): string {
  return `consent|${server.id}|${formatAgreement(server.agreement, view)}`;
}

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
    const view = resolveResource(server, query.getAll('resource'));
    const cookieStore = createCookieStore(deps.baseUrl);
    const browserSecret = newSecret(deps.random);
    const consentId = newSecret(deps.random);
    const request: ConsentRequest = {
      consentId,
      clientId: client.id,
      clientName: client.name,
      redirectUri,
      state: query.get('state') ?? undefined,
      codeChallenge,
      scope: await getGrantedScope(server, query.get('scope'), deps),
      view,
      browser: hashSecret(browserSecret),
      expiresAt: deps.now() + durations.consent,
    };
    const sealed = deps.keyring.seal(JSON.stringify(request), getConsentContext(server, view));
    const workspace = server.operator === undefined ? await findWorkspace(deps.db, server.workspaceId) : undefined;
    const operator = server.operator ?? workspace?.name ?? server.workspaceId;
    const html = renderConsentPage({ ...server, operator }, client, request, sealed);
    const cookies = [
      cookieStore.set(getConsentCookieName(consentId), browserSecret, durations.consent),
      ...cookieStore.clearOldest(cookieHeader, consentPrefix),
    ];
    return { status: 200, html, cookies };
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    const outcome = { error, state: query.get('state') ?? undefined };
    if (isKnownRedirect(redirectUri)) return createClientRedirect(server, redirectUri, outcome);
    return createErrorWithLink(server, client, redirectUri, outcome);
  }
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
async function getGrantedScope(server: LoginServer, requested: string | null, deps: OAuthDeps): Promise<string> {
  const requestedScopes = (requested ?? '').split(' ');
  const hasRequested = server.scopes.some((scope) => requestedScopes.includes(scope));
  const granted = server.scopes.filter(
    (scope) => !hasRequested || requestedScopes.includes(scope) || scope === offlineScope,
  );
  const otherScopes = requestedScopes.filter((scope) => scope !== '' && !server.scopes.includes(scope));
  const missingScopes = otherScopes.length === 0 ? [] : await findMissingScopes(deps.db, server.id, deps.now());
  return [...new Set([...granted, ...otherScopes.filter((scope) => missingScopes.includes(scope))])].join(' ');
}

/**
 * Sealed part of a login in progress. A reader of the database can neither finish the login nor forge its response
 * without it.
 */
export type LoginSecrets = {
  /** PKCE verifier that this service uses with the provider. */
  verifier: string;
  /** The client's own `state`. */
  clientState?: string | undefined;
  /** The server's agreement at the time of consent. A server that has changed since does not get the login. */
  agreement: string;
};

/**
 * Handles `POST /mcp/{slug}/consent`, with the person's decision. Only now is a login stored, and bound to this browser
 * by a cookie. Both responses are pages instead of redirects, because browsers apply `form-action` to redirects that
 * follow a form.
 * @throws OAuthError access_denied if the form does not belong to this browser, or was already used
 */
export async function handleDecision(
  server: LoginServer,
  form: URLSearchParams,
  headers: FormHeaders,
  deps: OAuthDeps,
): Promise<BrowserResponse> {
  const request = openConsentForm(server, form, headers, deps);
  const cookieStore = createCookieStore(deps.baseUrl);
  const clearedCookie = cookieStore.clear(getConsentCookieName(request.consentId));
  if (form.get('decision') !== 'allow') {
    const error = new OAuthError('access_denied', 'the person denied access');
    const outcome = { error, state: request.state };
    const options = { cookies: [clearedCookie], isFormResponse: true };
    return createClientRedirect(server, request.redirectUri, outcome, options);
  }
  const state = newSecret(deps.random) + toStateSuffix(server, deps);
  const verifier = newSecret(deps.random);
  const bindingSecret = newSecret(deps.random);
  const now = deps.now();
  const id = hashSecret(state);
  const agreement = formatAgreement(server.agreement, request.view);
  const secrets: LoginSecrets = { verifier, clientState: request.state, agreement };
  // Called before the form counts as sent, so that the person can send it again if the provider does not respond.
  const url = await server.provider.buildAuthorizationUrl({ state, verifier, scope: request.scope });
  const isFirst = await insertAuthorization(deps.db, {
    id,
    workspace_id: server.workspaceId,
    server_id: server.id,
    consent_id: hashSecret(request.consentId),
    client_id: request.clientId,
    client_name: request.clientName,
    redirect_uri: request.redirectUri,
    code_challenge: request.codeChallenge,
    scope: request.scope,
    binding_hash: hashSecret(bindingSecret),
    sealed_verifier: deps.keyring.seal(JSON.stringify(secrets), contexts.login(id)),
    created_at: now,
    expires_at: now + durations.login,
  });
  if (!isFirst) throw createDeniedError('this form was already sent; start again in the client');
  deps.onEvent('started');
  const cookie = cookieStore.set(getLoginCookieName(id), bindingSecret, durations.login);
  const cookies = [cookie, clearedCookie, ...cookieStore.clearOldest(headers.cookie, loginPrefix)];
  return { status: 200, html: renderDeparturePage(server, url), cookies };
}

/**
 * Returns the suffix of the state, which names the host where the login started. Empty for the host of BASE_URL, to
 * which the provider redirects.
 */
function toStateSuffix({ issuer }: LoginServer, { baseUrl }: OAuthDeps): string {
  const { host } = new URL(issuer);
  return host === new URL(baseUrl).host ? '' : `.${Buffer.from(host).toString('base64url')}`;
}

/** Returns the host in a state, which anyone may have made up. */
export function getStateHost(state: string | undefined): string | undefined {
  const [, encoded] = state?.split('.', 2) ?? [];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64url').toString();
}

function createDeniedError(message: string): OAuthError {
  return new OAuthError('access_denied', message);
}

type FormHeaders = { cookie: string | undefined; fetchSite: string | undefined };

/**
 * Opens the request in a form. The form must have been shown to this browser by this server, sent from our own page,
 * and not be expired.
 */
function openConsentForm(
  server: LoginServer,
  form: URLSearchParams,
  headers: FormHeaders,
  deps: OAuthDeps,
): ConsentRequest {
  const { cookie, fetchSite } = headers;
  if (fetchSite !== undefined && fetchSite !== 'same-origin')
    throw createDeniedError('the form was sent from another site');
  const sealed = form.get('request') ?? '';
  const text = deps.keyring.openFromClient(sealed, getConsentContext(server, form.get('view') ?? undefined));
  if (text === undefined) throw createDeniedError('the form was not issued by this server');
  const request = JSON.parse(text) as ConsentRequest;
  const browser = createCookieStore(deps.baseUrl).read(cookie, getConsentCookieName(request.consentId));
  if (browser === undefined || hashSecret(browser) !== request.browser)
    throw createDeniedError(
      'the form was already sent or was shown in another browser, or cookies are disabled; start again in the client',
    );
  if (request.expiresAt < deps.now()) throw createDeniedError('the form has expired; start again in the client');
  return request;
}

const consentPrefix = 'toolhost-consent-';
const loginPrefix = 'toolhost-login-';

/** Maximum number of concurrent consent forms, and of concurrent logins, per browser. */
export const maxInProgress = 20;

/**
 * Returns the name of the cookie that binds a consent form to its browser. There is one cookie per form, so that
 * several tabs can show forms.
 */
function getConsentCookieName(consentId: string): string {
  return consentPrefix + hashSecret(consentId).slice(0, 16);
}

/**
 * Returns the name of the cookie that binds a login to the browser that consented. There is one cookie per login, so
 * that several can be in progress.
 */
export function getLoginCookieName(stateHash: string): string {
  return loginPrefix + stateHash.slice(0, 16);
}

/** Creates and reads the cookies of the OAuth proxy. */
export function createCookieStore(baseUrl: string) {
  const { prefix: scopePrefix, path, isSecure } = getCookieScope(baseUrl);
  const attributes = `Path=${path}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  const set = (name: string, value: string, maxAgeMs: number) =>
    `${scopePrefix}${name}=${value}; ${attributes}; Max-Age=${Math.floor(maxAgeMs / 1000)}`;
  const clear = (name: string) => set(name, '', 0);
  return {
    set,
    clear,
    /** Clears the oldest cookies with this prefix, so that with one more there are at most `maxInProgress`. */
    clearOldest: (header: string | undefined, prefix: string) =>
      findOldestIds(header, scopePrefix + prefix, maxInProgress - 1).map((id) => clear(prefix + id)),
    read: (header: string | undefined, name: string) => getUniqueCookie(header, scopePrefix + name),
  };
}

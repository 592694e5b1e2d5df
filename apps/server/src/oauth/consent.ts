import { hashSecret, newSecret } from '@toolhost/credentials/ids';
import { OAuthError } from '@toolhost/errors/errors';
import { formatAgreement, insertAuthorization } from '../store/logins/grants.ts';
import { contexts } from '../store/sealing/sealing.ts';
import { findWorkspace } from '../store/workspaces.ts';
import type { OAuthClient } from './clients.ts';
import {
  consentPrefix,
  createCookieStore,
  getConsentCookieName,
  getLoginCookieName,
  loginPrefix,
} from './login-cookies.ts';
import { getAskedFields, readFields, renderFieldsPage } from './login-fields.ts';
import { createClientRedirect, renderConsentPage, renderDeparturePage } from './login-pages.ts';
import {
  type BrowserResponse,
  durations,
  type LoginServer,
  type OAuthDeps,
  type PeopleLoginServer,
  type Provider,
} from './oauth-deps.ts';
import { findRefusal, type StoredIdentity } from './people.ts';
import { areValuesUsable, getValuesState, type ValuesState } from './person-values.ts';
import { storeGrant } from './store-grant.ts';

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
  /** Person who signed in. Undefined if no one names the person. */
  identity?: StoredIdentity | undefined;
  /** Names of the fields that the form asks for. Undefined for the consent form. */
  asked?: readonly string[] | undefined;
};

/**
 * Returns the context in which a form is sealed. A form of another server, another view, or an earlier agreement of
 * this server cannot be opened. A form that named other hosts for the person's values cannot be opened either.
 */
function getConsentContext({ id, agreement, login }: LoginServer, view: string | undefined): string {
  const valuesAgreement = login && login.fields.length > 0 ? `|${login.valuesAgreement}` : '';
  return `consent|${id}|${formatAgreement(agreement, view)}${valuesAgreement}`;
}

function sealRequest(server: LoginServer, request: ConsentRequest, { keyring }: OAuthDeps): string {
  return keyring.seal(JSON.stringify(request), getConsentContext(server, request.view));
}

/**
 * Shows the consent page. Nothing is stored and no one is redirected before a person has agreed. The form is bound to
 * this browser by a cookie.
 */
export async function showConsent(
  server: LoginServer,
  client: OAuthClient,
  unboundRequest: Omit<ConsentRequest, 'consentId' | 'browser' | 'expiresAt'>,
  cookieHeader: string | undefined,
  deps: OAuthDeps,
): Promise<BrowserResponse> {
  const cookieStore = createCookieStore(deps.baseUrl);
  const browserSecret = newSecret(deps.random);
  const consentId = newSecret(deps.random);
  const expiresAt = deps.now() + durations.consent;
  const request = { ...unboundRequest, consentId, browser: hashSecret(browserSecret), expiresAt };
  const workspace = server.operator === undefined ? await findWorkspace(deps.db, server.workspaceId) : undefined;
  const operator = server.operator ?? workspace?.name ?? server.workspaceId;
  const state = hasLogin(server) ? await findValuesState(server, request, deps) : undefined;
  const html = renderConsentPage({ ...server, operator }, client, request, {
    sealed: sealRequest(server, request, deps),
    state,
    identityHost: deps.people.host,
  });
  const cookies = [
    cookieStore.set(getConsentCookieName(consentId), browserSecret, durations.consent),
    ...cookieStore.clearOldest(cookieHeader, consentPrefix),
  ];
  return { status: 200, html, cookies };
}

function hasLogin(server: LoginServer): server is PeopleLoginServer {
  return server.login !== undefined;
}

/** Returns the state of the values of the person in a request. An unidentified person has none. */
async function findValuesState(
  server: PeopleLoginServer,
  { identity }: Pick<ConsentRequest, 'identity'>,
  { personValues }: OAuthDeps,
): Promise<ValuesState> {
  const hasStored = identity !== undefined && server.login.fields.length > 0;
  return getValuesState(server.login, hasStored ? await personValues.find(server, identity.userId) : undefined);
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
  identity?: StoredIdentity | undefined;
  /** Values that the person entered. */
  fields?: Readonly<Record<string, string>> | undefined;
};

type FormHeaders = { cookie: string | undefined; fetchSite: string | undefined };
type FormRequest = { form: URLSearchParams; headers: FormHeaders; requestId: string };

/**
 * Handles `POST /mcp/{slug}/consent`, with the person's decision, and the values that they entered. All responses are
 * pages instead of redirects, because browsers apply `form-action` to redirects that follow a form.
 * @throws OAuthError access_denied if the form does not belong to this browser, or was already used
 */
export async function handleDecision(
  server: LoginServer,
  { form, headers, requestId }: FormRequest,
  deps: OAuthDeps,
): Promise<BrowserResponse> {
  const request = await updatePerson(server, openConsentForm(server, form, headers, deps), deps);
  const cookieStore = createCookieStore(deps.baseUrl);
  const clearedCookie = cookieStore.clear(getConsentCookieName(request.consentId));
  const decision = form.get('decision');
  if (server.login?.identifiesPeople && !request.identity) throw createChangedError();
  const refusal = server.login && request.identity && findRefusal(server.login, request.identity);
  if (refusal !== undefined || !['allow', 'change', 'save'].includes(decision ?? '')) {
    const error = new OAuthError('access_denied', refusal ?? 'the person denied access');
    const outcome = { error, state: request.state };
    const options = { cookies: [clearedCookie], isFormResponse: true };
    return createClientRedirect(server, request.redirectUri, outcome, options);
  }
  if (request.identity || server.apiUrl !== undefined) await deps.requireLocalPerson?.(headers.cookie);
  const step = hasLogin(server) ? await takeFields(server, request, form, deps) : { values: {} };
  if ('page' in step) return step.page;
  const consent: Consent = { request, fields: step.values, clearedCookie, requestId };
  return server.provider
    ? departToProvider({ ...server, provider: server.provider }, consent, headers.cookie, deps)
    : finishLogin(server, consent, deps);
}

/** Returns a request with the current membership of its person. */
async function updatePerson(
  { login, workspaceId }: LoginServer,
  request: ConsentRequest,
  { people }: OAuthDeps,
): Promise<ConsentRequest> {
  const { identity } = request;
  if (!login || !identity) return request;
  return { ...request, identity: await people.updateMembership(identity, { workspaceId, login }) };
}

/**
 * Reads the values of a form, or shows the form that asks for them. Returns all values of the person once nothing is
 * missing. Values of an identified person are stored.
 */
async function takeFields(
  server: PeopleLoginServer,
  request: ConsentRequest,
  form: URLSearchParams,
  deps: OAuthDeps,
): Promise<{ values: Readonly<Record<string, string>> } | { page: BrowserResponse }> {
  const { fields } = server.login;
  if (fields.length === 0) return { values: {} };
  const state = await findValuesState(server, request, deps);
  const isChange = form.get('decision') === 'change';
  if (request.asked === undefined) {
    const asked = getAskedFields(fields, state, isChange);
    if (asked.length > 0) return { page: showFields(server, { ...request, asked }, { state, problems: {} }, deps) };
  }
  const asked = fields.filter(({ name }) => request.asked?.includes(name));
  const { values, problems } = readFields(asked, form, state);
  if (Object.keys(problems).length > 0) return { page: showFields(server, request, { state, problems, form }, deps) };
  const isUnchanged = asked.length === 0 && areValuesUsable(state);
  if (
    request.identity &&
    !isUnchanged &&
    !(await deps.personValues.save(server, request.identity.userId, values, deps.now()))
  )
    throw new OAuthError('temporarily_unavailable', 'this server stores values of too many people; ask its owner');
  return { values };
}

type FieldsForm = { state: ValuesState; problems: Readonly<Record<string, string>>; form?: URLSearchParams };

/** Shows the form for the fields in `request.asked`. The cookie of the consent form binds it to the browser, too. */
function showFields(server: PeopleLoginServer, request: ConsentRequest, content: FieldsForm, deps: OAuthDeps) {
  const html = renderFieldsPage(server, request, { ...content, sealed: sealRequest(server, request, deps) });
  return { status: 200, html };
}

/** The person's agreement, and the values that they entered. */
type Consent = {
  request: ConsentRequest;
  fields: Readonly<Record<string, string>>;
  clearedCookie: string;
  requestId: string;
};

/** Finishes a login at a server without a provider: the person has signed in, agreed, and entered their values. */
async function finishLogin(
  server: LoginServer,
  { request, clearedCookie, requestId }: Consent,
  deps: OAuthDeps,
): Promise<BrowserResponse> {
  const { identity } = request;
  if (!identity) throw createChangedError();
  await storeLogin(server, request, { id: hashSecret(newSecret(deps.random)), bindingHash: '', sealed: '' }, deps);
  deps.onEvent('started');
  const login = {
    client_id: request.clientId,
    client_name: request.clientName,
    redirect_uri: request.redirectUri,
    code_challenge: request.codeChallenge,
    scope: request.scope,
  };
  const tokens = { accessToken: '', refreshToken: undefined, expiresAt: undefined, scope: undefined, identity };
  const result = { tokens, person: undefined, userId: undefined, workspaceId: server.workspaceId };
  const agreement = formatAgreement(server.agreement, request.view);
  const code = await storeGrant(server, { login, result, agreement, requestId }, deps);
  deps.onEvent('finished');
  const options = { cookies: [clearedCookie], isFormResponse: true };
  return createClientRedirect(server, request.redirectUri, { code, state: request.state }, options);
}

/** Stores the login, bound to this browser by a cookie, and sends the browser to the provider. */
async function departToProvider(
  server: LoginServer & { provider: Provider },
  { request, fields, clearedCookie }: Consent,
  cookieHeader: string | undefined,
  deps: OAuthDeps,
): Promise<BrowserResponse> {
  const cookieStore = createCookieStore(deps.baseUrl);
  const state = newSecret(deps.random) + toStateSuffix(server, deps);
  const verifier = newSecret(deps.random);
  const bindingSecret = newSecret(deps.random);
  const id = hashSecret(state);
  const agreement = formatAgreement(server.agreement, request.view);
  const secrets: LoginSecrets = { verifier, clientState: request.state, agreement, identity: request.identity, fields };
  // Called before the form counts as sent, so that the person can send it again if the provider does not respond.
  const url = await server.provider.buildAuthorizationUrl({ state, verifier, scope: request.scope, fields });
  const sealed = deps.keyring.seal(JSON.stringify(secrets), contexts.login(id));
  await storeLogin(server, request, { id, bindingHash: hashSecret(bindingSecret), sealed }, deps);
  deps.onEvent('started');
  const sameSite = server.provider.returnsForm ? 'None' : 'Lax';
  const cookie = cookieStore.set(getLoginCookieName(id), bindingSecret, durations.login, sameSite);
  const cookies = [cookie, clearedCookie, ...cookieStore.clearOldest(cookieHeader, loginPrefix)];
  return { status: 200, html: renderDeparturePage(server, url), cookies };
}

/** Login to store. An empty `bindingHash` is that of a login that no callback can take. */
type NewLogin = { id: string; bindingHash: string; sealed: string };

/** Stores a login in progress. Each form can be used once. @throws OAuthError access_denied for the second use */
async function storeLogin(
  server: LoginServer,
  request: ConsentRequest,
  { id, bindingHash, sealed }: NewLogin,
  deps: OAuthDeps,
): Promise<void> {
  const now = deps.now();
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
    binding_hash: bindingHash,
    sealed_verifier: sealed,
    created_at: now,
    expires_at: now + durations.login,
  });
  if (!isFirst) throw createDeniedError('this form was already sent; start again in the client');
}

/**
 * Returns the suffix of the state, which names the host where the login started. Empty for the host of BASE_URL, to
 * which the provider redirects.
 */
export function toStateSuffix({ issuer }: LoginServer, { baseUrl }: OAuthDeps): string {
  const { host } = new URL(issuer);
  return host === new URL(baseUrl).host ? '' : `.${Buffer.from(host).toString('base64url')}`;
}

/** Returns the host in a state, which anyone may have made up. */
export function getStateHost(state: string | undefined): string | undefined {
  const [, encoded] = state?.split('.', 2) ?? [];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64url').toString();
}

function createChangedError(): OAuthError {
  return createDeniedError('the server was changed during the login; start again in the client');
}

function createDeniedError(message: string): OAuthError {
  return new OAuthError('access_denied', message);
}

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
  if (text === undefined)
    throw createDeniedError(
      'the form is not of this server, or the server was changed since; start again in the client',
    );
  const request = JSON.parse(text) as ConsentRequest;
  const browser = createCookieStore(deps.baseUrl).read(cookie, getConsentCookieName(request.consentId));
  if (browser === undefined || hashSecret(browser) !== request.browser)
    throw createDeniedError(
      'the form was already sent or was shown in another browser, or cookies are disabled; start again in the client',
    );
  if (request.expiresAt < deps.now()) throw createDeniedError('the form has expired; start again in the client');
  return request;
}

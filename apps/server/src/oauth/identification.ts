import { hashSecret, newSecret } from '@toolhost/credentials/ids';
import { AppError, getErrorMessage, OAuthError } from '@toolhost/errors/errors';
import { transact } from '../store/engine/watched-dialect.ts';
import { consumeAuthorization, insertAuthorization } from '../store/logins/grants.ts';
import { contexts } from '../store/sealing/sealing.ts';
import { findClient, isKnownRedirect, type OAuthClient } from './clients.ts';
import { type ConsentRequest, getStateHost, showConsent, toStateSuffix } from './consent.ts';
import { createCookieStore, getLoginCookieName, loginPrefix } from './login-cookies.ts';
import { createClientRedirect, createErrorWithLink } from './login-pages.ts';
import {
  type BrowserResponse,
  durations,
  type LoginServer,
  type PeopleLoginServer,
  type RequestDeps,
} from './oauth-deps.ts';
import { findRefusal, getPersonName, type SignInSecrets, type StoredIdentity } from './people.ts';
import { recordLoginEvent } from './token.ts';

type ClientRequest = Omit<ConsentRequest, 'consentId' | 'browser' | 'expiresAt'>;

/** Sealed part of a login whose person is at the identity provider. */
type PendingIdentification = { request: ClientRequest; secrets: SignInSecrets };

/**
 * State of a login at the identity provider: a prefix, the slug of the server, and the state of a login, which names
 * the host where it started.
 */
const statePattern = /^mcp\.([a-z0-9-]{1,63})\.([\w-]+(?:\.[\w-]+)?)$/;

/** Returns the parts of a state, which anyone may have made up. Undefined for a sign-in to the dashboard. */
export function parseIdentityState(state: string | undefined): { slug: string; host: string | undefined } | undefined {
  const [, slug, loginState] = statePattern.exec(state ?? '') ?? [];
  return slug === undefined ? undefined : { slug, host: getStateHost(loginState) };
}

/**
 * Sends the person to the identity provider, which returns to `/login/callback`. In local mode, shows the consent page.
 * The identity provider belongs to the operator, so no consent is needed before this redirect.
 */
export async function startIdentification(
  server: PeopleLoginServer,
  client: OAuthClient,
  request: ClientRequest,
  cookieHeader: string | undefined,
  deps: RequestDeps,
): Promise<BrowserResponse> {
  const { people } = deps;
  if (people.findLocalPerson)
    return showConsent(
      server,
      client,
      { ...request, identity: await people.findLocalPerson(server) },
      cookieHeader,
      deps,
    );
  const createSecret = () => newSecret(deps.random);
  const state = `mcp.${server.slug}.${createSecret()}${toStateSuffix(server, deps)}`;
  const secrets: SignInSecrets = { state, verifier: createSecret(), nonce: createSecret() };
  const pending: PendingIdentification = { request, secrets };
  const bindingSecret = createSecret();
  const id = hashSecret(state);
  const url = await people.buildSignInUrl(secrets).catch((error: unknown) => {
    throw toOAuthError(error);
  });
  const now = deps.now();
  await insertAuthorization(deps.db, {
    id,
    workspace_id: server.workspaceId,
    server_id: server.id,
    consent_id: hashSecret(createSecret()),
    client_id: request.clientId,
    client_name: request.clientName,
    redirect_uri: request.redirectUri,
    code_challenge: request.codeChallenge,
    scope: request.scope,
    binding_hash: hashSecret(bindingSecret),
    sealed_verifier: deps.keyring.seal(JSON.stringify(pending), contexts.login(id)),
    created_at: now,
    expires_at: now + durations.login,
  });
  const cookieStore = createCookieStore(deps.baseUrl);
  const cookies = [
    cookieStore.set(getLoginCookieName(id), bindingSecret, durations.login),
    ...cookieStore.clearOldest(cookieHeader, loginPrefix),
  ];
  return { status: 302, html: '', location: url.href, cookies };
}

/** Converts the error of an identity provider that did not name the person. The log gets its cause. */
function toOAuthError(error: unknown): OAuthError {
  if (!(error instanceof AppError)) throw error;
  const code = error.kind === 'unavailable' ? 'temporarily_unavailable' : 'server_error';
  return new OAuthError(code, error.message, getErrorMessage(error.cause ?? error));
}

/** The request of a browser that returns from the identity provider. */
type IdentifiedRequest = { query: URLSearchParams; cookieHeader: string | undefined; requestId: string };

/**
 * Handles the return from the identity provider: identifies the person, and shows the consent page if they may log in.
 * From the point at which the browser is verified, a failure is shown to the person and reported to the client.
 * `onCodeRefused` is called if the identity provider refused the code.
 * @throws OAuthError, shown as a page, until the browser is verified to be the one that started the login
 */
export async function finishIdentification(
  server: LoginServer,
  { query, cookieHeader, requestId }: IdentifiedRequest,
  deps: RequestDeps & { onCodeRefused: () => void },
): Promise<BrowserResponse> {
  const id = hashSecret(query.get('state') ?? '');
  const binding = createCookieStore(deps.baseUrl).read(cookieHeader, getLoginCookieName(id)) ?? '';
  const login = await consumeAuthorization(deps.db, {
    id,
    serverId: server.id,
    bindingHash: hashSecret(binding),
    now: deps.now(),
  });
  if (!login) {
    const message =
      'this login was started in another browser, was already used, or has expired; start again in the client';
    throw new OAuthError('access_denied', message);
  }
  if (!server.login) throw new OAuthError('access_denied', 'the server was changed during the login; start again');
  const identifiedServer = { ...server, login: server.login };
  const { request, secrets } = JSON.parse(
    deps.keyring.open(login.sealed_verifier, contexts.login(id)),
  ) as PendingIdentification;
  const client = await findClient(server, request.clientId, deps);
  const cleared = createCookieStore(deps.baseUrl).clear(getLoginCookieName(id));
  const identified = await identify(query, secrets, identifiedServer, deps);
  if ('error' in identified) {
    const refused = await refuse(identifiedServer, client, { request, requestId, ...identified }, deps);
    return { ...refused, cookies: [cleared] };
  }
  const page = await showConsent(server, client, { ...request, ...identified }, cookieHeader, deps);
  return { ...page, cookies: [cleared, ...(page.cookies ?? [])] };
}

/** Result of an identification. `identity` is absent if the identity provider did not name the person. */
type Identified = { identity: StoredIdentity } | RefusedIdentity;
type RefusedIdentity = { identity?: StoredIdentity; error: OAuthError };

async function identify(
  query: URLSearchParams,
  secrets: SignInSecrets,
  server: PeopleLoginServer,
  deps: RequestDeps & { onCodeRefused: () => void },
): Promise<Identified> {
  try {
    const identity = await deps.people.identify(query, secrets, server);
    const refusal = findRefusal(server.login, identity);
    return refusal === undefined ? { identity } : { identity, error: new OAuthError('access_denied', refusal) };
  } catch (caught) {
    const error = toOAuthError(caught);
    const response = query.get('error');
    if (response === null && error.code === 'server_error') deps.onCodeRefused();
    const message = 'the sign-in was canceled or denied at the identity provider; start again in the client';
    return { error: response === 'access_denied' ? new OAuthError(response, message) : error };
  }
}

type RefusedLogin = RefusedIdentity & { request: ClientRequest; requestId: string };

/** Records the refusal of a login, shows it to the person, and sends it to the client. */
async function refuse(
  server: PeopleLoginServer,
  client: OAuthClient,
  { request, identity, error, requestId }: RefusedLogin,
  deps: RequestDeps,
): Promise<BrowserResponse> {
  deps.onEvent('failed');
  const person = identity && getPersonName(identity);
  const people = person === undefined ? {} : { people: { person } };
  const detail = { client: request.clientName, error: error.code, ...people };
  const event = { server, workspaceId: server.workspaceId, name: 'loginFailed', detail, requestId } as const;
  await transact(deps.db, (db) => recordLoginEvent(db, event, deps));
  const { code, message, detail: cause } = error;
  if (cause !== undefined) deps.log('a login failed', { slug: server.slug, error: code, message, detail: cause });
  const outcome = { error, state: request.state };
  return isKnownRedirect(request.redirectUri)
    ? createClientRedirect(server, request.redirectUri, outcome, { isShownFirst: true })
    : createErrorWithLink(server, client, request.redirectUri, outcome);
}

import { hashSecret } from '@toolhost/credentials/ids';
import { AppError, getErrorMessage, OAuthError, type OAuthErrorCode, toOAuthErrorCode } from '@toolhost/errors/errors';
import type { ServiceHosts } from '../own-hosts.ts';
import { buildUrl, routes } from '../routes.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import {
  type Authorization,
  consumeAuthorization,
  getAgreedView,
  isAgreed,
  isAuthorizationPending,
} from '../store/logins/grants.ts';
import { contexts } from '../store/sealing/sealing.ts';
import { offerAccounts, takeChosenLogin } from './account-choice.ts';
import { rejectDuplicates } from './clients.ts';
import type { LoginSecrets } from './consent.ts';
import { createCookieStore, getLoginCookieName } from './login-cookies.ts';
import { createClientRedirect } from './login-pages.ts';
import type { BrowserResponse, ErrorReporter, LoginRecord, LoginServer, OAuthDeps, Provider } from './oauth-deps.ts';
import { storeGrant } from './store-grant.ts';
import { recordLoginEvent } from './token.ts';

/** The request of a browser that returns from the provider. */
type CallbackRequest = { query: URLSearchParams; cookieHeader: string | undefined; requestId: string };

/**
 * Handles `/mcp/{slug}/callback`, to which the provider sends the person back, with a form if the server says so. The state, the server, and the
 * cookie of the browser that consented must all match. Then the provider's code is exchanged, and the client gets one
 * of our codes. From that point the page cannot be loaded again, so every failure is reported to the client.
 * `onCodeRefused` is called if the provider refused the code.
 * @throws OAuthError, shown as a page, until the browser is verified to be the one that started the login
 */
export async function handleCallback(
  server: LoginServer,
  { query, cookieHeader, requestId }: CallbackRequest,
  deps: OAuthDeps & ErrorReporter & { onCodeRefused: () => void },
): Promise<BrowserResponse> {
  rejectDuplicates(query);
  checkIssuer(query.get('iss'), deps.ownHosts);
  const { login, secrets, refusal } = await consumeLogin(server, { query, cookieHeader, requestId }, deps);
  const { verifier, clientState: state, agreement, identity, fields } = secrets;
  const cookieStore = createCookieStore(deps.baseUrl);
  const cookies = [cookieStore.clear(getLoginCookieName(login.id))];
  // A page of the provider may forbid that its form leads on to the client (`form-action`).
  const isFormResponse = server.provider?.returnsForm === true;
  try {
    if (refusal) throw refusal;
    const { choices, ...exchanged } = await getProvider(server).exchange({
      code: query.get(getProvider(server).codeParameter) ?? '',
      parameters: query,
      state: query.get('state') ?? '',
      verifier,
      fields: fields ?? {},
    });
    const tokens = { ...exchanged.tokens, identity, values: { ...fields, ...exchanged.tokens.values } };
    const result = { ...exchanged, tokens };
    if (choices) {
      const page = await offerAccounts(server, { login, result, secrets, choices }, deps);
      return { ...page, cookies: [...cookies, ...(page.cookies ?? [])] };
    }
    const oneTimeCode = await storeGrant(server, { login, result, agreement, requestId }, deps);
    deps.onEvent('finished');
    return createClientRedirect(server, login.redirect_uri, { code: oneTimeCode, state }, { cookies, isFormResponse });
  } catch (caught) {
    // An unavailable provider refuses no code, and neither does one that was not called.
    const isProviderError = caught instanceof OAuthError && caught !== refusal;
    if (isProviderError && caught.code !== 'temporarily_unavailable') deps.onCodeRefused();
    const error = toReportedError(caught, requestId, deps);
    await reportFailure(server, { login, error, requestId }, error !== refusal, deps);
    return createClientRedirect(server, login.redirect_uri, { error, state }, { cookies, isFormResponse });
  }
}

/** Logs a failed login, and records it unless that has already happened. */
async function reportFailure(
  server: LoginServer,
  failure: FailedLogin,
  isUnrecorded: boolean,
  deps: OAuthDeps & ErrorReporter,
): Promise<void> {
  deps.onEvent('failed');
  const { code, message, detail, providerMessage } = failure.error;
  deps.log('a login failed', { slug: server.slug, error: code, message, detail, said: providerMessage });
  if (isUnrecorded) await recordFailure(toLoginRecord(server, failure), deps);
}

/**
 * Handles `POST /mcp/{slug}/callback/account`, with the account that a person chose.
 * @throws OAuthError, shown as a page, until the browser is verified to be the one that started the login
 */
export async function handleAccountChoice(
  server: LoginServer,
  form: URLSearchParams,
  { requestId, ...headers }: { cookie: string | undefined; fetchSite: string | undefined; requestId: string },
  deps: OAuthDeps & ErrorReporter,
): Promise<BrowserResponse> {
  const { login, secrets, cookies, result } = await takeChosenLogin(server, form, headers, deps);
  const { agreement, clientState: state } = secrets;
  const options = { cookies, isFormResponse: true };
  try {
    if (!result) throw new OAuthError('access_denied', 'the person chose no account');
    const refusal = findAgreementRefusal(server, agreement);
    if (refusal) throw refusal;
    const code = await storeGrant(server, { login, result, agreement, requestId }, deps);
    deps.onEvent('finished');
    return createClientRedirect(server, login.redirect_uri, { code, state }, options);
  } catch (caught) {
    const error = toReportedError(caught, requestId, deps);
    await reportFailure(server, { login, error, requestId }, true, deps);
    return createClientRedirect(server, login.redirect_uri, { error, state }, options);
  }
}

/** Returns the provider of a server. @throws OAuthError if the server no longer has one */
function getProvider({ provider }: LoginServer): Provider {
  if (provider) return provider;
  throw new OAuthError('access_denied', 'the server was changed during the login; start again in the client');
}

/** Returns the error that is reported to the client. */
function toReportedError(caught: unknown, requestId: string, deps: ErrorReporter): OAuthError {
  if (caught instanceof OAuthError) return caught;
  if (caught instanceof AppError)
    return new OAuthError(toOAuthErrorCode(caught), `the login could not be completed: ${caught.message}`);
  deps.onUnexpected(caught, requestId);
  return new OAuthError('server_error', 'an internal error occurred');
}

/** Records a failed login. The client receives the error even if the database is unavailable. */
async function recordFailure(failure: LoginRecord, deps: OAuthDeps & ErrorReporter): Promise<void> {
  try {
    await transact(deps.db, (db) => recordLoginEvent(db, failure, deps));
  } catch (error) {
    if (!(error instanceof AppError)) deps.onUnexpected(error, failure.requestId);
    deps.log('a failed login could not be recorded', { slug: failure.server.slug, reason: getErrorMessage(error) });
  }
}

/**
 * Rejects a response of this service itself, which was meant for a client (RFC 9207). No provider responds with our
 * issuer, so someone sent the person here to make us pass the code on to an attacker's token endpoint.
 */
function checkIssuer(issuer: string | null, { names, getBaseUrl }: ServiceHosts): void {
  const refusal = 'this response belongs to another login at this service and was not passed on';
  for (const name of names)
    if (issuer?.startsWith(buildUrl(getBaseUrl(name), routes.mcp, '')))
      throw new OAuthError('invalid_request', refusal);
}

type ConsumedLogin = {
  login: Authorization;
  secrets: LoginSecrets;
  /** Reason why the login ends before the provider is called. It has already been recorded. */
  refusal: OAuthError | undefined;
};

/**
 * Takes the login that the browser brings back. A refusal is recorded in the same transaction, so that the person can
 * load the page again after a database failure.
 */
function consumeLogin(
  server: LoginServer,
  { query, cookieHeader, requestId }: CallbackRequest,
  deps: OAuthDeps,
): Promise<ConsumedLogin> {
  return transact(deps.db, async (db) => {
    const login = await consumeBrowserLogin(server, query.get('state'), cookieHeader, { ...deps, db });
    const secrets = JSON.parse(deps.keyring.open(login.sealed_verifier, contexts.login(login.id))) as LoginSecrets;
    const refusal = findAgreementRefusal(server, secrets.agreement) ?? findProviderRefusal(server, query);
    if (refusal) await recordLoginEvent(db, toLoginRecord(server, { login, error: refusal, requestId }), deps);
    return { login, secrets, refusal };
  });
}

type FailedLogin = { login: Authorization; error: OAuthError; requestId: string };

function toLoginRecord(server: LoginServer, { login, error, requestId }: FailedLogin): LoginRecord {
  const { code, message, providerMessage } = error;
  const detail = {
    client: login.client_name,
    error: code,
    message,
    ...(providerMessage !== undefined && { provider_says: providerMessage }),
  };
  return { server, workspaceId: server.workspaceId, name: 'loginFailed', detail, requestId };
}

/** Takes the login with this state. @throws OAuthError if this browser has none */
async function consumeBrowserLogin(
  server: LoginServer,
  state: string | null,
  cookieHeader: string | undefined,
  deps: OAuthDeps,
): Promise<Authorization> {
  if (!state) throw new OAuthError('invalid_request', "the provider's response has no state");
  const id = hashSecret(state);
  const binding = createCookieStore(deps.baseUrl).read(cookieHeader, getLoginCookieName(id)) ?? '';
  const now = deps.now();
  const login = await consumeAuthorization(deps.db, { id, serverId: server.id, bindingHash: hashSecret(binding), now });
  if (login) return login;
  if (await isAuthorizationPending(deps.db, { id, serverId: server.id, now }))
    throw new OAuthError(
      'access_denied',
      'this login was started in another browser; finish it there, or start again in the client',
    );
  throw new OAuthError(
    'invalid_request',
    'this login is unknown, was already used, or has expired; start again in the client',
  );
}

/**
 * Returns the refusal of a login whose server has changed since the person agreed, because other hosts could receive
 * the tokens.
 */
function findAgreementRefusal(server: LoginServer, agreement: string): OAuthError | undefined {
  const view = getAgreedView(agreement);
  const hasView = view === undefined || server.views.includes(view);
  if (hasView && isAgreed(agreement, { ...server, view })) return undefined;
  return new OAuthError('access_denied', 'the server was changed during the login; start again in the client');
}

const forwardedCodes: readonly OAuthErrorCode[] = [
  'access_denied',
  'temporarily_unavailable',
  'server_error',
  'invalid_scope',
];

/**
 * Returns the provider's error in our own words, together with its description. Undefined if the provider sent a code.
 */
function findProviderRefusal(server: LoginServer, query: URLSearchParams): OAuthError | undefined {
  const error = query.get('error');
  if (error !== null) {
    const provider = getProvider(server);
    const forwardedCode = forwardedCodes.find((code) => code === error);
    const displayedCode = provider.getDisplayedCode(error);
    const responseMessage = `the provider responded to the login with ${displayedCode === undefined ? 'an error' : `the error ${displayedCode}`}`;
    const message = forwardedCode === 'access_denied' ? 'the login was denied at the provider' : responseMessage;
    const providerMessage = provider.getDisplayedMessage(query.get('error_description'));
    return new OAuthError(
      forwardedCode ?? 'server_error',
      message,
      `error ${displayedCode ?? 'in an unusual format'}`,
      providerMessage,
    );
  }
  return query.get(server.provider?.codeParameter ?? 'code')
    ? undefined
    : new OAuthError('server_error', 'the provider sent neither a code nor an error');
}

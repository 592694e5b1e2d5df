import type { OwnHosts } from '../domain/http/own-hosts.ts';
import { hashOf, newId, newSecret } from '../domain/ids.ts';
import { AppError, messageOf, OAuthError, type OAuthErrorCode, oauthCodeOf } from '../errors.ts';
import { routes, urlOf } from '../routes.ts';
import { recordChanges } from '../store/changes/follow-changes.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import {
  type Authorization,
  bytesOfLogin,
  endGrantsAbove,
  insertCode,
  insertGrant,
  isAgreed,
  isAuthorizationWaiting,
  takeAuthorization,
  takeLoginBytes,
  viewOfAgreement,
} from '../store/logins/grants.ts';
import { contexts } from '../store/sealing/sealing.ts';
import { rejectDuplicates } from './clients.ts';
import { cookieJar, type LoginSecrets, loginCookie } from './consent.ts';
import { clientRedirect } from './pages.ts';
import {
  type FaultReport,
  type LoginRecord,
  type LoginResult,
  type LoginServer,
  type OAuthAnswer,
  type OAuthParts,
  spans,
} from './parts.ts';
import { sealTokens, wrapKey } from './provider.ts';
import { noteEvent } from './token.ts';

/** The request of a browser that returns from the provider. */
type Returned = { query: URLSearchParams; cookieHeader: string | undefined; requestId: string };

/**
 * Handles `GET /mcp/{slug}/callback`, to which the provider sends the person back. The state, the server, and the
 * cookie of the browser that consented must all match. Then the provider's code is exchanged, and the client gets one
 * of our codes. From that point the page cannot be loaded again, so every failure is reported to the client.
 * `onCodeRefused` is called if the provider refused the code.
 * @throws OAuthError, shown as a page, until the browser is verified to be the one that started the login
 */
export async function callback(
  server: LoginServer,
  { query, cookieHeader, requestId }: Returned,
  parts: OAuthParts & FaultReport & { onCodeRefused: () => void },
): Promise<OAuthAnswer> {
  rejectDuplicates(query);
  checkIssuer(query.get('iss'), parts.ownHosts);
  const { login, secrets, refusal } = await takeLogin(server, { query, cookieHeader, requestId }, parts);
  const { verifier, clientState: state, agreement } = secrets;
  const jar = cookieJar(parts.baseUrl);
  const cookies = [jar.clear(loginCookie(login.id))];
  try {
    if (refusal) throw refusal;
    const result = await server.provider.exchange({
      code: query.get('code') ?? '',
      parameters: query,
      state: query.get('state') ?? '',
      verifier,
    });
    const ours = await storeGrant(server, { login, result, agreement, requestId }, parts);
    parts.onEvent('finished');
    return clientRedirect(server, login.redirect_uri, { code: ours, state }, { cookies });
  } catch (thrown) {
    parts.onEvent('failed');
    // An unavailable provider refuses no code, and neither does one that was not called.
    const isOfProvider = thrown instanceof OAuthError && thrown !== refusal;
    if (isOfProvider && thrown.code !== 'temporarily_unavailable') parts.onCodeRefused();
    const error = toldOf(thrown, requestId, parts);
    const { code, message, detail, said } = error;
    parts.log('a login failed', { slug: server.slug, error: code, message, detail, said });
    if (error !== refusal) await noteFailure(failureOf(server, { login, error, requestId }), parts);
    return clientRedirect(server, login.redirect_uri, { error, state }, { cookies });
  }
}

/** Returns the error that is reported to the client. */
function toldOf(thrown: unknown, requestId: string, parts: FaultReport): OAuthError {
  if (thrown instanceof OAuthError) return thrown;
  if (thrown instanceof AppError)
    return new OAuthError(oauthCodeOf(thrown), `the login could not be completed: ${thrown.message}`);
  parts.onUnexpected(thrown, requestId);
  return new OAuthError('server_error', 'an internal error occurred');
}

/** Records a failed login. The client receives the error even if the database is unavailable. */
async function noteFailure(failure: LoginRecord, parts: OAuthParts & FaultReport): Promise<void> {
  try {
    await transact(parts.db, (db) => noteEvent(db, failure, parts));
  } catch (error) {
    if (!(error instanceof AppError)) parts.onUnexpected(error, failure.requestId);
    parts.log('a failed login could not be recorded', { slug: failure.server.slug, reason: messageOf(error) });
  }
}

/**
 * Rejects a response of this service itself, which was meant for a client (RFC 9207). No provider of ours responds with
 * our issuer, so someone led the person here to have the code sent to an attacker's token endpoint.
 */
function checkIssuer(issuer: string | null, { names, baseUrlAt }: OwnHosts): void {
  const refusal = 'this response belongs to another login at this service and was not passed on';
  for (const name of names)
    if (issuer?.startsWith(urlOf(baseUrlAt(name), routes.mcp, ''))) throw new OAuthError('invalid_request', refusal);
}

type TakenLogin = {
  login: Authorization;
  secrets: LoginSecrets;
  /** Reason why the login ends before the provider is called. It has already been recorded. */
  refusal: OAuthError | undefined;
};

/**
 * Takes the login that the browser brings back. A refusal is recorded in the same transaction, so that the person can
 * load the page again after a database failure.
 */
function takeLogin(
  server: LoginServer,
  { query, cookieHeader, requestId }: Returned,
  parts: OAuthParts,
): Promise<TakenLogin> {
  return transact(parts.db, async (db) => {
    const login = await takeOwnLogin(server, query.get('state'), cookieHeader, { ...parts, db });
    const secrets = JSON.parse(parts.keyring.open(login.sealed_verifier, contexts.login(login.id))) as LoginSecrets;
    const refusal = agreementRefusal(server, secrets.agreement) ?? answerRefusal(server, query);
    if (refusal) await noteEvent(db, failureOf(server, { login, error: refusal, requestId }), parts);
    return { login, secrets, refusal };
  });
}

type FailedLogin = { login: Authorization; error: OAuthError; requestId: string };

function failureOf(server: LoginServer, { login, error, requestId }: FailedLogin): LoginRecord {
  const { code, message, said } = error;
  const detail = {
    client: login.client_name,
    error: code,
    message,
    ...(said !== undefined && { provider_says: said }),
  };
  return { server, workspaceId: server.workspaceId, name: 'loginFailed', detail, requestId };
}

/** Takes the login with this state. @throws OAuthError if this browser has none */
async function takeOwnLogin(
  server: LoginServer,
  state: string | null,
  cookieHeader: string | undefined,
  parts: OAuthParts,
): Promise<Authorization> {
  if (!state) throw new OAuthError('invalid_request', "the provider's response has no state");
  const id = hashOf(state);
  const binding = cookieJar(parts.baseUrl).read(cookieHeader, loginCookie(id)) ?? '';
  const now = parts.now();
  const login = await takeAuthorization(parts.db, { id, serverId: server.id, bindingHash: hashOf(binding), now });
  if (login) return login;
  if (await isAuthorizationWaiting(parts.db, { id, serverId: server.id, now })) {
    throw new OAuthError(
      'access_denied',
      'this login was started in another browser; finish it there, or start again in the client',
    );
  }
  throw new OAuthError(
    'invalid_request',
    'this login is unknown, was already used, or has expired; start again in the client',
  );
}

/**
 * Returns the refusal of a login whose server has changed since the person agreed, because other hosts could receive
 * the tokens.
 */
function agreementRefusal(server: LoginServer, agreement: string): OAuthError | undefined {
  const view = viewOfAgreement(agreement);
  const isThere = view === undefined || server.views.includes(view);
  if (isThere && isAgreed(agreement, { ...server, view })) return undefined;
  return new OAuthError('access_denied', 'the server was changed during the login; start again in the client');
}

const passedOn: readonly OAuthErrorCode[] = [
  'access_denied',
  'temporarily_unavailable',
  'server_error',
  'invalid_scope',
];

/**
 * Returns the provider's error in our own words, together with its description. Undefined if the provider sent a code.
 */
function answerRefusal(server: LoginServer, query: URLSearchParams): OAuthError | undefined {
  const error = query.get('error');
  if (error !== null) {
    const known = passedOn.find((code) => code === error);
    const shown = server.provider.shownCode(error);
    const answered = `the provider responded to the login with ${shown === undefined ? 'an error' : `the error ${shown}`}`;
    const message = known === 'access_denied' ? 'the login was denied at the provider' : answered;
    const said = server.provider.shownSentence(query.get('error_description'));
    return new OAuthError(known ?? 'server_error', message, `error ${shown ?? 'in an unusual format'}`, said);
  }
  return query.get('code')
    ? undefined
    : new OAuthError('server_error', 'the provider sent neither a code nor an error');
}

type FinishedLogin = { login: Authorization; result: LoginResult; agreement: string; requestId: string };

/** Stores the result of the login, and returns our one-time code for it. */
async function storeGrant(
  server: LoginServer,
  { login, result, agreement, requestId }: FinishedLogin,
  parts: OAuthParts,
): Promise<string> {
  const view = viewOfAgreement(agreement);
  const id = newId(parts.random, 'grt');
  const grantKey = Buffer.from(parts.random(32));
  const code = newSecret(parts.random);
  const now = parts.now();
  const sealed = sealTokens(parts.keyring, { id, workspace_id: result.workspaceId }, grantKey, result.tokens);
  await transact(parts.db, async (db) => {
    await insertGrant(db, {
      id,
      workspace_id: result.workspaceId,
      server_id: server.id,
      slug: server.slug,
      client_id: login.client_id,
      client_name: login.client_name,
      user_id: result.userId ?? null,
      person: result.person ?? null,
      scope: login.scope,
      agreement,
      sealed_tokens: sealed,
      tokens_version: 1,
      generation: 0,
      rotated_at: now,
      created_at: now,
    });
    await insertCode(db, {
      hash: hashOf(code),
      grant_id: id,
      client_id: login.client_id,
      redirect_uri: login.redirect_uri,
      code_challenge: login.code_challenge,
      wrapped_key: wrapKey(grantKey, code, id),
      expires_at: now + spans.code,
    });
    // Each person's management logins are limited instead.
    if (result.userId === undefined) {
      const bytes = bytesOfLogin({ sealed_tokens: sealed, client_id: login.client_id, scope: login.scope });
      if (!(await takeLoginBytes(db, { workspaceId: result.workspaceId, serverId: server.id, bytes }, now)))
        throw new OAuthError(
          'temporarily_unavailable',
          'new logins have reached their storage limit for this minute; retry in a minute',
        );
    } else {
      const person = { workspaceId: result.workspaceId, userId: result.userId, kept: id };
      await recordChanges(db, parts, 'grant', await endGrantsAbove(db, person, now));
    }
    const detail = { grant: id, client: login.client_name, ...(view !== undefined && { view }) };
    await noteEvent(db, { server, workspaceId: result.workspaceId, name: 'login', detail, requestId }, parts);
  });
  return code;
}

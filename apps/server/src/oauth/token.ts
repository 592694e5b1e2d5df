import { hashSecret, newId, newSecret } from '@toolhost/credentials/ids';
import { isUnavailableError, OAuthError } from '@toolhost/errors/errors';
import { insertLoginEvent } from '../store/audit-events.ts';
import { recordChange } from '../store/changes/follow-changes.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import { findGrant, type Grant, getAgreedView, isAgreed, revokeGrant, rotateGrant } from '../store/logins/grants.ts';
import {
  type Code,
  deleteOldTokens,
  deleteTokensOverLimit,
  findCode,
  findToken,
  insertTokens,
  markCodeUsed,
} from '../store/logins/issued-tokens.ts';
import { deleteUnusedValues } from '../store/logins/person-values.ts';
import {
  authenticateClient,
  createInvalidGrantError,
  createMissingError,
  formatWord,
  getResourceUrl,
  rejectDuplicates,
  resolveResource,
  type TokenEndpointRequest,
} from './clients.ts';
import {
  durations,
  type LoginRecord,
  type LoginServer,
  type OAuthDeps,
  offlineScope,
  type ProviderTokens,
  type RequestDeps,
  type TokenResponse,
} from './oauth-deps.ts';
import { issueProviderToken, openRefreshToken, refreshAndShare } from './passthrough.ts';
import { findPersonProblem, type PersonLogin } from './person-login.ts';
import { openTokens, unwrapKey, wrapKey } from './provider.ts';
import { toChallenge } from './provider-requests.ts';
import { getNextExpiry, type OpenGrant, refreshAtProvider } from './provider-tokens.ts';

/** Handles `POST /mcp/{slug}/token`. @throws OAuthError, which the router renders according to RFC 6749, 5.2 */
export async function handleTokenRequest(
  server: LoginServer,
  request: TokenEndpointRequest,
  deps: RequestDeps,
): Promise<TokenResponse> {
  const { form } = request;
  rejectDuplicates(form);
  const clientId = await authenticateClient(server, request, deps);
  const target = getTarget(server, form);
  const grantType = form.get('grant_type');
  switch (grantType) {
    case 'authorization_code':
      return redeemCode(server, { clientId, form, target }, deps);
    case 'refresh_token':
      return redeemRefreshToken(server, { clientId, form, target }, deps);
    default:
      throw new OAuthError(
        grantType ? 'unsupported_grant_type' : 'invalid_request',
        `grant_type is ${formatWord(grantType)}; it must be "authorization_code" or "refresh_token"`,
      );
  }
}

/** A request to the token endpoint. `target` is undefined if the request has no `resource`. */
type TokenRequest = { clientId: string; form: URLSearchParams; target: Target | undefined };
/** The server, or one of its views, as named by `resource`. */
type Target = { view: string | undefined };

function getTarget(server: LoginServer, form: URLSearchParams): Target | undefined {
  const resources = form.getAll('resource').filter((resource) => resource !== '');
  const view = resolveResource(server, resources);
  return resources.length === 0 ? undefined : { view };
}

/** Rejects a request that names another target than the person agreed to (RFC 8707, 2.2). */
function checkTarget(server: LoginServer, target: Target | undefined, view: string | undefined): void {
  if (!target || target.view === view) return;
  throw new OAuthError(
    'invalid_target',
    `resource names ${getResourceUrl(server, target.view)}; it must be ${getResourceUrl(server, view)}, the resource of the login`,
  );
}

async function redeemCode(
  server: LoginServer,
  { clientId, form, target }: TokenRequest,
  deps: OAuthDeps,
): Promise<TokenResponse> {
  const secret = form.get('code');
  if (!secret) throw createMissingError('code');
  const code = await findCode(deps.db, hashSecret(secret));
  const grant = code && (await findGrant(deps.db, code.grant_id));
  if (!code || !grant) throw createInvalidGrantError('unknown code');
  if (grant.server_id !== server.id) throw createInvalidGrantError('code of another server');
  checkCode(code, clientId, form);
  if (!server.login?.rules.views) checkTarget(server, target, getAgreedView(grant.agreement));
  if (code.used_at !== null || code.expires_at <= deps.now()) throw await refuseCode(code, deps);
  checkGrantActive(server, grant);
  const grantKey = unwrapKey(code.wrapped_key, secret, grant.id);
  const tokens = openTokens(deps.keyring, grant, grantKey);
  // The code is consumed in the same transaction in which its tokens are stored, so that the client can send it again
  // after a database failure.
  if (server.mode === 'passthrough') {
    const response = await issueProviderToken(server, { clientId, tokens, view: getAgreedView(grant.agreement) }, deps);
    const isFirst = await transact(deps.db, async (db) => {
      const isConsumed = await markCodeUsed(db, code.hash, deps.now());
      if (isConsumed) await endGrantInTransaction(db, grant.id, deps);
      return isConsumed;
    });
    if (!isFirst) throw await refuseCode(code, deps);
    await deps.onCommitted();
    return response;
  }
  const response = await transact(deps.db, async (db) =>
    (await markCodeUsed(db, code.hash, deps.now()))
      ? issueTokens({ grant, generation: grant.generation, grantKey, tokens }, deps, db)
      : undefined,
  );
  if (!response) throw await refuseCode(code, deps);
  return response;
}

/**
 * Creates the error for a code that was already used or has expired. A reused code may have been stolen, so its grant
 * is revoked.
 */
async function refuseCode(code: Code, deps: OAuthDeps): Promise<OAuthError> {
  if (code.expires_at > deps.now() || code.used_at !== null) await endGrant(code.grant_id, deps);
  return createInvalidGrantError('code used before or expired');
}

/** Checks everything that the code was bound to when it was issued. */
function checkCode(code: Code, clientId: string, form: URLSearchParams): void {
  if (code.client_id !== clientId) throw createInvalidGrantError('code of another client');
  // The redirect URI may be omitted, because PKCE binds the code to the client that requested it (OAuth 2.1, 10.2).
  if (code.redirect_uri !== (form.get('redirect_uri') || code.redirect_uri))
    throw createInvalidGrantError('another redirect_uri');
  const verifier = form.get('code_verifier') ?? '';
  if (!/^[A-Za-z0-9\-._~]{43,128}$/.test(verifier) || toChallenge(verifier) !== code.code_challenge)
    throw createInvalidGrantError('wrong verifier');
}

function checkGrantActive(server: LoginServer, grant: Grant): void {
  if (grant.revoked_at !== null) throw createInvalidGrantError('grant revoked');
  if (grant.broken_at !== null) throw createInvalidGrantError('grant broken');
  const view = getAgreedView(grant.agreement);
  if (!isAgreed(grant.agreement, { ...server, view }))
    throw createInvalidGrantError('the server changed after the person agreed');
  if (view !== undefined && !server.views.includes(view)) throw createInvalidGrantError('the view no longer exists');
}

/** Ends a grant in all replicas. `onEnd` runs in the same transaction, unless the grant had already ended. */
async function endGrant(id: string, deps: OAuthDeps, onEnd?: (db: Db) => Promise<void>): Promise<void> {
  await transact(deps.db, async (db) => {
    if (await endGrantInTransaction(db, id, deps)) await onEnd?.(db);
  });
  await deps.onCommitted();
}

async function endGrantInTransaction(db: Db, id: string, deps: OAuthDeps): Promise<boolean> {
  const wasActive = await revokeGrant(db, id, deps.now());
  await recordChange(db, deps, 'grant', id);
  return wasActive;
}

/** Records a login event, in the transaction of the change itself. */
export function recordLoginEvent(db: Db, event: LoginRecord, { random, now }: OAuthDeps): Promise<void> {
  const { server, workspaceId, name, detail, requestId } = event;
  return insertLoginEvent(db, server.id, {
    id: newId(random, 'aud'),
    workspace_id: workspaceId,
    at: now(),
    actor_kind: 'client',
    actor_id: 'oauth',
    operation: name,
    target: server.slug,
    detail: JSON.stringify(detail),
    request_id: requestId,
  });
}

/** Number of rotations after which an old refresh token is deleted, and then refused like any unknown token. */
const retainedRotations = 100;
/**
 * Maximum number of access tokens, and of refresh tokens, of one grant: about twice the number that the retained
 * rotations produce.
 */
const maxTokensPerKind = 200;

/**
 * Redeems a refresh token, with rotation (OAuth 2.1, 4.3.1): each refresh token can be used once. Because responses get
 * lost, the previous token is accepted for `durations.refreshGrace` as long as its successor was not used. Use of an
 * older token is treated as theft and ends the grant.
 */
async function redeemRefreshToken(
  server: LoginServer,
  { clientId, form, target }: TokenRequest,
  deps: OAuthDeps,
): Promise<TokenResponse> {
  const secret = form.get('refresh_token');
  if (!secret) throw createMissingError('refresh_token');
  if (server.mode === 'passthrough') {
    const openedToken = openRefreshToken(deps.keyring, server, clientId, secret);
    if (!openedToken) throw createInvalidGrantError('not a refresh token of this server and client');
    checkTarget(server, target, openedToken.view);
    return refreshAndShare(server, { clientId, openedToken, key: hashSecret(secret) }, deps);
  }
  const token = await findToken(deps.db, hashSecret(secret));
  const grant = token && (await findGrant(deps.db, token.grant_id));
  if (token?.kind !== 'refresh' || !grant) throw createInvalidGrantError('unknown refresh token');
  if (grant.server_id !== server.id || grant.client_id !== clientId)
    throw createInvalidGrantError('refresh token of another server or client');
  if (token.expires_at < deps.now()) throw createInvalidGrantError('refresh token expired');
  if (!server.login?.rules.views) checkTarget(server, target, getAgreedView(grant.agreement));
  checkGrantActive(server, grant);
  const grantKey = unwrapKey(token.wrapped_key, secret, grant.id);
  const isRecent = token.generation >= grant.generation - 1;
  const tokens = isRecent
    ? await getCurrentTokens(server, grant, grantKey, deps)
    : openTokens(deps.keyring, grant, grantKey);
  const response = await transact(deps.db, async (db) => {
    const isRotated = await rotateGrant(db, grant.id, token.generation, deps.now());
    if (isRotated) {
      await deleteOldTokens(db, grant.id, token.generation - retainedRotations);
      return issueTokens({ grant, generation: token.generation + 1, grantKey, tokens }, deps, db);
    }
    const current = await findGrant(db, grant.id);
    if (!current || !isDirectPredecessor(current, token.generation, deps)) return undefined;
    const reissued = await issueTokens({ grant, generation: current.generation, grantKey, tokens }, deps, db);
    await deleteTokensOverLimit(db, grant.id, maxTokensPerKind);
    return reissued;
  });
  if (response) return response;
  await endGrant(grant.id, deps);
  throw createInvalidGrantError('refresh token reused after the grace period');
}

/**
 * Returns the provider's tokens, refreshed if they have expired. If the person must log in again, the agent learns it
 * here, where OAuth defines how to react, and not at its next call.
 */
async function getCurrentTokens(
  server: LoginServer,
  grant: Grant,
  grantKey: Buffer,
  deps: OAuthDeps,
): Promise<ProviderTokens> {
  let tokens = openTokens(deps.keyring, grant, grantKey);
  let openGrant: OpenGrant = { grant, grantKey, tokens, accessExpiresAt: 0 };
  // At most the identity and the tokens have expired.
  for (let count = 0; count < 2; count++) {
    const { part, expiresAt } = getNextExpiry(tokens);
    if (expiresAt === undefined || expiresAt > deps.now()) break;
    const renewed = await refreshAtProvider(server, openGrant, part, deps);
    if (!renewed) throw createProviderRefusal();
    openGrant = renewed;
    tokens = renewed.tokens;
  }
  tokens = await checkEarly(server, openGrant, deps);
  await checkPerson(server, { tokens, agreedView: getAgreedView(grant.agreement) }, deps);
  return tokens;
}

/**
 * Checks the person again if little is left of the last check, and returns the current tokens. Clients renew a token
 * before it ends, and would otherwise get one that ends at the same time, again and again.
 */
async function checkEarly(server: LoginServer, openGrant: OpenGrant, deps: OAuthDeps): Promise<ProviderTokens> {
  const { identity } = openGrant.tokens;
  if (!identity || !deps.people.isCheckDue(identity)) return openGrant.tokens;
  const checked = await refreshAtProvider(server, openGrant, 'identity', deps).catch((error: unknown) => {
    if (isUnavailableError(error)) return openGrant;
    throw error;
  });
  if (!checked) throw createProviderRefusal();
  return checked.tokens;
}

const createProviderRefusal = () => createInvalidGrantError('the provider no longer accepts the login');

/** Rejects a person who may no longer log in, or whose values must be entered again. @throws OAuthError invalid_grant */
async function checkPerson({ login, ...server }: LoginServer, person: PersonLogin, deps: OAuthDeps): Promise<void> {
  if (!login) return;
  const problem = await findPersonProblem({ ...server, login }, person, deps.personValues);
  if (problem !== undefined) throw createInvalidGrantError(problem);
}

function isDirectPredecessor(grant: Grant, generation: number, deps: OAuthDeps): boolean {
  return (
    grant.revoked_at === null &&
    grant.generation === generation + 1 &&
    deps.now() - grant.rotated_at <= durations.refreshGrace
  );
}

/** Input for issuing tokens. */
type IssueInput = { grant: Grant; generation: number; grantKey: Buffer; tokens: ProviderTokens };

/** Issues new tokens. Without a refresh token from the provider, they expire together with its access token. */
async function issueTokens(
  { grant, generation, grantKey, tokens }: IssueInput,
  deps: OAuthDeps,
  db: Db,
): Promise<TokenResponse> {
  const now = deps.now();
  const { identity } = tokens;
  const isProviderFinal = tokens.expiresAt !== undefined && tokens.refreshToken === undefined;
  const expiresWithProvider = isProviderFinal || (identity !== undefined && identity.refreshToken === undefined);
  const expiresAt = Math.min(
    // A login that cannot be checked again has one token for all of its time.
    identity && identity.refreshToken === undefined ? identity.expiresAt : now + durations.access,
    identity?.expiresAt ?? Number.POSITIVE_INFINITY,
    (isProviderFinal ? tokens.expiresAt : undefined) ?? Number.POSITIVE_INFINITY,
  );
  const accessToken = `tha_${newSecret(deps.random)}`;
  const refreshToken = expiresWithProvider ? undefined : `thr_${newSecret(deps.random)}`;
  const toRow = (secret: string, kind: 'access' | 'refresh', expires_at: number) => ({
    hash: hashSecret(secret),
    grant_id: grant.id,
    kind,
    generation,
    wrapped_key: wrapKey(grantKey, secret, grant.id),
    expires_at,
  });
  await insertTokens(db, [
    toRow(accessToken, 'access', expiresAt),
    ...(refreshToken === undefined ? [] : [toRow(refreshToken, 'refresh', now + durations.refresh)]),
  ]);
  return {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: Math.max(1, Math.floor((expiresAt - now) / 1000)),
    ...(refreshToken !== undefined && { refresh_token: refreshToken }),
    ...toScopeField(grant, tokens),
  };
}

/**
 * Returns the granted scopes if the provider names fewer than were requested (RFC 6749, 5.1), otherwise the requested
 * ones. Providers may return a scope under another name, and clients end a login with scopes that they do not know.
 * Offline access is omitted, because it is not advertised and no client requests it.
 */
function toScopeField(grant: Grant, tokens: ProviderTokens): { scope?: string } {
  const requestedScopes = removeOfflineScope(grant.scope.split(' '));
  const text = tokens.scope?.trim() ?? '';
  // Some providers separate scopes with commas, which a scope itself may contain.
  const grantedScopes = removeOfflineScope(text.split(/\s/.test(text) ? /\s+/ : ','));
  const isNarrower = grantedScopes.length > 0 && grantedScopes.every((scope) => requestedScopes.includes(scope));
  const scope = (isNarrower ? grantedScopes : requestedScopes).join(' ');
  return scope === '' ? {} : { scope };
}

function removeOfflineScope(scopes: readonly string[]): string[] {
  return scopes.filter((scope) => scope !== '' && scope !== offlineScope);
}

/** Revocation of a login. `isTrial` is true for a login that only tested the server. */
type Revocation = { requestId: string; isTrial: boolean };

/**
 * Handles `POST /mcp/{slug}/revoke` (RFC 7009). Either token ends the whole grant. Unknown tokens are not an error
 * (2.2). A token of the provider cannot be revoked here, and the response says so instead of claiming success (2.2.1).
 * The last login of a person takes their values along, except a trial login, for which they have just entered them.
 * @throws OAuthError invalid_client, invalid_request, unsupported_token_type
 */
export async function handleRevocation(
  server: LoginServer,
  request: TokenEndpointRequest,
  { requestId, isTrial }: Revocation,
  deps: RequestDeps,
): Promise<void> {
  const { form } = request;
  rejectDuplicates(form);
  const clientId = await authenticateClient(server, request, deps);
  const secret = form.get('token');
  if (!secret) throw createMissingError('token');
  if (isProviderToken(secret, server)) {
    const message = 'this is a token of the provider, which only the provider can revoke; nothing was revoked';
    throw new OAuthError('unsupported_token_type', message);
  }
  const token = await findToken(deps.db, hashSecret(secret));
  const grant = token && (await findGrant(deps.db, token.grant_id));
  if (!grant || grant.server_id !== server.id || grant.client_id !== clientId) return;
  const detail = { grant: grant.id, client: grant.client_name };
  const event = { server, workspaceId: grant.workspace_id, name: 'loginRevoked', detail, requestId } as const;
  const { server_id: serverId, person_id: userId } = grant;
  await endGrant(grant.id, deps, async (db) => {
    await recordLoginEvent(db, event, deps);
    if (isTrial || userId === null) return;
    if (await deleteUnusedValues(db, { serverId, userId })) await recordChange(db, deps, 'grant', userId);
  });
}

/**
 * Returns true if a token may have been issued by passthrough: the provider's access token, or its sealed refresh
 * token.
 */
function isProviderToken(token: string, { mode }: LoginServer): boolean {
  return token.startsWith('thp_') || (mode === 'passthrough' && !/^th[ar]_/.test(token));
}

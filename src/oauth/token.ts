import { hashOf, newId, newSecret } from '../domain/ids.ts';
import { OAuthError } from '../errors.ts';
import { insertLoginEvent } from '../store/audit-events.ts';
import { recordChange } from '../store/changes/follow-changes.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import {
  type Code,
  deleteCrowdedTokens,
  deleteOldTokens,
  findCode,
  findGrant,
  findToken,
  type Grant,
  insertTokens,
  isAgreed,
  revokeGrant,
  rotateGrant,
  spendCode,
  viewOfAgreement,
} from '../store/logins/grants.ts';
import { authenticateClient, type ClientRequest } from './client-authentication.ts';
import { checkResource, missing, refused, rejectDuplicates, resourceOf, shownWord } from './clients.ts';
import {
  type LoginRecord,
  type LoginServer,
  type OAuthParts,
  offlineScope,
  type ProviderTokens,
  type RequestParts,
  spans,
  type TokenAnswer,
} from './parts.ts';
import { openRefreshToken, passOn, refreshHeld } from './passthrough.ts';
import { challengeOf, openTokens, unwrapKey, wrapKey } from './provider.ts';
import { refreshAtProvider } from './provider-tokens.ts';

/** Handles `POST /mcp/{slug}/token`. @throws OAuthError, which the router renders according to RFC 6749, 5.2 */
export async function redeem(server: LoginServer, request: ClientRequest, parts: RequestParts): Promise<TokenAnswer> {
  const { form } = request;
  rejectDuplicates(form);
  const clientId = await authenticateClient(server, request, parts);
  const target = targetOf(server, form);
  const type = form.get('grant_type');
  switch (type) {
    case 'authorization_code':
      return redeemCode(server, { clientId, form, target }, parts);
    case 'refresh_token':
      return redeemRefreshToken(server, { clientId, form, target }, parts);
    default:
      throw new OAuthError(
        type ? 'unsupported_grant_type' : 'invalid_request',
        `grant_type is ${shownWord(type)}; it must be "authorization_code" or "refresh_token"`,
      );
  }
}

/** A request to the token endpoint. `target` is the one that `resource` names. Undefined if it is absent. */
type TokenRequest = { clientId: string; form: URLSearchParams; target: Target | undefined };
/** The server, or one of its views. */
type Target = { view: string | undefined };

function targetOf(server: LoginServer, form: URLSearchParams): Target | undefined {
  const resources = form.getAll('resource').filter((resource) => resource !== '');
  const view = checkResource(server, resources);
  return resources.length === 0 ? undefined : { view };
}

/** Rejects a request that names another target than the person agreed to (RFC 8707, 2.2). */
function checkTarget(server: LoginServer, target: Target | undefined, view: string | undefined): void {
  if (!target || target.view === view) return;
  throw new OAuthError(
    'invalid_target',
    `resource names ${resourceOf(server, target.view)}; it must be ${resourceOf(server, view)}, the resource of the login`,
  );
}

async function redeemCode(
  server: LoginServer,
  { clientId, form, target }: TokenRequest,
  parts: OAuthParts,
): Promise<TokenAnswer> {
  const secret = form.get('code');
  if (!secret) throw missing('code');
  const code = await findCode(parts.db, hashOf(secret));
  const grant = code && (await findGrant(parts.db, code.grant_id));
  if (!code || !grant) throw refused('unknown code');
  if (grant.server_id !== server.id) throw refused('code of another server');
  checkCode(code, clientId, form);
  checkTarget(server, target, viewOfAgreement(grant.agreement));
  if (code.used_at !== null || code.expires_at <= parts.now()) throw await refusedCode(code, parts);
  checkAlive(server, grant);
  const grantKey = unwrapKey(code.wrapped_key, secret, grant.id);
  const tokens = openTokens(parts.keyring, grant, grantKey);
  // The code is consumed in the same transaction in which its tokens are stored, so that the client can send it again
  // after a database failure.
  if (server.mode === 'passthrough') {
    const answer = await passOn(server, { clientId, tokens, view: viewOfAgreement(grant.agreement) }, parts);
    const isFirst = await transact(parts.db, async (db) => {
      const spent = await spendCode(db, code.hash, parts.now());
      if (spent) await endGrantWithin(db, grant.id, parts);
      return spent;
    });
    if (!isFirst) throw await refusedCode(code, parts);
    await parts.onCommitted();
    return answer;
  }
  const answer = await transact(parts.db, async (db) =>
    (await spendCode(db, code.hash, parts.now()))
      ? issue({ grant, generation: grant.generation, grantKey, tokens }, parts, db)
      : undefined,
  );
  if (!answer) throw await refusedCode(code, parts);
  return answer;
}

/**
 * Creates the error for a code that was already used or has expired. A reused code may have been stolen, so its grant
 * is revoked.
 */
async function refusedCode(code: Code, parts: OAuthParts): Promise<OAuthError> {
  if (code.expires_at > parts.now() || code.used_at !== null) await endGrant(code.grant_id, parts);
  return refused('code used before or expired');
}

/** Checks everything that the code was bound to when it was issued. */
function checkCode(code: Code, clientId: string, form: URLSearchParams): void {
  if (code.client_id !== clientId) throw refused('code of another client');
  // The redirect URI may be omitted, because PKCE binds the code to the client that requested it (OAuth 2.1, 10.2).
  if (code.redirect_uri !== (form.get('redirect_uri') || code.redirect_uri)) throw refused('another redirect_uri');
  const verifier = form.get('code_verifier') ?? '';
  if (!/^[A-Za-z0-9\-._~]{43,128}$/.test(verifier) || challengeOf(verifier) !== code.code_challenge)
    throw refused('wrong verifier');
}

function checkAlive(server: LoginServer, grant: Grant): void {
  if (grant.revoked_at !== null) throw refused('grant revoked');
  if (grant.broken_at !== null) throw refused('grant broken');
  const view = viewOfAgreement(grant.agreement);
  if (!isAgreed(grant.agreement, { ...server, view })) throw refused('the server changed after the person agreed');
  if (view !== undefined && !server.views.includes(view)) throw refused('the view no longer exists');
}

/** Ends a grant in all replicas. `note` records that in the same transaction, unless the grant had already ended. */
async function endGrant(id: string, parts: OAuthParts, note?: (db: Db) => Promise<void>): Promise<void> {
  await transact(parts.db, async (db) => {
    if (await endGrantWithin(db, id, parts)) await note?.(db);
  });
  await parts.onCommitted();
}

async function endGrantWithin(db: Db, id: string, parts: OAuthParts): Promise<boolean> {
  const found = await revokeGrant(db, id, parts.now());
  await recordChange(db, parts, 'grant', id);
  return found;
}

/** Records a login event, in the transaction of the change itself. */
export function noteEvent(db: Db, event: LoginRecord, { random, now }: OAuthParts): Promise<void> {
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
const rememberedRotations = 100;
/**
 * Maximum number of access tokens, and of refresh tokens, of one grant: about twice the number that the retained
 * rotations produce.
 */
const rememberedTokens = 200;

/**
 * Redeems a refresh token, with rotation (OAuth 2.1, 4.3.1): each refresh token can be used once. Because responses get
 * lost, the previous token is accepted for `spans.grace` as long as its successor was not used. Use of an older token
 * is treated as theft and ends the grant.
 */
async function redeemRefreshToken(
  server: LoginServer,
  { clientId, form, target }: TokenRequest,
  parts: OAuthParts,
): Promise<TokenAnswer> {
  const secret = form.get('refresh_token');
  if (!secret) throw missing('refresh_token');
  if (server.mode === 'passthrough') {
    const held = openRefreshToken(parts.keyring, server, clientId, secret);
    if (!held) throw refused('not a refresh token of this server and client');
    checkTarget(server, target, held.view);
    return refreshHeld(server, { clientId, held, key: hashOf(secret) }, parts);
  }
  const token = await findToken(parts.db, hashOf(secret));
  const grant = token && (await findGrant(parts.db, token.grant_id));
  if (token?.kind !== 'refresh' || !grant) throw refused('unknown refresh token');
  if (grant.server_id !== server.id || grant.client_id !== clientId)
    throw refused('refresh token of another server or client');
  if (token.expires_at < parts.now()) throw refused('refresh token expired');
  checkTarget(server, target, viewOfAgreement(grant.agreement));
  checkAlive(server, grant);
  const grantKey = unwrapKey(token.wrapped_key, secret, grant.id);
  const isNewEnough = token.generation >= grant.generation - 1;
  const tokens = isNewEnough
    ? await liveTokens(server, grant, grantKey, parts)
    : openTokens(parts.keyring, grant, grantKey);
  const answer = await transact(parts.db, async (db) => {
    const rotated = await rotateGrant(db, grant.id, token.generation, parts.now());
    if (rotated) {
      await deleteOldTokens(db, grant.id, token.generation - rememberedRotations);
      return issue({ grant, generation: token.generation + 1, grantKey, tokens }, parts, db);
    }
    const current = await findGrant(db, grant.id);
    if (!current || !isDirectPredecessor(current, token.generation, parts)) return undefined;
    const again = await issue({ grant, generation: current.generation, grantKey, tokens }, parts, db);
    await deleteCrowdedTokens(db, grant.id, rememberedTokens);
    return again;
  });
  if (answer) return answer;
  await endGrant(grant.id, parts);
  throw refused('refresh token reused after the grace period');
}

/**
 * Returns the provider's tokens, refreshed if they have expired. If the person must log in again, the agent learns it
 * here, where OAuth defines how to react, and not at its next call.
 */
async function liveTokens(
  server: LoginServer,
  grant: Grant,
  grantKey: Buffer,
  parts: OAuthParts,
): Promise<ProviderTokens> {
  const tokens = openTokens(parts.keyring, grant, grantKey);
  if (tokens.expiresAt === undefined || tokens.expiresAt > parts.now()) return tokens;
  const renewed = await refreshAtProvider(server, { grant, grantKey, tokens, accessExpiresAt: 0 }, parts);
  if (!renewed) throw refused('the provider no longer accepts the login');
  return renewed.tokens;
}

function isDirectPredecessor(grant: Grant, generation: number, parts: OAuthParts): boolean {
  return (
    grant.revoked_at === null && grant.generation === generation + 1 && parts.now() - grant.rotated_at <= spans.grace
  );
}

/** Input for issuing tokens. */
type Issued = { grant: Grant; generation: number; grantKey: Buffer; tokens: ProviderTokens };

/** Issues new tokens. Without a refresh token from the provider, they expire together with its access token. */
async function issue({ grant, generation, grantKey, tokens }: Issued, parts: OAuthParts, db: Db): Promise<TokenAnswer> {
  const now = parts.now();
  const endsWithProvider = tokens.expiresAt !== undefined && tokens.refreshToken === undefined;
  const expiresAt = endsWithProvider ? Math.min(now + spans.access, tokens.expiresAt as number) : now + spans.access;
  const access = `tha_${newSecret(parts.random)}`;
  const refresh = endsWithProvider ? undefined : `thr_${newSecret(parts.random)}`;
  const row = (secret: string, kind: 'access' | 'refresh', expires_at: number) => ({
    hash: hashOf(secret),
    grant_id: grant.id,
    kind,
    generation,
    wrapped_key: wrapKey(grantKey, secret, grant.id),
    expires_at,
  });
  await insertTokens(db, [
    row(access, 'access', expiresAt),
    ...(refresh === undefined ? [] : [row(refresh, 'refresh', now + spans.refresh)]),
  ]);
  return {
    access_token: access,
    token_type: 'Bearer',
    expires_in: Math.max(1, Math.floor((expiresAt - now) / 1000)),
    ...(refresh !== undefined && { refresh_token: refresh }),
    ...scopeOf(grant, tokens),
  };
}

/**
 * Returns the granted scopes if the provider names fewer than were requested (RFC 6749, 5.1), otherwise the requested
 * ones. Providers may return a scope under another name, and clients end a login with scopes that they do not know.
 * Offline access is omitted, because it is not advertised and no client requests it.
 */
function scopeOf(grant: Grant, tokens: ProviderTokens): { scope?: string } {
  const asked = shown(grant.scope.split(' '));
  const text = tokens.scope?.trim() ?? '';
  // Some providers separate scopes with commas, which a scope itself may contain.
  const granted = shown(text.split(/\s/.test(text) ? /\s+/ : ','));
  const isNarrower = granted.length > 0 && granted.every((scope) => asked.includes(scope));
  const scope = (isNarrower ? granted : asked).join(' ');
  return scope === '' ? {} : { scope };
}

function shown(scopes: readonly string[]): string[] {
  return scopes.filter((scope) => scope !== '' && scope !== offlineScope);
}

/**
 * Handles `POST /mcp/{slug}/revoke` (RFC 7009). Either token ends the whole grant. Unknown tokens are not an error
 * (2.2). A token of the provider cannot be revoked here, and the response says so instead of claiming success (2.2.1).
 * @throws OAuthError invalid_client, invalid_request, unsupported_token_type
 */
export async function revoke(
  server: LoginServer,
  request: ClientRequest,
  requestId: string,
  parts: RequestParts,
): Promise<void> {
  const { form } = request;
  rejectDuplicates(form);
  const clientId = await authenticateClient(server, request, parts);
  const secret = form.get('token');
  if (!secret) throw missing('token');
  if (isOfProvider(secret, server)) {
    const message = 'this is a token of the provider, which only the provider can revoke; nothing was revoked';
    throw new OAuthError('unsupported_token_type', message);
  }
  const token = await findToken(parts.db, hashOf(secret));
  const grant = token && (await findGrant(parts.db, token.grant_id));
  if (!grant || grant.server_id !== server.id || grant.client_id !== clientId) return;
  const detail = { grant: grant.id, client: grant.client_name };
  const event = { server, workspaceId: grant.workspace_id, name: 'loginRevoked', detail, requestId } as const;
  await endGrant(grant.id, parts, (db) => noteEvent(db, event, parts));
}

/**
 * Returns true if a token may have been issued by passthrough: the provider's access token, or its sealed refresh
 * token.
 */
function isOfProvider(token: string, { mode }: LoginServer): boolean {
  return token.startsWith('thp_') || (mode === 'passthrough' && !/^th[ar]_/.test(token));
}

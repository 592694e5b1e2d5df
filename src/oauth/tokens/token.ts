import type { Kysely } from 'kysely';
import { agreementFor, isAgreed, viewOfAgreement } from '../../domain/credentials/agreement.ts';
import { isUnavailable, OAuthError } from '../../errors.ts';
import { recordChange } from '../../store/changes/changes.ts';
import { findGrant, type Grant, revokeGrant, rotateGrant } from '../../store/logins/grants.ts';
import {
  type Code,
  deleteCrowdedTokens,
  deleteOldTokens,
  findCode,
  findToken,
  spendCode,
} from '../../store/logins/tokens.ts';
import type { Tables } from '../../store/schema.ts';
import { transact } from '../../store/transact.ts';
import { checkResource, findClientId, rejectDuplicates, resourceOf, shownWord } from '../clients/request-checks.ts';
import { challengeOf, hashOf, unwrapKey } from '../credentials.ts';
import type { LoginServer, ProviderTokens } from '../login-server.ts';
import { type OAuthParts, type RequestParts, spans, type TokenAnswer } from '../parts.ts';
import { issue } from './issue.ts';
import { type HeldToken, openRefreshToken, wrapRefreshToken } from './passthrough.ts';
import { openGrantTokens, refreshAtProvider } from './refresh-grant.ts';
import { lifeOfAnswer } from './unsaved-tokens.ts';

/** `POST /mcp/{slug}/token`. @throws OAuthError, which the router renders per RFC 6749, 5.2 */
export async function redeem(server: LoginServer, form: URLSearchParams, parts: RequestParts): Promise<TokenAnswer> {
  rejectDuplicates(form);
  const clientId = await findClientId(server, form.get('client_id'), parts);
  const target = targetOf(server, form);
  const type = form.get('grant_type');
  switch (type) {
    case 'authorization_code':
      return redeemCode(server, { clientId, form, target }, parts);
    case 'refresh_token':
      return redeemRefreshToken(server, { clientId, form, target }, parts);
    default:
      throw new OAuthError(
        'unsupported_grant_type',
        `grant_type is ${shownWord(type)}; it must be "authorization_code" or "refresh_token"`,
      );
  }
}

const refused = (detail: string) => new OAuthError('invalid_grant', 'the code or token is not valid here', detail);

/** A request to the token endpoint. `target` is what `resource` names; undefined when it is absent. */
type TokenRequest = { clientId: string; form: URLSearchParams; target: Target | undefined };
/** The server, or a view of it. */
type Target = { view: string | undefined };

function targetOf(server: LoginServer, form: URLSearchParams): Target | undefined {
  const resources = form.getAll('resource').filter((resource) => resource !== '');
  const view = checkResource(server, resources);
  return resources.length === 0 ? undefined : { view };
}

/** A token is for what the person agreed to, so a request cannot name anything else (RFC 8707, 2.2). */
function checkTarget(server: LoginServer, target: Target | undefined, view: string | undefined): void {
  if (!target || target.view === view) return;
  throw new OAuthError(
    'invalid_target',
    `resource names ${resourceOf(server, target.view)}; it must be ${resourceOf(server, view)}, which the login was for`,
  );
}

async function redeemCode(
  server: LoginServer,
  { clientId, form, target }: TokenRequest,
  parts: OAuthParts,
): Promise<TokenAnswer> {
  const secret = form.get('code') ?? '';
  const code = await findCode(parts.db, hashOf(secret));
  const grant = code && (await findGrant(parts.db, code.grant_id));
  if (!code || !grant) throw refused('unknown code');
  if (grant.server_id !== server.id) throw refused('code of another server');
  checkCode(code, clientId, form);
  checkTarget(server, target, viewOfAgreement(grant.agreement));
  if (code.used_at !== null || code.expires_at <= parts.now()) throw await refusedCode(code, parts);
  checkAlive(server, grant);
  const grantKey = unwrapKey(code.wrapped_key, secret, grant.id);
  const tokens = openGrantTokens(grant, grantKey, parts);
  // The code is spent together with what it gives, so after a fault of the database the client can send it again.
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

/** A code that comes again may have been stolen, so it ends what it gave. */
async function refusedCode(code: Code, parts: OAuthParts): Promise<OAuthError> {
  if (code.expires_at > parts.now() || code.used_at !== null) await endGrant(code.grant_id, parts);
  return refused('code used before or expired');
}

/** Checks everything that the code was bound to when it was issued. */
function checkCode(code: Code, clientId: string, form: URLSearchParams): void {
  if (code.client_id !== clientId) throw refused('code of another client');
  if (code.redirect_uri !== form.get('redirect_uri')) throw refused('another redirect_uri');
  const verifier = form.get('code_verifier') ?? '';
  if (!/^[A-Za-z0-9\-._~]{43,128}$/.test(verifier) || challengeOf(verifier) !== code.code_challenge)
    throw refused('wrong verifier');
}

function checkAlive(server: LoginServer, grant: Grant): void {
  if (grant.revoked_at !== null) throw refused('grant revoked');
  if (grant.broken_at !== null) throw refused('grant broken');
  const view = viewOfAgreement(grant.agreement);
  if (!isAgreed(grant.agreement, { ...server, view })) throw refused('the server changed what was agreed to');
  if (view !== undefined && !server.views.includes(view)) throw refused('the view is gone');
}

/** Ends a grant in every replica. `note` writes that down, in the same transaction, where the grant had not ended before. */
export async function endGrant(
  id: string,
  parts: OAuthParts,
  note?: (db: Kysely<Tables>) => Promise<void>,
): Promise<void> {
  await transact(parts.db, async (db) => {
    if (await endGrantWithin(db, id, parts)) await note?.(db);
  });
  await parts.onCommitted();
}

async function endGrantWithin(db: Kysely<Tables>, id: string, parts: OAuthParts): Promise<boolean> {
  const found = await revokeGrant(db, id, parts.now());
  await recordChange(db, parts, 'grant', id);
  return found;
}

/** Number of rotations after which an old refresh token is deleted, and then refused like any unknown token. */
const rememberedRotations = 100;
/** Most access tokens, and most refresh tokens, of one grant: about twice what the remembered rotations give. */
const rememberedTokens = 200;

/**
 * Rotation (OAuth 2.1, 4.3.1): each refresh token can be used once. Because answers get lost, the previous token is
 * accepted for `spans.grace` as long as its successor was not used. Use of an older token is theft and ends the grant.
 */
async function redeemRefreshToken(server: LoginServer, request: TokenRequest, parts: OAuthParts): Promise<TokenAnswer> {
  const { clientId, form, target } = request;
  const secret = form.get('refresh_token') ?? '';
  if (server.mode === 'passthrough') return refreshPassthrough(server, request, secret, parts);
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
    : openGrantTokens(grant, grantKey, parts);
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
  throw refused('refresh token used again after its time');
}

/**
 * The provider's tokens, refreshed when they have expired. If the person must log in again, the agent learns it here,
 * where OAuth defines how to react, and not at its next call.
 */
async function liveTokens(
  server: LoginServer,
  grant: Grant,
  grantKey: Buffer,
  parts: OAuthParts,
): Promise<ProviderTokens> {
  const tokens = openGrantTokens(grant, grantKey, parts);
  if (tokens.expiresAt === undefined || tokens.expiresAt > parts.now()) return tokens;
  const renewed = await refreshAtProvider(server, { grant, grantKey, tokens, accessExpiresAt: 0 }, parts);
  if (!renewed) throw refused('the provider no longer honours the login');
  return renewed.tokens;
}

function isDirectPredecessor(grant: Grant, generation: number, parts: OAuthParts): boolean {
  return (
    grant.revoked_at === null && grant.generation === generation + 1 && parts.now() - grant.rotated_at <= spans.grace
  );
}

type PassedOn = { clientId: string; tokens: ProviderTokens; view: string | undefined };

/**
 * Passthrough: the agent gets the provider's own token, and its refresh token sealed by us. The token's agreement is
 * stored first and the server is read again afterwards, so that a concurrent change of the server is noticed on one side.
 */
async function passOn(
  server: LoginServer,
  { clientId, tokens, view }: PassedOn,
  parts: OAuthParts,
): Promise<TokenAnswer> {
  const { accessToken, expiresAt = parts.now() + spans.access, refreshToken, scope } = tokens;
  const agreement = agreementFor(server.agreement, view);
  await parts.handedOut.add({ id: server.id, workspaceId: server.workspaceId, agreement }, accessToken, expiresAt);
  await parts.onCommitted();
  const current = await parts.findServer(server.slug);
  if (current?.agreement !== server.agreement) throw refused('the server changed what was agreed to');
  return {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: Math.max(1, Math.floor((expiresAt - parts.now()) / 1000)),
    ...(refreshToken !== undefined && {
      refresh_token: wrapRefreshToken(parts.keyring, server, clientId, { refreshToken, view }),
    }),
    ...(scope !== undefined && { scope }),
  };
}

/**
 * Each request is checked by itself. Those that come together with one refresh token share what the provider and the
 * database say: a provider that sees a refresh token twice may take it for stolen, and end the login.
 */
async function refreshPassthrough(
  server: LoginServer,
  { clientId, target }: TokenRequest,
  secret: string,
  parts: OAuthParts,
): Promise<TokenAnswer> {
  const held = openRefreshToken(parts.keyring, server, clientId, secret);
  if (!held) throw refused('not a refresh token of this server and client');
  checkTarget(server, target, held.view);
  const { refreshing } = parts;
  const key = hashOf(secret);
  const underWay = refreshing.get(key);
  if (underWay) return underWay;
  const answer = refreshHeld(server, { clientId, held, key }, parts).finally(() => refreshing.delete(key));
  refreshing.set(key, answer);
  return answer;
}

/** `key` is the hash of the refresh token that the agent holds. */
async function refreshHeld(
  server: LoginServer,
  { clientId, held, key }: { clientId: string; held: HeldToken; key: string },
  parts: OAuthParts,
): Promise<TokenAnswer> {
  const { answers } = parts.unsaved;
  const tokens = answers.get(key)?.tokens ?? (await refreshed(server, held.refreshToken, parts));
  answers.delete(key);
  try {
    return await passOn(server, { clientId, tokens, view: held.view }, parts);
  } catch (error) {
    // The agent will retry with a refresh token that the provider may have ended.
    if (isUnavailable(error))
      answers.set(key, { workspaceId: server.workspaceId, tokens }, lifeOfAnswer(tokens, parts.now()));
    throw error;
  }
}

async function refreshed(server: LoginServer, refreshToken: string, parts: OAuthParts): Promise<ProviderTokens> {
  try {
    const tokens = await server.provider.refresh(refreshToken);
    parts.onEvent('refreshed');
    return { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken };
  } catch (error) {
    parts.onEvent('refresh_failed');
    throw error;
  }
}

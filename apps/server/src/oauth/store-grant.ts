import { hashSecret, newId, newSecret } from '@toolhost/credentials/ids';
import { OAuthError } from '@toolhost/errors/errors';
import { recordChanges } from '../store/changes/follow-changes.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import {
  type Authorization,
  countLoginBytes,
  endGrantsOverLimit,
  getAgreedView,
  insertGrant,
  reserveLoginBytes,
} from '../store/logins/grants.ts';
import { insertCode } from '../store/logins/issued-tokens.ts';
import { durations, type LoginResult, type LoginServer, type OAuthDeps, type ProviderTokens } from './oauth-deps.ts';
import { findRefusal, getPersonName } from './people.ts';
import { sealTokens, wrapKey } from './provider.ts';
import { recordLoginEvent } from './token.ts';

/** Request of the client that a login was for. */
type LoginTarget = Pick<Authorization, 'client_id' | 'client_name' | 'redirect_uri' | 'code_challenge' | 'scope'>;
type FinishedLogin = { login: LoginTarget; result: LoginResult; agreement: string; requestId: string };

/**
 * Stores the result of the login, and returns our one-time code for it.
 * @throws OAuthError access_denied if the person may no longer log in
 */
export async function storeGrant(
  server: LoginServer,
  { login, result, agreement, requestId }: FinishedLogin,
  deps: OAuthDeps,
): Promise<string> {
  const view = getAgreedView(agreement);
  const tokens = await updatePerson(server, result.tokens, deps);
  const { identity } = tokens;
  const id = newId(deps.random, 'grt');
  const grantKey = Buffer.from(deps.random(32));
  const code = newSecret(deps.random);
  const now = deps.now();
  const sealed = sealTokens(deps.keyring, { id, workspace_id: result.workspaceId }, grantKey, tokens);
  await transact(deps.db, async (db) => {
    await insertGrant(db, {
      id,
      workspace_id: result.workspaceId,
      server_id: server.id,
      slug: server.slug,
      client_id: login.client_id,
      client_name: login.client_name,
      user_id: result.userId ?? null,
      person: (identity ? getPersonName(identity) : result.person) ?? null,
      person_id: identity?.userId ?? null,
      scope: login.scope,
      agreement,
      sealed_tokens: sealed,
      tokens_version: 1,
      generation: 0,
      rotated_at: now,
      created_at: now,
    });
    await insertCode(db, {
      hash: hashSecret(code),
      grant_id: id,
      client_id: login.client_id,
      redirect_uri: login.redirect_uri,
      code_challenge: login.code_challenge,
      wrapped_key: wrapKey(grantKey, code, id),
      expires_at: now + durations.code,
    });
    // Each person's management logins are limited instead.
    if (result.userId === undefined) {
      const bytes = countLoginBytes({ sealed_tokens: sealed, client_id: login.client_id, scope: login.scope });
      if (!(await reserveLoginBytes(db, { workspaceId: result.workspaceId, serverId: server.id, bytes }, now)))
        throw new OAuthError(
          'temporarily_unavailable',
          'new logins have reached their storage limit for this minute; retry in a minute',
        );
    } else {
      const person = { workspaceId: result.workspaceId, userId: result.userId, retainedId: id };
      await recordChanges(db, deps, 'grant', await endGrantsOverLimit(db, person, now));
    }
    const detail = { grant: id, client: login.client_name, ...(view !== undefined && { view }) };
    await recordLoginEvent(db, { server, workspaceId: result.workspaceId, name: 'login', detail, requestId }, deps);
  });
  return code;
}

/** Returns the tokens with the current membership of the person, who may have left the workspace at the provider. */
async function updatePerson(
  { login, workspaceId }: LoginServer,
  tokens: ProviderTokens,
  { people }: OAuthDeps,
): Promise<ProviderTokens> {
  if (!login || !tokens.identity) return tokens;
  const identity = await people.updateMembership(tokens.identity, { workspaceId, login });
  const refusal = findRefusal(login, identity);
  if (refusal !== undefined) throw new OAuthError('access_denied', refusal);
  return { ...tokens, identity };
}

import { OAuthError } from '../../errors.ts';
import { findGrant } from '../../store/logins/grants.ts';
import { findToken } from '../../store/logins/tokens.ts';
import { findClientId, rejectDuplicates } from '../clients/request-checks.ts';
import { hashOf } from '../credentials.ts';
import type { LoginServer } from '../login-server.ts';
import type { RequestParts } from '../parts.ts';
import { endGrant } from './token.ts';

/**
 * `POST /mcp/{slug}/revoke` (RFC 7009): either token ends the whole grant. Unknown tokens are no error (2.2).
 * A token of the provider cannot be ended here, and the answer says so instead of claiming it (2.2.1).
 * @throws OAuthError invalid_client, invalid_request, unsupported_token_type
 */
export async function revoke(
  server: LoginServer,
  form: URLSearchParams,
  requestId: string,
  parts: RequestParts,
): Promise<void> {
  rejectDuplicates(form);
  const clientId = await findClientId(server, form.get('client_id'), parts);
  const secret = form.get('token');
  if (!secret) throw new OAuthError('invalid_request', 'token is missing');
  if (isOfProvider(secret, server)) {
    const message = 'this is a token of the provider, which only the provider can revoke; nothing was revoked';
    throw new OAuthError('unsupported_token_type', message);
  }
  const token = await findToken(parts.db, hashOf(secret));
  const grant = token && (await findGrant(parts.db, token.grant_id));
  if (!grant || grant.server_id !== server.id || grant.client_id !== clientId) return;
  const detail = { grant: grant.id, client: grant.client_name };
  const event = { server, workspaceId: grant.workspace_id, name: 'loginRevoked', detail, requestId } as const;
  await endGrant(grant.id, parts, (db) => parts.audit(db, event));
}

/** Whether a token may be one that passthrough hands out: the provider's access token, or its sealed refresh token. */
function isOfProvider(token: string, { mode }: LoginServer): boolean {
  return token.startsWith('thp_') || (mode === 'passthrough' && !/^th[ar]_/.test(token));
}

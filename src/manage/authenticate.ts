import { bearerToken } from '../domain/credential.ts';
import type { RequestHeaders } from '../domain/mcp.ts';
import { Unauthenticated } from '../errors.ts';
import type { Actor } from '../operations/operation.ts';
import type { ApiKey } from '../store/api-keys.ts';

/**
 * Who manages: the holder of an API key. What the key may do is checked with each operation.
 * @throws Unauthenticated
 */
export async function authenticate(
  headers: RequestHeaders,
  verifyApiKey: (key: string) => Promise<ApiKey | undefined>,
): Promise<Actor> {
  const bearer = bearerToken(headers);
  if (bearer === undefined)
    throw new Unauthenticated('missing', 'no credential: send "Authorization: Bearer …" with an API key');
  const key = await verifyApiKey(bearer);
  if (!key) throw new Unauthenticated('invalid', 'the API key is not valid');
  return { kind: 'api_key', id: key.id, workspaceId: key.workspaceId, scopes: key.scopes, servers: key.servers };
}

/** Whether an actor may manage at all; a key for calling alone has no business at a management door. */
export function mayManage(actor: Actor): boolean {
  return actor.scopes.some((scope) => scope !== 'call');
}

import { keyHeader, presentedCredential } from '../domain/credentials/credential.ts';
import type { Lookup, RequestHeaders } from '../domain/visit.ts';
import type { MaybePromise } from '../domain/work/maybe-promise.ts';
import { Unauthenticated } from '../errors.ts';
import type { Actor } from '../operations/operation.ts';
import type { ApiKey } from '../store/api-keys.ts';

/** Credentials for management: an API key, or a token of the sign-in at the management server. */
export type ManagerCredentials = {
  verifyApiKey: (key: string, look: Lookup) => MaybePromise<ApiKey | undefined>;
  /** The person behind a token of the sign-in, or undefined for anything else. */
  findPerson: (bearer: string, look: Lookup) => Promise<Actor | undefined>;
};

/**
 * Authenticates an actor. Each operation checks its permissions.
 * @throws Unauthenticated
 */
export async function authenticate(
  headers: RequestHeaders,
  credentials: ManagerCredentials,
  look: Lookup,
): Promise<Actor> {
  const bearer = presentedCredential(headers, [keyHeader]);
  if (bearer === undefined)
    throw new Unauthenticated('missing', 'no credential: send "Authorization: Bearer …" with an API key');
  const person = await credentials.findPerson(bearer, look);
  if (person) return person;
  const key = await credentials.verifyApiKey(bearer, look);
  if (!key) throw new Unauthenticated('invalid', 'the API key or token is not valid');
  const { id, workspaceId, scopes, servers, limits } = key;
  return { kind: 'api_key', id, workspaceId, scopes, servers, callLimits: limits };
}

/** Whether an actor may manage at all. A key that may only call may not use the management server. */
export function mayManage(actor: Actor): boolean {
  return actor.scopes.some((scope) => scope !== 'call');
}

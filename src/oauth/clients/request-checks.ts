import { OAuthError } from '../../errors.ts';
import { hasGrantOfClient } from '../../store/logins/grants.ts';
import type { LoginServer } from '../login-server.ts';
import type { OAuthParts } from '../parts.ts';
import { type OAuthClient, readClientId } from './client.ts';
import { isDocumentUrl } from './client-document.ts';

/** Refuses a parameter that is given twice (RFC 6749, 3.1). */
export function rejectDuplicates(params: URLSearchParams): void {
  const names = [...params.keys()].filter((name) => name !== 'resource');
  if (new Set(names).size < names.length) throw new OAuthError('invalid_request', 'a parameter is given twice');
}

/** @throws OAuthError invalid_client */
export async function findClient(
  server: LoginServer,
  clientId: string | null,
  parts: OAuthParts,
): Promise<OAuthClient> {
  if (!clientId) throw new OAuthError('invalid_client', 'client_id is missing');
  const client = isDocumentUrl(clientId)
    ? await parts.documents.find(clientId)
    : readClientId(parts.keyring, server.id, clientId);
  if (!client) throw new OAuthError('invalid_client', 'the client is not known here; it should register again');
  return client;
}

/**
 * The client id at the endpoints that need no redirect URI. A client with a metadata document that has a login here is
 * known: its document was checked at the login, and need not be reachable for every refresh.
 * @throws OAuthError invalid_client
 */
export async function findClientId(server: LoginServer, clientId: string | null, parts: OAuthParts): Promise<string> {
  if (clientId && isDocumentUrl(clientId) && (await hasGrantOfClient(parts.db, server.id, clientId))) return clientId;
  return (await findClient(server, clientId, parts)).id;
}

/** Checks `resource` (RFC 8707): absent means this server; the case of scheme and host and one trailing slash are ignored. */
export function checkResource(server: LoginServer, resources: readonly string[]): void {
  const plain = (text: string) => (URL.canParse(text) ? new URL(text).href.replace(/\/$/, '') : text);
  const { issuer, ownAddress, apiAddress } = server;
  const own = [issuer, ownAddress, apiAddress].filter((address) => address !== undefined).map(plain);
  if (resources.some((resource) => resource !== '' && !own.includes(plain(resource)))) {
    throw new OAuthError('invalid_target', 'resource must be the address of this server');
  }
}

import { OAuthError } from '../../errors.ts';
import { hasGrantOfClient } from '../../store/logins/grants.ts';
import type { LoginServer } from '../login-server.ts';
import type { OAuthParts } from '../parts.ts';
import { type OAuthClient, readClientId } from './client.ts';
import { isDocumentUrl } from './client-document.ts';

/** Checks of requests that several endpoints share. */

/** RFC 6749, 3.1: a parameter given twice is an error. */
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
 * The client at the endpoints that need no redirect URI. One that described itself by a document and holds a login here
 * is known: its document was judged then, and must not have to be reachable for every refresh.
 * @throws OAuthError invalid_client
 */
export async function findClientId(server: LoginServer, clientId: string | null, parts: OAuthParts): Promise<string> {
  if (clientId && isDocumentUrl(clientId) && (await hasGrantOfClient(parts.db, server.id, clientId))) return clientId;
  return (await findClient(server, clientId, parts)).id;
}

/** RFC 8707: absent is this server; scheme and host in any case and one trailing slash make no difference. */
export function checkResource(server: LoginServer, resources: readonly string[]): void {
  const plain = (text: string) => (URL.canParse(text) ? new URL(text).href.replace(/\/$/, '') : text);
  if (resources.some((resource) => resource !== '' && plain(resource) !== plain(server.issuer))) {
    throw new OAuthError('invalid_target', 'resource must be the address of this server');
  }
}

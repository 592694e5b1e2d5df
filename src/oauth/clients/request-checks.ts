import { readUrl } from '../../domain/http/read-url.ts';
import { OAuthError } from '../../errors.ts';
import { hasGrantOfClient } from '../../store/logins/grants.ts';
import type { LoginServer } from '../login-server.ts';
import type { RequestParts } from '../parts.ts';
import { type OAuthClient, readClientId } from './client.ts';
import { isDocumentUrl } from './client-document.ts';

/** Refuses a parameter that is given twice (RFC 6749, 3.1). */
export function rejectDuplicates(params: URLSearchParams): void {
  const seen = new Set<string>();
  const isSeen = (name: string) => seen.size === seen.add(name).size;
  const twice = [...params.keys()].find((name) => name !== 'resource' && isSeen(name));
  if (twice === undefined) return;
  const which = isWord(twice) ? `the parameter "${twice}"` : 'a parameter';
  throw new OAuthError('invalid_request', `${which} is given twice; each may be given once`);
}

/** @throws OAuthError invalid_client */
export async function findClient(
  server: LoginServer,
  clientId: string | null,
  parts: RequestParts,
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
export async function findClientId(server: LoginServer, clientId: string | null, parts: RequestParts): Promise<string> {
  if (clientId && isDocumentUrl(clientId) && (await hasGrantOfClient(parts.db, server.id, clientId))) return clientId;
  return (await findClient(server, clientId, parts)).id;
}

/**
 * Checks `resource` (RFC 8707): absent means this server; the case of scheme and host and one trailing slash are ignored.
 * Returns the view whose address it is, if it is one.
 * @throws OAuthError invalid_target
 */
export function checkResource(server: LoginServer, resources: readonly string[]): string | undefined {
  const plain = (text: string) => readUrl(text)?.href.replace(/\/$/, '') ?? text;
  const { issuer, ownAddress, apiAddress } = server;
  const own = [issuer, ownAddress, apiAddress].filter((address) => address !== undefined).map(plain);
  const addresses = new Map<string, string | undefined>([
    ...own.map((address): [string, undefined] => [address, undefined]),
    ...own.flatMap((address) => server.views.map((view): [string, string] => [`${address}/${view}`, view])),
  ]);
  const asked = resources.filter((resource) => resource !== '').map(plain);
  const targets = new Set(asked.map((resource) => addresses.get(resource)));
  const unknown = asked.find((resource) => !addresses.has(resource));
  if (unknown !== undefined) {
    throw new OAuthError(
      'invalid_target',
      `resource names ${shownAddress(server, unknown)}; it must be ${issuer}, the address of this server, or that of a view of it`,
    );
  }
  if (targets.size > 1)
    throw new OAuthError('invalid_target', 'resource names several addresses; a login is for one of them');
  return [...targets][0];
}

/**
 * A parameter of a request as a message shows it: a word of a standard, such as `plain`. Anything else could be a secret, or
 * a text of a stranger for the person who reads it.
 */
export function shownWord(value: string | null): string {
  if (value === null || value === '') return 'missing';
  return isWord(value) ? `"${value}"` : 'something else';
}

function isWord(value: string): boolean {
  return /^(?:[A-Za-z_:-]{1,60}|[A-Za-z0-9_]{1,8})$/.test(value);
}

/**
 * An address that a request names. Only that of a server here is shown: any other could hold a secret, such as the link of
 * a file.
 */
function shownAddress({ issuer }: LoginServer, text: string): string {
  const url = readUrl(text);
  if (!url || !/^https?:$/.test(url.protocol)) return 'something that is no web address';
  const [servers = ''] = /^.*\//.exec(issuer) ?? [];
  const address = url.origin + url.pathname;
  if (!address.startsWith(servers) || !isServerName(address.slice(servers.length))) return 'another address';
  return `${address}${url.search + url.hash === '' ? '' : ' with more behind it'}`;
}

/** Whether a text has the form of a slug, or of `slug/view`. */
function isServerName(text: string): boolean {
  return /^[a-z0-9-]{1,63}(?:\/[a-z0-9-]{1,63})?$/.test(text);
}

/** The address of a server or of a view of it. */
export function resourceOf({ issuer }: LoginServer, view: string | undefined): string {
  return view === undefined ? issuer : `${issuer}/${view}`;
}

import { base62, type Random } from '@toolhost/credentials/ids';
import { OAuthError } from '@toolhost/errors/errors';
import { knownClients } from '@toolhost/mcp-clients/clients';
import { clientSchemes, wellKnownVendors } from '@toolhost/mcp-clients/redirect-schemes';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { z } from 'zod';
import { toSingleLine } from '../http/page.ts';
import type { ServiceHosts } from '../own-hosts.ts';
import { routes } from '../routes.ts';
import { hasClientGrant } from '../store/logins/grants.ts';
import type { Keyring } from '../store/sealing/sealing.ts';
import type { LoginServer, RequestDeps } from './oauth-deps.ts';

/** An OAuth client, either registered or described by a document. `host` is set if its id is a URL. */
export type OAuthClient = {
  id: string;
  name: string;
  redirectUris: readonly string[];
  host: string | undefined;
  /** True for a confidential client. Its secret is the `getClientSecret` of its id. */
  isConfidential: boolean;
};

/** Methods to authenticate at the token and revocation endpoints (RFC 7591, 2). */
export const clientAuthMethods = ['none', 'client_secret_basic', 'client_secret_post'] as const;

export const createTextField = (maxLength: number) => {
  const rule = `must be a text of at most ${maxLength} characters`;
  return z.string(rule).max(maxLength, rule);
};

export const createTextListField = (maxLength: number) => {
  const rule = `must be a list of at most ${maxLength} texts`;
  return z.array(z.string(rule), rule).max(maxLength, rule);
};

export const redirectUris = createTextListField(20).min(1, 'must have at least one URI');

/** Returns the first error in client metadata, as a predicate for the name of the field. */
export function toMetadataProblem({ issues: [issue] }: z.ZodError): { field: string; problem: string } {
  return { field: String(issue?.path[0] ?? 'the client metadata'), problem: issue?.message ?? 'is not valid' };
}

/** Removes nulls, which some clients send for absent fields. */
export function removeNulls(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return raw;
  return Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null));
}

export const metadataTypeRule = 'must be a JSON object';

/** The fields of client metadata (RFC 7591, 2) that this service uses. All others are ignored. */
const metadataSchema = z.object(
  {
    redirect_uris: redirectUris,
    client_name: createTextField(20_000).optional(),
    client_uri: createTextField(2000).optional(),
    scope: createTextField(4000).optional(),
    application_type: createTextField(20).optional(),
    token_endpoint_auth_method: createTextField(100).optional(),
    grant_types: createTextListField(10).optional(),
    response_types: createTextListField(10).optional(),
  },
  metadataTypeRule,
);

type RegistrationDeps = { keyring: Keyring; random: Random; now: () => number; ownHosts: ServiceHosts };

const maxNameLength = 80;
/** Maximum length of a client id, in characters. A longer one would not fit into an authorization URL. */
const maxIdLength = 6000;
const clientIdPrefix = 'thc_';

/** Returns a client name that fits on one line of a page. */
export function toShortName(name: string | undefined): string {
  const singleLine = toSingleLine(name ?? '');
  return singleLine === '' ? 'An unnamed client' : [...singleLine].slice(0, maxNameLength).join('');
}

/**
 * Registers a client dynamically (RFC 7591) without storing it. The client id contains the registration and its MAC, so
 * a flood of registrations fills no table, and every replica knows every client.
 * @throws OAuthError invalid_client_metadata, invalid_redirect_uri
 */
export function registerClient(serverId: string, raw: unknown, deps: RegistrationDeps): object {
  const parsed = metadataSchema.safeParse(removeNulls(raw));
  if (!parsed.success) {
    const { field, problem } = toMetadataProblem(parsed.error);
    const code = field === 'redirect_uris' ? 'invalid_redirect_uri' : 'invalid_client_metadata';
    throw new OAuthError(code, `${field} ${problem}`);
  }
  const metadata = parsed.data;
  for (const [index, uri] of metadata.redirect_uris.entries()) {
    const problem = findRedirectUriProblem(uri, deps.ownHosts);
    if (problem) throw new OAuthError('invalid_redirect_uri', `redirect_uris[${index}] ${problem}`);
  }
  const issuedAt = Math.floor(deps.now() / 1000);
  const name = toShortName(metadata.client_name);
  // Ensures that two programs that register the same metadata in the same second get different ids.
  const nonce = base62(deps.random(9), 12);
  // Clients that omit the method are public, because none of those in use can keep a secret.
  const method = clientAuthMethods.find((candidate) => candidate === metadata.token_endpoint_auth_method) ?? 'none';
  const isConfidential = method !== 'none';
  const registration = {
    ...{ s: serverId, n: name, r: metadata.redirect_uris, t: issuedAt, u: nonce },
    ...(isConfidential && { c: true as const }),
  };
  const clientId = createClientId(deps.keyring, registration);
  if (clientId.length > maxIdLength)
    throw new OAuthError('invalid_redirect_uri', 'the redirect URIs are too long in total');
  return {
    client_id: clientId,
    client_id_issued_at: issuedAt,
    client_name: name,
    redirect_uris: metadata.redirect_uris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: method,
    ...(isConfidential && { client_secret: getClientSecret(deps.keyring, clientId), client_secret_expires_at: 0 }),
    ...(metadata.application_type !== undefined && { application_type: metadata.application_type }),
    ...(metadata.scope !== undefined && { scope: metadata.scope }),
  };
}

/**
 * The registration in a client id, which is part of URLs and therefore has short names: server, name, redirect URIs,
 * time in s, unique text, and `c` for a confidential client.
 */
type Registration = { s: string; n: string; r: string[]; t: number; u: string; c?: true };

const secretPurpose = 'client secret';

/** Returns the secret of a confidential client. It is derived from the id, so it is not stored either. */
function getClientSecret(keyring: Keyring, clientId: string): string {
  return keyring.mac(clientId, secretPurpose);
}

function isClientSecret(keyring: Keyring, clientId: string, secret: string): boolean {
  return keyring.verifyMac(secret, clientId, secretPurpose);
}

function createClientId(keyring: Keyring, registration: Registration): string {
  const payload = Buffer.from(JSON.stringify(registration)).toString('base64url');
  return `${clientIdPrefix}${payload}.${keyring.mac(payload, 'client id')}`;
}

/** Returns the client in a client id. Undefined for an id that this service did not issue for this server. */
function readClientId(keyring: Keyring, serverId: string, clientId: string): OAuthClient | undefined {
  const match = /^thc_([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/.exec(clientId);
  if (!match) return undefined;
  const [, payload = '', mac = ''] = match;
  if (!keyring.verifyMac(mac, payload, 'client id')) return undefined;
  const { s, n, r, c } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Registration;
  if (s !== serverId) return undefined;
  return { id: clientId, name: n, redirectUris: r, host: undefined, isConfidential: c === true };
}

/** Matches a reversed domain name, such as com.example.agent, which identifies a program's vendor (RFC 8252, 7.1). */
const reverseDomainPattern = /^(?:[a-z]{2,}|xn--[a-z0-9-]+)(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;

/** Returns true for a scheme that only programs of one vendor use. */
function isPrivateUseScheme(scheme: string): boolean {
  return clientSchemes.includes(scheme) || (reverseDomainPattern.test(scheme) && !belongsToWellKnownVendor(scheme));
}

/**
 * Returns true if a well-known vendor's name is one of the first three labels. It follows the top-level domain, or
 * comes first in a scheme without a domain.
 */
function belongsToWellKnownVendor(scheme: string): boolean {
  return scheme.split('.', 3).some((label) => wellKnownVendors.includes(label));
}

const loopbackPattern = /^(127\.0\.0\.1|localhost|\[::1\])$/;

function isLoopbackRedirect(uri: string): boolean {
  const url = parseUrl(uri);
  return url?.protocol === 'http:' && loopbackPattern.test(url.hostname);
}

/**
 * Returns the reason why a client may not register a redirect URI, or undefined. A loopback address without a port
 * matches any port. The check that the URI does not lead to this service then runs when a port is requested.
 */
export function findRedirectUriProblem(uri: string, ownHosts: ServiceHosts): string | undefined {
  const problem = findUriFormatProblem(uri);
  if (problem !== undefined || (isLoopbackRedirect(uri) && new URL(uri).port === '')) return problem;
  return isOwnServiceUrl(uri, ownHosts)
    ? 'leads to this service itself, where no client waits for the response'
    : undefined;
}

/**
 * Returns true if a redirect URI leads to this service, except for the dashboard's login check. The callbacks of all
 * servers are here, and pass a code on to a tenant's token endpoint. A consent page for such a redirect would show only
 * the name of this service.
 */
export function isOwnServiceUrl(uri: string, { names, path, includesUrl }: ServiceHosts): boolean {
  const url = new URL(uri);
  if (!/^https?:$/.test(url.protocol) || !includesUrl(url)) return false;
  return !names.has(url.host) || uri !== url.origin + path + routes.loginCheck;
}

/**
 * Returns the reason why a URI is not a valid redirect URI, or undefined. Allowed are https anywhere, http on loopback,
 * and private-use schemes that are a reversed domain name (RFC 8252, 7.1) or belong to a known client. Any other scheme
 * could start a program that has nothing to do with logins. Schemes of vendors whose programs are on nearly every
 * device are not allowed either, because no agent of theirs logs in with such a scheme.
 */
function findUriFormatProblem(uri: string): string | undefined {
  if (uri.length > 2000) return 'is longer than 2000 characters';
  const url = /[^\x21-\x7e]|[\\<>"^`{|}]/.test(uri) ? undefined : parseUrl(uri);
  if (!url) return 'is not a URI';
  if (url.hash || uri.includes('#')) return 'must not have a #fragment';
  if (url.username || url.password) return 'must not have a user name or password';
  if (url.protocol === 'https:') return undefined;
  if (url.protocol === 'http:')
    return loopbackPattern.test(url.hostname) ? undefined : 'must be https, or http on a loopback address';
  const scheme = url.protocol.slice(0, -1);
  if (isPrivateUseScheme(scheme)) return undefined;
  return `has the scheme ${scheme.slice(0, 40)}; allowed: https, http on loopback, a reversed domain of the agent’s vendor such as com.example.agent, ${clientSchemes.join(', ')}`;
}

/**
 * Returns true if a response may be redirected to this URI before anyone has consented. Loopback leads to a program on
 * the person's own device. The URIs of known clients belong to them, no matter who registers them.
 */
export function isKnownRedirect(uri: string): boolean {
  return isLoopbackRedirect(uri) || knownClients.some(({ redirectUris }) => redirectUris.includes(uri));
}

/**
 * Returns true if a requested URI equals a registered one. The port of a loopback address may differ (RFC 8252, 7.3).
 */
export function isRegisteredRedirect(registered: readonly string[], requested: string): boolean {
  if (findUriFormatProblem(requested) !== undefined) return false;
  if (registered.includes(requested)) return true;
  if (!isLoopbackRedirect(requested)) return false;
  const requestedWithoutPort = removePort(requested);
  return registered.some((uri) => isLoopbackRedirect(uri) && removePort(uri) === requestedWithoutPort);
}

/**
 * Removes the port from a URI. Nothing else is normalized, so that URIs with dot segments and the like stay different.
 */
function removePort(uri: string): string {
  return uri.replace(/^(http:\/\/(?:\[::1\]|[^/:?#]+))(?::\d{1,5})?(?=[/?#]|$)/i, '$1');
}

/**
 * Returns true if the response stays on the person's device, where any program could be waiting for it (RFC 8252, 8.6).
 */
export function isLocalRedirect(uri: string): boolean {
  return new URL(uri).protocol !== 'https:';
}

/**
 * Formats a redirect URI for people: the host of a web address. Any other URI includes its scheme, so that it cannot be
 * mistaken for a web address.
 */
export function formatRedirectUri(uri: string): string {
  const { protocol, host } = new URL(uri);
  if (/^https?:$/.test(protocol)) return host;
  return host === '' ? protocol : `${protocol}//${host}`;
}

/** Rejects a parameter that occurs twice (RFC 6749, 3.1). */
export function rejectDuplicates(params: URLSearchParams): void {
  const seen = new Set<string>();
  // Adding a name that was seen before does not change the size.
  const isSeen = (name: string) => seen.size === seen.add(name).size;
  const duplicate = [...params.keys()].find((name) => name !== 'resource' && isSeen(name));
  if (duplicate === undefined) return;
  const subject = isWord(duplicate) ? `the parameter "${duplicate}"` : 'a parameter';
  throw new OAuthError('invalid_request', `${subject} occurs twice; send each parameter once`);
}

/** Returns true if a client id is the URL of a metadata document. */
export function isDocumentUrl(clientId: string): boolean {
  if (!clientId.startsWith('https://') || clientId.length > 1000) return false;
  const url = parseUrl(clientId);
  return url?.href === clientId && url.pathname.length > 1 && !url.hash && !url.username && !url.password;
}

/** Finds a client. @throws OAuthError invalid_request without an id, invalid_client for an unknown one */
export async function findClient(
  server: LoginServer,
  clientId: string | null,
  deps: RequestDeps,
): Promise<OAuthClient> {
  if (!clientId) throw createMissingError('client_id');
  const client = isDocumentUrl(clientId)
    ? await deps.findDocument(clientId, deps.network)
    : readClientId(deps.keyring, server.id, clientId);
  if (!client) throw new OAuthError('invalid_client', 'the client is unknown; register it again');
  return client;
}

/**
 * Validates `resource` (RFC 8707). If it is absent, it means this server. The query, the case of scheme and host, and
 * one trailing slash are ignored. Returns the view with this URL, if it is one.
 * @throws OAuthError invalid_target
 */
export function resolveResource(server: LoginServer, resources: readonly string[]): string | undefined {
  if (resources.some((resource) => resource.includes('#')))
    throw new OAuthError('invalid_target', 'resource has a #fragment; remove it (RFC 8707, 2)');
  const normalize = (text: string) => {
    const url = parseUrl(text);
    if (url) url.search = '';
    return url?.href.replace(/\/$/, '') ?? text;
  };
  const { issuer, serverHostUrl, apiUrl, aliases = [] } = server;
  const serverUrls = [issuer, serverHostUrl, apiUrl, ...aliases].filter((url) => url !== undefined).map(normalize);
  const viewsByUrl = new Map<string, string | undefined>([
    ...serverUrls.map((url): [string, undefined] => [url, undefined]),
    ...serverUrls.flatMap((url) => server.views.map((view): [string, string] => [`${url}/${view}`, view])),
  ]);
  const requestedUrls = resources.filter((resource) => resource !== '').map(normalize);
  const targets = new Set(requestedUrls.map((resource) => viewsByUrl.get(resource)));
  const unknownUrl = requestedUrls.find((resource) => !viewsByUrl.has(resource));
  if (unknownUrl !== undefined)
    throw new OAuthError(
      'invalid_target',
      `resource names ${formatServerUrl(server, unknownUrl)}; it must be ${issuer}, the URL of this server, or the URL of one of its views`,
    );
  if (targets.size > 1)
    throw new OAuthError('invalid_target', 'resource names several URLs; a login is for one of them');
  return [...targets][0];
}

/**
 * Formats a request parameter for a message. Only a standard word such as `plain` is shown. Anything else could be a
 * secret, or a text from an unverified caller for the person who reads it.
 */
export function formatWord(value: string | null): string {
  if (value === null || value === '') return 'missing';
  return isWord(value) ? `"${value}"` : 'something else';
}

function isWord(value: string): boolean {
  return /^(?:[A-Za-z_:-]{1,60}|[A-Za-z0-9_]{1,8})$/.test(value);
}

/**
 * Formats a URL from a request. Only the URL of a server of this service is shown. Any other could contain a secret,
 * such as a link to a file.
 */
function formatServerUrl({ issuer }: LoginServer, text: string): string {
  const url = parseUrl(text);
  if (!url || !/^https?:$/.test(url.protocol)) return 'something that is not a web address';
  const [serversPrefix = ''] = /^.*\//.exec(issuer) ?? [];
  const address = url.origin + url.pathname;
  if (!address.startsWith(serversPrefix) || !isServerName(address.slice(serversPrefix.length))) return 'another URL';
  return address;
}

/** Returns true if a text has the form of a slug, or of `slug/view`. */
function isServerName(text: string): boolean {
  return /^[a-z0-9-]{1,63}(?:\/[a-z0-9-]{1,63})?$/.test(text);
}

/** Creates the error for a missing parameter (RFC 6749, 4.1.2.1 and 5.2). */
export function createMissingError(parameter: string): OAuthError {
  return new OAuthError('invalid_request', `${parameter} is missing`);
}

/** Creates the error for a refused code or token. The client does not learn the reason. `detail` is for the log. */
export function createInvalidGrantError(detail: string): OAuthError {
  return new OAuthError('invalid_grant', 'the code or token is not valid', detail);
}

/** Returns the URL of a server or of one of its views. */
export function getResourceUrl({ issuer }: LoginServer, view: string | undefined): string {
  return view === undefined ? issuer : `${issuer}/${view}`;
}

/** A client's request to the token or revocation endpoint: its form and its `Authorization` header. */
export type TokenEndpointRequest = { form: URLSearchParams; authorization?: string | undefined };

/**
 * Returns the id of the client that sent a request. If the client registered with a secret, the request must prove it.
 * A client with a metadata document and a login here is accepted without fetching the document, which was checked at
 * the login and need not be reachable for every refresh.
 * @throws OAuthError invalid_request, invalid_client
 */
export async function authenticateClient(
  server: LoginServer,
  request: TokenEndpointRequest,
  deps: RequestDeps,
): Promise<string> {
  const { clientId, secret } = readClientCredentials(request);
  if (isDocumentUrl(clientId) && (await hasClientGrant(deps.db, server.id, clientId))) return clientId;
  const { isConfidential } = await findClient(server, clientId, deps);
  if (!isConfidential || isClientSecret(deps.keyring, clientId, secret)) return clientId;
  throw new OAuthError(
    'invalid_client',
    secret === ''
      ? 'client_secret is missing; this client registered with a secret, so send it in the form or with HTTP Basic'
      : "client_secret is wrong; send the secret from this client's registration",
  );
}

/** The credentials of a client. Both fields are empty if the request has none. */
type ClientCredentials = { clientId: string; secret: string };

/** Reads the client's credentials from HTTP Basic or from the form. Both are allowed (RFC 6749, 2.3.1). */
function readClientCredentials({ form, authorization }: TokenEndpointRequest): ClientCredentials {
  const formCredentials = { clientId: form.get('client_id') ?? '', secret: form.get('client_secret') ?? '' };
  if (authorization === undefined || !usesBasic(authorization)) return formCredentials;
  const credentials = Buffer.from(authorization.slice(basicPrefixLength), 'base64').toString('utf8');
  const colon = credentials.indexOf(':');
  if (colon < 1)
    throw new OAuthError(
      'invalid_client',
      'the Authorization header has no client id; send "Basic" and the Base64 of id:secret',
    );
  const headerCredentials = {
    clientId: decodeFormValue(credentials.slice(0, colon)),
    secret: decodeFormValue(credentials.slice(colon + 1)),
  };
  const isOtherClient = formCredentials.clientId !== '' && formCredentials.clientId !== headerCredentials.clientId;
  if (isOtherClient || formCredentials.secret !== '')
    throw new OAuthError(
      'invalid_request',
      'the client authenticates both in the form and in the Authorization header; use only one of them',
    );
  return headerCredentials;
}

const basicPrefixLength = 'Basic '.length;

export function usesBasic(authorization: string | undefined): boolean {
  return /^Basic(?: |$)/i.test(authorization ?? '');
}

/** Decodes a value that the client may have form-encoded before Base64. */
function decodeFormValue(text: string): string {
  return new URLSearchParams(`x=${text}`).get('x') ?? '';
}

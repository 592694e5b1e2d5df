import { hash } from 'node:crypto';
import { containsPlainCredential } from '@toolhost/credentials/own-credentials';
import type { ClientTokens, TokenRequest } from '@toolhost/credentials/token-request';
import { recordableFailure } from '@toolhost/errors/errors';
import {
  type Authentication,
  getStoredNamePrefix,
  isSealedField,
  type PlaceholderField,
} from '@toolhost/tool-config/authentication';
import { interpolatePlaceholders } from '@toolhost/tool-config/http/placeholders';
import { maxHeaderLength } from '@toolhost/tool-config/http/values';
import type { CredentialTokens } from '@toolhost/tool-config/request/build-request';
import { mask } from '@toolhost/tool-config/server-config';
import { interpolateVariables } from '@toolhost/tool-config/server-wide';
import aws4 from 'aws4';
import type { HostedServer, HostedTool } from '../hosted/hosted-server.ts';

/** Access tokens that the service obtained itself, by credential. */
export type ServiceTokens = ReadonlyMap<Authentication, string>;

/** The fields of a call that its credentials depend on. `sensitive` collects the credentials. */
export type CredentialUse = {
  readonly server: HostedServer;
  readonly tool: HostedTool;
  readonly sensitive: string[];
  /** Undefined for a tool that needs none. */
  serviceTokens: ServiceTokens | undefined;
  /** Undefined unless the request is signed. */
  signing: Signing | undefined;
};

/**
 * Gets the client-credentials tokens that a call needs. A token is sent only to the hosts that its secret may be sent
 * to, which are the hosts that the server had when that secret was set.
 * @throws ToolFailure secret_missing, no_token
 */
export async function getServiceTokens(call: CredentialUse, tokens: ClientTokens): Promise<ServiceTokens> {
  const tokensByCredential = new Map<Authentication, string>();
  for (const credential of call.tool.clientCredentials)
    tokensByCredential.set(credential, await tokens.getToken(tokenRequestFor(call, credential)));
  return tokensByCredential;
}

/** Renews the tokens after the upstream refused a request. Returns undefined if none of them could be renewed. */
export async function renewServiceTokens(
  call: CredentialUse,
  refused: ServiceTokens,
  tokens: ClientTokens,
): Promise<ServiceTokens | undefined> {
  const renewed = new Map(refused);
  for (const [authentication, token] of refused) {
    const newToken = await tokens.renewToken(tokenRequestFor(call, authentication), token);
    if (newToken !== undefined) renewed.set(authentication, newToken);
  }
  const hasNewToken = [...renewed].some(([authentication, token]) => refused.get(authentication) !== token);
  return hasNewToken ? renewed : undefined;
}

/** Returns the value of a secret that is about to be sent. */
type GetSecret = (name: string) => string;

/**
 * Returns the token request of a credential. It is created once per compiled server, because it is also the cache key
 * of its token.
 * @throws ToolFailure secret_missing if the secret may not be used for this tool
 */
export function tokenRequestFor(call: CredentialUse, credential: Authentication): TokenRequest {
  const { server, tool, sensitive } = call;
  const secrets: string[] = [];
  const tokenUrl = interpolateVariables(credential.token_url ?? '', server.config.variables);
  const { origin } = new URL(tokenUrl);
  let renderedCharacters = 0;
  const getSecret = (name: string) => {
    const value = secretFor(server, name, origin);
    renderedCharacters = countRendered(renderedCharacters, value);
    // The token gives the access of the secret, so its recipient is checked too.
    secretFor(server, name, tool.request.url.origin);
    secrets.push(value);
    return value;
  };
  const clientId = renderField(server, credential, 'client_id', getSecret);
  const clientSecret = renderField(server, credential, 'client_secret', getSecret);
  sensitive.push(...secrets, clientSecret);
  const cached = server.tokenRequests.get(credential);
  if (cached) return cached;
  const request = {
    workspaceId: server.workspaceId,
    serverId: server.id,
    slug: server.slug,
    location: getStoredNamePrefix(server.config, credential),
    tokenUrl,
    clientId,
    clientSecret,
    clientAuth: credential.client_auth ?? 'basic',
    params: toTokenParams(credential, server),
  };
  server.tokenRequests.set(credential, request);
  return request;
}

function toTokenParams(credential: Authentication, { config }: HostedServer): Record<string, string> {
  const { scopes = [], audience, resource, extra_params = {} } = credential;
  const render = (text: string) => interpolateVariables(text, config.variables);
  return {
    ...Object.fromEntries(Object.entries(extra_params).map(([name, value]) => [name, render(value)])),
    ...(scopes.length > 0 && { scope: scopes.map(render).join(' ') }),
    ...(audience !== undefined && { audience: render(audience) }),
    ...(resource !== undefined && { resource: render(resource) }),
  };
}

/**
 * Renders a field of a credential.
 * @throws ToolFailure invalid_arguments if the text exceeds the maximum header length, and any error of `getSecret`
 */
function renderField(
  { config }: HostedServer,
  credential: Authentication,
  field: PlaceholderField,
  getSecret: GetSecret,
): string {
  const text = credential[field] ?? '';
  if (text === mask && isSealedField(field)) return getSecret(`${getStoredNamePrefix(config, credential)}.${field}`);
  const rendered = interpolatePlaceholders(
    config.variables ? interpolateVariables(text, config.variables) : text,
    getSecret,
  );
  if (rendered.length <= maxHeaderLength) return rendered;
  const message = `the credential field ${field} has more than ${maxHeaderLength} characters after {{NAME}} is replaced; repeat {{NAME}} less often`;
  throw recordableFailure('invalid_arguments', message);
}

/**
 * Returns the value of a secret that is about to be sent to an origin. A secret is sent only to the origins that the
 * server had when the value was set, so that a later change of a URL cannot expose it.
 * @throws ToolFailure secret_missing; it names the secret, never a value
 */
export function secretFor(server: HostedServer, name: string, origin: string): string {
  const secret = server.secrets.get(name);
  if (!secret) throw recordableFailure('secret_missing', `the secret ${name} has no value; set it on the server first`);
  if (!secret.origins.includes(origin)) {
    throw recordableFailure(
      'secret_missing',
      `the secret ${name} was set before this tool called ${origin}; set it again to allow that host`,
    );
  }
  return secret.value;
}

/**
 * Maximum number of characters that secrets contribute to one request, and the minimum that each use counts for,
 * because each use takes time.
 */
const maxRenderedCharacters = 1024 * 1024;
const minCharactersPerUse = 1024;

/** Adds a secret to the characters that secrets have contributed to a request. @throws ToolFailure above the limit */
export function countRendered(renderedCharacters: number, secret: string): number {
  const sum = renderedCharacters + Math.max(secret.length, minCharactersPerUse);
  if (sum <= maxRenderedCharacters) return sum;
  throw recordableFailure(
    'invalid_arguments',
    `the secrets of this tool would add more than ${maxRenderedCharacters} characters to its request; repeat {{NAME}} less often in the configuration`,
  );
}

/** Sources of a call's credentials. `sent` collects the values that decide which connections may carry the request. */
type CredentialSources = { token: string | undefined; getSecret: GetSecret; sent: string[] };

const noTokens: CredentialTokens = [];

/** Returns the credential for each entry of `authentication`. @throws ToolFailure secret_missing */
export function getTokens(call: CredentialUse, sources: CredentialSources): CredentialTokens {
  const { credentials } = call.tool.request;
  if (credentials.length === 0) return noTokens;
  const tokens: (string | undefined)[] = [];
  for (const credential of credentials) {
    const token = getToken(call, credential, sources);
    if (token !== undefined) sources.sent.push(token);
    tokens.push(token);
  }
  return tokens;
}

function getToken(
  call: CredentialUse,
  credential: Authentication,
  { token, getSecret }: CredentialSources,
): string | undefined {
  const { server, sensitive } = call;
  if (credential.type === 'AwsSigV4') return storeSigningKeys(call, credential, getSecret);
  if (credential.type === 'ClientCredentials') {
    const serviceToken = call.serviceTokens?.get(credential);
    if (serviceToken !== undefined) sensitive.push(serviceToken);
    return serviceToken;
  }
  if (credential.token !== undefined) {
    const stored = renderField(server, credential, 'token', getSecret);
    sensitive.push(stored);
    return stored;
  }
  if (credential.user === undefined) return token;
  const user = renderField(server, credential, 'user', getSecret);
  const password = renderField(server, credential, 'password', getSecret);
  const pair = formatBasicToken(user, password);
  sensitive.push(...[password, pair].filter((text) => text !== ''));
  return pair;
}

/** Stores the keys that sign the request. Together they identify its connections, as a token does. */
function storeSigningKeys(call: CredentialUse, credential: Authentication, getSecret: GetSecret): string {
  const signing = toSigning(call.server, credential, getSecret);
  const keys = [signing.accessKeyId, signing.secretAccessKey, signing.sessionToken ?? ''].filter((key) => key !== '');
  call.sensitive.push(...keys);
  call.signing = signing;
  return keys.join(' ');
}

const ownCredentialMessage =
  'the user name or password of the credential contains an API key or token of this service, which is never sent to an upstream; store a credential of the upstream instead';

/** Formats the token of the Basic scheme (RFC 7617). @throws ToolFailure invalid_arguments */
function formatBasicToken(user: string, password: string): string {
  if (user.includes(':')) {
    throw recordableFailure(
      'invalid_arguments',
      'the user name of the credential contains a colon, which Basic authentication does not allow',
    );
  }
  const pair = `${user}:${password}`;
  // The search of the rendered request does not decode base64.
  if (containsPlainCredential(pair)) throw recordableFailure('invalid_arguments', ownCredentialMessage);
  return Buffer.from(pair).toString('base64');
}

/** Keys and scope of an AWS signature (Signature Version 4). */
export type Signing = {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string | undefined;
  region: string;
  service: string;
};

/** A request to sign. Headers alternate names and values. */
type UnsignedRequest = {
  method: string;
  origin: string;
  path: string;
  headers: readonly string[];
  body: string | Uint8Array | undefined;
};

/** Returns the rendered keys of a credential. @throws ToolFailure secret_missing */
function toSigning(server: HostedServer, credential: Authentication, getSecret: GetSecret): Signing {
  const render = (text = '') => interpolateVariables(text, server.config.variables);
  return {
    accessKeyId: renderField(server, credential, 'access_key_id', getSecret),
    secretAccessKey: renderField(server, credential, 'secret_access_key', getSecret),
    sessionToken:
      credential.session_token === undefined ? undefined : renderField(server, credential, 'session_token', getSecret),
    region: render(credential.region),
    service: render(credential.service),
  };
}

/** Services that require the hash of the body in a separate header. */
const bodyHashServices = /^(?:s3|aoss$|vpc-lattice)/;
/** Maximum number of query parameters that the signer reads. */
const maxQueryParameters = 1000;

/**
 * Returns the headers that sign a request, alternating names and values. All existing headers are signed, so none may
 * be changed afterwards. `timeMs` is in epoch ms.
 * @throws ToolFailure invalid_arguments
 */
export function signRequest(
  request: UnsignedRequest,
  signing: Signing,
  timeMs: number,
  isBodySigned = false,
): string[] {
  if (request.path.split('&').length > maxQueryParameters) {
    const message = `the request has more than ${maxQueryParameters} query parameters, which cannot be signed; send fewer`;
    throw recordableFailure('invalid_arguments', message);
  }
  const { accessKeyId, secretAccessKey, sessionToken, region, service } = signing;
  // Basic format of ISO 8601, such as 20261129T134618Z.
  const datetime = new Date(timeMs).toISOString().replaceAll(/[:-]|\.\d{3}/g, '');
  const signatureHeaders: Record<string, string> = {
    'X-Amz-Date': datetime,
    ...(sessionToken !== undefined && { 'X-Amz-Security-Token': sessionToken }),
    ...((isBodySigned || bodyHashServices.test(service)) && { 'X-Amz-Content-Sha256': hashBody(request.body) }),
  };
  const signer = new aws4.RequestSigner(
    {
      method: request.method,
      host: new URL(request.origin).host,
      path: request.path,
      headers: { Host: new URL(request.origin).host, ...joinHeaders(request.headers), ...signatureHeaders },
      ...(request.body !== undefined && { body: toSignerBody(request.body) }),
      region,
      service,
      doNotModifyHeaders: true,
    },
    { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
  );
  signer.datetime = datetime;
  const { Authorization: authorization } = signer.sign().headers as Record<string, string>;
  return [...Object.entries(signatureHeaders).flat(), 'Authorization', String(authorization)];
}

/** Converts a body to a string or a Buffer, as the signer requires. */
function toSignerBody(body: string | Uint8Array): string | Buffer {
  return typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** Joins headers of the same name with commas, because they are signed as one. */
function joinHeaders(headers: readonly string[]): Record<string, string> {
  const joinedHeaders = new Map<string, string>();
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase();
    const value = headers[i + 1] as string;
    const existing = joinedHeaders.get(name);
    joinedHeaders.set(name, existing === undefined ? value : `${existing},${value}`);
  }
  return Object.fromEntries(joinedHeaders);
}

function hashBody(body: string | Uint8Array = ''): string {
  return hash('sha256', body, 'hex');
}

const ambiguousCharacters = /[^0-9A-Za-z;,/?:@&=+$\-_.!~*'()#%]/g;

/**
 * Percent-encodes every character of a path and query that URLs may contain in more than one form, so that the receiver
 * signs the same text.
 */
export function toSignablePath(path: string): string {
  return path.replaceAll(ambiguousCharacters, (character) => encodeURIComponent(character));
}

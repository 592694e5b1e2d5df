import { hash } from 'node:crypto';
import aws4 from 'aws4';
import {
  type Authentication,
  type FilledField,
  isSealedField,
  storedNameOf,
} from '../../domain/config/authentication.ts';
import { mask } from '../../domain/config/server-config.ts';
import { fillVariables } from '../../domain/config/server-wide.ts';
import { holdsPlainCredential } from '../../domain/credentials/own-credentials.ts';
import type { ClientTokens, TokenRequest } from '../../domain/credentials/token-request.ts';
import { fillPlaceholders } from '../../domain/http/placeholders.ts';
import { mostHeaderLength } from '../../domain/http/values.ts';
import type { Tokens } from '../../domain/request/build-request.ts';
import { plainFailure } from '../../errors.ts';
import type { HostedServer, HostedTool } from '../hosted/hosted-server.ts';

/** Access tokens that the service obtained itself, by credential. */
export type OwnTokens = ReadonlyMap<Authentication, string>;

/** The fields of a call that its credentials depend on. `sensitive` collects the credentials. */
export type CredentialUse = {
  readonly server: HostedServer;
  readonly tool: HostedTool;
  readonly sensitive: string[];
  /** Undefined for a tool that needs none. */
  ownTokens: OwnTokens | undefined;
  /** Undefined unless the request is signed. */
  signing: Signing | undefined;
};

/**
 * Gets the client-credentials tokens that a call needs. A token is sent only to the hosts that its secret may be sent
 * to, which are the hosts that the server had when that secret was set.
 * @throws ToolFailure secret_missing, no_token
 */
export async function getOwnTokens(call: CredentialUse, tokens: ClientTokens): Promise<OwnTokens> {
  const found = new Map<Authentication, string>();
  for (const one of call.tool.clientCredentials) found.set(one, await tokens.find(requestFor(call, one)));
  return found;
}

/** Renews the tokens after the upstream refused a request. Returns undefined if none of them could be renewed. */
export async function renewOwnTokens(
  call: CredentialUse,
  refused: OwnTokens,
  tokens: ClientTokens,
): Promise<OwnTokens | undefined> {
  const renewed = new Map(refused);
  for (const [one, token] of refused) {
    const fresh = await tokens.renew(requestFor(call, one), token);
    if (fresh !== undefined) renewed.set(one, fresh);
  }
  const isNew = [...renewed].some(([one, token]) => refused.get(one) !== token);
  return isNew ? renewed : undefined;
}

/**
 * Returns the token request of a credential. It is created once per compiled server, because it is also the cache key
 * of its token.
 * @throws ToolFailure secret_missing if the secret may not be used for this tool
 */
export function requestFor(call: CredentialUse, one: Authentication): TokenRequest {
  const { server, tool, sensitive } = call;
  const secrets: string[] = [];
  const tokenUrl = fillVariables(one.token_url ?? '', server.config.variables);
  const { origin } = new URL(tokenUrl);
  let filled = 0;
  const secret = (name: string) => {
    const value = secretFor(server, name, origin);
    filled = countFilled(filled, value);
    secretFor(server, name, tool.request.url.origin);
    secrets.push(value);
    return value;
  };
  const [clientId, clientSecret] = [
    storedText(server, one, 'client_id', secret),
    storedText(server, one, 'client_secret', secret),
  ];
  sensitive.push(...secrets, clientSecret);
  const known = server.tokenRequests.get(one);
  if (known) return known;
  const request = {
    workspaceId: server.workspaceId,
    serverId: server.id,
    slug: server.slug,
    location: storedNameOf(server.config, one),
    tokenUrl,
    clientId,
    clientSecret,
    clientAuth: one.client_auth ?? 'basic',
    params: paramsOf(one, server),
  };
  server.tokenRequests.set(one, request);
  return request;
}

function paramsOf(one: Authentication, { config }: HostedServer): Record<string, string> {
  const { scopes = [], audience, resource, extra_params = {} } = one;
  const filled = (text: string) => fillVariables(text, config.variables);
  return {
    ...Object.fromEntries(Object.entries(extra_params).map(([name, value]) => [name, filled(value)])),
    ...(scopes.length > 0 && { scope: scopes.map(filled).join(' ') }),
    ...(audience !== undefined && { audience: filled(audience) }),
    ...(resource !== undefined && { resource: filled(resource) }),
  };
}

/**
 * Renders a field of a credential. `secret` returns the value of a stored secret.
 * @throws ToolFailure invalid_arguments if the text exceeds the maximum header length, and any error of `secret`
 */
function storedText(
  { config }: HostedServer,
  one: Authentication,
  field: FilledField,
  secret: (name: string) => string,
): string {
  const text = one[field] ?? '';
  if (text === mask && isSealedField(field)) return secret(`${storedNameOf(config, one)}.${field}`);
  const filled = fillPlaceholders(config.variables ? fillVariables(text, config.variables) : text, secret);
  if (filled.length <= mostHeaderLength) return filled;
  const message = `the credential field ${field} has more than ${mostHeaderLength} characters after {{NAME}} is replaced; repeat {{NAME}} less often`;
  throw plainFailure('invalid_arguments', message);
}

/**
 * Returns the value of a secret that is about to be sent to an origin. A secret is sent only to the origins that the
 * server had when the value was set, so that a later change of a URL cannot expose it.
 * @throws ToolFailure secret_missing; it names the secret, never a value
 */
export function secretFor(server: HostedServer, name: string, origin: string): string {
  const secret = server.secrets.get(name);
  if (!secret) throw plainFailure('secret_missing', `the secret ${name} has no value; set it on the server first`);
  if (!secret.origins.includes(origin)) {
    throw plainFailure(
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
const mostFilled = 1024 * 1024;
const leastOfUse = 1024;

/** Adds a secret to the characters that secrets have contributed to a request. @throws ToolFailure above the limit */
export function countFilled(filled: number, { length }: string): number {
  const sum = filled + Math.max(length, leastOfUse);
  if (sum <= mostFilled) return sum;
  throw plainFailure(
    'invalid_arguments',
    `the secrets of this tool would add more than ${mostFilled} characters to its request; repeat {{NAME}} less often in the configuration`,
  );
}

/** Sources of a call's credentials. `sent` collects the values that decide which connections may carry the request. */
type Sources = { token: string | undefined; secret: (name: string) => string; sent: string[] };

const noTokens: Tokens = [];

/** Returns the credential for each entry of `authentication`. @throws ToolFailure secret_missing */
export function tokensOf(call: CredentialUse, sources: Sources): Tokens {
  const { credentials } = call.tool.request;
  if (credentials.length === 0) return noTokens;
  const tokens: (string | undefined)[] = [];
  for (const one of credentials) {
    const token = tokenOf(call, one, sources);
    if (token !== undefined) sources.sent.push(token);
    tokens.push(token);
  }
  return tokens;
}

function tokenOf(call: CredentialUse, one: Authentication, { token, secret }: Sources): string | undefined {
  const { server, sensitive } = call;
  if (one.type === 'AwsSigV4') return keysOf(call, one, secret);
  if (one.type === 'ClientCredentials') {
    const own = call.ownTokens?.get(one);
    if (own !== undefined) sensitive.push(own);
    return own;
  }
  if (one.token !== undefined) {
    const stored = storedText(server, one, 'token', secret);
    sensitive.push(stored);
    return stored;
  }
  if (one.user === undefined) return token;
  const user = storedText(server, one, 'user', secret);
  const password = storedText(server, one, 'password', secret);
  const pair = basicPair(user, password);
  sensitive.push(...[password, pair].filter((text) => text !== ''));
  return pair;
}

/** Stores the keys that sign the request. Together they identify its connections, as a token does. */
function keysOf(call: CredentialUse, one: Authentication, secret: (name: string) => string): string {
  const signing = signingOf(call.server, one, secret);
  const keys = [signing.accessKeyId, signing.secretAccessKey, signing.sessionToken ?? ''].filter((key) => key !== '');
  call.sensitive.push(...keys);
  call.signing = signing;
  return keys.join(' ');
}

const ownInBasic =
  'the user name or password of the credential contains an API key or token of this service, which is never sent to an upstream; store a credential of the upstream instead';

/** Formats the token of the Basic scheme (RFC 7617). @throws ToolFailure invalid_arguments */
function basicPair(user: string, password: string): string {
  if (user.includes(':')) {
    throw plainFailure(
      'invalid_arguments',
      'the user name of the credential contains a colon, which Basic authentication does not allow',
    );
  }
  const pair = `${user}:${password}`;
  // The search of the rendered request does not decode base64.
  if (holdsPlainCredential(pair)) throw plainFailure('invalid_arguments', ownInBasic);
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
type Unsigned = {
  method: string;
  origin: string;
  path: string;
  headers: readonly string[];
  body: string | Uint8Array | undefined;
};

/** Returns the rendered keys of a credential. @throws ToolFailure secret_missing */
function signingOf(server: HostedServer, one: Authentication, secret: (name: string) => string): Signing {
  const filled = (text = '') => fillVariables(text, server.config.variables);
  return {
    accessKeyId: storedText(server, one, 'access_key_id', secret),
    secretAccessKey: storedText(server, one, 'secret_access_key', secret),
    sessionToken: one.session_token === undefined ? undefined : storedText(server, one, 'session_token', secret),
    region: filled(one.region),
    service: filled(one.service),
  };
}

/** Services that require the hash of the body in a separate header. */
const wantsBodyHash = /^(?:s3|aoss$|vpc-lattice)/;
/** Maximum number of query parameters that the signer reads. */
const mostParameters = 1000;

/**
 * Returns the headers that sign a request, alternating names and values. All existing headers are signed, so none may
 * be changed afterwards. `at` is in epoch ms.
 * @throws ToolFailure invalid_arguments
 */
export function signatureOf(request: Unsigned, signing: Signing, at: number, isBodySigned = false): string[] {
  if (request.path.split('&').length > mostParameters) {
    const message = `the request has more than ${mostParameters} query parameters, which cannot be signed; send fewer`;
    throw plainFailure('invalid_arguments', message);
  }
  const { accessKeyId, secretAccessKey, sessionToken, region, service } = signing;
  const datetime = new Date(at).toISOString().replaceAll(/[:-]|\.\d{3}/g, '');
  const added: Record<string, string> = {
    'X-Amz-Date': datetime,
    ...(sessionToken !== undefined && { 'X-Amz-Security-Token': sessionToken }),
    ...((isBodySigned || wantsBodyHash.test(service)) && { 'X-Amz-Content-Sha256': bodyHash(request.body) }),
  };
  const signer = new aws4.RequestSigner(
    {
      method: request.method,
      host: new URL(request.origin).host,
      path: request.path,
      headers: { Host: new URL(request.origin).host, ...joined(request.headers), ...added },
      ...(request.body !== undefined && { body: asText(request.body) }),
      region,
      service,
      doNotModifyHeaders: true,
    },
    { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
  );
  signer.datetime = datetime;
  const { Authorization: authorization } = signer.sign().headers as Record<string, string>;
  return [...Object.entries(added).flat(), 'Authorization', String(authorization)];
}

/** Converts a body to a string or a Buffer, as the signer requires. */
function asText(body: string | Uint8Array): string | Buffer {
  return typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** Joins headers of the same name with commas, because they are signed as one. */
function joined(headers: readonly string[]): Record<string, string> {
  const all = new Map<string, string>();
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase();
    const value = headers[i + 1] as string;
    const known = all.get(name);
    all.set(name, known === undefined ? value : `${known},${value}`);
  }
  return Object.fromEntries(all);
}

function bodyHash(body: string | Uint8Array = ''): string {
  return hash('sha256', body, 'hex');
}

const unsigned = /[^0-9A-Za-z;,/?:@&=+$\-_.!~*'()#%]/g;

/**
 * Percent-encodes every character of a path and query that URLs may contain in more than one form, so that the receiver
 * signs the same text.
 */
export function signablePath(path: string): string {
  return path.replaceAll(unsigned, (character) => encodeURIComponent(character));
}

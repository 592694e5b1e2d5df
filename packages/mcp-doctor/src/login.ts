import { createHash, randomBytes } from 'node:crypto';
import { knownDocuments } from '@toolhost/mcp-clients/client-documents';
import { commandLineRedirectUri, findClientNames, joinNames, registeringClients } from '@toolhost/mcp-clients/clients';
import { addQueryParameters } from '@toolhost/tool-config/http/read-url';
import {
  checkRegistrationMetadata,
  checkResourceMetadata,
  checkServerMetadata,
  createWarning,
  ok,
  problem,
  type Reason,
  type Verdict,
  warning,
} from './checks.ts';
import type { Examination } from './examine.ts';
import { initialize, post } from './session.ts';
import { type Fields, getMediaType, toStrings, Unreachable, type WebClient, type WebResponse } from './web.ts';

/**
 * Examines a login except for its end: the challenge, the metadata, registration, the authorization request, and the
 * token endpoint.
 */
export async function examineLogin(examination: Examination, response: WebResponse): Promise<void> {
  const { address, report, web } = examination;
  const resource = await findResource(web, address, response);
  const { metadataUrl, scheme } = parseChallenge(response);
  const isLogin = resource.resource !== undefined || metadataUrl !== undefined;
  const challenge = isLogin ? checkChallenge(response) : checkTokenChallenge(scheme);
  report('challenge', 'A request without a credential gets a challenge', challenge);
  if (!isLogin) {
    const clients = findClientNames(({ canOnlyLogIn }) => canOnlyLogIn);
    const text = 'It can only log in, but this server announces no login.';
    const detail = `No login is announced, so people enter a token in their client. ${joinNames(clients)} can only log in.`;
    const reasons = [{ clients, text, stops: true as const }];
    report('sign_in', 'Clients can present the credential', { ...warning(detail, clients), reasons });
    return;
  }
  report('resource_metadata', 'The login is announced', resource.verdict);
  if (!resource.resource) return;
  const server = await findIssuer(web, resource.resource);
  report('server_metadata', 'The login metadata is valid', server.verdict);
  report(
    'cors',
    'Web pages may read the metadata',
    await checkCors(web, getDocumentUrls(address, response, server.issuer)),
  );
  if (!server.metadata) return;
  const canContinue = server.verdict.status !== 'problem' || typeof server.metadata.authorization_endpoint === 'string';
  if (canContinue) await examineClient(examination, server.metadata);
}

/** Checks the response of a server that accepts only tokens and API keys (RFC 6750, 3). */
function checkTokenChallenge(scheme: string | undefined): Verdict {
  if (scheme?.toLowerCase() === 'bearer') return ok('401 with a Bearer challenge, which announces no login.', []);
  return warning('401 without "WWW-Authenticate: Bearer …", so clients do not know that a token is missing.', []);
}

async function examineClient(examination: Examination, metadata: Fields): Promise<void> {
  const { address, report, web, canRegister } = examination;
  const registration = report('registration', 'Clients can get a client ID', checkRegistrationMetadata(metadata));
  const endpoint = metadata.registration_endpoint;
  if (registration.status === 'problem' || !canRegister || typeof endpoint !== 'string' || !URL.canParse(endpoint))
    return;
  const page = await register(web, endpoint, 'Toolhost doctor', [testRedirectUri]);
  const registered = report('register', 'A client registers', checkRegistration(page, [testRedirectUri]));
  const clientId = page.json?.client_id;
  if (registered.status === 'problem' || typeof clientId !== 'string') return;
  report(
    'redirect_uris',
    'The redirect URIs of known clients are accepted',
    await checkClientRegistrations(web, endpoint),
  );
  const attempt: LoginAttempt = { web, metadata, clientId, address };
  if (!hasUrl(metadata, 'authorization_endpoint') || !hasUrl(metadata, 'token_endpoint')) return;
  if (report('authorize', 'A login begins', await checkAuthorization(attempt)).status !== 'problem') {
    report('pkce', 'PKCE is required', await checkPkceIsRequired(attempt));
    report('redirect_uri', 'Only registered redirect URIs are accepted', await checkRedirectUris(attempt));
  }
  if (metadata.client_id_metadata_document_supported === true)
    report('client_documents', 'Metadata documents of known clients are accepted', await checkClientDocuments(attempt));
  report('token_endpoint', 'The token endpoint responds as clients expect', await checkTokenEndpoint(attempt));
  const response = await post({ web, address, token: 'made-up-token-of-toolhost-doctor' }, initialize);
  report('expired_token', 'An invalid token is rejected with 401', checkInvalidToken(response));
}

const hasUrl = (metadata: Fields, name: string) => typeof metadata[name] === 'string' && URL.canParse(metadata[name]);

function checkInvalidToken({ status }: WebResponse): Verdict {
  if (status === 401) return ok('401, so clients log in again when their token expires.');
  if (status === 200) return ok('It is accepted until a tool is called, so this server forwards tokens.');
  return problem(
    `The server responds to an invalid token with ${status} instead of 401, so clients do not log in again when a token expires.`,
  );
}

/** A login that is started and never completed. */
type LoginAttempt = { web: WebClient; metadata: Fields; clientId: string; address: string };

const attackerUri = 'https://attacker.example/callback';

/** Result of a request to the authorization endpoint. */
type Outcome = { kind: 'page' | 'elsewhere' } | { kind: 'refused'; reason: string } | { kind: 'sent_to_foreign_uri' };

async function authorize(
  { web, metadata, clientId, address }: LoginAttempt,
  changes: Record<string, string | undefined>,
) {
  const verifier = randomBytes(32).toString('base64url');
  const url = new URL(metadata.authorization_endpoint as string);
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: testRedirectUri,
    state: 'toolhost-doctor',
    resource: address,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  };
  const requestParameters = Object.entries(parameters).filter(
    (pair): pair is [string, string] => pair[1] !== undefined,
  );
  url.search = addQueryParameters(url.search.slice(1), requestParameters);
  const page = await web.request(url.href, { headers: { accept: 'text/html' } });
  return { page, outcome: getOutcome(page) };
}

function getOutcome(page: WebResponse): Outcome {
  const { status, headers } = page;
  const location = headers.get('location');
  if (status >= 300 && status < 400 && location !== null) {
    const target = URL.parse(location, page.url);
    if (!target) return { kind: 'refused', reason: `a redirect to an invalid URL` };
    if (target.href.startsWith('https://attacker.example/')) return { kind: 'sent_to_foreign_uri' };
    const error = target.searchParams.get('error');
    return error === null
      ? { kind: 'elsewhere' }
      : { kind: 'refused', reason: formatLoginError({ error }).trim() || 'an error' };
  }
  if (status === 200) return { kind: 'page' };
  return { kind: 'refused', reason: `${status}${formatLoginError(page.json)}` };
}

/** Checks that a login starts as clients start it. */
async function checkAuthorization(attempt: LoginAttempt): Promise<Verdict> {
  const { page, outcome } = await authorize(attempt, {});
  if (outcome.kind === 'refused')
    return problem(`The newly registered client cannot start a login: ${outcome.reason}.`);
  if (outcome.kind === 'page' && !cannotBeFramed(page))
    return warning('The login page can be shown in a frame of another page, which can trick people into consent.', []);
  return ok(outcome.kind === 'page' ? 'A login starts with a page.' : 'A login starts with a redirect.');
}

/**
 * Starts a login as each client that always uses its metadata document where documents are supported, and never
 * registers instead.
 */
async function checkClientDocuments(attempt: LoginAttempt): Promise<Verdict> {
  const documentClients = [...knownDocuments].filter(([, { requiresDocument }]) => requiresDocument);
  const reasons: Reason[] = [];
  for (const [clientId, { name, redirectUris }] of documentClients) {
    const redirect_uri = redirectUris[0]?.replace('/callback', ':38100/callback');
    const { outcome } = await authorize({ ...attempt, clientId }, { redirect_uri });
    if (outcome.kind !== 'refused') continue;
    const text = `${name} identifies itself with ${clientId}. The server announces support for that but rejects it: ${outcome.reason}. It may be unable to fetch the document.`;
    reasons.push({ clients: [name], text, stops: true });
  }
  const names = documentClients.map(([, { name }]) => name);
  return reasons.length === 0 ? ok(`${joinNames(names)} can start a login.`, names) : createWarning(reasons);
}

function cannotBeFramed({ headers }: WebResponse): boolean {
  return (
    /frame-ancestors/i.test(headers.get('content-security-policy') ?? '') || headers.get('x-frame-options') !== null
  );
}

/** Checks that PKCE is required (MCP 2025-11-25, authorization). */
async function checkPkceIsRequired(attempt: LoginAttempt): Promise<Verdict> {
  const { outcome } = await authorize(attempt, { code_challenge: undefined, code_challenge_method: undefined });
  if (outcome.kind === 'refused') return ok('A request without PKCE is rejected.');
  return problem('A login starts without PKCE, so a stolen code is enough to hijack it.', []);
}

/** Checks that codes are sent only to registered redirect URIs (RFC 6749, 3.1.2.3). */
async function checkRedirectUris(attempt: LoginAttempt): Promise<Verdict> {
  const { outcome } = await authorize(attempt, { redirect_uri: attackerUri });
  if (outcome.kind === 'refused') return ok('An unregistered redirect URI is rejected.');
  if (outcome.kind === 'sent_to_foreign_uri')
    return problem('The server redirects to an unregistered redirect URI, so anyone can collect codes.', []);
  return problem('A login starts with an unregistered redirect URI, so anyone may receive codes.', []);
}

/** Checks the token endpoint with a code that never existed (RFC 6749, 5.2). */
async function checkTokenEndpoint({ web, metadata, clientId, address }: LoginAttempt): Promise<Verdict> {
  const page = await web.request(metadata.token_endpoint as string, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: 'toolhost-doctor',
      redirect_uri: testRedirectUri,
      client_id: clientId,
      code_verifier: 'a'.repeat(43),
      resource: address,
    }).toString(),
  });
  const { status, json } = page;
  if (status === 200) return problem('The token endpoint responds to a made-up code with 200.', []);
  if (!json || typeof json.error !== 'string')
    return problem(
      `The token endpoint responds to a made-up code with ${status} and ${getMediaType(page.headers) || 'no'} content instead of a JSON error.`,
    );
  if (json.error === 'invalid_client') return problem('The token endpoint does not know the newly registered client.');
  if (json.error !== 'invalid_grant')
    return warning(
      `The token endpoint responds to a made-up code with${formatLoginError(json) || ' another error'} instead of invalid_grant.`,
    );
  return ok('A made-up code is rejected with invalid_grant.');
}

function parseChallenge(page: WebResponse): { scheme: string | undefined; metadataUrl: string | undefined } {
  const challenge = page.headers.get('www-authenticate') ?? '';
  return {
    scheme: /^\s*([A-Za-z]+)/.exec(challenge)?.[1],
    metadataUrl: /resource_metadata\s*=\s*(?:"([^"]*)"|([^\s,]+))/i.exec(challenge)?.slice(1).find(Boolean),
  };
}

/** Checks the challenge for a request without a credential (RFC 6750, 3; RFC 9728, 5.1). */
export function checkChallenge(page: WebResponse): Verdict {
  const { scheme, metadataUrl } = parseChallenge(page);
  if (scheme?.toLowerCase() !== 'bearer')
    return problem('401 without "WWW-Authenticate: Bearer …", so clients do not know that they can log in.');
  if (metadataUrl === undefined)
    return warning(
      '401 without resource_metadata in its challenge, so clients must guess where the login is announced.',
    );
  if (!URL.canParse(metadataUrl))
    return problem(`resource_metadata is ${JSON.stringify(metadataUrl)}, which is not a URL.`);
  return ok('401, with a link to the login.');
}

/** Returns the URLs at which clients look for the metadata of a resource, in their order (RFC 9728, 3.1). */
function getResourceUrls(address: string, challengeUrl: string | undefined): string[] {
  const { origin, pathname } = new URL(address);
  const path = pathname === '/' ? '' : pathname;
  const rootUrl = `${origin}/.well-known/oauth-protected-resource`;
  return [
    ...new Set([
      ...(challengeUrl !== undefined && URL.canParse(challengeUrl) ? [challengeUrl] : []),
      `${rootUrl}${path}`,
      rootUrl,
    ]),
  ];
}

export async function findResource(
  web: WebClient,
  address: string,
  response: WebResponse,
): Promise<{ verdict: Verdict; resource?: Fields }> {
  const challengeUrl = parseChallenge(response).metadataUrl;
  const urls = getResourceUrls(address, challengeUrl);
  for (const url of urls) {
    const page = await tryRequest(web, url);
    if (page?.status !== 200 || !page.json) {
      if (url === challengeUrl)
        return { verdict: problem(`The metadata URL in the challenge returns ${describeFailure(page)}.`) };
      continue;
    }
    const verdict = checkDocument(page, checkResourceMetadata(page.json, address));
    const isAtRoot = url === urls.at(-1) && urls.length > 1 && url !== challengeUrl;
    if (verdict.status === 'ok' && isAtRoot)
      return {
        verdict: warning(`The metadata is only at ${url}; some clients look only below the server path.`, ['Zed']),
        resource: page.json,
      };
    return { verdict, resource: page.json };
  }
  return { verdict: problem('No resource metadata was found, so clients do not know where to log in.') };
}

/**
 * Returns the URLs at which clients look for the metadata of an issuer, in their order (RFC 8414, 3.1; OpenID Connect
 * Discovery 1.0, 4).
 */
function getIssuerUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname === '/' ? '' : pathname.replace(/\/$/, '');
  return [
    ...new Set([
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      `${origin}${path}/.well-known/openid-configuration`,
    ]),
  ];
}

export async function findIssuer(
  web: WebClient,
  resource: Fields,
): Promise<{ verdict: Verdict; issuer?: string; metadata?: Fields }> {
  const issuer = toStrings(resource.authorization_servers)[0];
  if (issuer === undefined || !URL.canParse(issuer))
    return { verdict: problem('The resource metadata names no authorization server with a valid URL.') };
  let lastPage: WebResponse | undefined;
  for (const url of getIssuerUrls(issuer)) {
    const page = await tryRequest(web, url);
    lastPage = page ?? lastPage;
    if (page?.status !== 200 || !page.json) continue;
    return { verdict: checkDocument(page, checkServerMetadata(page.json, issuer)), issuer, metadata: page.json };
  }
  return {
    verdict: problem(
      `The authorization server ${issuer} has no metadata where clients look: ${describeFailure(lastPage)}.`,
    ),
  };
}

/** Checks the media type of a document, because some parsers reject a wrong one. */
function checkDocument(page: WebResponse, verdict: Verdict): Verdict {
  if (verdict.status !== 'ok') return verdict;
  if (!getMediaType(page.headers).endsWith('json'))
    return warning(
      `${verdict.detail} But its Content-Type is ${getMediaType(page.headers) || 'missing'}, not application/json.`,
    );
  return verdict;
}

/** Checks if pages of other origins may read the documents. Clients that run in a browser require that. */
async function checkCors(web: WebClient, urls: readonly string[]): Promise<Verdict> {
  const rejected: string[] = [];
  for (const url of urls) {
    const page = await tryRequest(web, url, { origin: 'https://client.example' });
    const allowed = page?.headers.get('access-control-allow-origin');
    if (allowed !== '*' && allowed !== 'https://client.example') rejected.push(new URL(url).pathname);
  }
  if (rejected.length === 0) return ok('Web pages may read the metadata, as clients in a browser do.');
  return warning(
    `Clients that run in a browser may not read ${rejected.join(' and ')}: no Access-Control-Allow-Origin.`,
    [],
  );
}

/** Requests a URL that may not exist. Returns undefined if there is no response. */
async function tryRequest(
  web: WebClient,
  url: string,
  headers: Record<string, string> = {},
): Promise<WebResponse | undefined> {
  try {
    return await web.request(url, { headers: { accept: 'application/json', ...headers } });
  } catch (error) {
    if (error instanceof Unreachable) return undefined;
    throw error;
  }
}

function describeFailure(page: WebResponse | undefined): string {
  if (!page) return 'no response';
  return page.status === 200 ? 'a body that is not a JSON object' : String(page.status);
}

/** Returns the document URLs for `checkCors`. */
function getDocumentUrls(address: string, response: WebResponse, issuer: string | undefined): string[] {
  const [resource] = getResourceUrls(address, parseChallenge(response).metadataUrl);
  const [server] = issuer === undefined ? [] : getIssuerUrls(issuer);
  return [resource, server].filter((url) => url !== undefined);
}

/** Redirect URI of this examination. Nothing listens there, because no login is completed. */
const testRedirectUri = commandLineRedirectUri.replace('127.0.0.1', '127.0.0.1:38199');

export async function register(
  web: WebClient,
  endpoint: string,
  name: string,
  redirectUris: readonly string[],
): Promise<WebResponse> {
  return web.request(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({
      client_name: name,
      redirect_uris: redirectUris,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }),
  });
}

/** Checks the response to a registration (RFC 7591, 3.2.1). */
export function checkRegistration(page: WebResponse, redirectUris: readonly string[]): Verdict {
  const { status, json } = page;
  if (status === 429) return warning('There were too many registrations. Try again later.');
  if (!isCreated(page)) return problem(`The server responds to registration with ${status}${formatLoginError(json)}.`);
  if (typeof json?.client_id !== 'string' || json.client_id === '')
    return problem('Registration returns no client_id.');
  const storedUris = toStrings(json.redirect_uris);
  const missing = redirectUris.filter((uri) => !storedUris.includes(uri));
  if (json.redirect_uris !== undefined && missing.length > 0)
    return problem(`Registration does not store all redirect URIs: ${missing[0]} is missing.`);
  const expires = json.client_secret_expires_at;
  if (typeof expires === 'number' && expires !== 0 && expires <= getDate(page))
    return problem('Registration returns a client that has already expired (client_secret_expires_at).');
  const method = json.token_endpoint_auth_method;
  if (method !== undefined && method !== 'none' && typeof json.client_secret !== 'string')
    return problem(
      `Registration requires the client to authenticate (${JSON.stringify(method)}) but returns no secret.`,
    );
  if (status !== 201) return warning(`The server responds to registration with ${status} instead of 201.`);
  return ok('A client can register.');
}

/** Returns the server's own time, in seconds since 1970, if the response contains it. */
const getDate = ({ headers }: WebResponse) => Date.parse(headers.get('date') ?? '') / 1000;

const isCreated = ({ status }: WebResponse) => status === 201 || status === 200;

/** Registers each known client with its own redirect URIs. */
async function checkClientRegistrations(web: WebClient, endpoint: string): Promise<Verdict> {
  const rejected: { name: string; reason: string }[] = [];
  for (const { name, redirectUris } of registeringClients) {
    const page = await register(web, endpoint, name, redirectUris);
    if (page.status === 429) return warning('There were too many registrations. Try again later.');
    if (!isCreated(page)) rejected.push({ name, reason: `${page.status}${formatLoginError(page.json)}` });
  }
  if (rejected.length === 0)
    return ok(
      'The redirect URIs of all these clients are accepted.',
      registeringClients.map(({ name }) => name),
    );
  return problem(
    `Rejected: ${rejected.map(({ name, reason }) => `${name} (${reason})`).join('; ')}.`,
    rejected.map(({ name }) => name),
  );
}

/** Formats the OAuth error code of a response. It is a short word. Free text of the server is not repeated. */
export function formatLoginError(json: Fields | undefined): string {
  const error = json?.error;
  return typeof error === 'string' && /^[\w.-]{1,50}$/.test(error) ? ` ${error}` : '';
}

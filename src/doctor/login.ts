import { createHash, randomBytes } from 'node:crypto';
import { knownDocuments } from '../domain/clients/client-documents.ts';
import { clientsThat, inWords, registeringClients } from '../domain/clients/clients.ts';
import { addedQuery } from '../domain/http/read-url.ts';
import {
  checkRegistrationMetadata,
  checkResourceMetadata,
  checkServerMetadata,
  ok,
  problem,
  type Reason,
  type Verdict,
  warning,
  warningOf,
} from './checks.ts';
import type { Examination } from './examine.ts';
import { initialize, post } from './session.ts';
import { type Answered, type Fields, textsOf, typeOfAnswer, Unreachable, type WebClient } from './web.ts';

/**
 * Examines a login except for its end: the challenge, the metadata, registration, the authorization request, and the
 * token endpoint.
 */
export async function examineLogin(examination: Examination, refusal: Answered): Promise<void> {
  const { address, report, web } = examination;
  const found = await findResource(web, address, refusal);
  const { metadataUrl, scheme } = readChallenge(refusal);
  const isLogin = found.resource !== undefined || metadataUrl !== undefined;
  const challenge = isLogin ? checkChallenge(refusal) : checkTokenChallenge(scheme);
  report('challenge', 'A request without a credential gets a challenge', challenge);
  if (!isLogin) {
    const clients = clientsThat(({ onlyLogsIn }) => onlyLogsIn);
    const text = 'It can only log in, but this server announces no login.';
    const detail = `No login is announced, so people enter a token in their client. ${inWords(clients)} can only log in.`;
    const reasons = [{ clients, text, stops: true as const }];
    report('sign_in', 'Clients can present the credential', { ...warning(detail, clients), reasons });
    return;
  }
  report('resource_metadata', 'The login is announced', found.verdict);
  if (!found.resource) return;
  const server = await findIssuer(web, found.resource);
  report('server_metadata', 'The login metadata is valid', server.verdict);
  report(
    'cors',
    'Web pages may read the metadata',
    await checkCors(web, documentUrls(address, refusal, server.issuer)),
  );
  if (!server.metadata) return;
  const isWhole = server.verdict.status !== 'problem' || typeof server.metadata.authorization_endpoint === 'string';
  if (isWhole) await examineClient(examination, server.metadata);
}

/** Checks the response of a server that accepts only tokens and API keys (RFC 6750, 3). */
function checkTokenChallenge(scheme: string | undefined): Verdict {
  if (scheme?.toLowerCase() === 'bearer') return ok('401 with a Bearer challenge, which announces no login.', []);
  return warning('401 without "WWW-Authenticate: Bearer …", so clients do not know that a token is missing.', []);
}

async function examineClient(examination: Examination, metadata: Fields): Promise<void> {
  const { address, report, web, registers } = examination;
  const announced = report('registration', 'Clients can get a client ID', checkRegistrationMetadata(metadata));
  const endpoint = metadata.registration_endpoint;
  if (announced.status === 'problem' || !registers || typeof endpoint !== 'string' || !URL.canParse(endpoint)) return;
  const page = await register(web, endpoint, 'Toolhost doctor', [ownRedirectUri]);
  const registered = report('register', 'A client registers', checkRegistration(page, [ownRedirectUri]));
  const clientId = page.json?.client_id;
  if (registered.status === 'problem' || typeof clientId !== 'string') return;
  report('redirect_uris', 'The redirect URIs of known clients are accepted', await checkKnownClients(web, endpoint));
  const trial: Trial = { web, metadata, clientId, address };
  if (!hasUrl(metadata, 'authorization_endpoint') || !hasUrl(metadata, 'token_endpoint')) return;
  if (report('authorize', 'A login begins', await checkAuthorization(trial)).status !== 'problem') {
    report('pkce', 'PKCE is required', await checkPkceIsRequired(trial));
    report('redirect_uri', 'Only registered redirect URIs are accepted', await checkRedirectUris(trial));
  }
  if (metadata.client_id_metadata_document_supported === true)
    report('client_documents', 'Metadata documents of known clients are accepted', await checkClientDocuments(trial));
  report('token_endpoint', 'The token endpoint responds as clients expect', await checkTokenEndpoint(trial));
  const made = await post({ web, address, token: 'made-up-token-of-toolhost-doctor' }, initialize);
  report('expired_token', 'An invalid token is rejected with 401', checkMadeUpToken(made));
}

const hasUrl = (metadata: Fields, name: string) => typeof metadata[name] === 'string' && URL.canParse(metadata[name]);

function checkMadeUpToken({ status }: Answered): Verdict {
  if (status === 401) return ok('401, so clients log in again when their token expires.');
  if (status === 200) return ok('It is accepted until a tool is called, so this server forwards tokens.');
  return problem(
    `The server responds to an invalid token with ${status} instead of 401, so clients do not log in again when a token expires.`,
  );
}

/** A login that is started and never completed. */
type Trial = { web: WebClient; metadata: Fields; clientId: string; address: string };

const foreignUri = 'https://attacker.example/callback';

/** Result of a request to the authorization endpoint. */
type Outcome = { kind: 'page' | 'elsewhere' } | { kind: 'refused'; why: string } | { kind: 'sent_to_foreign_uri' };

async function authorize({ web, metadata, clientId, address }: Trial, changes: Record<string, string | undefined>) {
  const verifier = randomBytes(32).toString('base64url');
  const url = new URL(metadata.authorization_endpoint as string);
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: ownRedirectUri,
    state: 'toolhost-doctor',
    resource: address,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  };
  const sent = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== undefined);
  url.search = addedQuery(url.search.slice(1), sent);
  const page = await web.ask(url.href, { headers: { accept: 'text/html' } });
  return { page, outcome: outcomeOf(page) };
}

function outcomeOf(page: Answered): Outcome {
  const { status, headers } = page;
  const location = headers.get('location');
  if (status >= 300 && status < 400 && location !== null) {
    const target = URL.parse(location, page.url);
    if (!target) return { kind: 'refused', why: `a redirect to an invalid URL` };
    if (target.href.startsWith('https://attacker.example/')) return { kind: 'sent_to_foreign_uri' };
    const error = target.searchParams.get('error');
    return error === null ? { kind: 'elsewhere' } : { kind: 'refused', why: errorOf({ error }).trim() || 'an error' };
  }
  if (status === 200) return { kind: 'page' };
  return { kind: 'refused', why: `${status}${errorOf(page.json)}` };
}

/** Checks that a login starts as clients start it. */
async function checkAuthorization(trial: Trial): Promise<Verdict> {
  const { page, outcome } = await authorize(trial, {});
  if (outcome.kind === 'refused') return problem(`The newly registered client cannot start a login: ${outcome.why}.`);
  if (outcome.kind === 'page' && !cannotBeFramed(page))
    return warning('The login page can be shown in a frame of another page, which can trick people into consent.', []);
  return ok(outcome.kind === 'page' ? 'A login starts with a page.' : 'A login starts with a redirect.');
}

/**
 * Starts a login as the clients that use their metadata document wherever documents are supported, and never register
 * instead.
 */
async function checkClientDocuments(trial: Trial): Promise<Verdict> {
  const insisting = [...knownDocuments].filter(([, { insists }]) => insists);
  const reasons: Reason[] = [];
  for (const [clientId, { name, redirectUris }] of insisting) {
    const redirect_uri = redirectUris[0]?.replace('/callback', ':38100/callback');
    const { outcome } = await authorize({ ...trial, clientId }, { redirect_uri });
    if (outcome.kind !== 'refused') continue;
    const text = `${name} identifies itself with ${clientId}. The server announces support for that but rejects it: ${outcome.why}. It may be unable to fetch the document.`;
    reasons.push({ clients: [name], text, stops: true });
  }
  const names = insisting.map(([, { name }]) => name);
  return reasons.length === 0 ? ok(`${inWords(names)} can start a login.`, names) : warningOf(reasons);
}

function cannotBeFramed({ headers }: Answered): boolean {
  return (
    /frame-ancestors/i.test(headers.get('content-security-policy') ?? '') || headers.get('x-frame-options') !== null
  );
}

/** Checks that PKCE is required (MCP 2025-11-25, authorization). */
async function checkPkceIsRequired(trial: Trial): Promise<Verdict> {
  const { outcome } = await authorize(trial, { code_challenge: undefined, code_challenge_method: undefined });
  if (outcome.kind === 'refused') return ok('A request without PKCE is rejected.');
  return problem('A login starts without PKCE, so a stolen code is enough to hijack it.', []);
}

/** Checks that codes are sent only to registered redirect URIs (RFC 6749, 3.1.2.3). */
async function checkRedirectUris(trial: Trial): Promise<Verdict> {
  const { outcome } = await authorize(trial, { redirect_uri: foreignUri });
  if (outcome.kind === 'refused') return ok('An unregistered redirect URI is rejected.');
  if (outcome.kind === 'sent_to_foreign_uri')
    return problem('The server redirects to an unregistered redirect URI, so anyone can collect codes.', []);
  return problem('A login starts with an unregistered redirect URI, so anyone may receive codes.', []);
}

/** Checks the token endpoint with a code that never existed (RFC 6749, 5.2). */
async function checkTokenEndpoint({ web, metadata, clientId, address }: Trial): Promise<Verdict> {
  const page = await web.ask(metadata.token_endpoint as string, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: 'toolhost-doctor',
      redirect_uri: ownRedirectUri,
      client_id: clientId,
      code_verifier: 'a'.repeat(43),
      resource: address,
    }).toString(),
  });
  const { status, json } = page;
  if (status === 200) return problem('The token endpoint responds to a made-up code with 200.', []);
  if (!json || typeof json.error !== 'string')
    return problem(
      `The token endpoint responds to a made-up code with ${status} and ${typeOfAnswer(page.headers) || 'no'} content instead of a JSON error.`,
    );
  if (json.error === 'invalid_client') return problem('The token endpoint does not know the newly registered client.');
  if (json.error !== 'invalid_grant')
    return warning(
      `The token endpoint responds to a made-up code with${errorOf(json) || ' another error'} instead of invalid_grant.`,
    );
  return ok('A made-up code is rejected with invalid_grant.');
}

function readChallenge(page: Answered): { scheme: string | undefined; metadataUrl: string | undefined } {
  const challenge = page.headers.get('www-authenticate') ?? '';
  return {
    scheme: /^\s*([A-Za-z]+)/.exec(challenge)?.[1],
    metadataUrl: /resource_metadata\s*=\s*(?:"([^"]*)"|([^\s,]+))/i.exec(challenge)?.slice(1).find(Boolean),
  };
}

/** Checks the challenge for a request without a credential (RFC 6750, 3; RFC 9728, 5.1). */
export function checkChallenge(page: Answered): Verdict {
  const { scheme, metadataUrl } = readChallenge(page);
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
function resourceUrls(address: string, named: string | undefined): string[] {
  const { origin, pathname } = new URL(address);
  const path = pathname === '/' ? '' : pathname;
  const usual = `${origin}/.well-known/oauth-protected-resource`;
  return [...new Set([...(named !== undefined && URL.canParse(named) ? [named] : []), `${usual}${path}`, usual])];
}

export async function findResource(
  web: WebClient,
  address: string,
  refusal: Answered,
): Promise<{ verdict: Verdict; resource?: Fields }> {
  const named = readChallenge(refusal).metadataUrl;
  const urls = resourceUrls(address, named);
  for (const url of urls) {
    const page = await quietly(web, url);
    if (page?.status !== 200 || !page.json) {
      if (url === named) return { verdict: problem(`The metadata URL in the challenge returns ${faultOf(page)}.`) };
      continue;
    }
    const verdict = checkDocument(page, checkResourceMetadata(page.json, address));
    const isAtRoot = url === urls.at(-1) && urls.length > 1 && url !== named;
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
function issuerUrls(issuer: string): string[] {
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
  const issuer = textsOf(resource.authorization_servers)[0];
  if (issuer === undefined || !URL.canParse(issuer))
    return { verdict: problem('The resource metadata names no authorization server with a valid URL.') };
  let last: Answered | undefined;
  for (const url of issuerUrls(issuer)) {
    const page = await quietly(web, url);
    last = page ?? last;
    if (page?.status !== 200 || !page.json) continue;
    return { verdict: checkDocument(page, checkServerMetadata(page.json, issuer)), issuer, metadata: page.json };
  }
  return {
    verdict: problem(`The authorization server ${issuer} has no metadata where clients look: ${faultOf(last)}.`),
  };
}

/** Checks the media type of a document, because some parsers reject a wrong one. */
function checkDocument(page: Answered, verdict: Verdict): Verdict {
  if (verdict.status !== 'ok') return verdict;
  if (!typeOfAnswer(page.headers).endsWith('json'))
    return warning(
      `${verdict.detail} But its Content-Type is ${typeOfAnswer(page.headers) || 'missing'}, not application/json.`,
    );
  return verdict;
}

/** Checks if pages of other origins may read the documents. Clients that run in a browser require that. */
async function checkCors(web: WebClient, urls: readonly string[]): Promise<Verdict> {
  const refused: string[] = [];
  for (const url of urls) {
    const page = await quietly(web, url, { origin: 'https://client.example' });
    const allowed = page?.headers.get('access-control-allow-origin');
    if (allowed !== '*' && allowed !== 'https://client.example') refused.push(new URL(url).pathname);
  }
  if (refused.length === 0) return ok('Web pages may read the metadata, as clients in a browser do.');
  return warning(
    `Clients that run in a browser may not read ${refused.join(' and ')}: no Access-Control-Allow-Origin.`,
    [],
  );
}

/** Requests a URL that may not exist. Returns undefined if there is no response. */
async function quietly(
  web: WebClient,
  url: string,
  headers: Record<string, string> = {},
): Promise<Answered | undefined> {
  try {
    return await web.ask(url, { headers: { accept: 'application/json', ...headers } });
  } catch (error) {
    if (error instanceof Unreachable) return undefined;
    throw error;
  }
}

function faultOf(page: Answered | undefined): string {
  if (!page) return 'no response';
  return page.status === 200 ? 'a body that is not a JSON object' : String(page.status);
}

/** Returns the document URLs for `checkCors`. */
function documentUrls(address: string, refusal: Answered, issuer: string | undefined): string[] {
  const [resource] = resourceUrls(address, readChallenge(refusal).metadataUrl);
  const [server] = issuer === undefined ? [] : issuerUrls(issuer);
  return [resource, server].filter((url) => url !== undefined);
}

/** Redirect URI of this examination. Nothing listens there, because no login is completed. */
const ownRedirectUri = 'http://127.0.0.1:38199/callback';

export async function register(
  web: WebClient,
  endpoint: string,
  name: string,
  redirectUris: readonly string[],
): Promise<Answered> {
  return web.ask(endpoint, {
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
export function checkRegistration(page: Answered, redirectUris: readonly string[]): Verdict {
  const { status, json } = page;
  if (status === 429) return warning('There were too many registrations. Try again later.');
  if (!isCreated(page)) return problem(`The server responds to registration with ${status}${errorOf(json)}.`);
  if (typeof json?.client_id !== 'string' || json.client_id === '')
    return problem('Registration returns no client_id.');
  const echoed = textsOf(json.redirect_uris);
  const lost = redirectUris.filter((uri) => !echoed.includes(uri));
  if (json.redirect_uris !== undefined && lost.length > 0)
    return problem(`Registration does not store all redirect URIs: ${lost[0]} is missing.`);
  const expires = json.client_secret_expires_at;
  if (typeof expires === 'number' && expires !== 0 && expires <= dateOf(page))
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
const dateOf = ({ headers }: Answered) => Date.parse(headers.get('date') ?? '') / 1000;

const isCreated = ({ status }: Answered) => status === 201 || status === 200;

/** Registers each known client with its own redirect URIs. */
async function checkKnownClients(web: WebClient, endpoint: string): Promise<Verdict> {
  const refused: { name: string; why: string }[] = [];
  for (const { name, redirectUris } of registeringClients) {
    const page = await register(web, endpoint, name, redirectUris);
    if (page.status === 429) return warning('There were too many registrations. Try again later.');
    if (!isCreated(page)) refused.push({ name, why: `${page.status}${errorOf(page.json)}` });
  }
  if (refused.length === 0)
    return ok(
      'The redirect URIs of all these clients are accepted.',
      registeringClients.map(({ name }) => name),
    );
  return problem(
    `Rejected: ${refused.map(({ name, why }) => `${name} (${why})`).join('; ')}.`,
    refused.map(({ name }) => name),
  );
}

/** Formats the OAuth error code of a response. It is a short word. Free text of the server is not repeated. */
export function errorOf(json: Fields | undefined): string {
  const error = json?.error;
  return typeof error === 'string' && /^[\w.-]{1,50}$/.test(error) ? ` ${error}` : '';
}

import { createHash, randomBytes } from 'node:crypto';
import { addedQuery } from '../domain/added-query.ts';
import { knownDocuments } from '../domain/clients/client-documents.ts';
import { clientsThat, inWords } from '../domain/clients/clients.ts';
import { type Fields, ok, problem, type Reason, type Verdict, warning, warningOf } from './check.ts';
import { checkRegistrationMetadata } from './check-metadata.ts';
import { checkChallenge, checkCors, documentUrls, findIssuer, findResource, readChallenge } from './discovery.ts';
import type { Examination } from './examination.ts';
import { checkKnownClients, checkRegistration, errorOf, ownRedirectUri, register } from './registration.ts';
import { initialize, post } from './session.ts';
import { type Answered, typeOfAnswer, type WebClient } from './web.ts';

/** Examines all of a login but its end: the challenge, the metadata, registration, the begin, the token endpoint. */
export async function examineLogin(examination: Examination, refusal: Answered): Promise<void> {
  const { address, report, web } = examination;
  const found = await findResource(web, address, refusal);
  const { metadataUrl, scheme } = readChallenge(refusal);
  const isLogin = found.resource !== undefined || metadataUrl !== undefined;
  const challenge = isLogin ? checkChallenge(refusal) : checkTokenChallenge(scheme);
  report('challenge', 'A request without a credential is refused with a challenge', challenge);
  if (!isLogin) {
    const clients = clientsThat(({ onlyLogsIn }) => onlyLogsIn);
    const text = 'It can only log in, and this server announces no login.';
    const detail = `No login is announced, so people give their client a token. ${inWords(clients)} can only log in.`;
    const reasons = [{ clients, text, stops: true as const }];
    report('sign_in', 'Clients can present the credential', { ...warning(detail, clients), reasons });
    return;
  }
  report('resource_metadata', 'The login is announced', found.verdict);
  if (!found.resource) return;
  const server = await findIssuer(web, found.resource);
  report('server_metadata', 'The login is described', server.verdict);
  report('cors', 'Pages may read the metadata', await checkCors(web, documentUrls(address, refusal, server.issuer)));
  if (!server.metadata) return;
  const isWhole = server.verdict.status !== 'problem' || typeof server.metadata.authorization_endpoint === 'string';
  if (isWhole) await examineClient(examination, server.metadata);
}

/** Checks the refusal of a server that takes only tokens and API keys (RFC 6750, 3). */
function checkTokenChallenge(scheme: string | undefined): Verdict {
  if (scheme?.toLowerCase() === 'bearer') return ok('401, which asks for a bearer and announces no login.', []);
  return warning('401 without "WWW-Authenticate: Bearer …", which says what is missing.', []);
}

async function examineClient(examination: Examination, metadata: Fields): Promise<void> {
  const { address, report, web, registers } = examination;
  const announced = report('registration', 'Clients can get a client id', checkRegistrationMetadata(metadata));
  const endpoint = metadata.registration_endpoint;
  if (announced.status === 'problem' || !registers || typeof endpoint !== 'string' || !URL.canParse(endpoint)) return;
  const page = await register(web, endpoint, 'Toolhost doctor', [ownRedirectUri]);
  const registered = report('register', 'A client registers', checkRegistration(page, [ownRedirectUri]));
  const clientId = page.json?.client_id;
  if (registered.status === 'problem' || typeof clientId !== 'string') return;
  report('redirect_uris', 'The redirect URIs of known clients are taken', await checkKnownClients(web, endpoint));
  const trial: Trial = { web, metadata, clientId, address };
  if (!hasUrl(metadata, 'authorization_endpoint') || !hasUrl(metadata, 'token_endpoint')) return;
  if (report('authorize', 'A login begins', await checkAuthorization(trial)).status !== 'problem') {
    report('pkce', 'PKCE is required', await checkPkceIsRequired(trial));
    report('redirect_uri', 'Only registered redirect URIs are taken', await checkRedirectUris(trial));
  }
  if (metadata.client_id_metadata_document_supported === true)
    report('client_documents', 'Metadata documents of known clients are taken', await checkClientDocuments(trial));
  report('token_endpoint', 'The token endpoint answers as clients expect', await checkTokenEndpoint(trial));
  const made = await post({ web, address, token: 'made-up-token-of-toolhost-doctor' }, initialize);
  report('expired_token', 'A token that is not valid is refused with 401', checkMadeUpToken(made));
}

const hasUrl = (metadata: Fields, name: string) => typeof metadata[name] === 'string' && URL.canParse(metadata[name]);

function checkMadeUpToken({ status }: Answered): Verdict {
  if (status === 401) return ok('401, so clients log in again when their token expires.');
  if (status === 200) return ok('It is accepted until a tool is called, so this server passes tokens on.');
  return problem(
    `A token that is not valid is answered with ${status} instead of 401, so clients do not log in again when it expires.`,
  );
}

/** A login that is begun and never finished. */
type Trial = { web: WebClient; metadata: Fields; clientId: string; address: string };

const foreignUri = 'https://attacker.example/callback';

/** Where a request to the authorization endpoint leads. */
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
    if (!target) return { kind: 'refused', why: `a redirect to something that is no URL` };
    if (target.href.startsWith('https://attacker.example/')) return { kind: 'sent_to_foreign_uri' };
    const error = target.searchParams.get('error');
    return error === null ? { kind: 'elsewhere' } : { kind: 'refused', why: errorOf({ error }).trim() || 'an error' };
  }
  if (status === 200) return { kind: 'page' };
  return { kind: 'refused', why: `${status}${errorOf(page.json)}` };
}

/** Checks whether a login begins as clients begin it. */
async function checkAuthorization(trial: Trial): Promise<Verdict> {
  const { page, outcome } = await authorize(trial, {});
  if (outcome.kind === 'refused')
    return problem(`The client that has just registered cannot begin a login: ${outcome.why}.`);
  if (outcome.kind === 'page' && !cannotBeFramed(page))
    return warning(
      'The page of the login can be shown in a frame of another page, which can trick people into consent.',
      [],
    );
  return ok(outcome.kind === 'page' ? 'A login begins with a page.' : 'A login begins with a redirect.');
}

/** Begins a login as the clients do that use their metadata document wherever it is announced, and register nowhere else. */
async function checkClientDocuments(trial: Trial): Promise<Verdict> {
  const insisting = [...knownDocuments].filter(([, { insists }]) => insists);
  const reasons: Reason[] = [];
  for (const [clientId, { name, redirectUris }] of insisting) {
    const redirect_uri = redirectUris[0]?.replace('/callback', ':38100/callback');
    const { outcome } = await authorize({ ...trial, clientId }, { redirect_uri });
    if (outcome.kind !== 'refused') continue;
    const text = `${name} identifies itself by ${clientId}, which the server announces to take and refuses: ${outcome.why}. The server may be unable to fetch it.`;
    reasons.push({ clients: [name], text, stops: true });
  }
  const names = insisting.map(([, { name }]) => name);
  return reasons.length === 0 ? ok(`A login of ${inWords(names)} begins.`, names) : warningOf(reasons);
}

function cannotBeFramed({ headers }: Answered): boolean {
  return (
    /frame-ancestors/i.test(headers.get('content-security-policy') ?? '') || headers.get('x-frame-options') !== null
  );
}

/** Checks whether PKCE is required (MCP 2025-11-25, authorization). */
async function checkPkceIsRequired(trial: Trial): Promise<Verdict> {
  const { outcome } = await authorize(trial, { code_challenge: undefined, code_challenge_method: undefined });
  if (outcome.kind === 'refused') return ok('A request without PKCE is refused.');
  return problem('A login begins without PKCE, so a stolen code is enough to take it over.', []);
}

/** Checks whether codes go only to registered redirect URIs (RFC 6749, 3.1.2.3). */
async function checkRedirectUris(trial: Trial): Promise<Verdict> {
  const { outcome } = await authorize(trial, { redirect_uri: foreignUri });
  if (outcome.kind === 'refused') return ok('A redirect URI that is not registered is refused.');
  if (outcome.kind === 'sent_to_foreign_uri')
    return problem('A redirect URI that is not registered is redirected to, so anybody can collect codes.', []);
  return problem('A login begins with a redirect URI that is not registered, so codes may go to anybody.', []);
}

/** Checks the token endpoint by a code that never existed (RFC 6749, 5.2). */
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
  if (status === 200) return problem('The token endpoint answers a made-up code with 200.', []);
  if (!json || typeof json.error !== 'string')
    return problem(
      `The token endpoint answers a made-up code with ${status} and ${typeOfAnswer(page.headers) || 'no'} content instead of a JSON error.`,
    );
  if (json.error === 'invalid_client')
    return problem('The token endpoint does not know the client that has just registered.');
  if (json.error !== 'invalid_grant')
    return warning(
      `The token endpoint answers a made-up code with${errorOf(json) || ' another error'} instead of invalid_grant.`,
    );
  return ok('A made-up code is refused with invalid_grant.');
}

import { createHash, randomBytes } from 'node:crypto';
import { addedQuery } from '../domain/added-query.ts';
import { type Fields, ok, problem, type Verdict, warning } from './check.ts';
import { errorOf, ownRedirectUri } from './registration.ts';
import { type Answered, typeOfAnswer, type WebClient } from './web.ts';

/** A login that is begun and never finished. */
export type Trial = { web: WebClient; metadata: Fields; clientId: string; address: string };

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
export async function checkAuthorization(trial: Trial): Promise<Verdict> {
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

function cannotBeFramed({ headers }: Answered): boolean {
  return (
    /frame-ancestors/i.test(headers.get('content-security-policy') ?? '') || headers.get('x-frame-options') !== null
  );
}

/** Checks whether PKCE is required (MCP 2025-11-25, authorization). */
export async function checkPkceIsRequired(trial: Trial): Promise<Verdict> {
  const { outcome } = await authorize(trial, { code_challenge: undefined, code_challenge_method: undefined });
  if (outcome.kind === 'refused') return ok('A request without PKCE is refused.');
  return problem('A login begins without PKCE, so a stolen code is enough to take it over.', []);
}

/** Checks whether codes go only to registered redirect URIs (RFC 6749, 3.1.2.3). */
export async function checkRedirectUris(trial: Trial): Promise<Verdict> {
  const { outcome } = await authorize(trial, { redirect_uri: foreignUri });
  if (outcome.kind === 'refused') return ok('A redirect URI that is not registered is refused.');
  if (outcome.kind === 'sent_to_foreign_uri')
    return problem('A redirect URI that is not registered is redirected to, so anybody can collect codes.', []);
  return problem('A login begins with a redirect URI that is not registered, so codes may go to anybody.', []);
}

/** Checks the token endpoint by a code that never existed (RFC 6749, 5.2). */
export async function checkTokenEndpoint({ web, metadata, clientId, address }: Trial): Promise<Verdict> {
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

import { registeringClients } from '../domain/clients/clients.ts';
import { type Fields, ok, problem, textsOf, type Verdict, warning } from './check.ts';
import type { Answered, WebClient } from './web.ts';

/** The redirect URI of this examination. Nothing listens there: no login is finished. */
export const ownRedirectUri = 'http://127.0.0.1:38199/callback';

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

/** Checks the answer to a registration (RFC 7591, 3.2.1). */
export function checkRegistration(page: Answered, redirectUris: readonly string[]): Verdict {
  const { status, json } = page;
  if (status === 429) return warning('There were too many registrations; try again later.');
  if (!isCreated(page)) return problem(`Registration is answered with ${status}${errorOf(json)}.`);
  if (typeof json?.client_id !== 'string' || json.client_id === '') return problem('Registration gives no client_id.');
  const echoed = textsOf(json.redirect_uris);
  const lost = redirectUris.filter((uri) => !echoed.includes(uri));
  if (json.redirect_uris !== undefined && lost.length > 0)
    return problem(`Registration keeps other redirect URIs than it was given: ${lost[0]} is missing.`);
  const expires = json.client_secret_expires_at;
  if (typeof expires === 'number' && expires !== 0 && expires <= dateOf(page))
    return problem('Registration gives a client that has expired already (client_secret_expires_at).');
  const method = json.token_endpoint_auth_method;
  if (method !== undefined && method !== 'none' && typeof json.client_secret !== 'string')
    return problem(`Registration wants the client to authenticate (${JSON.stringify(method)}) and gives it no secret.`);
  if (status !== 201) return warning(`Registration is answered with ${status} instead of 201.`);
  return ok('A client can register.');
}

/** The server's own time, in seconds since 1970, if it states it. */
const dateOf = ({ headers }: Answered) => Date.parse(headers.get('date') ?? '') / 1000;

const isCreated = ({ status }: Answered) => status === 201 || status === 200;

/** Registers each known client with its own redirect URIs. */
export async function checkKnownClients(web: WebClient, endpoint: string): Promise<Verdict> {
  const refused: { name: string; why: string }[] = [];
  for (const { name, redirectUris } of registeringClients) {
    const page = await register(web, endpoint, name, redirectUris);
    if (page.status === 429) return warning('There were too many registrations; try again later.');
    if (!isCreated(page)) refused.push({ name, why: `${page.status}${errorOf(page.json)}` });
  }
  if (refused.length === 0)
    return ok(
      'The redirect URIs of all these clients are taken.',
      registeringClients.map(({ name }) => name),
    );
  return problem(
    `Refused: ${refused.map(({ name, why }) => `${name} (${why})`).join('; ')}.`,
    refused.map(({ name }) => name),
  );
}

/** The error code of OAuth in an answer. It is a short word; free text of the server is not repeated. */
export function errorOf(json: Fields | undefined): string {
  const error = json?.error;
  return typeof error === 'string' && /^[\w.-]{1,50}$/.test(error) ? ` ${error}` : '';
}

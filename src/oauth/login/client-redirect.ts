import { addedQuery } from '../../domain/added-query.ts';
import { errorDescription, type OAuthError, oauthErrorStatus } from '../../errors.ts';
import type { OAuthClient } from '../clients/client.ts';
import type { LoginServer } from '../login-server.ts';
import type { OAuthAnswer } from '../parts.ts';
import { returnPage, unansweredPage } from './pages.ts';

type Outcome = { state: string | undefined } & ({ code: string } | { error: OAuthError });

/**
 * Sends the browser back to the client with a code or an error, always with `state` and our `iss` (RFC 6749, 4.1.2; RFC
 * 9207). For a private-use scheme the answer is a page: a browser that starts a program stays on the page before it,
 * which after a redirect would be the provider's form.
 */
export function clientRedirect(
  server: LoginServer,
  redirectUri: string,
  outcome: Outcome,
  cookies: string[] = [],
): OAuthAnswer {
  const failure = 'error' in outcome ? outcome.error : undefined;
  const location = addressOf(server, redirectUri, outcome);
  if (!/^https?:/.test(location)) {
    return { kind: 'page', status: 200, html: returnPage(server, redirectUri, failure, location), cookies };
  }
  return { kind: 'redirect', location, html: returnPage(server, redirectUri, failure), cookies };
}

/** The same, always as a page: the answer to a form must not be a redirect. */
export function clientAnswerPage(
  server: LoginServer,
  redirectUri: string,
  outcome: Outcome & { error: OAuthError },
  cookies: string[],
): OAuthAnswer {
  const location = addressOf(server, redirectUri, outcome);
  return { kind: 'page', status: 200, html: returnPage(server, redirectUri, outcome.error, location), cookies };
}

/** An error page for a client that nobody has verified. The person decides whether to follow the link to it. */
export function errorWithLink(
  server: LoginServer,
  client: OAuthClient,
  redirectUri: string,
  outcome: Outcome & { error: OAuthError },
): OAuthAnswer {
  const onward = addressOf(server, redirectUri, outcome);
  const html = unansweredPage(server, client, outcome.error, onward);
  return { kind: 'page', status: oauthErrorStatus[outcome.error.code], html };
}

/**
 * Parameters that say how a login ended. A redirect URI loses its own, which would say something else. All else that the
 * answer does not set itself belongs to the client, also a `state` when its request had none.
 */
const resultParams: readonly string[] = ['code', 'error', 'error_description'];

function withoutResult(query: string): string {
  const isResult = (pair: string) => [...new URLSearchParams(pair).keys()].some((name) => resultParams.includes(name));
  return query
    .split('&')
    .filter((pair) => !isResult(pair))
    .join('&');
}

function addressOf(server: LoginServer, redirectUri: string, outcome: Outcome): string {
  const url = new URL(redirectUri);
  const [, query = ''] = /^[^?]*\?(.*)$/s.exec(redirectUri) ?? [];
  const result: [string, string][] =
    'code' in outcome
      ? [['code', outcome.code]]
      : [
          ['error', registeredCode(outcome.error)],
          ['error_description', errorDescription(outcome.error.message).slice(0, 300)],
        ];
  const state: [string, string][] = outcome.state === undefined ? [] : [['state', outcome.state]];
  const added = addedQuery(withoutResult(query), [...result, ...state, ['iss', server.issuer]]);
  url.search = '';
  return `${url.href}?${added}`;
}

/** Maps errors of the token endpoint to a code that is registered here (RFC 6749, 4.1.2.1; RFC 8707, 2). */
function registeredCode(error: OAuthError): string {
  return error.code === 'invalid_grant' || error.code === 'invalid_client' ? 'server_error' : error.code;
}

import { type Fields, loginClients, ok, problem, warning } from './check.ts';
import type { Examination, FinishedLogin } from './examination.ts';
import { errorOf } from './registration.ts';
import type { WebClient } from './web.ts';

type Tokens = Pick<FinishedLogin, 'accessToken' | 'refreshToken'>;

/** Clients that leave out `resource` when they renew a login (https://github.com/openai/codex/issues/33403). */
const withoutResource = ['Codex'];

/** Renews a login as clients do when its token has expired (RFC 6749, 6), and gives the tokens to go on with. */
export async function renew({ web, address, report }: Examination, login: FinishedLogin): Promise<Tokens> {
  const title = 'A login is renewed';
  const { refreshToken } = login;
  if (refreshToken === undefined) {
    const detail = 'No refresh token is given, so people log in again when the access token expires.';
    report('refresh', title, warning(detail, [...loginClients]));
    return login;
  }
  const plain = await refresh(web, login, { refresh_token: refreshToken });
  if (plain.tokens) {
    report('refresh', title, ok('The refresh token gives a new access token, also without the parameter resource.'));
    return plain.tokens;
  }
  const named = await refresh(web, login, { refresh_token: refreshToken, resource: address });
  if (named.tokens) {
    const detail = `Only with the parameter resource; without it the answer is ${plain.fault}.`;
    report('refresh', title, problem(detail, withoutResource));
    return named.tokens;
  }
  report(
    'refresh',
    title,
    problem(`The refresh token is answered with ${named.fault}, so people have to log in again.`),
  );
  return login;
}

async function refresh(
  web: WebClient,
  { tokenEndpoint, clientId }: FinishedLogin,
  form: { refresh_token: string; resource?: string },
): Promise<{ tokens?: Tokens; fault: string }> {
  const page = await web.ask(tokenEndpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams({ grant_type: 'refresh_token', client_id: clientId, ...form }).toString(),
  });
  const { access_token: accessToken, refresh_token: next } = page.json ?? ({} as Fields);
  const fault = `${page.status}${errorOf(page.json)}`;
  if (page.status !== 200 || typeof accessToken !== 'string') return { fault };
  return { tokens: { accessToken, refreshToken: typeof next === 'string' ? next : form.refresh_token }, fault };
}

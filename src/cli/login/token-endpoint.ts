import { errorOf } from '../../doctor/login.ts';
import type { Answered, WebClient } from '../../doctor/web.ts';
import { AppError } from '../../errors.ts';
import { askOrFail } from './discover-login.ts';

/** Tokens of a login. */
export type LoginTokens = { accessToken: string; refreshToken: string | undefined; scope: string | undefined };

/** The code or refresh token is not valid (any more), so a person has to log in again. */
export class LoginEnded extends AppError {
  constructor(why: string) {
    super('unauthenticated', why);
  }
}

/** Posts a form to the token endpoint (RFC 6749, 4.1.3 and 6). @throws LoginEnded, AppError */
export async function askTokens(
  web: WebClient,
  endpoint: string,
  form: { [field: string]: string },
): Promise<LoginTokens> {
  const page = await postForm(web, endpoint, form);
  const { status, json } = page;
  if (status === 400 && json?.error === 'invalid_grant') throw new LoginEnded('the login is not valid any more');
  if (status !== 200)
    throw new AppError(
      status >= 500 || status === 429 ? 'unavailable' : 'invalid',
      `${new URL(endpoint).origin} gave no tokens: ${status}${errorOf(json)}`,
    );
  const isToken = (value: unknown) => typeof value === 'string' && /^[\x21-\x7e]{1,16384}$/.test(value);
  if (!isToken(json?.access_token) || !/^bearer$/i.test(String(json?.token_type)))
    throw new AppError('unavailable', `${new URL(endpoint).origin} answered, but not with a bearer token`);
  return {
    accessToken: String(json?.access_token),
    refreshToken: isToken(json?.refresh_token) ? String(json?.refresh_token) : undefined,
    scope: typeof json?.scope === 'string' ? json.scope : undefined,
  };
}

/** Ends a login by one of its tokens (RFC 7009). @throws AppError when the service did not do it */
export async function revokeToken(
  web: WebClient,
  endpoint: string,
  { clientId, token }: { clientId: string; token: string },
): Promise<void> {
  const { status, json } = await postForm(web, endpoint, { client_id: clientId, token });
  if (status !== 200)
    throw new AppError('unavailable', `${new URL(endpoint).origin} did not end the login: ${status}${errorOf(json)}`);
}

function postForm(web: WebClient, endpoint: string, form: { [field: string]: string }): Promise<Answered> {
  return askOrFail(web, endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams(form).toString(),
  });
}

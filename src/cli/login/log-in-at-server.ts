import { initialize, post } from '../../doctor/session.ts';
import type { WebClient } from '../../doctor/web.ts';
import { AppError } from '../../errors.ts';
import { discoverLogin, type LoginTarget } from './discover-login.ts';
import { type LoggedIn, type LoginRequest, logIn } from './log-in.ts';

/**
 * Logs a person in at any MCP server, as its clients do: the server refuses a first message, and its metadata names the
 * authorization server, which may be on another host.
 * @throws AppError when the server wants no login, or its login cannot be used
 */
export async function logInAtServer(
  web: WebClient,
  address: string,
  request: Omit<LoginRequest, 'scopes'> & { scopes?: readonly string[] },
): Promise<LoggedIn & { target: LoginTarget }> {
  const refusal = await post({ web, address, token: undefined }, initialize);
  if (refusal.status !== 401)
    throw new AppError(
      'invalid',
      `${address} answers ${refusal.status} without a login, so there is nowhere to log in`,
    );
  const target = await discoverLogin(web, address, refusal);
  return { ...(await logIn(web, target, { ...request, scopes: request.scopes ?? target.scopes })), target };
}

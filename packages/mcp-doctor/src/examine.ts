import { AppError } from '@toolhost/errors/errors';
import { allClients, type Check, checkAddress, loginClients, ok, problem, type Verdict, warning } from './checks.ts';
import { examineLogin, formatLoginError } from './login.ts';
import { checkFirstResponse, examineSession, initialize, type McpAddress, post } from './session.ts';
import { type Fields, Unreachable, type WebClient } from './web.ts';

/** A completed login of a person, as its client received it. */
export type FinishedLogin = {
  clientId: string;
  tokenEndpoint: string;
  accessToken: string;
  refreshToken: string | undefined;
  /** Ends the login with one of its tokens; undefined if the server does not support that. @throws AppError */
  revoke: ((token: string) => Promise<void>) | undefined;
};

/** A tool call to test. */
export type ExaminedCall = {
  tool: string;
  arguments: Fields;
  /** Asks if a tool that is not marked as read-only may be called. */
  confirmChange: () => Promise<boolean>;
};

export type ExamineOptions = {
  web: WebClient;
  /** A token or API key that the server accepts. Without it, only the steps before the login can be examined. */
  token?: string | undefined;
  /** True if clients may be registered. The server may store each registration. */
  canRegister: boolean;
  /** Lets a person log in if the server requires it and there is no token. @throws AppError */
  logIn?: (() => Promise<FinishedLogin>) | undefined;
  call?: ExaminedCall | undefined;
};

export type ReportCheck = (id: string, title: string, verdict: Verdict) => Verdict;
export type Examination = ExamineOptions & { address: string; report: ReportCheck };

/** Login checks, which affect only clients that log in. */
const loginChecks: ReadonlySet<string> = new Set([
  ...['challenge', 'resource_metadata', 'server_metadata', 'registration', 'register', 'authorize'],
  ...['token_endpoint', 'expired_token', 'login', 'refresh'],
]);

/**
 * Simulates a client that knows only the URL of an MCP server: discovery, registration, login, handshake, and tool
 * list. Stops where every client would stop. Completes a login, or calls a tool, only if the options request it.
 */
export async function examine(address: string, options: ExamineOptions): Promise<Check[]> {
  const checks: Check[] = [];
  const report: ReportCheck = (id, title, verdict) => {
    checks.push({ id, title, clients: [...(loginChecks.has(id) ? loginClients : allClients)], ...verdict });
    return verdict;
  };
  try {
    await runChecks({ ...options, address, report });
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    report('answer', 'Every request gets a response', problem(`A request got no response: ${error.message}.`));
  }
  return checks;
}

async function runChecks(examination: Examination): Promise<void> {
  const { address, report, web, token } = examination;
  if (report('address', 'The URL is usable', checkAddress(address)).status === 'problem') return;
  const firstResponse = await post({ web, address, token: undefined }, initialize);
  const reach = report('reach', 'The server responds to MCP clients', checkFirstResponse(firstResponse));
  if (reach.status === 'problem') return;
  if (firstResponse.status !== 401)
    return examineSession({ web, address, token: undefined }, firstResponse, examination);
  await examineLogin(examination, firstResponse);
  if (token !== undefined) return examineWithToken(examination, token);
  const login = await finishLogin(examination);
  if (!login) return;
  const currentTokens = await renewLogin(examination, login);
  try {
    await examineWithToken(examination, currentTokens.accessToken);
  } finally {
    await revokeLogin(examination, login, currentTokens.refreshToken ?? currentTokens.accessToken);
  }
}

async function examineWithToken(examination: Examination, token: string): Promise<void> {
  const target: McpAddress = { web: examination.web, address: examination.address, token };
  const response = await post(target, initialize);
  const verdict =
    response.status === 200
      ? ok('The token is accepted.')
      : problem(`The server responds to the token with ${response.status}.`);
  if (examination.report('token', 'The token is accepted', verdict).status === 'problem') return;
  await examineSession(target, response, examination);
}

async function finishLogin({ logIn, report }: Examination): Promise<FinishedLogin | undefined> {
  if (!logIn) return undefined;
  try {
    const login = await logIn();
    report('login', 'A person logs in', ok('The login returned a code, and the code was exchanged for a token.'));
    return login;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    report('login', 'A person logs in', problem(`${error.message}.`));
    return undefined;
  }
}

/** Ends the login that was completed for the examination. */
async function revokeLogin({ report }: Examination, { revoke }: FinishedLogin, token: string): Promise<void> {
  const title = 'The login is ended';
  if (!revoke) return void report('logout', title, ok('The server cannot end a login before it expires.', []));
  try {
    await revoke(token);
    report('logout', title, ok('The login of this check was ended.'));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    report('logout', title, warning(`${error.message}.`, []));
  }
}

type Tokens = Pick<FinishedLogin, 'accessToken' | 'refreshToken'>;

/** Clients that omit `resource` when they renew a login (https://github.com/openai/codex/issues/33403). */
const clientsWithoutResource = ['Codex'];

/** Renews a login as clients do when its token has expired (RFC 6749, 6). Returns the tokens to continue with. */
async function renewLogin({ web, address, report }: Examination, login: FinishedLogin): Promise<Tokens> {
  const title = 'A login is renewed';
  const { refreshToken } = login;
  if (refreshToken === undefined) {
    const detail = 'There is no refresh token, so people must log in again when the access token expires.';
    report('refresh', title, warning(detail, [...loginClients]));
    return login;
  }
  const withoutResource = await requestRefresh(web, login, { refresh_token: refreshToken });
  if (withoutResource.tokens) {
    report('refresh', title, ok('The refresh token returns a new access token, even without the resource parameter.'));
    return withoutResource.tokens;
  }
  const withResource = await requestRefresh(web, login, { refresh_token: refreshToken, resource: address });
  if (withResource.tokens) {
    const detail = `Renewal requires the resource parameter. Without it, the server responds with ${withoutResource.failure}.`;
    report('refresh', title, problem(detail, clientsWithoutResource));
    return withResource.tokens;
  }
  report(
    'refresh',
    title,
    problem(`The server responds to the refresh token with ${withResource.failure}, so people must log in again.`),
  );
  return login;
}

async function requestRefresh(
  web: WebClient,
  { tokenEndpoint, clientId }: FinishedLogin,
  form: { refresh_token: string; resource?: string },
): Promise<{ tokens?: Tokens; failure: string }> {
  const response = await web.request(tokenEndpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams({ grant_type: 'refresh_token', client_id: clientId, ...form }).toString(),
  });
  const { access_token: accessToken, refresh_token: newRefreshToken } = response.json ?? ({} as Fields);
  const failure = `${response.status}${formatLoginError(response.json)}`;
  if (response.status !== 200 || typeof accessToken !== 'string') return { failure };
  return {
    tokens: { accessToken, refreshToken: typeof newRefreshToken === 'string' ? newRefreshToken : form.refresh_token },
    failure,
  };
}

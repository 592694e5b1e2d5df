import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { AppError, getErrorMessage } from '@toolhost/errors/errors';
import { commandLineRedirectUri } from '@toolhost/mcp-clients/clients';
import { checkRegistration, register } from '@toolhost/mcp-doctor/login';
import { initialize, post } from '@toolhost/mcp-doctor/session';
import { Unreachable, type WebClient } from '@toolhost/mcp-doctor/web';
import { addQueryParameters } from '@toolhost/tool-config/http/read-url';
import { openBrowser } from '../open-browser.ts';
import { printMessage } from '../print.ts';
import { discoverLogin, type LoginTarget, type LoginTokens, requestTokens } from './authorization-server.ts';

type LoginRequest = { clientName: string; scopes: readonly string[]; shouldOpenBrowser: boolean };
type LoginResult = { clientId: string; tokens: LoginTokens };

/** Time limit of a login; the service forgets a started login after this time, too. */
const loginTimeoutMs = 20 * 60_000;

/**
 * Registers this client, lets the user log in, and redeems the code (OAuth 2.1 with PKCE, RFC 8252, RFC 8707).
 * @throws AppError
 */
export async function logIn(web: WebClient, target: LoginTarget, request: LoginRequest): Promise<LoginResult> {
  const loopback = await listenForRedirect();
  try {
    const clientId = await registerClient(web, target, request.clientName, loopback.redirectUri);
    const verifier = randomBytes(32).toString('base64url');
    const state = randomBytes(24).toString('base64url');
    const code = await waitForCode(
      loopback,
      { state, issuer: target.issuer, hasIssuerParameter: target.hasIssuerParameter },
      request.shouldOpenBrowser,
      buildAuthorizationUrl(target, { clientId, verifier, state, scopes: request.scopes, loopback }),
    );
    const tokens = await requestTokens(web, target.tokenEndpoint, {
      grant_type: 'authorization_code',
      code,
      redirect_uri: loopback.redirectUri,
      client_id: clientId,
      code_verifier: verifier,
      resource: target.resource,
    });
    return { clientId, tokens };
  } finally {
    loopback.close();
  }
}

/**
 * Logs the user in at any MCP server, as MCP clients do: the server rejects the first message, and its metadata names
 * the authorization server, which may be on another host.
 * @throws AppError if the server requires no login, or its login cannot be used
 */
export async function logInAtServer(
  web: WebClient,
  address: string,
  request: Omit<LoginRequest, 'scopes'> & { scopes?: readonly string[] },
): Promise<LoginResult & { target: LoginTarget }> {
  const unauthorizedResponse = await post({ web, address, token: undefined }, initialize);
  if (unauthorizedResponse.status !== 401)
    throw new AppError(
      'invalid',
      `${address} requires no login: it responded with ${unauthorizedResponse.status}, not 401`,
    );
  const target = await discoverLogin(web, address, unauthorizedResponse);
  return { ...(await logIn(web, target, { ...request, scopes: request.scopes ?? target.scopes })), target };
}

async function registerClient(web: WebClient, target: LoginTarget, name: string, redirectUri: string): Promise<string> {
  try {
    const response = await register(web, target.registrationEndpoint, name, [redirectUri]);
    const { status, detail } = checkRegistration(response, [redirectUri]);
    if (status === 'problem' || typeof response.json?.client_id !== 'string')
      throw new AppError('invalid', `this client cannot register at ${target.issuer}: ${detail}`);
    return response.json.client_id;
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    throw new AppError('unavailable', `${target.issuer} cannot be reached: ${error.message}`);
  }
}

type AuthorizationParameters = {
  clientId: string;
  verifier: string;
  state: string;
  scopes: readonly string[];
  loopback: Loopback;
};

function buildAuthorizationUrl(
  target: LoginTarget,
  { clientId, verifier, state, scopes, loopback }: AuthorizationParameters,
): string {
  const url = new URL(target.authorizationEndpoint);
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: loopback.redirectUri,
    state,
    resource: target.resource,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  };
  url.search = addQueryParameters(url.search.slice(1), Object.entries(parameters));
  return url.href;
}

/** Shows the authorization URL, and waits for the browser or for a pasted URL, whichever comes first. */
async function waitForCode(
  loopback: Loopback,
  expected: ExpectedResponse,
  shouldOpenBrowser: boolean,
  authorizationUrl: string,
): Promise<string> {
  const abortController = new AbortController();
  const timeout = new Promise<never>((_resolve, reject) => {
    const timer = setTimeout(
      () => reject(new AppError('unavailable', 'no login within 20 minutes; start again')),
      loginTimeoutMs,
    );
    abortController.signal.addEventListener('abort', () => clearTimeout(timer));
  });
  const browserCode = loopback.receiveCode(expected);
  const canPaste = !shouldOpenBrowser || process.stdin.isTTY;
  const parseLine = (line: string) => loopback.parseRedirect(line, expected);
  const pastedCodes = canPaste ? [readPastedCode(parseLine, abortController)] : [];
  const isOpened = shouldOpenBrowser && openBrowser(authorizationUrl);
  printMessage(
    `${isOpened ? 'Log in in the browser that opens, or open' : 'To log in, open'} this URL:\n\n  ${authorizationUrl}\n`,
  );
  if (canPaste) printMessage('If the browser is on another machine, paste the URL that it ends at here.');
  try {
    return await Promise.race([browserCode, timeout, ...pastedCodes]);
  } finally {
    abortController.abort();
  }
}

/** Returns the code of the first pasted line that has a code. Never resolves if the input ends without one. */
function readPastedCode(parseRedirect: (line: string) => string, abortController: AbortController): Promise<string> {
  const input = process.stdin;
  return new Promise((resolve) => {
    const reader = createInterface({ input, terminal: false });
    reader.on('line', (line) => {
      if (line.trim() === '') return;
      try {
        resolve(parseRedirect(line));
      } catch (error) {
        printMessage(getErrorMessage(error));
      }
    });
    abortController.signal.addEventListener('abort', () => {
      reader.close();
      // An open terminal would keep the process alive.
      input.destroy();
    });
  });
}

/** Expected values of the authorization response (RFC 6749, 4.1.2; RFC 9207). */
type ExpectedResponse = { state: string; issuer: string; hasIssuerParameter: boolean };

/** Listener for the response to one authorization request (RFC 8252, 7.3). */
type Loopback = {
  redirectUri: string;
  /** Resolves with the code of the first response that belongs to this login. */
  receiveCode: (expected: ExpectedResponse) => Promise<string>;
  /** Reads the code from a redirect URL that the user pasted. @throws AppError */
  parseRedirect: (pasted: string, expected: ExpectedResponse) => string;
  close: () => void;
};

const callbackPath = new URL(commandLineRedirectUri).pathname;

/** Listens on a free port of 127.0.0.1. */
async function listenForRedirect(): Promise<Loopback> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const redirectUri = `http://${host}${callbackPath}`;

  const parseRedirect = (pasted: string, expected: ExpectedResponse): string => {
    const url = URL.parse(pasted.trim());
    if (!url || url.origin + url.pathname !== redirectUri)
      throw new AppError('invalid', `that is not the URL that the login redirected to. It starts with ${redirectUri}?`);
    return readCode(url.searchParams, expected);
  };

  return {
    redirectUri,
    parseRedirect,
    receiveCode: (expected) =>
      new Promise((resolve, reject) => {
        server.on('request', (request, response) => {
          const isExpectedRequest = request.method === 'GET' && request.headers.host === host;
          const url = URL.parse(request.url ?? '', redirectUri);
          if (!isExpectedRequest || url?.pathname !== callbackPath) return sendPage(response, 404, 'Not found.');
          // Any web page can send a browser here, so only a request with the right state ends the wait.
          if (!isEqual(url.searchParams.get('state') ?? '', expected.state))
            return sendPage(
              response,
              400,
              'This response does not belong to the login that the terminal is waiting for.',
            );
          try {
            const code = parseRedirect(url.href, expected);
            sendPage(response, 200, 'You are logged in. Return to the terminal; you can close this page.');
            resolve(code);
          } catch (error) {
            sendPage(response, 400, 'The login failed. The terminal shows the reason; you can close this page.');
            reject(error);
          }
        });
      }),
    close() {
      server.close();
      server.closeIdleConnections();
    },
  };
}

/**
 * Reads the code of an authorization response.
 * @throws AppError if it belongs to another login or issuer, or is an error
 */
function readCode(parameters: URLSearchParams, { state, issuer, hasIssuerParameter }: ExpectedResponse): string {
  if (!isEqual(parameters.get('state') ?? '', state))
    throw new AppError('invalid', 'the response belongs to another login; start again');
  const responseIssuer = parameters.get('iss');
  if (responseIssuer === null ? hasIssuerParameter : responseIssuer !== issuer)
    throw new AppError('invalid', `the response does not come from ${issuer}; the code was not used`);
  const error = parameters.get('error');
  if (error === 'access_denied')
    throw new AppError('forbidden', 'the login was canceled or refused; the browser shows which');
  const code = parameters.get('code');
  if (error !== null || !code) {
    const errorSuffix = /^[\w.-]{1,50}$/.test(error ?? '') ? `: ${error}` : '';
    throw new AppError('unauthenticated', `the login failed${errorSuffix}`);
  }
  return code;
}

function isEqual(first: string, second: string): boolean {
  const [a, b] = [Buffer.from(first), Buffer.from(second)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function sendPage(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': "default-src 'none'",
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-store',
    Connection: 'close',
  });
  response.end(`<!doctype html><html lang="en"><title>Toolhost</title><p>${message}</p></html>\n`);
}

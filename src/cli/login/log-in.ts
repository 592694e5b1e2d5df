import { spawn } from 'node:child_process';
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { checkRegistration, register } from '../../doctor/login.ts';
import { initialize, post } from '../../doctor/session.ts';
import { Unreachable, type WebClient } from '../../doctor/web.ts';
import { addedQuery } from '../../domain/http/read-url.ts';
import { AppError, messageOf } from '../../errors.ts';
import { note } from '../print.ts';
import { askTokens, discoverLogin, type LoginTarget, type LoginTokens } from './authorization-server.ts';

type LoginRequest = { clientName: string; scopes: readonly string[]; opensBrowser: boolean };
type LoggedIn = { clientId: string; tokens: LoginTokens };

/** Time limit of a login: the lifetime of a started login, and of its consent page, at the service. */
const patienceMs = 20 * 60_000;

/**
 * Registers this client, lets the user log in, and redeems the code (OAuth 2.1 with PKCE, RFC 8252, RFC 8707).
 * @throws AppError
 */
export async function logIn(web: WebClient, target: LoginTarget, request: LoginRequest): Promise<LoggedIn> {
  const loopback = await listenForAnswer();
  try {
    const clientId = await registered(web, target, request.clientName, loopback.redirectUri);
    const verifier = randomBytes(32).toString('base64url');
    const state = randomBytes(24).toString('base64url');
    const code = await codeFrom(
      loopback,
      { state, issuer: target.issuer, namesIssuer: target.namesIssuer },
      request.opensBrowser,
      () => authorizationUrl(target, { clientId, verifier, state, scopes: request.scopes, loopback }),
    );
    const tokens = await askTokens(web, target.tokenEndpoint, {
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
): Promise<LoggedIn & { target: LoginTarget }> {
  const refusal = await post({ web, address, token: undefined }, initialize);
  if (refusal.status !== 401)
    throw new AppError('invalid', `${address} requires no login: it responded with ${refusal.status}, not 401`);
  const target = await discoverLogin(web, address, refusal);
  return { ...(await logIn(web, target, { ...request, scopes: request.scopes ?? target.scopes })), target };
}

async function registered(web: WebClient, target: LoginTarget, name: string, redirectUri: string): Promise<string> {
  try {
    const page = await register(web, target.registrationEndpoint, name, [redirectUri]);
    const { status, detail } = checkRegistration(page, [redirectUri]);
    if (status === 'problem' || typeof page.json?.client_id !== 'string')
      throw new AppError('invalid', `this client cannot register at ${target.issuer}: ${detail}`);
    return page.json.client_id;
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    throw new AppError('unavailable', `${target.issuer} cannot be reached: ${error.message}`);
  }
}

type Authorization = {
  clientId: string;
  verifier: string;
  state: string;
  scopes: readonly string[];
  loopback: Loopback;
};

function authorizationUrl(target: LoginTarget, { clientId, verifier, state, scopes, loopback }: Authorization): string {
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
  url.search = addedQuery(url.search.slice(1), Object.entries(parameters));
  return url.href;
}

/** Waits for the browser or for a pasted URL, whichever comes first. */
async function codeFrom(
  loopback: Loopback,
  expected: Expected,
  opensBrowser: boolean,
  url: () => string,
): Promise<string> {
  const ending = new AbortController();
  const late = new Promise<never>((_resolve, reject) => {
    const timer = setTimeout(
      () => reject(new AppError('unavailable', 'no login within 20 minutes; start again')),
      patienceMs,
    );
    ending.signal.addEventListener('abort', () => clearTimeout(timer));
  });
  const answered = loopback.code(expected);
  const canPaste = !opensBrowser || process.stdin.isTTY;
  const pasted = canPaste && pastedCode((line) => loopback.codeIn(line, expected), ending);
  const address = url();
  const opened = opensBrowser && openBrowser(address);
  note(`${opened ? 'Log in in the browser that opens, or open' : 'To log in, open'} this URL:\n\n  ${address}\n`);
  if (canPaste) note('If the browser is on another machine, paste the URL that it ends at here.');
  try {
    return await Promise.race([answered, late, ...(pasted ? [pasted] : [])]);
  } finally {
    ending.abort();
  }
}

/** Returns the code of the first pasted line that has one. Never resolves if the input ends without a code. */
function pastedCode(codeIn: (line: string) => string, ending: AbortController): Promise<string> {
  const input = process.stdin;
  return new Promise((resolve) => {
    const reader = createInterface({ input, terminal: false });
    reader.on('line', (line) => {
      if (line.trim() === '') return;
      try {
        resolve(codeIn(line));
      } catch (error) {
        note(messageOf(error));
      }
    });
    ending.signal.addEventListener('abort', () => {
      reader.close();
      // An open terminal would keep the process alive.
      input.destroy();
    });
  });
}

/** Expected values of the authorization response (RFC 6749, 4.1.2; RFC 9207). */
type Expected = { state: string; issuer: string; namesIssuer: boolean };

/** Listener for the response to one authorization request (RFC 8252, 7.3). */
type Loopback = {
  redirectUri: string;
  /** Resolves with the code of the first response that belongs to this login. */
  code: (expected: Expected) => Promise<string>;
  /** Reads the code from a redirect URL that the user pasted. @throws AppError */
  codeIn: (text: string, expected: Expected) => string;
  close: () => void;
};

const path = '/callback';

/** Listens on a free port of 127.0.0.1. */
async function listenForAnswer(): Promise<Loopback> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const redirectUri = `http://${host}${path}`;

  const codeIn = (text: string, expected: Expected): string => {
    const url = URL.parse(text.trim());
    if (!url || url.origin + url.pathname !== redirectUri)
      throw new AppError('invalid', `that is not the URL that the login redirected to. It starts with ${redirectUri}?`);
    return codeOf(url.searchParams, expected);
  };

  return {
    redirectUri,
    codeIn,
    code: (expected) =>
      new Promise((resolve, reject) => {
        server.on('request', (request, response) => {
          const isOurs = request.method === 'GET' && request.headers.host === host;
          const url = URL.parse(request.url ?? '', redirectUri);
          if (!isOurs || url?.pathname !== path) return answer(response, 404, 'Not found.');
          // Any page can send a browser here, so only a request with the right state ends the wait.
          if (!isSame(url.searchParams.get('state') ?? '', expected.state))
            return answer(
              response,
              400,
              'This response does not belong to the login that the terminal is waiting for.',
            );
          try {
            const code = codeIn(url.href, expected);
            answer(response, 200, 'You are logged in. Return to the terminal; you can close this page.');
            resolve(code);
          } catch (error) {
            answer(response, 400, 'The login failed. The terminal shows the reason; you can close this page.');
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
function codeOf(answered: URLSearchParams, { state, issuer, namesIssuer }: Expected): string {
  if (!isSame(answered.get('state') ?? '', state))
    throw new AppError('invalid', 'the response belongs to another login; start again');
  const named = answered.get('iss');
  if (named === null ? namesIssuer : named !== issuer)
    throw new AppError('invalid', `the response does not come from ${issuer}; the code was not used`);
  const error = answered.get('error');
  if (error === 'access_denied') throw new AppError('forbidden', 'the login was canceled');
  const code = answered.get('code');
  if (error !== null || !code) {
    const shown = /^[\w.-]{1,50}$/.test(error ?? '') ? `: ${error}` : '';
    throw new AppError('unauthenticated', `the login failed${shown}`);
  }
  return code;
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function answer(response: ServerResponse, status: number, sentence: string): void {
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': "default-src 'none'",
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-store',
    Connection: 'close',
  });
  response.end(`<!doctype html><html lang="en"><title>Toolhost</title><p>${sentence}</p></html>\n`);
}

/** Programs that open a URL, by platform. URLs are never passed to a shell. */
const openers: { [platform: string]: readonly [string, ...string[]] } = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** Returns the command that opens a URL in a browser, or undefined if there is no display. */
function openerOf({ env, platform }: NodeJS.Process): readonly string[] | undefined {
  if (env.BROWSER) return [env.BROWSER];
  if (openers[platform]) return openers[platform];
  return env.DISPLAY || env.WAYLAND_DISPLAY ? ['xdg-open'] : undefined;
}

/** Tries to open an http or https URL in the browser. Returns false if there is no browser. */
function openBrowser(url: string): boolean {
  const [program, ...args] = openerOf(process) ?? [];
  if (program === undefined || !/^https?:\/\//.test(url)) return false;
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  // The URL was printed, so the user can continue without this browser.
  child.on('error', () => undefined);
  child.unref();
  return true;
}

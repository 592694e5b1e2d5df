import { createHash, randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { checkRegistration, register } from '../../doctor/registration.ts';
import { Unreachable, type WebClient } from '../../doctor/web.ts';
import { addedQuery } from '../../domain/added-query.ts';
import { AppError, messageOf } from '../../errors.ts';
import type { LoginTarget } from './discover-login.ts';
import { type Expected, type Loopback, listenForAnswer } from './loopback.ts';
import { askTokens, type LoginTokens } from './token-endpoint.ts';

/** How a person takes part in a login. */
export type LoginPerson = {
  /** Shows the address, and opens it where that is possible. */
  show: (url: string) => void;
  /** Where the person may paste the address that the login led to, for a browser on another machine. */
  input: Readable | undefined;
  /** Says why a pasted line is of no use. */
  note: (text: string) => void;
};

export type LoginRequest = { clientName: string; scopes: readonly string[]; person: LoginPerson };
export type LoggedIn = { clientId: string; tokens: LoginTokens };

/** As long as the service keeps a login that was begun, and as long as its consent page is valid. */
const patienceMs = 20 * 60_000;

/**
 * Registers this program, lets a person log in, and redeems the code (OAuth 2.1 with PKCE, RFC 8252, RFC 8707).
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
      request.person,
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

async function registered(web: WebClient, target: LoginTarget, name: string, redirectUri: string): Promise<string> {
  try {
    const page = await register(web, target.registrationEndpoint, name, [redirectUri]);
    const { status, detail } = checkRegistration(page, [redirectUri]);
    if (status === 'problem' || typeof page.json?.client_id !== 'string')
      throw new AppError('invalid', `this program cannot register at ${target.issuer}: ${detail}`);
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

/** Waits for the browser or for a pasted address, whichever comes first. */
async function codeFrom(
  loopback: Loopback,
  expected: Expected,
  { show, input, note }: LoginPerson,
  url: () => string,
): Promise<string> {
  const ending = new AbortController();
  const late = new Promise<never>((_resolve, reject) => {
    const timer = setTimeout(
      () => reject(new AppError('unavailable', 'nobody has logged in for 20 minutes; start again')),
      patienceMs,
    );
    ending.signal.addEventListener('abort', () => clearTimeout(timer));
  });
  const answered = loopback.code(expected);
  const pasted = input && pastedCode(input, (line) => loopback.codeIn(line, expected), { note, ending });
  show(url());
  try {
    return await Promise.race([answered, late, ...(pasted ? [pasted] : [])]);
  } finally {
    ending.abort();
  }
}

/** The code in the first pasted line that has one. Never resolves when the input ends without it. */
function pastedCode(
  input: Readable,
  codeIn: (line: string) => string,
  { note, ending }: { note: (text: string) => void; ending: AbortController },
): Promise<string> {
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

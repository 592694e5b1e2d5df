import { timingSafeEqual } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AppError } from '../../errors.ts';

/** What the answer to an authorization request must have (RFC 6749, 4.1.2; RFC 9207). */
export type Expected = { state: string; issuer: string; namesIssuer: boolean };

/** A listener for the answer to one authorization request (RFC 8252, 7.3). */
export type Loopback = {
  redirectUri: string;
  /** Resolves with the code of the first answer that belongs to this login. */
  code: (expected: Expected) => Promise<string>;
  /** Reads the code from a redirected address that a person pasted. @throws AppError */
  codeIn: (text: string, expected: Expected) => string;
  close: () => void;
};

const path = '/callback';

/** Listens on a free port of 127.0.0.1. */
export async function listenForAnswer(): Promise<Loopback> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const redirectUri = `http://${host}${path}`;

  const codeIn = (text: string, expected: Expected): string => {
    const url = URL.parse(text.trim());
    if (!url || url.origin + url.pathname !== redirectUri)
      throw new AppError('invalid', `that is not the address that the login led to; it begins with ${redirectUri}?`);
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
          if (!isOurs || url?.pathname !== path) return answer(response, 404, 'There is nothing here.');
          // Any page can send a browser here; only the right state ends the waiting.
          if (!isSame(url.searchParams.get('state') ?? '', expected.state))
            return answer(response, 400, 'This does not belong to the login that the terminal is waiting for.');
          try {
            const code = codeIn(url.href, expected);
            answer(response, 200, 'You are logged in. Go back to the terminal; this page can be closed.');
            resolve(code);
          } catch (error) {
            answer(response, 400, 'The login did not succeed. The terminal says why; this page can be closed.');
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

/** @throws AppError when the answer is of another login or issuer, or a refusal */
function codeOf(answered: URLSearchParams, { state, issuer, namesIssuer }: Expected): string {
  if (!isSame(answered.get('state') ?? '', state))
    throw new AppError('invalid', 'the answer belongs to another login; start again');
  const named = answered.get('iss');
  if (named === null ? namesIssuer : named !== issuer)
    throw new AppError('invalid', `the answer does not come from ${issuer}; nothing was sent there`);
  const error = answered.get('error');
  if (error === 'access_denied') throw new AppError('forbidden', 'the login was cancelled');
  const code = answered.get('code');
  if (error !== null || !code) {
    const shown = /^[\w.-]{1,50}$/.test(error ?? '') ? `: ${error}` : '';
    throw new AppError('unauthenticated', `the login did not succeed${shown}`);
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

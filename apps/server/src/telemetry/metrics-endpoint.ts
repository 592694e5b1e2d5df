import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { getBearerToken } from '@toolhost/credentials/credential';
import { AppError, Unauthenticated } from '@toolhost/errors/errors';

export type MetricsEndpointOptions = {
  /** True if programs on this machine need no token. */
  isOpenOnLoopback: boolean;
  /** If undefined, other clients are rejected. */
  token: string | undefined;
  getText: () => Promise<string>;
};

/** Creates the handler of `GET /metrics`. @throws AppError, Unauthenticated */
export function createMetricsEndpoint(
  options: MetricsEndpointOptions,
): (request: IncomingMessage) => Promise<Response> {
  const { isOpenOnLoopback, token, getText } = options;
  return async (request) => {
    if (!(isOpenOnLoopback && isFromLoopback(request))) checkToken(request, token);
    rejectPages(request);
    return new Response(await getText(), { headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' } });
  };
}

function isFromLoopback(request: IncomingMessage): boolean {
  return /^(::ffff:)?127\.|^::1$/.test(request.socket.remoteAddress ?? '');
}

function checkToken(request: IncomingMessage, token: string | undefined): void {
  if (token === undefined) throw new AppError('notFound', 'there is nothing at this URL');
  const requestToken = getBearerToken(request.headers);
  if (requestToken === undefined) throw new Unauthenticated('missing', 'metrics require "Authorization: Bearer …"');
  if (!timingSafeEqual(digest(requestToken), digest(token)))
    throw new Unauthenticated('invalid', 'the token is not valid');
}

/** Returns a hash for the constant-time comparison, which needs inputs of equal length. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Rejects requests of web pages. A person who opens the URL in a browser is allowed. @throws AppError forbidden */
function rejectPages({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site'];
  if (headers.origin !== undefined || (site !== undefined && site !== 'none')) {
    throw new AppError('forbidden', 'metrics are not available to web pages; scrape them with Prometheus');
  }
}

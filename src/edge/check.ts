import type { IncomingMessage } from 'node:http';
import { hopHeader } from '../domain/http/headers.ts';
import { AppError } from '../errors.ts';
import type { Incoming } from '../http/incoming.ts';
import { isPublicToPages } from '../routes.ts';

/** Conditions that every request must meet before any other part of the product handles it. */
export type EdgeRules = {
  /** `host[:port]` values of this service. */
  hosts: ReadonlySet<string>;
  /** Paths answered under any host name, because probes use the address. */
  anyHost: ReadonlySet<string>;
  /** Origins of web pages that may call this service. */
  origins: ReadonlySet<string>;
  /** Headers of every answer, names and values in turn. */
  headers: readonly string[];
};

/** Headers of every answer of a service at this base URL, names and values in turn. */
export function fixedHeaders(baseUrl: string): string[] {
  const usual = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];
  return baseUrl.startsWith('https:')
    ? [...usual, 'Strict-Transport-Security', 'max-age=31536000; includeSubDomains']
    : usual;
}

/** Headers that may occur once. */
const onlyOnce = ['host', 'authorization', 'origin', 'content-type', 'content-length'];
/** Each has a length of its own, by which it is found. */
const onlyOnceOfLength: (string | undefined)[] = [];
for (const name of onlyOnce) {
  if (onlyOnceOfLength[name.length] !== undefined) throw new Error(`two headers of ${name.length} letters: ${name}`);
  onlyOnceOfLength[name.length] = name;
}
/** The bit that makes a letter of ASCII a small one. */
const lowerCase = 0x20;

/** `isOwnHost` is whether the request came to the host of a server. @throws AppError misdirected, invalid, forbidden, loop */
export function checkEdge(request: IncomingMessage, path: string, rules: EdgeRules, isOwnHost = false): void {
  checkHeadersOnce(request.rawHeaders);
  checkTransferCoding(request);
  const host = request.headers.host?.toLowerCase();
  if (!isOwnHost && !rules.anyHost.has(path) && (host === undefined || !rules.hosts.has(host))) {
    throw new AppError(
      'misdirected',
      'this service does not answer for that host name; its operator sets the address with BASE_URL',
    );
  }
  if (!path.startsWith('/')) {
    throw new AppError('invalid', 'the request target must be a path, or an address of this service without a user');
  }
  if (!usualPath.test(path) && !isPlain(path)) {
    throw new AppError('invalid', 'the path is not in its plain form');
  }
  const { origin } = request.headers;
  if (origin !== undefined && !rules.origins.has(origin) && !isPublicToPages(path)) {
    throw new AppError(
      'forbidden',
      'pages of this origin may not call this service; the operator can allow them with ALLOWED_ORIGINS',
    );
  }
  if (request.headers[hopHeader] !== undefined) {
    throw new AppError(
      'loop',
      'this request comes from a tool of this service; a hosted server cannot call another one',
    );
  }
}

/** Matches nearly every path, as a quick test. */
const usualPath = /^(?:\/[\w-]+)+$/;

/** Whether a path has only one interpretation. */
function isPlain(path: string): boolean {
  return !/\/\.{0,2}\/|\/\.{1,2}$|%2e|%2f|%5c|\\/i.test(path);
}

/** Compares names only where two of them have the length and the first letter of such a header: few requests do. */
function checkHeadersOnce(rawHeaders: readonly string[]): void {
  let seen = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const once = onlyOnceOfLength[name.length];
    if (once === undefined || (name.charCodeAt(0) | lowerCase) !== once.charCodeAt(0)) continue;
    const bit = 1 << name.length;
    if ((seen & bit) !== 0) {
      refuseRepeated(rawHeaders);
      return;
    }
    seen |= bit;
  }
}

/** @throws AppError invalid */
function refuseRepeated(rawHeaders: readonly string[]): void {
  const seen = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    if (seen.has(name) && onlyOnce.includes(name)) throw new AppError('invalid', `the header ${name} is sent twice`);
    seen.add(name);
  }
}

/**
 * Node gives out a body with any list of codings that ends in `chunked` as if that were the only one. Proxies that know
 * only HTTP/1.0 know none at all (RFC 9112, 6.1).
 */
function checkTransferCoding({ headers, httpVersion }: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked'))
    throw new AppError(
      'invalid',
      'the only Transfer-Encoding is "chunked", in HTTP/1.1; send the body without another one',
    );
}

const exposed = 'WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version, X-Request-Id, Retry-After, ETag';

/** Headers of the answer to a request; with CORS for pages that `checkEdge` admitted. */
export function edgeHeaders(
  { headers: { origin } }: IncomingMessage,
  requestId: string,
  fixed: readonly string[],
): string[] {
  const headers = ['X-Request-Id', requestId, ...fixed];
  if (origin !== undefined) {
    headers.push('Access-Control-Allow-Origin', origin, 'Vary', 'Origin', 'Access-Control-Expose-Headers', exposed);
  }
  return headers;
}

/** Whether a request is a CORS preflight (Fetch standard). */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

export function answerPreflight({ request, response, headers }: Incoming): void {
  // The origin is allowed, so it may send any header: the credential header of a server can have any name.
  const wanted = String(request.headers['access-control-request-headers'] ?? '');
  const allowed = ['Access-Control-Allow-Methods', 'GET, POST, PUT, PATCH, DELETE, OPTIONS'];
  response
    .writeHead(204, [...headers, ...allowed, 'Access-Control-Allow-Headers', wanted, 'Access-Control-Max-Age', '600'])
    .end();
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../config.ts';
import { hopHeader } from '../domain/http/headers.ts';
import { basePathOf, createOwnHosts, createServerHosts, type ServerHosts } from '../domain/http/own-hosts.ts';
import { base62, type Random } from '../domain/ids.ts';
import type { Strangers } from '../domain/visit.ts';
import { AppError } from '../errors.ts';
import type { Incoming, UnreadAnswers } from '../http/incoming.ts';
import { wantsPage } from '../http/page.ts';
import { problemAnswer } from '../http/problem.ts';
import { discardBody, drainOfCaller, drainOfRefused, hasBody } from '../http/read-body.ts';
import {
  fileIdIn,
  isPublicToPages,
  mcpAddress,
  pathOnOwnHost,
  pathReader,
  routes,
  withoutEndSlash,
} from '../routes.ts';
import { createWaitingRequests } from './client-connections.ts';

export type FrontParts = {
  config: Config & { baseUrl: string };
  random: Random;
  /** `address` is a slug, or `slug/view`. */
  serveMcp: (incoming: Incoming, address: string) => Promise<void>;
  serveFile: (incoming: Incoming, id: string) => Promise<void>;
  probes: ProbeParts;
  serveWeb: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  strangers: Strangers;
  unread: UnreadAnswers;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/**
 * Creates the entry point of all requests: first the edge checks, then MCP endpoints and files by path, then everything
 * else.
 */
export function createFront(parts: FrontParts): (request: IncomingMessage, response: ServerResponse) => void {
  const rules = edgeRules(parts.config);
  const { baseUrl, serverHosts: suffix } = parts.config;
  const serverHosts = suffix === undefined ? undefined : createServerHosts(suffix, baseUrl);
  const isSecure = baseUrl.startsWith('https:');
  const { host: baseHost } = new URL(baseUrl);
  const usualPort = new URL(baseUrl).port !== '' ? undefined : isSecure ? ':443' : ':80';
  const readPath = basePathOf(baseUrl) === '' ? undefined : pathReader(baseUrl);
  const [ownHome, homeUrl] = [basePathOf(baseUrl) + routes.home, baseUrl + routes.home];
  // Request IDs are short and unique: a random prefix per process, followed by a counter.
  const prefix = base62(parts.random(8), 10);
  let count = 0;
  const waitForTurn = createWaitingRequests(handle);
  function handle(request: IncomingMessage, response: ServerResponse): void {
    if (response.socket === null) {
      waitForTurn(request, response);
      return;
    }
    const requestId = prefix + (++count).toString(36);
    const { method, headers } = request;
    if (request.url?.[0] !== '/') takeAddress(request, isSecure);
    // Some clients send the default port (RFC 9110, 4.2.3). All later code compares the host without it.
    if (usualPort !== undefined && headers.host?.endsWith(usualPort))
      setHost(request, headers.host.slice(0, -usualPort.length));
    const url = request.url ?? '/';
    const query = url.indexOf('?');
    const asked = query < 0 ? url : url.slice(0, query);
    const own = serverHosts && ownHostOf(request, withoutEndSlash(asked), serverHosts, rules);
    const read = own ? (own.path ?? asked) : readPath ? readPath(asked) : asked;
    const path = !own && read.endsWith('/') ? withoutEndSlash(read) : read;
    const home = own ? homeUrl : ownHome;
    request.url = query < 0 ? path : path + url.slice(query);
    const address = mcpAddress(path);
    // The MCP endpoints handle the bodies of their POST requests themselves.
    if ((address === undefined || method !== 'POST') && hasBody(request)) boundUnread(request, response);
    try {
      checkEdge(request, path, rules, own !== undefined);
      if (own && own.path === undefined)
        throw new AppError('notFound', 'this host serves only its MCP server, at /mcp');
    } catch (error) {
      parts.unread.watch(response);
      const status = error instanceof AppError ? error.status : 0;
      const shown = parts.strangers.onRefused(request, status) ?? error;
      setHeaders(response, rules.headers);
      refuse(request, response, { error: shown, path, requestId, home }, parts.onUnexpected);
      return;
    }
    // The MCP endpoints count their responses themselves.
    if (address === undefined) parts.unread.watch(response);
    const incoming: Incoming = {
      request,
      response,
      path,
      requestId,
      ownOrigin: own?.origin,
      otherBaseUrl: own || headers.host === baseHost ? undefined : rules.otherBaseUrl(headers.host),
      home,
      headers: edgeHeaders(request, requestId, rules.headers),
    };
    if (method === 'OPTIONS' && isPreflight(request)) answerPreflight(incoming);
    else if (address !== undefined) serve(incoming, parts.serveMcp(incoming, address), parts);
    else if (!answerProbe(incoming, parts.probes)) serve(incoming, serveOther(incoming, parts), parts);
  }
  return handle;
}

function serve({ response, requestId }: Incoming, served: Promise<void>, { onUnexpected }: FrontParts): void {
  served.catch((error: unknown) => {
    onUnexpected(error, requestId);
    response.destroy();
  });
}

/** Serves a stored file of a response, or anything else of the web application. */
function serveOther(incoming: Incoming, { serveFile, serveWeb }: FrontParts): Promise<void> {
  const file = fileIdIn(incoming.path);
  if (file !== undefined) return serveFile(incoming, file);
  setHeaders(incoming.response, incoming.headers);
  return serveWeb(incoming.request, incoming.response);
}

/** Sets headers from alternating names and values. */
function setHeaders(response: ServerResponse, headers: readonly string[]): void {
  for (let i = 0; i < headers.length; i += 2) response.setHeader(headers[i] as string, headers[i + 1] as string);
}

/** Server whose own host a request was sent to. `path` is undefined if that host has nothing at the path. */
type OwnHost = { origin: string; path: string | undefined };

function ownHostOf(
  { headers }: IncomingMessage,
  path: string,
  hosts: ServerHosts,
  { anyHost }: EdgeRules,
): OwnHost | undefined {
  const slug = anyHost.has(path) ? undefined : hosts.slugOf(headers.host);
  return slug === undefined ? undefined : { origin: hosts.originOf(slug), path: pathOnOwnHost(path, slug) };
}

/** Limits how much is read of a body that is still unread when its response is written. */
function boundUnread(request: IncomingMessage, response: ServerResponse): void {
  // At `finish`, Node would begin to read all of it.
  response.once('prefinish', () => {
    if (!request.readableEnded) discardBody(request, response.statusCode < 405 ? drainOfRefused : drainOfCaller);
  });
}

function edgeRules(config: Config & { baseUrl: string }): EdgeRules {
  const { protocol } = new URL(config.baseUrl);
  const { names: hosts, baseUrlAt } = createOwnHosts(config);
  // In local mode metrics need no token, so they require a host name of this service. Otherwise a web page could
  // resolve its own name to this machine.
  const anyHost = new Set<string>([routes.livez, routes.readyz, ...(config.mode === 'local' ? [] : [routes.metrics])]);
  return {
    hosts,
    otherBaseUrl(host) {
      const asked = baseUrlAt(host);
      return asked === config.baseUrl ? undefined : asked;
    },
    anyHost,
    origins: new Set([...[...hosts].map((name) => `${protocol}//${name}`), ...config.allowedOrigins]),
    headers: fixedHeaders(config.baseUrl),
  };
}

/** Responds to a request that the edge checks rejected, and closes its connection, which is no longer trusted. */
function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  { error, path, requestId, home }: { error: unknown; path: string; requestId: string; home: string },
  onUnexpected: (error: unknown, requestId: string) => void,
): void {
  response.setHeader('X-Request-Id', requestId);
  response.setHeader('Connection', 'close');
  // A client that writes before it reads would otherwise get a broken pipe instead of the response.
  discardBody(request, drainOfRefused);
  const isForPerson = wantsPage(request.method, request.headers.accept);
  if (mcpAddress(path) !== undefined && error instanceof AppError && !isForPerson) {
    response.writeHead(error.status, { 'Content-Type': 'application/json', ...error.headers });
    const code = error.status === 429 ? 429 : -32600;
    response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message: error.message } }));
    return;
  }
  const answer = problemAnswer(error, requestId, onUnexpected, isForPerson ? home : undefined);
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  void answer.text().then((text) => response.end(text));
}

type ProbeParts = {
  /** Resolves with undefined if the process is ready to serve. */
  whyNotReady: () => Promise<string | undefined>;
  /** Called after every response. */
  onAnswered: (status: number) => void;
};

/**
 * Responds to liveness and readiness probes of supervisors and load balancers. Returns true if the request was a probe.
 */
function answerProbe(
  { request: { method }, response, path, headers }: Incoming,
  { whyNotReady, onAnswered }: ProbeParts,
): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const send = (code: number, status: string, reason?: string) => {
    response.writeHead(code, [...headers, 'Content-Type', 'application/json']).end(JSON.stringify({ status, reason }));
    onAnswered(code);
  };
  if (path === routes.livez) send(200, 'ok');
  else if (path === routes.readyz) {
    whyNotReady().then(
      (reason) => (reason === undefined ? send(200, 'ready') : send(503, 'not ready', reason)),
      () => send(503, 'not ready'),
    );
  } else return false;
  return true;
}

/** An http or https URL without user information, with the path if it has one (RFC 9110, 4.2.4). */
const webAddress = /^(https?):\/\/((?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?)(?=[/?]|$)/i;

/**
 * Normalizes a request whose target is an absolute URL: the target becomes a path, and its host replaces the Host
 * header (RFC 9112, 3.2.2). Any other target is unchanged, and is rejected as a path. Without TLS in front, no request
 * is for an https URL (RFC 9110, 7.4).
 */
function takeAddress(request: IncomingMessage, isSecure: boolean): void {
  const [start = '', scheme = '', host = ''] = webAddress.exec(request.url ?? '') ?? [];
  if (start === '' || (scheme.length > 'http'.length && !isSecure)) return;
  const rest = (request.url ?? '').slice(start.length);
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  setHost(request, host);
}

function setHost({ headers, rawHeaders }: IncomingMessage, host: string): void {
  headers.host = host;
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (at < 0) rawHeaders.push('Host', host);
  else rawHeaders[at + 1] = host;
}

/** Conditions that every request must meet before any other code handles it. */
type EdgeRules = {
  /** `host[:port]` values of this service. */
  hosts: ReadonlySet<string>;
  /** Returns the base URL for a host, if it is another name of this machine. */
  otherBaseUrl: (host: string | undefined) => string | undefined;
  /** Paths served under any host name, because probes use the IP address. */
  anyHost: ReadonlySet<string>;
  /** Origins of web pages that may call this service. */
  origins: ReadonlySet<string>;
  /** Headers of every response, with names and values alternating. */
  headers: readonly string[];
};

/** Returns the headers of every response of a service at this base URL, with names and values alternating. */
function fixedHeaders(baseUrl: string): string[] {
  const usual = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];
  return baseUrl.startsWith('https:')
    ? [...usual, 'Strict-Transport-Security', 'max-age=31536000; includeSubDomains']
    : usual;
}

/** Headers that may occur only once. */
const onlyOnce = ['host', 'authorization', 'origin', 'content-type', 'content-length'];
/** Headers by length. Each has a different length. */
const onlyOnceOfLength: (string | undefined)[] = [];
for (const name of onlyOnce) {
  if (onlyOnceOfLength[name.length] !== undefined) throw new Error(`two headers of ${name.length} letters: ${name}`);
  onlyOnceOfLength[name.length] = name;
}
/** Bit that converts an ASCII letter to lowercase. */
const lowerCase = 0x20;

/**
 * Checks a request. `isOwnHost` is true if it was sent to a server's own host. @throws AppError misdirected, invalid,
 * forbidden, loop
 */
function checkEdge(request: IncomingMessage, path: string, rules: EdgeRules, isOwnHost = false): void {
  checkHeadersOnce(request.rawHeaders);
  if (request.headers['transfer-encoding'] !== undefined) checkTransferCoding(request);
  const host = request.headers.host?.toLowerCase();
  if (!isOwnHost && !rules.anyHost.has(path) && (host === undefined || !rules.hosts.has(host))) {
    throw new AppError(
      'misdirected',
      'this service does not serve that host name; the operator sets its URL with BASE_URL, or in local mode adds host names with ALLOWED_HOSTS',
    );
  }
  if (!path.startsWith('/')) {
    throw new AppError(
      'invalid',
      'the request target must be a path, or a URL of this service without user information',
    );
  }
  if (!usualPath.test(path) && !isPlain(path)) {
    throw new AppError(
      'invalid',
      'the path is not normalized; send it without //, dot segments, backslashes, and encoded slashes or dots',
    );
  }
  const { origin } = request.headers;
  if (origin !== undefined && !rules.origins.has(origin) && !isPublicToPages(path)) {
    throw new AppError(
      'forbidden',
      'web pages of this origin may not call this service; the operator can allow them with ALLOWED_ORIGINS',
    );
  }
  if (request.headers[hopHeader] !== undefined) {
    throw new AppError(
      'loop',
      'this request was sent by a tool of this service; a hosted server cannot call another one',
    );
  }
}

/** Matches nearly every path, as a fast check. */
const usualPath = /^(?:\/[\w-]+)+$/;

/** Returns true if a path has only one interpretation. */
function isPlain(path: string): boolean {
  return !/\/\.{0,2}\/|\/\.{1,2}$|%2e|%2f|%5c|\\/i.test(path);
}

/**
 * Rejects repeated headers. Compares names only if two of them have the length and first letter of such a header, which
 * is rare.
 */
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
    if (seen.has(name) && onlyOnce.includes(name)) throw new AppError('invalid', `the header ${name} was sent twice`);
    seen.add(name);
  }
}

/**
 * Rejects transfer codings other than `chunked`. Node decodes a body with any list of codings that ends in `chunked` as
 * if that were the only one. Proxies that support only HTTP/1.0 support none at all (RFC 9112, 6.1).
 */
function checkTransferCoding({ headers, httpVersion }: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  if (httpVersion !== '1.1' || coding?.toLowerCase() !== 'chunked')
    throw new AppError(
      'invalid',
      'the only supported Transfer-Encoding is "chunked", in HTTP/1.1; send the body without another one',
    );
}

const exposed = 'WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version, X-Request-Id, Retry-After, ETag';

/** Returns the edge headers of a response, including CORS for web pages that `checkEdge` has accepted. */
function edgeHeaders({ headers: { origin } }: IncomingMessage, requestId: string, fixed: readonly string[]): string[] {
  const headers = ['X-Request-Id', requestId, ...fixed];
  if (origin !== undefined) {
    headers.push('Access-Control-Allow-Origin', origin, 'Vary', 'Origin', 'Access-Control-Expose-Headers', exposed);
  }
  return headers;
}

/** Returns true for a CORS preflight (Fetch standard). */
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

function answerPreflight({ request, response, headers }: Incoming): void {
  // The origin is allowed, so it may send any header. The credential header of a server can have any name.
  const wanted = String(request.headers['access-control-request-headers'] ?? '');
  const allowed = ['Access-Control-Allow-Methods', 'GET, POST, PUT, PATCH, DELETE, OPTIONS'];
  response
    .writeHead(204, [...headers, ...allowed, 'Access-Control-Allow-Headers', wanted, 'Access-Control-Max-Age', '600'])
    .end();
}

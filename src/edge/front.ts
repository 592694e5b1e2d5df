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
  /** The address is a slug, or `slug/view`. */
  serveMcp: (incoming: Incoming, address: string) => Promise<void>;
  serveFile: (incoming: Incoming, id: string) => Promise<void>;
  probes: ProbeParts;
  serveWeb: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  strangers: Strangers;
  unread: UnreadAnswers;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/** Entry point of all requests: first the edge checks, then the MCP endpoints and files by path, then everything else. */
export function createFront(parts: FrontParts): (request: IncomingMessage, response: ServerResponse) => void {
  const rules = edgeRules(parts.config);
  const { baseUrl, serverHosts: suffix } = parts.config;
  const serverHosts = suffix === undefined ? undefined : createServerHosts(suffix, baseUrl);
  const isSecure = baseUrl.startsWith('https:');
  const { host: baseHost } = new URL(baseUrl);
  const usualPort = new URL(baseUrl).port !== '' ? undefined : isSecure ? ':443' : ':80';
  const readPath = basePathOf(baseUrl) === '' ? undefined : pathReader(baseUrl);
  const [ownHome, homeUrl] = [basePathOf(baseUrl) + routes.home, baseUrl + routes.home];
  // Ids are short and unique: a random part for the process, followed by a counter.
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
    // Some clients send the usual port (RFC 9110, 4.2.3), and everything behind compares the host without it.
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
    // The MCP endpoints handle the bodies posted to them.
    if ((address === undefined || method !== 'POST') && hasBody(request)) boundUnread(request, response);
    try {
      checkEdge(request, path, rules, own !== undefined);
      if (own && own.path === undefined) throw new AppError('notFound', 'this host has only its MCP server, at /mcp');
    } catch (error) {
      parts.unread.watch(response);
      const status = error instanceof AppError ? error.status : 0;
      const shown = parts.strangers.onRefused(request, status) ?? error;
      setHeaders(response, rules.headers);
      refuse(request, response, { error: shown, path, requestId, home }, parts.onUnexpected);
      return;
    }
    // The MCP endpoints count what they write.
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

/** A file of an answer, or what belongs to the web. */
function serveOther(incoming: Incoming, { serveFile, serveWeb }: FrontParts): Promise<void> {
  const file = fileIdIn(incoming.path);
  if (file !== undefined) return serveFile(incoming, file);
  setHeaders(incoming.response, incoming.headers);
  return serveWeb(incoming.request, incoming.response);
}

/** Names and values in turn. */
function setHeaders(response: ServerResponse, headers: readonly string[]): void {
  for (let i = 0; i < headers.length; i += 2) response.setHeader(headers[i] as string, headers[i + 1] as string);
}

/** The host of a server that a request came to; `path` is undefined where that host has nothing. */
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

/** Bounds what is read of a body that is still unread when its request is answered. */
function boundUnread(request: IncomingMessage, response: ServerResponse): void {
  // At `finish` Node would begin to read all of it.
  response.once('prefinish', () => {
    if (!request.readableEnded) discardBody(request, response.statusCode < 405 ? drainOfRefused : drainOfCaller);
  });
}

function edgeRules(config: Config & { baseUrl: string }): EdgeRules {
  const { protocol } = new URL(config.baseUrl);
  const { names: hosts, baseUrlAt } = createOwnHosts(config);
  // In local mode metrics need no token, so they require our host: a page could make its own name resolve to us.
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

/** Answers a request that the edge refused. Its connection is not trusted with another one. */
function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  { error, path, requestId, home }: { error: unknown; path: string; requestId: string; home: string },
  onUnexpected: (error: unknown, requestId: string) => void,
): void {
  response.setHeader('X-Request-Id', requestId);
  response.setHeader('Connection', 'close');
  // A client that writes before it reads would otherwise get a broken pipe instead of the answer.
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
  /** Resolves with undefined when the process can serve. */
  whyNotReady: () => Promise<string | undefined>;
  /** Called after every answer. */
  onAnswered: (status: number) => void;
};

/**
 * Answers the probes of supervisors and load balancers: whether the process lives, and whether it can serve.
 * Returns true if the request was a probe.
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

/** A web address without user information, with the path where it has one (RFC 9110, 4.2.4). */
const webAddress = /^(https?):\/\/((?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?)(?=[/?]|$)/i;

/**
 * Gives a request whose target is a web address the usual form, which everything behind compares: the target becomes a path,
 * and its host replaces the Host header (RFC 9112, 3.2.2). Any other target stays, and is refused as a path. Without TLS in
 * front, no request is for an https address (RFC 9110, 7.4).
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

/** Conditions that every request must meet before any other part of the product handles it. */
type EdgeRules = {
  /** `host[:port]` values of this service. */
  hosts: ReadonlySet<string>;
  /** The base URL under a host, where that is another name of this machine. */
  otherBaseUrl: (host: string | undefined) => string | undefined;
  /** Paths answered under any host name, because probes use the address. */
  anyHost: ReadonlySet<string>;
  /** Origins of web pages that may call this service. */
  origins: ReadonlySet<string>;
  /** Headers of every answer, names and values in turn. */
  headers: readonly string[];
};

/** Headers of every answer of a service at this base URL, names and values in turn. */
function fixedHeaders(baseUrl: string): string[] {
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
function checkEdge(request: IncomingMessage, path: string, rules: EdgeRules, isOwnHost = false): void {
  checkHeadersOnce(request.rawHeaders);
  if (request.headers['transfer-encoding'] !== undefined) checkTransferCoding(request);
  const host = request.headers.host?.toLowerCase();
  if (!isOwnHost && !rules.anyHost.has(path) && (host === undefined || !rules.hosts.has(host))) {
    throw new AppError(
      'misdirected',
      'this service does not answer for that host name; its operator sets the address with BASE_URL, or in local mode adds names with ALLOWED_HOSTS',
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
  if (httpVersion !== '1.1' || coding?.toLowerCase() !== 'chunked')
    throw new AppError(
      'invalid',
      'the only Transfer-Encoding is "chunked", in HTTP/1.1; send the body without another one',
    );
}

const exposed = 'WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version, X-Request-Id, Retry-After, ETag';

/** Headers of the answer to a request; with CORS for pages that `checkEdge` admitted. */
function edgeHeaders({ headers: { origin } }: IncomingMessage, requestId: string, fixed: readonly string[]): string[] {
  const headers = ['X-Request-Id', requestId, ...fixed];
  if (origin !== undefined) {
    headers.push('Access-Control-Allow-Origin', origin, 'Vary', 'Origin', 'Access-Control-Expose-Headers', exposed);
  }
  return headers;
}

/** Whether a request is a CORS preflight (Fetch standard). */
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

function answerPreflight({ request, response, headers }: Incoming): void {
  // The origin is allowed, so it may send any header: the credential header of a server can have any name.
  const wanted = String(request.headers['access-control-request-headers'] ?? '');
  const allowed = ['Access-Control-Allow-Methods', 'GET, POST, PUT, PATCH, DELETE, OPTIONS'];
  response
    .writeHead(204, [...headers, ...allowed, 'Access-Control-Allow-Headers', wanted, 'Access-Control-Max-Age', '600'])
    .end();
}

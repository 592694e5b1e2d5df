import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UnverifiedCallerLimits } from '@toolhost/credentials/client-request';
import { base62, type Random } from '@toolhost/credentials/ids';
import { AppError } from '@toolhost/errors/errors';
import { hopHeader } from '@toolhost/tool-config/http/headers';
import type { Config } from '../config.ts';
import type { Incoming, UnreadResponses } from '../http/incoming.ts';
import { acceptsPage } from '../http/page.ts';
import { createErrorResponse } from '../http/problem.ts';
import { callerDiscardLimits, discardBody, hasBody, rejectedDiscardLimits } from '../http/read-body.ts';
import { createServerHosts, createServiceHosts, getBasePath, type ServerHosts } from '../own-hosts.ts';
import {
  createBasePathRemover,
  getFileId,
  getMcpAddress,
  isCrossOriginPath,
  isFormReturn,
  removeTrailingSlash,
  routes,
  toOwnHostTarget,
} from '../routes.ts';
import { createPipelineQueue } from './client-connections.ts';

export type FrontOptions = {
  config: Config & { baseUrl: string };
  random: Random;
  /** `address` is a slug, or `slug/view`. */
  serveMcp: (incoming: Incoming, address: string) => Promise<void>;
  serveFile: (incoming: Incoming, id: string) => Promise<void>;
  probes: ProbeOptions;
  serveWeb: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  unverifiedCallers: UnverifiedCallerLimits;
  unreadResponses: UnreadResponses;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/**
 * Creates the entry point of all requests: first the edge checks, then MCP endpoints and files by path, then everything
 * else.
 */
export function createFront(options: FrontOptions): (request: IncomingMessage, response: ServerResponse) => void {
  const rules = createEdgeRules(options.config);
  const { baseUrl, serverHosts: suffix } = options.config;
  const serverHosts = suffix === undefined ? undefined : createServerHosts(suffix, baseUrl);
  const isSecure = baseUrl.startsWith('https:');
  const { host: baseHost, port } = new URL(baseUrl);
  const schemePort = isSecure ? ':443' : ':80';
  const defaultPort = port === '' ? schemePort : undefined;
  const stripBasePath = getBasePath(baseUrl) === '' ? undefined : createBasePathRemover(baseUrl);
  const [homePath, absoluteHomeUrl] = [getBasePath(baseUrl) + routes.home, baseUrl + routes.home];
  // Request IDs are short and unique: a random prefix per process, followed by a counter.
  const prefix = base62(options.random(8), 10);
  let count = 0;
  const queuePipelined = createPipelineQueue(handle);
  function handle(request: IncomingMessage, response: ServerResponse): void {
    if (response.socket === null) {
      queuePipelined(request, response);
      return;
    }
    const requestId = prefix + (++count).toString(36);
    const { method, headers } = request;
    if (request.url?.[0] !== '/') normalizeTarget(request, isSecure);
    // Some clients send the default port (RFC 9110, 4.2.3). All later code compares the host without it.
    if (defaultPort !== undefined && headers.host?.endsWith(defaultPort))
      setHost(request, headers.host.slice(0, -defaultPort.length));
    const url = request.url ?? '/';
    const query = url.indexOf('?');
    const requestedPath = query < 0 ? url : url.slice(0, query);
    const serverHost = serverHosts && findServerHost(request, removeTrailingSlash(requestedPath), serverHosts, rules);
    const localPath = serverHost
      ? (serverHost.path ?? requestedPath)
      : (stripBasePath?.(requestedPath) ?? requestedPath);
    const path = !serverHost && localPath.endsWith('/') ? removeTrailingSlash(localPath) : localPath;
    const homeUrl = serverHost ? absoluteHomeUrl : homePath;
    request.url = query < 0 ? path : path + url.slice(query);
    const address = getMcpAddress(path);
    // The MCP endpoints handle the bodies of their POST requests themselves.
    if ((address === undefined || method !== 'POST') && hasBody(request)) limitUnreadBody(request, response);
    try {
      checkEdge(request, path, rules, serverHost !== undefined);
      if (serverHost && serverHost.path === undefined)
        throw new AppError('notFound', 'this host serves only its MCP server, at /mcp');
    } catch (error) {
      setHeaders(response, rules.headers);
      rejectRequest(request, response, { error, path, requestId, homeUrl }, options);
      return;
    }
    // The MCP endpoints count their responses themselves.
    if (address === undefined) options.unreadResponses.watch(response);
    const incoming: Incoming = {
      request,
      response,
      path,
      requestId,
      serverOrigin: serverHost?.origin,
      alternativeBaseUrl:
        serverHost || headers.host === baseHost ? undefined : rules.getAlternativeBaseUrl(headers.host),
      homeUrl,
      headers: getEdgeHeaders(request, path, requestId, rules.headers),
    };
    if (method === 'OPTIONS' && isPreflight(request)) respondToPreflight(incoming);
    else if (address !== undefined) handleRejection(incoming, options.serveMcp(incoming, address), options);
    else if (!handleProbe(incoming, options.probes))
      handleRejection(incoming, serveFileOrWeb(incoming, options), options);
  }
  return handle;
}

function handleRejection(
  { response, requestId }: Incoming,
  serving: Promise<void>,
  { onUnexpected }: FrontOptions,
): void {
  serving.catch((error: unknown) => {
    onUnexpected(error, requestId);
    response.destroy();
  });
}

/** Serves a stored file of a response, or anything else of the web application. */
function serveFileOrWeb(incoming: Incoming, { serveFile, serveWeb }: FrontOptions): Promise<void> {
  const file = getFileId(incoming.path);
  if (file !== undefined) return serveFile(incoming, file);
  setHeaders(incoming.response, incoming.headers);
  return serveWeb(incoming.request, incoming.response);
}

/** Sets headers from alternating names and values. */
function setHeaders(response: ServerResponse, headers: readonly string[]): void {
  for (let i = 0; i < headers.length; i += 2) response.setHeader(headers[i] as string, headers[i + 1] as string);
}

/** A server's own host, to which a request was sent. `path` is undefined if the host has nothing at its path. */
type ServerHost = { origin: string; path: string | undefined };

function findServerHost(
  { headers }: IncomingMessage,
  path: string,
  hosts: ServerHosts,
  { hostIndependentPaths }: EdgeRules,
): ServerHost | undefined {
  const slug = hostIndependentPaths.has(path) ? undefined : hosts.getSlug(headers.host);
  return slug === undefined ? undefined : { origin: hosts.getOrigin(slug), path: toOwnHostTarget(path, slug) };
}

/** Limits the part that is read of a body that is still unread when its response is written. */
function limitUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  // `prefinish`, because Node begins to read all of the body at `finish`.
  response.once('prefinish', () => {
    if (!request.readableEnded)
      discardBody(request, response.statusCode < 405 ? rejectedDiscardLimits : callerDiscardLimits);
  });
}

function createEdgeRules(config: Config & { baseUrl: string }): EdgeRules {
  const { protocol } = new URL(config.baseUrl);
  const { names: hosts, includes, getBaseUrl } = createServiceHosts(config);
  // In local mode metrics need no token, so they require a host name of this service. Otherwise a web page could
  // resolve its own name to this machine.
  const hostIndependentPaths = new Set<string>([
    routes.livez,
    routes.readyz,
    ...(config.mode === 'local' ? [] : [routes.metrics]),
  ]);
  return {
    hosts,
    isPublished: includes,
    getAlternativeBaseUrl(host) {
      const requestedBaseUrl = getBaseUrl(host);
      return requestedBaseUrl === config.baseUrl ? undefined : requestedBaseUrl;
    },
    hostIndependentPaths,
    origins: new Set([...[...hosts].map((name) => `${protocol}//${name}`), ...config.allowedOrigins]),
    headers: getFixedHeaders(config.baseUrl),
  };
}

/** Responds to a request that the edge checks rejected, and closes its connection, which is no longer trusted. */
function rejectRequest(
  request: IncomingMessage,
  response: ServerResponse,
  rejection: { error: unknown; path: string; requestId: string; homeUrl: string },
  { unreadResponses, unverifiedCallers, onUnexpected }: FrontOptions,
): void {
  const { path, requestId, homeUrl } = rejection;
  unreadResponses.watch(response);
  const status = rejection.error instanceof AppError ? rejection.error.status : 0;
  const error = unverifiedCallers.recordRefusal(request, status) ?? rejection.error;
  response.setHeader('X-Request-Id', requestId);
  response.setHeader('Connection', 'close');
  // A client that writes before it reads would otherwise get a broken pipe instead of the response.
  discardBody(request, rejectedDiscardLimits);
  const acceptsHtml = acceptsPage(request.method, request.headers.accept);
  if (getMcpAddress(path) !== undefined && error instanceof AppError && !acceptsHtml) {
    response.writeHead(error.status, { 'Content-Type': 'application/json', ...error.headers });
    const code = error.status === 429 ? 429 : invalidRequestCode;
    response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message: error.message } }));
    return;
  }
  const errorResponse = createErrorResponse(error, requestId, onUnexpected, acceptsHtml ? homeUrl : undefined);
  response.writeHead(errorResponse.status, Object.fromEntries(errorResponse.headers));
  void errorResponse.text().then((text) => response.end(text));
}

/** Code of an invalid request (JSON-RPC 2.0, 5.1). */
const invalidRequestCode = -32600;

type ProbeOptions = {
  /** Resolves with undefined if the process is ready to serve. */
  getUnreadyReason: () => Promise<string | undefined>;
  /** Called after every response. */
  onResponse: (status: number) => void;
};

/**
 * Responds to liveness and readiness probes of supervisors and load balancers. Returns true if the request was a probe.
 */
function handleProbe(
  { request: { method }, response, path, headers }: Incoming,
  { getUnreadyReason, onResponse }: ProbeOptions,
): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const send = (code: number, status: string, reason?: string) => {
    response.writeHead(code, [...headers, 'Content-Type', 'application/json']).end(JSON.stringify({ status, reason }));
    onResponse(code);
  };
  if (path === routes.livez) send(200, 'ok');
  else if (path === routes.readyz) {
    getUnreadyReason().then(
      (reason) => (reason === undefined ? send(200, 'ready') : send(503, 'not ready', reason)),
      () => send(503, 'not ready'),
    );
  } else return false;
  return true;
}

/** An http or https URL without user information, with the path if it has one (RFC 9110, 4.2.4). */
const absoluteUrlPattern = /^(https?):\/\/((?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?)(?=[/?]|$)/i;

/**
 * Normalizes a request whose target is an absolute URL: the target becomes a path, and its host replaces the Host
 * header (RFC 9112, 3.2.2). Any other target is unchanged, and is rejected as a path. Without TLS in front, no request
 * is for an https URL (RFC 9110, 7.4).
 */
function normalizeTarget(request: IncomingMessage, isSecure: boolean): void {
  const [prefix = '', scheme = '', host = ''] = absoluteUrlPattern.exec(request.url ?? '') ?? [];
  if (prefix === '' || (scheme.length > 'http'.length && !isSecure)) return;
  const remainder = (request.url ?? '').slice(prefix.length);
  request.url = remainder.startsWith('/') ? remainder : `/${remainder}`;
  setHost(request, host);
}

function setHost({ headers, rawHeaders }: IncomingMessage, host: string): void {
  headers.host = host;
  const hostIndex = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (hostIndex < 0) rawHeaders.push('Host', host);
  else rawHeaders[hostIndex + 1] = host;
}

/** Conditions that every request must meet before any other code handles it. */
type EdgeRules = {
  /** `host[:port]` values of this service. */
  hosts: ReadonlySet<string>;
  /** Returns true for a host that is none of `hosts`, but may be the published port of this container. */
  isPublished: (host: string) => boolean;
  /** Returns the base URL for a host, if it is another name of this machine. */
  getAlternativeBaseUrl: (host: string | undefined) => string | undefined;
  /** Paths served under any host name, because probes use the IP address. */
  hostIndependentPaths: ReadonlySet<string>;
  /** Origins of web pages that may call this service. */
  origins: ReadonlySet<string>;
  /** Headers of every response, with names and values alternating. */
  headers: readonly string[];
};

/** Returns the headers of every response of a service at this base URL, with names and values alternating. */
function getFixedHeaders(baseUrl: string): string[] {
  const defaultHeaders = ['X-Content-Type-Options', 'nosniff', 'Cache-Control', 'no-store'];
  return baseUrl.startsWith('https:')
    ? [...defaultHeaders, 'Strict-Transport-Security', 'max-age=31536000; includeSubDomains']
    : defaultHeaders;
}

/** Headers that may occur only once. */
const uniqueHeaders = ['host', 'authorization', 'origin', 'content-type', 'content-length'];
/** These headers by their length, which differs for each. */
const uniqueHeaderByLength: (string | undefined)[] = [];
for (const name of uniqueHeaders) {
  if (uniqueHeaderByLength[name.length] !== undefined)
    throw new Error(`two headers of ${name.length} letters: ${name}`);
  uniqueHeaderByLength[name.length] = name;
}
/** Bit that converts an ASCII letter to lowercase. */
const lowercaseBit = 0x20;

/**
 * Checks a request. `isServerHost` is true if it was sent to a server's own host.
 * @throws AppError misdirected, invalid, forbidden, loop
 */
function checkEdge(request: IncomingMessage, path: string, rules: EdgeRules, isServerHost = false): void {
  checkUniqueHeaders(request.rawHeaders);
  if (request.headers['transfer-encoding'] !== undefined) checkTransferCoding(request);
  const host = request.headers.host?.toLowerCase();
  if (!isServerHost && !rules.hostIndependentPaths.has(path) && (host === undefined || !rules.hosts.has(host)))
    checkPublishedHost(request, host, rules);
  if (!path.startsWith('/'))
    throw new AppError(
      'invalid',
      'the request target must be a path, or a URL of this service without user information',
    );
  if (!simplePath.test(path) && !isNormalized(path))
    throw new AppError(
      'invalid',
      'the path is not normalized; send it without //, dot segments, backslashes, and encoded slashes or dots',
    );
  const { origin } = request.headers;
  const isForeign = origin !== undefined && !rules.origins.has(origin);
  if (isForeign && !isCrossOriginPath(path) && !isFormReturn(request.method, path))
    throw new AppError(
      'forbidden',
      'web pages of this origin may not call this service; the operator can allow them with ALLOWED_ORIGINS',
    );
  if (request.headers[hopHeader] !== undefined)
    throw new AppError(
      'loop',
      'this request was sent by a tool of this service; a hosted server cannot call another one',
    );
}

/**
 * Checks a host that is not a name of this service. On another published port, clients with a key work. Pages would show
 * URLs with the wrong port, and a sign-in would return to it.
 * @throws AppError misdirected
 */
function checkPublishedHost({ method, headers }: IncomingMessage, host: string | undefined, rules: EdgeRules): void {
  if (host === undefined || !rules.isPublished(host))
    throw new AppError(
      'misdirected',
      'this service does not serve that host name; the operator sets its URL with BASE_URL, or in local mode adds host names with ALLOWED_HOSTS',
    );
  if (acceptsPage(method, headers.accept))
    throw new AppError(
      'misdirected',
      `this container is published on another port than it expects; start it again with BASE_URL=http://${host}`,
    );
}

/** Matches nearly every path, as a fast check. */
const simplePath = /^(?:\/[\w-]+)+$/;

/** Returns true if a path has only one interpretation. */
function isNormalized(path: string): boolean {
  return !/\/\.{0,2}\/|\/\.{1,2}$|%2e|%2f|%5c|\\/i.test(path);
}

/**
 * Rejects repeated headers. Compares names only if two of them have the length and first letter of such a header, which
 * is rare.
 */
function checkUniqueHeaders(rawHeaders: readonly string[]): void {
  let seenLengths = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    const uniqueName = uniqueHeaderByLength[name.length];
    if (uniqueName === undefined || (name.charCodeAt(0) | lowercaseBit) !== uniqueName.charCodeAt(0)) continue;
    const bit = 1 << name.length;
    if ((seenLengths & bit) !== 0) {
      rejectRepeated(rawHeaders);
      return;
    }
    seenLengths |= bit;
  }
}

/** @throws AppError invalid */
function rejectRepeated(rawHeaders: readonly string[]): void {
  const seenNames = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase();
    if (seenNames.has(name) && uniqueHeaders.includes(name))
      throw new AppError('invalid', `the header ${name} was sent twice`);
    seenNames.add(name);
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

const exposedHeaders = 'WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version, X-Request-Id, Retry-After, ETag';

/** Returns the edge headers of a response, including CORS for web pages that `checkEdge` has accepted. */
function getEdgeHeaders(
  { headers: { origin }, method }: IncomingMessage,
  path: string,
  requestId: string,
  fixedHeaders: readonly string[],
): string[] {
  const headers = ['X-Request-Id', requestId, ...fixedHeaders];
  if (origin !== undefined && !isFormReturn(method, path)) {
    headers.push('Access-Control-Allow-Origin', origin, 'Vary', 'Origin');
    headers.push('Access-Control-Expose-Headers', exposedHeaders);
  }
  return headers;
}

/** Returns true for a CORS preflight (Fetch standard). */
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

function respondToPreflight({ request, response, headers }: Incoming): void {
  // The origin is allowed, so it may send any header. The credential header of a server can have any name.
  const requestedHeaders = String(request.headers['access-control-request-headers'] ?? '');
  const allowedMethods = ['Access-Control-Allow-Methods', 'GET, POST, PUT, PATCH, DELETE, OPTIONS'];
  const allowedHeaders = ['Access-Control-Allow-Headers', requestedHeaders];
  response.writeHead(204, [...headers, ...allowedMethods, ...allowedHeaders, 'Access-Control-Max-Age', '600']).end();
}

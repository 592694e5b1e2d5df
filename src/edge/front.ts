import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../config.ts';
import { base62 } from '../domain/credentials/api-key.ts';
import { basePathOf, createOwnHosts, createServerHosts, type ServerHosts } from '../domain/http/own-hosts.ts';
import type { Random } from '../domain/ids.ts';
import type { Strangers } from '../domain/visit.ts';
import { AppError } from '../errors.ts';
import type { Incoming } from '../http/incoming.ts';
import { wantsPage } from '../http/page.ts';
import { problemAnswer } from '../http/problem.ts';
import { discardBody, drainOfCaller, drainOfRefused, hasBody } from '../http/read-body.ts';
import type { UnreadAnswers } from '../http/unread-answers.ts';
import { fileIdIn, mcpAddress, pathOnOwnHost, pathReader, routes, withoutEndSlash } from '../routes.ts';
import { answerPreflight, checkEdge, type EdgeRules, edgeHeaders, fixedHeaders, isPreflight } from './check.ts';

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
  const newRequestId = requestIds(parts.random);
  const readHost = requestHostReader(baseUrl);
  const readPath = pathReader(baseUrl);
  const [ownHome, homeUrl] = [basePathOf(baseUrl) + routes.home, baseUrl + routes.home];
  const serveWeb = ({ request, response, headers }: Incoming) => {
    setHeaders(response, headers);
    return parts.serveWeb(request, response);
  };
  const serveOther = (incoming: Incoming) => {
    const file = fileIdIn(incoming.path);
    return file === undefined ? serveWeb(incoming) : parts.serveFile(incoming, file);
  };
  return (request, response) => {
    const requestId = newRequestId();
    readHost(request);
    const url = request.url ?? '/';
    const query = url.indexOf('?');
    const asked = query < 0 ? url : url.slice(0, query);
    const own = serverHosts && ownHostOf(request, withoutEndSlash(asked), serverHosts, rules);
    const path = own ? (own.path ?? asked) : withoutEndSlash(readPath(asked));
    const home = own ? homeUrl : ownHome;
    request.url = query < 0 ? path : path + url.slice(query);
    const address = mcpAddress(path);
    // The MCP endpoints handle the bodies posted to them.
    if ((address === undefined || request.method !== 'POST') && hasBody(request)) boundUnread(request, response);
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
    const incoming = {
      request,
      response,
      path,
      requestId,
      ownOrigin: own?.origin,
      home,
      headers: edgeHeaders(request, requestId, rules.headers),
    };
    if (isPreflight(request)) {
      answerPreflight(incoming);
      return;
    }
    if (answerProbe(incoming, parts.probes)) return;
    const served = address === undefined ? serveOther(incoming) : parts.serveMcp(incoming, address);
    served.catch((error: unknown) => {
      parts.onUnexpected(error, requestId);
      response.destroy();
    });
  };
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
  const { names: hosts } = createOwnHosts(config);
  // In local mode metrics need no token, so they require our host: a page could make its own name resolve to us.
  const anyHost = new Set<string>([routes.livez, routes.readyz, ...(config.mode === 'local' ? [] : [routes.metrics])]);
  return {
    hosts,
    anyHost,
    origins: new Set([...[...hosts].map((name) => `${protocol}//${name}`), ...config.allowedOrigins]),
    headers: fixedHeaders(config.baseUrl),
  };
}

/** Short and unique: a random part for the process, followed by a counter. */
function requestIds(random: Random): () => string {
  const prefix = base62(random(8), 10);
  let count = 0;
  return () => `${prefix}${(++count).toString(36)}`;
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
 * Gives requests to a service at this base URL one form, which everything behind compares: the target is a path, and the
 * Host header names the host, without the usual port of the scheme (RFC 9110, 4.2.3; some clients send it). A target that
 * is a web address replaces the Host header (RFC 9112, 3.2.2). Any other target stays, and is refused as a path.
 */
function requestHostReader(baseUrl: string): (request: IncomingMessage) => void {
  const { protocol, port } = new URL(baseUrl);
  const usualPort = port !== '' ? undefined : protocol === 'https:' ? ':443' : ':80';
  return (request) => {
    if (request.url?.[0] !== '/') takeAddress(request, protocol === 'https:');
    const { host } = request.headers;
    if (usualPort !== undefined && host?.endsWith(usualPort)) setHost(request, host.slice(0, -usualPort.length));
  };
}

/** Without TLS in front, no request is for an https address (RFC 9110, 7.4). */
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

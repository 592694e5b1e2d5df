import { Buffer } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { QueryCharge, TenantKey, UnverifiedCallerLimits } from '@toolhost/credentials/client-request';
import { getHeaderValue } from '@toolhost/credentials/credential';
import { AppError, errorDescription, type Refusal, Unauthenticated } from '@toolhost/errors/errors';
import { type MaybePromise, yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { bodyLimits } from '@toolhost/json/body-limits';
import type { MemoryBudget, MemoryReservation } from '@toolhost/limits/memory-budget';
import { releaseSlab } from '@toolhost/limits/slabs';
import { handleStatelessRequest } from '@toolhost/mcp-protocol/2026-07-28';
import {
  accepted,
  errorCodes,
  formatError,
  getEchoableId,
  isResponse,
  isStatelessMessage,
  type MessageContext,
  type MessageStart,
  type PendingCall,
  parseBody,
  type Reply,
  type RequestId,
  RpcError,
  readMessageStart,
  toMessage,
} from '@toolhost/mcp-protocol/json-rpc';
import { handleBatch, handleStatefulRequest } from '@toolhost/mcp-protocol/legacy';
import {
  createAuthorizationSnapshot,
  type JsonText,
  type LoginHints,
  type McpEndpoint,
  type McpServer,
  statelessRevision,
} from '@toolhost/mcp-protocol/mcp';
import { parseMediaType } from '@toolhost/tool-config/http/headers';
import type { Incoming, UnreadResponses } from '../http/incoming.ts';
import { acceptsPage, addFont, getPagePolicy, renderErrorPage, toBasePath } from '../http/page.ts';
import {
  callerDiscardLimits,
  checkBodyHeaders,
  type DiscardLimits,
  discardBody,
  readBody,
  readStart,
  rejectedDiscardLimits,
} from '../http/read-body.ts';
import { ownHostPath } from '../own-hosts.ts';
import { buildOwnHostMetadataUrl, splitAddress } from '../routes.ts';
import { acceptsGzip, createListCompression } from './compressed-list.ts';
import { renderServerPage } from './server-page.ts';

export type McpListenerDeps = {
  /** Finds the endpoint of an address, which is a slug or `slug/view`. */
  findEndpoint: (address: string, chargeQuery: QueryCharge) => MaybePromise<McpEndpoint | undefined>;
  unverifiedCallers: UnverifiedCallerLimits;
  memory: MemoryBudget;
  unreadResponses: UnreadResponses;
  serverUrl: (address: string) => string;
  onUnexpected: (error: unknown, requestId: string) => void;
  /**
   * Called after every request with the readable fields of its message, and the status. The status is 0 if nothing was
   * sent.
   */
  onResponse: (payload: unknown, status: number) => void;
  onRefused: (limitError: Refusal) => void;
  /** Returns monotonic ms. */
  clock: () => number;
};

/** Number of bytes at the start of a refused request's body that are searched for its id. */
const maxPrefixBytes = 4096;

/**
 * Serves the hot path, `POST /mcp/{slug}` and `POST /mcp/{slug}/{view}`, on plain node:http (MCP, Streamable HTTP).
 * Responses are single JSON messages. The headers decide access; the body is read and parsed only afterwards. If
 * authorization or the body takes long, access is checked again before the call, because the credential may have been
 * revoked in the meantime.
 */
export function createMcpListener(deps: McpListenerDeps) {
  const writeList = createListWriter(deps);
  return async function serveMcp(incoming: Incoming, address: string): Promise<void> {
    const { request, response, requestId, serverOrigin } = incoming;
    let body: Buffer | undefined;
    let payload: unknown;
    let hints: LoginHints | undefined;
    let isAuthorized = false;
    let isReadingBody = false;
    let reservation: MemoryReservation | undefined;
    try {
      const isPost = request.method === 'POST';
      if (isPost && request.headers['content-type'] !== 'application/json') checkContentType(request);
      const chargeQuery = deps.unverifiedCallers.getQueryCharge(request);
      const maybeEndpoint = deps.findEndpoint(address, chargeQuery);
      const endpoint = requireEndpoint(maybeEndpoint instanceof Promise ? await maybeEndpoint : maybeEndpoint);
      if (!isPost && isBrowserRequest(request)) {
        const page = renderServerPage(endpoint.pageContent, urlFor(incoming, address, deps));
        write(incoming, { status: 200, ...toPageContent(incoming, page) }, deps.unreadResponses);
        return;
      }
      hints = endpoint.loginHints && toRequestedHints(endpoint.loginHints, incoming, address);
      const authorization = createAuthorizationSnapshot(
        async () => requireEndpoint(await deps.findEndpoint(address, chargeQuery)).authorize(request, chargeQuery),
        deps.clock,
      );
      const authorized = endpoint.authorize(request, chargeQuery);
      let server = authorized instanceof Promise ? await authorized : authorized;
      if (!isPost) throw new AppError('methodNotAllowed', 'send MCP messages with POST');
      isAuthorized = true;
      const limits = server.bodyLimits ?? bodyLimits;
      checkBodyHeaders(request, limits.bytes);
      isReadingBody = true;
      reservation = deps.memory.reserve(server.tenantKey.workspaceId, server.tenantKey.network);
      body = await readBody(request, limits.bytes, { reservation });
      const parsed = parseBody(body, limits, server.parseLongMessage);
      payload = parsed instanceof Promise ? await parsed : parsed;
      if (authorization.isStale()) server = await authorization.refresh();
      const handled = handlePayload(server, payload, {
        headers: request.headers,
        requestId,
        bytesIn: body.length,
        ownOrigin: serverOrigin,
        onDisconnect: (cancel) => callOnDisconnect(response, cancel),
        authorization,
      });
      let reply: Reply;
      if (handled instanceof Promise) reply = await handled;
      else reply = 'toolCall' in handled ? handled.toReply(await server.call(handled.toolCall)) : handled;
      if (reply.isList) await writeList(incoming, server, reply, Array.isArray(payload));
      else {
        const bodyHeaders = reply.stream ? eventStreamHeaders : jsonHeaders;
        write(
          incoming,
          { status: reply.status, bodyHeaders, body: reply.body },
          deps.unreadResponses,
          server.tenantKey,
        );
      }
    } catch (caught) {
      const error = isAuthorized ? caught : toRefusal(caught, request, deps.unverifiedCallers);
      if (isReadingBody) payload ??= body && (await readBodyStart(body, error));
      else payload = await readRequestStart(request, error, isAuthorized ? callerDiscardLimits : rejectedDiscardLimits);
      writeError(incoming, { error, id: getEchoableId(payload), hints }, deps);
    } finally {
      reservation?.release();
      deps.onResponse(payload, response.headersSent ? response.statusCode : 0);
    }
  };
}

/** Creates a function that writes a list of tools, compressed if the client accepts that. @throws AppError tooMany */
function createListWriter(deps: McpListenerDeps) {
  const compressList = createListCompression();
  return async (
    incoming: Incoming,
    { tenantKey }: McpServer,
    { status, body }: Reply,
    isBatch: boolean,
  ): Promise<void> => {
    const { request } = incoming;
    const gzip = acceptsGzip(request.headers['accept-encoding']) ? await compressList(body) : undefined;
    const bodyHeaders = gzip ? gzipHeaders : jsonHeaders;
    const list = { status, bodyHeaders, body: gzip ?? body };
    // A short request returns a long list, and anyone may request it from an open server.
    if (tenantKey.network !== undefined) chargeList(request, list.body, deps);
    // A batch may also contain results, which are not shared.
    write(incoming, list, deps.unreadResponses, tenantKey, !isBatch);
  };
}

/** Counts the bytes of a list that is sent to an unverified caller. @throws AppError tooMany */
function chargeList(
  request: IncomingMessage,
  body: Parameters<typeof getByteLength>[0],
  { unverifiedCallers }: McpListenerDeps,
): void {
  const limitError = unverifiedCallers.chargeSentBytes(request, getByteLength(body));
  if (limitError) throw limitError;
}

/** @throws AppError notFound */
function requireEndpoint(endpoint: McpEndpoint | undefined): McpEndpoint {
  if (!endpoint) throw new AppError('notFound', 'there is no server at this URL');
  return endpoint;
}

/**
 * Returns login hints for the host that was requested. On a server's own host, the metadata describe it under that
 * host's URL.
 */
function toRequestedHints(
  hints: LoginHints,
  { serverOrigin, alternativeBaseUrl }: Incoming,
  address: string,
): LoginHints {
  if (serverOrigin === undefined && alternativeBaseUrl === undefined) return hints;
  const resourceMetadata =
    serverOrigin === undefined
      ? hints.resourceMetadata
      : buildOwnHostMetadataUrl(serverOrigin, splitAddress(address).view);
  return {
    ...hints,
    resourceMetadata:
      alternativeBaseUrl === undefined ? resourceMetadata : replaceOrigin(resourceMetadata, alternativeBaseUrl),
  };
}

/** Replaces the origin of one of this service's URLs with another origin of this machine. */
function replaceOrigin(url: string, otherBaseUrl: string): string {
  return new URL(otherBaseUrl).origin + url.slice(new URL(url).origin.length);
}

function urlFor(
  { serverOrigin, alternativeBaseUrl }: Incoming,
  address: string,
  { serverUrl }: McpListenerDeps,
): string {
  if (serverOrigin === undefined) {
    const url = serverUrl(address);
    return alternativeBaseUrl === undefined ? url : replaceOrigin(url, alternativeBaseUrl);
  }
  const { view } = splitAddress(address);
  return serverOrigin + ownHostPath + (view === undefined ? '' : `/${view}`);
}

/** Returns the error for a refused request: its own error, or a 429 if its address is over the limit. */
function toRefusal(caught: unknown, request: IncomingMessage, unverifiedCallers: UnverifiedCallerLimits): unknown {
  const status = caught instanceof AppError || caught instanceof Unauthenticated ? caught.status : 0;
  return unverifiedCallers.recordRefusal(request, status) ?? caught;
}

/** Reads the id and method from the first bytes of a refused request's body, and discards the remainder. */
async function readRequestStart(
  request: IncomingMessage,
  error: unknown,
  discardLimits: DiscardLimits,
): Promise<MessageStart | undefined> {
  const isUnreadable = error instanceof AppError && (error.status === 415 || error.status === 413);
  if (request.method !== 'POST' || isUnreadable) {
    discardBody(request, discardLimits);
    return undefined;
  }
  const { bytes, isComplete } = await readStart(request, maxPrefixBytes, discardLimits);
  return readMessageStart(bytes, isComplete);
}

/**
 * Reads the id and method from a refused body that was received completely. Text that is not JSON has no id (JSON-RPC
 * 2.0, 5).
 */
async function readBodyStart(body: Buffer, error: unknown): Promise<MessageStart | undefined> {
  if (error instanceof RpcError && error.code === errorCodes.parse) return undefined;
  await yieldToEventLoop();
  return readMessageStart(body, true);
}

function checkContentType(request: IncomingMessage): void {
  if (parseMediaType(request.headers['content-type']) !== 'application/json')
    throw new AppError('unsupported', 'Content-Type must be application/json');
}

/** Returns true for a browser, which requests HTML by name. MCP clients request an event stream. */
function isBrowserRequest({ method, headers }: IncomingMessage): boolean {
  return acceptsPage(method, headers.accept);
}

/** Calls `cancel` when the client disconnects, or immediately if it already has. */
function callOnDisconnect(response: ServerResponse, cancel: () => void): void {
  const isDisconnected = () => response.destroyed && !response.writableFinished;
  if (isDisconnected()) cancel();
  else {
    response.on('close', () => {
      if (isDisconnected()) cancel();
    });
  }
}

const jsonHeaders = ['Content-Type', 'application/json'];
const gzipHeaders = [...jsonHeaders, 'Content-Encoding', 'gzip', 'Vary', 'Accept-Encoding'];
const eventStreamHeaders = ['Content-Type', 'text/event-stream', 'X-Accel-Buffering', 'no'];

/** A response to be written. `bodyHeaders` alternates names and values of all headers but Content-Length. */
type OutgoingResponse = {
  status: number;
  bodyHeaders: readonly string[];
  body: string | readonly JsonText[] | undefined;
};

/** A request that failed, and what its error response needs. */
type FailedRequest = { error: unknown; id: RequestId | undefined; hints: LoginHints | undefined };

/** An error as status, headers, and the error object of a JSON-RPC message. */
type ErrorResponse = { status: number; headers?: readonly string[]; code: number; message: string; data?: object };

/** Renders every error of this listener, as an MCP response or as an HTML page for browsers. */
function writeError(incoming: Incoming, failure: FailedRequest, deps: McpListenerDeps): void {
  const { request, response } = incoming;
  if (response.destroyed || response.headersSent) return;
  const { status, headers = [], code, message, data } = toErrorResponse(failure, incoming.requestId, deps);
  const isPage = isBrowserRequest(request);
  const { bodyHeaders, body } = isPage
    ? toPageContent(incoming, renderErrorPage(status, message, incoming.homeUrl))
    : { bodyHeaders: jsonHeaders, body: formatError(failure.id, code, message, data) };
  write(incoming, { status, bodyHeaders: [...bodyHeaders, ...headers], body }, deps.unreadResponses);
}

/** Returns the HTML and the headers of a page. */
function toPageContent({ homeUrl }: Incoming, page: string): { bodyHeaders: readonly string[]; body: string } {
  const basePath = toBasePath(homeUrl);
  const bodyHeaders = [
    ...['Content-Type', 'text/html; charset=utf-8'],
    ...['Content-Security-Policy', getPagePolicy(basePath)],
    ...['Referrer-Policy', 'no-referrer'],
  ];
  return { bodyHeaders, body: addFont(page, basePath) };
}

function toErrorResponse({ error, hints }: FailedRequest, requestId: string, deps: McpListenerDeps): ErrorResponse {
  if (error instanceof RpcError) {
    const { status, code, message, data } = error;
    return { status, code, message, ...(data && { data }) };
  }
  if (error instanceof Unauthenticated) {
    deps.onRefused(error.refusal);
    const { status, message } = error;
    return { status, headers: ['WWW-Authenticate', formatChallenge(error, hints)], code: status, message };
  }
  if (error instanceof AppError) {
    const { status, message } = error;
    const code = status < 500 && status !== 429 ? errorCodes.invalidRequest : status;
    const allow = status === 405 ? ['Allow', 'POST'] : [];
    return { status, headers: [...Object.entries(error.headers).flat(), ...allow], code, message };
  }
  deps.onUnexpected(error, requestId);
  return { status: 500, code: errorCodes.internal, message: `internal error; request ${requestId}` };
}

/**
 * Ends a response on which nothing has been set. Bytes that the client has not read yet are charged to its tenant key,
 * or to the request's address if `tenantKey` is absent. A list is charged to no one, because all responses share one
 * copy in memory.
 */
function write(
  { response, headers }: Incoming,
  { status, bodyHeaders, body }: OutgoingResponse,
  unreadResponses: UnreadResponses,
  tenantKey?: TenantKey,
  isShared = false,
): void {
  if (response.destroyed) return;
  let bytes = 0;
  if (body === undefined) response.writeHead(status, headers).end();
  else {
    bytes = getByteLength(body);
    headers.push(...bodyHeaders, 'Content-Length', String(bytes));
    response.writeHead(status, headers);
    const text = typeof body === 'string' ? body : joinStrings(body);
    // A string is sent in one write with the head. ASCII text is valid Latin-1, which is the cheapest encoding to
    // write.
    if (text !== undefined) response.end(text, bytes === text.length ? 'latin1' : 'utf8');
    else writeChunks(response, body as readonly JsonText[]);
  }
  // A client occupies memory only until its socket has flushed everything.
  if (response.socket?.writableLength !== 0) unreadResponses.track(response, bytes, tenantKey, isShared ? 0 : bytes);
}

function getByteLength(body: OutgoingResponse['body']): number {
  if (typeof body !== 'object') return Buffer.byteLength(body ?? '');
  let bytes = 0;
  for (const chunk of body) bytes += Buffer.byteLength(chunk);
  return bytes;
}

/**
 * Joins the chunks if all of them are strings. V8 flattens the string on its first read, which is the write to the
 * socket. Counting the bytes of the joined string would flatten it once more.
 */
function joinStrings(chunks: readonly JsonText[]): string | undefined {
  let text = '';
  for (const chunk of chunks) {
    if (typeof chunk !== 'string') return undefined;
    text += chunk;
  }
  return text;
}

/**
 * Writes chunks, and releases their slabs once the system has all bytes: the response owns them, and nothing else reads
 * the result of a call anymore. The response is corked, so that the chunks are sent in one write with the head.
 */
function writeChunks(response: ServerResponse, chunks: readonly JsonText[]): void {
  response.cork();
  for (const chunk of chunks) response.write(chunk);
  response.end(() => {
    for (const chunk of chunks) if (typeof chunk !== 'string') releaseSlab(chunk);
  });
}

/**
 * Formats the `WWW-Authenticate` field (RFC 6750, 3; RFC 9728, 5.1). A request without credentials gets no error code.
 */
export function formatChallenge(error: Unauthenticated, hints: LoginHints | undefined): string {
  const params: string[] = [];
  const scopes = error.scopes ?? hints?.scopes ?? [];
  if (hints) params.push(`resource_metadata="${hints.resourceMetadata}"`);
  if (scopes.length > 0) params.push(`scope="${scopes.join(' ')}"`);
  if (error.refusal === 'invalid') params.push('error="invalid_token"');
  if (error.refusal === 'forbidden') params.push('error="insufficient_scope"');
  if (error.refusal !== 'missing') params.push(`error_description="${errorDescription(error.message)}"`);
  return params.length > 0 ? `Bearer ${params.join(', ')}` : 'Bearer';
}

/**
 * Handles the parsed body of a POST request (MCP, transports). Each message states its own revision ("Backward
 * Compatibility" of basic/versioning), and no state is stored between messages. A call is returned for the server to run.
 * @throws RpcError with the status and code of MCP 2026-07-28, synchronously or by rejecting
 */
export function handlePayload(
  server: McpServer,
  payload: unknown,
  context: MessageContext,
): Reply | PendingCall | Promise<Reply> {
  if (Array.isArray(payload)) return handleBatch(server, payload, context);
  const isStateless = isStatelessMessage(payload);
  const claimsStateless =
    isStateless || (getHeaderValue(context.headers, 'mcp-protocol-version') ?? '') >= statelessRevision;
  if (isResponse(payload)) {
    if (claimsStateless)
      throw new RpcError(
        400,
        errorCodes.invalidRequest,
        'the body is a JSON-RPC response; send a request or a notification',
      );
    return accepted;
  }
  const message = toMessage(payload);
  if (message.id === undefined) return accepted;
  return claimsStateless
    ? handleStatelessRequest(server, message, context, isStateless)
    : handleStatefulRequest(server, message, context);
}

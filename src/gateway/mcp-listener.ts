import { Buffer } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { headerValue } from '../domain/credentials/credential.ts';
import { mediaTypeOf } from '../domain/http/headers.ts';
import { ownHostPath } from '../domain/http/own-hosts.ts';
import { bodyLimits } from '../domain/json/body-limits.ts';
import {
  decidedAdmission,
  type JsonText,
  type LoginHints,
  type McpEndpoint,
  type McpServer,
  modernRevision,
} from '../domain/mcp.ts';
import type { Lookup, Party, Strangers } from '../domain/visit.ts';
import type { Held, MemoryBudget } from '../domain/work/memory-budget.ts';
import { type MaybePromise, nextTurn } from '../domain/work/next-turn.ts';
import { AppError, errorDescription, type Refusal, Unauthenticated } from '../errors.ts';
import type { Incoming, UnreadAnswers } from '../http/incoming.ts';
import { pagePolicy, plainErrorPage, wantsPage } from '../http/page.ts';
import {
  checkBodyHeaders,
  type Drain,
  discardBody,
  drainOfCaller,
  drainOfRefused,
  readBody,
  readStart,
} from '../http/read-body.ts';
import { ownResourceMetadata, partsOfAddress } from '../routes.ts';
import { createListCompression, takesGzip } from './compressed-list.ts';
import { modernReply } from './protocol/2026-07-28.ts';
import {
  accepted,
  codes,
  errorText,
  isModern,
  isResponse,
  type MessageContext,
  type MessageStart,
  parseBody,
  type Reply,
  type RequestId,
  RpcError,
  readableId,
  readMessageStart,
  toMessage,
} from './protocol/json-rpc.ts';
import { answerBatch, legacyReply } from './protocol/legacy.ts';
import { serverPage } from './server-page.ts';

export type McpListenerParts = {
  /** Finds the endpoint of an address, which is a slug or `slug/view`. */
  find: (address: string, look: Lookup) => MaybePromise<McpEndpoint | undefined>;
  strangers: Strangers;
  memory: MemoryBudget;
  unread: UnreadAnswers;
  serverUrl: (address: string) => string;
  onUnexpected: (error: unknown, requestId: string) => void;
  /**
   * Called after every request with the readable fields of its message, and the status. The status is 0 if nothing was
   * sent.
   */
  onAnswered: (posted: unknown, status: number) => void;
  onRefused: (refusal: Refusal) => void;
  /** Returns monotonic ms. */
  clock: () => number;
};

/** Number of bytes at the start of a refused request's body that are searched for its id. */
const startBytes = 4096;
const pageHeaders = [
  ...['Content-Type', 'text/html; charset=utf-8'],
  ...['Content-Security-Policy', pagePolicy],
  ...['Referrer-Policy', 'no-referrer'],
];

/**
 * Serves the hot path, `POST /mcp/{slug}` and `POST /mcp/{slug}/{view}`, on plain node:http (MCP, Streamable HTTP).
 * Responses are single JSON messages. The headers decide access; the body is read and parsed only afterwards. If
 * authorization or the body takes long, access is checked again before the call, because the credential may have been
 * revoked in the meantime.
 */
export function createMcpListener(parts: McpListenerParts) {
  const compressed = createListCompression();
  return async function serveMcp(incoming: Incoming, address: string): Promise<void> {
    const { request, response, requestId, ownOrigin } = incoming;
    let body: Buffer | undefined;
    let posted: unknown;
    let hints: LoginHints | undefined;
    let isAdmitted = false;
    let isReading = false;
    let held: Held | undefined;
    try {
      const isPost = request.method === 'POST';
      if (isPost && request.headers['content-type'] !== 'application/json') checkContentType(request);
      const look = parts.strangers.lookFor(request);
      const found = parts.find(address, look);
      const endpoint = existing(found instanceof Promise ? await found : found);
      if (!isPost && isForPerson(request)) {
        const page = serverPage(endpoint.about, urlFor(incoming, address, parts));
        write(incoming, { status: 200, ofBody: pageHeaders, body: page }, parts.unread);
        return;
      }
      hints = ownOrigin === undefined ? endpoint.hints : ownHints(endpoint.hints, ownOrigin, address);
      const { otherBaseUrl } = incoming;
      if (hints && otherBaseUrl !== undefined)
        hints = { ...hints, resourceMetadata: underOtherName(hints.resourceMetadata, otherBaseUrl) };
      const decideAgain = async () => existing(await parts.find(address, look)).admit(request, look);
      const admission = decidedAdmission(decideAgain, parts.clock);
      const admitted = endpoint.admit(request, look);
      let server = admitted instanceof Promise ? await admitted : admitted;
      if (!isPost) throw new AppError('methodNotAllowed', 'send MCP messages with POST');
      isAdmitted = true;
      const limits = server.bodyLimits ?? bodyLimits;
      checkBodyHeaders(request, limits.bytes);
      isReading = true;
      held = parts.memory.hold(server.party.workspaceId, server.party.network);
      body = await readBody(request, limits.bytes, { held });
      const parsed = parseBody(body, limits, server.readLong);
      posted = parsed instanceof Promise ? await parsed : parsed;
      if (admission.isOld()) server = await admission.again();
      const reply = await answer(server, posted, {
        headers: request.headers,
        requestId,
        bytesIn: body.length,
        ownOrigin,
        onGone: (cancel) => whenGone(response, cancel),
        admission,
      });
      const { status, body: message } = reply;
      const ofBody = reply.stream ? ofStream : ofJson;
      if (reply.isList) {
        const gzip = takesGzip(request.headers['accept-encoding']) ? await compressed(message) : undefined;
        const list = gzip ? { status, ofBody: ofGzip, body: gzip } : { status, ofBody, body: message };
        // A short request returns a long list, and anyone may request it from an open server.
        const isCounted = server.party.network !== undefined;
        const refusal = isCounted && parts.strangers.onSent(request, bytesOf(list.body));
        if (refusal) throw refusal;
        write(incoming, list, parts.unread, server.party, true);
      } else write(incoming, { status, ofBody, body: message }, parts.unread, server.party);
    } catch (thrown) {
      const error = isAdmitted ? thrown : refusalOf(thrown, request, parts.strangers);
      if (isReading) posted ??= body && (await startOfBody(body, error));
      else posted = await startOf(request, error, isAdmitted ? drainOfCaller : drainOfRefused);
      writeError(incoming, { error, id: readableId(posted), hints }, parts);
    } finally {
      held?.end();
      parts.onAnswered(posted, response.headersSent ? response.statusCode : 0);
    }
  };
}

/** @throws AppError notFound */
function existing(endpoint: McpEndpoint | undefined): McpEndpoint {
  if (!endpoint) throw new AppError('notFound', 'there is no server at this URL');
  return endpoint;
}

/** Returns login hints for a server on its own host, where the metadata describe it under that host's URL. */
function ownHints(hints: LoginHints | undefined, ownOrigin: string, address: string): LoginHints | undefined {
  return hints && { ...hints, resourceMetadata: ownResourceMetadata(ownOrigin, partsOfAddress(address).view) };
}

/** Replaces the origin of one of this service's URLs with another origin of this machine. */
function underOtherName(url: string, otherBaseUrl: string): string {
  return new URL(otherBaseUrl).origin + url.slice(new URL(url).origin.length);
}

function urlFor({ ownOrigin, otherBaseUrl }: Incoming, address: string, { serverUrl }: McpListenerParts): string {
  if (ownOrigin === undefined) {
    const url = serverUrl(address);
    return otherBaseUrl === undefined ? url : underOtherName(url, otherBaseUrl);
  }
  const { view } = partsOfAddress(address);
  return ownOrigin + ownHostPath + (view === undefined ? '' : `/${view}`);
}

/** Returns the error for a refused request: its own error, or a 429 if its address is over the limit. */
function refusalOf(thrown: unknown, request: IncomingMessage, strangers: Strangers): unknown {
  const status = thrown instanceof AppError || thrown instanceof Unauthenticated ? thrown.status : 0;
  return strangers.onRefused(request, status) ?? thrown;
}

/** Reads the id and method from the first bytes of a refused request's body, and discards the remainder. */
async function startOf(request: IncomingMessage, error: unknown, bounds: Drain): Promise<MessageStart | undefined> {
  const isUnfit = error instanceof AppError && (error.status === 415 || error.status === 413);
  if (request.method !== 'POST' || isUnfit) {
    discardBody(request, bounds);
    return undefined;
  }
  const { bytes, isWhole } = await readStart(request, startBytes, bounds);
  return readMessageStart(bytes, isWhole);
}

/**
 * Reads the id and method from a refused body that was received completely. Text that is not JSON has no id (JSON-RPC
 * 2.0, 5).
 */
async function startOfBody(body: Buffer, error: unknown): Promise<MessageStart | undefined> {
  if (error instanceof RpcError && error.code === codes.parse) return undefined;
  await nextTurn();
  return readMessageStart(body, true);
}

function checkContentType(request: IncomingMessage): void {
  if (mediaTypeOf(request.headers['content-type']) !== 'application/json')
    throw new AppError('unsupported', 'Content-Type must be application/json');
}

/** Returns true for a browser, which requests HTML by name. MCP clients request an event stream. */
function isForPerson({ method, headers }: IncomingMessage): boolean {
  return wantsPage(method, headers.accept);
}

/** Calls `cancel` when the client disconnects, or immediately if it already has. */
function whenGone(response: ServerResponse, cancel: () => void): void {
  const hasGone = () => response.destroyed && !response.writableFinished;
  if (hasGone()) cancel();
  else {
    response.on('close', () => {
      if (hasGone()) cancel();
    });
  }
}

const ofJson = ['Content-Type', 'application/json'];
const ofGzip = [...ofJson, 'Content-Encoding', 'gzip', 'Vary', 'Accept-Encoding'];
const ofStream = ['Content-Type', 'text/event-stream', 'X-Accel-Buffering', 'no'];

/** A response to be written. `ofBody` alternates names and values of all headers but Content-Length. */
type Outgoing = { status: number; ofBody: readonly string[]; body: string | readonly JsonText[] | undefined };

/** A request that failed, and what its error response needs. */
type Failed = { error: unknown; id: RequestId | undefined; hints: LoginHints | undefined };

/** An error as status, headers, and the error object of a JSON-RPC message. */
type ErrorAnswer = { status: number; headers?: readonly string[]; code: number; message: string; data?: object };

/** Renders every error of this listener, as an MCP response or as an HTML page for browsers. */
function writeError(incoming: Incoming, failed: Failed, parts: McpListenerParts): void {
  const { request, response } = incoming;
  if (response.destroyed || response.headersSent) return;
  const { status, headers = [], code, message, data } = errorAnswer(failed, incoming.requestId, parts);
  const isPage = isForPerson(request);
  const body = isPage ? plainErrorPage(message, incoming.home) : errorText(failed.id, code, message, data);
  const ofBody = [...(isPage ? pageHeaders : ofJson), ...headers];
  write(incoming, { status, ofBody, body }, parts.unread);
}

function errorAnswer({ error, hints }: Failed, requestId: string, parts: McpListenerParts): ErrorAnswer {
  if (error instanceof RpcError) {
    const { status, code, message, data } = error;
    return { status, code, message, ...(data && { data }) };
  }
  if (error instanceof Unauthenticated) {
    parts.onRefused(error.refusal);
    const { status, message } = error;
    return { status, headers: ['WWW-Authenticate', challenge(error, hints)], code: status, message };
  }
  if (error instanceof AppError) {
    const { status, message } = error;
    const code = status < 500 && status !== 429 ? codes.invalidRequest : status;
    const allow = status === 405 ? ['Allow', 'POST'] : [];
    return { status, headers: [...Object.entries(error.headers).flat(), ...allow], code, message };
  }
  parts.onUnexpected(error, requestId);
  return { status: 500, code: codes.internal, message: `internal error; request ${requestId}` };
}

/**
 * Ends a response on which nothing has been set. Bytes that the client has not read yet are charged to its tenant key,
 * or to the request's address if `party` is absent. A list is charged to no one, because all responses share one copy
 * in memory.
 */
function write(
  { response, headers }: Incoming,
  { status, ofBody, body }: Outgoing,
  unread: UnreadAnswers,
  party?: Party,
  isShared = false,
): void {
  if (response.destroyed) return;
  let bytes = 0;
  if (body === undefined) response.writeHead(status, headers).end();
  else {
    bytes = bytesOf(body);
    headers.push(...ofBody, 'Content-Length', String(bytes));
    response.writeHead(status, headers);
    const text = typeof body === 'string' ? body : joinedText(body);
    // A string is sent in one write with the head. ASCII text is valid Latin-1, which is the cheapest encoding to
    // write.
    if (text !== undefined) response.end(text, bytes === text.length ? 'latin1' : 'utf8');
    else endWithPieces(response, body as readonly JsonText[]);
  }
  // The socket has flushed everything, so the client can no longer occupy memory.
  if (response.socket?.writableLength !== 0) unread.hold(response, bytes, party, isShared ? 0 : bytes);
}

function bytesOf(body: Outgoing['body']): number {
  if (typeof body !== 'object') return Buffer.byteLength(body ?? '');
  let bytes = 0;
  for (const piece of body) bytes += Buffer.byteLength(piece);
  return bytes;
}

/**
 * Joins the chunks if all of them are strings. V8 flattens the string on its first read, which is the write to the
 * socket. Counting the bytes of the joined string would flatten it once more.
 */
function joinedText(pieces: readonly JsonText[]): string | undefined {
  let text = '';
  for (const piece of pieces) {
    if (typeof piece !== 'string') return undefined;
    text += piece;
  }
  return text;
}

/** Corks the response, so that the chunks and the head are sent in one write. */
function endWithPieces(response: ServerResponse, pieces: readonly JsonText[]): void {
  response.cork();
  for (const piece of pieces) response.write(piece);
  response.end();
}

/**
 * Formats the `WWW-Authenticate` field (RFC 6750, 3; RFC 9728, 5.1). A request without credentials gets no error code.
 */
export function challenge(error: Unauthenticated, hints: LoginHints | undefined): string {
  const parts: string[] = [];
  if (hints) parts.push(`resource_metadata="${hints.resourceMetadata}"`);
  if (hints && hints.scopes.length > 0) parts.push(`scope="${hints.scopes.join(' ')}"`);
  if (error.refusal === 'invalid') parts.push('error="invalid_token"');
  if (error.refusal === 'forbidden') parts.push('error="insufficient_scope"');
  if (error.refusal !== 'missing') parts.push(`error_description="${errorDescription(error.message)}"`);
  return parts.length > 0 ? `Bearer ${parts.join(', ')}` : 'Bearer';
}

/**
 * Handles the parsed body of a POST request (MCP, transports). Each message states its own revision ("Backward
 * Compatibility" of basic/versioning), and no state is stored between messages.
 * @throws RpcError with the status and code of MCP 2026-07-28, synchronously or by rejecting, and any error of a call
 */
export function answer(server: McpServer, posted: unknown, context: MessageContext): MaybePromise<Reply> {
  if (Array.isArray(posted)) return answerBatch(server, posted, context);
  const modern = isModern(posted);
  const claimsModern = modern || (headerValue(context.headers, 'mcp-protocol-version') ?? '') >= modernRevision;
  if (isResponse(posted)) {
    if (claimsModern)
      throw new RpcError(
        400,
        codes.invalidRequest,
        'the body is a JSON-RPC response; send a request or a notification',
      );
    return accepted;
  }
  const message = toMessage(posted);
  if (message.id === undefined) return accepted;
  return claimsModern ? modernReply(server, message, context, modern) : legacyReply(server, message, context);
}

import { headerValue } from '../../domain/credentials/credential.ts';
import {
  type Era,
  type McpServer,
  modernRevision,
  newestLegacyRevision,
  type Revision,
  revisions,
  type ToolCall,
} from '../../domain/mcp.ts';
import { nearestOrAll, newGuesses } from '../../domain/problems/did-you-mean.ts';
import type { RequestHeaders } from '../../domain/visit.ts';
import { type MaybePromise, whenKnown } from '../../domain/work/maybe-promise.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { AppError, Unauthenticated } from '../../errors.ts';
import { atChangedServer, type Readmitted } from '../admission.ts';
import {
  codes,
  errorText,
  isObject,
  isResponse,
  type JsonObject,
  type Message,
  type RequestId,
  RpcError,
  readableId,
  resultPieces,
  resultText,
  toMessage,
} from './json-rpc.ts';
import { checkMirroredArguments, checkPresentMirrors, checkRequiredMirrors } from './mirror-headers.ts';
import { batchPieces, legacyResults, lengthOfAnswer, modernResults, type Pieces } from './results.ts';

/** An answer: a JSON text, whole or in pieces, the frames of a short event stream, or nothing (202). */
export type Reply = {
  status: number;
  body: string | Pieces | undefined;
  stream?: boolean;
  /** It has a list of tools. */
  isList?: boolean;
};

/** The HTTP request around a message. */
export type MessageContext = Readmitted & {
  headers: RequestHeaders;
  requestId: string;
  bytesIn: number;
  /** Origin of the server's own host, when the request came to that. */
  ownOrigin?: string | undefined;
  onGone: (cancel: () => void) => void;
};

const accepted: Reply = { status: 202, body: undefined };
const ok = (body: string | Pieces): Reply => ({ status: 200, body });
const listed = (body: string | Pieces): Reply => ({ status: 200, body, isList: true });
const versionKey = 'io.modelcontextprotocol/protocolVersion';
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const clientKey = 'io.modelcontextprotocol/clientInfo';
const maxBatch = 100;
/**
 * Longest answers of one batch together, in characters; short messages can ask for long answers. The rest is not done.
 */
const maxBatchLength = 2 * 1024 * 1024;
const longBatch =
  'not done: the answers to the messages before this one are longer than a batch may have; send it by itself';

/** Whether a message itself claims the modern era; never remembered from one message to the next. */
export function isModern(value: unknown): boolean {
  const meta = isObject(value) && isObject(value.params) ? value.params._meta : undefined;
  return isObject(meta) && versionKey in meta;
}

function claimsModern(headers: RequestHeaders): boolean {
  return (headerValue(headers, 'mcp-protocol-version') ?? '') >= modernRevision;
}

/**
 * Answers what was posted (MCP, transports; the era rule is "Backward Compatibility" of basic/versioning).
 * @throws RpcError with the status and code of MCP 2026-07-28, in its promise or at once
 */
export function answer(server: McpServer, posted: unknown, context: MessageContext): MaybePromise<Reply> {
  if (Array.isArray(posted)) return answerBatch(server, posted, context);
  const modern = isModern(posted);
  if (isResponse(posted)) {
    if (modern || claimsModern(context.headers))
      throw new RpcError(400, codes.invalidRequest, 'responses must not be posted');
    return accepted;
  }
  const message = toMessage(posted);
  if (message.id === undefined) return accepted;
  if (modern) return answerModern(server, message, context);
  if (claimsModern(context.headers)) {
    if (message.method === 'initialize')
      throw new RpcError(400, codes.headerMismatch, 'initialize does not exist in this revision');
    throw new RpcError(400, codes.invalidParams, `params._meta needs "${versionKey}" and "${capabilitiesKey}"`);
  }
  checkLegacyVersion(message, context.headers);
  return whenKnown(answerLegacy(server, message, context), message.method === 'tools/list' ? listed : ok);
}

/** Arrays are messages only in 2025-03-26. Each element gets an answer of its own (JSON-RPC 2.0, 6). */
async function answerBatch(server: McpServer, posted: readonly unknown[], context: MessageContext): Promise<Reply> {
  const version = headerValue(context.headers, 'mcp-protocol-version');
  const refused = (why: string) => new RpcError(400, codes.invalidRequest, why);
  if (version !== undefined && version !== '2025-03-26') throw refused('this revision has no batches');
  if (posted.length === 0 || posted.length > maxBatch) throw refused(`a batch has 1 to ${maxBatch} messages`);
  if (posted.some(isModern)) throw refused('a modern request cannot be part of a batch');
  if (posted.some((item) => isObject(item) && item.method === 'initialize'))
    throw refused('initialize cannot be part of a batch');
  const answers: (string | Pieces)[] = [];
  let length = 0;
  for (const [index, item] of posted.entries()) {
    if (isResponse(item)) continue;
    // Each may take as long as a request, and a call that is refused gives nothing else a turn.
    await nextTurn();
    const inBatch = { ...context, requestId: `${context.requestId}-${index}` };
    const answer = await answerInBatch(server, item, inBatch, { count: answers.length, length });
    if (answer === undefined) continue;
    length += lengthOfAnswer(answer);
    answers.push(answer);
  }
  if (answers.length === 0) return accepted;
  const hasList = posted.some((item) => isObject(item) && item.method === 'tools/list');
  return (hasList ? listed : ok)(batchPieces(answers));
}

/**
 * Undefined for a notification. `before` are the answers to the elements before this one; `admitted` is the server as it
 * was for the first of them.
 */
async function answerInBatch(
  admitted: McpServer,
  item: unknown,
  context: MessageContext,
  before: { count: number; length: number },
): Promise<string | Pieces | undefined> {
  const failed = (code: number, message: string) => errorText(readableId(item) ?? null, code, message);
  try {
    const message = toMessage(item);
    if (message.id === undefined) return undefined;
    if (before.length > maxBatchLength) return failed(codes.invalidRequest, longBatch);
    // The calls of a batch can take minutes, in which a credential is revoked.
    const server = before.count === 0 ? admitted : await context.admission.again();
    return await answerLegacy(server, message, context);
  } catch (error) {
    if (error instanceof RpcError) return failed(error.code, error.message);
    // A refused call must not discard the answers of the others.
    if (error instanceof AppError) return failed(error.status, error.message);
    // Nor must a credential that ended in the middle: the next request tells the agent to log in again.
    if (error instanceof Unauthenticated && before.count > 0) return failed(error.status, error.message);
    throw error;
  }
}

/** Checks a modern request, in the order that the conformance suite accepts. */
function answerModern(server: McpServer, message: Message, context: MessageContext): MaybePromise<Reply> {
  const { method, params } = message;
  const version = checkEnvelope(params._meta as JsonObject);
  checkPresentMirrors(context.headers, version, method);
  if (version !== modernRevision) {
    throw new RpcError(400, codes.unsupportedVersion, `protocol version ${version.slice(0, 40)} is not served`, {
      supported: revisions,
      requested: version,
    });
  }
  checkRequiredMirrors(context.headers, method, params.name);
  const id = message.id as RequestId;
  switch (method) {
    case 'server/discover':
      return ok(resultText(id, modernResults.discover(server)));
    case 'tools/list':
      checkCursor(params);
      return listed(resultPieces(id, modernResults.tools(server)));
    case 'tools/call': {
      const called = checkCall(server, params);
      checkMirroredArguments(context.headers, called.args, server.mirrored(called.name) ?? []);
      return server.call(toolCall(context, params, called, 'modern')).then(
        (result) => ok(resultPieces(id, modernResults.call(server, result))),
        atChangedServer(context, (now, next) => answerModern(now, message, next)),
      );
    }
    case 'subscriptions/listen':
      return listen(id, params);
    default:
      throw new RpcError(
        404,
        codes.methodNotFound,
        `method ${JSON.stringify(method.slice(0, 100))} does not exist here`,
      );
  }
}

/** `_meta` of a modern request (basic/index, `_meta`). Returns its version. @throws RpcError −32602 */
function checkEnvelope(meta: JsonObject): string {
  const bad = (why: string) => new RpcError(400, codes.invalidParams, `params._meta: ${why}`);
  const version = meta[versionKey];
  if (typeof version !== 'string') throw bad(`"${versionKey}" must be a string`);
  if (!isObject(meta[capabilitiesKey])) throw bad(`"${capabilitiesKey}" must be an object`);
  const client = meta[clientKey];
  if (
    client !== undefined &&
    !(isObject(client) && typeof client.name === 'string' && typeof client.version === 'string')
  ) {
    throw bad(`"${clientKey}" must have a name and a version`);
  }
  return version;
}

/** Nothing we serve changes while a client listens, so the subscription is acknowledged as empty, and ends. */
function listen(id: RequestId, params: JsonObject): Reply {
  if (!isObject(params.notifications))
    throw new RpcError(400, codes.invalidParams, '"notifications" must be an object');
  const meta = { 'io.modelcontextprotocol/subscriptionId': id };
  const acknowledged = {
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications: {}, _meta: meta },
  };
  const end = resultText(id, JSON.stringify({ resultType: 'complete', _meta: meta }));
  return { status: 200, stream: true, body: `data: ${JSON.stringify(acknowledged)}\n\ndata: ${end}\n\n` };
}

function checkLegacyVersion(message: Message, headers: RequestHeaders): void {
  const version = headerValue(headers, 'mcp-protocol-version');
  if (version === undefined || message.method === 'initialize' || (revisions as readonly string[]).includes(version))
    return;
  throw new RpcError(400, codes.invalidRequest, `MCP-Protocol-Version must be one of ${revisions.slice(1).join(', ')}`);
}

function answerLegacy(server: McpServer, message: Message, context: MessageContext): MaybePromise<string | Pieces> {
  const { method, params } = message;
  const id = message.id as RequestId;
  switch (method) {
    case 'initialize':
      return resultText(id, legacyResults.initialize(server, negotiated(params.protocolVersion)));
    case 'ping':
      return resultText(id, '{}');
    case 'tools/list':
      checkCursor(params);
      return resultPieces(id, legacyResults.tools(server));
    case 'tools/call':
      return server.call(toolCall(context, params, checkCall(server, params), 'legacy')).then(
        (result) => resultPieces(id, legacyResults.call(result)),
        atChangedServer(context, (now, next) => answerLegacy(now, message, next)),
      );
    default:
      throw new RpcError(
        200,
        codes.methodNotFound,
        `method ${JSON.stringify(method.slice(0, 100))} does not exist here`,
      );
  }
}

/** The requested revision if it has the handshake, else our newest that has it. */
function negotiated(requested: unknown): Revision {
  const legacy = revisions.slice(1);
  return legacy.find((revision) => revision === requested) ?? newestLegacyRevision;
}

/** The whole list fits on one page, so no cursor was ever issued. Some clients ask for the first page with null. */
function checkCursor(params: JsonObject): void {
  if (params.cursor !== undefined && params.cursor !== null)
    throw new RpcError(200, codes.invalidParams, '"cursor" was not given out by this server');
}

type Called = Pick<ToolCall, 'name' | 'args'>;

/** Written by hand, because spreading three objects into one takes several times as long. */
function toolCall(
  { headers, requestId, bytesIn, ownOrigin, onGone, admission }: MessageContext,
  params: JsonObject,
  called: Called,
  era: Era,
): ToolCall {
  const { traceparent, tracestate } = traceContext(headers, params._meta);
  const { name, args } = called;
  const revision = headerValue(headers, 'mcp-protocol-version');
  return {
    name,
    args,
    era,
    traceparent,
    tracestate,
    headers,
    requestId,
    bytesIn,
    revision,
    ownOrigin,
    onGone,
    admission,
  };
}

function unknownTool(server: McpServer, name: string): string {
  return `there is no tool ${JSON.stringify(name.slice(0, 100))}${nearestOrAll(name, server.toolNames, newGuesses())}`;
}

function checkCall(server: McpServer, params: JsonObject): Called {
  const { name } = params;
  if (typeof name !== 'string') throw new RpcError(200, codes.invalidParams, '"name" must be a string');
  if (!server.mirrored(name)) throw new RpcError(200, codes.invalidParams, unknownTool(server, name));
  const args = params.arguments ?? {};
  if (!isObject(args)) throw new RpcError(200, codes.invalidParams, '"arguments" must be an object');
  return { name, args };
}

const traceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const tracestatePattern = /^[\x20-\x7e]{1,512}$/;

/** W3C trace context from `_meta` (SEP-414), or else from the headers; invalid values are dropped. */
function traceContext(
  headers: RequestHeaders,
  meta: unknown,
): { traceparent: string | undefined; tracestate: string | undefined } {
  const fields = typeof meta === 'object' && meta !== null ? (meta as Record<string, unknown>) : {};
  const fromMeta = fields.traceparent;
  const traceparent = fromMeta ?? headerValue(headers, 'traceparent');
  if (typeof traceparent !== 'string' || !traceparentPattern.test(traceparent))
    return { traceparent: undefined, tracestate: undefined };
  const state = fromMeta === undefined ? headerValue(headers, 'tracestate') : fields.tracestate;
  return { traceparent, tracestate: typeof state === 'string' && tracestatePattern.test(state) ? state : undefined };
}

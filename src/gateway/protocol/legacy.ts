import { headerValue } from '../../domain/credentials/credential.ts';
import { type McpServer, newestLegacyRevision, type Revision, revisions } from '../../domain/mcp.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { AppError, Unauthenticated } from '../../errors.ts';
import {
  accepted,
  batchPieces,
  callResult,
  checkCall,
  checkCursor,
  codes,
  errorText,
  instructionsField,
  isModern,
  isObject,
  isResponse,
  lengthOfAnswer,
  type Message,
  type MessageContext,
  noMethod,
  type Pieces,
  type Reply,
  type RequestId,
  RpcError,
  readableId,
  resultPieces,
  toMessage,
  toolCall,
} from './json-rpc.ts';

// The stateful generation: revisions with a handshake, up to 2025-11-25. They are identical except for batches, which
// only 2025-03-26 has.

export const maxBatch = 100;
/**
 * Maximum total length of a batch's responses, in characters, because short messages can request long responses. Later
 * messages are not processed.
 */
export const maxBatchLength = 2 * 1024 * 1024;
const longBatch =
  'not processed: the responses to the earlier messages of this batch have reached the size limit; send this message in its own request';

/** Handles a single request. @throws RpcError, and any error of a call */
export async function legacyReply(server: McpServer, message: Message, context: MessageContext): Promise<Reply> {
  const version = headerValue(context.headers, 'mcp-protocol-version');
  if (version !== undefined && message.method !== 'initialize' && !(revisions as readonly string[]).includes(version)) {
    const allowed = `MCP-Protocol-Version must be one of ${revisions.slice(1).join(', ')}`;
    throw new RpcError(400, codes.invalidRequest, allowed);
  }
  const body = await answerLegacy(server, message, context);
  return { status: 200, body, isList: message.method === 'tools/list' };
}

async function answerLegacy(server: McpServer, message: Message, context: MessageContext): Promise<string | Pieces> {
  const { method, params } = message;
  const id = message.id as RequestId;
  switch (method) {
    case 'initialize':
      return resultPieces(id, initialized(server, negotiated(params.protocolVersion)));
    case 'ping':
      return resultPieces(id, '{}');
    case 'tools/list':
      checkCursor(params);
      return resultPieces(id, ['{"tools":', server.tools(), '}']);
    case 'tools/call': {
      const result = await server.call(toolCall(context, params, checkCall(server, params), 'legacy'));
      return resultPieces(id, callResult(result, false, ''));
    }
    default:
      throw noMethod(200, method);
  }
}

function initialized(server: McpServer, revision: string): string {
  const about = `"capabilities":{"tools":{}},"serverInfo":${server.info}${instructionsField(server)}`;
  return `{"protocolVersion":"${revision}",${about}}`;
}

/** Returns the requested revision if it has the handshake, else the newest revision that has it. */
function negotiated(requested: unknown): Revision {
  const legacy = revisions.slice(1);
  return legacy.find((revision) => revision === requested) ?? newestLegacyRevision;
}

/** Handles a batch. Arrays are messages only in 2025-03-26. Each element gets its own response (JSON-RPC 2.0, 6). */
export async function answerBatch(
  server: McpServer,
  posted: readonly unknown[],
  context: MessageContext,
): Promise<Reply> {
  const version = headerValue(context.headers, 'mcp-protocol-version');
  const refused = (why: string) => new RpcError(400, codes.invalidRequest, why);
  if (version !== undefined && version !== '2025-03-26') throw refused('this revision has no batches');
  if (posted.length === 0 || posted.length > maxBatch) throw refused(`a batch has 1 to ${maxBatch} messages`);
  if (posted.some(isModern)) throw refused('a request with a protocol version in _meta cannot be part of a batch');
  if (posted.some((item) => isObject(item) && item.method === 'initialize'))
    throw refused('initialize cannot be part of a batch');
  const answers: (string | Pieces)[] = [];
  let length = 0;
  for (const [index, item] of posted.entries()) {
    if (isResponse(item)) continue;
    // Each message may take as long as a request, and a call that is refused never yields to the event loop.
    await nextTurn();
    const inBatch = { ...context, requestId: `${context.requestId}-${index}` };
    const answer = await answerInBatch(server, item, inBatch, { count: answers.length, length });
    if (answer === undefined) continue;
    length += lengthOfAnswer(answer);
    answers.push(answer);
  }
  if (answers.length === 0) return accepted;
  const isList = posted.some((item) => isObject(item) && item.method === 'tools/list');
  return { status: 200, body: batchPieces(answers), isList };
}

/**
 * Handles one element of a batch. Returns undefined for a notification. `before` counts the responses so far.
 * `admitted` is the server that was authorized for the batch as a whole.
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
    // The calls of a batch can take minutes, in which the credential may be revoked.
    const server = before.count === 0 ? admitted : await context.admission.again();
    return await answerLegacy(server, message, context);
  } catch (error) {
    if (error instanceof RpcError) return failed(error.code, error.message);
    // A refused call must not discard the other responses.
    if (error instanceof AppError) return failed(error.status, error.message);
    // A credential that is revoked in the middle of the batch must not discard them either. The next request tells the
    // agent to log in again.
    if (error instanceof Unauthenticated && before.count > 0) return failed(error.status, error.message);
    throw error;
  }
}

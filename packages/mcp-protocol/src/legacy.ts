import { getHeaderValue } from '@toolhost/credentials/credential';
import { AppError, Unauthenticated } from '@toolhost/errors/errors';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import {
  accepted,
  checkCursor,
  completeReply,
  createToolCall,
  errorCodes,
  formatError,
  formatInstructionsField,
  formatToolResult,
  getBodyLength,
  getEchoableId,
  isObject,
  isResponse,
  isStatelessMessage,
  type JsonChunks,
  joinBatch,
  type Message,
  type MessageContext,
  type PendingCall,
  parseToolRequest,
  type Reply,
  type RequestId,
  RpcError,
  toMessage,
  toResultMessage,
  toUnknownMethodError,
} from './json-rpc.ts';
import { type McpServer, newestStatefulRevision, type Revision, revisions } from './mcp.ts';

// The stateful generation: revisions with a handshake, up to 2025-11-25. They are identical except for batches, which
// only 2025-03-26 has.

export const maxBatchMessages = 100;
/**
 * Maximum total length of a batch's responses, in characters, because short messages can request long responses. Later
 * messages are not processed.
 */
export const maxBatchLength = 2 * 1024 * 1024;
const batchTooLongMessage =
  'not processed: the responses to the earlier messages of this batch have reached the size limit; send this message in its own request';

/** Handles a single request. A call is returned for the server to run. @throws RpcError */
export function handleStatefulRequest(
  server: McpServer,
  message: Message,
  context: MessageContext,
): Reply | PendingCall {
  const version = getHeaderValue(context.headers, 'mcp-protocol-version');
  if (version !== undefined && message.method !== 'initialize' && !(revisions as readonly string[]).includes(version)) {
    const allowed = `MCP-Protocol-Version must be one of ${revisions.slice(1).join(', ')}`;
    throw new RpcError(400, errorCodes.invalidRequest, allowed);
  }
  return handleMethod(server, message, context);
}

function handleMethod(server: McpServer, message: Message, context: MessageContext): Reply | PendingCall {
  const { method, params } = message;
  const id = message.id as RequestId;
  switch (method) {
    case 'initialize': {
      const result = formatInitializeResult(server, negotiateRevision(params.protocolVersion));
      return { status: 200, body: toResultMessage(id, result) };
    }
    case 'ping':
      return { status: 200, body: toResultMessage(id, '{}') };
    case 'tools/list':
      checkCursor(params);
      return { status: 200, body: toResultMessage(id, ['{"tools":', server.getToolsJson(), '}']), isList: true };
    case 'tools/call':
      return {
        toolCall: createToolCall(context, params, parseToolRequest(server, params), 'stateful'),
        toReply: (result) => ({ status: 200, body: toResultMessage(id, formatToolResult(result, false, '')) }),
      };
    default:
      throw toUnknownMethodError(200, method);
  }
}

function formatInitializeResult(server: McpServer, revision: string): string {
  const fields = `"capabilities":{"tools":{}},"serverInfo":${server.info}${formatInstructionsField(server)}`;
  return `{"protocolVersion":"${revision}",${fields}}`;
}

/** Returns the requested revision if it has the handshake, else the newest revision that has it. */
function negotiateRevision(requested: unknown): Revision {
  const statefulRevisions = revisions.slice(1);
  return statefulRevisions.find((revision) => revision === requested) ?? newestStatefulRevision;
}

/** Handles a batch. Arrays are messages only in 2025-03-26. Each element gets its own response (JSON-RPC 2.0, 6). */
export async function handleBatch(
  server: McpServer,
  messages: readonly unknown[],
  context: MessageContext,
): Promise<Reply> {
  const version = getHeaderValue(context.headers, 'mcp-protocol-version');
  const toRefusal = (reason: string) => new RpcError(400, errorCodes.invalidRequest, reason);
  if (version !== undefined && version !== '2025-03-26') throw toRefusal('this revision has no batches');
  if (messages.length === 0 || messages.length > maxBatchMessages)
    throw toRefusal(`a batch has 1 to ${maxBatchMessages} messages`);
  if (messages.some(isStatelessMessage))
    throw toRefusal('a request with a protocol version in _meta cannot be part of a batch');
  if (messages.some((item) => isObject(item) && item.method === 'initialize'))
    throw toRefusal('initialize cannot be part of a batch');
  const responses: (string | JsonChunks)[] = [];
  let length = 0;
  for (const [index, item] of messages.entries()) {
    if (isResponse(item)) continue;
    // Each message may take as long as a request, and a call that is refused never yields to the event loop.
    await yieldToEventLoop();
    const itemContext = { ...context, requestId: `${context.requestId}-${index}` };
    const response = await handleBatchItem(server, item, itemContext, { count: responses.length, length });
    if (response === undefined) continue;
    length += getBodyLength(response);
    responses.push(response);
  }
  if (responses.length === 0) return accepted;
  const isList = messages.some((item) => isObject(item) && item.method === 'tools/list');
  return { status: 200, body: joinBatch(responses), isList };
}

/**
 * Handles one element of a batch. Returns undefined for a notification. `processed` counts the responses so far.
 * `authorizedServer` is the server that was authorized for the batch as a whole.
 */
async function handleBatchItem(
  authorizedServer: McpServer,
  item: unknown,
  context: MessageContext,
  processed: { count: number; length: number },
): Promise<string | JsonChunks | undefined> {
  const formatFailure = (code: number, message: string) => formatError(getEchoableId(item) ?? null, code, message);
  try {
    const message = toMessage(item);
    if (message.id === undefined) return undefined;
    if (processed.length > maxBatchLength) return formatFailure(errorCodes.invalidRequest, batchTooLongMessage);
    // The calls of a batch can take minutes, in which the credential may be revoked.
    const server = processed.count === 0 ? authorizedServer : await context.authorization.refresh();
    const { body } = await completeReply(server, handleMethod(server, message, context));
    return body;
  } catch (error) {
    if (error instanceof RpcError) return formatFailure(error.code, error.message);
    // A refused call must not discard the other responses.
    if (error instanceof AppError) return formatFailure(error.status, error.message);
    // A credential that is revoked in the middle of the batch must not discard them either. The next request tells the
    // agent to log in again.
    if (error instanceof Unauthenticated && processed.count > 0) return formatFailure(error.status, error.message);
    throw error;
  }
}

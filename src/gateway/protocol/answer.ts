import { headerValue } from '../../domain/credentials/credential.ts';
import { type McpServer, modernRevision } from '../../domain/mcp.ts';
import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import { modernReply } from './2026-07-28.ts';
import {
  accepted,
  codes,
  isModern,
  isResponse,
  type MessageContext,
  type Reply,
  RpcError,
  toMessage,
} from './json-rpc.ts';
import { answerBatch, legacyReply } from './legacy.ts';

/**
 * Answers what was posted (MCP, transports). Each message says by itself which revision it is of ("Backward Compatibility"
 * of basic/versioning), and nothing is remembered from one to the next.
 * @throws RpcError with the status and code of MCP 2026-07-28, in its promise or at once, and what a call throws
 */
export function answer(server: McpServer, posted: unknown, context: MessageContext): MaybePromise<Reply> {
  if (Array.isArray(posted)) return answerBatch(server, posted, context);
  const modern = isModern(posted);
  const claimsModern = modern || (headerValue(context.headers, 'mcp-protocol-version') ?? '') >= modernRevision;
  if (isResponse(posted)) {
    if (claimsModern) throw new RpcError(400, codes.invalidRequest, 'responses must not be posted');
    return accepted;
  }
  const message = toMessage(posted);
  if (message.id === undefined) return accepted;
  return claimsModern ? modernReply(server, message, context, modern) : legacyReply(server, message, context);
}

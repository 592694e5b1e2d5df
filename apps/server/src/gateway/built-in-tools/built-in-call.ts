import type { ToolCall, ToolResult } from '@toolhost/mcp-protocol/mcp';
import { CallFrame } from '../call/call.ts';
import { endCall, takeSlots, toFailedResult } from '../call/call-frame.ts';
import type { CallToolDeps } from '../call/call-tool.ts';
import { recheckAccess } from '../call/send-request.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';

export type BuiltInCall = { server: HostedServer; caller: Caller; toolCall: ToolCall };

/**
 * Calls a built-in tool, which the service itself adds to a server. The call counts against the limits and is recorded
 * like any other.
 * @throws AppError tooMany, or unavailable if the service is overloaded
 * @throws Unauthenticated, AppError as `callTool`, after a wait
 */
export async function callBuiltInTool(
  { server, caller, toolCall }: BuiltInCall,
  deps: CallToolDeps,
  execute: () => Promise<ToolResult>,
): Promise<ToolResult> {
  const frame = new CallFrame(server, caller, toolCall, deps);
  let result: ToolResult | undefined;
  try {
    const waiting = takeSlots(frame, deps.limits);
    if (waiting) await waiting;
    if (toolCall.authorization.isStale()) await recheckAccess(toolCall, server);
    result = await execute();
    return result;
  } catch (error) {
    result = toFailedResult(frame, error, false);
    return result;
  } finally {
    deps.record(endCall(frame, result, performance.now() - frame.startedClock, deps));
  }
}

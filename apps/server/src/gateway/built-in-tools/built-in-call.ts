import { type Outcome, ToolFailure } from '@toolhost/errors/errors';
import { type ToolCall, type ToolResult, toTextResult } from '@toolhost/mcp-protocol/mcp';
import { toCallRecord } from '../call/call.ts';
import { getOutcome, getRecordedReason } from '../call/call-failure.ts';
import type { CallToolDeps } from '../call/call-tool.ts';
import { recheckAccess } from '../call/send-request.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import type { Slots } from '../limits/limits.ts';

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
  const startedAt = deps.now();
  const startedClock = performance.now();
  const span = deps.trace?.(server.slug, toolCall);
  let outcome: Outcome = 'ok';
  let reason: string | undefined;
  let waitMs: number | undefined;
  let slots: Slots | undefined;
  let result: ToolResult | undefined;
  try {
    const onDisconnect = toolCall.generation === 'stateless' ? toolCall.onDisconnect : undefined;
    const slotsOrPromise = deps.limits.enter(server, caller, onDisconnect);
    slots = slotsOrPromise instanceof Promise ? await slotsOrPromise : slotsOrPromise;
    waitMs = performance.now() - startedClock;
    if (toolCall.authorization.isStale()) await recheckAccess(toolCall, server);
    result = await execute();
    return result;
  } catch (error) {
    outcome = getOutcome(error, false);
    reason = getRecordedReason(error, {});
    if (!(error instanceof ToolFailure)) throw error;
    result = toTextResult(error.message, true);
    return result;
  } finally {
    const totalMs = performance.now() - startedClock;
    if (slots) deps.limits.leave(slots, caller);
    span?.end(outcome);
    deps.observe(server.access, toolCall.generation, { outcome, waitMs, upstreamMs: undefined }, totalMs);
    deps.record(toCallRecord({ server, caller, toolCall, startedAt, outcome, reason }, result, totalMs));
  }
}

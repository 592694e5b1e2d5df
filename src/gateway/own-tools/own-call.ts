import { type ToolCall, type ToolResult, textResult } from '../../domain/mcp.ts';
import { type Outcome, ToolFailure } from '../../errors.ts';
import { callRecord } from '../call/call.ts';
import { outcomeOfError, recordedReason } from '../call/call-failure.ts';
import type { CallToolParts } from '../call/call-tool.ts';
import { admitAgain } from '../call/send-request.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import type { Slots } from '../limits/limits.ts';

export type OwnCall = { server: HostedServer; caller: Caller; asked: ToolCall };

/**
 * Calls a built-in tool, which the service itself adds to a server. The call counts against the limits and is recorded
 * like any other.
 * @throws AppError tooMany, or unavailable if the service is overloaded
 * @throws Unauthenticated, AppError as `callTool`, after a wait
 */
export async function callOwnTool(
  { server, caller, asked }: OwnCall,
  parts: CallToolParts,
  answer: () => Promise<ToolResult>,
): Promise<ToolResult> {
  const startedAt = parts.now();
  const startedClock = performance.now();
  const span = parts.trace?.(server.slug, asked);
  let outcome: Outcome = 'ok';
  let reason: string | undefined;
  let waitMs: number | undefined;
  let slots: Slots | undefined;
  let result: ToolResult | undefined;
  try {
    const onGone = asked.era === 'modern' ? asked.onGone : undefined;
    const entered = parts.limits.enter(server, caller, onGone);
    slots = entered instanceof Promise ? await entered : entered;
    waitMs = performance.now() - startedClock;
    if (asked.admission.isOld()) await admitAgain(asked, server);
    result = await answer();
    return result;
  } catch (error) {
    outcome = outcomeOfError(error, false);
    reason = recordedReason(error, {});
    if (!(error instanceof ToolFailure)) throw error;
    result = textResult(error.message, true);
    return result;
  } finally {
    const totalMs = performance.now() - startedClock;
    if (slots) parts.limits.leave(slots, caller);
    span?.end(outcome);
    parts.observe(server.access, asked.era, { outcome, waitMs, upstreamMs: undefined }, totalMs);
    parts.record(callRecord({ server, caller, asked, startedAt, outcome, reason }, result, totalMs));
  }
}

import { ToolFailure } from '@toolhost/errors/errors';
import { type ToolResult, toTextResult } from '@toolhost/mcp-protocol/mcp';
import type { ObserveCall } from '../../call-observation.ts';
import type { CallRow } from '../../store/schema.ts';
import type { Limits, Slots } from '../limits/limits.ts';
import { type CallFrame, toCallRecord } from './call.ts';
import { getOutcome, getRecordedReason } from './call-failure.ts';

/**
 * Takes the slots of a call. Returns a promise only if it has to wait.
 * @throws AppError tooMany or unavailable; ToolFailure cancelled
 */
export function takeSlots(frame: CallFrame, limits: Limits): Promise<void> | undefined {
  const slots = limits.enter(frame.server, frame.caller, frame.onDisconnect);
  if (slots instanceof Promise) return waitForSlots(frame, slots);
  frame.slots = slots;
  frame.waitMs = 0;
  return undefined;
}

async function waitForSlots(frame: CallFrame, slots: Promise<Slots>): Promise<void> {
  frame.slots = await slots;
  frame.waitMs = performance.now() - frame.startedClock;
}

/** Records the failure of a call. Returns the result for the model. @throws any error that is not a ToolFailure */
export function toFailedResult(frame: CallFrame, error: unknown, isSent: boolean): ToolResult {
  frame.outcome = getOutcome(error, isSent);
  frame.reason = getRecordedReason(error, frame);
  if (!(error instanceof ToolFailure)) throw error;
  return toTextResult(error.message, true);
}

/** Returns the slots of a call, reports its end to metrics and traces, and returns its record. */
export function endCall(
  frame: CallFrame,
  result: ToolResult | undefined,
  totalMs: number,
  { limits, observe }: { limits: Limits; observe: ObserveCall },
): CallRow {
  if (frame.slots) limits.leave(frame.slots, frame.caller);
  observe(frame.server.access, frame.toolCall.generation, frame, totalMs);
  frame.span?.end(frame.outcome);
  return toCallRecord(frame, result, totalMs);
}

import type { Outcome } from '@toolhost/errors/errors';
import type { ProtocolGeneration, ToolCall } from '@toolhost/mcp-protocol/mcp';
import type { Access } from '@toolhost/tool-config/server-wide';

/** Events of a call that metrics and tracing receive. */

/**
 * Times in milliseconds, not rounded. `waitMs` is undefined for a call that never got a slot, and `upstreamMs` for a
 * call that was not sent.
 */
export type CallTimes = { outcome: Outcome; waitMs: number | undefined; upstreamMs: number | undefined };

export type ObserveCall = (access: Access, generation: ProtocolGeneration, times: CallTimes, totalMs: number) => void;

/** A call in a trace. */
export type CallSpan = {
  /** Starts the span of a request to the upstream. */
  startRequest(method: string, origin: string): RequestSpan;
  end(outcome: Outcome): void;
};

/** One request to the upstream in a trace. Path and query are omitted, because they may contain arguments. */
export type RequestSpan = {
  /** W3C trace context to send with the request. */
  traceparent: string;
  end(result: { status: number } | { failure: string }): void;
};

export type TraceCall = (slug: string, call: ToolCall) => CallSpan;

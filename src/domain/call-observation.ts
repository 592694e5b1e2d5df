import type { Outcome } from '../errors.ts';
import type { Access } from './config/server-wide.ts';
import type { Era, ToolCall } from './mcp.ts';

/** The events of a call that metrics and tracing receive. */

/**
 * Milliseconds, not rounded. `waitMs` is undefined for a call that never got a slot, `upstreamMs` for one that was not
 * sent.
 */
export type CallTimes = { outcome: Outcome; waitMs: number | undefined; upstreamMs: number | undefined };

export type ObserveCall = (access: Access, era: Era, times: CallTimes, totalMs: number) => void;

/** A call as part of a trace. */
export type CallSpan = {
  /** A request to the upstream begins. */
  request(method: string, origin: string): RequestSpan;
  end(outcome: Outcome): void;
};

/** One request to the upstream as part of a trace. Path and query are left out, because they may hold arguments. */
export type RequestSpan = {
  /** W3C trace context to send with the request. */
  traceparent: string;
  end(answer: { status: number } | { failure: string }): void;
};

export type TraceCall = (slug: string, call: ToolCall) => CallSpan;

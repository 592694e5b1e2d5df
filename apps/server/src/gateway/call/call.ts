import { Buffer } from 'node:buffer';
import { performance } from 'node:perf_hooks';
import type { Outcome } from '@toolhost/errors/errors';
import type { MemoryBudget, MemoryReservation } from '@toolhost/limits/memory-budget';
import type { ToolCall, ToolResult } from '@toolhost/mcp-protocol/mcp';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import type { UpstreamRequest } from '@toolhost/tool-config/request/upstream-request';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import type { CallSpan, TraceCall } from '../../call-observation.ts';
import { callIdPrefix } from '../../store/calls/call-writer.ts';
import type { CallRow } from '../../store/schema.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer, HostedTool } from '../hosted/hosted-server.ts';
import type { Slots } from '../limits/limits.ts';
import { estimateResultTokens } from '../response/json-response.ts';
import type { ServiceTokens, Signing } from './call-credentials.ts';

/**
 * The request of a call, with a digest of its credentials. The digest decides which connections may carry the request.
 */
export type CallRequest = { request: UpstreamRequest; credentialHash: string };

/** Dependencies of a frame. */
type FrameDeps = {
  trace?: TraceCall | undefined;
  /** Returns epoch ms. */
  now: () => number;
};

/**
 * One `tools/call`, also of a built-in tool: the caller, the slots that it holds, and the outcome so far. Its fields are
 * only declared, because the constructor sets all of them.
 */
export class CallFrame {
  declare readonly server: HostedServer;
  declare readonly caller: Caller;
  declare readonly toolCall: ToolCall;
  /**
   * Registers a function to run when the client disconnects. Undefined for a stateful client, whose disconnect cancels
   * nothing (MCP 2025-11-25, transports).
   */
  declare readonly onDisconnect: ToolCall['onDisconnect'] | undefined;
  /** Start time, in epoch ms. */
  declare readonly startedAt: number;
  /** Start time, in ms of `performance.now()`. */
  declare readonly startedClock: number;
  declare readonly span: CallSpan | undefined;
  /** Slots that the call holds. */
  declare slots: Slots | undefined;
  declare outcome: Outcome;
  /** Failure reason for the call record. Undefined if the call succeeded. */
  declare reason: string | undefined;
  /** Host and port of the upstream. Undefined if no request was built. */
  declare host: string | undefined;
  /** The last response of the upstream. */
  declare response: UpstreamResponse | undefined;
  /** Number of requests that were sent. */
  declare requests: number;
  /** Time that the call waited for its slots, in ms. Undefined if it never got them. */
  declare waitMs: number | undefined;
  /** Time that the upstream took, in ms. Undefined if nothing was sent. */
  declare upstreamMs: number | undefined;

  constructor(server: HostedServer, caller: Caller, toolCall: ToolCall, { trace, now }: FrameDeps) {
    this.server = server;
    this.caller = caller;
    this.toolCall = toolCall;
    this.onDisconnect = toolCall.generation === 'stateless' ? toolCall.onDisconnect : undefined;
    this.startedAt = now();
    this.startedClock = performance.now();
    this.span = trace?.(server.slug, toolCall);
    this.slots = undefined;
    this.outcome = 'ok';
    this.reason = undefined;
    this.host = undefined;
    this.response = undefined;
    this.requests = 0;
    this.waitMs = undefined;
    this.upstreamMs = undefined;
  }
}

/** A `tools/call` that sends a request: its frame, the tool, the request, and the response. */
export class Call extends CallFrame {
  declare readonly tool: HostedTool;
  /** Memory reservation for its arguments and its response. */
  declare readonly reservation: MemoryReservation;
  /** Tokens that the service obtained itself. Undefined for a tool that needs none. */
  declare serviceTokens: ServiceTokens | undefined;
  /** Keys that sign the request. Undefined unless the request is signed. */
  declare signing: Signing | undefined;
  /** The caller's token, and all other credentials that were sent. */
  declare readonly sensitive: string[];
  /** Names of the person's values that were sent. Undefined if there are none. */
  declare sentValues: string[] | undefined;
  /** Arguments in the request. Undefined if they were invalid. */
  declare args: Arguments | undefined;
  /**
   * Lines for the result about arguments that were passed and not sent. Undefined if the arguments were valid without
   * coercion.
   */
  declare omissionLines: readonly string[] | undefined;
  /** The last request that was sent, excluding redirects. */
  declare request: CallRequest | undefined;
  /** Time at which its request was sent, in ms of `performance.now()`. Undefined if nothing was sent. */
  declare sentClock: number | undefined;

  constructor(
    server: HostedServer,
    tool: HostedTool,
    caller: Caller,
    toolCall: ToolCall,
    deps: FrameDeps & { memory: MemoryBudget },
  ) {
    super(server, caller, toolCall, deps);
    this.tool = tool;
    this.reservation = deps.memory.reserve(server.workspaceId, caller.network);
    this.serviceTokens = undefined;
    this.signing = undefined;
    this.sensitive = caller.token === undefined ? [] : [caller.token];
    this.sentValues = undefined;
    this.args = undefined;
    this.omissionLines = undefined;
    this.request = undefined;
    this.sentClock = undefined;
  }
}

/** The fields of a call that its record needs. */
export type RecordedCall = Pick<Call, 'server' | 'caller' | 'startedAt' | 'outcome'> &
  Partial<Pick<Call, 'host' | 'upstreamMs' | 'reason' | 'requests'>> & {
    toolCall: Pick<ToolCall, 'name' | 'requestId' | 'bytesIn'>;
    response?: Pick<UpstreamResponse, 'status'> | undefined;
  };

/** Creates the record of a call that ended after `totalMs`. */
export function toCallRecord(call: RecordedCall, result: ToolResult | undefined, totalMs: number): CallRow {
  const { server, caller, toolCall, upstreamMs, requests = 0 } = call;
  return {
    id: `${callIdPrefix}${toolCall.requestId}`,
    workspace_id: server.workspaceId,
    server_id: server.id,
    slug: server.slug,
    tool: toolCall.name,
    started_at: call.startedAt,
    caller_kind: caller.kind,
    key_id: caller.keyId ?? null,
    upstream_host: call.host ?? null,
    upstream_status: call.response?.status ?? null,
    outcome: call.outcome,
    duration_ms: Math.round(totalMs),
    upstream_ms: upstreamMs === undefined ? null : Math.round(upstreamMs),
    bytes_in: toolCall.bytesIn,
    bytes_out: result ? Buffer.byteLength(result.content) + Buffer.byteLength(result.structured ?? '') : 0,
    reason: call.reason ?? null,
    estimated_tokens: result ? (result.tokens ?? estimateResultTokens(result)) : null,
    view: server.view?.name ?? null,
    model: null,
    upstream_requests: requests > 1 ? requests : null,
  };
}

/** Returns true if a call is captured: if captures are enabled for its server, or if it is a try-out. */
export function isCallCaptured({ caller, server, startedAt }: Call): boolean {
  return caller.kind === 'try_out' || startedAt < (server.captureUntil ?? 0);
}

/** Returns true if captures are enabled for calls to a server that start at `now`. */
export function isCapturing(server: HostedServer, now: number): boolean {
  return now < (server.captureUntil ?? 0);
}

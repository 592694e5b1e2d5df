import { Buffer } from 'node:buffer';
import { performance } from 'node:perf_hooks';
import type { CallSpan } from '../../domain/call-observation.ts';
import type { ToolCall, ToolResult } from '../../domain/mcp.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { UpstreamRequest } from '../../domain/request/upstream-request.ts';
import type { Held } from '../../domain/work/memory-budget.ts';
import type { Outcome } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import { callIdPrefix } from '../../store/calls/call-writer.ts';
import type { CallRow } from '../../store/schema.ts';
import { tokensOfResult } from '../answer/json-answer.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer, HostedTool } from '../hosted/hosted-server.ts';
import type { OwnTokens, Signing } from './credentials-of-call.ts';

/** The request of a call, and a digest of its credentials, which decides which connections may carry it. */
export type CallRequest = { request: UpstreamRequest; credentialHash: string };

/** One `tools/call` in the gateway: the caller, the tool, the request, and the outcome so far. */
export type Call = {
  readonly server: HostedServer;
  readonly tool: HostedTool;
  readonly caller: Caller;
  readonly asked: ToolCall;
  /**
   * Registers a function to run when the client disconnects. Undefined for a legacy client: its disconnecting cancels
   * nothing (MCP 2025-11-25, transports).
   */
  readonly onGone: ToolCall['onGone'] | undefined;
  /** Epoch ms. */
  readonly startedAt: number;
  /** The same moment in ms of `performance.now()`. */
  readonly startedClock: number;
  readonly span: CallSpan | undefined;
  /** The memory of its arguments and of its answer. */
  readonly held: Held;
  /** Tokens that the service got for itself; undefined for a tool that needs none. */
  ownTokens: OwnTokens | undefined;
  /** The keys that sign the request; undefined unless it is signed. */
  signing: Signing | undefined;
  /** The token of the caller, and the other credentials that were sent. */
  readonly sensitive: string[];
  outcome: Outcome;
  /** Why the call failed, as its record keeps it; undefined for one that succeeded. */
  reason: string | undefined;
  /** The arguments in the request; undefined when they were not valid. */
  args: Arguments | undefined;
  /** Lines for its result about arguments that were given and not sent; undefined when they fit without a check. */
  leftOut: readonly string[] | undefined;
  /** The request that was sent last, of those that the tool describes. */
  request: CallRequest | undefined;
  /** Host and port of the upstream; undefined when no request was built. */
  host: string | undefined;
  /** The last answer of the upstream. */
  answer: Answer | undefined;
  /** Requests that were sent. */
  requests: number;
  /** How long the call waited for its slots, in ms; undefined when it never got them. */
  waitMs: number | undefined;
  /** When its request was sent, in ms of `performance.now()`; undefined when nothing was sent. */
  sentClock: number | undefined;
  /** How long the upstream took, in ms; undefined when nothing was sent. */
  upstreamMs: number | undefined;
};

/** The inputs of a new call. */
export type NewCall = Pick<Call, 'server' | 'tool' | 'caller' | 'asked' | 'startedAt' | 'span' | 'held'>;

export function beginCall({ server, tool, caller, asked, startedAt, span, held }: NewCall): Call {
  return {
    server,
    tool,
    caller,
    asked,
    onGone: asked.era === 'modern' ? asked.onGone : undefined,
    startedAt,
    startedClock: performance.now(),
    span,
    held,
    ownTokens: undefined,
    signing: undefined,
    sensitive: caller.token === undefined ? [] : [caller.token],
    outcome: 'ok',
    reason: undefined,
    args: undefined,
    leftOut: undefined,
    request: undefined,
    host: undefined,
    answer: undefined,
    requests: 0,
    waitMs: undefined,
    sentClock: undefined,
    upstreamMs: undefined,
  };
}

/** The part of a call that its record is made of. A call that the service answers itself has no upstream. */
export type RecordedCall = Pick<Call, 'server' | 'caller' | 'startedAt' | 'outcome'> &
  Partial<Pick<Call, 'host' | 'upstreamMs' | 'reason' | 'requests'>> & {
    asked: Pick<ToolCall, 'name' | 'requestId' | 'bytesIn'>;
    answer?: Pick<Answer, 'status'> | undefined;
  };

/** The record of a call that has ended after `totalMs`. */
export function callRecord(call: RecordedCall, result: ToolResult | undefined, totalMs: number): CallRow {
  const { server, caller, asked, upstreamMs, requests = 0 } = call;
  return {
    id: `${callIdPrefix}${asked.requestId}`,
    workspace_id: server.workspaceId,
    server_id: server.id,
    slug: server.slug,
    tool: asked.name,
    started_at: call.startedAt,
    caller_kind: caller.kind,
    key_id: caller.keyId ?? null,
    upstream_host: call.host ?? null,
    upstream_status: call.answer?.status ?? null,
    outcome: call.outcome,
    duration_ms: Math.round(totalMs),
    upstream_ms: upstreamMs === undefined ? null : Math.round(upstreamMs),
    bytes_in: asked.bytesIn,
    bytes_out: result ? Buffer.byteLength(result.content) + Buffer.byteLength(result.structured ?? '') : 0,
    reason: call.reason ?? null,
    estimated_tokens: result ? (result.tokens ?? tokensOfResult(result)) : null,
    view: server.view?.name ?? null,
    model: null,
    upstream_requests: requests > 1 ? requests : null,
  };
}

/** Whether a call is captured: where the owner of its server has turned captures on, and when it is only tried out. */
export function isCallCaptured({ caller, server, startedAt }: Call): boolean {
  return caller.kind === 'try_out' || startedAt < (server.captureUntil ?? 0);
}

/** Whether the owner of a server has turned on captures for calls that begin now. */
export function isCapturing(server: HostedServer, now: number): boolean {
  return now < (server.captureUntil ?? 0);
}

import { performance } from 'node:perf_hooks';
import type { CallSpan } from '../../domain/call-observation.ts';
import type { ToolCall } from '../../domain/mcp.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { UpstreamRequest } from '../../domain/request/upstream-request.ts';
import type { Held } from '../../domain/work/memory-budget.ts';
import type { Outcome } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import type { Caller } from '../callers/caller.ts';
import type { OwnTokens } from '../credentials/own-tokens.ts';
import type { Signing } from '../credentials/sign-request.ts';
import type { HostedServer, HostedTool } from '../hosted/hosted-server.ts';

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
  /** The request that was sent last, of those that the tool describes. */
  request: CallRequest | undefined;
  /** Host and port of the upstream; undefined when no request was built. */
  host: string | undefined;
  /** The last answer of the upstream. */
  answer: Answer | undefined;
  /** How long the call waited for its slots, in ms; undefined when it never got them. */
  waitMs: number | undefined;
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
    request: undefined,
    host: undefined,
    answer: undefined,
    waitMs: undefined,
    upstreamMs: undefined,
  };
}

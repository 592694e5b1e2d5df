import type { CallSpan, ObserveCall, TraceCall } from '../domain/call-sight.ts';
import type { MaybePromise } from '../domain/maybe-promise.ts';
import { type ToolCall, type ToolResult, textResult } from '../domain/mcp.ts';
import { nextTurn } from '../domain/next-turn.ts';
import type { Arguments } from '../domain/request-template.ts';
import { TooMuchWork } from '../domain/steps.ts';
import { AppError, isUnavailable, OutboundError, type Outcome, ToolFailure, Unauthenticated } from '../errors.ts';
import type { Answer, OutboundDoor } from '../outbound/door.ts';
import { StoreFault } from '../store/faults.ts';
import type { CallRow } from '../store/schema.ts';
import type { Caller } from './caller.ts';
import { captureDocument, isCapturing } from './capture.ts';
import type { HostedServer, HostedTool } from './hosted-server.ts';
import type { Limits } from './limits.ts';
import { prepareArguments } from './prepare-arguments.ts';
import { contentTypeOf, isLongAnswer, readAnswer } from './read-answer.ts';
import { requestOf, send, toToolFailure } from './send-request.ts';
import { checkOnThread, readOnThread, type ThreadWork } from './thread-work.ts';

export type CallToolParts = {
  door: OutboundDoor;
  limits: Limits;
  threads: ThreadWork;
  /** `capture` is the JSON text of a `Capture`, where the server captures. */
  record: (row: CallRow, capture?: string) => void;
  observe: ObserveCall;
  /** Undefined unless traces are exported. */
  trace?: TraceCall | undefined;
  /** Epoch milliseconds. */
  now: () => number;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/** What a call leaves behind besides its result. */
type Trail = {
  outcome: Outcome;
  host: string | undefined;
  status: number | undefined;
  /** Whether the upstream has accepted a credential that was not known before. */
  isNewlyAccepted: boolean;
  waitMs: number | undefined;
  upstreamMs: number | undefined;
  span: CallSpan | undefined;
  answer: Answer | undefined;
  /** What the request was built from; undefined when the arguments did not fit. */
  args: Arguments | undefined;
  /** The credentials that were sent. */
  sensitive: string[];
};

/**
 * One `tools/call`: validate, build, send, read. Whatever the model should read comes back as a result.
 * @throws AppError tooMany, or unavailable when the service is overloaded
 * @throws Unauthenticated when the upstream no longer takes a token that the caller must renew
 */
export async function callTool(
  server: HostedServer,
  caller: Caller,
  call: ToolCall,
  parts: CallToolParts,
): Promise<ToolResult> {
  const tool = server.tool(call.name);
  if (!tool) return textResult(`there is no tool ${JSON.stringify(call.name)}`, true);
  const startedAt = parts.now();
  const clock = performance.now();
  const trail: Trail = {
    outcome: 'ok',
    host: undefined,
    status: undefined,
    isNewlyAccepted: false,
    waitMs: undefined,
    upstreamMs: undefined,
    span: parts.trace?.(server.slug, call),
    answer: undefined,
    args: undefined,
    sensitive: [],
  };
  let result: ToolResult | undefined;
  try {
    const onGone = call.era === 'modern' ? call.onGone : undefined;
    caller.known?.judge(caller, tool);
    const entered = parts.limits.enter(server, caller.id, onGone, caller);
    const slots = entered instanceof Promise ? await entered : entered;
    trail.waitMs = performance.now() - clock;
    try {
      result = await exchange(server, tool, caller, call, parts, trail);
    } finally {
      if (trail.isNewlyAccepted) parts.limits.noteKnown(slots);
      parts.limits.leave(slots);
    }
    return result;
  } catch (error) {
    trail.outcome = outcomeOfError(error);
    if (!(error instanceof ToolFailure)) throw error;
    result = textResult(error.message, true);
    return result;
  } finally {
    const totalMs = performance.now() - clock;
    parts.observe(server.access, call.era, trail, totalMs);
    trail.span?.end(trail.outcome);
    const row = recordOf(server, caller, call, trail, startedAt, totalMs, result);
    if (isCapturing(server, startedAt)) parts.record(row, captureOf(server, tool, call, trail, parts));
    else parts.record(row);
  }
}

function outcomeOfError(error: unknown): Outcome {
  if (error instanceof ToolFailure) return error.outcome;
  if (error instanceof StoreFault) return 'unavailable';
  if (error instanceof AppError) return 'limited';
  return error instanceof Unauthenticated ? 'upstream_status' : 'internal';
}

/** A request longer than this is read, checked and built in turns of its own. */
const longBytes = 64 * 1024;

/** @throws ToolFailure with the outcome of the call */
async function exchange(
  server: HostedServer,
  tool: HostedTool,
  caller: Caller,
  call: ToolCall,
  parts: CallToolParts,
  trail: Trail,
): Promise<ToolResult> {
  const { sensitive } = trail;
  if (call.bytesIn > longBytes) await nextTurn();
  const of = { workspaceId: server.workspaceId, onGone: call.era === 'modern' ? call.onGone : undefined };
  const prepared = prepareArguments(tool, call.args, (long) => checkOnThread(parts.threads, tool, long, of));
  const args = prepared instanceof Promise ? await prepared : prepared;
  trail.args = args;
  if (call.bytesIn > longBytes) await nextTurn();
  const request = requestOf(server, tool, caller, args, sensitive);
  trail.host = tool.request.url.host;
  const started = performance.now();
  try {
    let answer = await send(server, tool, call, request, parts.door, trail.span);
    const renewed = answer.status === 401 && caller.renew ? await caller.renew() : undefined;
    if (renewed !== undefined) {
      // The refused request did nothing, so it may be sent once more with a fresh token.
      const fresh = { ...caller, token: () => renewed };
      const again = requestOf(server, tool, fresh, args, sensitive);
      answer = await send(server, tool, call, again, parts.door, trail.span);
      if (answer.status === 401) await caller.giveUp?.(renewed);
    }
    trail.upstreamMs = performance.now() - started;
    trail.status = answer.status;
    trail.answer = answer;
    if (caller.known?.noteAnswer(caller, tool, request.request, answer.status)) {
      trail.isNewlyAccepted = true;
      caller.askLogin?.().catch((error: unknown) => parts.onUnexpected(error, call.requestId));
    }
    if (answer.status === 401 && server.access === 'passthrough') {
      throw new Unauthenticated('invalid', 'the upstream no longer accepts this token; log in again');
    }
    const result = read(answer, server, tool, sensitive, (long) => readOnThread(parts.threads, tool, long, of));
    return result instanceof Promise ? await result : result;
  } catch (error) {
    if (error instanceof OutboundError) throw toToolFailure(error);
    if (error instanceof ToolFailure || error instanceof Unauthenticated || isUnavailable(error)) throw error;
    parts.onUnexpected(error, call.requestId);
    throw new ToolFailure('internal', `the call failed inside the service; request ${call.requestId}`);
  } finally {
    trail.upstreamMs ??= performance.now() - started;
  }
}

/** Reads a long answer, or one that takes long to check, on a thread. */
function read(
  answer: Answer,
  server: HostedServer,
  tool: HostedTool,
  sensitive: readonly string[],
  readLong: (answer: { body: Uint8Array; contentType: string }) => Promise<ToolResult>,
): MaybePromise<ToolResult> {
  try {
    if (!isLongAnswer(answer, tool.reading)) return readAnswer(answer, tool.reading, sensitive);
  } catch (error) {
    if (!(error instanceof TooMuchWork)) throw error;
  }
  // The bytes are handed over, so what a capture needs is kept apart.
  const body = server.captureUntil === undefined ? answer.body : Buffer.from(answer.body);
  return readLong({ body, contentType: contentTypeOf(answer.headers) });
}

/** A call must not fail because it is looked at. */
function captureOf(
  server: HostedServer,
  tool: HostedTool,
  call: ToolCall,
  trail: Trail,
  parts: CallToolParts,
): string | undefined {
  try {
    return captureDocument(server, tool, call.args, trail);
  } catch (error) {
    parts.onUnexpected(error, call.requestId);
    return undefined;
  }
}

function recordOf(
  server: HostedServer,
  caller: Caller,
  call: ToolCall,
  trail: Trail,
  startedAt: number,
  durationMs: number,
  result: ToolResult | undefined,
): CallRow {
  return {
    id: `call_${call.requestId}`,
    workspace_id: server.workspaceId,
    server_id: server.id,
    slug: server.slug,
    tool: call.name,
    started_at: startedAt,
    caller_kind: caller.kind,
    key_id: caller.keyId ?? null,
    upstream_host: trail.host ?? null,
    upstream_status: trail.status ?? null,
    outcome: trail.outcome,
    duration_ms: Math.round(durationMs),
    upstream_ms: trail.upstreamMs === undefined ? null : Math.round(trail.upstreamMs),
    bytes_in: call.bytesIn,
    bytes_out: result ? Buffer.byteLength(result.content) + Buffer.byteLength(result.structured ?? '') : 0,
    request_id: call.requestId,
  };
}

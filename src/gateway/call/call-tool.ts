import { performance } from 'node:perf_hooks';
import type { ObserveCall, TraceCall } from '../../domain/call-observation.ts';
import { redactor } from '../../domain/credentials/redactor.ts';
import type { ClientTokens } from '../../domain/credentials/token-request.ts';
import { type ToolCall, type ToolResult, textResult } from '../../domain/mcp.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import type { MaybePromise } from '../../domain/work/maybe-promise.ts';
import type { MemoryBudget } from '../../domain/work/memory-budget.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { runningNow } from '../../domain/work/running-time.ts';
import { stepsOnLoop, TooMuchWork } from '../../domain/work/steps.ts';
import { ToolFailure, Unauthenticated } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import type { CallRow } from '../../store/schema.ts';
import { admitAgain } from '../admission.ts';
import { headOf } from '../answer/answer-head.ts';
import type { CutResult } from '../answer/fit-answer.ts';
import { isLongAnswer, readAnswer } from '../answer/read-answer.ts';
import { prepareArguments } from '../arguments/prepare-arguments.ts';
import type { Caller } from '../callers/caller.ts';
import { getOwnTokens } from '../credentials/own-tokens.ts';
import { attachFiles } from '../files/attach-files.ts';
import type { FileAddresses } from '../files/file-addresses.ts';
import { takeGivenFiles } from '../files/given-files.ts';
import type { KeptFiles } from '../files/kept-files.ts';
import { type HostedServer, refuseUnfillable } from '../hosted/hosted-server.ts';
import { holdArguments } from '../limits/call-memory.ts';
import type { Limits, Slots } from '../limits/limits.ts';
import { type AnswerRests, fitCall } from '../long-answers/answer-rests.ts';
import { beginCall, type Call } from './call.ts';
import { failureOf, outcomeOfError, recordedReason } from './call-failure.ts';
import { callRecord } from './call-record.ts';
import { captureOf, isCallCaptured } from './capture.ts';
import { type FollowParts, followRedirects, isFollowed } from './follow-redirects.ts';
import { requestOf, send } from './send-request.ts';
import { checkOnThread, jobOf, readOnThread, type ThreadWork } from './thread-work.ts';

export type CallToolParts = FollowParts & {
  limits: Limits;
  memory: MemoryBudget;
  threads: ThreadWork;
  clientTokens: ClientTokens;
  rests: AnswerRests;
  files: KeptFiles;
  fileAddresses: FileAddresses;
  /** `capture` is the JSON text of a `Capture`, where the server captures. */
  record: (row: CallRow, capture?: string) => void;
  observe: ObserveCall;
  /** Undefined unless traces are exported. */
  trace?: TraceCall | undefined;
  /** Epoch milliseconds. */
  now: () => number;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/**
 * One `tools/call`: validate, build, send, read. Failures that the model should read are returned as results.
 * @throws AppError tooMany, or unavailable when the service is overloaded or has no memory left, or when the server was
 * changed while the call waited
 * @throws Unauthenticated when the upstream no longer takes a token that the caller must renew, or when the credential
 * ended while the call waited
 */
export async function callTool(
  server: HostedServer,
  caller: Caller,
  asked: ToolCall,
  parts: CallToolParts,
): Promise<ToolResult> {
  const tool = server.tool(asked.name);
  if (!tool) return textResult(`there is no tool ${JSON.stringify(asked.name)}`, true);
  const span = parts.trace?.(server.slug, asked);
  const held = parts.memory.hold(server.workspaceId, caller.network);
  const call = beginCall({ server, tool, caller, asked, startedAt: parts.now(), span, held });
  let slots: Slots | undefined;
  let result: ToolResult | undefined;
  try {
    holdArguments(call);
    const entered = parts.limits.enter(server, caller, call.onGone);
    const mustWait = entered instanceof Promise;
    slots = mustWait ? await entered : entered;
    call.waitMs = mustWait ? performance.now() - call.startedClock : 0;
    const read = await run(call, parts);
    const fitted = tool.reading.mostCharacters === undefined ? read : await fitCall(call, read, parts.rests);
    result = fitted.files ? await attachFiles(call, fitted, parts) : fitted;
    return result;
  } catch (error) {
    call.outcome = outcomeOfError(error, call.request !== undefined);
    call.reason = recordedReason(error, call);
    if (!(error instanceof ToolFailure)) throw error;
    result = textResult(error.message, true);
    if (tool.reading.mostCharacters !== undefined) result = await fitCall(call, result, parts.rests);
    return result;
  } finally {
    if (slots) parts.limits.leave(slots, caller);
    const captured = finish(call, result, parts);
    if (captured) await captured;
    held.end();
  }
}

/** Reports the outcome of a call to metrics, traces and records. */
function finish(call: Call, result: ToolResult | undefined, parts: CallToolParts): Promise<void> | undefined {
  const totalMs = performance.now() - call.startedClock;
  parts.observe(call.server.access, call.asked.era, call, totalMs);
  call.span?.end(call.outcome);
  const row = callRecord(call, result, totalMs);
  if (isCallCaptured(call)) {
    return captureOf(call, result, parts).then((capture) => parts.record(row, capture));
  }
  parts.record(row);
  return undefined;
}

/** The arguments of a longer request, in bytes, are checked on a thread. */
const longBytes = 64 * 1024;

/** @throws ToolFailure with the outcome of the call */
async function run(call: Call, parts: CallToolParts): Promise<CutResult> {
  const { tool, asked } = call;
  refuseUnfillable(tool);
  const isLong = asked.bytesIn > longBytes;
  const checkLong = (long: Arguments) => checkOnThread(parts.threads, tool, long, jobOf(call));
  const prepared = prepareArguments(tool, asked.args, checkLong, isLong);
  const args = prepared instanceof Promise ? await prepared : prepared;
  call.args = args;
  if (isLong) await nextTurn();
  if (tool.clientCredentials.length > 0) call.ownTokens = await getOwnTokens(call, parts.clientTokens);
  const ready = tool.fileArguments.length === 0 ? args : await takeGivenFiles(call, args, parts);
  if (asked.admission.isOld()) await admitAgain(asked, call.server);
  const request = requestOf(call, ready);
  call.host = tool.request.url.host;
  const sentClock = performance.now();
  const until = runningNow() + tool.timeoutMs;
  try {
    const answer = await send(call, request, ready, parts);
    call.upstreamMs = performance.now() - sentClock;
    noteAnswer(call, answer);
    const last = isFollowed(call, answer) ? await followRedirects(call, answer, { sentClock, until }, parts) : answer;
    const result = readCall(call, last, parts.threads);
    return result instanceof Promise ? await result : result;
  } catch (error) {
    throw failureOf(error, call, parts.onUnexpected);
  } finally {
    call.upstreamMs ??= performance.now() - sentClock;
  }
}

/**
 * Learns from an answer whether the credential of the caller is good.
 * @throws Unauthenticated when the upstream no longer takes a token that the caller must renew
 */
function noteAnswer(call: Call, answer: Answer): void {
  const { caller, server } = call;
  call.answer = answer;
  caller.known?.noteAnswer(caller, server.workspaceId, answer.status);
  if (answer.status === 401 && server.access === 'passthrough') {
    throw new Unauthenticated('invalid', 'the upstream no longer accepts this token; log in again');
  }
}

/** Reads the answer to a call: on a thread when it is long, or takes long to check. */
function readCall(call: Call, answer: Answer, threads: ThreadWork): MaybePromise<CutResult> {
  const { tool, sensitive } = call;
  const { era } = call.asked;
  if (isLongAnswer(answer, tool.reading)) return leaveToThread(call, answer, threads);
  try {
    return readAnswer(answer, tool.reading, { sensitive, era }, stepsOnLoop);
  } catch (error) {
    if (error instanceof TooMuchWork) return leaveToThread(call, answer, threads);
    throw error;
  }
}

function leaveToThread(call: Call, answer: Answer, threads: ThreadWork): Promise<CutResult> {
  const { tool, sensitive } = call;
  // The bytes are transferred, so the part that a capture needs is copied first.
  const body = isCallCaptured(call) ? Buffer.from(answer.body) : answer.body;
  const head = headOf(answer, tool.reading, { sensitive, era: call.asked.era }, redactor(sensitive));
  return readOnThread(threads, tool, { body, head }, jobOf(call));
}

import { performance } from 'node:perf_hooks';
import type { ObserveCall, TraceCall } from '../../domain/call-observation.ts';
import type { ClientTokens } from '../../domain/credentials/token-request.ts';
import { type ToolCall, type ToolResult, textResult, withLines } from '../../domain/mcp.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import { type MemoryBudget, uncountedBytes } from '../../domain/work/memory-budget.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { AppError, ToolFailure, Unauthenticated } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import type { CallRow } from '../../store/schema.ts';
import { headOf } from '../answer/answer-head.ts';
import type { CutResult } from '../answer/fit-answer.ts';
import { readAnswer } from '../answer/read-answer.ts';
import { leftOutLines } from '../arguments/left-out.ts';
import { prepareArguments } from '../arguments/prepare-arguments.ts';
import type { Caller } from '../callers/caller.ts';
import { attachFiles, type FileAddresses } from '../files/attach-files.ts';
import { takeGivenFiles } from '../files/given-files.ts';
import type { KeptFiles } from '../files/kept-files.ts';
import { type HostedServer, unfillable } from '../hosted/hosted-server.ts';
import type { Limits, Slots } from '../limits/limits.ts';
import { type AnswerRests, fitCall } from '../long-answers/answer-rests.ts';
import { beginCall, type Call, callRecord, isCallCaptured } from './call.ts';
import { failureOf, outcomeOfError, recordedReason } from './call-failure.ts';
import { captureOf } from './capture.ts';
import { getOwnTokens } from './credentials-of-call.ts';
import { type FollowParts, followRedirects } from './follow-redirects.ts';
import { admitAgain, requestOf, send, sendRenewed } from './send-request.ts';
import { checkOnThread, jobOf, readOnThread, type ThreadWork } from './thread-work.ts';

export type CallToolParts = FollowParts & {
  limits: Limits;
  memory: MemoryBudget;
  threads: ThreadWork;
  clientTokens: ClientTokens;
  rests: AnswerRests;
  files: KeptFiles;
  fileAddresses: FileAddresses;
  /** Stores a call record. `capture` is the JSON text of a `Capture`, if the server captures. */
  record: (row: CallRow, capture?: string) => void;
  observe: ObserveCall;
  /** Undefined unless traces are exported. */
  trace?: TraceCall | undefined;
  /** Returns epoch ms. */
  now: () => number;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/** Minimum size of a request whose arguments are checked on a thread, in bytes. */
const longBytes = 64 * 1024;
/** Memory that a running call takes per byte of its request, in bytes. Many short names take the most. */
const bytesOfByte = 8;

/**
 * Runs one `tools/call`, from its limits to its record. Failures that the model should read are returned as results.
 * @throws AppError tooMany, or unavailable if the service is overloaded or out of memory, or if the server was changed
 * while the call waited
 * @throws Unauthenticated if the upstream no longer accepts a token that the caller must renew, or if the credential
 * was revoked while the call waited
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
    if (asked.bytesIn > uncountedBytes && !held.add(asked.bytesIn * bytesOfByte)) throw noMemory();
    const entered = parts.limits.enter(server, caller, call.onGone);
    const mustWait = entered instanceof Promise;
    slots = mustWait ? await entered : entered;
    call.waitMs = mustWait ? performance.now() - call.startedClock : 0;
    result = await makeCall(call, parts);
    if (call.leftOut) result = withLines(result, call.leftOut);
    return result;
  } catch (thrown) {
    const error = call.request ? failureOf(thrown, call, parts.onUnexpected) : thrown;
    call.outcome = outcomeOfError(error, call.request !== undefined);
    call.reason = recordedReason(error, call);
    if (!(error instanceof ToolFailure)) throw error;
    result = textResult(error.message, true);
    if (tool.reading.mostCharacters !== undefined) result = await fitCall(call, result, parts.rests);
    if (call.leftOut) result = withLines(result, call.leftOut);
    return result;
  } finally {
    const totalMs = performance.now() - call.startedClock;
    if (slots) parts.limits.leave(slots, caller);
    const recorded = record(call, result, totalMs, parts);
    if (recorded) await recorded;
    held.end();
  }
}

function noMemory(): AppError {
  return new AppError(
    'unavailable',
    'The service has no memory left for the arguments of this call, because the workspaces of this owner have used their share. The call was not made; retry in 5 s with fewer large calls in parallel.',
    { retryAfterS: 5 },
  );
}

/**
 * Runs a call within its limits: checks the arguments, sends the request, and turns the upstream's response into the
 * result for the agent.
 */
async function makeCall(call: Call, parts: CallToolParts): Promise<ToolResult> {
  const { tool, asked, server } = call;
  if (tool.refusal !== undefined) throw unfillable(tool.refusal);
  const isLong = asked.bytesIn > longBytes;
  const checkLong = (long: Arguments) => checkOnThread(parts.threads, tool, long, jobOf(call));
  const prepared = prepareArguments(tool, asked.args, checkLong, isLong);
  let args = prepared instanceof Promise ? await prepared : prepared;
  call.args = args;
  // Arguments that are valid without coercion are all sent.
  if (prepared instanceof Promise) call.leftOut = leftOutLines(asked.args, args);
  if (isLong) await nextTurn();
  if (tool.clientCredentials.length > 0) call.ownTokens = await getOwnTokens(call, parts.clientTokens);
  if (tool.fileArguments.length > 0) args = await takeGivenFiles(call, args, parts);
  if (asked.admission.isOld()) await admitAgain(asked, server);

  const request = requestOf(call, args);
  call.host = tool.request.url.host;
  call.sentClock = performance.now();
  let answer = await send(call, request, parts.http);
  if (answer.status === 401) answer = await sendRenewed(call, answer, args, parts);
  else call.caller.login?.onTaken?.();
  call.upstreamMs = performance.now() - call.sentClock;
  noteAnswer(call, answer);
  if (tool.followsRedirects && answer.status >= 300) answer = await followRedirects(call, answer, parts);

  const client = { sensitive: call.sensitive, era: asked.era };
  let read = readAnswer(answer, tool.reading, client) ?? (await readLong(call, answer, parts.threads));
  if (tool.reading.mostCharacters !== undefined) read = await fitCall(call, read, parts.rests);
  return read.files ? attachFiles(call, read, parts) : read;
}

/**
 * Learns from a response if the caller's credential is valid.
 * @throws Unauthenticated if the upstream no longer accepts a token that the caller must renew
 */
function noteAnswer(call: Call, answer: Answer): void {
  const { caller, server } = call;
  call.answer = answer;
  caller.known?.noteAnswer(caller, server.workspaceId, answer.status);
  if (answer.status === 401 && server.access === 'passthrough') {
    throw new Unauthenticated('invalid', 'the upstream no longer accepts this token; log in again');
  }
}

/** Processes a response on a thread, because it is long or takes long to check. @throws ToolFailure */
function readLong(call: Call, answer: Answer, threads: ThreadWork): Promise<CutResult> {
  const { tool, sensitive } = call;
  // The thread takes over the memory of the body, so a capture needs its own copy.
  const body = isCallCaptured(call) ? Buffer.from(answer.body) : answer.body;
  const head = headOf(answer, tool.reading, { sensitive, era: call.asked.era });
  return readOnThread(threads, tool, { body, head }, jobOf(call));
}

/** Reports the end of a call to metrics, traces, and records. Returns a promise if the call is captured. */
function record(
  call: Call,
  result: ToolResult | undefined,
  totalMs: number,
  parts: CallToolParts,
): Promise<void> | undefined {
  if (call.sentClock !== undefined) call.upstreamMs ??= call.startedClock + totalMs - call.sentClock;
  parts.observe(call.server.access, call.asked.era, call, totalMs);
  call.span?.end(call.outcome);
  const row = callRecord(call, result, totalMs);
  if (isCallCaptured(call)) return captureOf(call, result, parts).then((capture) => parts.record(row, capture));
  parts.record(row);
  return undefined;
}

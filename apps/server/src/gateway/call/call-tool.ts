import { performance } from 'node:perf_hooks';
import type { ClientTokens } from '@toolhost/credentials/token-request';
import { AppError, Unauthenticated } from '@toolhost/errors/errors';
import { type MaybePromise, yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { type MemoryBudget, minCountedBytes } from '@toolhost/limits/memory-budget';
import { releaseSlab } from '@toolhost/limits/slabs';
import { appendTextBlocks, type ToolCall, type ToolResult, toTextResult } from '@toolhost/mcp-protocol/mcp';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { noCredential } from '@toolhost/tool-config/authentication';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import type { ObserveCall, TraceCall } from '../../call-observation.ts';
import type { CallRow } from '../../store/schema.ts';
import { formatOmittedArguments } from '../arguments/omitted-arguments.ts';
import { prepareArguments } from '../arguments/prepare-arguments.ts';
import type { Caller } from '../callers/caller.ts';
import { resolveFileArguments } from '../files/argument-files.ts';
import { attachFiles, type FileUrls } from '../files/attach-files.ts';
import type { FileStore } from '../files/stored-files.ts';
import { type HostedServer, toConfigFailure } from '../hosted/hosted-server.ts';
import type { Limits } from '../limits/limits.ts';
import { type ContinuationStore, truncateCallResult } from '../long-results/continuations.ts';
import type { TruncatedResult } from '../response/fit-result.ts';
import { readResponse } from '../response/read-response.ts';
import { getResponseHead } from '../response/response-head.ts';
import { Call, type CallRequest, isCallCaptured } from './call.ts';
import { getServiceTokens } from './call-credentials.ts';
import { toReportedError } from './call-failure.ts';
import { endCall, takeSlots, toFailedResult } from './call-frame.ts';
import { createCapture } from './capture.ts';
import { followRedirects, type RedirectDeps } from './follow-redirects.ts';
import { checkPersonalHost, createRequest, recheckAccess, retryWithRenewedToken, send } from './send-request.ts';
import { challengeForScopes, type StepUpDeps } from './step-up.ts';
import { checkOnThread, readOnThread, type ThreadWork, toJobContext } from './thread-work.ts';

export type CallToolDeps = RedirectDeps &
  StepUpDeps & {
    limits: Limits;
    memory: MemoryBudget;
    threads: ThreadWork;
    clientTokens: ClientTokens;
    continuations: ContinuationStore;
    files: FileStore;
    fileUrls: FileUrls;
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
const minThreadBytes = 64 * 1024;
/** Memory that a running call takes per byte of its request, in bytes. Many short names take the most. */
const memoryPerByte = 8;

/**
 * Runs one `tools/call`, from its limits to its record. Failures that the model should read are returned as results.
 * @throws AppError tooMany, or unavailable if the service is overloaded or out of memory, or if the server was changed
 * while the call waited
 * @throws Unauthenticated if the upstream no longer accepts a token that the caller must renew, if it requires more
 * scopes than the login has, or if the credential was revoked while the call waited
 */
export async function callTool(
  server: HostedServer,
  caller: Caller,
  toolCall: ToolCall,
  deps: CallToolDeps,
): Promise<ToolResult> {
  const tool = server.getTool(toolCall.name);
  if (!tool) return toTextResult(`there is no tool ${JSON.stringify(toolCall.name)}`, true);
  const call = new Call(server, tool, caller, toolCall, deps);
  let result: ToolResult | undefined;
  try {
    if (toolCall.bytesIn > minCountedBytes && !call.reservation.grow(toolCall.bytesIn * memoryPerByte))
      throw createMemoryError();
    const waiting = takeSlots(call, deps.limits);
    if (waiting) await waiting;
    const requestOrPromise = prepareRequest(call, deps);
    const request = requestOrPromise instanceof Promise ? await requestOrPromise : requestOrPromise;
    if (tool.request.url.hostName !== undefined) checkPersonalHost(request, deps.urlProblem);
    call.host = tool.request.url.host;
    call.sentClock = performance.now();
    let response = await send(call, request, deps);
    if (response.status === 401) response = await handleRefusal(call, response, deps);
    else caller.login?.onAccepted?.();
    call.upstreamMs = performance.now() - call.sentClock;
    recordResponse(call, response);
    if (response.status === 403 && caller.kind === 'oauth') await challengeForScopes(call, response, deps);
    if (tool.followsRedirects && response.status >= 300) response = await followRedirects(call, response, deps);
    const resultOrPromise = readResult(call, response, deps);
    result = resultOrPromise instanceof Promise ? await resultOrPromise : resultOrPromise;
    if (call.omissionLines) result = appendTextBlocks(result, call.omissionLines);
    return result;
  } catch (caught) {
    const error = call.request ? toReportedError(caught, call, deps.onUnexpected) : caught;
    result = toFailedResult(call, error, call.request !== undefined);
    if (tool.responseRules.maxCharacters !== undefined)
      result = await truncateCallResult(call, result, deps.continuations);
    if (call.omissionLines) result = appendTextBlocks(result, call.omissionLines);
    return result;
  } finally {
    const recording = recordCall(call, result, deps);
    if (recording) await recording;
    call.reservation.release();
  }
}

/**
 * Handles a 401 of the upstream: sends the request once more with a renewed token if there is one. If the upstream
 * refuses that too, it has also refused the values that the person brought.
 */
async function handleRefusal(
  call: Call,
  refusedResponse: UpstreamResponse,
  deps: CallToolDeps,
): Promise<UpstreamResponse> {
  const response = await retryWithRenewedToken(call, refusedResponse, call.args as Arguments, deps);
  if (response.status === 401 && call.sentValues && !isAnonymousTool(call))
    await call.caller.person?.markRefused(call.sentValues);
  return response;
}

/** Returns true for a tool with `credential: none`, whose values of the person are not credentials. */
function isAnonymousTool({ server, tool }: Call): boolean {
  return server.config.tools.find(({ name }) => name === tool.name)?.credential === noCredential;
}

function createMemoryError(): AppError {
  return new AppError(
    'unavailable',
    'The service has no memory left for the arguments of this call, because the workspaces of this owner have used their share. The call was not made; retry in 5 s with fewer large calls in parallel.',
    { retryAfterS: 5 },
  );
}

/**
 * Checks the arguments of a call and builds its request. Returns a promise only if something takes long.
 * @throws ToolFailure
 */
function prepareRequest(call: Call, deps: CallToolDeps): MaybePromise<CallRequest> {
  const { tool, toolCall } = call;
  if (tool.configError !== undefined) throw toConfigFailure(tool.configError);
  const isLarge = toolCall.bytesIn > minThreadBytes;
  const checkLargeArguments = (longArgs: Arguments) => checkOnThread(deps.threads, tool, longArgs, toJobContext(call));
  const args = prepareArguments(tool, toolCall.args, checkLargeArguments, isLarge);
  const hasToWait =
    args instanceof Promise ||
    isLarge ||
    tool.clientCredentials.length > 0 ||
    tool.fileArguments.length > 0 ||
    toolCall.authorization.isStale();
  if (hasToWait) return prepareAfterWait(call, args, isLarge, deps);
  call.args = args;
  return createRequest(call, args);
}

async function prepareAfterWait(
  call: Call,
  argsOrPromise: MaybePromise<Arguments>,
  isLarge: boolean,
  deps: CallToolDeps,
): Promise<CallRequest> {
  const { tool, toolCall, server } = call;
  const checkedArgs = await argsOrPromise;
  call.args = checkedArgs;
  // Arguments that are valid without coercion are all sent.
  if (argsOrPromise instanceof Promise) call.omissionLines = formatOmittedArguments(toolCall.args, checkedArgs);
  if (isLarge) await yieldToEventLoop();
  if (tool.clientCredentials.length > 0) call.serviceTokens = await getServiceTokens(call, deps.clientTokens);
  const args = tool.fileArguments.length > 0 ? await resolveFileArguments(call, checkedArgs, deps) : checkedArgs;
  call.args = args;
  if (toolCall.authorization.isStale()) await recheckAccess(toolCall, server);
  return createRequest(call, args);
}

/** Turns the response into the result for the agent. Returns a promise only if something takes long. */
function readResult(call: Call, response: UpstreamResponse, deps: CallToolDeps): MaybePromise<ToolResult> {
  const { tool, sensitive, toolCall } = call;
  const result = readResponse(response, tool.responseRules, { sensitive, generation: toolCall.generation });
  if (result && !result.files && tool.responseRules.maxCharacters === undefined) {
    if (!isCallCaptured(call)) releaseBody(response, result);
    return result;
  }
  return readAfterWait(call, response, result, deps);
}

/** Releases the memory of a body that has become a result without it. Nothing can read it afterward. */
function releaseBody(response: UpstreamResponse, { content, structured }: ToolResult): void {
  const { body } = response;
  if (typeof content === 'object' && content.buffer === body.buffer) return;
  if (typeof structured === 'object' && structured.buffer === body.buffer) return;
  response.body = emptyBody;
  releaseSlab(body);
}

const emptyBody = Buffer.alloc(0);

async function readAfterWait(
  call: Call,
  response: UpstreamResponse,
  earlyResult: TruncatedResult | undefined,
  deps: CallToolDeps,
): Promise<ToolResult> {
  let result = earlyResult ?? (await readOnWorker(call, response, deps.threads));
  if (call.tool.responseRules.maxCharacters !== undefined)
    result = await truncateCallResult(call, result, deps.continuations);
  return result.files ? attachFiles(call, result, deps) : result;
}

/**
 * Records a response, and whether the upstream accepted the caller's credential.
 * @throws Unauthenticated if the upstream no longer accepts a token that the caller must renew
 */
function recordResponse(call: Call, response: UpstreamResponse): void {
  const { caller, server } = call;
  call.response = response;
  caller.verifiedCallers?.recordResponse(caller, server.workspaceId, response.status);
  if (response.status === 401 && server.access === 'passthrough') {
    throw new Unauthenticated('invalid', 'the upstream no longer accepts this token; log in again');
  }
}

/** Processes a response on a thread, because it is long or takes long to check. @throws ToolFailure */
function readOnWorker(call: Call, response: UpstreamResponse, threads: ThreadWork): Promise<TruncatedResult> {
  const { tool, sensitive } = call;
  // The thread takes over the memory of the body, so a capture needs its own copy.
  const body = isCallCaptured(call) ? Buffer.from(response.body) : response.body;
  const head = getResponseHead(response, tool.responseRules, { sensitive, generation: call.toolCall.generation });
  return readOnThread(threads, tool, { body, head }, toJobContext(call));
}

/** Ends a call and stores its record. Returns a promise if the call is captured. */
function recordCall(call: Call, result: ToolResult | undefined, deps: CallToolDeps): Promise<void> | undefined {
  const totalMs = performance.now() - call.startedClock;
  if (call.sentClock !== undefined) call.upstreamMs ??= call.startedClock + totalMs - call.sentClock;
  const row = endCall(call, result, totalMs, deps);
  if (isCallCaptured(call)) return createCapture(call, result, deps).then((capture) => deps.record(row, capture));
  deps.record(row);
  return undefined;
}

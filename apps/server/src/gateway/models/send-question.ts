import { performance } from 'node:perf_hooks';
import { AppError, OutboundError, type OutboundReason, type Outcome } from '@toolhost/errors/errors';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { parseJson, parseJsonInChunks } from '@toolhost/json/json';
import type { JsonObject } from '@toolhost/mcp-protocol/json-rpc';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import type { ModelKind, ModelQuestion, ModelReply, RecordedModel } from '../../model.ts';
import type { CallRow } from '../../store/schema.ts';
import type { ModelRequest } from '../../try-out.ts';
import { toCallRecord } from '../call/call.ts';
import { getOutcome, getRecordedReason, outcomeByReason } from '../call/call-failure.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServers } from '../hosted/hosted-servers.ts';
import { findVariant } from '../hosted/server-variants.ts';
import type { Limits, Slots } from '../limits/limits.ts';
import { anthropic } from './anthropic.ts';
import { EventStream } from './event-stream.ts';
import { gemini } from './gemini.ts';
import { formatErrorCode, type ModelApi, toObject } from './model-api.ts';
import { ModelError } from './model-error.ts';
import { SplicedJson } from './model-messages.ts';
import { ModelResponse } from './model-response.ts';
import { openai } from './openai.ts';

/**
 * Time limit for one response of a model, in ms from the request to the last token, and its maximum size in bytes, both
 * before and after decompression.
 */
export const modelTimeoutMs = 180_000;
export const maxModelResponseBytes = 4 * 1024 * 1024;
/** Number of bytes of a response that are processed before yielding to the event loop. */
const bytesPerChunk = 16 * 1024;
/** Minimum length of an event that is parsed in chunks, in characters. */
const maxSyncEventLength = 16 * 1024;
/** Maximum size of an error body that is searched for an error code, in bytes. */
const maxErrorBytes = 64 * 1024;
/** Name of a question in call records, in place of a tool name. */
const questionName = 'ask_model';

const apis: Readonly<Record<ModelKind, ModelApi>> = { anthropic, openai, gemini };

export type SendQuestionDeps = {
  servers: HostedServers;
  http: HttpClient;
  limits: Limits;
  record: (row: CallRow) => void;
  /** Returns epoch ms. */
  now: () => number;
};

/**
 * Sends one question to a model, and processes the response as it arrives. A question counts as one call in the limits
 * of its key, server, and workspace, and leaves a record, because it costs the workspace money.
 * @throws AppError invalid, unavailable, tooMany
 */
export async function sendQuestion(modelRequest: ModelRequest, deps: SendQuestionDeps): Promise<ModelReply> {
  const { question, subject, actorId } = modelRequest;
  const server = await findVariant(deps.servers, modelRequest.variant);
  const caller: Caller = {
    kind: 'playground',
    keyId: actorId,
    id: actorId,
    network: undefined,
    isVerified: true,
    limitedKeys: modelRequest.limitedKeys,
    token: undefined,
  };
  const exchange = createExchange(question);
  const startedAt = deps.now();
  const startedClock = performance.now();
  let outcome: Outcome = 'ok';
  let reason: string | undefined;
  let slots: Slots | undefined;
  const received: Received = { status: undefined, bytes: 0, response: new ModelResponse() };
  try {
    const slotsOrPromise = deps.limits.enter(server, caller);
    if (slotsOrPromise instanceof Promise) {
      slots = await slotsOrPromise;
      await modelRequest.checkActor();
    } else slots = slotsOrPromise;
    return await receiveResponse(deps.http, exchange, question, received);
  } catch (error) {
    const appError = toAppError(error, subject);
    outcome = getQuestionOutcome(error);
    reason = getRecordedReason(appError, {});
    throw appError;
  } finally {
    const totalMs = performance.now() - startedClock;
    if (slots) deps.limits.leave(slots, caller);
    const toolCall = {
      name: questionName,
      requestId: modelRequest.requestId,
      bytesIn: Buffer.byteLength(exchange.body),
    };
    const host = new URL(exchange.origin).host;
    const response = received.status === undefined ? undefined : { status: received.status };
    const callData = { server, caller, toolCall, startedAt, outcome, reason, host, response };
    const row = toCallRecord({ ...callData, upstreamMs: slots && totalMs }, undefined, totalMs);
    const { input, output } = received.response.usage;
    const model: RecordedModel = { name: question.model.name, input_tokens: input, output_tokens: output };
    deps.record({ ...row, bytes_out: received.bytes, model: JSON.stringify(model) });
  }
}

function createExchange(question: ModelQuestion) {
  const { model, workspaceId } = question;
  const json = new SplicedJson();
  const request = apis[model.kind].createRequest(question, json);
  const url = parseUrl(model.url.replace(/\/+$/, '') + request.path);
  if (!url) throw new AppError('invalid', "The model's address is not a URL. Save the model again.");
  return {
    workspaceId,
    origin: url.origin,
    credentialHash: undefined,
    path: url.pathname + url.search,
    method: 'POST' as const,
    headers: ['Content-Type', 'application/json', 'Accept', 'text/event-stream', ...request.headers],
    body: json.stringify(request.body),
    timeoutMs: modelTimeoutMs,
    limitBytes: maxModelResponseBytes,
  };
}

/** The response so far. Its tokens are recorded even if the question fails. */
type Received = { status: number | undefined; bytes: number; response: ModelResponse };

/** Sends the request and processes the response. @throws ModelError, OutboundError, AppError */
async function receiveResponse(
  http: HttpClient,
  exchange: ReturnType<typeof createExchange>,
  question: ModelQuestion,
  received: Received,
): Promise<ModelReply> {
  const queue = new ByteQueue();
  const doneController = new AbortController();
  const responsePromise = readResponse(queue, question, received);
  // Nothing more is read once the response is complete or has failed.
  const stopReading = () => doneController.abort();
  responsePromise.then(stopReading, stopReading);
  const signal = question.signal ? AbortSignal.any([question.signal, doneController.signal]) : doneController.signal;
  http
    .send({
      ...exchange,
      registerCancel: (cancel) => signal.addEventListener('abort', cancel, { once: true }),
      onHead({ status }) {
        received.status = status;
        return (chunk) => queue.add(chunk);
      },
    })
    .then(
      ({ status, body }) => {
        received.status = status;
        queue.add(body);
        queue.end();
      },
      (error: unknown) => queue.fail(error),
    );
  return responsePromise;
}

/** Buffers the bytes of a response between the HTTP client, which delivers them as they arrive, and the reader. */
class ByteQueue {
  #buffered: Buffer[] = [];
  #state: 'open' | 'ended' | { error: unknown } = 'open';
  #arrived = Promise.withResolvers<void>();

  add(chunk: Buffer): void {
    this.#buffered.push(chunk);
    this.#arrived.resolve();
  }

  end(): void {
    if (this.#state === 'open') this.#state = 'ended';
    this.#arrived.resolve();
  }

  fail(error: unknown): void {
    this.#state = { error };
    this.#arrived.resolve();
  }

  /** Yields the bytes as they arrive, in chunks between which other work can run. @throws the error of the transfer */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (;;) {
      await this.#arrived.promise;
      this.#arrived = Promise.withResolvers();
      const buffered = Buffer.concat(this.#buffered.splice(0));
      for (let offset = 0; offset < buffered.length; offset += bytesPerChunk) {
        yield buffered.subarray(offset, offset + bytesPerChunk);
        await yieldToEventLoop();
      }
      if (this.#buffered.length > 0) this.#arrived.resolve();
      else if (this.#state === 'ended') return;
      else if (this.#state !== 'open') throw this.#state.error;
    }
  }
}

/** Event that ends a stream of OpenAI and of compatible hosts. */
const doneEvent = '[DONE]';

async function readResponse(queue: ByteQueue, question: ModelQuestion, received: Received): Promise<ModelReply> {
  const stream = new EventStream();
  const { response } = received;
  const readEvent = apis[question.model.kind].createReader(response);
  const errorBody: Buffer[] = [];
  /** Returns true at the end of the stream. */
  const processEvents = async (events: string[]): Promise<boolean> => {
    const end = events.indexOf(doneEvent);
    for (const event of end < 0 ? events : events.slice(0, end)) {
      const parsed = await parseEvent(event);
      readEvent(rejectErrorEvent(parsed, question.model.key));
    }
    for (const progress of response.takeProgress()) question.onProgress(progress);
    return end >= 0;
  };
  for await (const chunk of queue) {
    const isError = received.status !== undefined && (received.status < 200 || received.status > 299);
    if (isError && received.bytes < maxErrorBytes) errorBody.push(chunk);
    received.bytes += chunk.length;
    if (!isError && (await processEvents(stream.push(chunk)))) return response.getResult();
  }
  const { status = 0 } = received;
  if (status < 200 || status > 299) throw toStatusError(status, Buffer.concat(errorBody), question.model.key);
  await processEvents(stream.end());
  return response.getResult();
}

/** Parses an event. @throws ModelError */
async function parseEvent(event: string): Promise<JsonObject> {
  try {
    return toObject(event.length > maxSyncEventLength ? await parseJsonInChunks(event) : parseJson(event));
  } catch {
    throw new ModelError('malformed', 'sent an event that is not JSON');
  }
}

/** Returns the event. @throws ModelError for an error that a host sends instead of the remainder of its response */
function rejectErrorEvent(event: JsonObject, key: string | undefined): JsonObject {
  if (event.error === undefined || event.error === null) return event;
  throw new ModelError('upstream_status', `ended its response with an error${formatErrorCode(event, key)}`);
}

function toStatusError(status: number, body: Buffer, key: string | undefined): ModelError {
  const code = formatErrorCode(parseErrorBody(body), key);
  return new ModelError('upstream_status', `responded with HTTP status ${status}${code}`, status);
}

/** Returns the error in a body, which Gemini wraps in an array. Empty if the body contains none. */
function parseErrorBody(body: Buffer): JsonObject {
  try {
    const value = parseJson(body.toString());
    return toObject(Array.isArray(value) ? value[0] : value);
  } catch {
    return {};
  }
}

/** Returns the outcome of a question for its record. */
function getQuestionOutcome(error: unknown): Outcome {
  if (error instanceof ModelError) return error.outcome;
  return error instanceof OutboundError ? outcomeByReason[error.reason] : getOutcome(error, false);
}

/** Returns the error for the caller. It contains no text of the host except a status and a code. */
function toAppError(error: unknown, subject: string): unknown {
  if (error instanceof ModelError) {
    const { status, message } = error;
    const isRequestError = status !== undefined && status >= 400 && status < 500 && status !== 429;
    return new AppError(isRequestError ? 'invalid' : 'unavailable', `${subject} ${message}.`);
  }
  if (error instanceof OutboundError)
    return new AppError('unavailable', `${subject} ${failurePredicates[error.reason]}.`);
  return error;
}

/**
 * Predicates for error messages. They omit the error's own message, which contains a host and a port that a caller may
 * not see.
 */
const failurePredicates: Readonly<Record<OutboundReason, string>> = {
  blocked: 'has an address that this service is not allowed to call',
  dns: 'was not found: its host name has no address',
  unreachable: 'cannot be reached',
  tls: 'has a TLS certificate that this service does not trust',
  reset: 'closed the connection before responding',
  truncated: 'closed the connection before its response was complete',
  malformed: 'sent a response that is not HTTP/1.1, cannot be decompressed, or has too many chunks',
  timeout: `did not finish its response within ${modelTimeoutMs / 1000} s`,
  oversize: `sent a response of more than ${maxModelResponseBytes / 1024 / 1024} MiB`,
  own_credential: 'was not called, because the question contains an API key or token of this service. Remove it',
  circuit_open: 'was not called, because it failed several times. Retry in a few seconds',
  busy: 'was interrupted, because this service is busy. Retry in a few seconds',
  no_connection: 'was not called, because this service is busy. Retry in a few seconds',
  no_memory: 'was interrupted, because this service is out of memory. Retry in a few seconds',
  stopped: 'was interrupted, because this service was paused. Retry',
  cancelled: 'was interrupted, because the client disconnected',
};

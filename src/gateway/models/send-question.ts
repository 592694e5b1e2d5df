import { performance } from 'node:perf_hooks';
import { readUrl } from '../../domain/http/read-url.ts';
import { parseJson, parseJsonInTurns } from '../../domain/json/json.ts';
import type { ModelAnswer, ModelKind, ModelQuestion, RecordedModel } from '../../domain/model.ts';
import type { AskedModel } from '../../domain/try-out.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { AppError, OutboundError, type OutboundReason, type Outcome } from '../../errors.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import type { CallRow } from '../../store/schema.ts';
import { callRecord } from '../call/call.ts';
import { outcomeOf, outcomeOfError, recordedReason } from '../call/call-failure.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServers } from '../hosted/hosted-servers.ts';
import { findServed } from '../hosted/served.ts';
import type { Limits, Slots } from '../limits/limits.ts';
import type { JsonObject } from '../protocol/json-rpc.ts';
import { anthropic } from './anthropic.ts';
import { EventStream } from './event-stream.ts';
import { gemini } from './gemini.ts';
import { errorCodeIn, type ModelApi, toObject } from './model-api.ts';
import { ModelError } from './model-error.ts';
import { SplicedJson } from './model-messages.ts';
import { ModelResponse } from './model-response.ts';
import { openai } from './openai.ts';

/**
 * Time limit for one response of a model, in ms from the request to the last token, and its maximum size in bytes, both
 * before and after decompression.
 */
export const modelTimeoutMs = 180_000;
export const maxResponseBytes = 4 * 1024 * 1024;
/** Number of bytes of a response that are processed before yielding to the event loop. */
const bytesPerTurn = 16 * 1024;
/** Minimum length of an event that is parsed in chunks, in characters. */
const longEvent = 16 * 1024;
/** Maximum size of an error body that is searched for an error code, in bytes. */
const maxErrorBytes = 64 * 1024;
/** Name of a question in call records, in place of a tool name. */
const recordedName = 'ask_model';

const apis: Readonly<Record<ModelKind, ModelApi>> = { anthropic, openai, gemini };

export type SendQuestionParts = {
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
export async function sendQuestion(asked: AskedModel, parts: SendQuestionParts): Promise<ModelAnswer> {
  const { question, subject, actorId } = asked;
  const server = await findServed(parts.servers, asked.served);
  const caller: Caller = {
    kind: 'playground',
    keyId: actorId,
    id: actorId,
    network: undefined,
    isKnown: true,
    limits: asked.limits,
    token: undefined,
  };
  const exchange = createExchange(question);
  const startedAt = parts.now();
  const startedClock = performance.now();
  let outcome: Outcome = 'ok';
  let reason: string | undefined;
  let slots: Slots | undefined;
  const received: Received = { status: undefined, bytes: 0, response: new ModelResponse() };
  try {
    const entered = parts.limits.enter(server, caller);
    if (entered instanceof Promise) {
      slots = await entered;
      await asked.checkActor();
    } else slots = entered;
    return await receive(parts.http, exchange, question, received);
  } catch (error) {
    const refusal = toAppError(error, subject);
    outcome = outcomeOfQuestion(error);
    reason = recordedReason(refusal, {});
    throw refusal;
  } finally {
    const totalMs = performance.now() - startedClock;
    if (slots) parts.limits.leave(slots, caller);
    const call = { name: recordedName, requestId: asked.requestId, bytesIn: Buffer.byteLength(exchange.body) };
    const host = new URL(exchange.origin).host;
    const response = received.status === undefined ? undefined : { status: received.status };
    const recorded = { server, caller, asked: call, startedAt, outcome, reason, host, answer: response };
    const row = callRecord({ ...recorded, upstreamMs: slots && totalMs }, undefined, totalMs);
    const { input, output } = received.response.usage;
    const model: RecordedModel = { name: question.model.name, input_tokens: input, output_tokens: output };
    parts.record({ ...row, bytes_out: received.bytes, model: JSON.stringify(model) });
  }
}

function createExchange(question: ModelQuestion) {
  const { model, workspaceId } = question;
  const json = new SplicedJson();
  const request = apis[model.kind].createRequest(question, json);
  const url = readUrl(model.url.replace(/\/+$/, '') + request.path);
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
    limitBytes: maxResponseBytes,
  };
}

/** The response so far. Its tokens are recorded even if the question fails. */
type Received = { status: number | undefined; bytes: number; response: ModelResponse };

/** Sends the request and processes the response. @throws ModelError, OutboundError, AppError */
async function receive(
  http: HttpClient,
  exchange: ReturnType<typeof createExchange>,
  question: ModelQuestion,
  received: Received,
): Promise<ModelAnswer> {
  const pieces = new Pieces();
  const left = new AbortController();
  const reading = read(pieces, question, received);
  // A response that failed or is complete is not read to its end.
  reading.then(
    () => left.abort(),
    () => left.abort(),
  );
  const signal = question.signal ? AbortSignal.any([question.signal, left.signal]) : left.signal;
  http
    .send({
      ...exchange,
      onGone: (cancel) => signal.addEventListener('abort', cancel, { once: true }),
      onHead({ status }) {
        received.status = status;
        return (piece) => pieces.add(piece);
      },
    })
    .then(
      ({ status, body }) => {
        received.status = status;
        pieces.add(body);
        pieces.end();
      },
      (error: unknown) => pieces.fail(error),
    );
  return reading;
}

/** Buffers the bytes of a response between the HTTP client, which delivers them as they arrive, and the reader. */
class Pieces {
  #waiting: Buffer[] = [];
  #end: 'open' | 'ended' | { error: unknown } = 'open';
  #arrived = Promise.withResolvers<void>();

  add(piece: Buffer): void {
    this.#waiting.push(piece);
    this.#arrived.resolve();
  }

  end(): void {
    if (this.#end === 'open') this.#end = 'ended';
    this.#arrived.resolve();
  }

  fail(error: unknown): void {
    this.#end = { error };
    this.#arrived.resolve();
  }

  /**
   * Yields the bytes that have arrived, with a turn of the event loop between the chunks. Throws the error of the
   * transfer.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (;;) {
      await this.#arrived.promise;
      this.#arrived = Promise.withResolvers();
      const all = Buffer.concat(this.#waiting.splice(0));
      for (let at = 0; at < all.length; at += bytesPerTurn) {
        yield all.subarray(at, at + bytesPerTurn);
        await nextTurn();
      }
      if (this.#waiting.length > 0) this.#arrived.resolve();
      else if (this.#end === 'ended') return;
      else if (this.#end !== 'open') throw this.#end.error;
    }
  }
}

/** Event that ends a stream of OpenAI and of compatible hosts. */
const doneEvent = '[DONE]';

async function read(pieces: Pieces, question: ModelQuestion, received: Received): Promise<ModelAnswer> {
  const stream = new EventStream();
  const { response } = received;
  const readEvent = apis[question.model.kind].createReader(response);
  const errorBody: Buffer[] = [];
  /** Returns true at the end of the stream. */
  const readAll = async (events: string[]): Promise<boolean> => {
    const end = events.indexOf(doneEvent);
    for (const event of end < 0 ? events : events.slice(0, end)) {
      const parsed = await parseEvent(event);
      readEvent(withoutError(parsed, question.model.key));
    }
    for (const progress of response.takeProgress()) question.onProgress(progress);
    return end >= 0;
  };
  for await (const piece of pieces) {
    const isError = received.status !== undefined && (received.status < 200 || received.status > 299);
    if (isError && received.bytes < maxErrorBytes) errorBody.push(piece);
    received.bytes += piece.length;
    if (!isError && (await readAll(stream.push(piece)))) return response.finished();
  }
  const { status = 0 } = received;
  if (status < 200 || status > 299) throw refusedWith(status, Buffer.concat(errorBody), question.model.key);
  await readAll(stream.end());
  return response.finished();
}

/** Parses an event. @throws ModelError */
async function parseEvent(event: string): Promise<JsonObject> {
  try {
    return toObject(event.length > longEvent ? await parseJsonInTurns(event) : parseJson(event));
  } catch {
    throw new ModelError('malformed', 'sent an event that is not JSON');
  }
}

/** Returns the event. @throws ModelError for an error that a host sends instead of the remainder of its response */
function withoutError(event: JsonObject, key: string | undefined): JsonObject {
  if (event.error === undefined || event.error === null) return event;
  throw new ModelError('upstream_status', `ended its response with an error${errorCodeIn(event, key)}`);
}

function refusedWith(status: number, body: Buffer, key: string | undefined): ModelError {
  const code = errorCodeIn(errorIn(body), key);
  return new ModelError('upstream_status', `responded with HTTP status ${status}${code}`, status);
}

/** Returns the error in a body, which Gemini wraps in an array. Empty if the body contains none. */
function errorIn(body: Buffer): JsonObject {
  try {
    const value = parseJson(body.toString());
    return toObject(Array.isArray(value) ? value[0] : value);
  } catch {
    return {};
  }
}

/** Returns the outcome of a question for its record. */
function outcomeOfQuestion(error: unknown): Outcome {
  if (error instanceof ModelError) return error.outcome;
  return error instanceof OutboundError ? outcomeOf[error.reason] : outcomeOfError(error, false);
}

/** Returns the error for the caller. It contains no text of the host except a status and a code. */
function toAppError(error: unknown, subject: string): unknown {
  if (error instanceof ModelError) {
    const { status, message } = error;
    const isRequestFault = status !== undefined && status >= 400 && status < 500 && status !== 429;
    return new AppError(isRequestFault ? 'invalid' : 'unavailable', `${subject} ${message}.`);
  }
  if (error instanceof OutboundError) return new AppError('unavailable', `${subject} ${failures[error.reason]}.`);
  return error;
}

/**
 * Predicates for error messages. They omit the error's own message, which contains a host and a port that a caller may
 * not see.
 */
const failures: Readonly<Record<OutboundReason, string>> = {
  blocked: 'has an address that this service is not allowed to call',
  dns: 'was not found: its host name has no address',
  unreachable: 'cannot be reached',
  tls: 'has a TLS certificate that this service does not trust',
  reset: 'closed the connection before responding',
  truncated: 'closed the connection before its response was complete',
  malformed: 'sent a response that is not HTTP/1.1, cannot be decompressed, or has too many chunks',
  timeout: `did not finish its response within ${modelTimeoutMs / 1000} s`,
  oversize: `sent a response of more than ${maxResponseBytes / 1024 / 1024} MiB`,
  own_credential: 'was not called, because the question contains an API key or token of this service. Remove it',
  circuit_open: 'was not called, because it failed several times. Retry in a few seconds',
  busy: 'was interrupted, because this service is busy. Retry in a few seconds',
  no_connection: 'was not called, because this service is busy. Retry in a few seconds',
  no_memory: 'was interrupted, because this service is out of memory. Retry in a few seconds',
  stopped: 'was interrupted, because this service was paused. Retry',
  cancelled: 'was interrupted, because the client disconnected',
};

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

/** Time for one response of a model, from the request to its last word, and its largest size before and after decoding. */
export const modelTimeoutMs = 180_000;
export const maxResponseBytes = 4 * 1024 * 1024;
/** Bytes of a response that are read in one turn of the event loop. */
const bytesPerTurn = 16 * 1024;
/** Events of more characters are parsed in several turns. */
const longEvent = 16 * 1024;
/** The part of an error that may hold its code. */
const maxErrorBytes = 64 * 1024;
/** Name of a question in call records, where tools have theirs. */
const recordedName = 'ask_model';

const apis: Readonly<Record<ModelKind, ModelApi>> = { anthropic, openai, gemini };

export type SendQuestionParts = {
  servers: HostedServers;
  http: HttpClient;
  limits: Limits;
  record: (row: CallRow) => void;
  /** Epoch ms. */
  now: () => number;
};

/**
 * Asks a model once, and reads its response while it arrives. A question takes one call from the limits of its key,
 * server and workspace, and leaves a record, because it costs the workspace money.
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
  if (!url) throw new AppError('invalid', 'The address of the model is not a URL. Store the model again.');
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

/** Response so far. Its tokens are recorded even if the question fails. */
type Received = { status: number | undefined; bytes: number; response: ModelResponse };

/** Sends the request and reads the response. @throws ModelError, OutboundError, AppError */
async function receive(
  http: HttpClient,
  exchange: ReturnType<typeof createExchange>,
  question: ModelQuestion,
  received: Received,
): Promise<ModelAnswer> {
  const pieces = new Pieces();
  const left = new AbortController();
  const reading = read(pieces, question, received);
  // A response that failed or has said everything is not read to its end.
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

/** The bytes of a response between the HTTP client, which gives them when they arrive, and the reader. */
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

  /** Gives what has arrived, each time in a turn of the event loop of its own. Throws the error of the transfer. */
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

/** What ends a stream of OpenAI, and of hosts that are compatible with it. */
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

/** @throws ModelError */
async function parseEvent(event: string): Promise<JsonObject> {
  try {
    return toObject(event.length > longEvent ? await parseJsonInTurns(event) : parseJson(event));
  } catch {
    throw new ModelError('malformed', 'sent an event that is not JSON');
  }
}

/** @throws ModelError for the error that a host sends instead of the rest of its response */
function withoutError(event: JsonObject, key: string | undefined): JsonObject {
  if (event.error === undefined || event.error === null) return event;
  throw new ModelError('upstream_status', `ended its response with an error${errorCodeIn(event, key)}`);
}

function refusedWith(status: number, body: Buffer, key: string | undefined): ModelError {
  const code = errorCodeIn(errorIn(body), key);
  return new ModelError('upstream_status', `answered with HTTP status ${status}${code}`, status);
}

/** The error that a body is; Gemini puts it into a list. Empty where the body is none. */
function errorIn(body: Buffer): JsonObject {
  try {
    const value = parseJson(body.toString());
    return toObject(Array.isArray(value) ? value[0] : value);
  } catch {
    return {};
  }
}

/** Outcome of a question in its record. */
function outcomeOfQuestion(error: unknown): Outcome {
  if (error instanceof ModelError) return error.outcome;
  return error instanceof OutboundError ? outcomeOf[error.reason] : outcomeOfError(error, false);
}

/** The error for the caller. It says nothing that the host wrote but a status and a code. */
function toAppError(error: unknown, subject: string): unknown {
  if (error instanceof ModelError) {
    const { status, message } = error;
    const isRequestFault = status !== undefined && status >= 400 && status < 500 && status !== 429;
    return new AppError(isRequestFault ? 'invalid' : 'unavailable', `${subject} ${message}.`);
  }
  if (error instanceof OutboundError) return new AppError('unavailable', `${subject} ${failures[error.reason]}.`);
  return error;
}

/** Sentences without the message of the error, which names a host and a port that a caller may not see. */
const failures: Readonly<Record<OutboundReason, string>> = {
  blocked: 'has an address that this service may not call',
  dns: 'was not found: its name has no address',
  unreachable: 'cannot be reached',
  tls: 'has no certificate that this service trusts',
  reset: 'closed the connection before its response',
  truncated: 'closed the connection in the middle of its response',
  malformed: 'sent a response that is not HTTP/1.1, or that does not decompress, or that comes in too many pieces',
  timeout: `did not finish its response within ${modelTimeoutMs / 1000} s`,
  oversize: `sent a response of more than ${maxResponseBytes / 1024 / 1024} MiB`,
  own_credential: 'was not asked: the question holds an API key or a token of this service. Remove it',
  circuit_open: 'was not asked, because it failed several times. Retry in a few seconds',
  busy: 'was not asked to the end, because this service is busy. Retry in a few seconds',
  no_connection: 'was not asked, because this service is busy. Retry in a few seconds',
  no_memory: 'was not asked to the end, because this service has no memory left. Retry in a few seconds',
  stopped: 'was not asked to the end, because this service was paused. Retry',
  cancelled: 'was not asked to the end, because the client disconnected',
};

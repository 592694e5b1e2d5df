import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { createLazyLoader } from '@toolhost/errors/yield-to-event-loop';
import { checkBody, configurationLimits, eventLoopLimits } from '@toolhost/json/body-limits';
import { parseJson } from '@toolhost/json/json';
import { exceedsLimits } from '@toolhost/json/json-scan';
import type { MemoryReservation } from '@toolhost/limits/memory-budget';
import { createPreemptibleSlots } from '@toolhost/limits/preemptible-slots';
import { authorizationMaxAgeMs } from '@toolhost/mcp-protocol/mcp';
import { parseMediaType } from '@toolhost/tool-config/http/headers';
import { type Context, Hono, type Context as HonoContext } from 'hono';
import type { UnreadResponses } from '../http/incoming.ts';
import { createErrorResponse } from '../http/problem.ts';
import { checkBodyHeaders, hasBody, readBody } from '../http/read-body.ts';
import { operationList } from '../operations/index.ts';
import type { Actor, Operation, OperationOutput, Stream } from '../operations/operation.ts';
import { checkScope, getBodyLimits, runOperation, type ServingRunner } from '../operations/run-operation.ts';
import { buildUrl, routes } from '../routes.ts';
import { generateOpenApiDocument, getSuccessStatus, linesType } from './openapi.ts';

/** Context of a request. `isAdmitted` is set once the actor is authenticated. */
export type RestEnv = { Bindings: HttpBindings; Variables: { isAdmitted?: boolean } };
type Env = RestEnv;

export type RestDeps = {
  runner: ServingRunner;
  /** @throws Unauthenticated */
  authenticate: (request: HttpBindings['incoming']) => Promise<Actor>;
  unreadResponses: UnreadResponses;
  /** Returns monotonic milliseconds. */
  clock: () => number;
  /** Returns monotonic milliseconds during which this process ran. */
  runningClock: () => number;
  baseUrl: string;
  version: string;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/** Creates `/api/v1`: every operation at its route, and the OpenAPI document. */
export function createRestApi(deps: RestDeps): Hono<Env> {
  const api = new Hono<Env>();
  const challenge = `Bearer resource_metadata="${buildUrl(deps.baseUrl, routes.apiMetadata)}"`;
  const respondWithError = (c: HonoContext<Env>, error: unknown) => {
    const response = createErrorResponse(error, getRequestId(c), deps.onUnexpected);
    if (response.status === 401) response.headers.set('WWW-Authenticate', challenge);
    return response;
  };
  api.onError((error, c) => respondWithError(c, error));
  api.notFound((c) => respondWithError(c, new AppError('notFound', 'there is nothing at this URL')));
  api.get(
    '/openapi.json',
    createDocumentHandler(() => generateOpenApiDocument(operationList, deps.baseUrl, deps.version)),
  );
  const readBodyBytes = createBodyReader(deps.runningClock);
  for (const op of operationList) {
    // Created at the first request, because the schemas of all operations take more time than calls should wait.
    let integers: ReadonlySet<string> | undefined;
    api.on(op.route.method, op.route.path.replaceAll(/\{(\w+)\}/g, ':$1'), async (c) => {
      const authenticatedAt = deps.clock();
      const authenticated = await deps.authenticate(c.env.incoming);
      c.set('isAdmitted', true);
      deps.unreadResponses.assign(c.env.outgoing, { workspaceId: authenticated.workspaceId });
      checkScope(op, authenticated);
      const reservation = deps.runner.memory.reserve(authenticated.workspaceId);
      c.env.outgoing.once('close', () => reservation.release());
      const body = await readInput(
        c.env.incoming,
        { op, actor: authenticated, readLongBody: deps.runner.readLongBody, reservation },
        readBodyBytes,
      );
      const isStale = deps.clock() - authenticatedAt > authorizationMaxAgeMs;
      const actor = isStale ? await deps.authenticate(c.env.incoming) : authenticated;
      integers ??= getIntegerInputs(op);
      const input = buildInput(c, integers, 'expected_version' in op.input.shape, body);
      const request = { actor, input, requestId: getRequestId(c) };
      const signal = op.callsModel ? createDisconnectSignal(c) : undefined;
      if (signal && c.req.header('accept') === linesType)
        return streamLines(c, {
          respondWithError,
          signal,
          trackUnreadBytes: (bytes) =>
            deps.unreadResponses.track(c.env.outgoing, bytes, { workspaceId: actor.workspaceId }),
          run: (onProgress) => runOperation(deps.runner, op, { ...request, stream: { onProgress, signal } }),
        });
      const output = await runOperation(deps.runner, op, { ...request, ...(signal && { stream: { signal } }) });
      const { version } = (output as { server?: { version?: number } }).server ?? {};
      if (version !== undefined) c.header('ETag', `"${version}"`);
      return op.file ? respondWithFile(c, op.file, output) : c.json(output, getSuccessStatus(op));
    });
  }
  return api;
}

/** Returns a signal that is aborted when the connection closes. */
function createDisconnectSignal(c: HonoContext<Env>): AbortSignal {
  const disconnected = new AbortController();
  c.env.outgoing.once('close', () => disconnected.abort());
  return disconnected.signal;
}

/**
 * Maximum number of progress bytes that may be queued for a slow client. Further progress is dropped, because the last
 * line contains everything.
 */
const maxQueuedProgressBytes = 256 * 1024;

type StreamDeps = {
  respondWithError: (c: HonoContext<Env>, error: unknown) => Response;
  /** Counts the bytes of the last line until they are read, and disconnects a client that does not read them. */
  trackUnreadBytes: (bytes: number) => void;
  run: (onProgress: NonNullable<Stream['onProgress']>) => Promise<object>;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
};

/**
 * Streams a response while it is generated, as one JSON object per line. The last line contains the complete result, or
 * the problem. A request that is refused before the first line gets an ordinary error response.
 */
function streamLines(
  c: HonoContext<Env>,
  { respondWithError, trackUnreadBytes, run, signal }: StreamDeps,
): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  let lines: ReadableStreamDefaultController<Uint8Array> | undefined;
  const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    lines = controller;
  };
  const write = (line: Uint8Array) => {
    // A proxy that buffers responses would delay the progress.
    const headers = { 'Content-Type': linesType, 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' };
    const queue = new ByteLengthQueuingStrategy({ highWaterMark: maxQueuedProgressBytes });
    if (!lines) resolve(c.body(new ReadableStream({ start }, queue), 200, headers));
    if (!signal.aborted) lines?.enqueue(line);
  };
  const toLine = (line: object) => Buffer.from(`${JSON.stringify(line)}\n`);
  const onProgress = (line: object) => {
    if (!lines || (lines.desiredSize ?? 0) > 0) write(toLine(line));
  };
  const endStream = (line: object) => {
    const lastLine = toLine(line);
    write(lastLine);
    if (signal.aborted) return;
    lines?.close();
    trackUnreadBytes(lastLine.length);
  };
  run(onProgress).then(
    (result) => endStream({ result }),
    async (error: unknown) => (lines ? endStream({ problem: await respondWithError(c, error).json() }) : reject(error)),
  );
  return promise;
}

function getRequestId(c: HonoContext<Env>): string {
  return String(c.env.outgoing.getHeader('x-request-id'));
}

function respondWithFile(
  c: HonoContext<Env>,
  file: NonNullable<Operation['file']>,
  output: OperationOutput<Operation>,
): Response {
  c.header('Content-Type', file.mediaType);
  c.header('Content-Disposition', `attachment; filename="${file.name}"`);
  return c.body(file.toText(output));
}

/** Returns the names of integer inputs. Queries and paths contain only text, so these inputs have to be converted. */
function getIntegerInputs(op: Operation): ReadonlySet<string> {
  const properties = op.inputSchema().properties as Record<string, { type?: unknown }>;
  return new Set(Object.entries(properties).flatMap(([name, schema]) => (schema.type === 'integer' ? [name] : [])));
}

/** Merges path, query, and body into one input; the path takes precedence. `If-Match` becomes `expected_version`. */
function buildInput(c: HonoContext<Env>, integers: ReadonlySet<string>, isVersioned: boolean, body: Fields): object {
  const urlParameters = { ...c.req.query(), ...c.req.param() };
  const fromUrl = Object.entries(urlParameters).map(([name, rawValue]) => [
    name,
    integers.has(name) && /^\d+$/.test(rawValue) ? Number(rawValue) : rawValue,
  ]);
  const version = isVersioned ? parseIfMatch(c.req.header('if-match')) : undefined;
  return { ...body, ...Object.fromEntries(fromUrl), ...(version !== undefined && { expected_version: version }) };
}

/** Parses `If-Match`. A value that cannot be parsed must not be ignored (RFC 9110, 13.1.1). */
function parseIfMatch(match: string | undefined): number | undefined {
  if (match === undefined || match.trim() === '*') return undefined;
  const version = /^(?:W\/)?"(\d{1,15})"$/.exec(match.trim())?.[1];
  if (version === undefined)
    throw invalidInputError([
      { path: 'If-Match', message: 'allowed: one ETag from a response about a server, such as "3"' },
    ]);
  return Number(version);
}

type Fields = { [field: string]: unknown };

type BodyContext = {
  op: Operation;
  actor: Actor;
  readLongBody: ServingRunner['readLongBody'];
  reservation: MemoryReservation;
};

const createNotJsonError = () => new AppError('unsupported', 'Content-Type must be application/json');

/**
 * Reads and parses the object in a request body; a thread parses a long one.
 * @throws AppError unsupported, encoded, invalid, tooLarge, tooMany
 */
async function readInput(
  incoming: IncomingMessage,
  { op, actor, readLongBody, reservation }: BodyContext,
  readBytes: ReadBody,
): Promise<Fields> {
  if (incoming.method === 'GET' || !hasBody(incoming)) return {};
  const isJson = parseMediaType(incoming.headers['content-type']) === 'application/json';
  // A body without Content-Length may be empty, and then needs no type.
  if (!isJson && incoming.headers['content-length'] !== undefined) throw createNotJsonError();
  const limits = getBodyLimits(op, actor);
  const bytes = await readBytes(incoming, limits.bytes, actor.workspaceId, reservation);
  if (bytes.length === 0) return {};
  if (!isJson) throw createNotJsonError();
  const isWithinShortLimits =
    bytes.length <= eventLoopLimits.bytes && !exceedsLimits(bytes.length, checkBody(bytes, limits), eventLoopLimits);
  if (isWithinShortLimits) return parseJson(bytes.toString('utf8')) as Fields;
  const { field, characters } = op.longField ?? {};
  const longText = field !== undefined && characters !== undefined ? { field, characters } : undefined;
  return (await readLongBody(bytes, actor, { limits, isMessage: false, longText })) as Fields;
}

/** Maximum number of concurrently read bodies that are larger than a configuration. */
export const maxLargeBodies = { perTenant: 2, total: 8 };
/** Time for which a body keeps its slot even if others wait, in ms. */
const minHoldMs = 2000;

/**
 * Reads bodies. A body that is larger than a configuration must announce its length, and takes a slot while it arrives.
 * @throws AppError encoded, tooLarge, tooMany
 */
type ReadBody = (
  request: IncomingMessage,
  limitBytes: number,
  workspaceId: string,
  reservation: MemoryReservation,
) => Promise<Buffer>;

/** Creates a body reader. `clock` returns monotonic milliseconds during which this process ran. */
function createBodyReader(clock: () => number): ReadBody {
  const runInSlot = createPreemptibleSlots({
    limits: maxLargeBodies,
    minHoldMs,
    clock,
    noSlotMessage: 'too many large bodies are being read; retry in a few seconds',
    evictedMessage: 'the body arrived slowly while other requests were waiting and was not read; send it again',
  });
  return async (request, limitBytes, workspaceId, reservation) => {
    checkBodyHeaders(request, limitBytes);
    const announcedBytes = Number(request.headers['content-length'] ?? 0);
    if (announcedBytes <= configurationLimits.bytes)
      return readBody(request, Math.min(limitBytes, configurationLimits.bytes), { reservation });
    return runInSlot(workspaceId, ({ evicted, runPreemptible }) =>
      runPreemptible(() => readBody(request, limitBytes, { signal: evicted })),
    );
  };
}

/** Creates the handler of a document that never changes while the process runs. Serializes it at the first request. */
export function createDocumentHandler(create: () => object | Promise<object>): (c: Context) => Promise<Response> {
  const read = createLazyLoader(async () => serializeDocument(await create()));
  return async (c) => {
    const document = await read();
    // Caches revalidate their copy with the entity tag (RFC 9110, 13.1.2).
    const headers = { ETag: document.etag, 'Cache-Control': 'no-cache' };
    if (matchesEntityTag(c.req.header('if-none-match'), document.etag)) return c.body(null, 304, headers);
    return c.body(document.text, 200, { ...headers, 'Content-Type': 'application/json' });
  };
}

export function serializeDocument(document: object): { text: string; etag: string } {
  const text = JSON.stringify(document);
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` };
}

/** Returns true if `If-None-Match` contains this entity tag, by weak comparison. */
export function matchesEntityTag(noneMatch: string | undefined, etag: string): boolean {
  if (noneMatch === undefined) return false;
  return noneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}

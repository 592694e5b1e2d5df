import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono, type Context as HonoContext } from 'hono';
import { mediaTypeOf } from '../domain/http/headers.ts';
import { checkBody, configurationLimits, shortLimits } from '../domain/json/body-limits.ts';
import { parseJson } from '../domain/json/json.ts';
import { exceedsLimits } from '../domain/json/json-scan.ts';
import { admittedMs } from '../domain/mcp.ts';
import type { Held } from '../domain/work/memory-budget.ts';
import { loadedOnce } from '../domain/work/next-turn.ts';
import { createPlaces } from '../domain/work/places.ts';
import { AppError, invalid } from '../errors.ts';
import type { UnreadAnswers } from '../http/incoming.ts';
import { problemAnswer } from '../http/problem.ts';
import { checkBodyHeaders, hasBody, readBody } from '../http/read-body.ts';
import { operationList } from '../operations/index.ts';
import type { Actor, Operation, OutputOf, Stream } from '../operations/operation.ts';
import { bodyLimitsFor, checkScope, runOperation, type ServingRunner } from '../operations/run-operation.ts';
import { routes, urlOf } from '../routes.ts';
import { linesType, openApiDocument, successStatus } from './openapi.ts';

/** Context of a request. `isAdmitted` is set once the actor is authenticated. */
export type RestEnv = { Bindings: HttpBindings; Variables: { isAdmitted?: boolean } };
type Env = RestEnv;

export type RestParts = {
  runner: ServingRunner;
  /** @throws Unauthenticated */
  actorOf: (request: HttpBindings['incoming']) => Promise<Actor>;
  unread: UnreadAnswers;
  /** Returns monotonic milliseconds. */
  clock: () => number;
  /** Returns monotonic milliseconds during which this process ran. */
  runningClock: () => number;
  baseUrl: string;
  version: string;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/** Creates `/api/v1`: every operation at its route, and the OpenAPI document. */
export function createRestApi(parts: RestParts): Hono<Env> {
  const api = new Hono<Env>();
  const challenge = `Bearer resource_metadata="${urlOf(parts.baseUrl, routes.apiMetadata)}"`;
  const refuse = (c: HonoContext<Env>, error: unknown) => {
    const answer = problemAnswer(error, requestIdOf(c), parts.onUnexpected);
    if (answer.status === 401) answer.headers.set('WWW-Authenticate', challenge);
    return answer;
  };
  api.onError((error, c) => refuse(c, error));
  api.notFound((c) => refuse(c, new AppError('notFound', 'there is nothing at this URL')));
  api.get(
    '/openapi.json',
    staticDocument(() => openApiDocument(operationList, parts.baseUrl, parts.version)),
  );
  const readLimited = createBodyReader(parts.runningClock);
  for (const op of operationList) {
    // Created at the first request, because the schemas of all operations take more time than calls should wait.
    let numeric: ReadonlySet<string> | undefined;
    api.on(op.route.method, op.route.path.replaceAll(/\{(\w+)\}/g, ':$1'), async (c) => {
      const admittedAt = parts.clock();
      const admitted = await parts.actorOf(c.env.incoming);
      c.set('isAdmitted', true);
      parts.unread.assign(c.env.outgoing, { workspaceId: admitted.workspaceId });
      checkScope(op, admitted);
      const held = parts.runner.memory.hold(admitted.workspaceId);
      c.env.outgoing.once('close', () => held.end());
      const body = await bodyOf(
        c.env.incoming,
        { op, actor: admitted, readLong: parts.runner.readLong, held },
        readLimited,
      );
      const isLate = parts.clock() - admittedAt > admittedMs;
      const actor = isLate ? await parts.actorOf(c.env.incoming) : admitted;
      numeric ??= numericInputs(op);
      const input = inputOf(c, numeric, 'expected_version' in op.input.shape, body);
      const asked = { actor, input, requestId: requestIdOf(c) };
      const signal = op.asksModel ? leaving(c) : undefined;
      if (signal && c.req.header('accept') === linesType)
        return toldInLines(c, {
          refuse,
          signal,
          hold: (bytes) => parts.unread.hold(c.env.outgoing, bytes, { workspaceId: actor.workspaceId }),
          run: (tell) => runOperation(parts.runner, op, { ...asked, stream: { tell, signal } }),
        });
      const output = await runOperation(parts.runner, op, { ...asked, ...(signal && { stream: { signal } }) });
      const { version } = (output as { server?: { version?: number } }).server ?? {};
      if (version !== undefined) c.header('ETag', `"${version}"`);
      return op.file ? fileAnswer(c, op.file, output) : c.json(output, successStatus(op));
    });
  }
  return api;
}

/** Returns a signal that is aborted when the connection closes. */
function leaving(c: HonoContext<Env>): AbortSignal {
  const gone = new AbortController();
  c.env.outgoing.once('close', () => gone.abort());
  return gone.signal;
}

/**
 * Maximum number of progress bytes that may be queued for a slow client. Further progress is dropped, because the last
 * line contains everything.
 */
const maxWaitingProgress = 256 * 1024;

type ToldParts = {
  refuse: (c: HonoContext<Env>, error: unknown) => Response;
  /** Counts the bytes of the last line until they are read, and disconnects a client that does not read them. */
  hold: (bytes: number) => void;
  run: (tell: NonNullable<Stream['tell']>) => Promise<object>;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
};

/**
 * Streams a response while it is generated, as one JSON object per line. The last line contains the complete result, or
 * the problem. A request that is refused before the first line gets an ordinary error response.
 */
function toldInLines(c: HonoContext<Env>, { refuse, hold, run, signal }: ToldParts): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  let lines: ReadableStreamDefaultController<Uint8Array> | undefined;
  const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    lines = controller;
  };
  const write = (line: Uint8Array) => {
    // A proxy that buffers responses would delay the progress.
    const headers = { 'Content-Type': linesType, 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' };
    const queue = new ByteLengthQueuingStrategy({ highWaterMark: maxWaitingProgress });
    if (!lines) resolve(c.body(new ReadableStream({ start }, queue), 200, headers));
    if (!signal.aborted) lines?.enqueue(line);
  };
  const toLine = (line: object) => Buffer.from(`${JSON.stringify(line)}\n`);
  const tell = (line: object) => {
    if (!lines || (lines.desiredSize ?? 0) > 0) write(toLine(line));
  };
  const end = (line: object) => {
    const last = toLine(line);
    write(last);
    if (signal.aborted) return;
    lines?.close();
    hold(last.length);
  };
  run(tell).then(
    (result) => end({ result }),
    async (error: unknown) => (lines ? end({ problem: await refuse(c, error).json() }) : reject(error)),
  );
  return promise;
}

function requestIdOf(c: HonoContext<Env>): string {
  return String(c.env.outgoing.getHeader('x-request-id'));
}

function fileAnswer(c: HonoContext<Env>, file: NonNullable<Operation['file']>, output: OutputOf<Operation>): Response {
  c.header('Content-Type', file.mediaType);
  c.header('Content-Disposition', `attachment; filename="${file.name}"`);
  return c.body(file.text(output));
}

/** Returns the names of numeric inputs, which must be converted because queries and paths contain only text. */
function numericInputs(op: Operation): ReadonlySet<string> {
  const properties = op.inputSchema().properties as Record<string, { type?: unknown }>;
  return new Set(Object.entries(properties).flatMap(([name, schema]) => (schema.type === 'integer' ? [name] : [])));
}

/** Merges path, query, and body into one input; the path takes precedence. `If-Match` becomes `expected_version`. */
function inputOf(c: HonoContext<Env>, numeric: ReadonlySet<string>, isVersioned: boolean, body: Fields): object {
  const texts = { ...c.req.query(), ...c.req.param() };
  const fromUrl = Object.entries(texts).map(([name, text]) => [
    name,
    numeric.has(name) && /^\d+$/.test(text) ? Number(text) : text,
  ]);
  const version = isVersioned ? matchedVersion(c.req.header('if-match')) : undefined;
  return { ...body, ...Object.fromEntries(fromUrl), ...(version !== undefined && { expected_version: version }) };
}

/** Parses `If-Match`. A value that cannot be parsed must not be ignored (RFC 9110, 13.1.1). */
function matchedVersion(match: string | undefined): number | undefined {
  if (match === undefined || match.trim() === '*') return undefined;
  const version = /^(?:W\/)?"(\d{1,15})"$/.exec(match.trim())?.[1];
  if (version === undefined)
    throw invalid([{ path: 'If-Match', message: 'allowed: one ETag from a response about a server, such as "3"' }]);
  return Number(version);
}

type Fields = { [field: string]: unknown };

/** Context of a request body. */
type Asking = { op: Operation; actor: Actor; readLong: ServingRunner['readLong']; held: Held };

const notJson = () => new AppError('unsupported', 'Content-Type must be application/json');

/**
 * Reads and parses the object in a request body; a thread parses a long one.
 * @throws AppError unsupported, encoded, invalid, tooLarge, tooMany
 */
async function bodyOf(
  incoming: IncomingMessage,
  { op, actor, readLong, held }: Asking,
  read: ReadBody,
): Promise<Fields> {
  if (incoming.method === 'GET' || !hasBody(incoming)) return {};
  const isJson = mediaTypeOf(incoming.headers['content-type']) === 'application/json';
  // A body without Content-Length may be empty, and then needs no type.
  if (!isJson && incoming.headers['content-length'] !== undefined) throw notJson();
  const limits = bodyLimitsFor(op, actor);
  const bytes = await read(incoming, limits.bytes, actor.workspaceId, held);
  if (bytes.length === 0) return {};
  if (!isJson) throw notJson();
  const isShort =
    bytes.length <= shortLimits.bytes && !exceedsLimits(bytes.length, checkBody(bytes, limits), shortLimits);
  if (isShort) return parseJson(bytes.toString('utf8')) as Fields;
  const { field, characters } = op.long ?? {};
  const longText = field !== undefined && characters !== undefined ? { field, characters } : undefined;
  return (await readLong(bytes, actor, { limits, isMessage: false, longText })) as Fields;
}

/** Maximum number of concurrently read bodies that are larger than a configuration. */
export const mostLargeBodies = { ofTenant: 2, ofAll: 8 };
const firmMs = 2000;

/**
 * Reads bodies. A body that is larger than a configuration must announce its length, and takes a slot while it arrives.
 * @throws AppError encoded, tooLarge, tooMany
 */
type ReadBody = (request: IncomingMessage, limitBytes: number, workspaceId: string, held: Held) => Promise<Buffer>;

/** Creates a body reader. `clock` returns monotonic milliseconds during which this process ran. */
function createBodyReader(clock: () => number): ReadBody {
  const inPlace = createPlaces({
    most: mostLargeBodies,
    firmMs,
    clock,
    noRoom: 'too many large bodies are being read; retry in a few seconds',
    lost: 'the body arrived slowly while other requests were waiting and was not read; send it again',
  });
  return async (request, limitBytes, workspaceId, held) => {
    checkBodyHeaders(request, limitBytes);
    const announced = Number(request.headers['content-length'] ?? 0);
    if (announced <= configurationLimits.bytes)
      return readBody(request, Math.min(limitBytes, configurationLimits.bytes), { held });
    return inPlace(workspaceId, ({ gone, slowly }) => slowly(() => readBody(request, limitBytes, { gone })));
  };
}

/** Serves a JSON document that never changes while the process runs. It is serialized at the first request. */
export function staticDocument(make: () => object | Promise<object>): (c: Context) => Promise<Response> {
  const read = loadedOnce(async () => written(await make()));
  return async (c) => {
    const made = await read();
    // Caches revalidate their copy with the entity tag (RFC 9110, 13.1.2).
    const headers = { ETag: made.etag, 'Cache-Control': 'no-cache' };
    if (isSame(c.req.header('if-none-match'), made.etag)) return c.body(null, 304, headers);
    return c.body(made.text, 200, { ...headers, 'Content-Type': 'application/json' });
  };
}

function written(document: object): { text: string; etag: string } {
  const text = JSON.stringify(document);
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` };
}

/** Returns true if `If-None-Match` contains this entity tag, by weak comparison. */
export function isSame(noneMatch: string | undefined, etag: string): boolean {
  if (noneMatch === undefined) return false;
  return noneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}

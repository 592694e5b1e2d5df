import type { HttpBindings } from '@hono/node-server';
import { Hono, type Context as HonoContext } from 'hono';
import { LongInput } from '../domain/json/long-input.ts';
import type { SharedArrivals } from '../domain/visit.ts';
import { workFor } from '../domain/work/next-turn.ts';
import { AppError, invalid } from '../errors.ts';
import { problemAnswer } from '../http/problem.ts';
import { admittedMs } from '../http/read-body.ts';
import type { UnreadAnswers } from '../http/unread-answers.ts';
import { inputSchemaOf } from '../operations/describe.ts';
import { operationList } from '../operations/index.ts';
import type { Actor, Operation, OutputOf } from '../operations/operation.ts';
import { checkScope, type Runner, runOperation } from '../operations/run-operation.ts';
import { routes } from '../routes.ts';
import { createBodyReader } from './large-bodies.ts';
import { openApiDocument, successStatus } from './openapi.ts';
import { bodyOf } from './rest-body.ts';
import { staticDocument } from './static-document.ts';

/** `isAdmitted` is set once the actor is authenticated. */
export type RestEnv = { Bindings: HttpBindings; Variables: { isAdmitted?: boolean } };
type Env = RestEnv;

export type RestParts = {
  runner: Runner;
  /** @throws Unauthenticated */
  actorOf: (request: HttpBindings['incoming']) => Promise<Actor>;
  arriving: SharedArrivals;
  unread: UnreadAnswers;
  /** Monotonic ms. */
  clock: () => number;
  /** Monotonic ms in which this process ran. */
  runningClock: () => number;
  baseUrl: string;
  version: string;
  onUnexpected: (error: unknown, requestId: string) => void;
};

/** `/api/v1`: every operation at its route, and the OpenAPI document. */
export function createRestApi(parts: RestParts): Hono<Env> {
  const api = new Hono<Env>();
  const challenge = `Bearer resource_metadata="${parts.baseUrl}${routes.apiMetadata}"`;
  const refuse = (c: HonoContext<Env>, error: unknown) => {
    const answer = problemAnswer(error, requestIdOf(c), parts.onUnexpected);
    if (answer.status === 401) answer.headers.set('WWW-Authenticate', challenge);
    return answer;
  };
  api.onError((error, c) => refuse(c, error));
  api.notFound((c) => refuse(c, new AppError('notFound', 'there is nothing at this address')));
  api.get(
    '/openapi.json',
    staticDocument(() => openApiDocument(operationList, parts.baseUrl, parts.version)),
  );
  const readLimited = createBodyReader(parts.arriving, parts.runningClock);
  const { readLongBody } = parts.runner.parts;
  for (const op of operationList) {
    // Read at the first request: the schemas of all operations take more time than calls should wait.
    let numeric: ReadonlySet<string> | undefined;
    api.on(op.route.method, op.route.path.replaceAll(/\{(\w+)\}/g, ':$1'), async (c) => {
      const admittedAt = parts.clock();
      const admitted = await parts.actorOf(c.env.incoming);
      c.set('isAdmitted', true);
      const party = { workspaceId: admitted.workspaceId };
      parts.unread.assign(c.env.outgoing, party);
      checkScope(op, admitted);
      return workFor(party, async () => {
        const body = await bodyOf(c.env.incoming, { op, actor: admitted, readLongBody }, readLimited);
        const isLate = parts.clock() - admittedAt > admittedMs;
        const actor = isLate ? await parts.actorOf(c.env.incoming) : admitted;
        numeric ??= numericInputs(op);
        const input = inputOf(c, numeric, 'expected_version' in op.input.shape, body);
        const output = await runOperation(parts.runner, op, { actor, input, requestId: requestIdOf(c) });
        const { version } = (output as { server?: { version?: number } }).server ?? {};
        if (version !== undefined) c.header('ETag', `"${version}"`);
        return op.file ? fileAnswer(c, op.file, output) : c.json(output, successStatus(op));
      });
    });
  }
  return api;
}

function requestIdOf(c: HonoContext<Env>): string {
  return String(c.env.outgoing.getHeader('x-request-id'));
}

function fileAnswer(c: HonoContext<Env>, file: NonNullable<Operation['file']>, output: OutputOf<Operation>): Response {
  c.header('Content-Type', file.mediaType);
  c.header('Content-Disposition', `attachment; filename="${file.name}"`);
  return c.body(file.text(output));
}

/** Names of numeric inputs, which must be converted because queries and paths hold only text. */
function numericInputs(op: Operation): ReadonlySet<string> {
  const properties = inputSchemaOf(op).properties as Record<string, { type?: unknown }>;
  return new Set(Object.entries(properties).flatMap(([name, schema]) => (schema.type === 'integer' ? [name] : [])));
}

/** Merges path, query and body into one input; the path takes precedence. `If-Match` becomes `expected_version`. */
function inputOf(
  c: HonoContext<Env>,
  numeric: ReadonlySet<string>,
  isVersioned: boolean,
  body: { [field: string]: unknown } | LongInput,
): object {
  const texts = { ...c.req.query(), ...c.req.param() };
  const fromUrl = Object.entries(texts).map(([name, text]) => [
    name,
    numeric.has(name) && /^\d+$/.test(text) ? Number(text) : text,
  ]);
  const version = isVersioned ? matchedVersion(c.req.header('if-match')) : undefined;
  const over = { ...Object.fromEntries(fromUrl), ...(version !== undefined && { expected_version: version }) };
  return body instanceof LongInput ? body.with(over) : { ...body, ...over };
}

/** Reads `If-Match`. A value that is not understood must not be ignored (RFC 9110, 13.1.1). */
function matchedVersion(match: string | undefined): number | undefined {
  if (match === undefined || match.trim() === '*') return undefined;
  const version = /^(?:W\/)?"(\d{1,15})"$/.exec(match.trim())?.[1];
  if (version === undefined)
    throw invalid([{ path: 'If-Match', message: 'allowed: one ETag as a server was given with, such as "3"' }]);
  return Number(version);
}

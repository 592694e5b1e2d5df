import { AppError, type ErrorKind, errorKinds, messageOf, type Problem } from '../errors.ts';
import { operations } from '../operations/index.ts';
import type { Operation } from '../operations/operation.ts';
import { apiPath } from '../routes.ts';
import { version } from '../version.ts';
import type { Connection } from './connection.ts';

type Input = { [name: string]: unknown };

/** Runs operations of a service over its REST API, at the routes that the catalogue gives them. */
export type RestClient = {
  /** @throws AppError with the words of the service, or why it could not be asked */
  run<Output>(name: string, input?: Input): Promise<Output>;
  /** The answers of every page of a list. */
  runPages<Output extends { next_cursor?: string }>(name: string, input?: Input): Promise<Output[]>;
};

/** Longer than the slowest tool call. */
const patienceMs = 60_000;
const pageSize = 200;

export function createRestClient(connection: Connection): RestClient {
  const run = async <Output>(name: string, input: Input = {}): Promise<Output> => {
    const op = operationNamed(name);
    const { path, body } = requestOf(op, input);
    const response = await send(connection, op.route.method, path, body);
    const answer = await jsonOf(response);
    if (!response.ok) throw refusalOf(response, answer, connection.url);
    if (!op.output.safeParse(answer).success) throw notToolhost(connection.url, response.status);
    return answer as Output;
  };
  return {
    run,
    async runPages<Output extends { next_cursor?: string }>(name: string, input: Input = {}) {
      const pages: Output[] = [];
      let cursor: string | undefined;
      do {
        const page: Output = await run(name, { ...input, limit: pageSize, ...(cursor !== undefined && { cursor }) });
        pages.push(page);
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      return pages;
    },
  };
}

export function operationNamed(name: string): Operation {
  const op = operations.find((candidate) => candidate.name === name);
  if (!op) throw new Error(`there is no operation ${name}`);
  return op;
}

/** Inputs that the route names go into the path; the others are the query of a GET and the body of anything else. */
function requestOf(op: Operation, input: Input): { path: string; body: string | undefined } {
  const rest = { ...input };
  const path = op.route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    delete rest[name];
    return encodeURIComponent(String(input[name]));
  });
  if (Object.keys(rest).length === 0) return { path, body: undefined };
  if (op.route.method !== 'GET') return { path, body: JSON.stringify(rest) };
  const query = new URLSearchParams(Object.entries(rest).map(([name, value]) => [name, String(value)]));
  return { path: `${path}?${query}`, body: undefined };
}

async function send(
  { url, key }: Connection,
  method: string,
  path: string,
  body: string | undefined,
): Promise<Response> {
  try {
    return await fetch(url + apiPath + path, {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        Accept: 'application/json',
        'User-Agent': `toolhost-cli/${version}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      // A key goes where it was meant to go and nowhere else.
      redirect: 'manual',
      signal: AbortSignal.timeout(patienceMs),
    });
  } catch (error) {
    throw unreachable(url, error);
  }
}

function unreachable(url: string, error: unknown): AppError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = String((cause as NodeJS.ErrnoException).code ?? '');
  if (code === 'ECONNREFUSED') {
    return new AppError(
      'unavailable',
      `nothing answers at ${url}; start the service with "bin/toolhost serve", or say where it is with --url or TOOLHOST_URL`,
    );
  }
  const why = code.startsWith('ERR_SSL_')
    ? 'it does not speak TLS; is it http://?'
    : messageOf(cause) || 'no connection';
  return new AppError('unavailable', `${url} cannot be reached: ${why}`);
}

async function jsonOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

type ProblemAnswer = { detail?: unknown; problems?: readonly Problem[] };

/** The error that the service threw, as it was before it became `application/problem+json`. */
function refusalOf(response: Response, answer: unknown, url: string): AppError {
  const { detail, problems = [] } = (answer ?? {}) as ProblemAnswer;
  if (typeof detail !== 'string') return notToolhost(url, response.status);
  const kinds = Object.keys(errorKinds) as ErrorKind[];
  return new AppError(kinds.find((kind) => errorKinds[kind].status === response.status) ?? 'internal', detail, {
    problems,
  });
}

function notToolhost(url: string, status: number): AppError {
  return new AppError(
    'unavailable',
    `${url} answered (${status}), but not as this version of toolhost does; is the address right?`,
  );
}

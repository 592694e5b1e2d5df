import { z } from 'zod';
import { AppError, type ErrorKind, errorKinds } from '../../errors.ts';
import { type Input, type OperationName, type Output, operations } from '../../operations/index.ts';
import { restRequest } from '../../operations/rest-request.ts';
import { problemShape } from '../../operations/shapes.ts';
import { apiPath } from '../../routes.ts';
import { programName, version } from '../../version.ts';
import { type Allowance, brokenOff, jsonOfAnswer, newAllowance } from './answer.ts';
import type { ServiceConnection } from './connection.ts';

/** Runs operations of a service over its REST API. */
export type RestClient = {
  /**
   * `allowance` is shared by the answers to one question, such as the pages of a list.
   * @throws AppError with the message of the service, or with the reason why its answer was not read
   */
  run<Name extends OperationName>(name: Name, input: Input<Name>, allowance?: Allowance): Promise<Output<Name>>;
};

/** A client of the service at `url`. */
export type ConnectedClient = RestClient & { url: string };

/** Longer than the slowest tool call. */
const patienceMs = 60_000;

/** `waitMs` is for a whole answer. */
export function createRestClient(connection: ServiceConnection, waitMs = patienceMs): ConnectedClient {
  const send = sender(connection, waitMs);
  return {
    url: connection.url,
    async run<Name extends OperationName>(name: Name, input: Input<Name>, allowance = newAllowance()) {
      const { route, output } = operations[name];
      const { method, path, body } = restRequest(route, input);
      const response = await send({ method, path, body: body && JSON.stringify(body), signal: allowance.signal });
      const answer = await jsonOfAnswer(response, connection.url, allowance);
      if (!response.ok) throw refusalOf(response, answer, connection.url);
      if (!output.safeParse(answer).success) throw notToolhost(connection.url, response);
      return answer as Output<Name>;
    },
  };
}

type Request = { method: string; path: string; body: string | undefined; signal: AbortSignal };
type Send = (request: Request) => Promise<Response>;

/** Sends requests with the credential of a connection, and with a newer token once the service refuses an old one. */
function sender({ url, credential: { token: first, renew } }: ServiceConnection, waitMs: number): Send {
  let token = first;
  return async (request) => {
    const response = await sendOnce(request, { url, token, waitMs });
    if (response.status !== 401 || !renew) return response;
    await response.body?.cancel();
    token = await renew(token);
    return sendOnce(request, { url, token, waitMs });
  };
}

async function sendOnce(
  { method, path, body, signal }: Request,
  { url, token, waitMs }: { url: string; token: string; waitMs: number },
): Promise<Response> {
  try {
    return await fetch(url + apiPath + path, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        Accept: 'application/json',
        'User-Agent': `toolhost-cli/${version}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      // A redirect could send the API key to another host.
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(waitMs)]),
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
      `nothing answers at ${url}; start the service with "${programName} serve", or say where it is with --url or TOOLHOST_URL`,
    );
  }
  return code.startsWith('ERR_SSL_')
    ? new AppError('unavailable', `${url} cannot be reached: it does not speak TLS; is it http://?`)
    : brokenOff(url, error);
}

const refusal = z.object({ detail: z.string(), problems: z.array(problemShape).optional() });
/** Characters of a message, and problems, that are believed. A service gives fewer. */
const mostOfRefusal = { characters: 4000, problems: 100 };

/** Restores the error of the service from its `application/problem+json`. */
function refusalOf(response: Response, answer: unknown, url: string): AppError {
  const read = refusal.safeParse(answer);
  if (!read.success) return notToolhost(url, response);
  const detail = read.data.detail.slice(0, mostOfRefusal.characters);
  const problems = read.data.problems?.slice(0, mostOfRefusal.problems) ?? [];
  const kinds = Object.keys(errorKinds) as ErrorKind[];
  const kind = kinds.find((candidate) => errorKinds[candidate].status === response.status) ?? 'internal';
  const advice =
    kind === 'unauthenticated'
      ? ` for the service at ${url}; on its machine "${programName} keys create" makes one`
      : '';
  return new AppError(kind, detail + advice, { problems });
}

function notToolhost(url: string, { status, headers }: Response): AppError {
  const target = status >= 300 && status < 400 ? URL.parse(headers.get('location') ?? '', url)?.origin : undefined;
  const redirect =
    target === undefined || target === new URL(url).origin || target === 'null'
      ? ''
      : ` It redirects to ${target}, where nothing was sent.`;
  return new AppError(
    'unavailable',
    `${url} answered (${status}), but not as this version of toolhost does; is the address right?${redirect}`,
  );
}

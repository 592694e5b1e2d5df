import { AppError, type ErrorKind, errorKinds, messageOf, type Problem } from '../../errors.ts';
import { type Input, type OperationName, type Output, operations } from '../../operations/index.ts';
import { restRequest } from '../../operations/rest-request.ts';
import { apiPath } from '../../routes.ts';
import { programName, version } from '../../version.ts';
import type { ServiceConnection } from './connection.ts';

/** Runs operations of a service over its REST API. */
export type RestClient = {
  /** @throws AppError with the message of the service, or with the reason why it could not be reached */
  run<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>>;
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
    async run<Name extends OperationName>(name: Name, input: Input<Name>) {
      const { route, output } = operations[name];
      const { method, path, body } = restRequest(route, input);
      const response = await send(method, path, body && JSON.stringify(body));
      const answer = await jsonOf(response);
      if (!response.ok) throw refusalOf(response, answer, connection.url);
      if (!output.safeParse(answer).success) throw notToolhost(connection.url, response.status);
      return answer as Output<Name>;
    },
  };
}

type Send = (method: string, path: string, body: string | undefined) => Promise<Response>;

/** Sends requests with the credential of a connection, and with a newer token once the service refuses an old one. */
function sender({ url, credential: { token: first, renew } }: ServiceConnection, waitMs: number): Send {
  let token = first;
  return async (method, path, body) => {
    const response = await sendOnce({ url, token, method, path, body, waitMs });
    if (response.status !== 401 || !renew) return response;
    await response.body?.cancel();
    token = await renew(token);
    return sendOnce({ url, token, method, path, body, waitMs });
  };
}

type Sent = {
  url: string;
  token: string;
  method: string;
  path: string;
  body: string | undefined;
  waitMs: number;
};

async function sendOnce({ url, token, method, path, body, waitMs }: Sent): Promise<Response> {
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
      signal: AbortSignal.timeout(waitMs),
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

/** Restores the error of the service from its `application/problem+json`. */
function refusalOf(response: Response, answer: unknown, url: string): AppError {
  const { detail, problems = [] } = (answer ?? {}) as ProblemAnswer;
  if (typeof detail !== 'string') return notToolhost(url, response.status);
  const kinds = Object.keys(errorKinds) as ErrorKind[];
  const kind = kinds.find((candidate) => errorKinds[candidate].status === response.status) ?? 'internal';
  const advice =
    kind === 'unauthenticated'
      ? ` for the service at ${url}; on its machine "${programName} keys create" makes one`
      : '';
  return new AppError(kind, detail + advice, { problems });
}

function notToolhost(url: string, status: number): AppError {
  return new AppError(
    'unavailable',
    `${url} answered (${status}), but not as this version of toolhost does; is the address right?`,
  );
}

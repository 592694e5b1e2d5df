import { z } from 'zod';
import { connectionReason } from '../../doctor/web.ts';
import { parseJson } from '../../domain/json/json.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { AppError, type ErrorKind, errorKinds, messageOf } from '../../errors.ts';
import { type Input, type OperationName, type Output, operations } from '../../operations/index.ts';
import { restRequest } from '../../operations/routes.ts';
import { problemShape } from '../../operations/shapes.ts';
import { apiPath } from '../../routes.ts';
import { programName, version } from '../../version.ts';

/** Service URL and the credential for it. */
export type ServiceConnection = { url: string; credential: ServiceCredential };

type ServiceCredential = {
  token: string;
  /** Returns a newer token than the rejected one. @throws AppError if there is none */
  renew?: (refused: string) => Promise<string>;
};

/** Runs operations of a service over its REST API. */
export type RestClient = {
  /** @throws AppError with the service's message, or with the reason why its response could not be read */
  run<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>>;
};

/** A REST client with the service URL. */
export type ConnectedClient = RestClient & { url: string };

/** Default timeout; longer than the slowest tool call. */
const patienceMs = 60_000;

/** Creates a client. `waitMs` is the timeout for a complete response. */
export function createRestClient(connection: ServiceConnection, waitMs = patienceMs): ConnectedClient {
  const send = sender(connection, waitMs);
  return {
    url: connection.url,
    async run<Name extends OperationName>(name: Name, input: Input<Name>) {
      const { route, output } = operations[name];
      const { method, path, body } = restRequest(route, input);
      const response = await send({ method, path, body: body && JSON.stringify(body) });
      const answer = await jsonOfAnswer(response, connection.url);
      if (!response.ok) throw refusalOf(response, answer, connection.url);
      if (!output.safeParse(answer).success) throw notToolhost(connection.url, response);
      return answer as Output<Name>;
    },
  };
}

type Request = { method: string; path: string; body: string | undefined };
type Send = (request: Request) => Promise<Response>;

/** Returns a function that sends requests with the connection's credential and renews the token after a 401. */
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
  { method, path, body }: Request,
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
      `no service is listening at ${url}. Start it with "${programName} serve", or set its URL with --url or TOOLHOST_URL`,
    );
  }
  return code.startsWith('ERR_SSL_')
    ? new AppError('unavailable', `${url} cannot be reached: the server does not speak TLS. Try http://`)
    : brokenOff(url, error);
}

const refusal = z.object({ detail: z.string(), problems: z.array(problemShape).optional() });
/** Maximum length of a message and number of problems that are shown. Real services stay below both. */
const mostOfRefusal = { characters: 4000, problems: 100 };

/** Converts an `application/problem+json` response to an error. */
function refusalOf(response: Response, answer: unknown, url: string): AppError {
  const read = refusal.safeParse(answer);
  if (!read.success) return notToolhost(url, response);
  const detail = read.data.detail.slice(0, mostOfRefusal.characters);
  const problems = read.data.problems?.slice(0, mostOfRefusal.problems) ?? [];
  const kinds = Object.keys(errorKinds) as ErrorKind[];
  const kind = kinds.find((candidate) => errorKinds[candidate].status === response.status) ?? 'internal';
  const advice =
    kind === 'unauthenticated'
      ? ` for the service at ${url}; on its machine, "${programName} keys create" creates one`
      : '';
  return new AppError(kind, detail + advice, { problems });
}

function notToolhost(url: string, { status, headers }: Response): AppError {
  const target = status >= 300 && status < 400 ? URL.parse(headers.get('location') ?? '', url)?.origin : undefined;
  const redirect =
    target === undefined || target === new URL(url).origin || target === 'null'
      ? ''
      : ` It redirects to ${target}; nothing was sent there.`;
  return new AppError(
    'unavailable',
    `${url} responded with ${status}, but not like this version of toolhost. Check the URL.${redirect}`,
  );
}

/**
 * Limits of one response. Bytes are counted after decompression. Real responses use at most a tenth of that: a large
 * configuration, a call result, or a page of versions.
 */
const answerLimits = { bytes: 64 * 1024 * 1024, depth: 128, values: 1_000_000 };

/**
 * Parses the JSON of a response; returns undefined if it is not JSON. Counts the values before creating any.
 * @throws AppError tooLarge; unavailable if the response is interrupted or times out
 */
async function jsonOfAnswer(response: Response, url: string): Promise<unknown> {
  const bytes = await bytesOf(response, url);
  const scan = scanJson(bytes, answerLimits.depth);
  if (!scan) return undefined;
  if (scan.depth > answerLimits.depth)
    throw new AppError('tooLarge', `the JSON from ${url} is nested deeper than ${answerLimits.depth} levels`);
  if (scan.elements > answerLimits.values || scan.names > answerLimits.values)
    throw new AppError('tooLarge', `the JSON from ${url} has more than ${answerLimits.values} values`);
  return parseJson(bytes.toString('utf8'));
}

async function bytesOf(response: Response, url: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let left = answerLimits.bytes;
  // An error that leaves the loop also cancels the response.
  for await (const chunk of chunksOf(response, url)) {
    left -= chunk.length;
    if (left < 0)
      throw new AppError('tooLarge', `the response from ${url} is larger than ${answerLimits.bytes / 1024 / 1024} MB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function* chunksOf(response: Response, url: string): AsyncGenerator<Uint8Array> {
  try {
    yield* response.body ?? [];
  } catch (error) {
    throw brokenOff(url, error);
  }
}

/** Creates the error for a missing or interrupted response. */
export function brokenOff(url: string, error: unknown): AppError {
  return new AppError('unavailable', `${url} cannot be reached: ${whyNoAnswer(error)}`);
}

/** Explains why a response is missing or was interrupted. */
export function whyNoAnswer(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'the response was not complete in time';
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return connectionReason(error) ?? (messageOf(cause) || 'no connection');
}

const clockPatienceMs = 10_000;

/** Returns the service's time in epoch ms, so that the clock of this machine does not matter. @throws AppError */
export async function serviceTime(url: string): Promise<number> {
  try {
    const { headers, body } = await fetch(`${url}/livez`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(clockPatienceMs),
    });
    await body?.cancel();
    const at = Date.parse(headers.get('date') ?? '');
    if (!Number.isNaN(at)) return at;
  } catch (error) {
    throw brokenOff(url, error);
  }
  throw new AppError(
    'unavailable',
    `${url} sends no Date header, so a time span has no reference; use a timestamp with --since`,
  );
}

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

/** Address of the service, and what a command shows there. */
export type ServiceConnection = { url: string; credential: ServiceCredential };

type ServiceCredential = {
  token: string;
  /** A newer token than the refused one. @throws AppError when there is none */
  renew?: (refused: string) => Promise<string>;
};

/** Runs operations of a service over its REST API. */
export type RestClient = {
  /** @throws AppError with the message of the service, or with the reason why its answer was not read */
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

/**
 * Limits of one answer, its bytes counted after decompression. A service gives a tenth of that at most: a large
 * configuration, the result of a call, or a page of versions.
 */
const answerLimits = { bytes: 64 * 1024 * 1024, depth: 128, values: 1_000_000 };

/**
 * The JSON value of an answer; undefined when it is not JSON. Its values are counted before any is made.
 * @throws AppError tooLarge; unavailable when the answer breaks off or takes too long
 */
async function jsonOfAnswer(response: Response, url: string): Promise<unknown> {
  const bytes = await bytesOf(response, url);
  const scan = scanJson(bytes, answerLimits.depth);
  if (!scan) return undefined;
  if (scan.depth > answerLimits.depth)
    throw new AppError('tooLarge', `${url} answered with JSON that is nested deeper than ${answerLimits.depth} levels`);
  if (scan.elements > answerLimits.values || scan.names > answerLimits.values)
    throw new AppError('tooLarge', `${url} answered with more than ${answerLimits.values} values, which are not read`);
  return parseJson(bytes.toString('utf8'));
}

async function bytesOf(response: Response, url: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let left = answerLimits.bytes;
  // Leaving the loop by an error also ends the answer.
  for await (const chunk of chunksOf(response, url)) {
    left -= chunk.length;
    if (left < 0)
      throw new AppError(
        'tooLarge',
        `${url} gives too much: one answer has more than ${answerLimits.bytes / 1024 / 1024} MB, and no more is read`,
      );
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

/** The error for an answer that did not come, or not to its end. */
export function brokenOff(url: string, error: unknown): AppError {
  return new AppError('unavailable', `${url} cannot be reached: ${whyNoAnswer(error)}`);
}

/** Why an answer did not come, or not to its end. */
export function whyNoAnswer(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'it did not give a whole answer in time';
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return connectionReason(error) ?? (messageOf(cause) || 'no connection');
}

const clockPatienceMs = 10_000;

/** The time of the service in epoch ms, so that the clock of this machine does not matter. @throws AppError */
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
  throw new AppError('unavailable', `${url} does not say what time it is; give --since as a time`);
}

import { AppError, type ErrorKind, errorKinds, getErrorMessage } from '@toolhost/errors/errors';
import { parseJson } from '@toolhost/json/json';
import { scanJson } from '@toolhost/json/json-scan';
import { getConnectionReason } from '@toolhost/mcp-doctor/web';
import { apiPath, programName, version } from '@toolhost/server/command-line';
import { buildRestRequest, type Input, type OperationName, type Output, operations } from '@toolhost/server/operations';
import { z } from 'zod';

/** Service URL and the credential for it. */
export type ServiceConnection = { url: string; credential: ServiceCredential };

type ServiceCredential = {
  token: string;
  /** Returns a newer token than the rejected one. @throws AppError if there is none */
  renewToken?: (rejectedToken: string) => Promise<string>;
};

/** Runs operations of a service over its REST API. */
export type RestClient = {
  /** @throws AppError with the service's message, or with the reason why its response could not be read */
  run<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>>;
};

/** A REST client with the service URL. */
export type ConnectedClient = RestClient & { url: string };

/** Default timeout; longer than the slowest tool call. */
const defaultTimeoutMs = 60_000;

/** Creates a client. `timeoutMs` is the timeout for a complete response. */
export function createRestClient(connection: ServiceConnection, timeoutMs = defaultTimeoutMs): ConnectedClient {
  const send = createSender(connection, timeoutMs);
  return {
    url: connection.url,
    async run<Name extends OperationName>(name: Name, input: Input<Name>) {
      const { route, output } = operations[name];
      const { method, path, body } = buildRestRequest(route, input);
      const response = await send({ method, path, body: body && JSON.stringify(body) });
      const responseBody = await parseJsonResponse(response, connection.url);
      if (!response.ok) throw toServiceError(response, responseBody, connection.url);
      if (!output.safeParse(responseBody).success) throw createNotToolhostError(connection.url, response);
      return responseBody as Output<Name>;
    },
  };
}

type Request = { method: string; path: string; body: string | undefined };
type Send = (request: Request) => Promise<Response>;

/** Returns a function that sends requests with the connection's credential and renews the token after a 401. */
function createSender(
  { url, credential: { token: initialToken, renewToken } }: ServiceConnection,
  timeoutMs: number,
): Send {
  let token = initialToken;
  return async (request) => {
    const response = await sendOnce(request, { url, token, timeoutMs });
    if (response.status !== 401 || !renewToken) return response;
    await response.body?.cancel();
    token = await renewToken(token);
    return sendOnce(request, { url, token, timeoutMs });
  };
}

async function sendOnce(
  { method, path, body }: Request,
  { url, token, timeoutMs }: { url: string; token: string; timeoutMs: number },
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
      signal: AbortSignal.timeout(timeoutMs),
    });
  } catch (error) {
    throw toUnreachableError(url, error);
  }
}

/** Creates the error for a service that does not respond. */
export function toUnreachableError(url: string, error: unknown): AppError {
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
    : createConnectionError(url, error);
}

/** A problem document of Toolhost. Those of other programs, such as FastAPI, have no code. */
const problemSchema = z.object({
  code: z.string(),
  detail: z.string(),
  problems: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});
/** Limits of the part of an error that is shown. Real services stay below both. */
const problemLimits = { characters: 4000, problems: 100 };

/** Converts an `application/problem+json` response to an error. */
function toServiceError(response: Response, responseBody: unknown, url: string): AppError {
  const parsed = problemSchema.safeParse(responseBody);
  if (!parsed.success) return createNotToolhostError(url, response);
  const detail = parsed.data.detail.slice(0, problemLimits.characters);
  const problems = parsed.data.problems?.slice(0, problemLimits.problems) ?? [];
  if (response.status === 404 && /\/mcp(\/|$)/.test(new URL(url).pathname))
    return new AppError(
      'invalid',
      `${url} is the URL of a server. Use the URL of the service: ${url.replace(/\/mcp(\/.*)?$/, '')}`,
    );
  const kinds = Object.keys(errorKinds) as ErrorKind[];
  const kind = kinds.find((candidate) => errorKinds[candidate].status === response.status) ?? 'internal';
  const [, scope] = /^this operation needs the scope ([\w:]+)/.exec(detail) ?? [];
  const createKey = `${programName} keys create --name cli --scopes`;
  if (scope !== undefined)
    return new AppError(kind, `${detail.replace('operation', 'command')}. Create a key with it: ${createKey} ${scope}`);
  const advice =
    kind === 'unauthenticated' ? ` for the service at ${url}. Create one on its machine: ${createKey} manage,call` : '';
  return new AppError(kind, detail + advice, { problems });
}

function createNotToolhostError(url: string, { status, headers }: Response): AppError {
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
 * Limits of one response. Bytes are counted after decompression. The largest real responses (a configuration, a call
 * result, or a page of versions) use at most a tenth of each limit.
 */
const responseLimits = { bytes: 64 * 1024 * 1024, depth: 128, values: 1_000_000 };

/**
 * Parses the JSON of a response; returns undefined if it is not JSON. Enforces the limits before any value is created.
 * @throws AppError tooLarge; unavailable if the response is interrupted or times out
 */
export async function parseJsonResponse(response: Response, url: string): Promise<unknown> {
  const bytes = await readBytes(response, url);
  const scan = scanJson(bytes, responseLimits.depth);
  if (!scan) return undefined;
  if (scan.depth > responseLimits.depth)
    throw new AppError('tooLarge', `the JSON from ${url} is nested deeper than ${responseLimits.depth} levels`);
  if (scan.elements > responseLimits.values || scan.names > responseLimits.values)
    throw new AppError('tooLarge', `the JSON from ${url} has more than ${responseLimits.values} values`);
  return parseJson(bytes.toString('utf8'));
}

async function readBytes(response: Response, url: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let remainingBytes = responseLimits.bytes;
  // An error that leaves the loop also cancels the response.
  for await (const chunk of readChunks(response, url)) {
    remainingBytes -= chunk.length;
    if (remainingBytes < 0)
      throw new AppError(
        'tooLarge',
        `the response from ${url} is larger than ${responseLimits.bytes / 1024 / 1024} MB`,
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function* readChunks(response: Response, url: string): AsyncGenerator<Uint8Array> {
  try {
    yield* response.body ?? [];
  } catch (error) {
    throw createConnectionError(url, error);
  }
}

/** Creates the error for a missing or interrupted response. */
export function createConnectionError(url: string, error: unknown): AppError {
  return new AppError('unavailable', `${url} cannot be reached: ${explainNoResponse(error)}`);
}

/** Explains why a response is missing or was interrupted. */
export function explainNoResponse(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') return 'the response was not complete in time';
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return getConnectionReason(error) ?? (getErrorMessage(cause) || 'no connection');
}

const clockTimeoutMs = 10_000;

/** Returns the service's time in epoch ms, because the clock of this machine may be wrong. @throws AppError */
export async function getServiceTime(url: string): Promise<number> {
  try {
    const { headers, body } = await fetch(`${url}/livez`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(clockTimeoutMs),
    });
    await body?.cancel();
    const serviceTimeMs = Date.parse(headers.get('date') ?? '');
    if (!Number.isNaN(serviceTimeMs)) return serviceTimeMs;
  } catch (error) {
    throw createConnectionError(url, error);
  }
  throw new AppError(
    'unavailable',
    `${url} sends no Date header, so a time span has no reference; use a timestamp with --since`,
  );
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LoginHints, McpEndpoint } from '../domain/mcp.ts';
import { AppError, Unauthenticated } from '../errors.ts';
import { readBody } from '../read-body.ts';
import { unavailableIfDatabase } from '../store/failure.ts';
import { challenge } from './challenge.ts';
import { answer, type Reply } from './protocol/core.ts';
import { codes, errorText, parseBody, type RequestId, RpcError, readableId } from './protocol/json-rpc.ts';
import { serverPage } from './server-page.ts';
import { write } from './write.ts';

export type McpDoorParts = {
  find: (slug: string) => Promise<McpEndpoint | undefined>;
  serverUrl: (slug: string) => string;
  onUnexpected: (error: unknown, requestId: string) => void;
  /** How long a client may take to read an answer, in ms. */
  slowReaderMs: number;
};

export const maxBodyBytes = 1024 * 1024;
const pageHeaders = [
  'Content-Type',
  'text/html; charset=utf-8',
  'Content-Security-Policy',
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy',
  'no-referrer',
];

/** The hot path: `POST /mcp/{slug}` on plain node:http (MCP, Streamable HTTP; answers are single JSON messages). */
export function createMcpDoor(parts: McpDoorParts) {
  return async function serveMcp(
    request: IncomingMessage,
    response: ServerResponse,
    slug: string,
    requestId: string,
  ): Promise<void> {
    let posted: unknown;
    let hints: LoginHints | undefined;
    try {
      const isPost = request.method === 'POST';
      if (isPost) checkContentType(request);
      const body = isPost ? await readBody(request, maxBodyBytes) : undefined;
      const endpoint = await parts.find(slug).catch((error: unknown) => {
        posted = tryParse(body);
        throw unavailableIfDatabase(error);
      });
      if (!endpoint) {
        posted = tryParse(body);
        throw new AppError('notFound', 'there is no server at this address');
      }
      if (request.method === 'GET' && wantsPage(request)) {
        write(response, 200, pageHeaders, serverPage(endpoint.about, parts.serverUrl(slug)), parts.slowReaderMs);
        return;
      }
      hints = endpoint.hints;
      const server = await endpoint.admit(request.headers).catch((error: unknown) => {
        posted = tryParse(body);
        throw unavailableIfDatabase(error);
      });
      if (body === undefined) throw new AppError('methodNotAllowed', 'send MCP messages with POST');
      posted = parseBody(body);
      const reply = await answer(server, posted, {
        headers: request.headers,
        requestId,
        bytesIn: body.length,
        cancellation: cancellationOf(response),
      });
      writeReply(response, reply, parts.slowReaderMs);
    } catch (error) {
      writeError(response, error, readableId(posted), hints, requestId, parts);
    }
  };
}

function checkContentType(request: IncomingMessage): void {
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json') throw new AppError('unsupported', 'Content-Type must be application/json');
}

/** A browser asks for HTML by name; MCP clients ask for an event stream. */
function wantsPage(request: IncomingMessage): boolean {
  return request.headers.accept?.includes('text/html') ?? false;
}

/** Calls `cancel` once the client has gone, and at once when it has gone before the work could be cancelled. */
function cancellationOf(response: ServerResponse): { cancel?: () => void } {
  let stop: (() => void) | undefined;
  const hasGone = () => response.destroyed && !response.writableFinished;
  response.on('close', () => {
    if (hasGone()) stop?.();
  });
  return {
    set cancel(cancel: () => void) {
      stop = cancel;
      if (hasGone()) cancel();
    },
  };
}

function tryParse(body: Buffer | undefined): unknown {
  try {
    return body === undefined ? undefined : parseBody(body);
  } catch {
    // The error to report is another one; this only looks for an id to echo.
    return undefined;
  }
}

function writeReply(response: ServerResponse, reply: Reply, slowReaderMs: number): void {
  if (reply.body === undefined) write(response, reply.status, [], undefined, slowReaderMs);
  else if (reply.stream) {
    write(
      response,
      reply.status,
      ['Content-Type', 'text/event-stream', 'X-Accel-Buffering', 'no'],
      reply.body,
      slowReaderMs,
    );
  } else write(response, reply.status, ['Content-Type', 'application/json'], reply.body, slowReaderMs);
}

/** The one place where errors become MCP answers. */
function writeError(
  response: ServerResponse,
  thrown: unknown,
  id: RequestId | undefined,
  hints: LoginHints | undefined,
  requestId: string,
  parts: McpDoorParts,
): void {
  if (response.destroyed || response.headersSent) return;
  const error = unavailableIfDatabase(thrown);
  const headers = ['Content-Type', 'application/json'];
  let status = 500;
  let body: string;
  if (error instanceof RpcError) {
    status = error.status;
    body = errorText(id, error.code, error.message, error.data);
  } else if (error instanceof Unauthenticated) {
    status = error.status;
    headers.push('WWW-Authenticate', challenge(error, hints));
    body = errorText(id, status, error.message);
  } else if (error instanceof AppError) {
    status = error.status;
    if (error.retryAfterS !== undefined) headers.push('Retry-After', String(error.retryAfterS));
    if (status === 405) headers.push('Allow', 'POST');
    body = errorText(id, status < 500 && status !== 429 ? codes.invalidRequest : status, error.message);
  } else {
    parts.onUnexpected(error, requestId);
    body = errorText(id, codes.internal, `internal error; request ${requestId}`);
  }
  write(response, status, headers, body, parts.slowReaderMs);
}

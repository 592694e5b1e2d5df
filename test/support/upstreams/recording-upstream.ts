import { EventEmitter, once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { listenLocally } from './local-server.ts';

export interface RecordedRequest {
  readonly method: string;
  /** Path and query exactly as received, neither decoded nor normalized. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** Name, value, name, value, and so on, with the client's spelling, order, and repetitions. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** True if the client disconnected before the response was complete. */
  readonly aborted: boolean;
  /** Resolves when either side has ended the exchange. */
  readonly closed: Promise<'answered' | 'aborted'>;
  /** Sends the response to a request whose handler returned 'hold'. */
  release(response?: CannedResponse): void;
}

export interface CannedResponse {
  status?: number;
  headers?: OutgoingHttpHeaders;
  /** Sends text and bytes unchanged, and anything else as JSON. */
  body?: unknown;
  delayMs?: number;
}

export type Handler = (request: RecordedRequest) => CannedResponse | 'hold' | Promise<CannedResponse | 'hold'>;

export interface RecordingUpstream {
  readonly url: string;
  readonly port: number;
  /** All requests so far, oldest first: complete ones, and those whose client disconnected while sending the body. */
  readonly requests: readonly RecordedRequest[];
  /** Number of TCP connections accepted so far, including those that never sent a byte. */
  readonly connections: number;
  /**
   * Sets the handler of a route. `route` is 'GET /path' (no query), or '*' for all requests without their own handler.
   */
  on(route: string, handler: Handler): void;
  /** Removes and returns the requests so far. */
  take(): RecordedRequest[];
  /** Resolves with the nth request since the last take(), immediately if it has already arrived. */
  waitForRequest(nth?: number): Promise<RecordedRequest>;
  close(): Promise<void>;
}

type PendingResponse = PromiseWithResolvers<CannedResponse>;

const echo: Handler = ({ method, url, headers, body }) => ({ body: { method, url, headers, body: body.toString() } });

async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of message) chunks.push(chunk);
  } catch {
    // The client disconnected while sending the body. The received bytes are still recorded.
  }
  return Buffer.concat(chunks);
}

async function record(
  message: IncomingMessage,
  response: ServerResponse,
  pendingResponse: PendingResponse,
): Promise<RecordedRequest> {
  const { method = '', url = '', headers, rawHeaders } = message;
  const outcome = { aborted: false };
  const closed = new Promise<'answered' | 'aborted'>((resolve) => {
    response.once('close', () => {
      outcome.aborted = !response.writableFinished;
      resolve(outcome.aborted ? 'aborted' : 'answered');
    });
  });
  const body = await readBody(message);
  return {
    method,
    url,
    headers,
    rawHeaders,
    body,
    closed,
    get aborted() {
      return outcome.aborted;
    },
    release: (response = {}) => pendingResponse.resolve(response),
  };
}

function send(response: ServerResponse, { status = 200, headers = {}, body = '' }: CannedResponse): void {
  if (response.destroyed) return;
  if (typeof body === 'string' || body instanceof Uint8Array) response.writeHead(status, headers).end(body);
  else response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

async function resolveResponse(
  handler: Handler,
  request: RecordedRequest,
  pendingResponse: PendingResponse,
): Promise<CannedResponse> {
  try {
    const response = await handler(request);
    return response === 'hold' ? await pendingResponse.promise : response;
  } catch (error) {
    return { status: 500, body: `The test's handler failed: ${String(error)}` };
  }
}

async function handleExchange(
  message: IncomingMessage,
  response: ServerResponse,
  handlers: ReadonlyMap<string, Handler>,
  add: (request: RecordedRequest) => void,
): Promise<void> {
  const pendingResponse = Promise.withResolvers<CannedResponse>();
  const request = await record(message, response, pendingResponse);
  add(request);
  if (!message.complete) return;
  const route = `${request.method} ${request.url.split('?', 1)[0]}`;
  const handler = handlers.get(route) ?? handlers.get('*') ?? echo;
  const cannedResponse = await resolveResponse(handler, request, pendingResponse);
  if (cannedResponse.delayMs) await delay(cannedResponse.delayMs, undefined, { ref: false });
  send(response, cannedResponse);
}

/** Starts an upstream that records every request and responds as the test sets. By default, it echoes the request. */
export async function startRecordingUpstream(): Promise<RecordingUpstream> {
  const handlers = new Map<string, Handler>();
  const requests: RecordedRequest[] = [];
  const arrivals = new EventEmitter();
  let connections = 0;
  const add = (request: RecordedRequest) => {
    requests.push(request);
    arrivals.emit('request');
  };
  const server = createServer((message, response) => void handleExchange(message, response, handlers, add));
  server.on('connection', () => {
    connections += 1;
  });
  const { url, port, close } = await listenLocally(server);
  return {
    url,
    port,
    requests,
    get connections() {
      return connections;
    },
    on: (route, handler) => void handlers.set(route, handler),
    take: () => requests.splice(0),
    waitForRequest: async (nth = 1) => {
      for (;;) {
        const received = requests[nth - 1];
        if (received) return received;
        await once(arrivals, 'request');
      }
    },
    close,
  };
}

import { EventEmitter, once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { brokenResponses } from './broken-responses.ts';
import { listenLocally } from './local-server.ts';
import { type Behavior, formatHead, formatRawResponse, ignoreDisconnect, type RawExchange } from './raw-responses.ts';

export interface AdversarialRequest {
  /** Request line 'GET /path?query' as received. */
  readonly line: string;
  /** Resolves when the connection that carried the request is closed. */
  readonly closed: Promise<void>;
}

export interface AdversarialUpstream {
  readonly url: string;
  readonly port: number;
  /**
   * Number of open connections, including idle ones. After an abort, undici opens a spare one, so use `closed` to see a
   * client disconnect.
   */
  readonly openSockets: number;
  /** All requests, oldest first. */
  readonly requests: readonly AdversarialRequest[];
  /** Resolves with the nth request, immediately if it has already arrived. */
  waitForRequest(nth?: number): Promise<AdversarialRequest>;
  close(): Promise<void>;
}

const MEGABYTE = 1024 * 1024;
const BOMB_MEGABYTES = 200;

/** Announces 1,000 bytes and sends eleven. */
function formatIncompleteResponse(): string {
  return `${formatHead('200 OK', { 'content-type': 'application/json', 'content-length': 1000 })}{"begun": "`;
}

function* generateLongString(): Generator<Buffer> {
  const piece = Buffer.alloc(MEGABYTE, 'a');
  yield Buffer.from('"');
  for (let sent = 0; sent < BOMB_MEGABYTES; sent += 1) yield piece;
  yield Buffer.from('"');
}

function* generateEndlessArray(): Generator<Buffer> {
  const chunk = (text: string) => Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`);
  yield chunk('["first"');
  const element = chunk(`,"${'a'.repeat(16 * 1024)}"`);
  for (;;) yield element;
}

function sendSlowly({ socket }: RawExchange): void {
  socket.write(`${formatHead('200 OK', { 'content-type': 'application/json', 'content-length': 1_000_000_000 })}"`);
  const timer = setInterval(() => socket.write('a'), 50);
  socket.once('close', () => clearInterval(timer));
}

function sendBomb({ socket }: RawExchange): void {
  socket.write(
    formatHead('200 OK', { 'content-type': 'application/json', 'content-encoding': 'gzip', connection: 'close' }),
  );
  ignoreDisconnect(pipeline(Readable.from(generateLongString()), createGzip({ level: 1 }), socket));
}

function sendEndless({ socket }: RawExchange): void {
  socket.write(formatHead('200 OK', { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }));
  ignoreDisconnect(pipeline(Readable.from(generateEndlessArray()), socket));
}

function sendHugeHeaders({ socket }: RawExchange): void {
  const fields = Array.from({ length: 128 }, (_, index) => [`x-field-${index}`, 'a'.repeat(8 * 1024)]);
  socket.write(formatRawResponse('{}', Object.fromEntries(fields)));
}

function sendStatus({ socket, argument }: RawExchange): void {
  const bodiless = argument === '204' || argument === '304';
  if (bodiless) socket.write(formatHead(`${argument} Chosen`, {}));
  else socket.write(formatRawResponse(`{"status":${argument}}`, {}, `${argument} Chosen`));
}

function sendRedirect({ socket, argument, query }: RawExchange): void {
  socket.write(formatRawResponse('{}', { location: query.get('to') ?? '' }, `${argument} Elsewhere`));
}

// The socket closes between the end of this response and the client's next request, whichever side notices first.
function sendAndClose({ socket }: RawExchange): void {
  socket.end(formatRawResponse('{"last":true}', { connection: 'keep-alive', 'keep-alive': 'timeout=60' }), () =>
    socket.destroy(),
  );
}

const BEHAVIORS: ReadonlyMap<string, Behavior> = new Map<string, Behavior>([
  ['silence', () => undefined],
  ['drip', sendSlowly],
  ['reset', ({ socket }) => void socket.resetAndDestroy()],
  ['reset-mid-body', ({ socket }) => void socket.write(formatIncompleteResponse(), () => socket.resetAndDestroy())],
  ['half-close', ({ socket }) => void socket.end(formatIncompleteResponse())],
  ['bomb', sendBomb],
  ['endless', sendEndless],
  ['garbage', ({ socket }) => void socket.end(Buffer.from([0, 255, 19, 7, 128, 10, 13, 10, 0, 254]))],
  ['huge-headers', sendHugeHeaders],
  ['bad-json', ({ socket }) => void socket.write(formatRawResponse('{"list": [1, 2'))],
  ['deep-json', ({ socket }) => void socket.write(formatRawResponse('['.repeat(20_000) + ']'.repeat(20_000)))],
  [
    'wrong-type',
    ({ socket }) => void socket.write(formatRawResponse('<html>No image.</html>', { 'content-type': 'image/png' })),
  ],
  ['status', sendStatus],
  ['redirect', sendRedirect],
  [
    'extra-response',
    ({ socket }) =>
      void socket.write(Buffer.concat([formatRawResponse('{"first":true}'), formatRawResponse('{"extra":true}')])),
  ],
  ['bad-gzip', ({ socket }) => void socket.write(formatRawResponse('{"plain":true}', { 'content-encoding': 'gzip' }))],
  ['bad-utf8', ({ socket }) => void socket.write(formatRawResponse(Buffer.from([0x22, 0xc3, 0x28, 0xff, 0xfe, 0x22])))],
  ['keep-alive-close', sendAndClose],
  ...brokenResponses,
]);

function misbehave(socket: Socket, target: string): void {
  const [path = '', search] = target.split('?', 2);
  const [, name = '', argument = ''] = path.split('/');
  const behavior = BEHAVIORS.get(name);
  if (behavior) behavior({ socket, argument, query: new URLSearchParams(search) });
  else socket.write(formatRawResponse(`{"unknown":${JSON.stringify(name)}}`, {}, '404 Not Found'));
}

interface ParsedRequest {
  line: string;
  remainder: Buffer;
}

function findBodyEnd(bytes: Buffer, headText: string, start: number): number {
  if (!/^transfer-encoding: *chunked/im.test(headText)) {
    return start + Number(/^content-length: *(\d+)/im.exec(headText)?.[1] ?? 0);
  }
  const lastChunk = bytes.indexOf('\r\n0\r\n\r\n', start - 2);
  return lastChunk < 0 ? Number.POSITIVE_INFINITY : lastChunk + 7;
}

/** Parses one complete request from the start of the bytes. Returns undefined while it is incomplete. */
function parseRequest(bytes: Buffer): ParsedRequest | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const lines = bytes.toString('latin1', 0, end);
  const next = findBodyEnd(bytes, lines, end + 4);
  if (bytes.length < next) return undefined;
  return { line: lines.split(' HTTP/', 1)[0] ?? '', remainder: bytes.subarray(next) };
}

function serve(socket: Socket, onRequest: (request: AdversarialRequest) => void): void {
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  let pending: Buffer = Buffer.alloc(0);
  socket.on('data', (data: Buffer) => {
    pending = Buffer.concat([pending, data]);
    for (let request = parseRequest(pending); request; request = parseRequest(pending)) {
      pending = request.remainder;
      onRequest({ line: request.line, closed });
      if (socket.writable) misbehave(socket, request.line.split(' ')[1] ?? '/');
    }
  });
  // Clients that disconnect are the subject of these tests. 'close' follows and cleans up.
  socket.on('error', () => undefined);
}

/** Starts an HTTP server that misbehaves in the way that the first segment of the path names. */
export async function startAdversarialUpstream(): Promise<AdversarialUpstream> {
  const requests: AdversarialRequest[] = [];
  const arrivals = new EventEmitter();
  const server = createServer((socket) => {
    serve(socket, (request) => {
      requests.push(request);
      arrivals.emit('request');
    });
  });
  const { url, port, sockets, close } = await listenLocally(server);
  return {
    url,
    port,
    get openSockets() {
      return sockets.size;
    },
    requests,
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

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { type Behavior, formatHead, formatRawResponse, ignoreDisconnect } from './raw-responses.ts';

const bombBytes = 32 * 1024 * 1024;
const slowIntervalMs = 20;
const json = { 'content-type': 'application/json' };
const chunked = formatHead('200 OK', { ...json, 'transfer-encoding': 'chunked' });

/** Number of records in a long list, each sent in a separate chunk, as well-behaved upstreams do. */
export const streamedRows = 20_000;
const row = JSON.stringify({ id: 1, name: 'A row of an ordinary size', note: 'x'.repeat(60) });
const buildRowChunks = () => {
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  return `${chunked}${chunk(`[${row}`)}${chunk(`,${row}`).repeat(streamedRows - 1)}${chunk(']')}0\r\n\r\n`;
};

const sends =
  (bytes: string | Buffer): Behavior =>
  ({ socket }) =>
    void socket.write(bytes);
const sendsAndCloses =
  (bytes: string): Behavior =>
  ({ socket }) =>
    void socket.end(bytes);
const sendsAndResets =
  (bytes: string): Behavior =>
  ({ socket }) =>
    void socket.write(bytes, () => socket.resetAndDestroy());

/** Sends the first text, then the second every few milliseconds until the client disconnects. */
const sendsSlowly =
  (first: string, repeated: string): Behavior =>
  ({ socket }) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(repeated), slowIntervalMs);
    socket.once('close', () => clearInterval(timer));
  };

/** Sends a valid response after the number of ms in the path (default: 1,900). */
const respondAfterDelay: Behavior = ({ socket, argument }) => {
  const timer = setTimeout(() => socket.write(formatRawResponse('{"slow":true}')), Number(argument || 1900));
  socket.once('close', () => clearTimeout(timer));
};

function* repeatForever(first: string, piece: Buffer): Generator<Buffer> {
  yield Buffer.from(first);
  for (;;) yield piece;
}

/** Sends as fast as the client reads, until it disconnects. */
const sendsForever = (first: string, piece: string): Behavior => {
  const repeatedPiece = Buffer.from(piece.repeat(Math.ceil(16_384 / piece.length)));
  return ({ socket }) => ignoreDisconnect(pipeline(Readable.from(repeatForever(first, repeatedPiece)), socket));
};

/** Sends a few kilobytes that decompress to many megabytes. They are compressed at the first request. */
const sendsBomb = (coding: string, compress: (bytes: Buffer) => Buffer): Behavior => {
  let response: Buffer | undefined;
  return ({ socket }) => {
    response ??= formatRawResponse(compress(Buffer.from(`"${'a'.repeat(bombBytes)}"`)), { 'content-encoding': coding });
    socket.write(response);
  };
};

const fastBrotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };

/** Responses that are broken on the wire, by the name in the first segment of the path. */
export const brokenResponses: readonly [name: string, behaviour: Behavior][] = [
  ['say', ({ socket, argument }) => void socket.write(formatRawResponse(JSON.stringify({ said: argument })))],
  ['slow', respondAfterDelay],
  ['rows', ({ socket }) => void socket.write(buildRowChunks())],
  ['close', sendsAndCloses('')],
  ['close-in-headers', sendsAndCloses('HTTP/1.1 200 OK\r\ncontent-type: appl')],
  ['reset-in-headers', sendsAndResets('HTTP/1.1 200 OK\r\ncontent-type: appl')],
  ['reset-after-interim', sendsAndResets(formatHead('103 Early Hints', { link: '</a>' }))],
  ['drip-headers', sendsSlowly('HTTP/1.1 200 OK\r\n', 'x-more: a\r\n')],
  ['drip-body', sendsSlowly(chunked, '1\r\n \r\n')],
  ['endless-headers', sendsForever('HTTP/1.1 200 OK\r\n', 'x-more: a\r\n')],
  ['interim-flood', sendsForever('', formatHead('103 Early Hints', { link: '</a>' }))],
  ['tiny-chunks', sendsForever(chunked, '1\r\n1\r\n')],
  ['gzip-bomb', sendsBomb('gzip', gzipSync)],
  ['deflate-bomb', sendsBomb('deflate', deflateSync)],
  ['br-bomb', sendsBomb('br', (bytes) => brotliCompressSync(bytes, fastBrotli))],
  ['zstd-bomb', sendsBomb('zstd', zstdCompressSync)],
  // Less is announced than sent, so the remainder looks like the next response.
  ['short-length', sends(`${formatHead('200 OK', { ...json, 'content-length': 5 })}{"a":1}`)],
  ['long-length', sends(`${formatHead('200 OK', { ...json, 'content-length': 1000 })}{"a":1}`)],
  ['two-lengths', sends(`HTTP/1.1 200 OK\r\ncontent-length: 7\r\ncontent-length: 2\r\n\r\n{"a":1}`)],
  ['no-length', sends(`${formatHead('200 OK', { ...json, 'content-length': 'many' })}{"a":1}`)],
  [
    'length-and-chunks',
    sends(`${formatHead('200 OK', { 'content-length': 7, 'transfer-encoding': 'chunked' })}{"a":1}`),
  ],
  ['bad-chunks', sends(`${chunked}zz\r\n{"a":1}\r\n0\r\n\r\n`)],
  ['http2', sends(Buffer.from([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]))],
  ['banner', sends('SSH-2.0-OpenSSH_9.9\r\n')],
  ['upgrade', sends(formatHead('101 Switching Protocols', { upgrade: 'x', connection: 'upgrade' }))],
];

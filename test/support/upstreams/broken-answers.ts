import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { type Behaviour, head, ignoreLeaving, whole } from './raw-answers.ts';

const bombBytes = 32 * 1024 * 1024;
const dripMs = 20;
const json = { 'content-type': 'application/json' };
const chunked = head('200 OK', { ...json, 'transfer-encoding': 'chunked' });

/** Number of records in a long list, each sent in a separate chunk, as well-behaved upstreams do. */
export const streamedRows = 20_000;
const row = JSON.stringify({ id: 1, name: 'A row of an ordinary size', note: 'x'.repeat(60) });
const rowChunks = () => {
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  return `${chunked}${chunk(`[${row}`)}${chunk(`,${row}`).repeat(streamedRows - 1)}${chunk(']')}0\r\n\r\n`;
};

const says =
  (bytes: string | Buffer): Behaviour =>
  ({ socket }) =>
    void socket.write(bytes);
const saysAndCloses =
  (bytes: string): Behaviour =>
  ({ socket }) =>
    void socket.end(bytes);
const saysAndResets =
  (bytes: string): Behaviour =>
  ({ socket }) =>
    void socket.write(bytes, () => socket.resetAndDestroy());

/** Sends the first text, then the second every few milliseconds until the client disconnects. */
const drips =
  (first: string, other: string): Behaviour =>
  ({ socket }) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(other), dripMs);
    socket.once('close', () => clearInterval(timer));
  };

/** Sends a valid response after the number of ms in the path (default: 1,900). */
const slow: Behaviour = ({ socket, argument }) => {
  const timer = setTimeout(() => socket.write(whole('{"slow":true}')), Number(argument || 1900));
  socket.once('close', () => clearTimeout(timer));
};

function* forEver(first: string, piece: Buffer): Generator<Buffer> {
  yield Buffer.from(first);
  for (;;) yield piece;
}

/** Sends as fast as the client reads, until it disconnects. */
const floods = (first: string, piece: string): Behaviour => {
  const many = Buffer.from(piece.repeat(Math.ceil(16_384 / piece.length)));
  return ({ socket }) => ignoreLeaving(pipeline(Readable.from(forEver(first, many)), socket));
};

/** Sends a few kilobytes that decompress to many megabytes. They are compressed at the first request. */
const bomb = (coding: string, pack: (bytes: Buffer) => Buffer): Behaviour => {
  let answer: Buffer | undefined;
  return ({ socket }) => {
    answer ??= whole(pack(Buffer.from(`"${'a'.repeat(bombBytes)}"`)), { 'content-encoding': coding });
    socket.write(answer);
  };
};

const quickly = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };

/** Responses that are broken on the wire, by the name in the first segment of the path. */
export const brokenAnswers: readonly [name: string, behaviour: Behaviour][] = [
  ['say', ({ socket, argument }) => void socket.write(whole(JSON.stringify({ said: argument })))],
  ['slow', slow],
  ['rows', ({ socket }) => void socket.write(rowChunks())],
  ['close', saysAndCloses('')],
  ['close-in-headers', saysAndCloses('HTTP/1.1 200 OK\r\ncontent-type: appl')],
  ['reset-in-headers', saysAndResets('HTTP/1.1 200 OK\r\ncontent-type: appl')],
  ['reset-after-interim', saysAndResets(head('103 Early Hints', { link: '</a>' }))],
  ['drip-headers', drips('HTTP/1.1 200 OK\r\n', 'x-more: a\r\n')],
  ['drip-body', drips(chunked, '1\r\n \r\n')],
  ['endless-headers', floods('HTTP/1.1 200 OK\r\n', 'x-more: a\r\n')],
  ['interim-flood', floods('', head('103 Early Hints', { link: '</a>' }))],
  ['tiny-chunks', floods(chunked, '1\r\n1\r\n')],
  ['gzip-bomb', bomb('gzip', gzipSync)],
  ['deflate-bomb', bomb('deflate', deflateSync)],
  ['br-bomb', bomb('br', (bytes) => brotliCompressSync(bytes, quickly))],
  ['zstd-bomb', bomb('zstd', zstdCompressSync)],
  // Less is announced than sent, so the remainder looks like the next response.
  ['short-length', says(`${head('200 OK', { ...json, 'content-length': 5 })}{"a":1}`)],
  ['long-length', says(`${head('200 OK', { ...json, 'content-length': 1000 })}{"a":1}`)],
  ['two-lengths', says(`HTTP/1.1 200 OK\r\ncontent-length: 7\r\ncontent-length: 2\r\n\r\n{"a":1}`)],
  ['no-length', says(`${head('200 OK', { ...json, 'content-length': 'many' })}{"a":1}`)],
  ['length-and-chunks', says(`${head('200 OK', { 'content-length': 7, 'transfer-encoding': 'chunked' })}{"a":1}`)],
  ['bad-chunks', says(`${chunked}zz\r\n{"a":1}\r\n0\r\n\r\n`)],
  ['http2', says(Buffer.from([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]))],
  ['banner', says('SSH-2.0-OpenSSH_9.9\r\n')],
  ['upgrade', says(head('101 Switching Protocols', { upgrade: 'x', connection: 'upgrade' }))],
];

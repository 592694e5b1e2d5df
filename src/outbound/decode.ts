import { isUtf8 } from 'node:buffer';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { JobError, OutboundError } from '../errors.ts';
import type { Answer, Exchange } from './exchange.ts';

type Options = { maxOutputLength: number; chunkSize: number };
type Coding = {
  decode: (data: Uint8Array, options: Options) => Promise<Buffer>;
  decodeSync: (data: Uint8Array, options: Options) => Buffer;
};

const gzip: Coding = { decode: promisify(zlib.gunzip), decodeSync: zlib.gunzipSync };
/** Raw deflate, without the zlib header, as some servers send it (RFC 9110, 8.4.1.2). */
const rawDeflate = 'raw deflate';
const codings = new Map<string, Coding>([
  ['gzip', gzip],
  ['x-gzip', gzip],
  ['deflate', { decode: promisify(zlib.inflate), decodeSync: zlib.inflateSync }],
  [rawDeflate, { decode: promisify(zlib.inflateRaw), decodeSync: zlib.inflateRawSync }],
  ['br', { decode: promisify(zlib.brotliDecompress), decodeSync: zlib.brotliDecompressSync }],
  ['zstd', { decode: promisify(zlib.zstdDecompress), decodeSync: zlib.zstdDecompressSync }],
]);

/** Decoding of a body on a thread. */
export type DecodeJob = {
  input: { body: Uint8Array; coding: string; limitBytes: number };
  output: { body: Uint8Array } | { failure: 'oversize' | 'malformed' };
};

/**
 * Decodes on a job thread what has more than `shortBytes`, compressed or decompressed. Node's own threads also look up
 * names and read files for everybody, and know no workspaces. @throws JobError
 */
export type DecodeOnThread = (
  input: DecodeJob['input'],
  of: Pick<Exchange, 'workspaceId' | 'onGone' | 'held'>,
) => Promise<DecodeJob['output']>;

const shortBytes = 64 * 1024;
/** Bytes that are decoded at once; each piece costs the event loop the same. Node's own 16 KB are many pieces. */
const pieceBytes = 64 * 1024;

/**
 * Decodes the content coding of an answer's body. We ask for none, but some upstreams compress nevertheless.
 * The header is a list when the upstream named several codings; no honest one does. Some write there what is no coding
 * (`none`, a character set): then the bytes decide.
 * @throws OutboundError oversize when the result exceeds the limit of the exchange, malformed when it does not decode,
 * busy when too many others wait to be decoded
 */
export async function decodeBody(answer: Answer, exchange: Exchange, onThread: DecodeOnThread): Promise<Buffer> {
  const { body } = answer;
  const { limitBytes } = exchange;
  const name = codingOf(answer.headers['content-encoding'], body);
  if (noCoding.test(name) || body.length === 0) return body;
  const coding = codings.get(name);
  if (!coding && isUtf8(body)) return body;
  if (!coding) throw new OutboundError('malformed', 'the upstream answered in a content coding that is not known');
  if (body.length <= shortBytes) {
    try {
      return await coding.decode(body, { maxOutputLength: Math.min(limitBytes, shortBytes), chunkSize: pieceBytes });
    } catch (error) {
      if (!isTooLong(error)) throw malformed();
      if (limitBytes <= shortBytes) throw oversize(limitBytes);
    }
  }
  const output = await onThread({ body, coding: name, limitBytes }, exchange).catch(refused);
  if ('body' in output) return Buffer.from(output.body.buffer, output.body.byteOffset, output.body.byteLength);
  throw output.failure === 'oversize' ? oversize(limitBytes) : malformed();
}

export function runDecodeJob({ body, coding, limitBytes }: DecodeJob['input']): {
  output: DecodeJob['output'];
  transfer: ArrayBuffer[];
} {
  try {
    const decoded = codings.get(coding)?.decodeSync(body, { maxOutputLength: limitBytes, chunkSize: pieceBytes });
    if (!decoded) return { output: { failure: 'malformed' }, transfer: [] };
    return { output: { body: decoded }, transfer: decoded.buffer instanceof ArrayBuffer ? [decoded.buffer] : [] };
  } catch (error) {
    return { output: { failure: isTooLong(error) ? 'oversize' : 'malformed' }, transfer: [] };
  }
}

/** No coding, and what mail calls the transfer of bytes as they are. */
const noCoding = /^(identity|none|binary|[78]bit|utf-?8|us-ascii|(iso-8859|windows)-\d+)?$/;

function nameOf(coding: string | readonly string[] | undefined): string {
  return String(coding ?? '')
    .trim()
    .toLowerCase();
}

/** The coding of a body: `deflate` without the header of zlib (RFC 1950, 2.2) is raw. */
function codingOf(header: string | readonly string[] | undefined, body: Buffer): string {
  const name = nameOf(header);
  if (name !== 'deflate' || body.length < 2) return name;
  const isZlib = ((body[0] as number) & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0;
  return isZlib ? name : rawDeflate;
}

function isTooLong(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
}

function malformed(): OutboundError {
  return new OutboundError('malformed', 'the upstream answered with a body that does not decompress');
}

/** @throws OutboundError busy, oversize, cancelled, instead of JobError */
function refused(error: unknown): never {
  if (!(error instanceof JobError) || error.reason === 'failed') throw error;
  const message = `the compressed answer of the upstream was not decoded: ${error.message}`;
  if (error.reason === 'refused') throw new OutboundError('busy', `${message}; make fewer large calls at once`);
  throw new OutboundError(error.reason === 'cancelled' ? 'cancelled' : 'oversize', message);
}

export function oversize(limitBytes: number): OutboundError {
  return new OutboundError('oversize', `the answer is larger than ${limitBytes} bytes`);
}

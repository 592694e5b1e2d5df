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
/** Raw deflate without the zlib header, as some servers send it (RFC 9110, 8.4.1.2). */
const rawDeflate = 'raw deflate';
const codings = new Map<string, Coding>([
  ['gzip', gzip],
  ['x-gzip', gzip],
  ['deflate', { decode: promisify(zlib.inflate), decodeSync: zlib.inflateSync }],
  [rawDeflate, { decode: promisify(zlib.inflateRaw), decodeSync: zlib.inflateRawSync }],
  ['br', { decode: promisify(zlib.brotliDecompress), decodeSync: zlib.brotliDecompressSync }],
  ['zstd', { decode: promisify(zlib.zstdDecompress), decodeSync: zlib.zstdDecompressSync }],
]);

/** Input and output of decoding a body on a thread. */
export type DecodeJob = {
  input: { body: Uint8Array; coding: string; limitBytes: number };
  output: { body: Uint8Array } | { failure: 'oversize' | 'malformed' };
};

/**
 * Decodes a body on a job thread if it has more than `shortBytes`, compressed or decompressed. Node's own threads also
 * resolve names and read files for everyone, without fairness among workspaces. @throws JobError
 */
export type DecodeOnThread = (
  input: DecodeJob['input'],
  of: Pick<Exchange, 'workspaceId' | 'onGone' | 'held'>,
) => Promise<DecodeJob['output']>;

const shortBytes = 64 * 1024;
/** Output chunk size. Each chunk has a fixed cost for the event loop, and Node's default of 16 KB produces many. */
const pieceBytes = 64 * 1024;

/**
 * Decodes the content coding of a response body. Requests never ask for one, but some upstreams compress anyway. The
 * header is a list if the upstream named several codings, which no well-behaved upstream does. Some set a value that is
 * not a coding (`none`, a character set): then the bytes decide.
 * @throws OutboundError oversize if the result exceeds the limit of the exchange, malformed if it cannot be decoded,
 * busy if too many others are waiting
 */
export async function decodeBody(answer: Answer, exchange: Exchange, onThread: DecodeOnThread): Promise<Buffer> {
  const { body } = answer;
  const { limitBytes } = exchange;
  const name = codingOf(answer.headers['content-encoding'], body);
  if (noCoding.test(name) || body.length === 0) return body;
  const coding = codings.get(name);
  if (!coding && isUtf8(body)) return body;
  if (!coding) throw new OutboundError('malformed', 'the upstream responded with an unknown content coding');
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

/** Names of no coding, including the transfer encodings and character sets of email. */
const noCoding = /^(identity|none|binary|[78]bit|utf-?8|us-ascii|(iso-8859|windows)-\d+)?$/;

function nameOf(coding: string | readonly string[] | undefined): string {
  return String(coding ?? '')
    .trim()
    .toLowerCase();
}

/** Returns the coding of a body. `deflate` without the zlib header (RFC 1950, 2.2) is raw. */
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
  return new OutboundError('malformed', 'the upstream responded with a body that cannot be decompressed');
}

/** Converts a JobError. @throws OutboundError busy, oversize, cancelled */
function refused(error: unknown): never {
  if (!(error instanceof JobError) || error.reason === 'failed') throw error;
  const message = `the compressed upstream response was not decoded: ${error.message}`;
  if (error.reason === 'refused') throw new OutboundError('busy', `${message}; make fewer large calls in parallel`);
  throw new OutboundError(error.reason === 'cancelled' ? 'cancelled' : 'oversize', message);
}

export function oversize(limitBytes: number): OutboundError {
  return new OutboundError('oversize', `the response is larger than ${limitBytes} bytes`);
}

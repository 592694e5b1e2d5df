import { isUtf8 } from 'node:buffer';
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { JobError, OutboundError } from '@toolhost/errors/errors';
import type { Exchange, UpstreamResponse } from './exchange.ts';

type Options = { maxOutputLength: number; chunkSize: number };
type Coding = {
  decode: (data: Uint8Array, options: Options) => Promise<Buffer>;
  decodeSync: (data: Uint8Array, options: Options) => Buffer;
};

const gzip: Coding = { decode: promisify(zlib.gunzip), decodeSync: zlib.gunzipSync };
/** Raw deflate without the zlib header, as some servers send it (RFC 9110, 8.4.1.2). */
const rawDeflate = 'raw deflate';
const codingsByName = new Map<string, Coding>([
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
 * Decodes a body with more than `maxInlineBytes`, compressed or decompressed, on a job thread. Node's own threads also
 * resolve names and read files for everyone, without fairness among workspaces. @throws JobError
 */
export type DecodeOnThread = (
  input: DecodeJob['input'],
  owner: Pick<Exchange, 'workspaceId' | 'registerCancel' | 'reservation'>,
) => Promise<DecodeJob['output']>;

const maxInlineBytes = 64 * 1024;
/** Output chunk size. Each chunk has a fixed cost for the event loop, and Node's default of 16 KB produces many. */
const outputChunkBytes = 64 * 1024;

/**
 * Decodes the content coding of a response body. Requests never ask for one, but some upstreams compress anyway. The
 * header is a list if the upstream named several codings, which no well-behaved upstream does. Some set a value that is
 * not a coding (`none`, a character set): then the bytes decide.
 * @throws OutboundError oversize if the result exceeds the limit of the exchange, malformed if it cannot be decoded,
 * busy if too many others are waiting
 */
export async function decodeBody(
  response: UpstreamResponse,
  exchange: Exchange,
  onThread: DecodeOnThread,
): Promise<Buffer> {
  const { body } = response;
  const { limitBytes } = exchange;
  const name = getCoding(response.headers['content-encoding'], body);
  if (noCodingPattern.test(name) || body.length === 0) return body;
  const coding = codingsByName.get(name);
  if (!coding && isUtf8(body)) return body;
  if (!coding) throw new OutboundError('malformed', 'the upstream responded with an unknown content coding');
  if (body.length <= maxInlineBytes) {
    try {
      return await coding.decode(body, {
        maxOutputLength: Math.min(limitBytes, maxInlineBytes),
        chunkSize: outputChunkBytes,
      });
    } catch (error) {
      if (!isOversizeError(error)) throw createMalformedError();
      if (limitBytes <= maxInlineBytes) throw createOversizeError(limitBytes);
    }
  }
  const output = await onThread({ body, coding: name, limitBytes }, exchange).catch(rethrowJobError);
  if ('body' in output) return Buffer.from(output.body.buffer, output.body.byteOffset, output.body.byteLength);
  throw output.failure === 'oversize' ? createOversizeError(limitBytes) : createMalformedError();
}

export function runDecodeJob({ body, coding, limitBytes }: DecodeJob['input']): {
  output: DecodeJob['output'];
  transfer: ArrayBuffer[];
} {
  try {
    const decoded = codingsByName
      .get(coding)
      ?.decodeSync(body, { maxOutputLength: limitBytes, chunkSize: outputChunkBytes });
    if (!decoded) return { output: { failure: 'malformed' }, transfer: [] };
    return { output: { body: decoded }, transfer: decoded.buffer instanceof ArrayBuffer ? [decoded.buffer] : [] };
  } catch (error) {
    return { output: { failure: isOversizeError(error) ? 'oversize' : 'malformed' }, transfer: [] };
  }
}

/** Matches names that mean no coding, including the transfer encodings and character sets of email. */
const noCodingPattern = /^(identity|none|binary|[78]bit|utf-?8|us-ascii|(iso-8859|windows)-\d+)?$/;

function normalizeName(coding: string | readonly string[] | undefined): string {
  return String(coding ?? '')
    .trim()
    .toLowerCase();
}

/** Returns the coding of a body. `deflate` without the zlib header (RFC 1950, 2.2) is raw. */
function getCoding(header: string | readonly string[] | undefined, body: Buffer): string {
  const name = normalizeName(header);
  if (name !== 'deflate' || body.length < 2) return name;
  const isZlib = ((body[0] as number) & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0;
  return isZlib ? name : rawDeflate;
}

function isOversizeError(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
}

function createMalformedError(): OutboundError {
  return new OutboundError('malformed', 'the upstream responded with a body that cannot be decompressed');
}

/** Converts a JobError. @throws OutboundError busy, oversize, cancelled */
function rethrowJobError(error: unknown): never {
  if (!(error instanceof JobError) || error.reason === 'failed') throw error;
  const message = `the compressed upstream response was not decoded: ${error.message}`;
  if (error.reason === 'refused') throw new OutboundError('busy', `${message}; make fewer large calls in parallel`);
  throw new OutboundError(error.reason === 'cancelled' ? 'cancelled' : 'oversize', message);
}

export function createOversizeError(limitBytes: number): OutboundError {
  return new OutboundError('oversize', `the response is larger than ${limitBytes} bytes`);
}

import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { OutboundError } from '../errors.ts';

type Decoder = (data: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const decoders = new Map<string, Decoder>([
  ['gzip', promisify(zlib.gunzip)],
  ['x-gzip', promisify(zlib.gunzip)],
  ['deflate', promisify(zlib.inflate)],
  ['br', promisify(zlib.brotliDecompress)],
  ['zstd', promisify(zlib.zstdDecompress)],
]);

/**
 * Decodes the content coding of a body. We ask for none, but some upstreams compress nevertheless.
 * `coding` is a list when the upstream named several; no honest one does.
 * @throws OutboundError oversize when the result exceeds `limitBytes`, malformed when it does not decode
 */
export async function decodeBody(
  body: Buffer,
  coding: string | readonly string[] | undefined,
  limitBytes: number,
): Promise<Buffer> {
  const name = String(coding ?? '')
    .trim()
    .toLowerCase();
  if (name === '' || name === 'identity' || body.length === 0) return body;
  const decode = decoders.get(name);
  if (!decode) throw new OutboundError('malformed', 'the upstream answered in a content coding that is not known');
  try {
    return await decode(body, { maxOutputLength: limitBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw oversize(limitBytes);
    throw new OutboundError('malformed', 'the upstream answered with a body that does not decompress');
  }
}

export function oversize(limitBytes: number): OutboundError {
  return new OutboundError('oversize', `the answer is larger than ${limitBytes} bytes`);
}

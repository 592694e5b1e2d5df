import type { IncomingMessage } from 'node:http';
import { AppError } from './errors.ts';

/** How much of a body that is too large is still taken off the wire; who sends more is cut off. */
const drainBytes = 16 * 1024 * 1024;
/** Every chunk costs time and memory of its own, however small it is; no honest client sends a few bytes at a time. */
const maxPieces = 16_384;

/**
 * The whole body of a request, counted while it arrives. The rest of one that is too large is thrown away rather than
 * left unread, because a client that is still sending would see a broken connection instead of the refusal.
 * @throws AppError tooLarge as soon as more than `limitBytes` are announced or have come, or come in too many pieces
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let pieces = 0;
    let isTooLarge = false;
    const refuse = (why: string) => {
      isTooLarge = true;
      chunks.length = 0;
      reject(new AppError('tooLarge', why));
    };
    const tooLarge = `the body is larger than ${limitBytes} bytes`;
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) refuse(tooLarge);
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      pieces++;
      if (!isTooLarge && size > limitBytes) refuse(tooLarge);
      if (!isTooLarge && pieces > maxPieces) refuse(`the body comes in more than ${maxPieces} pieces`);
      if (!isTooLarge) chunks.push(chunk);
      else if (size > drainBytes || pieces > 2 * maxPieces) request.destroy();
    });
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    request.on('error', () => reject(new AppError('invalid', 'the request ended before its body did')));
  });
}

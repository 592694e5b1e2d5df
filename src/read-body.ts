import type { IncomingMessage } from 'node:http';
import { AppError } from './errors.ts';

/** How much of a body that is too large is still taken off the wire; who sends more is cut off. */
const drainBytes = 16 * 1024 * 1024;

/**
 * The whole body of a request, counted while it arrives. The rest of one that is too large is thrown away rather than
 * left unread, because a client that is still sending would see a broken connection instead of the refusal.
 * @throws AppError tooLarge as soon as more than `limitBytes` are announced or have come
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let isTooLarge = false;
    const refuse = () => {
      isTooLarge = true;
      chunks.length = 0;
      reject(new AppError('tooLarge', `the body is larger than ${limitBytes} bytes`));
    };
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) refuse();
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (!isTooLarge && size > limitBytes) refuse();
      if (!isTooLarge) chunks.push(chunk);
      else if (size > drainBytes) request.destroy();
    });
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    request.on('error', () => reject(new AppError('invalid', 'the request ended before its body did')));
  });
}

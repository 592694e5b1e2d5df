import type { IncomingMessage } from 'node:http';
import { AppError } from '../errors.ts';

/**
 * The whole body of a request, counted while it arrives.
 * @throws AppError tooLarge as soon as more than `limitBytes` are announced or have come
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const tooLarge = () => new AppError('tooLarge', `the body is larger than ${limitBytes} bytes`);
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) {
      reject(tooLarge());
      return;
    }
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limitBytes) chunks.push(chunk);
      else {
        request.pause();
        reject(tooLarge());
      }
    });
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('aborted', () => reject(new AppError('invalid', 'the request ended before its body did')));
  });
}

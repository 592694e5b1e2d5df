import type { ServerResponse } from 'node:http';

/**
 * Ends a response. `headers` alternates names and values and is added to what is set already.
 * A client that does not take its answer within `slowReaderMs` is cut off, so that it holds no memory.
 */
export function write(
  response: ServerResponse,
  status: number,
  headers: string[],
  body: string | undefined,
  slowReaderMs: number,
): void {
  if (response.destroyed) return;
  response.statusCode = status;
  for (let i = 0; i < headers.length; i += 2) response.setHeader(headers[i] as string, headers[i + 1] as string);
  if (body === undefined) response.end();
  else {
    const bytes = Buffer.from(body, 'utf8');
    response.setHeader('Content-Length', bytes.length);
    response.end(bytes);
  }
  if (response.writableFinished) return;
  const timer = setTimeout(() => response.destroy(), slowReaderMs);
  timer.unref();
  response.on('close', () => clearTimeout(timer));
}

import { randomBytes } from 'node:crypto';
import { getTexts } from './server-requests.ts';
import type { ToolCallResult } from './toolhost/toolhost.ts';
import type { CannedResponse } from './upstreams/recording-upstream.ts';

/** Returns the URL of the file that a result mentions in a text. */
export function getFileUrl(result: ToolCallResult): string {
  return /https?:\S+/.exec(getTexts(result).join('\n'))?.[0] ?? '';
}

/** Builds a file that begins with these bytes. The NUL byte of the default prevents its detection as text. */
export function createFileBytes(size: number, start: Buffer = Buffer.alloc(1)): Buffer {
  return Buffer.concat([start, randomBytes(size)], size);
}

export function buildZipResponse(body: Buffer): CannedResponse {
  return { headers: { 'content-type': 'application/zip' }, body };
}

import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import { loadedOnce } from '../domain/work/next-turn.ts';

/** Serves a JSON document that never changes while the process runs. It is serialised at the first request. */
export function staticDocument(make: () => object | Promise<object>): (c: Context) => Promise<Response> {
  const read = loadedOnce(async () => written(await make()));
  return async (c) => {
    const made = await read();
    // Caches revalidate their copy with the entity tag (RFC 9110, 13.1.2).
    const headers = { ETag: made.etag, 'Cache-Control': 'no-cache' };
    if (isSame(c.req.header('if-none-match'), made.etag)) return c.body(null, 304, headers);
    return c.body(made.text, 200, { ...headers, 'Content-Type': 'application/json' });
  };
}

function written(document: object): { text: string; etag: string } {
  const text = JSON.stringify(document);
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` };
}

/** Whether `If-None-Match` holds this entity tag, by weak comparison. */
export function isSame(noneMatch: string | undefined, etag: string): boolean {
  if (noneMatch === undefined) return false;
  return noneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}

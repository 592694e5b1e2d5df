import type { CustomFetch } from 'openid-client';
import { afterRunning } from '../domain/work/running-time.ts';

/** An honest answer has a few KB: a set of a hundred keys has 50. */
const mostBytes = 256 * 1024;
const mostMs = 10_000;
/** Answers without a body (Fetch Standard, null body status). */
const withoutBody = new Set([204, 205, 304]);

/**
 * `fetch` for the identity provider, whose answers are kept in memory and read as a whole: a longer one is cut off, and one
 * that is not whole in ten seconds. The library's own time limit would count stops of this process.
 * @throws Error for an answer that is too large, and what `fetch` throws
 */
export async function boundedFetch(...[url, options]: Parameters<CustomFetch>): Promise<Response> {
  const timeLimit = new AbortController();
  const late = new DOMException(`no whole answer within ${mostMs / 1000} s`, 'TimeoutError');
  const cancel = afterRunning(mostMs, () => timeLimit.abort(late));
  try {
    const { status, headers, body } = await fetch(url, { ...(options as RequestInit), signal: timeLimit.signal });
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body ?? []) {
      size += chunk.length;
      if (size > mostBytes) throw new Error(`${new URL(url).host} answered with more than ${mostBytes} bytes`);
      chunks.push(chunk);
    }
    return new Response(withoutBody.has(status) ? null : Buffer.concat(chunks), { status, headers });
  } finally {
    cancel();
  }
}

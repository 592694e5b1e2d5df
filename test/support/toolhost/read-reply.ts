import type { Json, Reply } from './toolhost.ts';

/** Reads a whole response, and parses its body if it is JSON. */
export async function readReply(response: Response): Promise<Reply> {
  const text = await response.text();
  const isJson = /json\b/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, text, body: isJson ? (JSON.parse(text) as Json) : {} };
}

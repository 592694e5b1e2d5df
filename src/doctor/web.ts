import { mediaTypeOf } from '../domain/http/media-type.ts';
import { type Fields, objectOf } from './check.ts';
import { connectionReason } from './connection-reason.ts';

/** An answer of the examined server; `text` is cut at `mostAnswerBytes`. */
export type Answered = {
  url: string;
  status: number;
  headers: Headers;
  text: string;
  /** Undefined unless the text is a JSON object. */
  json: Fields | undefined;
};

export type Ask = { method?: string; headers?: Record<string, string>; body?: string };

/** Sends requests as clients do, without following redirects. */
export type WebClient = {
  /** @throws Unreachable */
  ask(url: string, ask?: Ask): Promise<Answered>;
};

/** Why there was no answer, in a sentence for people. */
export class Unreachable extends Error {}

export const mostAnswerBytes = 16 * 1024 * 1024;
const userAgent = 'toolhost-doctor';

/** `timeoutMs` is for a whole answer. */
export function createWebClient(fetch: typeof globalThis.fetch, timeoutMs: number): WebClient {
  return {
    async ask(url, { method = 'GET', headers = {}, body } = {}) {
      try {
        const response = await fetch(url, {
          method,
          headers: { 'user-agent': userAgent, ...headers },
          redirect: 'manual',
          signal: AbortSignal.timeout(timeoutMs),
          ...(body !== undefined && { body }),
        });
        const text = await textOf(response);
        return { url, status: response.status, headers: response.headers, text, json: jsonOf(text) };
      } catch (error) {
        throw new Unreachable(reasonOf(error, timeoutMs), { cause: error });
      }
    },
  };
}

/** Reads no further than the first message of an event stream, which may stay open. */
async function textOf(response: Response): Promise<string> {
  if (!response.body) return '';
  const isStream = typeOfAnswer(response.headers) === 'text/event-stream';
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    text += decoder.decode(value, { stream: true });
    if (bytes > mostAnswerBytes || (isStream && streamedMessage(text) !== undefined)) {
      await reader.cancel();
      return text;
    }
  }
}

export function typeOfAnswer(headers: Headers): string {
  return mediaTypeOf(headers.get('content-type') ?? undefined);
}

function jsonOf(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? objectOf(value) : undefined;
  } catch {
    // Whatever is no JSON object has none of the fields that are looked for.
    return undefined;
  }
}

/** The first JSON-RPC answer in an event stream; undefined while there is none. */
export function streamedMessage(stream: string): Fields | undefined {
  for (const event of stream.split(/\r?\n\r?\n/)) {
    const data = event
      .split(/\r?\n/)
      .filter((line) => line.startsWith('data:'))
      .map((line) => line.slice(5).trimStart())
      .join('\n');
    const message = jsonOf(data);
    if (message && ('result' in message || 'error' in message)) return message;
  }
  return undefined;
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === 'TimeoutError') return `it did not answer within ${timeoutMs / 1000} s`;
  const { code } = objectOf(error instanceof Error ? error.cause : undefined);
  return connectionReason(error) ?? `the connection failed${typeof code === 'string' ? ` (${code})` : ''}`;
}

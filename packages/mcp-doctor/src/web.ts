import { parseMediaType } from '@toolhost/tool-config/http/headers';

export type Fields = { [key: string]: unknown };

/** Returns a value if it is an object, otherwise an empty object. */
export function asObject(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function toStrings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === 'string') : [];
}

/** A response of the examined server. `text` is truncated at `maxWebResponseBytes`. */
export type WebResponse = {
  url: string;
  status: number;
  headers: Headers;
  text: string;
  /** Undefined unless the text is a JSON object. */
  json: Fields | undefined;
};

export type WebRequest = {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Skips the response body. A stream that a server opens for its own messages may never send anything. */
  isHeadOnly?: boolean;
};

/** Sends requests as clients do, without following redirects. */
export type WebClient = {
  /** @throws Unreachable */
  request(url: string, request?: WebRequest): Promise<WebResponse>;
};

/** Reason why there was no response, in a sentence for people. */
export class Unreachable extends Error {}

export const maxWebResponseBytes = 16 * 1024 * 1024;
const userAgent = 'toolhost-doctor';

/** Creates a client. `timeoutMs` applies to each whole response. */
export function createWebClient(fetch: typeof globalThis.fetch, timeoutMs: number): WebClient {
  return {
    async request(url, { method = 'GET', headers = {}, body, isHeadOnly = false } = {}) {
      try {
        const response = await fetch(url, {
          method,
          headers: { 'user-agent': userAgent, ...headers },
          redirect: 'manual',
          signal: AbortSignal.timeout(timeoutMs),
          ...(body !== undefined && { body }),
        });
        const text = isHeadOnly ? await discardBody(response) : await readText(response);
        return { url, status: response.status, headers: response.headers, text, json: parseJsonObject(text) };
      } catch (error) {
        throw new Unreachable(getReason(error, timeoutMs), { cause: error });
      }
    },
  };
}

async function discardBody(response: Response): Promise<string> {
  await response.body?.cancel();
  return '';
}

/** Reads the body. Stops after the first message of an event stream, which may stay open. */
async function readText(response: Response): Promise<string> {
  if (!response.body) return '';
  const isComplete = getMediaType(response.headers) === 'text/event-stream' ? createResponseDetector() : undefined;
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    const chunk = decoder.decode(value, { stream: true });
    text += chunk;
    if (bytes > maxWebResponseBytes || isComplete?.(chunk)) {
      await reader.cancel();
      return text;
    }
  }
}

export function getMediaType(headers: Headers): string {
  return parseMediaType(headers.get('content-type') ?? undefined);
}

function parseJsonObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? asObject(value) : undefined;
  } catch {
    // Anything other than a JSON object has none of the fields that are read.
    return undefined;
  }
}

const eventSeparator = /\r?\n\r?\n/;

/**
 * Creates a function that returns true for the chunk in which the first response of an event stream ends. Each event is
 * parsed once, regardless of the chunk boundaries.
 */
function createResponseDetector(): (chunk: string) => boolean {
  let unread = '';
  let tail = '';
  return (chunk) => {
    const isFinished = eventSeparator.test(tail + chunk);
    tail = (tail + chunk).slice(-2);
    unread += chunk;
    if (!isFinished) return false;
    const events = unread.split(eventSeparator);
    unread = events.pop() ?? '';
    return events.some((event) => parseEvent(event) !== undefined);
  };
}

/** Returns the first JSON-RPC response in an event stream; undefined if there is none yet. */
export function findStreamedMessage(stream: string): Fields | undefined {
  for (const event of stream.split(eventSeparator)) {
    const message = parseEvent(event);
    if (message) return message;
  }
  return undefined;
}

function parseEvent(event: string): Fields | undefined {
  const data = event
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trimStart())
    .join('\n');
  const message = parseJsonObject(data);
  return message && ('result' in message || 'error' in message) ? message : undefined;
}

function getReason(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === 'TimeoutError')
    return `the server did not respond within ${timeoutMs / 1000} s`;
  const { code } = asObject(error instanceof Error ? error.cause : undefined);
  return getConnectionReason(error) ?? `the connection failed${typeof code === 'string' ? ` (${code})` : ''}`;
}

const reasonsByCode: { readonly [code: string]: string } = {
  ENOTFOUND: 'its host name is unknown',
  EAI_AGAIN: 'its host name could not be resolved',
  ECONNREFUSED: 'nothing listens at its address',
  ECONNRESET: 'it closed the connection before the end of the response',
  UND_ERR_SOCKET: 'it closed the connection before the end of the response',
  UND_ERR_CONNECT_TIMEOUT: 'its address does not respond',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not use TLS on this port',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by an unknown authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate chain is incomplete',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is signed by an unknown authority',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
};

/** Returns why `fetch` got no complete response from a server, for people; undefined for an unlisted cause. */
export function getConnectionReason(error: unknown): string | undefined {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return reasonsByCode[String((cause as NodeJS.ErrnoException | undefined)?.code)];
}

import { Buffer } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { tokenPattern } from './token-pattern.ts';

/** Receives the parts of a response in their order. Its end is `ResponseReader.isDone`. */
export type ResponseHandler = {
  /**
   * Receives the head of the final response, or of an interim one (status 1xx). `bodyLength` is the number of body bytes
   * that follow; undefined if the head does not say.
   */
  onHead(status: number, statusText: string, headers: IncomingHttpHeaders, bodyLength: number | undefined): void;
  /** Receives body bytes, which are valid only until this function returns. */
  onBody(bytes: Buffer, start: number, end: number): void;
};

/** The bytes from an upstream are not an HTTP/1 response. */
export class NotHttpError extends Error {
  /** Description of the mistake for the caller. It contains none of the bytes. */
  readonly problem: string;

  constructor(problem: string) {
    super(problem);
    this.name = 'NotHttpError';
    this.problem = problem;
  }
}

const headEnd = Buffer.from('\r\n\r\n');
const cr = 0x0d;
const lf = 0x0a;
const httpPrefix = 'HTTP/1.';

/** Matches a status line (RFC 9112, 4). Some servers omit the reason phrase and the space before it. */
const statusLinePattern = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([^\r\n]*))?$/;
/** Matches a line break that is not CRLF, and a character that no head may contain (RFC 9110, 5.5). */
const invalidHeadPattern = /[^\t\r\n\x20-\x7e\x80-\xff]|\r(?!\n)|(?:^|[^\r])\n/;
const invalidHead = 'a head with control characters or bare line breaks';
const nonAsciiPattern = /[^\0-\x7f]/;
const lengthPattern = /^\d+$/;
const finalChunkedPattern = /(?:^|,)[\t ]*chunked$/i;
const closePattern = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const keepAlivePattern = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;
const keepAliveTimeoutPattern = /timeout=(\d+)/i;
/** Matches the extensions of a chunk (RFC 9112, 7.1.1), without the whitespace that only old senders add. */
const extensionPattern =
  /^(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[^"\\\r\n]|\\[^\r\n])*"))?)+$/;

/** Maximum size of a head. A transfer ends earlier, so this only limits what a single read can add. */
const maxHeadBytes = 256 * 1024;
/** Maximum size of the line before a chunk, and of a trailer line. */
const maxLineBytes = 16 * 1024;
/** Maximum hexadecimal digits of a chunk size; more would exceed 2^52 bytes. */
const maxSizeDigits = 13;

const states = {
  head: 0,
  length: 1,
  untilClose: 2,
  chunkLine: 3,
  chunk: 4,
  chunkEnd: 5,
  trailers: 6,
} as const;
type State = (typeof states)[keyof typeof states];

/**
 * Reads one response (RFC 9112) from the pieces in which it arrives, in time proportional to its length. Rejects
 * everything that two readers could understand differently: where a response ends decides who receives the next one.
 */
export class ResponseReader {
  /** True if another request may be sent on the connection after this response. */
  keepsAlive = false;
  /** Time in ms that the upstream keeps an idle connection, if it says so (`Keep-Alive: timeout`). */
  keepAliveTimeoutMs: number | undefined;
  /** True if the response is complete, or was stopped. */
  isDone = true;
  #state: State = states.head;
  #handler: ResponseHandler | undefined;
  #isHeadRequest = false;
  /** Beginning of an incomplete head or line, in a buffer that grows. */
  #partial: Buffer | undefined;
  #partialLength = 0;
  /** Bytes that the body or the chunk still has. */
  #remaining = 0;

  /** Starts to read the response to a request. */
  start(handler: ResponseHandler, method: string): void {
    this.#state = states.head;
    this.isDone = false;
    this.#handler = handler;
    this.#isHeadRequest = method === 'HEAD';
    this.keepsAlive = false;
    this.keepAliveTimeoutMs = undefined;
  }

  /** Ends the response here. */
  stop(): void {
    this.isDone = true;
    this.#handler = undefined;
    this.#partial = undefined;
    this.#partialLength = 0;
  }

  /**
   * Reads bytes, which are valid until this returns. Returns how many belonged to the response; not all if the response
   * or the reading ended before. @throws NotHttpError
   */
  read(bytes: Buffer): number {
    let at = 0;
    while (at < bytes.length && !this.isDone) {
      if (this.#state === states.head) at = this.#readHead(bytes, at);
      else if (this.#state === states.length || this.#state === states.chunk) at = this.#readBody(bytes, at);
      else if (this.#state === states.untilClose) {
        this.#handler?.onBody(bytes, at, bytes.length);
        at = bytes.length;
      } else at = this.#readLine(bytes, at);
    }
    return at;
  }

  /** True if the body ends where the upstream closes the connection. */
  get endsWithConnection(): boolean {
    return !this.isDone && this.#state === states.untilClose;
  }

  #readHead(bytes: Buffer, at: number): number {
    const previousLength = this.#partialLength;
    if (previousLength === 0) {
      // Some servers send a line break after a body (RFC 9112, 2.2).
      if (bytes[at] === cr || bytes[at] === lf) return at + 1;
      const length = bytes.indexOf(headEnd, at);
      if (length >= 0) {
        this.#takeHead(bytes.toString('latin1', at, length));
        return length + headEnd.length;
      }
    }
    const partial = this.#keepPartial(bytes, at, bytes.length);
    const length = partial.indexOf(headEnd, Math.max(0, previousLength - headEnd.length + 1));
    if (length < 0) {
      if (!mayBeHead(partial)) throw new NotHttpError('bytes that are not HTTP/1');
      if (hasBareLineFeed(partial, previousLength)) throw new NotHttpError(invalidHead);
      if (partial.length > maxHeadBytes) throw new NotHttpError('a head that is too long');
      return bytes.length;
    }
    this.#dropPartial();
    this.#takeHead(partial.toString('latin1', 0, length));
    return at + length + headEnd.length - previousLength;
  }

  /**
   * Adds bytes to the incomplete part, and returns all of it. Its capacity doubles, so that many small pieces cost no
   * more than one.
   */
  #keepPartial(bytes: Buffer, start: number, end: number): Buffer {
    const length = this.#partialLength + end - start;
    if (this.#partial === undefined || this.#partial.length < length) {
      const larger = Buffer.allocUnsafe(Math.max(1024, 2 * length));
      this.#partial?.copy(larger, 0, 0, this.#partialLength);
      this.#partial = larger;
    }
    bytes.copy(this.#partial, this.#partialLength, start, end);
    this.#partialLength = length;
    return this.#partial.subarray(0, length);
  }

  #dropPartial(): void {
    this.#partial = undefined;
    this.#partialLength = 0;
  }

  #takeHead(head: string): void {
    if (invalidHeadPattern.test(head)) throw new NotHttpError(invalidHead);
    const firstEnd = head.indexOf('\r\n');
    const match = statusLinePattern.exec(firstEnd < 0 ? head : head.slice(0, firstEnd));
    if (!match) throw new NotHttpError('an invalid status line');
    const [, minorVersion, digits, reason = ''] = match;
    const status = Number(digits);
    const headers = firstEnd < 0 ? {} : parseHeaders(head, firstEnd);
    if (status === 101) throw new NotHttpError('status 101, which was not requested');
    const handler = this.#handler as ResponseHandler;
    this.#chooseFraming(status, minorVersion === '1', headers);
    const bodyLength = this.#state === states.length ? this.#remaining : undefined;
    // Some servers send the reason phrase in UTF-8.
    const statusText = nonAsciiPattern.test(reason) ? Buffer.from(reason, 'latin1').toString() : reason;
    handler.onHead(status, statusText, headers, bodyLength);
    if (this.#handler === handler && this.#state === states.length && this.#remaining === 0) this.stop();
  }

  /** Determines how the body ends (RFC 9112, 6.3), and if the connection can be used again. */
  #chooseFraming(status: number, isHttp11: boolean, headers: IncomingHttpHeaders): void {
    const { connection, 'transfer-encoding': coding, 'content-length': length, 'keep-alive': keepAlive } = headers;
    const options = connection === undefined ? '' : String(connection);
    const isKept = (isHttp11 || keepAlivePattern.test(options)) && !closePattern.test(options);
    if (length !== undefined && coding !== undefined)
      throw new NotHttpError('both Content-Length and Transfer-Encoding');
    const bodyLength = length === undefined ? 0 : parseLength(length);
    if (status < 200) return;
    const seconds = keepAlive === undefined ? undefined : keepAliveTimeoutPattern.exec(String(keepAlive))?.[1];
    if (seconds !== undefined) this.keepAliveTimeoutMs = Number(seconds) * 1000;
    if (this.#isHeadRequest || status === 204 || status === 304) {
      // Some servers send a body nevertheless, and the next response would begin with it.
      this.keepsAlive = isKept && !this.#isHeadRequest && bodyLength === 0 && coding === undefined;
      this.#state = states.length;
      this.#remaining = 0;
    } else if (length !== undefined) {
      this.keepsAlive = isKept;
      this.#state = states.length;
      this.#remaining = bodyLength;
    } else if (coding !== undefined && finalChunkedPattern.test(String(coding))) {
      this.keepsAlive = isKept;
      this.#state = states.chunkLine;
    } else this.#state = states.untilClose;
  }

  #readBody(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#remaining);
    this.#remaining -= end - at;
    const handler = this.#handler as ResponseHandler;
    handler.onBody(bytes, at, end);
    if (this.#remaining > 0 || this.#handler !== handler) return end;
    if (this.#state === states.length) this.stop();
    else this.#state = states.chunkEnd;
    return end;
  }

  /** Reads a line of a chunked body: the size of a chunk, the line break after it, or a trailer (RFC 9112, 7.1). */
  #readLine(bytes: Buffer, at: number): number {
    const lineEnd = bytes.indexOf(lf, at);
    const next = lineEnd < 0 ? bytes.length : lineEnd + 1;
    if (this.#partialLength + next - at > maxLineBytes) throw new NotHttpError('a chunk line that is too long');
    if (lineEnd >= 0 && this.#partialLength === 0) this.#takeLine(bytes, at, lineEnd);
    else {
      const partial = this.#keepPartial(bytes, at, next);
      if (lineEnd < 0) return next;
      this.#dropPartial();
      this.#takeLine(partial, 0, partial.length - 1);
    }
    return next;
  }

  /** Takes a line up to its LF. */
  #takeLine(bytes: Buffer, start: number, lineEnd: number): void {
    const end = lineEnd - 1;
    if (end < start || bytes[end] !== cr) throw new NotHttpError('an invalid chunk');
    if (this.#state === states.chunkEnd) {
      if (end > start) throw new NotHttpError('an invalid chunk');
      this.#state = states.chunkLine;
    } else if (this.#state === states.chunkLine) {
      this.#remaining = parseChunkSize(bytes, start, end);
      this.#state = this.#remaining === 0 ? states.trailers : states.chunk;
    } else if (end === start) this.stop();
    else {
      const line = bytes.toString('latin1', start, end);
      const colon = line.indexOf(':');
      if (invalidHeadPattern.test(line) || colon < 0 || !tokenPattern.test(line.slice(0, colon)))
        throw new NotHttpError('an invalid trailer');
    }
  }
}

/** Parses the header lines of a head, which follow its status line. Repeated headers become an array. */
function parseHeaders(head: string, statusLineEnd: number): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {};
  let lineEnd = statusLineEnd;
  while (lineEnd >= 0) {
    const start = lineEnd + 2;
    lineEnd = head.indexOf('\r\n', start);
    const end = lineEnd < 0 ? head.length : lineEnd;
    const colon = head.indexOf(':', start);
    const name = head.slice(start, colon);
    if (colon < 0 || colon > end || !tokenPattern.test(name)) throw new NotHttpError('an invalid header line');
    addHeader(headers, name.toLowerCase(), sliceTrimmed(head, colon + 1, end));
  }
  return headers;
}

function addHeader(headers: IncomingHttpHeaders, name: string, value: string): void {
  const existing = headers[name];
  if (existing === undefined) headers[name] = value;
  else if (!Object.hasOwn(headers, name)) {
    // A name that every object inherits, such as `constructor` or `__proto__`.
    Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true });
  } else if (typeof existing === 'string') headers[name] = [existing, value];
  else existing.push(value);
}

/** Returns a part of the text without spaces and tabs around it. */
function sliceTrimmed(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (text[from] === ' ' || text[from] === '\t') from++;
  while (to > from && (text[to - 1] === ' ' || text[to - 1] === '\t')) to--;
  return text.slice(from, to);
}

/** Parses the size of a chunk and skips its extensions. @throws NotHttpError */
function parseChunkSize(bytes: Buffer, start: number, end: number): number {
  let size = 0;
  let at = start;
  for (let digit = toHexDigit(bytes[at]); at < end && digit >= 0; digit = toHexDigit(bytes[++at]))
    size = 16 * size + digit;
  if (at === start || at - start > maxSizeDigits) throw new NotHttpError('an invalid chunk size');
  if (at === end) return size;
  const extension = bytes.toString('latin1', at, end);
  if (!extensionPattern.test(extension) || invalidHeadPattern.test(extension))
    throw new NotHttpError('an invalid chunk size');
  return size;
}

function toHexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1;
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Parses a Content-Length. One that was repeated has become a list. @throws NotHttpError */
function parseLength(text: string): number {
  const length = lengthPattern.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(length)) throw new NotHttpError('an invalid or repeated Content-Length');
  return length;
}

/** Returns true if a line ends without CR at or after `start`. */
function hasBareLineFeed(bytes: Buffer, start: number): boolean {
  for (let index = bytes.indexOf(lf, start); index >= 0; index = bytes.indexOf(lf, index + 1))
    if (bytes[index - 1] !== cr) return true;
  return false;
}

/** Returns true if the bytes are the beginning of a head or could become it. */
function mayBeHead(bytes: Buffer): boolean {
  return httpPrefix.startsWith(bytes.toString('latin1', 0, httpPrefix.length));
}

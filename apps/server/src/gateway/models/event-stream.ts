import { ModelError } from './model-error.ts';

/**
 * Maximum length of an event from a model host, in characters. A tool call whose arguments arrive together is one
 * event.
 */
export const maxEventLength = 512 * 1024;

/**
 * Splits bytes into server-sent events (HTML Standard, 9.2.6), in time proportional to the number of bytes, however
 * they are divided. Only `data` is parsed, because model APIs repeat the other fields in it.
 */
export class EventStream {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  /** Start of a line whose end has not arrived. */
  #line = '';
  /** `data` lines of an event whose end has not arrived, and their total length in characters. */
  #data: string[] = [];
  #length = 0;
  /** True if the last line ended with CR, so that a following LF belongs to it. */
  #hasEndedWithCr = false;

  /** Processes the next bytes. Returns the data of the events that they complete. @throws ModelError */
  push(bytes: Uint8Array): string[] {
    return this.#split(this.#decode(bytes, true));
  }

  /** Returns the data of an event that the end of the response completes. @throws ModelError */
  end(): string[] {
    return this.#split(`${this.#decode(new Uint8Array(), false)}\n\n`);
  }

  #decode(bytes: Uint8Array, stream: boolean): string {
    try {
      return this.#decoder.decode(bytes, { stream });
    } catch {
      throw new ModelError('malformed', 'sent a response that is not valid UTF-8');
    }
  }

  #split(decoded: string): string[] {
    if (decoded === '') return [];
    const text = this.#hasEndedWithCr && decoded.startsWith('\n') ? decoded.slice(1) : decoded;
    this.#hasEndedWithCr = decoded.endsWith('\r');
    const lines = text.split(/\r\n|[\r\n]/);
    lines[0] = this.#line + lines[0];
    this.#line = lines.pop() ?? '';
    const events: string[] = [];
    for (const line of lines) {
      if (line === '' && this.#data.length > 0) events.push(this.#takeEvent());
      if (line.startsWith('data:')) this.#addData(line.slice(line.startsWith('data: ') ? 6 : 5));
    }
    this.#checkLength(this.#line.length);
    return events;
  }

  #addData(value: string): void {
    this.#data.push(value);
    this.#length += value.length + 1;
    this.#checkLength(0);
  }

  #checkLength(extraLength: number): void {
    if (this.#length + extraLength > maxEventLength)
      throw new ModelError('oversize', `sent an event of more than ${maxEventLength} characters`);
  }

  #takeEvent(): string {
    const event = this.#data.join('\n');
    this.#data = [];
    this.#length = 0;
    return event;
  }
}

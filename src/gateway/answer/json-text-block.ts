import { Buffer } from 'node:buffer';
import type { EscapedPieces } from '../../domain/json/json-scan.ts';
import type { JsonText, ToolResult } from '../../domain/mcp.ts';

/**
 * From this length in bytes on, decoding bytes into text costs more than writing them separately from the rest of the
 * answer.
 */
const longBytes = 4096;
/** The beginning of content that begins with a text. */
export const textStart = '[{"type":"text","text":"';
/** The end of content that is one text. */
export const textEnd = '"}]';
const startBytes = Buffer.from(textStart);
const endBytes = Buffer.from(textEnd);

/**
 * The content of a result whose text is JSON, made of the escaped text that the scan of the JSON writes: `JSON.stringify`
 * would go over the same text once more, which takes ten times as long.
 */
export class JsonTextBlock implements EscapedPieces {
  readonly #json: Buffer;
  readonly #isShort: boolean;
  #text = '';
  /** Of a long text. The first piece begins with the start of the content and has room for its end. */
  readonly #pieces: Buffer[] = [];

  constructor(json: Buffer) {
    this.#json = json;
    this.#isShort = json.length < longBytes;
  }

  add(bytes: Buffer, length: number): void {
    // A short text is one piece, so no character is divided.
    if (this.#isShort) this.#text = bytes.toString('utf8', 0, length);
    else if (this.#pieces.length > 0) this.#pieces.push(copyOf(bytes, length, 0, 0));
    else {
      const first = copyOf(bytes, length, startBytes.length, endBytes.length);
      first.set(startBytes);
      this.#pieces.push(first);
    }
  }

  /** The result. Only for JSON that the scan found to be compact. */
  result(): ToolResult {
    return {
      content: this.#content(),
      structured: this.#isShort ? this.#json.toString('utf8') : this.#json,
      isError: false,
    };
  }

  #content(): JsonText {
    if (this.#isShort) return textStart + this.#text + textEnd;
    const [first, ...others] = this.#pieces as [Buffer, ...Buffer[]];
    // Most long texts are one piece, which is then the content and not copied again.
    if (others.length === 0) {
      first.set(endBytes, first.length - endBytes.length);
      return first;
    }
    return Buffer.concat([first.subarray(0, first.length - endBytes.length), ...others, endBytes]);
  }
}

/** The first `length` bytes, with room before and behind them. */
function copyOf(bytes: Buffer, length: number, before: number, behind: number): Buffer {
  const copy = Buffer.allocUnsafe(before + length + behind);
  bytes.copy(copy, before, 0, length);
  return copy;
}

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
 * The content of a result whose text is JSON, made of what the scan of the JSON escapes: `JSON.stringify` would go over
 * the same text once more, which takes ten times as long.
 */
export class JsonTextBlock implements EscapedPieces {
  readonly #json: Buffer;
  readonly #isShort: boolean;
  #text = '';
  readonly #pieces: Uint8Array[] = [];

  constructor(json: Buffer) {
    this.#json = json;
    this.#isShort = json.length < longBytes;
  }

  add(bytes: Buffer, length: number): void {
    // A short text is one piece, so no character is divided.
    if (this.#isShort) this.#text = bytes.toString('utf8', 0, length);
    else this.#pieces.push(Uint8Array.prototype.slice.call(bytes, 0, length));
  }

  /** Once the JSON has been scanned as compact JSON. */
  result(): ToolResult {
    return {
      content: this.#content(),
      structured: this.#isShort ? this.#json.toString('utf8') : this.#json,
      isError: false,
    };
  }

  #content(): JsonText {
    if (this.#isShort) return textStart + this.#text + textEnd;
    return Buffer.concat([startBytes, ...this.#pieces, endBytes]);
  }
}

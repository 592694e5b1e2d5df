import { Buffer } from 'node:buffer';
import type { EscapedPieces } from '../../domain/json/json-scan.ts';
import type { ContentBlock, JsonText, ToolResult } from '../../domain/mcp.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';

/**
 * From this length in bytes on, decoding bytes into text costs more than writing them separately from the rest of the
 * answer.
 */
const longBytes = 4096;
/** JSON as a text when it is short, otherwise as its bytes. */
export function shortAsText(json: Buffer): JsonText {
  return json.length < longBytes ? json.toString('utf8') : json;
}

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
  readonly #length: number;
  readonly #isShort: boolean;
  #text = '';
  /** Of a long text. The first piece begins with the start of the content and has room for its end. */
  readonly #pieces: Buffer[] = [];

  constructor(json: Buffer) {
    this.#length = json.length;
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
    return { content: this.#content(), structured: undefined, isError: false, tokens: tokensOfLength(this.#length) };
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

const quote = 0x22;
const backslash = 0x5c;
/** Longest content that is parsed for its texts. */
const mostParsed = 64 * 1024;

/** The first bytes of the content of a result, as a copy that may go to a thread. */
export function startOfContent(content: JsonText, most: number): Uint8Array {
  const start = typeof content === 'string' ? Buffer.from(content.slice(0, most)) : content.subarray(0, most);
  return new Uint8Array(start);
}

/**
 * The text of a result, from the first bytes of its content; a file is a line that says its type. Of longer content at
 * least the first `most` bytes of its first text, or undefined when it begins with something else.
 */
export function textOfStart(start: Uint8Array, isWhole: boolean, most: number): string | undefined {
  const bytes = Buffer.from(start.buffer, start.byteOffset, start.byteLength);
  if (isWhole && bytes.length <= mostParsed)
    return (JSON.parse(bytes.toString('utf8')) as ContentBlock[]).map(textOfBlock).join('\n');
  if (bytes.toString('latin1', 0, textStart.length) !== textStart) return undefined;
  // An escaped character takes six bytes at most, and an unfinished one at the end is left out.
  const escaped = bytes.subarray(textStart.length, textStart.length + 6 * most);
  return JSON.parse(`"${escaped.toString('utf8', 0, endOfText(escaped))}"`) as string;
}

function textOfBlock(block: ContentBlock): string {
  if (block.type === 'text') return block.text;
  const { mimeType } = block.type === 'resource' ? block.resource : block;
  return block.type === 'resource' && 'text' in block.resource ? block.resource.text : `(a file, ${mimeType})`;
}

/** Index of the end of a text: its closing quote, or behind its last whole character. */
function endOfText(escaped: Buffer): number {
  let end = 0;
  while (end < escaped.length && escaped[end] !== quote) {
    const length = lengthAt(escaped, end);
    if (end + length > escaped.length) break;
    end += length;
  }
  return end;
}

/** Number of bytes of the character or the escape that begins here (RFC 8259, 7; RFC 3629). */
function lengthAt(escaped: Buffer, at: number): number {
  const byte = escaped[at] as number;
  if (byte === backslash) return escaped[at + 1] === 0x75 ? 6 : 2;
  if (byte < 0x80) return 1;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

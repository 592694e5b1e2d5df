import type { ContentBlock, JsonText } from '../../domain/mcp.ts';
import { textStart } from './json-text-block.ts';

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

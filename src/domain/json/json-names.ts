import type { JsonCursor, TextRange } from './json-cursor.ts';

const backslash = 0x5c;

/** Goes from the name of a member to its value. Returns the name if it is one of `names`. */
export function nextName<Name extends string>(cursor: JsonCursor, names: readonly Name[]): Name | undefined {
  const from = cursor.at;
  cursor.skipString();
  const end = cursor.at;
  cursor.skipColon();
  return names.find((name) => isText(cursor.bytes, { from, end }, name));
}

/** Whether a JSON string is a word of ASCII letters, which may be written as `\u0061`. */
function isText(bytes: Buffer, { from, end }: TextRange, word: string): boolean {
  let at = from + 1;
  for (let index = 0; index < word.length; index++) {
    let code = bytes[at++] as number;
    if (code === backslash) {
      // The other escapes stand for characters that no such word has.
      if (bytes[at] !== 0x75) return false;
      code = hexAt(bytes, at + 1);
      at += 5;
    }
    if (code !== word.charCodeAt(index)) return false;
  }
  return at === end - 1;
}

/** The number that four hexadecimal digits are. */
function hexAt(bytes: Buffer, from: number): number {
  let value = 0;
  for (let at = from; at < from + 4; at++) {
    const digit = bytes[at] as number;
    value = value * 16 + (digit <= 0x39 ? digit - 0x30 : (digit | 0x20) - 0x57);
  }
  return value;
}

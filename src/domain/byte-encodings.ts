/** Encodings of bytes as text other than Base64 and hex. */

const base32Alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** RFC 4648, 6; in any case, without padding. Characters of other alphabets must not be in it. */
export function decodeBase32(text: string): Buffer {
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const character of text.toUpperCase()) {
    value = ((value << 5) | base32Alphabet.indexOf(character)) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >> bits) & 0xff);
  }
  return Buffer.from(bytes);
}

/**
 * `%74`, also when the `%` is encoded again and again, `=74`, `\x74`, `\u0074`, `&#x74;`. A run of backslashes is read
 * once, from its beginning.
 */
const hexEscapes = /(?:%(?:25)*|=|(?<!\\)\\+(?:x|u00)|&#x0*)([0-9a-f]{2});?/gi;
/** `&#116;` */
const decimalEscapes = /&#0*(\d{2,3});?/g;

/** The text with every such escape replaced by its character. */
export function unescaped(text: string): string {
  return text
    .replaceAll(hexEscapes, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(decimalEscapes, (_, code: string) => String.fromCharCode(Number(code) & 0xff));
}

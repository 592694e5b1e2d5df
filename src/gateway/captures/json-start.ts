/** The longest start of a text, whole characters only, whose JSON has at most so many bytes with its quotes. */
export function startInJson(text: string, most: number): string {
  let left = most - 2;
  if (text.length * longestInJson <= left) return text;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) as number;
    left -= bytesInJson(code);
    if (left < 0) return text.slice(0, at);
    at += code > 0xffff ? 2 : 1;
  }
  return text;
}

/** What a character takes at most, as `\u0001`. */
const longestInJson = 6;
/** Control characters with an escape of two characters: \b, \t, \n, \f and \r. */
const shortEscapes: readonly number[] = [0x08, 0x09, 0x0a, 0x0c, 0x0d];

/** Bytes of a character as JSON.stringify writes it; half of a pair is an escape, too. */
function bytesInJson(code: number): number {
  if (code === 0x22 || code === 0x5c || shortEscapes.includes(code)) return 2;
  if (code < 0x20 || (code >= 0xd800 && code <= 0xdfff)) return longestInJson;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code <= 0xffff ? 3 : 4;
}

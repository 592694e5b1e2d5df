/**
 * JSON can write half of a surrogate pair (`"\ud83d"`), which is no character: many parsers refuse the whole text then
 * (RFC 8259, 8.2; RFC 7493, 2.1), and a client that has one of them loses a whole message.
 */

const backslash = 0x5c;
const letterU = 0x75;
const letterD = 0x64;
const hexDigits = '0123456789abcdef';
const valueOfHex = new Uint8Array(256).fill(0xff);
for (const [value, digit] of [...hexDigits].entries()) {
  valueOfHex[digit.charCodeAt(0)] = value;
  valueOfHex[digit.toUpperCase().charCodeAt(0)] = value;
}
const replacement = Buffer.from('fffd');
/** Length of an escape such as `\ud83d`. */
const escapeLength = 6;

/**
 * The same JSON with U+FFFD in place of each half of a surrogate pair. Bytes without one are returned as they are; those that
 * are no JSON stay none.
 */
export function wellFormedJson(bytes: Buffer): Buffer {
  const first = bytes.indexOf(backslash);
  if (first < 0 || !(bytes.includes('\\ud', first, 'latin1') || bytes.includes('\\uD', first, 'latin1'))) return bytes;
  let changed: Buffer | undefined;
  for (let at = first; at < bytes.length; at++) {
    if (bytes[at] !== backslash) continue;
    const half = surrogateAt(bytes, at);
    if (half === 'high' && surrogateAt(bytes, at + escapeLength) === 'low') at += escapeLength;
    else if (half !== undefined) {
      changed ??= Buffer.from(bytes);
      changed.set(replacement, at + 2);
    }
    // The character behind a backslash may be another one.
    at++;
  }
  return changed ?? bytes;
}

/** The same for a text. */
export function wellFormedJsonText(json: string): string {
  return json.includes('\\ud') || json.includes('\\uD') ? wellFormedJson(Buffer.from(json)).toString('utf8') : json;
}

/** Which half of a surrogate pair is escaped here; undefined for anything else, and for an escape that is cut off. */
function surrogateAt(bytes: Buffer, at: number): 'high' | 'low' | undefined {
  if (at + escapeLength > bytes.length) return undefined;
  if (bytes[at] !== backslash || bytes[at + 1] !== letterU) return undefined;
  if (((bytes[at + 2] ?? 0) | 0x20) !== letterD) return undefined;
  const second = valueOfHex[bytes[at + 3] ?? 0] ?? 0xff;
  if (second < 8 || second > 15) return undefined;
  return second < 12 ? 'high' : 'low';
}

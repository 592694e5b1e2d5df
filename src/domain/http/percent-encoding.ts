const unreserved = /^[A-Za-z0-9._~-]*$/;
const escapes: Record<string, string> = { '!': '%21', "'": '%27', '(': '%28', ')': '%29', '*': '%2A' };
/** From this length on, going over the bytes is quicker than replacing what encodeURIComponent leaves. */
const long = 1000;

/** Percent-encodes everything but the unreserved characters of RFC 3986, 2.3. The text must be well-formed. */
export function encode(text: string): string {
  if (unreserved.test(text)) return text;
  if (text.length >= long) return encodeLong(text);
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (character) => escapes[character] as string);
}

const digits = Buffer.from('0123456789ABCDEF');
const isUnreserved = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 && unreserved.test(String.fromCharCode(byte)) ? 1 : 0,
);

function encodeLong(text: string): string {
  const bytes = Buffer.from(text);
  const encoded = Buffer.allocUnsafe(3 * bytes.length);
  let to = 0;
  for (const byte of bytes) {
    if (isUnreserved[byte]) encoded[to++] = byte;
    else {
      encoded[to++] = 0x25;
      encoded[to++] = digits[byte >> 4] as number;
      encoded[to++] = digits[byte & 0xf] as number;
    }
  }
  return encoded.toString('latin1', 0, to);
}

const unreserved = /^[A-Za-z0-9._~-]*$/;
const left = /[!'()*]/;
/** From this length on, going over the bytes is quicker than encodeURIComponent. */
const long = 1000;

/** Percent-encodes everything but the unreserved characters of RFC 3986, 2.3. The text must be well-formed. */
export function encode(text: string): string {
  if (unreserved.test(text)) return text;
  if (text.length >= long || left.test(text)) return encodeBytes(text);
  return encodeURIComponent(text);
}

const digits = Buffer.from('0123456789ABCDEF');
const isUnreserved = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 && unreserved.test(String.fromCharCode(byte)) ? 1 : 0,
);

function encodeBytes(text: string): string {
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

const percent = 0x25;
/** The value of a byte as a hexadecimal digit, or 16. */
const digitOf = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = Number.parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(value) ? 16 : value;
});

/** The bytes of a text in which `%` before two hexadecimal digits stands for a byte. */
export function percentDecoded(text: string): Buffer {
  const bytes = Buffer.from(text);
  let to = bytes.indexOf(percent);
  if (to < 0) return bytes;
  // What is decoded is never longer, so it is written over what was read.
  for (let at = to; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    const high = byte === percent ? (digitOf[bytes[at + 1] ?? 0] as number) : 16;
    const low = high < 16 ? (digitOf[bytes[at + 2] ?? 0] as number) : 16;
    bytes[to++] = low < 16 ? (high << 4) | low : byte;
    if (low < 16) at += 2;
  }
  return bytes.subarray(0, to);
}

/** A name as `multipart/form-data` writes it between quotes (HTML, "multipart/form-data encoding algorithm"). */
export function quotedName(name: string): string {
  return name.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

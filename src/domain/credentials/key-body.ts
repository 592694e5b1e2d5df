import { crc32 } from 'node:zlib';
import { keyAlphabet, keyParts } from './api-key.ts';

const { id, secret, checksum } = keyParts;
const bodyLength = id + secret + checksum;
/** The value of each letter and digit in a checksum; 255 for everything else. */
const digits = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = keyAlphabet.indexOf(String.fromCharCode(code));
  return value < 0 ? 255 : value;
});
/** CRC-32 (ISO-HDLC), a byte at a time: for such short strings a call of the native function takes longer than the work. */
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});
const afterPrefix = ~crc32('thk_');
const underscore = 0x5f;

/** Whether a character can stand in the id, secret and checksum of a key. False for NaN, the end of a text. */
export function isKeyCharacter(code: number): boolean {
  return code < 256 && digits[code] !== 255;
}

/**
 * Whether the letters and digits of a text, without everything between them, hold the id, secret and checksum of an API
 * key: at any position, without prefix and separators, and backwards too if asked. One look at each byte and a checksum at
 * one of thirteen positions, since a checksum is below 2^32.
 */
export function holdsKeyBody(bytes: Uint8Array, alsoBackwards: boolean): boolean {
  const bare = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (digits[byte] !== 255) bare[length++] = byte;
  }
  if (length < bodyLength) return false;
  const whole = bare.subarray(0, length);
  return scan(whole) || (alsoBackwards && scan(whole.reverse()));
}

function scan(bare: Uint8Array): boolean {
  const last = bare.length - bodyLength;
  for (let at = 0; at <= last; at++) {
    // 62^5 times 5 is above 2^32.
    if ((digits[bare[at + id + secret] as number] as number) < 5 && isKeyBodyAt(bare, at)) return true;
  }
  return false;
}

/** Whether the id, secret and checksum of a key begin here, without anything between them. */
export function isKeyBodyAt(bare: Uint8Array, at: number): boolean {
  const until = at + id + secret;
  let stated = 0;
  for (let i = until; i < until + checksum; i++) stated = stated * 62 + (digits[bare[i] as number] as number);
  if (stated > 0xffffffff) return false;
  let crc = afterPrefix;
  for (let i = at; i < at + id; i++) crc = step(crc, bare[i] as number);
  crc = step(crc, underscore);
  for (let i = at + id; i < until; i++) crc = step(crc, bare[i] as number);
  return ~crc >>> 0 === stated;
}

function step(crc: number, byte: number): number {
  return (table[(crc ^ byte) & 0xff] as number) ^ (crc >>> 8);
}

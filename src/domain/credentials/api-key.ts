import { crc32 } from 'node:zlib';

/**
 * `thk_<id>_<secret><checksum>`: recognisable by secret scanners and by us, so that one of our keys is never sent to an
 * upstream. The checksum lets invalid text be refused without a query.
 */
/** Characters of the parts of a key. */
export const keyParts = { id: 12, secret: 43, checksum: 6 } as const;

const keyShape = /^thk_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

export const keyAlphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Bytes as base62 text of a fixed length, which must have enough characters: higher digits are lost. */
export function base62(bytes: Uint8Array, length: number): string {
  let number = 0n;
  for (const byte of bytes) number = (number << 8n) | BigInt(byte);
  let text = '';
  for (let i = 0; i < length; i++) {
    text = keyAlphabet[Number(number % 62n)] + text;
    number /= 62n;
  }
  return text;
}

function checksum(text: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return base62(bytes, 6);
}

/** A key from 9 random bytes for its public id and 32 for its secret. */
export function formatApiKey(idBytes: Uint8Array, secretBytes: Uint8Array): { id: string; key: string } {
  const id = base62(idBytes, 12);
  const body = `thk_${id}_${base62(secretBytes, 43)}`;
  return { id: `key_${id}`, key: body + checksum(body) };
}

/** Whether the two parts of a key behind its prefix belong together: the checksum fits. */
export function isKeyBody(id: string, secret: string): boolean {
  return apiKeyId(`thk_${id}_${secret}`) !== undefined;
}

/** The id of a well-formed key; undefined for any other text. */
export function apiKeyId(key: string): string | undefined {
  const match = keyShape.exec(key);
  if (!match) return undefined;
  return checksum(key.slice(0, -6)) === match[3] ? `key_${match[1]}` : undefined;
}

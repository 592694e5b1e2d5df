/** Parses one or more comma-separated keys. @throws Error with advice; the message contains no key */
export function parseMasterKeys(text: string): Buffer[] {
  const keys = text.split(',').map((key) => key.trim());
  const nonEmptyKeys = keys.filter((key) => key !== '');
  // If all are empty, parsing the first one throws.
  return (nonEmptyKeys.length === 0 ? keys : nonEmptyKeys).map(parseMasterKey);
}

/** Parses a key of at least 32 random bytes. @throws Error with advice; the message does not contain the key */
function parseMasterKey(text: string): Buffer {
  const advice = 'allowed: 32 random bytes in base64 or hex; generate a key with: openssl rand -base64 32';
  const bytes = decodeKey(text);
  if (!bytes) throw new Error(`MASTER_KEY: is neither base64 nor hex; ${advice}`);
  if (bytes.length < 32) throw new Error(`MASTER_KEY: is too short; ${advice}`);
  // 32 random bytes have about 30 distinct values and differences. Repeated or ascending bytes have few.
  const differences = new Set(bytes.map((byte, index) => byte - (bytes[index - 1] ?? 0)));
  if (new Set(bytes).size < 12 || differences.size < 12) throw new Error(`MASTER_KEY: is not random; ${advice}`);
  return bytes;
}

/** Decodes strictly. Node's decoder skips characters that are not base64, and would accept a passphrase as a key. */
function decodeKey(text: string): Buffer | undefined {
  if (/^([0-9a-f]{2})+$/i.test(text)) return Buffer.from(text, 'hex');
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64');
  const unpadded = text.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/');
  return bytes.toString('base64').replace(/=+$/, '') === unpadded ? bytes : undefined;
}

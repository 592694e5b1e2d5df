import { hash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { crc32 } from 'node:zlib';

/**
 * API keys have the form `thk_<id>_<secret><checksum>`. Secret scanners recognize it, and so does Toolhost, which never
 * sends one of its keys to an upstream. The checksum makes it possible to reject invalid text without a query.
 */
/** Number of characters in each component of a key. */
const keyComponentLengths = { id: 12, secret: 43, checksum: 6 } as const;

const keyPattern = /^thk_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

const keyAlphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Encodes bytes as base62 text of a fixed length. The length must suffice: higher digits are dropped. */
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

function computeChecksum(text: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return base62(bytes, 6);
}

/** Formats a key from 9 random bytes for its public id and 32 for its secret. */
export function formatApiKey(idBytes: Uint8Array, secretBytes: Uint8Array): { id: string; key: string } {
  const id = base62(idBytes, 12);
  const body = `thk_${id}_${base62(secretBytes, 43)}`;
  return { id: `key_${id}`, key: body + computeChecksum(body) };
}

/** Returns the id of a well-formed key; undefined for any other text. */
export function getApiKeyId(key: string): string | undefined {
  const match = keyPattern.exec(key);
  if (!match) return undefined;
  return computeChecksum(key.slice(0, -6)) === match[3] ? `key_${match[1]}` : undefined;
}

const { id, secret, checksum: checksumLength } = keyComponentLengths;
/** Value of each letter and digit in a checksum; 255 for everything else. */
const digitValues = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = keyAlphabet.indexOf(String.fromCharCode(code));
  return value < 0 ? 255 : value;
});
/**
 * Table for a byte-wise CRC-32 (ISO-HDLC). For strings this short, calling the native function takes longer than the
 * computation.
 */
const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});
const afterPrefix = ~crc32('thk_');
const underscore = 0x5f;

/**
 * Returns true for characters of the id, secret, and checksum of a key. False for NaN, which marks the end of a text.
 */
export function isKeyCharacter(code: number): boolean {
  return code < 256 && digitValues[code] !== 255;
}

/** Returns true if a key's id, secret, and checksum begin here, without separators between them. */
export function isKeyBodyAt(keyBytes: Uint8Array, start: number): boolean {
  const secretEnd = start + id + secret;
  let statedChecksum = 0;
  for (let i = secretEnd; i < secretEnd + checksumLength; i++)
    statedChecksum = statedChecksum * 62 + (digitValues[keyBytes[i] as number] as number);
  if (statedChecksum > 0xffffffff) return false;
  let crc = afterPrefix;
  for (let i = start; i < start + id; i++) crc = updateCrc(crc, keyBytes[i] as number);
  crc = updateCrc(crc, underscore);
  for (let i = start + id; i < secretEnd; i++) crc = updateCrc(crc, keyBytes[i] as number);
  return ~crc >>> 0 === statedChecksum;
}

function updateCrc(crc: number, byte: number): number {
  return (crcTable[(crc ^ byte) & 0xff] as number) ^ (crc >>> 8);
}

/** A source of random bytes. It is passed in, so that this module does not decide where randomness comes from. */
export type Random = (bytes: number) => Uint8Array;

/** Returns an identifier that cannot be guessed: a prefix and 128 random bits. */
export function newId(random: Random, prefix: string): string {
  return `${prefix}_${base62(random(16), 22)}`;
}

/** Length of the prefix of a workspace id that names its tenant; ids without a tenant prefix have this length. */
export const tenantIdLength = 26;

/** Returns the tenant of all workspaces that a person creates. */
export function getPersonTenantId(userId: string): string {
  return `wsp_${userId.slice('usr_'.length, tenantIdLength)}`;
}

/** Returns an id for a workspace that a person creates. It begins with the person's tenant, for `getTenantId`. */
export function newWorkspaceId(random: Random, creatorId: string): string {
  return newId(random, getPersonTenantId(creatorId));
}

/**
 * Returns the tenant that a workspace's share of the process is charged to: the person who created it, however many
 * workspaces that person has. A workspace that no person created has a shorter id and is its own tenant.
 */
export function getTenantId(workspaceId: string): string {
  return workspaceId.slice(0, tenantIdLength);
}

/** Returns 256 random bits as text. */
export function newSecret(random: Random): string {
  return base62(random(32), 43);
}

/** Returns the SHA-256 hash in hex. Keys, tokens, codes, states, and cookies are stored only as this hash. */
export function hashSecret(secret: string): string {
  return hash('sha256', secret, 'hex');
}

/** Maximum characters of the cached secrets and hashes, and the time for which they are cached, in ms. */
const maxCachedCharacters = 1024 * 1024;
const hashTtlMs = 60_000;
let cachedHashes = new Map<string, string>();
let cachedCharacters = 0;
let cachedSince = 0;

/**
 * Returns the hash of a secret that a request contains, as `hashSecret`. Caches it, because a caller sends the same
 * secret with each request. The first request after a minute drops the whole cache, so that secrets do not accumulate.
 */
export function hashPresentedSecret(secret: string): string {
  const now = performance.now();
  if (now - cachedSince >= hashTtlMs || cachedCharacters > maxCachedCharacters) {
    cachedHashes = new Map();
    cachedCharacters = 0;
    cachedSince = now;
  }
  const cached = cachedHashes.get(secret);
  if (cached !== undefined) return cached;
  const secretHash = hashSecret(secret);
  cachedHashes.set(secret, secretHash);
  cachedCharacters += secret.length + secretHash.length;
  return secretHash;
}

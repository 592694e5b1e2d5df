import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import { AppError } from '@toolhost/errors/errors';
import type { Tables } from '../schema.ts';

/**
 * Seals values as `v1.<key id>.<iv>.<ciphertext and tag>`, with AES-256-GCM and a 96-bit random IV. The context of a
 * value, which names its row and column, is additional authenticated data, so a ciphertext that is copied to another
 * row or column cannot be opened.
 */
export type Keyring = {
  /** Ids of the keys. The first key seals. */
  keyIds: readonly [string, ...string[]];
  seal(value: string | Uint8Array, context: string): string;
  /** Opens a stored value. @throws AppError internal if no key of the keyring can open it */
  open(sealed: string, context: string): string;
  /** Opens a stored value that is not text. @throws AppError internal */
  openBytes(sealed: string, context: string): Buffer;
  /**
   * Opens a text that this service issued to a client and that a request returns. Returns undefined for any other
   * text, which may be forged and says nothing about the keys.
   */
  openFromClient(sealed: string, context: string): string | undefined;
  /** Authenticates a text as written by this service, for one purpose only. */
  mac(text: string, purpose: string): string;
  verifyMac(mac: string, text: string, purpose: string): boolean;
};

const ivBytes = 12;
const tagBytes = 16;

/** Format of a key ID: eight hexadecimal digits. */
const keyIdPattern = /^[0-9a-f]{8}$/;

type DerivedKey = { id: string; key: Buffer; macKey: Buffer };

function deriveKey(master: Buffer): DerivedKey {
  const key = Buffer.from(hkdfSync('sha256', master, '', 'toolhost sealed values', 32));
  const macKey = Buffer.from(hkdfSync('sha256', master, '', 'toolhost message authentication', 32));
  return { id: createHash('sha256').update(key).digest('hex').slice(0, 8), key, macKey };
}

/** Returns the parts of a master key that may be stored: its id, and the key that only authenticates. */
export function getKeyIdentity(master: Buffer): { id: string; macKey: Buffer } {
  const { id, macKey } = deriveKey(master);
  return { id, macKey };
}

type KeyringOptions = {
  /** MAC keys of removed master keys. Texts that they authenticated remain valid. */
  retiredMacKeys?: readonly Buffer[];
  /** Called with the id of a key that would open a stored value but is not in the keyring. */
  onMissingKey?: (id: string) => void;
};

/**
 * Creates a keyring that seals with the first key and opens with any key, so that keys can be rotated. Keys have at
 * least 32 bytes.
 */
export function createKeyring(masters: readonly Buffer[], options: KeyringOptions = {}): Keyring {
  const keys = masters.map(deriveKey);
  const [sealingKey, ...otherKeys] = keys;
  if (!sealingKey) throw new Error('a keyring needs a key');
  const openBytes: Keyring['openBytes'] = (sealed, context) => {
    const missingKeyId = findMissingKey(keys, sealed);
    if (missingKeyId !== undefined) {
      options.onMissingKey?.(missingKeyId);
      throw new AppError('internal', 'a stored secret was sealed with a master key that is not in MASTER_KEY');
    }
    const opened = tryOpenWith(keys, sealed, context);
    if (opened) return opened;
    throw new AppError('internal', 'a stored secret cannot be opened, because its row was changed outside the service');
  };
  const macKeys = [...keys.map(({ macKey }) => macKey), ...(options.retiredMacKeys ?? [])];
  return {
    keyIds: [sealingKey.id, ...otherKeys.map(({ id }) => id)],
    seal(value, context) {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', sealingKey.key, iv);
      cipher.setAAD(Buffer.from(context));
      const sealed = Buffer.concat([
        cipher.update(typeof value === 'string' ? Buffer.from(value) : value),
        cipher.final(),
        cipher.getAuthTag(),
      ]);
      return `v1.${sealingKey.id}.${iv.toString('base64url')}.${sealed.toString('base64url')}`;
    },
    open: (sealed, context) => openBytes(sealed, context).toString('utf8'),
    openBytes,
    openFromClient: (sealed, context) => tryOpenWith(keys, sealed, context)?.toString('utf8'),
    mac: (text, purpose) => computeMac(sealingKey.macKey, text, purpose),
    verifyMac(mac, text, purpose) {
      return macKeys.some((key) => {
        const expected = Buffer.from(computeMac(key, text, purpose));
        const actual = Buffer.from(mac);
        return actual.length === expected.length && timingSafeEqual(actual, expected);
      });
    },
  };
}

/** Returns the id of the key that a sealed value names, if the keyring does not have it. */
function findMissingKey(keys: readonly DerivedKey[], sealed: string): string | undefined {
  const [version, id = ''] = sealed.split('.', 2);
  const hasKeyId = version === 'v1' && keyIdPattern.test(id);
  return hasKeyId && keys.every((key) => key.id !== id) ? id : undefined;
}

/** Returns undefined if no key opens the value. */
function tryOpenWith(keys: readonly DerivedKey[], sealed: string, context: string): Buffer | undefined {
  const [version, id, iv = '', data = ''] = sealed.split('.', 4);
  const key = keys.find((candidate) => candidate.id === id);
  if (version !== 'v1' || !key) return undefined;
  try {
    return decrypt(key.key, Buffer.from(iv, 'base64url'), Buffer.from(data, 'base64url'), context);
  } catch {
    // Changed, or sealed for another row or column.
    return undefined;
  }
}

function decrypt(key: Buffer, iv: Buffer, data: Buffer, context: string): Buffer {
  const end = data.length - tagBytes;
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(data.subarray(end));
  return Buffer.concat([decipher.update(data.subarray(0, end)), decipher.final()]);
}

function computeMac(key: Buffer, text: string, purpose: string): string {
  return createHmac('sha256', key).update(`${purpose}\0${text}`).digest('base64url');
}

/** Builds the context that a sealed value is bound to: its table, column, and row. */
export const contexts = {
  secret: (server: { workspaceId: string; id: string }, name: string) =>
    `secrets|sealed_value|${server.workspaceId}|${server.id}|${name}`,
  clientToken: (server: { workspaceId: string; id: string }, location: string) =>
    `client_tokens|sealed_token|${server.workspaceId}|${server.id}|${location}`,
  webhook: (workspaceId: string, id: string) => `webhooks|sealed_target|${workspaceId}|${id}`,
  modelKey: (workspaceId: string, name: string) => `models|sealed_key|${workspaceId}|${name}`,
  capture: (workspaceId: string, callId: string) => `captures|sealed_document|${workspaceId}|${callId}`,
  resultChunks: (workspaceId: string, id: string) => `result_chunks|sealed_chunks|${workspaceId}|${id}`,
  file: (workspaceId: string, id: string) => `files|sealed_head|${workspaceId}|${id}`,
  fileChunk: (workspaceId: string, id: string, number: number | string) =>
    `file_chunks|sealed_chunk|${workspaceId}|${id}|${number}`,
  grantTokens: (workspaceId: string, grantId: string) => `grants|sealed_tokens|${workspaceId}|${grantId}`,
  personValues: (workspaceId: string, { serverId, userId }: { serverId: string; userId: string }) =>
    `person_values|sealed_values|${workspaceId}|${serverId}|${userId}`,
  login: (id: string) => `authorizations|sealed_verifier|${id}`,
  macKey: (keyId: string) => `master_keys|sealed_mac_key|${keyId}`,
};

/** Column with values that are sealed with the master key. */
export type SealedColumn = {
  table: keyof Tables;
  column: string;
  /** Columns that identify a row. */
  key: readonly [string, ...string[]];
  /** Additional columns that the context requires. */
  contextColumns: readonly string[];
};

const workspaceColumns = ['workspace_id'];

/** All sealed columns; a test compares them with the tables. An empty value is not sealed. */
export const sealedColumns: readonly SealedColumn[] = [
  { table: 'secrets', column: 'sealed_value', key: ['server_id', 'name'], contextColumns: workspaceColumns },
  { table: 'models', column: 'sealed_key', key: ['workspace_id', 'name'], contextColumns: [] },
  { table: 'grants', column: 'sealed_tokens', key: ['id'], contextColumns: workspaceColumns },
  {
    table: 'person_values',
    column: 'sealed_values',
    key: ['server_id', 'user_id'],
    contextColumns: workspaceColumns,
  },
  { table: 'client_tokens', column: 'sealed_token', key: ['server_id', 'location'], contextColumns: workspaceColumns },
  { table: 'authorizations', column: 'sealed_verifier', key: ['id'], contextColumns: [] },
  { table: 'webhooks', column: 'sealed_target', key: ['id'], contextColumns: workspaceColumns },
  { table: 'captures', column: 'sealed_document', key: ['call_id'], contextColumns: workspaceColumns },
  { table: 'result_chunks', column: 'sealed_chunks', key: ['id'], contextColumns: workspaceColumns },
  { table: 'files', column: 'sealed_head', key: ['id'], contextColumns: workspaceColumns },
  { table: 'file_chunks', column: 'sealed_chunk', key: ['file_id', 'number'], contextColumns: workspaceColumns },
  { table: 'master_keys', column: 'sealed_mac_key', key: ['id'], contextColumns: [] },
];

/** Returns the context of a value in a row, identical to the text from `contexts`. */
export function getContext(
  { table, column, key, contextColumns }: SealedColumn,
  row: { readonly [column: string]: string },
): string {
  return [table, column, ...[...contextColumns, ...key].map((name) => row[name])].join('|');
}

import { hash } from 'node:crypto';
import type { QueryCharge } from '@toolhost/credentials/client-request';
import { newId } from '@toolhost/credentials/ids';
import { type FileHead, fileChunkBytes } from '@toolhost/tool-config/file-names';
import {
  type FileRow,
  findFile,
  findFileChunk,
  insertFileChunk,
  type NoSpace,
  reserveFile,
} from '../../store/calls/files.ts';
import { type Caller, toCallerDigest } from '../callers/caller.ts';
import { getServerAddress, type HostedServer } from '../hosted/hosted-server.ts';
import { getUnverifiedCallerId, type ResultStoreOptions } from '../stored-results.ts';

export type FileOwner = { server: HostedServer; caller: Caller };

/**
 * Outcome of storing a file. `freeInS` is the number of seconds until a file expires that uses the storage of the
 * workspace, or of the address.
 */
export type StoreFileResult =
  | { outcome: 'kept'; id: string }
  | { outcome: 'full'; scope: NoSpace['scope']; freeInS: number }
  | { outcome: 'lost' };

/** Stored large files of responses. They are in the database, so every process can serve them. */
export type FileStore = {
  /** Stores a file. Never rejects, because a file that cannot be stored must not make its call fail. */
  save(owner: FileOwner, head: FileHead, bytes: Uint8Array, requestId: string): Promise<StoreFileResult>;
  /** Finds the file of a URL that has not expired. Resolves with undefined for any other id. @throws database errors */
  find(id: string, chargeQuery?: QueryCharge): Promise<FileRow | undefined>;
  /** Reads one chunk of the bytes. Resolves with undefined if it has been deleted in the meantime. */
  findChunk(file: FileRow, number: number): Promise<Buffer | undefined>;
  count(event: FileEvent): void;
  /** Returns counts since the start, for metrics. */
  getCounts(): Readonly<Record<FileEvent, number>>;
};

export const fileEvents = ['kept', 'full', 'lost', 'served', 'cut', 'uploaded', 'missing'] as const;
export type FileEvent = (typeof fileEvents)[number];

export function createFileStore({ db, records, keyring, random, now, onUnexpected }: ResultStoreOptions): FileStore {
  const counts = Object.fromEntries(fileEvents.map((event) => [event, 0])) as Record<FileEvent, number>;

  async function store({ server, caller }: FileOwner, head: FileHead, bytes: Uint8Array): Promise<StoreFileResult> {
    const id = newId(random, 'file');
    const { workspaceId, id: serverId } = server;
    const fileKey = { id: digestId(id), workspaceId, at: now() };
    const address = getServerAddress(server);
    const unverifiedCallerId = getUnverifiedCallerId(caller, workspaceId, keyring);
    const row = {
      ...fileKey,
      serverId,
      address,
      caller: toCallerDigest(caller),
      bytes: bytes.length,
      head,
      unverifiedCaller: unverifiedCallerId,
    };
    const full = await reserveFile(records, keyring, row);
    if (full)
      return { outcome: 'full', scope: full.scope, freeInS: Math.max(1, Math.ceil((full.freeAt - now()) / 1000)) };
    for (let number = 0; number * fileChunkBytes < bytes.length; number++) {
      const start = number * fileChunkBytes;
      await insertFileChunk(records, keyring, { ...fileKey, number }, bytes.subarray(start, start + fileChunkBytes));
    }
    return { outcome: 'kept', id };
  }

  return {
    async save(owner, head, bytes, requestId) {
      const stored = await store(owner, head, bytes).catch((error: unknown): StoreFileResult => {
        onUnexpected(error, requestId);
        return { outcome: 'lost' };
      });
      counts[stored.outcome]++;
      return stored;
    },
    async find(id, chargeQuery) {
      chargeQuery?.();
      return findFile(db, keyring, digestId(id), now());
    },
    findChunk: ({ id, workspaceId }, number) => findFileChunk(db, keyring, { id, workspaceId, number }),
    count(event) {
      counts[event]++;
    },
    getCounts: () => counts,
  };
}

/** Returns the digest of an id. Only the digest is stored, so the database does not reveal any URL. */
function digestId(id: string): string {
  return hash('sha256', id, 'base64url');
}

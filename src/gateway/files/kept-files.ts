import { hash } from 'node:crypto';
import { type FileHead, fileChunkBytes } from '../../domain/files/file-names.ts';
import { newId } from '../../domain/ids.ts';
import type { Lookup } from '../../domain/visit.ts';
import {
  type FileRow,
  findFile,
  findFileChunk,
  insertFileChunk,
  type NoSpace,
  reserveFile,
} from '../../store/calls/files.ts';
import { type Caller, callerDigest } from '../callers/caller.ts';
import { addressOf, type HostedServer } from '../hosted/hosted-server.ts';
import { type KeptAnswersOptions, strangerOf } from '../kept-answers.ts';

export type FileOwner = { server: HostedServer; caller: Caller };

/**
 * Outcome of storing a file. `freeInS` is the number of seconds until a file expires that uses the storage of the
 * workspace, or of the address.
 */
export type Kept =
  | { outcome: 'kept'; id: string }
  | { outcome: 'full'; of: NoSpace['of']; freeInS: number }
  | { outcome: 'lost' };

/** Stored large files of responses. They are in the database, so every process can serve them. */
export type KeptFiles = {
  /** Stores a file. Never rejects, because a file that cannot be stored must not make its call fail. */
  keep(owner: FileOwner, head: FileHead, bytes: Uint8Array, requestId: string): Promise<Kept>;
  /** Finds the file of a URL that has not expired. Resolves with undefined for any other id. @throws database errors */
  find(id: string, look?: Lookup): Promise<FileRow | undefined>;
  /** Reads one chunk of the bytes. Resolves with undefined if it has been deleted in the meantime. */
  chunk(file: FileRow, number: number): Promise<Buffer | undefined>;
  count(event: FileEvent): void;
  /** Returns counts since the start, for metrics. */
  counts(): Readonly<Record<FileEvent, number>>;
};

export const fileEvents = ['kept', 'full', 'lost', 'served', 'cut', 'uploaded', 'missing'] as const;
export type FileEvent = (typeof fileEvents)[number];

export function createKeptFiles({ db, records, keyring, random, now, onUnexpected }: KeptAnswersOptions): KeptFiles {
  const counts = Object.fromEntries(fileEvents.map((event) => [event, 0])) as Record<FileEvent, number>;

  async function store({ server, caller }: FileOwner, head: FileHead, bytes: Uint8Array): Promise<Kept> {
    const id = newId(random, 'file');
    const { workspaceId, id: serverId } = server;
    const of = { id: digestOf(id), workspaceId, at: now() };
    const address = addressOf(server);
    const stranger = strangerOf(caller, workspaceId, keyring);
    const row = { ...of, serverId, address, caller: callerDigest(caller), bytes: bytes.length, head, stranger };
    const full = await reserveFile(records, keyring, row);
    if (full) return { outcome: 'full', of: full.of, freeInS: Math.max(1, Math.ceil((full.freeAt - now()) / 1000)) };
    for (let number = 0; number * fileChunkBytes < bytes.length; number++) {
      const from = number * fileChunkBytes;
      await insertFileChunk(records, keyring, { ...of, number }, bytes.subarray(from, from + fileChunkBytes));
    }
    return { outcome: 'kept', id };
  }

  return {
    async keep(owner, head, bytes, requestId) {
      const kept = await store(owner, head, bytes).catch((error: unknown): Kept => {
        onUnexpected(error, requestId);
        return { outcome: 'lost' };
      });
      counts[kept.outcome]++;
      return kept;
    },
    async find(id, look) {
      look?.();
      return findFile(db, keyring, digestOf(id), now());
    },
    chunk: ({ id, workspaceId }, number) => findFileChunk(db, keyring, { id, workspaceId, number }),
    count(event) {
      counts[event]++;
    },
    counts: () => counts,
  };
}

/** Returns the digest of an id. Only the digest is stored, so the database does not reveal any URL. */
function digestOf(id: string): string {
  return hash('sha256', id, 'base64url');
}

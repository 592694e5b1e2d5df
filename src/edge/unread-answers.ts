import type { ServerResponse } from 'node:http';
import { holderOf, type Party, type Visit } from '../domain/visit.ts';
import type { OnGivenUp } from '../domain/work/given-up.ts';
import { afterRunning } from '../domain/work/running-time.ts';
import type { UnreadAnswers } from '../http/unread-answers.ts';
import { createHeldBytes } from './held-bytes.ts';

export type UnreadAnswersOptions = {
  networkOf: (visit: Visit) => string;
  /** Monotonic ms in which this process ran. */
  clock: () => number;
  /** How long a client may take to read an answer: this for every 2 MiB that it has begun. */
  slowReaderMs: number;
  /** Of all of them together. */
  mostBytes: number;
  onGivenUp: OnGivenUp;
};

/** A client that reads all the time takes more than the system does at once, and is not slow for that. */
const spareMs = 2000;
const bytesOfDeadline = 2 * 1024 * 1024;

/**
 * Bounds what clients leave unread, in bytes and in time. A client is cut off when its answer has to go: what it sends
 * meanwhile proves nothing about what it reads.
 */
export function createUnreadAnswers({
  networkOf,
  clock,
  slowReaderMs,
  mostBytes,
  onGivenUp,
}: UnreadAnswersOptions): UnreadAnswers {
  const held = createHeldBytes<ServerResponse>({ mostBytes, spareMs, clock });
  const shared = createSharedPieces<ServerResponse>(held.resize);
  const owners = new WeakMap<ServerResponse, Party>();
  const hold: UnreadAnswers['hold'] = (response, bytes, party, pieces = []) => {
    if (response.destroyed) return;
    const giveUp = () => {
      onGivenUp('unread_answer');
      response.destroy();
    };
    const cancel = afterRunning(slowReaderMs * (1 + Math.floor(bytes / bytesOfDeadline)), giveUp);
    response.once('close', () => {
      cancel();
      held.release(response);
      shared.leave(response);
    });
    const counted = shared.join(response, bytes, pieces);
    held.add(response, { party: party ? holderOf(party) : networkOf(response.req), bytes: counted, giveUp });
  };
  /** A listener for all responses. At `prefinish` everything was given to the socket. */
  function onGiven(this: ServerResponse): void {
    if (this.socket !== null && this.socket.writableLength > 0) hold(this, this.writableLength, owners.get(this));
  }
  return {
    hold,
    watch: (response) => void response.once('prefinish', onGiven),
    assign: (response, party) => void owners.set(response, party),
  };
}

type Reader = { own: number; pieces: ReadonlySet<Uint8Array> };

/** Pieces of answers that several readers hold at once, each of which counts for one of them. */
type SharedPieces<Key> = {
  /** Returns the bytes that count for a reader of `bytes`, of which `pieces` are a part. */
  join(key: Key, bytes: number, pieces: readonly Uint8Array[]): number;
  leave(key: Key): void;
};

/**
 * A piece counts for its first reader, and after that for the next one: a list of tools stays in memory once, however many
 * read it, and as long as the last of them. `recount` is told what counts for a reader when that has changed.
 */
function createSharedPieces<Key extends object>(recount: (key: Key, bytes: number) => void): SharedPieces<Key> {
  const readers = new WeakMap<Key, Reader>();
  /** In the order in which they came. */
  const readersOf = new WeakMap<Uint8Array, Set<Key>>();
  const firstOf = (piece: Uint8Array) => readersOf.get(piece)?.values().next().value;

  function countedFor(key: Key, { own, pieces }: Reader): number {
    let bytes = own;
    for (const piece of pieces) if (firstOf(piece) === key) bytes += piece.length;
    return bytes;
  }

  function passOn(piece: Uint8Array, key: Key): void {
    const wasFirst = firstOf(piece) === key;
    readersOf.get(piece)?.delete(key);
    const next = firstOf(piece);
    const reader = next && readers.get(next);
    if (wasFirst && reader) recount(next, countedFor(next, reader));
  }

  return {
    join(key, bytes, pieces) {
      const own = bytes - pieces.reduce((sum, piece) => sum + piece.length, 0);
      const reader = { own, pieces: new Set(pieces) };
      readers.set(key, reader);
      for (const piece of reader.pieces) {
        const all = readersOf.get(piece) ?? new Set();
        readersOf.set(piece, all.add(key));
      }
      return countedFor(key, reader);
    },
    leave(key) {
      for (const piece of readers.get(key)?.pieces ?? []) passOn(piece, key);
      readers.delete(key);
    },
  };
}

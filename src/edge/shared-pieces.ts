type Reader = { own: number; pieces: ReadonlySet<Uint8Array> };

/** Pieces of answers that several readers hold at once, each of which counts for one of them. */
export type SharedPieces<Key> = {
  /** Returns the bytes that count for a reader of `bytes`, of which `pieces` are a part. */
  join(key: Key, bytes: number, pieces: readonly Uint8Array[]): number;
  leave(key: Key): void;
};

/**
 * A piece counts for its first reader, and after that for the next one: a list of tools stays in memory once, however many
 * read it, and as long as the last of them. `recount` is told what counts for a reader when that has changed.
 */
export function createSharedPieces<Key extends object>(recount: (key: Key, bytes: number) => void): SharedPieces<Key> {
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

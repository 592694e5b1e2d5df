/**
 * The right to write to a SQLite file, for the connections of one process. Whoever asks first is first; with SQLite's own
 * lock, which is tried again and again, one busy connection could keep another one from writing.
 */
export type WriteLock = {
  /** Waits for the lock; the result gives it back, once. */
  take(): Promise<() => void>;
};

export function createWriteLock(): WriteLock {
  let last: Promise<void> = Promise.resolve();
  return {
    async take() {
      const given = Promise.withResolvers<void>();
      const before = last;
      last = given.promise;
      await before;
      return given.resolve;
    },
  };
}

import { type Stats, statSync } from 'node:fs';

export type WatchedFiles = {
  file: string;
  /** The file whose lock shows that a process serves. */
  lockFile: string;
  /** Takes the lock again on a new file. @throws AppError conflict when another process was first */
  lockAgain(): void;
  /** Receives how the database was lost, or why this process may no longer serve. */
  onLost(why: string): void;
  onWarning(sentence: string): void;
};

const intervalMs = 1000;

/**
 * Checks once a second that the files of the database are still those that this process has open. Writes to a deleted or
 * replaced file would be lost with the process, and without the lock file a second process would serve.
 */
export function watchSqlite(watched: WatchedFiles): { stop(): void } {
  const { file, lockFile } = watched;
  const opened = look(file);
  let locked = look(lockFile);
  const timer = setInterval(() => {
    const why = whyLost(opened, look(file));
    if (why) return lose(`the database ${file} ${why} while the service ran`);
    if (isSame(locked, look(lockFile))) return;
    try {
      watched.lockAgain();
      locked = look(lockFile);
      watched.onWarning(
        `the file ${lockFile} was deleted or replaced while the service ran; it was made anew, leave it there`,
      );
    } catch (error) {
      lose(`the file ${lockFile} was deleted or replaced while the service ran, and ${(error as Error).message}`);
    }
  }, intervalMs).unref();
  const lose = (why: string) => {
    clearInterval(timer);
    watched.onLost(why);
  };
  return { stop: () => clearInterval(timer) };
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function isSame(one: Stats | undefined, other: Stats | undefined): boolean {
  return one !== undefined && other !== undefined && one.ino === other.ino && one.dev === other.dev;
}

function whyLost(opened: Stats | undefined, found: Stats | undefined): string | undefined {
  if (!found) return 'was deleted';
  if (!isSame(opened, found)) return 'was replaced by another file';
  return found.size === 0 ? 'was emptied' : undefined;
}

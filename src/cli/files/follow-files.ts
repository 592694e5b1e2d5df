import { type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';

/** Time without a change after which files are read: editors save in several steps. */
const quietMs = 100;

/** Calls `onChange` after files or folders changed, once for changes that come together. Returns what stops it. */
export function followFiles(paths: readonly string[], onChange: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, quietMs);
  };
  // A file is watched through its folder, because editors replace files by renaming others.
  const folders = new Set(paths.map((path) => (isFolder(path) ? path : dirname(path))));
  const watchers: FSWatcher[] = [...folders].map((folder) => watch(folder, changed));
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Work that runs again and again, one run at a time. */
export type RepeatedWork = {
  /** Runs it; a request during a run causes one more run after it. @throws whatever the work throws */
  run(): Promise<void>;
  /** Resolves when the run that is under way has ended; none follows it. */
  stop(): Promise<void>;
};

export function oneAfterAnother(work: () => Promise<void>): RepeatedWork {
  let running: Promise<void> | undefined;
  let isAskedAgain = false;
  let isStopped = false;
  const runAll = async () => {
    try {
      do {
        isAskedAgain = false;
        await work();
      } while (isAskedAgain && !isStopped);
    } finally {
      running = undefined;
    }
  };
  return {
    async run() {
      if (isStopped) return;
      if (running) isAskedAgain = true;
      else running = runAll();
      await running;
    },
    async stop() {
      isStopped = true;
      await running?.catch(() => undefined);
    },
  };
}

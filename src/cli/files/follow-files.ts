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

/** Runs `work`, one run at a time; requests during a run cause one more run after it. */
export function oneAfterAnother(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let isAskedAgain = false;
  const run = async () => {
    do {
      isAskedAgain = false;
      await work();
    } while (isAskedAgain);
    running = undefined;
  };
  return () => {
    if (running) isAskedAgain = true;
    else running = run();
    return running;
  };
}

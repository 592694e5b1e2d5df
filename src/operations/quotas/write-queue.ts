import { AppError } from '../../errors.ts';

/**
 * Runs the changes of a workspace one after the other in this process. The database would do so too (`countWrite`), but
 * a change that waits there holds a connection that others need.
 */
export type WriteQueue = {
  /** @throws AppError tooMany when too many changes of the workspace wait, and any error of `work` */
  run<Output>(workspaceId: string, work: () => Promise<Output>): Promise<Output>;
};

const mostWaiting = 100;

export function createWriteQueue(): WriteQueue {
  /** Workspaces with changes in progress: the number of changes, and the end of the last one. */
  const lines = new Map<string, { length: number; end: Promise<unknown> }>();
  return {
    async run(workspaceId, work) {
      const line = lines.get(workspaceId) ?? { length: 0, end: Promise.resolve() };
      if (line.length > mostWaiting)
        throw new AppError(
          'tooMany',
          `${mostWaiting} changes of the workspace wait already, which is all that may; try again in a second`,
          { retryAfterS: 1 },
        );
      line.length += 1;
      lines.set(workspaceId, line);
      const done = line.end.then(work);
      // The next change begins even when this one fails; its own caller gets the error.
      line.end = done.catch(() => undefined);
      try {
        return await done;
      } finally {
        line.length -= 1;
        if (line.length === 0) lines.delete(workspaceId);
      }
    },
  };
}

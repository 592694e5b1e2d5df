import { AppError } from '../../errors.ts';

/**
 * Makes the changes of a workspace one after the other in this process. The database does so anyway (`countWrite`), and a
 * change that waits there keeps a connection from everybody else.
 */
export type WriteQueue = {
  /** @throws AppError tooMany when too many changes of the workspace wait, and what the work throws */
  run<Output>(workspaceId: string, work: () => Promise<Output>): Promise<Output>;
};

const mostWaiting = 100;

export function createWriteQueue(): WriteQueue {
  /** Workspaces with changes under way: how many, and the end of the last one. */
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
      // The next one begins when this one has ended, however it did; whoever asked for this one is told how.
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

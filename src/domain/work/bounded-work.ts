import { AppError } from '../../errors.ts';

/** How much work may be under way at once for one workspace, and for all together. */
export type WorkLimits = { ofWorkspace: number; ofAll: number };

/**
 * Makes a function that runs work for a workspace within limits. Beyond them it refuses at once with this message. Work
 * of clients may take as long as they like, so a workspace gets no more than half of what is left: a few that keep all
 * they can get leave some to the others.
 * @throws AppError tooMany, and what the work throws
 */
export function createBoundedWork(most: WorkLimits, refusal: string) {
  const running = new Map<string, number>();
  let all = 0;
  return async <Result>(workspaceId: string, work: () => Promise<Result>): Promise<Result> => {
    const ofWorkspace = running.get(workspaceId) ?? 0;
    const free = most.ofAll - all;
    if (free === 0 || ofWorkspace >= most.ofWorkspace || ofWorkspace * 2 > free)
      throw new AppError('tooMany', refusal, { retryAfterS: 5 });
    all++;
    running.set(workspaceId, ofWorkspace + 1);
    try {
      return await work();
    } finally {
      all--;
      const left = (running.get(workspaceId) ?? 1) - 1;
      if (left > 0) running.set(workspaceId, left);
      else running.delete(workspaceId);
    }
  };
}

import { AppError } from '../../errors.ts';

/** How much work may be under way at once for one workspace, and for all together. */
export type WorkLimits = { ofWorkspace: number; ofAll: number };

/**
 * Whether a workspace that does `own` pieces of work may begin another one when `free` more are possible in all. Work of
 * clients may take as long as they like, so it gets no more than half of what is left: a few workspaces that keep all
 * they can get leave some to the others.
 */
export function hasRoom({ ofWorkspace }: WorkLimits, own: number, free: number): boolean {
  return free > 0 && own < ofWorkspace && own * 2 <= free;
}

/**
 * Makes a function that runs work for a workspace where there is room, and otherwise refuses at once with this message.
 * @throws AppError tooMany, and what the work throws
 */
export function createBoundedWork(most: WorkLimits, refusal: string) {
  const running = new Map<string, number>();
  let all = 0;
  return async <Result>(workspaceId: string, work: () => Promise<Result>): Promise<Result> => {
    const ofWorkspace = running.get(workspaceId) ?? 0;
    if (!hasRoom(most, ofWorkspace, most.ofAll - all)) throw new AppError('tooMany', refusal, { retryAfterS: 5 });
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

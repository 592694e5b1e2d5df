import { createTimeLine, type TimeLine } from './time-line.ts';

/** Runs long work, and shares the time fairly among workspaces. */
export type SharedTime = {
  /**
   * Runs work of a workspace when it is its turn: one piece of a workspace at a time, and workspaces take turns.
   * @throws AppError tooMany when too much work of the workspace waits, or this piece has waited for too long
   */
  run<Output>(workspaceId: string, work: () => Promise<Output>): Promise<Output>;
  /** Numbers of running and waiting pieces of work, and of refused ones since the start. */
  counts(): { running: number; waiting: number; refused: number };
};

export type SharedTimeOptions = {
  /** Number of pieces of work that run at once. */
  atOnce: number;
  /** Share of the time that the work of a workspace may take, from 0 to 1. */
  share: number;
  /** Monotonic ms in which this process ran. */
  clock: () => number;
  /** Monotonic ms that measure what the work spends; `clock` when absent. */
  workClock?: () => number;
  /** Number of processes that divide this share. One when absent. */
  processCount?: () => number;
  /** The rule that a refusal explains. */
  rule: string;
  /** How much work of a workspace may wait. */
  mostWaiting: number;
};

/** Above this number, idle lines are removed. */
const mostRemembered = 1000;
const longestPauseMs = 5000;

export function createSharedTime(options: SharedTimeOptions): SharedTime {
  const { atOnce, clock, workClock, rule, mostWaiting, processCount = () => 1 } = options;
  const share = () => options.share / processCount();
  // In the order of their turns: a workspace whose work has run goes to the end.
  const lines = new Map<string, TimeLine>();
  let [running, waiting, refused] = [0, 0, 0];
  let timer: NodeJS.Timeout | undefined;

  function lineOf(workspaceId: string): TimeLine {
    if (lines.size > mostRemembered) for (const [id, line] of lines) if (line.isIdle()) lines.delete(id);
    const line =
      lines.get(workspaceId) ??
      createTimeLine({ share, clock, workClock, rule, mostWaiting, onRefused: () => refused++ });
    lines.set(workspaceId, line);
    return line;
  }

  /** Starts the work that may run, and sets a timer for the next start or time-out. */
  function proceed(): void {
    clearTimeout(timer);
    waiting = 0;
    let nextMs = longestPauseMs;
    for (const line of lines.values()) {
      if (line.length() === 0) continue;
      if (running < atOnce && line.startNext()) running += 1;
      else nextMs = Math.min(nextMs, line.nextMs());
      waiting += line.length();
    }
    if (waiting > 0) timer = setTimeout(proceed, Math.max(1, nextMs)).unref();
  }

  return {
    async run(workspaceId, work) {
      const line = lineOf(workspaceId);
      const turn = line.wait();
      proceed();
      await turn;
      try {
        return await work();
      } finally {
        line.end();
        running -= 1;
        lines.delete(workspaceId);
        lines.set(workspaceId, line);
        proceed();
      }
    },
    counts: () => ({ running, waiting, refused }),
  };
}

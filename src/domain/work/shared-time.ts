import { AppError } from '../../errors.ts';

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

/**
 * Long work of one workspace: one piece runs, others wait. Each piece spends the time that it took from the workspace's
 * budget. The budget grows by a share of the elapsed time, up to a maximum. While it is negative, work waits.
 */
type TimeLine = {
  /** Resolves when the work may run. @throws AppError tooMany */
  wait(): Promise<void>;
  /** Refuses work that has waited for too long, and returns how much still waits. */
  length(): number;
  /** Starts the next work if it may run. */
  startNext(): boolean;
  /** Time in ms until the next work may run or has waited for too long. */
  nextMs(): number;
  /** Records the end of the running work. */
  end(): void;
  /** Whether the line holds no state that must be kept. */
  isIdle(): boolean;
};

type TimeLineOptions = {
  /** Share of the time that the work may take at present, from 0 to 1. */
  share: () => number;
  /** Monotonic ms in which this process ran. */
  clock: () => number;
  /** What the work spends is measured by this clock; by `clock` when absent. */
  workClock?: (() => number) | undefined;
  /** The rule that a refusal explains. */
  rule: string;
  /** How much may wait. */
  mostWaiting: number;
  onRefused: () => void;
};

const patienceMs = 5000;
const mostSavedMs = 2000;

function createTimeLine(options: TimeLineOptions): TimeLine {
  const { share, clock, workClock = clock, rule, mostWaiting, onRefused } = options;
  const waiting: { start: () => void; refuse: (error: AppError) => void; until: number }[] = [];
  let startedAt: number | undefined;
  let saved = mostSavedMs;
  let savedAt = clock();

  function savedMs(): number {
    const now = clock();
    saved = Math.min(mostSavedMs, saved + (now - savedAt) * share());
    savedAt = now;
    return saved;
  }

  const recoveryMs = () => Math.max(0, -savedMs() / share());

  function refusal(found: string): AppError {
    onRefused();
    const retryAfterS = Math.max(1, Math.ceil(recoveryMs() / 1000));
    return new AppError('tooMany', `${found}; ${rule}; try again in ${retryAfterS} s`, { retryAfterS });
  }

  return {
    async wait() {
      if (waiting.length >= mostWaiting) throw refusal(`${mostWaiting} others of this workspace wait already`);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.push({ start: resolve, refuse: reject, until: clock() + patienceMs });
      await promise;
    },
    length() {
      const now = clock();
      for (let first = waiting[0]; first && first.until <= now; first = waiting[0]) {
        waiting.shift();
        first.refuse(refusal('this was not begun within 5 s'));
      }
      return waiting.length;
    },
    startNext() {
      if (startedAt !== undefined || recoveryMs() > 0) return false;
      startedAt = workClock();
      waiting.shift()?.start();
      return true;
    },
    nextMs: () => Math.min((waiting[0]?.until ?? 0) - clock(), recoveryMs() || patienceMs),
    end() {
      saved = savedMs() - (workClock() - (startedAt ?? 0));
      startedAt = undefined;
    },
    isIdle: () => startedAt === undefined && waiting.length === 0 && savedMs() === mostSavedMs,
  };
}

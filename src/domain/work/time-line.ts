import { AppError } from '../../errors.ts';

/**
 * Long work of one workspace: one piece runs, others wait. Each piece spends the time that it took from the workspace's
 * budget. The budget grows by a share of the elapsed time, up to a maximum. While it is negative, work waits.
 */
export type TimeLine = {
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

export type TimeLineOptions = {
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

export function createTimeLine(options: TimeLineOptions): TimeLine {
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

import { AppError } from '../../errors.ts';

/**
 * The reports of one workspace: one runs, others wait. Each report spends the time that it took from the workspace's
 * budget. The budget grows by a share of the elapsed time, up to a maximum. While it is negative, reports wait.
 */
export type ReportLine = {
  /** Resolves when the report may run. @throws AppError tooMany */
  wait(): Promise<void>;
  /** Refuses reports that have waited for too long, and returns how many still wait. */
  length(): number;
  /** Starts the next report if it may run. */
  startNext(): boolean;
  /** Time in ms until the next report may run or has waited for too long. */
  nextMs(): number;
  /** Records the end of the running report. */
  end(): void;
  /** Whether the line holds no state that must be kept. */
  isIdle(): boolean;
};

export type ReportLineOptions = {
  /** Share of the time that the reports may take at present, from 0 to 1. */
  share: () => number;
  /** Monotonic ms. */
  clock: () => number;
  onRefused: () => void;
};

const mostWaiting = 16;
const patienceMs = 5000;
const mostSavedMs = 2000;

export function createReportLine({ share, clock, onRefused }: ReportLineOptions): ReportLine {
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
    const rule = 'lists, statistics and exports of a workspace run one at a time, and not all of the time';
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
      startedAt = clock();
      waiting.shift()?.start();
      return true;
    },
    nextMs: () => Math.min((waiting[0]?.until ?? 0) - clock(), recoveryMs() || patienceMs),
    end() {
      saved = savedMs() - (clock() - (startedAt ?? 0));
      startedAt = undefined;
    },
    isIdle: () => startedAt === undefined && waiting.length === 0 && savedMs() === mostSavedMs,
  };
}

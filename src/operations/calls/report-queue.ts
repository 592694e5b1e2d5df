import type { Kysely } from 'kysely';
import type { Tables } from '../../store/schema.ts';
import { createReportLine, type ReportLine } from './report-line.ts';

/** Runs lists, statistics and exports, and shares the time fairly among workspaces. */
export type ReportQueue = {
  /**
   * Runs a report of a workspace when it is its turn: one report per workspace at a time, and workspaces take turns.
   * @throws AppError tooMany when too many reports of the workspace wait, or this one has waited for too long
   */
  run<Output>(workspaceId: string, report: (db: Kysely<Tables>) => Promise<Output>): Promise<Output>;
  /** Numbers of running and waiting reports, and of refused ones since the start. */
  counts(): { running: number; waiting: number; refused: number };
};

export type ReportQueueOptions = {
  db: Kysely<Tables>;
  /** Number of reports that run at once, at most the number of connections for reports. */
  atOnce: number;
  /** Share of the time that the reports of a workspace may take, from 0 to 1. */
  share: number;
  /** Monotonic ms. */
  clock: () => number;
  /** Number of processes that divide this share. One when absent. */
  processCount?: () => number;
};

/** Above this number, idle lines are removed. */
const mostRemembered = 1000;
const longestPauseMs = 5000;

export function createReportQueue(options: ReportQueueOptions): ReportQueue {
  const { db, atOnce, clock, processCount = () => 1 } = options;
  const share = () => options.share / processCount();
  // In the order of their turns: a workspace whose report has run goes to the end.
  const lines = new Map<string, ReportLine>();
  let [running, waiting, refused] = [0, 0, 0];
  let timer: NodeJS.Timeout | undefined;

  function lineOf(workspaceId: string): ReportLine {
    if (lines.size > mostRemembered) for (const [id, line] of lines) if (line.isIdle()) lines.delete(id);
    const line = lines.get(workspaceId) ?? createReportLine({ share, clock, onRefused: () => refused++ });
    lines.set(workspaceId, line);
    return line;
  }

  /** Starts the reports that may run, and sets a timer for the next start or time-out. */
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
    async run(workspaceId, report) {
      const line = lineOf(workspaceId);
      const turn = line.wait();
      proceed();
      await turn;
      try {
        return await report(db);
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

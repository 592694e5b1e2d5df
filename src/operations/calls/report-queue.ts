import type { Kysely } from 'kysely';
import type { Tables } from '../../store/schema.ts';
import { createReportLine, type ReportLine } from './report-line.ts';

/** Runs lists, statistics and exports beside the calls, so that no workspace takes the time of another. */
export type ReportQueue = {
  /**
   * Runs a report of a workspace once it is its turn: one of a workspace at a time, and workspaces take turns.
   * @throws AppError tooMany when too many reports of the workspace wait, or this one has waited for too long
   */
  run<Output>(workspaceId: string, report: (db: Kysely<Tables>) => Promise<Output>): Promise<Output>;
  /** Reports that run and that wait, and how many were refused since the start. */
  counts(): { running: number; waiting: number; refused: number };
};

export type ReportQueueOptions = {
  db: Kysely<Tables>;
  /** How many run at once, of as many workspaces: no more than there are connections. */
  atOnce: number;
  /** The share of the time that the reports of a workspace may take. */
  share: number;
  /** Monotonic ms. */
  clock: () => number;
  /** How many processes divide that share among them. One when absent. */
  processCount?: () => number;
};

/** Above this many, the lines of workspaces that ask for nothing are forgotten. */
const mostRemembered = 1000;
const longestPauseMs = 5000;

export function createReportQueue(options: ReportQueueOptions): ReportQueue {
  const { db, atOnce, clock, processCount = () => 1 } = options;
  const share = () => options.share / processCount();
  // In the order of their turns: whoever has had one goes to the end.
  const lines = new Map<string, ReportLine>();
  let [running, waiting, refused] = [0, 0, 0];
  let timer: NodeJS.Timeout | undefined;

  function lineOf(workspaceId: string): ReportLine {
    if (lines.size > mostRemembered) for (const [id, line] of lines) if (line.isIdle()) lines.delete(id);
    const line = lines.get(workspaceId) ?? createReportLine({ share, clock, onRefused: () => refused++ });
    lines.set(workspaceId, line);
    return line;
  }

  /** Starts what may run, and looks again when more may, or has waited for too long. */
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

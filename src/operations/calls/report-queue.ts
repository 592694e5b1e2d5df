import type { Kysely } from 'kysely';
import { createSharedTime, type SharedTimeOptions } from '../../domain/work/shared-time.ts';
import type { Tables } from '../../store/schema.ts';

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

/** `atOnce` is at most the number of connections for reports. */
export type ReportQueueOptions = Pick<SharedTimeOptions, 'atOnce' | 'share' | 'clock' | 'processCount'> & {
  db: Kysely<Tables>;
};

const mostWaiting = 16;
const rule = 'lists, statistics and exports of a workspace run one at a time, and not all of the time';

export function createReportQueue({ db, ...options }: ReportQueueOptions): ReportQueue {
  const { run, counts } = createSharedTime({ ...options, rule, mostWaiting });
  return { run: (workspaceId, report) => run(workspaceId, () => report(db)), counts };
}

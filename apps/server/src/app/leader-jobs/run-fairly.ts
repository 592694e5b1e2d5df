import { getTenantId } from '@toolhost/credentials/ids';
import { minuteMs } from '../../store/calls/call-writer.ts';

type FairWork<Due> = {
  maxConcurrent: number;
  /** Returns the oldest due item of each tenant, except those that are running. */
  find(running: readonly Due[]): Promise<Due[]>;
  run(due: Due): Promise<void>;
};

/** Time after which a round starts no more items. The next round continues. */
const maxRoundMs = minuteMs;

/**
 * Runs due work fairly, one item of each tenant at a time. A tenant runs at most half of the capacity that the others
 * leave, so waiting for slow servers delays no other tenant, and never takes the last slot.
 */
export async function runFairly<Due extends { workspaceId: string }>(work: FairWork<Due>): Promise<void> {
  const { maxConcurrent } = work;
  const running = new Map<Due, Promise<void>>();
  const failures: unknown[] = [];
  let batch: Due[] = [];

  const canRun = ({ workspaceId }: Due) => {
    const tenantRunning = [...running.keys()].filter(
      (otherItem) => getTenantId(otherItem.workspaceId) === getTenantId(workspaceId),
    ).length;
    return tenantRunning < Math.max(1, Math.floor((maxConcurrent - (running.size - tenantRunning)) / 2));
  };
  const takeNext = async (): Promise<Due | undefined> => {
    if (running.size === maxConcurrent) return undefined;
    if (!batch.some(canRun)) batch = await work.find([...running.keys()]);
    const nextItem = batch.find(canRun);
    batch = batch.filter((due) => due !== nextItem);
    return nextItem;
  };
  const start = (due: Due) => {
    const completion = work
      .run(due)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => running.delete(due));
    running.set(due, completion);
  };

  const deadline = performance.now() + maxRoundMs;
  while (failures.length === 0 && performance.now() < deadline) {
    const due = await takeNext();
    if (due) start(due);
    else if (running.size === 0) break;
    else await Promise.race(running.values());
  }
  await Promise.all(running.values());
  if (failures.length > 0) throw failures[0];
}

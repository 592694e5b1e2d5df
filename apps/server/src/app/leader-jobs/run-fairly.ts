import { getTenantId } from '@toolhost/credentials/ids';
import { getFairShare } from '@toolhost/limits/concurrency-limiter';
import { getRunningTimeMs } from '@toolhost/limits/running-time';
import { minuteMs } from '../../store/calls/call-writer.ts';

type FairWork<Item> = {
  maxConcurrent: number;
  /** Returns the oldest due item of each tenant, except those that are running. */
  find(running: readonly Item[]): Promise<Item[]>;
  run(item: Item): Promise<void>;
};

/** Time after which a round starts no more items. The next round continues. */
const maxRoundMs = minuteMs;

/** Runs due work. Each tenant has a fair share of the capacity, so one that waits for slow servers delays no other. */
export async function runFairly<Item extends { workspaceId: string }>(work: FairWork<Item>): Promise<void> {
  const { maxConcurrent } = work;
  const running = new Map<Item, Promise<void>>();
  const failures: unknown[] = [];
  let batch: Item[] = [];

  const canRun = ({ workspaceId }: Item) => {
    const tenantRunning = [...running.keys()].filter(
      (otherItem) => getTenantId(otherItem.workspaceId) === getTenantId(workspaceId),
    ).length;
    return tenantRunning < getFairShare(maxConcurrent - running.size, tenantRunning);
  };
  const takeNext = async (): Promise<Item | undefined> => {
    if (running.size === maxConcurrent) return undefined;
    if (!batch.some(canRun)) batch = await work.find([...running.keys()]);
    const nextItem = batch.find(canRun);
    batch = batch.filter((item) => item !== nextItem);
    return nextItem;
  };
  const start = (item: Item) => {
    const completion = work
      .run(item)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => running.delete(item));
    running.set(item, completion);
  };

  const deadline = getRunningTimeMs() + maxRoundMs;
  while (failures.length === 0 && getRunningTimeMs() < deadline) {
    const item = await takeNext();
    if (item) start(item);
    else if (running.size === 0) break;
    else await Promise.race(running.values());
  }
  await Promise.all(running.values());
  if (failures.length > 0) throw failures[0];
}

import { getTenantId } from '@toolhost/credentials/ids';
import { minuteMs } from '../../store/calls/call-writer.ts';

type FairWork<Item> = {
  maxConcurrent: number;
  /** Returns the oldest due item of each tenant, except those that are running. */
  find(running: readonly Item[]): Promise<Item[]>;
  run(item: Item): Promise<void>;
};

/** Time after which a round starts no more items. The next round continues. */
const maxRoundMs = minuteMs;

/**
 * Runs due work fairly. A tenant may run one item, or half of the capacity that the others leave if that is more, so a
 * tenant that waits for slow servers delays no other tenant.
 */
export async function runFairly<Item extends { workspaceId: string }>(work: FairWork<Item>): Promise<void> {
  const { maxConcurrent } = work;
  const running = new Map<Item, Promise<void>>();
  const failures: unknown[] = [];
  let batch: Item[] = [];

  const canRun = ({ workspaceId }: Item) => {
    const tenantRunning = [...running.keys()].filter(
      (otherItem) => getTenantId(otherItem.workspaceId) === getTenantId(workspaceId),
    ).length;
    return tenantRunning < Math.max(1, Math.floor((maxConcurrent - (running.size - tenantRunning)) / 2));
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

  const deadline = performance.now() + maxRoundMs;
  while (failures.length === 0 && performance.now() < deadline) {
    const item = await takeNext();
    if (item) start(item);
    else if (running.size === 0) break;
    else await Promise.race(running.values());
  }
  await Promise.all(running.values());
  if (failures.length > 0) throw failures[0];
}

import { tenantOf } from '../../domain/ids.ts';
import { minuteMs } from '../../store/calls/call-writer.ts';

type DueWork<Due> = {
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
export async function runInTurns<Due extends { workspaceId: string }>(work: DueWork<Due>): Promise<void> {
  const { maxConcurrent } = work;
  const running = new Map<Due, Promise<void>>();
  const failures: unknown[] = [];
  let turn: Due[] = [];

  const mayRun = ({ workspaceId }: Due) => {
    const own = [...running.keys()].filter((other) => tenantOf(other.workspaceId) === tenantOf(workspaceId)).length;
    return own < Math.max(1, Math.floor((maxConcurrent - (running.size - own)) / 2));
  };
  const next = async (): Promise<Due | undefined> => {
    if (running.size === maxConcurrent) return undefined;
    if (!turn.some(mayRun)) turn = await work.find([...running.keys()]);
    const found = turn.find(mayRun);
    turn = turn.filter((due) => due !== found);
    return found;
  };
  const start = (due: Due) => {
    const ended = work
      .run(due)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => running.delete(due));
    running.set(due, ended);
  };

  const until = performance.now() + maxRoundMs;
  while (failures.length === 0 && performance.now() < until) {
    const due = await next();
    if (due) start(due);
    else if (running.size === 0) break;
    else await Promise.race(running.values());
  }
  await Promise.all(running.values());
  if (failures.length > 0) throw failures[0];
}

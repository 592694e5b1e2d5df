import { performance } from 'node:perf_hooks';
/** A function to run at `until`, in ms of `Deadlines.now`, unless it is removed before. */
export type Deadline = {
  until: number;
  expire: () => void;
  /** Index in the array of pending deadlines; −1 when it is not pending. */
  index: number;
};

/** Deadlines on one shared timer: a timer for each call costs more than the rest of its bookkeeping. */
export type Deadlines = {
  /**
   * Monotonic ms in which this process ran. Time in which it was stopped (SIGSTOP, a machine without processor time, a
   * long garbage collection) does not count: the upstream may have answered, and the process could not read it.
   */
  now(): number;
  /** Total time that the process was stopped while deadlines were pending, in ms, as of the last `now`. */
  readonly stoppedMs: number;
  add(until: number, expire: () => void): Deadline;
  remove(deadline: Deadline): void;
};

/** A passed deadline expires at the second look after it. */
const tickMs = 20;
/** A delay of the timer beyond this means that the process was stopped. */
const stopMs = 500;

/**
 * The timer runs only while there are deadlines. They are kept in an array, because the tables that a Set discards as
 * it grows still refer to its items and to the next table: nearly every call would survive into the old generation, and
 * the whole heap would be collected several times as often.
 */
export function createDeadlines(): Deadlines {
  const pending: Deadline[] = [];
  let timer: NodeJS.Timeout | undefined;
  let lookedAt = 0;
  let stoppedMs = 0;

  /** The first call after a stop adds the stop to `stoppedMs`. */
  const now = () => {
    const at = performance.now();
    if (timer !== undefined && at - lookedAt > stopMs) {
      // The usual time between two looks counts, so that time goes on where one stop follows the other.
      stoppedMs += at - lookedAt - tickMs;
      lookedAt = at;
    }
    return at - stoppedMs;
  };

  const remove = (deadline: Deadline) => {
    if (deadline.index < 0) return;
    const last = pending.pop() as Deadline;
    if (last !== deadline) {
      pending[deadline.index] = last;
      last.index = deadline.index;
    }
    deadline.index = -1;
  };

  const look = () => {
    // One that has passed since the last look waits for the next: what came in time while the process was busy is read first.
    const passed = lookedAt - stoppedMs;
    lookedAt = now() + stoppedMs;
    for (const deadline of pending.filter(({ until }) => until <= passed)) {
      remove(deadline);
      deadline.expire();
    }
    if (pending.length > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    now,
    get stoppedMs() {
      return stoppedMs;
    },
    add(until, expire) {
      const deadline = { until, expire, index: pending.length };
      pending.push(deadline);
      if (timer === undefined) {
        lookedAt = performance.now();
        timer = setInterval(look, tickMs);
      }
      return deadline;
    },
    remove,
  };
}

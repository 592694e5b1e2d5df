/** What happens at `until`, in ms of `Deadlines.now`, unless it is taken away before. */
export type Deadline = {
  until: number;
  expire: () => void;
  /** Where it waits; −1 when it does not. */
  place: number;
};

/** Deadlines on one timer, since one for each call costs more than the rest of its bookkeeping. */
export type Deadlines = {
  /**
   * Monotonic ms in which this process ran. What it was stopped for (SIGSTOP, a machine without processor time, a long
   * collection of garbage) does not count: the upstream may have answered, and nobody could read it.
   */
  now(): number;
  /** How long the process was stopped in all while somebody waited, in ms, as of the last `now`. */
  readonly stoppedMs: number;
  add(until: number, expire: () => void): Deadline;
  remove(deadline: Deadline): void;
};

/** A deadline is found passed at most this much later. */
const tickMs = 20;
/** A timer that is later than this was not late, but its process stopped. */
const stopMs = 500;

/**
 * The timer runs while there are deadlines, and only then. They are kept in an array: the tables that a Set leaves behind
 * each time it fills up still refer to what was in them and to the next table, so that nearly every call would grow old
 * in memory, and the whole heap be searched several times as often.
 */
export function createDeadlines(): Deadlines {
  const pending: Deadline[] = [];
  let timer: NodeJS.Timeout | undefined;
  let lookedAt = 0;
  let stoppedMs = 0;

  /** Whoever comes first after a stop takes it into account. */
  const now = () => {
    const at = performance.now();
    if (timer !== undefined && at - lookedAt > stopMs) {
      stoppedMs += at - lookedAt;
      lookedAt = at;
    }
    return at - stoppedMs;
  };

  const remove = (deadline: Deadline) => {
    if (deadline.place < 0) return;
    const last = pending.pop() as Deadline;
    if (last !== deadline) {
      pending[deadline.place] = last;
      last.place = deadline.place;
    }
    deadline.place = -1;
  };

  const look = () => {
    const at = now();
    lookedAt = at + stoppedMs;
    for (const deadline of pending.filter(({ until }) => until <= at)) {
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
      const deadline = { until, expire, place: pending.length };
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

/** What happens at `until`, in ms of `performance.now()`, unless it is taken away before. */
export type Deadline = {
  until: number;
  expire: () => void;
  /** Where it waits; −1 when it does not. */
  place: number;
};

/** Deadlines on one timer, since one for each call costs more than the rest of its bookkeeping. */
export type Deadlines = {
  add(until: number, expire: () => void): Deadline;
  remove(deadline: Deadline): void;
};

/** A deadline is found passed at most this much later. */
const tickMs = 20;

/**
 * The timer runs while there are deadlines, and only then. They are kept in an array: the tables that a Set leaves behind
 * each time it fills up still refer to what was in them and to the next table, so that nearly every call would grow old
 * in memory, and the whole heap be searched several times as often.
 */
export function createDeadlines(): Deadlines {
  const pending: Deadline[] = [];
  let timer: NodeJS.Timeout | undefined;

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
    const now = performance.now();
    for (const deadline of pending.filter(({ until }) => until <= now)) {
      remove(deadline);
      deadline.expire();
    }
    if (pending.length > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    add(until, expire) {
      const deadline = { until, expire, place: pending.length };
      pending.push(deadline);
      timer ??= setInterval(look, tickMs);
      return deadline;
    },
    remove,
  };
}

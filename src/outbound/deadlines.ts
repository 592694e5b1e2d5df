/** What happens at `until`, in ms of `performance.now()`, unless it is taken away before. */
export type Deadline = { until: number; expire: () => void };

/** Deadlines on one timer, since one for each call costs more than the rest of its bookkeeping. */
export type Deadlines = {
  add(deadline: Deadline): void;
  remove(deadline: Deadline): void;
};

/** A deadline is found passed at most this much later. */
const tickMs = 20;

/** The timer runs while there are deadlines, and only then. */
export function createDeadlines(): Deadlines {
  const pending = new Set<Deadline>();
  let timer: NodeJS.Timeout | undefined;

  const look = () => {
    const now = performance.now();
    for (const deadline of pending) {
      if (deadline.until > now) continue;
      pending.delete(deadline);
      deadline.expire();
    }
    if (pending.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    add(deadline) {
      pending.add(deadline);
      timer ??= setInterval(look, tickMs);
    },
    remove(deadline) {
      pending.delete(deadline);
    },
  };
}

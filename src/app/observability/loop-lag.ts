/** Delay of the event loop, which measures the overload of a process. */
export type LoopLag = {
  /**
   * The lesser of the last two measurements in ms, because a single long pause is no overload. Nothing is measured before
   * this is called for the first time, because the work of a start is no overload either.
   */
  ms(): number;
  stop(): void;
};

const intervalMs = 100;

/** `clock` is monotonic, in ms. */
export function createLoopLag(clock: () => number): LoopLag {
  let before = 0;
  let shown = 0;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const start = () => {
    let dueAt = clock() + intervalMs;
    return setInterval(() => {
      const now = clock();
      const late = Math.max(0, now - dueAt);
      shown = Math.min(before, late);
      before = late;
      dueAt = now + intervalMs;
    }, intervalMs).unref();
  };
  return {
    ms() {
      if (!isStopped) timer ??= start();
      return shown;
    },
    stop() {
      isStopped = true;
      clearInterval(timer);
    },
  };
}

/** Delay of the event loop, which measures the overload of a process. */
export type LoopLag = {
  /** The lesser of the last two measurements in ms, because a single long pause is no overload. */
  ms(): number;
  stop(): void;
};

const intervalMs = 100;

/** `clock` is monotonic, in ms. */
export function startLoopLag(clock: () => number): LoopLag {
  let before = 0;
  let shown = 0;
  let dueAt = clock() + intervalMs;
  const timer = setInterval(() => {
    const now = clock();
    const late = Math.max(0, now - dueAt);
    shown = Math.min(before, late);
    before = late;
    dueAt = now + intervalMs;
  }, intervalMs).unref();
  return { ms: () => shown, stop: () => clearInterval(timer) };
}

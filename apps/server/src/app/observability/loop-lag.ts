/** Event loop delay, which measures the overload of a process. */
export type LoopLag = {
  /** The lesser of the last two measurements in ms, because a single long pause is not overload. 0 before the start. */
  readonly ms: number;
  start(): void;
  stop(): void;
};

/** Time between two measurements. */
const intervalMs = 100;

/** @param clock monotonic, in ms */
export function createLoopLag(clock: () => number): LoopLag {
  let previousMs = 0;
  let timer: NodeJS.Timeout | undefined;
  const lag = {
    ms: 0,
    start() {
      let dueAt = clock() + intervalMs;
      timer = setInterval(() => {
        const now = clock();
        const lateMs = Math.max(0, now - dueAt);
        lag.ms = Math.min(previousMs, lateMs);
        previousMs = lateMs;
        dueAt = now + intervalMs;
      }, intervalMs).unref();
    },
    stop: () => clearInterval(timer),
  };
  return lag;
}

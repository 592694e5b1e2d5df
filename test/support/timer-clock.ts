/** A monotonic clock in ms that moves only when the timers of this event loop run. */
export type TimerClock = { clock: () => number; stop(): void };

/**
 * For a service and an upstream on one event loop: whatever the upstream sends after a time has been sent when this clock
 * has passed that time. With the clock of the machine, a busy machine delays the upstream's timers and not the time.
 */
export function startTimerClock(): TimerClock {
  let shown = performance.now();
  let measured = shown;
  const timer = setInterval(() => {
    // What is due now may run only in the next turn of the loop. What was due at the last measurement runs in this one.
    shown = measured;
    measured = performance.now();
  }, 1);
  return { clock: () => shown, stop: () => clearInterval(timer) };
}

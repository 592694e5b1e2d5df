import assert from 'node:assert/strict';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';

const graceMs = 500;
const tickMs = 10;
/**
 * A tick that is later than this, in ms, shows that this process was stopped. The service restarts its time limits
 * then.
 */
const stopMs = 400;
/** Turns of the event loop in which pending data is read and answered. */
const turns = 10;

/**
 * Resolves like the work, which must end within half a second of a deadline. The same event loop counts the deadline,
 * so a busy machine delays both. The deadline restarts after this process was stopped.
 */
export async function onTime<Result>(deadlineMs: number, work: () => Promise<Result>): Promise<Result> {
  let isOver = false;
  const tooLate = async () => {
    let leftMs = deadlineMs + graceMs;
    for (let before = performance.now(); leftMs > 0 && !isOver; ) {
      await delay(tickMs, undefined, { ref: false });
      const now = performance.now();
      leftMs = now - before > stopMs ? deadlineMs + graceMs : leftMs - (now - before);
      before = now;
    }
    for (let turn = 0; turn < turns && !isOver; turn++) await nextTurn();
    assert.ok(isOver, `not done ${graceMs} ms after the deadline of ${deadlineMs} ms`);
  };
  const ended = work().finally(() => {
    isOver = true;
  });
  await Promise.race([ended, tooLate()]);
  return ended;
}

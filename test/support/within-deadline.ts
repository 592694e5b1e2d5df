import assert from 'node:assert/strict';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';

const graceMs = 500;
const tickMs = 10;
/**
 * A tick that is later than this, in ms, shows that this process was stopped. The service restarts its time limits
 * then.
 */
const maxTickDelayMs = 400;
/** Turns of the event loop in which pending data is read and answered. */
const loopTurns = 10;

/**
 * Resolves like the work, which must end within half a second of a deadline. The same event loop counts the deadline,
 * so a busy machine delays both. The deadline restarts after this process was stopped.
 */
export async function assertWithinDeadline<Result>(deadlineMs: number, work: () => Promise<Result>): Promise<Result> {
  let isDone = false;
  const failAfterDeadline = async () => {
    let leftMs = deadlineMs + graceMs;
    for (let before = performance.now(); leftMs > 0 && !isDone; ) {
      await delay(tickMs, undefined, { ref: false });
      const now = performance.now();
      leftMs = now - before > maxTickDelayMs ? deadlineMs + graceMs : leftMs - (now - before);
      before = now;
    }
    for (let loopTurn = 0; loopTurn < loopTurns && !isDone; loopTurn++) await nextTurn();
    assert.ok(isDone, `not done ${graceMs} ms after the deadline of ${deadlineMs} ms`);
  };
  const result = work().finally(() => {
    isDone = true;
  });
  await Promise.race([result, failAfterDeadline()]);
  return result;
}

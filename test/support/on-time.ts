import assert from 'node:assert/strict';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';

const graceMs = 500;
/** Turns of the event loop in which what is ready is read and answered. */
const turns = 10;

/**
 * Resolves like the work, which must end within half a second of a deadline. The deadline is a timer of the same event
 * loop, so a busy machine delays both.
 */
export async function onTime<Result>(deadlineMs: number, work: () => Promise<Result>): Promise<Result> {
  let isOver = false;
  const tooLate = async () => {
    for (const ms of [deadlineMs, graceMs]) await delay(ms, undefined, { ref: false });
    for (let turn = 0; turn < turns && !isOver; turn++) await nextTurn();
    assert.ok(isOver, `not over ${graceMs} ms after ${deadlineMs} ms`);
  };
  const ended = work().finally(() => {
    isOver = true;
  });
  await Promise.race([ended, tooLate()]);
  return ended;
}

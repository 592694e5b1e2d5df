import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { whenCalm } from '../../src/domain/work/when-calm.ts';

/** Keeps the event loop busy for so many passes of a millisecond, or until it is told to stop. */
function keepBusy(passes: number): { done: number; stop(): void } {
  let left = passes;
  const busy = {
    done: 0,
    stop: () => {
      left = 0;
    },
  };
  const pass = () => {
    if (left-- <= 0) return;
    for (const until = performance.now() + 1; performance.now() < until; );
    busy.done++;
    setImmediate(pass);
  };
  setImmediate(pass);
  return busy;
}

describe('what is handed to another thread', () => {
  it('waits until the event loop has rested', async () => {
    const begun = performance.now();
    const busy = keepBusy(3);
    await whenCalm();
    // On a machine that is busy with something else, the limit may come first.
    assert.ok(busy.done === 3 || performance.now() - begun >= 10, `${busy.done} passes`);
  });

  it('is not held back by an event loop that never rests', async () => {
    const busy = keepBusy(Number.POSITIVE_INFINITY);
    await whenCalm();
    busy.stop();
    // Each pass takes a millisecond at least.
    assert.ok(busy.done > 0 && busy.done < 20, `${busy.done} passes`);
  });
});

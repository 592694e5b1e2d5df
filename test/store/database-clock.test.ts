import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { projectedClock } from '../../src/store/changes/database-clock.ts';
import { machineClock } from '../../src/store/changes/machine-clock.ts';

const hour = 3_600_000;
const epoch = 1_800_000_000_000;
const step = fc.integer({ min: -hour, max: hour });

describe('[find B1] the time of a database, as a process estimates it', () => {
  it('is never further off than the round trip of the last reading', () => {
    const reading = fc.record({
      /** Monotonic ms since the reading before, on the way there, and on the way back. */
      pause: fc.integer({ min: 0, max: 5000 }),
      there: fc.integer({ min: 0, max: 3000 }),
      back: fc.integer({ min: 0, max: 3000 }),
      step,
      /** The clock of the database is set, or another server replaces it. */
      moved: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: step }),
    });
    fc.assert(
      fc.property(fc.array(reading, { minLength: 1, maxLength: 30 }), (readings) => {
        let monotonic = 12_345;
        let wall = epoch;
        let moved = 0;
        const databaseAt = () => epoch + monotonic + moved;
        const clocks = { now: () => wall, clock: () => monotonic };
        const time = projectedClock(clocks, { at: databaseAt(), before: monotonic, after: monotonic });
        for (const one of readings) {
          wall += one.step;
          monotonic += one.pause;
          moved += one.moved;
          const before = monotonic;
          monotonic += one.there;
          const at = databaseAt();
          monotonic += one.back;
          time.take({ at, before, after: monotonic });
          const error = Math.abs(time.now() - databaseAt());
          assert.ok(error <= one.there + one.back + 1, String(error));
          assert.ok(Math.abs(time.skewMs() - (wall - databaseAt())) <= one.there + one.back + 1);
        }
      }),
    );
  });

  it('is not spoiled by a slow reading after a quick one', () => {
    let monotonic = 0;
    const clocks = { now: () => 0, clock: () => monotonic };
    const time = projectedClock(clocks, { at: epoch, before: 0, after: 0 });
    for (let n = 0; n < 10; n += 1) {
      const before = monotonic;
      monotonic += 4000;
      // Read at once, and four seconds on the way back.
      time.take({ at: epoch + before, before, after: monotonic });
      assert.equal(time.now(), epoch + monotonic);
    }
  });
});

describe('[find B1] the time of a machine, as a process uses it', () => {
  const change = fc.record({ pass: fc.integer({ min: 0, max: 10 * 60_000 }), step: fc.oneof(fc.constant(0), step) });

  it('never goes back, and never falls behind the clock of the machine', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 50 }), (changes) => {
        let monotonic = 0;
        let wall = epoch;
        const time = machineClock({ now: () => wall, clock: () => monotonic, boot: { id: '', beforeMs: 0.3 } });
        let last = time.now();
        for (const { pass, step: set } of changes) {
          monotonic += pass;
          wall += pass + set;
          const now = time.now();
          assert.ok(now >= last + Math.floor(pass / 2) - 1 && now >= wall);
          last = now;
        }
        // In the end the two are one again.
        monotonic += 4 * (last - wall);
        wall += 4 * (last - wall);
        assert.equal(time.now(), wall);
      }),
    );
  });
});

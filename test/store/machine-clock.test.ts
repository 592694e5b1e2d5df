import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { type DatabaseClock, startDatabaseClock } from '../../src/store/changes/database-clock.ts';
import type { Db } from '../../src/store/db.ts';
import { type Stores, startStores } from '../support/store/stores.ts';

const second = 1000;
const hour = 3_600_000;
const day = 24 * hour;
const epoch = 1_800_000_000_000;
/** Processes that look once a second have seen the clock that long before it was set. */
const lookedMs = second;
/** What two processes may differ by until their next look, and after it. */
const beforeLook = second;
const afterLook = 101;

/** A machine with one database, and the clocks of its processes. */
function machine(db: Db, boot = 'boot') {
  let up = 5 * hour;
  let wall = epoch;
  return {
    pass(ms: number) {
      up += ms;
      wall += ms;
    },
    set(ms: number) {
      wall += ms;
    },
    boot() {
      up = 0;
    },
    wall: () => wall,
    /** Starts a process, whose monotonic clock begins at any value. */
    start(origin: number): Promise<DatabaseClock> {
      const startedAt = up;
      return startDatabaseClock(db, {
        now: () => wall,
        clock: () => origin + up - startedAt,
        boot: { id: boot, beforeMs: startedAt - origin },
      });
    },
  };
}

describe('[find B1] the time of a machine, as its processes share it', () => {
  let stores: Stores;
  let db: Db;
  before(async () => {
    stores = await startStores('sqlite');
    ({ db } = await stores.open());
  });
  after(() => stores.stop());
  const rows = () => db.selectFrom('machine_clock').selectAll().execute();
  const empty = () => db.deleteFrom('machine_clock').execute();

  const event = fc.record({
    pass: fc.integer({ min: 0, max: 20 * 60 * second }),
    step: fc.oneof(fc.constant(0), fc.integer({ min: -2 * second, max: 0 }), fc.integer({ min: -hour, max: hour })),
    unseen: fc.integer({ min: 0, max: lookedMs }),
    unnoticed: fc.integer({ min: 0, max: second }),
    starts: fc.option(fc.integer({ min: 0, max: day })),
    /** Which process ends. */
    ends: fc.option(fc.nat(5)),
    isReversed: fc.boolean(),
  });

  it('is the same in all of them, whenever they started, and never goes back', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 3, maxLength: 20 }), async (events) => {
        await empty();
        const one = machine(db);
        let processes = [await one.start(0)];
        let latest = 0;
        const look = async () => {
          for (const time of processes) await time.measure();
        };
        const check = (bound: number) => {
          const times = processes.map((time) => time.now());
          const [least, most] = [Math.min(...times), Math.max(...times)];
          assert.ok(most - least <= bound, `they differ by ${most - least}`);
          assert.ok(least >= latest - bound, `it went back by ${latest - least}`);
          assert.ok(least >= one.wall());
          latest = Math.max(latest, most);
        };
        for (const { pass, step, unseen, unnoticed, starts, ends, isReversed } of events) {
          one.pass(pass);
          await look();
          one.pass(unseen);
          one.set(step);
          const own = processes.map((time) => time.now());
          one.pass(unnoticed);
          if (isReversed) processes.reverse();
          await look();
          if (isReversed) processes.reverse();
          assert.ok(processes.every((time, n) => time.now() >= (own[n] ?? 0)));
          if (starts !== null) processes.push(await one.start(starts));
          check(beforeLook);
          await look();
          check(afterLook);
          if (ends !== null && processes.length > 1) processes = processes.filter((_, n) => n !== ends);
        }
        // In the end they are the machine's again, and nothing is left.
        one.pass(2 * (latest - one.wall()) + 100);
        await look();
        assert.ok(processes.every((time) => time.now() === one.wall()));
        assert.deepEqual(await rows(), []);
      }),
      { numRuns: 60 },
    );
  });

  it('follows a clock that is set back by more than a day at once, and so does a new process', async () => {
    await empty();
    const one = machine(db);
    one.set(10 * 365 * day);
    const running = await one.start(7);
    await running.measure();
    one.set(-10 * 365 * day);
    assert.equal(running.now(), one.wall());
    await running.measure();
    assert.deepEqual([(await one.start(0)).now(), await rows()], [one.wall(), []]);
    // Of two steps that are a day together, the first was shared.
    one.set(-20 * hour);
    await running.measure();
    assert.equal((await rows()).length, 1);
    one.set(-20 * hour);
    assert.deepEqual([running.now(), (await one.start(0)).now()], [one.wall(), one.wall()]);
    await running.measure();
    assert.deepEqual(await rows(), []);
  });

  it('ends with the boot, and is not taken from another machine', async () => {
    await empty();
    const one = machine(db);
    const running = await one.start(0);
    one.set(-hour);
    await running.measure();
    assert.equal((await rows()).length, 1);
    const other = machine(db, 'another boot');
    const there = await other.start(0);
    assert.equal(there.now(), other.wall());
    await there.measure();
    assert.deepEqual(await rows(), []);
  });

  it('is met sooner after another boot where boots have no id', async () => {
    await empty();
    const one = machine(db, '');
    const running = await one.start(0);
    const latest = running.now();
    one.set(-10 * hour);
    await running.measure();
    one.boot();
    assert.equal((await one.start(0)).now(), latest - 2.5 * hour);
    one.pass(15 * hour);
    const met = await one.start(0);
    await met.measure();
    assert.deepEqual([met.now(), await rows()], [one.wall(), []]);
  });

  it('writes nothing while the clock is right, or is corrected by a little', async () => {
    await empty();
    const one = machine(db);
    const running = await one.start(0);
    for (const step of [0, -90, hour]) {
      one.pass(second);
      one.set(step);
      await running.measure();
      assert.deepEqual(await rows(), []);
    }
  });
});

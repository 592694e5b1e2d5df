import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { type ControlledTransaction, type Kysely, sql } from 'kysely';
import { createReadChanges, recordChange } from '../../src/store/changes/follow-changes.ts';
import { openDatabase } from '../../src/store/database.ts';
import type { Tables } from '../../src/store/schema.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/store/postgres.ts';
import { type Stores, startStores } from '../support/store/stores.ts';

const writers = 4;
const readers = 2;
const writer = fc.nat(writers - 1);
/** Steps of several writers and readers. */
const steps = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('begin' as const), writer }) },
    // The clock of a writer may have any value.
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('record' as const), writer, at: fc.integer({ min: 0, max: 2 ** 41 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('commit' as const), writer }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('rollback' as const), writer }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('look' as const), reader: fc.nat(readers - 1) }) },
  ),
  { minLength: 10, maxLength: 40 },
);

describe('[find B1] the change reader on PostgreSQL', () => {
  let postgres: OwnPostgres;
  let stores: Stores;
  let db: Kysely<Tables>;
  let ids = 0;
  const record = async (on: Kysely<Tables>, at = 1) => {
    const id = `chg_${++ids}`;
    await recordChange(on, { random: randomBytes, now: () => at }, 'key', id);
    return id;
  };
  /** Creates a reader that collects the ids reported at each poll. */
  const reader = async () => {
    const read = createReadChanges(db);
    await read();
    const told: string[] = [];
    return {
      told,
      async look() {
        const { changes, isContinuous } = await read();
        assert.equal(isContinuous, true);
        told.push(...changes.map(({ ref }) => ref));
      },
    };
  };
  before(async () => {
    postgres = await startOwnPostgres();
    stores = await startStores('postgres', async () => postgres);
    ({ db } = await stores.open());
  });
  after(() => stores.stop());

  it('reports every commit to every reader once, in any mix of commits and rollbacks', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        const open: (ControlledTransaction<Tables> | undefined)[] = [];
        const pending: string[][] = [];
        const watching = await Promise.all(Array.from({ length: readers }, reader));
        const committed: string[] = [];
        try {
          for (const step of plan) {
            if (step.kind === 'look') {
              await watching[step.reader]?.look();
              // Each poll has reported everything committed before it, exactly once, and nothing else.
              assert.deepEqual(watching[step.reader]?.told.toSorted(), committed.toSorted());
            } else if (step.kind === 'begin') {
              open[step.writer] ??= await db.startTransaction().execute();
              pending[step.writer] ??= [];
            } else {
              const transaction = open[step.writer];
              const own = pending[step.writer];
              if (!transaction || !own) continue;
              if (step.kind === 'record') own.push(await record(transaction, step.at));
              else {
                await transaction[step.kind]().execute();
                if (step.kind === 'commit') committed.push(...own);
                open[step.writer] = undefined;
                pending.splice(step.writer, 1, []);
              }
            }
          }
        } finally {
          for (const transaction of open) await transaction?.rollback().execute();
        }
        for (const one of watching) {
          await one.look();
          assert.deepEqual(one.told.toSorted(), committed.toSorted());
        }
      }),
      { numRuns: 60 },
    );
  });

  it('[G4] ignores the changes of another cluster whose dump was restored here', async () => {
    await sql`insert into changes (id, at, kind, ref, position)
      select 'old_' || n, 1, 'key', 'old_' || n, 1000000000000 + n from generate_series(1, 3000) as n`.execute(db);
    const one = await reader();
    await one.look();
    const now = await record(db);
    await one.look();
    await one.look();
    assert.deepEqual(one.told, [now]);
    await sql`delete from changes where ref like 'old_%'`.execute(db);
  });

  it('does not trust positions across a database restart', async () => {
    const read = createReadChanges(db);
    await read();
    assert.equal((await read()).isContinuous, true);
    await postgres.crash();
    await assert.rejects(read());
    await postgres.restart();
    const missed = await record(db);
    const found = await read();
    assert.equal(found.isContinuous, false);
    assert.deepEqual(
      found.changes.map(({ ref }) => ref),
      [missed],
      'no change is skipped by a failed poll',
    );
    assert.equal((await read()).isContinuous, true);
  });
});

describe('[find B1] the change reader on SQLite', () => {
  it('reports every commit of every process to every reader once, at its next poll', async () => {
    const stores = await startStores('sqlite');
    const options = await stores.newOptions();
    const connections = [await openDatabase(options), await openDatabase(options), await openDatabase(options)];
    let ids = 0;
    const round = fc.record({
      writer: fc.nat(2),
      count: fc.integer({ min: 1, max: 3 }),
      isCommitted: fc.boolean(),
      looks: fc.array(fc.nat(2), { maxLength: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 10 }), async (rounds) => {
        const committed: string[] = [];
        const told: string[][] = [[], [], []];
        const reads = connections.map(({ db }) => createReadChanges(db));
        for (const read of reads) await read();
        const look = async (n: number) => {
          const found = await reads[n]?.();
          assert.equal(found?.isContinuous, true);
          told[n]?.push(...(found?.changes ?? []).map(({ ref }) => ref));
          assert.deepEqual(told[n], committed);
        };
        for (const { writer: n, count, isCommitted, looks } of rounds) {
          const transaction = await connections[n]?.db.startTransaction().execute();
          assert.ok(transaction);
          const own = Array.from({ length: count }, () => `chg_${++ids}`);
          for (const id of own) await recordChange(transaction, { random: randomBytes, now: () => 1 }, 'key', id);
          // A reader of another process is not blocked and sees none of the changes.
          await look((n + 1) % 3);
          if (isCommitted) committed.push(...own);
          await (isCommitted ? transaction.commit() : transaction.rollback()).execute();
          for (const reader of looks) await look(reader);
        }
        for (const reader of [0, 1, 2]) await look(reader);
      }),
      { numRuns: 40 },
    );
    await Promise.all(connections.map((connection) => connection.close()));
    await stores.stop();
  });
});

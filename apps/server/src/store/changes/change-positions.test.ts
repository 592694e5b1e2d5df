import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { type ControlledTransaction, type Kysely, sql } from 'kysely';
import { assertMapped } from '../../../../../test/support/assert-lists.ts';
import { type DedicatedPostgres, startDedicatedPostgres } from '../../../../../test/support/store/postgres.ts';
import { type Stores, startStores } from '../../../../../test/support/store/stores.ts';
import { openDatabase } from '../database.ts';
import type { Tables } from '../schema.ts';
import { createReadChanges, recordChange } from './follow-changes.ts';

const writerCount = 4;
const readerCount = 2;
const writer = fc.nat(writerCount - 1);
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
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('look' as const), reader: fc.nat(readerCount - 1) }) },
  ),
  { minLength: 10, maxLength: 40 },
);

describe('[find B1] the change reader on PostgreSQL', () => {
  let postgres: DedicatedPostgres;
  let stores: Stores;
  let db: Kysely<Tables>;
  let ids = 0;
  const record = async (on: Kysely<Tables>, at = 1) => {
    const id = `chg_${++ids}`;
    await recordChange(on, { random: randomBytes, now: () => at }, 'key', id);
    return id;
  };
  const createReader = async () => {
    const read = createReadChanges(db);
    await read();
    const reportedIds: string[] = [];
    return {
      told: reportedIds,
      async poll() {
        const { changes, isContinuous } = await read();
        assert.equal(isContinuous, true);
        reportedIds.push(...changes.map(({ ref }) => ref));
      },
    };
  };
  before(async () => {
    postgres = await startDedicatedPostgres();
    stores = await startStores('postgres', async () => postgres);
    ({ db } = await stores.open());
  });
  after(() => stores.stop());

  it('reports every commit to every reader once, in any mix of commits and rollbacks', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (stepList) => {
        const transactions: (ControlledTransaction<Tables> | undefined)[] = [];
        const pending: string[][] = [];
        const readerStates = await Promise.all(Array.from({ length: readerCount }, createReader));
        const committed: string[] = [];
        try {
          for (const step of stepList) {
            if (step.kind === 'look') {
              await readerStates[step.reader]?.poll();
              // Each poll has reported everything committed before it, exactly once, and nothing else.
              assert.deepEqual(readerStates[step.reader]?.told.toSorted(), committed.toSorted());
            } else if (step.kind === 'begin') {
              transactions[step.writer] ??= await db.startTransaction().execute();
              pending[step.writer] ??= [];
            } else {
              const transaction = transactions[step.writer];
              const pendingIds = pending[step.writer];
              if (!transaction || !pendingIds) continue;
              if (step.kind === 'record') pendingIds.push(await record(transaction, step.at));
              else {
                await transaction[step.kind]().execute();
                if (step.kind === 'commit') committed.push(...pendingIds);
                transactions[step.writer] = undefined;
                pending.splice(step.writer, 1, []);
              }
            }
          }
        } finally {
          for (const transaction of transactions) await transaction?.rollback().execute();
        }
        for (const readerState of readerStates) {
          await readerState.poll();
          assert.deepEqual(readerState.told.toSorted(), committed.toSorted());
        }
      }),
      { numRuns: 60 },
    );
  });

  it('[G4] ignores the changes of another cluster whose dump was restored here', async () => {
    await sql`insert into changes (id, at, kind, ref, position)
      select 'old_' || n, 1, 'key', 'old_' || n, 1000000000000 + n from generate_series(1, 3000) as n`.execute(db);
    const readerState = await createReader();
    await readerState.poll();
    const newId = await record(db);
    await readerState.poll();
    await readerState.poll();
    assert.deepEqual(readerState.told, [newId]);
    await sql`delete from changes where ref like 'old_%'`.execute(db);
  });

  it('does not trust positions across a database restart', async () => {
    const read = createReadChanges(db);
    await read();
    assert.equal((await read()).isContinuous, true);
    await postgres.crash();
    await assert.rejects(read());
    await postgres.restart();
    const missedId = await record(db);
    const result = await read();
    assert.equal(result.isContinuous, false);
    assertMapped(result.changes, ({ ref }) => ref, [missedId], 'no change is skipped by a failed poll');
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
        const reportedIds: string[][] = [[], [], []];
        const reads = connections.map(({ db }) => createReadChanges(db));
        for (const read of reads) await read();
        const poll = async (n: number) => {
          const result = await reads[n]?.();
          assert.equal(result?.isContinuous, true);
          reportedIds[n]?.push(...(result?.changes ?? []).map(({ ref }) => ref));
          assert.deepEqual(reportedIds[n], committed);
        };
        for (const { writer: n, count, isCommitted, looks: pollingReaders } of rounds) {
          const transaction = await connections[n]?.db.startTransaction().execute();
          assert.ok(transaction);
          const writtenIds = Array.from({ length: count }, () => `chg_${++ids}`);
          for (const id of writtenIds)
            await recordChange(transaction, { random: randomBytes, now: () => 1 }, 'key', id);
          // A reader of another process is not blocked and sees none of the changes.
          await poll((n + 1) % 3);
          if (isCommitted) committed.push(...writtenIds);
          await (isCommitted ? transaction.commit() : transaction.rollback()).execute();
          for (const reader of pollingReaders) await poll(reader);
        }
        for (const reader of [0, 1, 2]) await poll(reader);
      }),
      { numRuns: 40 },
    );
    await Promise.all(connections.map((connection) => connection.close()));
    await stores.stop();
  });
});

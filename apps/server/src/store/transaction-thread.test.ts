import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, it } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { startStores } from '../../../../test/support/store/stores.ts';
import { findWorkspaceIds, insertWorkspace } from '../../../../test/support/store/workspace-rows.ts';
import { useFixtures } from '../../../../test/support/use-fixtures.ts';
import { DatabaseError } from './engine/database-errors.ts';

describe('the thread that runs the transactions of operations', () => {
  const fixtures = useFixtures();
  const stores = fixtures.start(() => startStores('sqlite'));
  const database = fixtures.start(
    () => stores.open(),
    () => undefined,
  );
  const ids = (source = database) => findWorkspaceIds(source.db);

  it('shows nothing before the commit, and everything after it', async () => {
    await database.transactions.transaction().execute(async (db) => {
      await insertWorkspace(db, 'committed');
      assert.deepEqual(await ids(), []);
    });
    assert.deepEqual(await ids(), ['committed']);
  });

  it('rolls back a failed transaction, and continues', async () => {
    const failing = database.transactions.transaction().execute(async (db) => {
      await insertWorkspace(db, 'undone');
      throw new Error('enough');
    });
    await assert.rejects(failing, /enough/);
    assert.deepEqual(await ids(), ['committed']);
  });

  it('runs concurrent transactions one after the other, regardless of their outcomes', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 30 }, (_, n) =>
        database.transactions.transaction().execute(async (db) => {
          await insertWorkspace(db, `many-${n}`);
          if (n % 3 === 1) throw new Error('enough');
          // The id exists, so this statement fails.
          if (n % 3 === 2) await insertWorkspace(db, `many-${n}`);
        }),
      ),
    );
    const storedIds = (await ids()).filter((id) => id.startsWith('many-'));
    const expected = Array.from({ length: 10 }, (_, n) => `many-${n * 3}`);
    assert.deepEqual(storedIds.sort(), expected.sort());
    assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 20);
  });

  it('rolls back a transaction when it dies, and a new thread runs the next one', async () => {
    const startedWorkers: Worker[] = [];
    const onThread = (message: unknown) => startedWorkers.push((message as { worker: Worker }).worker);
    subscribe('worker_threads', onThread);
    const otherDatabase = await stores.open();
    const insertTwice = (id: string, duringTransaction?: () => Promise<unknown>) =>
      otherDatabase.transactions.transaction().execute(async (db) => {
        await insertWorkspace(db, id);
        await duringTransaction?.();
        await insertWorkspace(db, `${id} again`);
      });
    await insertTwice('before');
    assert.equal(startedWorkers.length, 1);
    const isDown = (error: unknown) => error instanceof DatabaseError && error.errorKind === 'unavailable';
    const outcomes = await Promise.allSettled([
      insertTwice('lost', () => startedWorkers[0]?.terminate() ?? assert.fail()),
      insertTwice('behind it'),
      insertWorkspace(otherDatabase.db, 'of the event loop'),
    ]);
    const [lostOutcome, queuedOutcome, otherOutcome] = outcomes;
    assert.ok(lostOutcome?.status === 'rejected' && isDown(lostOutcome.reason), String(lostOutcome));
    assert.ok(queuedOutcome?.status === 'fulfilled' || isDown(queuedOutcome?.reason));
    assert.equal(otherOutcome?.status, 'fulfilled');
    await insertTwice('after');
    unsubscribe('worker_threads', onThread);
    const storedIds = await ids(otherDatabase);
    assert.deepEqual(
      storedIds.filter((id) => !id.startsWith('behind')).sort(),
      ['after', 'after again', 'before', 'before again', 'of the event loop'].sort(),
    );
  });
});

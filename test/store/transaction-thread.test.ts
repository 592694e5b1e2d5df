import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { CompiledQuery } from 'kysely';
import type { Database, DatabaseOptions } from '../../src/store/database.ts';
import { openDatabase } from '../../src/store/database.ts';
import { StoreFault } from '../../src/store/engine/faults.ts';
import { type Stores, startStores } from '../support/store/stores.ts';
import { insertWorkspace, workspaceIds } from '../support/store/workspace-rows.ts';

describe('the thread that runs the transactions of operations', () => {
  let stores: Stores;
  let options: DatabaseOptions;
  let database: Database;
  before(async () => {
    stores = await startStores('sqlite');
    options = await stores.newOptions();
    database = await openDatabase(options);
  });
  after(async () => {
    await database.close();
    await stores.stop();
  });
  const ids = (of = database) => workspaceIds(of.db);

  it('shows nothing before its commit, and everything after it', async () => {
    await database.transactions.transaction().execute(async (db) => {
      await insertWorkspace(db, 'committed');
      assert.deepEqual(await ids(), []);
    });
    assert.deepEqual(await ids(), ['committed']);
  });

  it('undoes a transaction that fails, and goes on', async () => {
    const failing = database.transactions.transaction().execute(async (db) => {
      await insertWorkspace(db, 'undone');
      throw new Error('enough');
    });
    await assert.rejects(failing, /enough/);
    assert.deepEqual(await ids(), ['committed']);
  });

  it('lets a statement of the event loop wait for the end of its transaction', async () => {
    const order: string[] = [];
    let other: Promise<unknown> | undefined;
    await database.transactions.transaction().execute(async (db) => {
      await insertWorkspace(db, 'first');
      other = insertWorkspace(database.db, 'second').then(() => order.push('second'));
      order.push('first');
    });
    await other;
    assert.deepEqual(
      [order, await ids()],
      [
        ['first', 'second'],
        ['committed', 'first', 'second'],
      ],
    );
  });

  it('keeps a statement outside of its transaction out of it, and its lock with it', async () => {
    const order: string[] = [];
    const waiting: Promise<unknown>[] = [];
    const failing = database.transactions.transaction().execute(async (db) => {
      await insertWorkspace(db, 'in the transaction');
      waiting.push(insertWorkspace(database.transactions, 'beside it').then(() => order.push('beside it')));
      waiting.push(insertWorkspace(database.db, 'of the event loop').then(() => order.push('of the event loop')));
      // Statements run in turn, so one that had joined the transaction would have ended with this one.
      await insertWorkspace(db, 'also in the transaction');
      order.push('end');
      throw new Error('enough');
    });
    await assert.rejects(failing, /enough/);
    await Promise.all(waiting);
    assert.equal(order[0], 'end');
    const rows = await ids();
    assert.deepEqual(
      rows.filter((id) => id.includes('transaction')),
      [],
    );
    assert.deepEqual(rows.filter((id) => /^(beside|of)/.test(id)).sort(), ['beside it', 'of the event loop']);
  });

  it('goes on after a value that cannot be sent to it, and each question gets its own answer', async () => {
    const one = (value: unknown) => database.transactions.executeQuery(CompiledQuery.raw('select ? as value', [value]));
    await assert.rejects(
      one(() => 1),
      /could not be cloned/,
    );
    const answers = await Promise.all([one('a'), one('b')]);
    assert.deepEqual(
      answers.map(({ rows }) => ({ ...(rows[0] as object) })),
      [{ value: 'a' }, { value: 'b' }],
    );
  });

  it('runs concurrent transactions one after the other, whatever becomes of each', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 30 }, (_, n) =>
        database.transactions.transaction().execute(async (db) => {
          await insertWorkspace(db, `many-${n}`);
          if (n % 3 === 1) throw new Error('enough');
          // The id is taken, so this statement fails.
          if (n % 3 === 2) await insertWorkspace(db, `many-${n}`);
        }),
      ),
    );
    const kept = (await ids()).filter((id) => id.startsWith('many-'));
    const expected = Array.from({ length: 10 }, (_, n) => `many-${n * 3}`);
    assert.deepEqual(kept.sort(), expected.sort());
    assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 20);
  });

  it('waits while another process writes, and changes nothing where that takes too long', async () => {
    const other = new DatabaseSync(options.file);
    const change = (id: string) => database.transactions.transaction().execute((db) => insertWorkspace(db, id));
    other.exec('begin immediate');
    const waiting = change('waited');
    setTimeout(() => other.exec('commit'), 300);
    await waiting;
    other.exec('begin immediate');
    await assert.rejects(change('never'), (error) => error instanceof StoreFault && error.fault === 'busy');
    other.exec('commit');
    other.close();
    await change('afterwards');
    const found = (await ids()).filter((id) => ['waited', 'never', 'afterwards'].includes(id));
    assert.deepEqual(found.sort(), ['afterwards', 'waited']);
  });

  it('that dies in a transaction undoes it, and a new one runs the next', async () => {
    const started: Worker[] = [];
    const onThread = (message: unknown) => started.push((message as { worker: Worker }).worker);
    subscribe('worker_threads', onThread);
    const opened = await openDatabase(await stores.newOptions());
    const change = (id: string, then?: () => Promise<unknown>) =>
      opened.transactions.transaction().execute(async (db) => {
        await insertWorkspace(db, id);
        await then?.();
        await insertWorkspace(db, `${id} again`);
      });
    await change('before');
    assert.equal(started.length, 1);
    const isDown = (error: unknown) => error instanceof StoreFault && error.fault === 'unavailable';
    const outcomes = await Promise.allSettled([
      change('lost', () => started[0]?.terminate() ?? assert.fail()),
      change('behind it'),
      insertWorkspace(opened.db, 'of the event loop'),
    ]);
    const [lost, behind, other] = outcomes;
    assert.ok(lost?.status === 'rejected' && isDown(lost.reason), String(lost));
    assert.ok(behind?.status === 'fulfilled' || isDown(behind?.reason));
    assert.equal(other?.status, 'fulfilled');
    await change('after');
    unsubscribe('worker_threads', onThread);
    const kept = await ids(opened);
    assert.deepEqual(
      kept.filter((id) => !id.startsWith('behind')).sort(),
      ['after', 'after again', 'before', 'before again', 'of the event loop'].sort(),
    );
    await opened.close();
  });
});

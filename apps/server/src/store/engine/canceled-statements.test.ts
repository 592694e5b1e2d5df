import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { blockThread } from '../../../../../test/support/block-thread.ts';
import { eventually } from '../../../../../test/support/eventually.ts';
import { generousLimits } from '../../../../../test/support/store/generous-limits.ts';
import { type PostgresProxy, startPostgresProxy } from '../../../../../test/support/store/postgres-proxy.ts';
import { type Stores, startStores } from '../../../../../test/support/store/stores.ts';
import { type Database, openDatabase } from '../database.ts';
import { transact } from './watched-dialect.ts';

/** Time limit that the first statement of a test waits for. The next statement must not reach it. */
const reportMs = 8000;
const briefMs = 1000;
const connectMs = 5000;

describe('a statement that PostgreSQL is asked to cancel', () => {
  let stores: Stores;
  let proxy: PostgresProxy;
  let openWithLimits: (cancelMs: number, reports?: number) => Promise<Database>;
  let database: Database;
  let blocker: pg.Client;
  const errorMessages: string[] = [];
  before(async () => {
    stores = await startStores('postgres');
    const options = await stores.newOptions();
    const url = options.postgres?.url ?? assert.fail();
    proxy = await startPostgresProxy(url);
    const slowUrl = new URL(proxy.url);
    slowUrl.searchParams.set('connect_timeout', String(connectMs / 1000));
    openWithLimits = (cancel, reports = reportMs) =>
      openDatabase({
        ...options,
        postgres: { url: slowUrl.href, maxConnections: 1, authorities: undefined },
        postgresLimits: { ...generousLimits, statements: { ...generousLimits.statements, reports }, cancel },
        onError: (error) => errorMessages.push(error.message),
      });
    database = await openWithLimits(generousLimits.cancel);
    blocker = new pg.Client({ connectionString: url });
    await blocker.connect();
  });
  after(async () => {
    await blocker.end();
    await database.close();
    await proxy.close();
    await stores.stop();
  });
  beforeEach(() => {
    errorMessages.length = 0;
  });

  /** Runs a statement that waits until the blocker unlocks the number. */
  const runWaitingStatement = (number: number, { reports } = database) =>
    sql`select pg_advisory_xact_lock(${number}), pg_backend_pid() as pid`.execute(reports);
  const lock = (number: number) => blocker.query(`select pg_advisory_lock(${number})`);
  const unlock = (number: number) => blocker.query(`select pg_advisory_unlock(${number})`);
  const waitUntilBlocked = (number: number) =>
    eventually(async () => {
      const { rows } = await blocker.query(
        `select 1 from pg_locks where locktype = 'advisory' and objid = ${number} and not granted`,
      );
      assert.equal(rows.length, 1);
    });

  it('[find C3] does not cancel the next statement, however late the cancel request arrives', async () => {
    for (const number of [1, 2]) await lock(number);
    proxy.holdCancelRequests();
    const slow = runWaitingStatement(1);
    const before = proxy.cancelRequestCount;
    await eventually(() => assert.equal(proxy.cancelRequestCount, before + 1));
    await unlock(1);
    await slow;
    const next = runWaitingStatement(2);
    // The rejection is awaited below.
    next.catch(() => undefined);
    await waitUntilBlocked(2);
    await proxy.forwardCancelRequests();
    await unlock(2);
    await next;
  });

  it('[find C5] does not cancel a statement whose result arrived while this process was stopped', async () => {
    const briefDatabase = await openWithLimits(briefMs);
    for (const number of [1, 2]) await lock(number);
    const before = proxy.cancelRequestCount;
    const singleStatement = runWaitingStatement(1, briefDatabase);
    const inTransaction = transact(briefDatabase.reports, (db) => sql`select pg_advisory_xact_lock(2)`.execute(db));
    for (const number of [1, 2]) await waitUntilBlocked(number);
    const unlocked = blocker.query('select pg_advisory_unlock_all()');
    blockThread(reportMs + 2 * briefMs);
    await Promise.all([unlocked, singleStatement, inTransaction]);
    assert.deepEqual([proxy.cancelRequestCount - before, errorMessages], [0, []]);
    await briefDatabase.close();
  });
});

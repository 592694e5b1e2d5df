import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { transact } from '../../src/store/engine/watched-dialect.ts';
import { eventually } from '../support/eventually.ts';
import { stopFor } from '../support/stop-for.ts';
import { patientLimits } from '../support/store/patient-limits.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/store/postgres-proxy.ts';
import { type Stores, startStores } from '../support/store/stores.ts';

/** Time limit that the first statement of a test waits for. The next statement must not reach it. */
const reportMs = 8000;
const briefMs = 1000;
const connectMs = 5000;

describe('a statement that PostgreSQL is asked to cancel', () => {
  let stores: Stores;
  let proxy: PostgresProxy;
  let open: (cancelMs: number, reports?: number) => Promise<Database>;
  let database: Database;
  let blocker: pg.Client;
  const lost: string[] = [];
  before(async () => {
    stores = await startStores('postgres');
    const options = await stores.newOptions();
    const url = options.postgres?.url ?? assert.fail();
    proxy = await startPostgresProxy(url);
    const slowUrl = new URL(proxy.url);
    slowUrl.searchParams.set('connect_timeout', String(connectMs / 1000));
    open = (cancel, reports = reportMs) =>
      openDatabase({
        ...options,
        postgres: { url: slowUrl.href, maxConnections: 1, authorities: undefined },
        postgresLimits: { ...patientLimits, statements: { ...patientLimits.statements, reports }, cancel },
        onError: (error) => lost.push(error.message),
      });
    database = await open(patientLimits.cancel);
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
    lost.length = 0;
  });

  /** Runs a statement that waits until the blocker unlocks the number. */
  const waitFor = (number: number, { reports } = database) =>
    sql`select pg_advisory_xact_lock(${number}), pg_backend_pid() as pid`.execute(reports);
  const block = (number: number) => blocker.query(`select pg_advisory_lock(${number})`);
  const free = (number: number) => blocker.query(`select pg_advisory_unlock(${number})`);
  const isWaiting = (number: number) =>
    eventually(async () => {
      const { rows } = await blocker.query(
        `select 1 from pg_locks where locktype = 'advisory' and objid = ${number} and not granted`,
      );
      assert.equal(rows.length, 1);
    });

  it('[find C3] does not cancel the next statement, however late the cancel request arrives', async () => {
    for (const number of [1, 2]) await block(number);
    proxy.holdCancels();
    const slow = waitFor(1);
    const before = proxy.cancels;
    await eventually(() => assert.equal(proxy.cancels, before + 1));
    await free(1);
    await slow;
    const next = waitFor(2);
    // The rejection is awaited below.
    next.catch(() => undefined);
    await isWaiting(2);
    await proxy.passCancels();
    await free(2);
    await next;
  });

  it('[find C5] does not cancel a statement whose result arrived while this process was stopped', async () => {
    const brief = await open(briefMs);
    for (const number of [1, 2]) await block(number);
    const before = proxy.cancels;
    const alone = waitFor(1, brief);
    const inTransaction = transact(brief.reports, (db) => sql`select pg_advisory_xact_lock(2)`.execute(db));
    for (const number of [1, 2]) await isWaiting(number);
    const freed = blocker.query('select pg_advisory_unlock_all()');
    stopFor(reportMs + 2 * briefMs);
    await Promise.all([freed, alone, inTransaction]);
    assert.deepEqual([proxy.cancels - before, lost], [0, []]);
    await brief.close();
  });
});

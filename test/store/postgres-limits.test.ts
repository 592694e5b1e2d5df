import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { before, beforeEach, describe, it } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import type { RuntimeOptions } from '../../apps/server/src/app/runtime-options.ts';
import { openDatabase } from '../../apps/server/src/store/database.ts';
import { transact } from '../../apps/server/src/store/engine/watched-dialect.ts';
import { assertNone } from '../support/assert-lists.ts';
import { blockThread } from '../support/block-thread.ts';
import { eventually } from '../support/eventually.ts';
import { retryUntilServed } from '../support/fresh-request.ts';
import { defaultDatabaseOptions } from '../support/store/default-options.ts';
import { generousLimits } from '../support/store/generous-limits.ts';
import { startPgBouncer } from '../support/store/pgbouncer.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { startPostgresProxy } from '../support/store/postgres-proxy.ts';
import { queryPostgres, usePostgres } from '../support/store/use-postgres.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Shared by all processes that serve from one database. */
const masterKey = randomBytes(32).toString('base64');

/** Returns the error with which the command line fails to open this database. */
async function getCommandError(env: Record<string, string>): Promise<string> {
  const { code, stderr } = await runToolhostCommand(['keys', 'list'], { env });
  assert.equal(code, 1, stderr);
  assert.doesNotMatch(stderr, /\n\s+at |unexpected/, 'no stack trace is printed');
  return stderr;
}

async function withToolhost(
  env: Record<string, string>,
  work: (toolhost: TestToolhost) => Promise<void>,
  runtimeOptions: Partial<RuntimeOptions> = {},
): Promise<void> {
  const toolhost = await startToolhost({ env: { MASTER_KEY: masterKey, ...env }, runtimeOptions });
  try {
    await work(toolhost);
  } finally {
    await toolhost.stop();
  }
}

const sendManyRequests = (toolhost: TestToolhost, count: number) =>
  Promise.all(Array.from({ length: count }, () => toolhost.rest('GET', '/servers/not-there')));

describe('the PostgreSQL time limits', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const bouncer = fixtures.start(() => startPgBouncer(database.url, 3));

  for (const [name, getUrl] of [
    ['directly', () => database.url],
    ['through PgBouncer', () => bouncer.url],
  ] as const)
    it(`[find C3] ends a statement on the server when it waits too long, connected ${name}`, async () => {
      const work = async (toolhost: TestToolhost) => {
        const blocker = new pg.Client({ connectionString: database.url });
        await blocker.connect();
        await blocker.query('begin; lock table servers in access exclusive mode');
        try {
          const reply = await toolhost.rest('GET', '/servers');
          assert.equal(reply.status, 503, reply.text);
          assert.match(reply.text, /the database is busy/);
          await eventually(async () => {
            const waiting = await queryPostgres(
              database.url,
              "select query from pg_stat_activity where wait_event_type = 'Lock'",
            );
            assertNone(waiting, ({ query }) => /servers/.test(String(query)));
          });
          const writeReply = await toolhost.rest('POST', '/servers', {
            body: buildServerAt('blocked', 'https://api.example'),
          });
          assert.equal(writeReply.status, 503, writeReply.text);
          assert.match(writeReply.text, /the database is busy/);
        } finally {
          await blocker.query('rollback');
          await blocker.end();
        }
        // The list above can use up the workspace's time for lists. The next list is then refused at first.
        const reply = await retryUntilServed(() => toolhost.rest('GET', '/servers'));
        assert.equal(reply.status, 200, reply.text);
      };
      await withToolhost({ DATABASE_URL: getUrl() }, work, { postgresLimits: undefined });
    });

  it('[find C3] applies the time limits of DATABASE_URL to transactions of every pool, and keeps the other defaults', async () => {
    const limits = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'] as const;
    const defaultLimits = { statement_timeout: '5s', lock_timeout: '2s', idle_in_transaction_session_timeout: '5s' };
    const values = sql<{ name: string; value: string }>`
      select name, current_setting(name) as value from unnest(${limits}::text[]) as name`;
    for (const changedNames of [[], ...limits.map((name) => [name]), limits]) {
      const url = `${bouncer.url}?${changedNames.map((name) => `${name}=7000`).join('&')}`;
      const database = await openDatabase({
        ...defaultDatabaseOptions,
        postgres: { url, maxConnections: 1, authorities: undefined },
      });
      const getValues = async (pool: 'db' | 'reports' | 'changes') => {
        const { rows } = await database[pool].transaction().execute((transaction) => values.execute(transaction));
        return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
      };
      try {
        const changed = Object.fromEntries(changedNames.map((name) => [name, '7s']));
        for (const pool of ['db', 'changes'] as const)
          assert.deepEqual(await getValues(pool), { ...defaultLimits, ...changed }, `${pool} ${changedNames}`);
        const reports = { ...defaultLimits, statement_timeout: '3s', ...changed };
        assert.deepEqual(await getValues('reports'), reports, `reports ${changedNames}`);
      } finally {
        await database.close();
      }
    }
  });
});

describe('the connection pool', () => {
  const postgres = useFixtures().start(startPostgres);

  it('[find C3] limits the connections of a process to DATABASE_POOL', async () => {
    const url = await postgres.createDatabase();
    const countOpenConnections = async () => {
      const countQuery = "select count(*)::int as n from pg_stat_activity where application_name = 'toolhost'";
      return Number((await queryPostgres(url, countQuery))[0]?.n);
    };
    await withToolhost({ DATABASE_URL: url, DATABASE_POOL: '3' }, async (toolhost) => {
      await sendManyRequests(toolhost, 40);
      const openCount = await countOpenConnections();
      // The separate pools have at most 2 connections for reports and 1 for changes.
      assert.ok(openCount >= 1 && openCount <= 3 + 2 + 1, String(openCount));
    });
    await eventually(async () =>
      assert.equal(await countOpenConnections(), 0, 'all connections are closed after the stop'),
    );
  });

  it('[find C3] reports that the server refuses connections, with an error message that names the reason, at the start and later', async () => {
    const admin = await postgres.createDatabase('empty');
    await queryPostgres(admin, "create role few login password 'few' connection limit 2");
    await queryPostgres(admin, `alter database ${new URL(admin).pathname.slice(1)} owner to few`);
    const url = new URL(admin);
    [url.username, url.password] = ['few', 'few'];
    const env = { DATABASE_URL: url.href, DATABASE_POOL: '5', MASTER_KEY: masterKey };
    // The start itself needs few connections, and on a busy machine it may need one more than the server allows.
    const toolhost = await eventually(() => startToolhost({ env }));
    try {
      const refused = (await sendManyRequests(toolhost, 30)).filter(({ status }) => status !== 404);
      assert.ok(refused.length > 0, 'the connection limit was not reached');
      for (const { status, text, headers } of refused) {
        assert.equal(status, 503);
        assert.match(text, /the database has no free connections/);
        assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      }
    } finally {
      await toolhost.stop();
    }
    await queryPostgres(admin, 'alter role few connection limit 0');
    assert.match(
      await getCommandError({ DATABASE_URL: url.href }),
      /PostgreSQL accepts no more connections; each toolhost process uses up to DATABASE_POOL connections/,
    );
  });

  it('waits for a connection for the time in connect_timeout', async () => {
    const silent = createServer();
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const startedAt = performance.now();
    const errorText = await getCommandError({ DATABASE_URL: `postgres://u@127.0.0.1:${port}/db?connect_timeout=5` });
    assert.match(errorText, /the database does not respond/);
    assert.ok(performance.now() - startedAt >= 5000);
    silent.close();
  });
});

/** Time limit of reports. The first statement of a test exceeds it, and the next statement must not. */
const reportMs = 8000;
/** Time limit of the server's reply to a cancel request. */
const cancelMs = 1000;
const connectMs = 5000;

describe('cancel requests to PostgreSQL', () => {
  const fixtures = useFixtures();
  const { database: location } = usePostgres(fixtures);
  const proxy = fixtures.start(() => startPostgresProxy(location.url));
  const errorMessages: string[] = [];
  const openWithCancelLimit = (cancel: number) => {
    const url = new URL(proxy.url);
    url.searchParams.set('connect_timeout', String(connectMs / 1000));
    return openDatabase({
      ...defaultDatabaseOptions,
      postgres: { url: url.href, maxConnections: 1, authorities: undefined },
      postgresLimits: { ...generousLimits, statements: { ...generousLimits.statements, reports: reportMs }, cancel },
      onError: (error) => errorMessages.push(error.message),
    });
  };
  const database = fixtures.start(() => openWithCancelLimit(generousLimits.cancel));
  const blocker = fixtures.start(
    () => new pg.Client({ connectionString: location.url }),
    (client) => client.end(),
  );
  before(() => blocker.connect());
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

  it('[find C3] cancel only the statement that exceeded its limit, however late they arrive', async () => {
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

  it('[find C5] are not sent for a statement whose result arrived while this process was stopped', async () => {
    const briefDatabase = await openWithCancelLimit(cancelMs);
    for (const number of [1, 2]) await lock(number);
    const before = proxy.cancelRequestCount;
    const singleStatement = runWaitingStatement(1, briefDatabase);
    const inTransaction = transact(briefDatabase.reports, (db) => sql`select pg_advisory_xact_lock(2)`.execute(db));
    for (const number of [1, 2]) await waitUntilBlocked(number);
    const unlocked = blocker.query('select pg_advisory_unlock_all()');
    blockThread(reportMs + 2 * cancelMs);
    await Promise.all([unlocked, singleStatement, inTransaction]);
    assert.deepEqual([proxy.cancelRequestCount - before, errorMessages], [0, []]);
    await briefDatabase.close();
  });
});

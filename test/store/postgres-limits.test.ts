import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import type { RuntimeOptions } from '../../apps/server/src/app/runtime-options.ts';
import { openDatabase } from '../../apps/server/src/store/database.ts';
import { eventually } from '../support/eventually.ts';
import { retryUntilServed } from '../support/fresh-request.ts';
import { defaultDatabaseOptions } from '../support/store/default-options.ts';
import { type PgBouncer, startPgBouncer } from '../support/store/pgbouncer.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

/** Shared by all processes that serve from one database. */
const masterKey = randomBytes(32).toString('base64');

async function query(url: string, text: string): Promise<Json[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows as Json[];
  } finally {
    await client.end();
  }
}

/** Returns the error with which the command line fails to open this database. */
async function getCommandError(env: Record<string, string>): Promise<string> {
  const { code, stderr } = await command(['keys', 'list'], { env });
  assert.equal(code, 1, stderr);
  assert.doesNotMatch(stderr, /\n\s+at |unexpected/, 'no stack trace is printed');
  return stderr;
}

/** Runs work with a service and stops the service afterwards. */
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

/** Sends requests that query the database, many at the same time. */
const sendManyRequests = (toolhost: TestToolhost, count: number) =>
  Promise.all(Array.from({ length: count }, () => toolhost.rest('GET', '/servers/not-there')));

describe('the PostgreSQL time limits', () => {
  let postgres: TestPostgres;
  let bouncer: PgBouncer;
  let directUrl: string;
  before(async () => {
    postgres = await startPostgres();
    directUrl = await postgres.createDatabase();
    bouncer = await startPgBouncer(directUrl, 3);
  });
  after(async () => {
    await bouncer?.stop();
    await postgres.stop();
  });

  for (const [name, getUrl] of [
    ['directly', () => directUrl],
    ['through PgBouncer', () => bouncer.url],
  ] as const) {
    it(`[find C3] ends a statement on the server when it waits too long, ${name}`, async () => {
      const work = async (toolhost: TestToolhost) => {
        const blocker = new pg.Client({ connectionString: directUrl });
        await blocker.connect();
        await blocker.query('begin; lock table servers in access exclusive mode');
        try {
          const reply = await toolhost.rest('GET', '/servers');
          assert.equal(reply.status, 503, reply.text);
          assert.match(reply.text, /the database is busy/);
          await eventually(async () => {
            const waiting = await query(directUrl, "select query from pg_stat_activity where wait_event_type = 'Lock'");
            assert.deepEqual(
              waiting.filter(({ query }) => /servers/.test(String(query))),
              [],
            );
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
  }

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
  let postgres: TestPostgres;
  before(async () => {
    postgres = await startPostgres();
  });
  after(() => postgres.stop());

  it('[find C3] limits the connections of a process to DATABASE_POOL', async () => {
    const url = await postgres.createDatabase();
    const countOpenConnections = async () => {
      const countQuery = "select count(*)::int as n from pg_stat_activity where application_name = 'toolhost'";
      return Number((await query(url, countQuery))[0]?.n);
    };
    await withToolhost({ DATABASE_URL: url, DATABASE_POOL: '3' }, async (toolhost) => {
      await sendManyRequests(toolhost, 40);
      const openCount = await countOpenConnections();
      assert.ok(openCount >= 1 && openCount <= 3 + 3, String(openCount));
    });
    await eventually(async () =>
      assert.equal(await countOpenConnections(), 0, 'all connections are closed after the stop'),
    );
  });

  it('[find C3] reports connections that the server refuses with an error message, at the start and later', async () => {
    const admin = await postgres.createDatabase('empty');
    await query(admin, "create role few login password 'few' connection limit 2");
    await query(admin, `alter database ${new URL(admin).pathname.slice(1)} owner to few`);
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
    await query(admin, 'alter role few connection limit 0');
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

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import pg from 'pg';
import { defaultRuntimeOptions, start } from '../../apps/server/src/process/start.ts';
import { eventually } from '../support/eventually.ts';
import { startPgBouncer } from '../support/store/pgbouncer.ts';
import { startDedicatedPostgres, startPostgres } from '../support/store/postgres.ts';
import { queryPostgres, usePostgres } from '../support/store/use-postgres.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { createSelfSigned } from '../support/upstreams/certificate.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Shared by all processes that serve from one database. */
const masterKey = randomBytes(32).toString('base64');

/** Returns the error with which a service with these settings fails to start. */
async function getStartError(env: Record<string, string>): Promise<string> {
  const settings = { PORT: '0', DEMO: '0', LOG_LEVEL: 'silent', DATA_DIR: tmpdir(), MASTER_KEY: masterKey, ...env };
  const running = await start(settings, defaultRuntimeOptions).catch((error: Error) => error);
  if (running instanceof Error) return running.message;
  await running.stop();
  return assert.fail('the service has started');
}

describe('PostgreSQL behind PgBouncer in transaction mode', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const upstream = fixtures.start(startRecordingUpstream);
  const bouncer = fixtures.start(() => startPgBouncer(database.url, 3));
  const startReplica = () => {
    const env = { ...database.env, DATABASE_URL: bouncer.url };
    return startToolhost({ egressPorts: [upstream.port], env, runtimeOptions: { postgresLimits: undefined } });
  };
  const [one, two] = [fixtures.start(startReplica), fixtures.start(startReplica)];

  it('[find C3] starts, migrates, and serves two replicas with more connections than the server allows', async () => {
    const key = await one.createKey();
    const slugs = Array.from({ length: 40 }, (_, n) => `pooled-${n}`);
    const config = (slug: string) =>
      buildServerAt(slug, upstream.url, { authentication: { type: 'Bearer', token: '{{TOKEN}}' } });
    await Promise.all(slugs.map((slug, n) => (n % 2 === 0 ? one : two).createServer(config(slug))));
    const secrets = await Promise.all(
      slugs.map((slug, n) =>
        (n % 2 === 0 ? two : one).rest('PUT', `/servers/${slug}/secrets/TOKEN`, { body: { value: `secret-${n}` } }),
      ),
    );
    assert.deepEqual(new Set(secrets.map(({ status }) => status)), new Set([200]));
    await eventually(async () => {
      const replies = await Promise.all(
        slugs.flatMap((slug) => [one.callTool(slug, key, 'get'), two.callTool(slug, key, 'get')]),
      );
      assert.ok(replies.every(({ isError }) => !isError));
    });
    await eventually(async () => {
      const { body } = await two.rest('GET', '/calls?limit=200');
      assert.ok((body.calls as Json[]).length >= 2 * slugs.length);
    });
  });
});

describe('a PostgreSQL failure', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const toolhost = fixtures.start(() => startToolhost({ env: database.env }));
  before(() => toolhost.createServer(buildServerAt('kept', 'https://api.example')));

  const change = (name: string) => toolhost.rest('PATCH', '/servers/kept', { body: { name } });
  const terminateConnections = (condition: string) =>
    queryPostgres(
      database.url,
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and ${condition}`,
    );

  it('[find C4] returns 503 when the connection of a change is terminated, and accepts the change when it is sent again', async () => {
    const blocker = new pg.Client({ connectionString: database.url, application_name: 'blocker' });
    await blocker.connect();
    await blocker.query('begin; lock table servers in access exclusive mode');
    const changed = change('Ended');
    const waiting = "wait_event_type = 'Lock' and application_name <> 'blocker'";
    await eventually(async () => assert.ok((await terminateConnections(waiting)).length > 0));
    await blocker.end();
    const { status, text, headers } = await changed;
    assert.equal(status, 503, text);
    assert.match(text, /the database does not respond; try again in a moment/);
    assert.ok(headers.get('retry-after'));
    await eventually(async () => assert.equal((await change('Sent again')).status, 200));
    assert.match((await toolhost.rest('GET', '/servers/kept')).text, /"name":"Sent again"/);
  });

  it('[find C4] returns 503 with Retry-After while PostgreSQL accepts no connections, and recovers afterwards', async () => {
    const name = new URL(database.url).pathname.slice(1);
    const admin = new pg.Client({ connectionString: new URL('/postgres', database.url).href });
    await admin.connect();
    try {
      // SQLSTATE 55000, which also occurs while a database is moved or upgraded.
      await admin.query(`alter database "${name}" allow_connections false`);
      await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
      for (const reply of [await change('Refused'), await toolhost.rest('GET', '/servers/kept')]) {
        assert.equal(reply.status, 503, reply.text);
        assert.match(reply.text, /the database does not respond; try again in a moment/);
        assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      }
    } finally {
      await admin.query(`alter database "${name}" allow_connections true`);
      await admin.end();
    }
    await eventually(async () => assert.equal((await change('Served again')).status, 200));
  });
});

describe('an invalid DATABASE_URL', () => {
  const { database } = usePostgres();

  it('[find C3] refuses to start with an invalid DATABASE_URL, with an error message that does not contain the password', async () => {
    const { host, pathname } = new URL(database.url);
    const cases: [url: string, said: RegExp][] = [
      [`postgres://u:hidden@one:5432,two:5432${pathname}`, /names several hosts; allowed: one/],
      [`postgres://u:hidden@one,two${pathname}`, /names several hosts/],
      [`postgres:///db?host=one,two&password=hidden`, /names several hosts/],
      [`postgres://u:hid/den@${host}${pathname}`, /is not a URL; write spaces and characters such as/],
      [`postgres://u:hid#den@${host}${pathname}`, /is not a URL/],
      [`postgres://u:hid%den@${host}${pathname}`, /is not a URL/],
      [`postgres://u:hidden@${host.replace(/:.*/, ':99999')}${pathname}`, /is not a URL/],
      ['postgres://', /is not a URL|does not respond|rejected the user/],
      [`mysql://u:hidden@${host}/x`, /allowed: postgres:/],
      [`postgres://u:hidden@${host}${pathname}?sslmode=allow`, /found sslmode=allow; allowed: disable/],
      [`postgres://u:hidden@${host}${pathname}?connect_timeout=0`, /found connect_timeout=0; allowed: 1 to 300, the/],
      [`postgres://u:hidden@${host}${pathname}?a=b&connect_timeout=1s`, /found connect_timeout=1s; allowed: 1 to 300/],
      [`postgres://u:hidden@${host}/x?statement_timeout=5s`, /found statement_timeout=5s; allowed: 1000 to 60000, the/],
      [`postgres://u:hidden@${host}/x?statement_timeout=0`, /found statement_timeout=0; allowed: 1000 to 60000, the/],
      [`postgres://u:hidden@${host}/x?lock_timeout=60001`, /found lock_timeout=60001; allowed: 1000 to 60000, the/],
      [
        `postgres://u:hidden@${host}/x?lock_timeout=9000&idle_in_transaction_session_timeout=`,
        /found idle_in_transaction_session_timeout=; allowed: 1000 to 60000, the/,
      ],
      [`postgres://u:hidden@${host}/x?query_timeout=5000`, /found query_timeout; use statement_timeout/],
      [`postgres://postgres:hidden@${host}${pathname}`, /rejected the user or password in DATABASE_URL/],
      [`${database.url}-missing`, /database does not exist; create it/],
      [`postgres://u:hidden@127.0.0.1:1${pathname}`, /the database does not respond: /],
      [`postgres://u:hidden@nowhere.invalid${pathname}`, /the database does not respond: /],
    ];
    for (const [text, errorPattern] of cases) {
      const message = await getStartError({ DATABASE_URL: text });
      assert.match(message, errorPattern, text);
      assert.doesNotMatch(message, /hidden|hid\Wden/, text);
    }
  });
});

describe('PostgreSQL with TLS', () => {
  const certificate = createSelfSigned('localhost');
  const fixtures = useFixtures();
  const folder = fixtures.folder();
  const { database } = usePostgres(fixtures, () => startDedicatedPostgres(certificate));
  const files = { own: join(folder, 'own.pem'), other: join(folder, 'other.pem'), text: join(folder, 'text.pem') };
  let url: string;
  before(() => {
    writeFileSync(files.own, certificate.cert);
    writeFileSync(files.other, createSelfSigned('localhost').cert);
    writeFileSync(files.text, 'x');
    url = database.url.replace('127.0.0.1', 'localhost');
  });

  const usesTls = async (env: Record<string, string>) => {
    const toolhost = await startToolhost({ env: { MASTER_KEY: masterKey, ...env } });
    await toolhost.rest('GET', '/servers');
    const [row] = await queryPostgres(
      url,
      "select bool_and(ssl) as ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'toolhost'",
    ).finally(toolhost.stop);
    return row?.ssl;
  };

  it('[find C3] encrypts and verifies when DATABASE_CA_FILE is set, with any sslmode', async () => {
    for (const mode of [
      '',
      '?sslmode=require',
      '?sslmode=verify-full&connect_timeout=5',
      '?connect_timeout=5&sslmode=prefer',
    ])
      assert.equal(await usesTls({ DATABASE_URL: url + mode, DATABASE_CA_FILE: files.own }), true, mode);
  });

  it('[find C3] encrypts without verification with sslmode=no-verify, and does not encrypt without sslmode or a CA file', async () => {
    assert.equal(await usesTls({ DATABASE_URL: `${url}?sslmode=no-verify` }), true);
    assert.equal(await usesTls({ DATABASE_URL: url }), false);
    assert.equal(await usesTls({ DATABASE_URL: `${url}?sslmode=disable` }), false);
  });

  it('[find C3] refuses the start with an error message when the certificate is not trusted', async () => {
    const mismatchedUrl = url.replace('localhost', '127.0.0.1');
    const cases: [env: Record<string, string>, said: RegExp][] = [
      [{ DATABASE_URL: `${url}?sslmode=require` }, /is not trusted: .*set DATABASE_CA_FILE/],
      [{ DATABASE_URL: url, DATABASE_CA_FILE: files.other }, /is not trusted/],
      [{ DATABASE_URL: mismatchedUrl, DATABASE_CA_FILE: files.own }, /is not trusted: .*does not match/],
      [{ DATABASE_URL: url, DATABASE_CA_FILE: files.text }, /DATABASE_CA_FILE: contains no certificate; allowed:/],
      [{ DATABASE_URL: url, DATABASE_CA_FILE: join(folder, 'none') }, /DATABASE_CA_FILE: cannot be read; allowed:/],
      [
        { DATABASE_URL: `${url}?sslmode=disable`, DATABASE_CA_FILE: files.own },
        /DATABASE_CA_FILE: DATABASE_URL sets sslmode=disable/,
      ],
    ];
    for (const [env, errorPattern] of cases) assert.match(await getStartError(env), errorPattern);
  });

  it('[find C3] refuses the start with an error message when the server does not support TLS', async () => {
    const plainPostgres = await startPostgres();
    try {
      const DATABASE_URL = await plainPostgres.createDatabase();
      assert.match(
        await getStartError({ DATABASE_URL, DATABASE_CA_FILE: files.own }),
        /the database does not support TLS/,
      );
    } finally {
      await plainPostgres.stop();
    }
  });
});

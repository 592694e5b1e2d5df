import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import pg from 'pg';
import type { Surroundings } from '../../src/app/surroundings.ts';
import { openDatabase } from '../../src/store/database.ts';
import { postgresConfig, postgresUrlProblems } from '../../src/store/engine/postgres-url.ts';
import { serverAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { untilServed } from '../support/fresh-request.ts';
import { type PgBouncer, startPgBouncer } from '../support/store/pgbouncer.ts';
import { startOwnPostgres, startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { usualOptions } from '../support/store/usual-options.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost as command } from '../support/toolhost/toolhost-command.ts';
import { selfSigned } from '../support/upstreams/certificate.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** The same for all that serve from one database. */
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

/** The message of the command line when it cannot open this database. */
async function refusal(env: Record<string, string>): Promise<string> {
  const { code, stderr } = await command(['keys', 'list'], { env });
  assert.equal(code, 1, stderr);
  assert.doesNotMatch(stderr, /\n\s+at |unexpected/, 'no stack trace');
  return stderr;
}

/** Work with a service that ends with it. */
async function withToolhost(
  env: Record<string, string>,
  work: (toolhost: TestToolhost) => Promise<void>,
  surroundings: Partial<Surroundings> = {},
): Promise<void> {
  const toolhost = await startToolhost({ env: { MASTER_KEY: masterKey, ...env }, surroundings });
  try {
    await work(toolhost);
  } finally {
    await toolhost.stop();
  }
}

/** Something that asks the database, many times at once. */
const askOften = (toolhost: TestToolhost, times: number) =>
  Promise.all(Array.from({ length: times }, () => toolhost.rest('GET', '/servers/not-there')));

describe('PostgreSQL behind PgBouncer in transaction mode', () => {
  let postgres: TestPostgres;
  let bouncer: PgBouncer;
  let upstream: RecordingUpstream;
  let directUrl: string;
  let replicas: [TestToolhost, TestToolhost];
  before(async () => {
    [postgres, upstream] = await Promise.all([startPostgres(), startRecordingUpstream()]);
    directUrl = await postgres.createDatabase();
    bouncer = await startPgBouncer(directUrl, 3);
    const env = { DATABASE_URL: bouncer.url, MASTER_KEY: masterKey };
    // What these do by themselves must not wait for the locks of the tests below either.
    const surroundings = { postgresLimits: undefined };
    const start = () => startToolhost({ egress: [upstream.port], env, surroundings });
    replicas = await Promise.all([start(), start()]);
  });
  after(async () => {
    await Promise.all((replicas ?? []).map((replica) => replica.stop()));
    await Promise.all([bouncer?.stop(), upstream.close()]);
    await postgres.stop();
  });

  it('[find C3] two replicas with more connections than the server start, migrate and serve', async () => {
    const [one, two] = replicas;
    const key = await one.key();
    const slugs = Array.from({ length: 40 }, (_, n) => `pooled-${n}`);
    const config = (slug: string) =>
      serverAt(slug, upstream.url, { authentication: { type: 'Bearer', token: '{{TOKEN}}' } });
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

  for (const [name, urlOf] of [
    ['directly', () => directUrl],
    ['through PgBouncer', () => bouncer.url],
  ] as const) {
    it(`[find C3] a statement that waits too long is ended at the server, ${name}`, async () => {
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
          const written = await toolhost.rest('POST', '/servers', { body: serverAt('blocked', 'https://api.example') });
          assert.equal(written.status, 503, written.text);
          assert.match(written.text, /the database is busy/);
        } finally {
          await blocker.query('rollback');
          await blocker.end();
        }
        // The list above can use up the time that its workspace has for lists; then the next one is refused at first.
        const reply = await untilServed(() => toolhost.rest('GET', '/servers'));
        assert.equal(reply.status, 200, reply.text);
      };
      await withToolhost({ DATABASE_URL: urlOf() }, work, { postgresLimits: undefined });
    });

    it(`[find C3] statements take and wait as long as DATABASE_URL says, ${name}`, async () => {
      const work = async (toolhost: TestToolhost) => {
        const blocker = new pg.Client({ connectionString: directUrl });
        await blocker.connect();
        await blocker.query('begin; lock table servers in access exclusive mode');
        const reply = toolhost.rest('GET', '/servers');
        const written = toolhost.rest('POST', '/servers', {
          body: serverAt(`slow-${name.split(' ')[0]}`, 'https://api.example'),
        });
        // Longer than the usual limits, of which the longest is 5 s.
        await eventually(async () => {
          const waiting = await query(
            directUrl,
            "select 1 from pg_stat_activity where wait_event_type = 'Lock' and now() - query_start > '7 s'",
          );
          assert.ok(waiting.length >= 2);
        }, 30_000);
        await blocker.end();
        assert.equal((await reply).status, 200);
        assert.equal((await written).status, 201);
      };
      const url = `${urlOf()}?statement_timeout=60000&lock_timeout=60000`;
      await withToolhost({ DATABASE_URL: url }, work, { postgresLimits: undefined });
    });
  }

  it('[find C3] the time limits of DATABASE_URL hold in the transactions of every pool, and all others stay', async () => {
    const limits = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'] as const;
    const usual = { statement_timeout: '5s', lock_timeout: '2s', idle_in_transaction_session_timeout: '5s' };
    const values = sql<{ name: string; value: string }>`
      select name, current_setting(name) as value from unnest(${limits}::text[]) as name`;
    for (const set of [[], ...limits.map((name) => [name]), limits]) {
      const url = `${bouncer.url}?${set.map((name) => `${name}=7000`).join('&')}`;
      const database = await openDatabase({
        ...usualOptions,
        postgres: { url, connections: 1, authorities: undefined },
      });
      const valuesIn = async (pool: 'db' | 'reports' | 'changes') => {
        const { rows } = await database[pool].transaction().execute((transaction) => values.execute(transaction));
        return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
      };
      try {
        const changed = Object.fromEntries(set.map((name) => [name, '7s']));
        for (const pool of ['db', 'changes'] as const)
          assert.deepEqual(await valuesIn(pool), { ...usual, ...changed }, `${pool} ${set}`);
        const reports = { ...usual, statement_timeout: '3s', ...changed };
        assert.deepEqual(await valuesIn('reports'), reports, `reports ${set}`);
      } finally {
        await database.close();
      }
    }
  });
});

describe('the connections of a process', () => {
  let postgres: TestPostgres;
  before(async () => {
    postgres = await startPostgres();
  });
  after(() => postgres.stop());

  it('[find C3] are at most as many as DATABASE_POOL says', async () => {
    const url = await postgres.createDatabase();
    const open = async () => {
      const counted = "select count(*)::int as n from pg_stat_activity where application_name = 'toolhost'";
      return Number((await query(url, counted))[0]?.n);
    };
    await withToolhost({ DATABASE_URL: url, DATABASE_POOL: '3' }, async (toolhost) => {
      await askOften(toolhost, 40);
      const most = await open();
      assert.ok(most >= 1 && most <= 3 + 3, String(most));
    });
    await eventually(async () => assert.equal(await open(), 0, 'all are closed when it has stopped'));
  });

  it('[find C3] that the server refuses are reported in a sentence, at the start and later', async () => {
    const admin = await postgres.createDatabase();
    await query(admin, "create role few login password 'few' connection limit 2");
    await query(admin, `alter database ${new URL(admin).pathname.slice(1)} owner to few`);
    const url = new URL(admin);
    [url.username, url.password] = ['few', 'few'];
    const env = { DATABASE_URL: url.href, DATABASE_POOL: '5', MASTER_KEY: masterKey };
    // The start itself needs few connections, and on a busy machine may need one more than the server allows.
    const toolhost = await eventually(() => startToolhost({ env }));
    try {
      const refused = (await askOften(toolhost, 30)).filter(({ status }) => status !== 404);
      assert.ok(refused.length > 0, 'the limit was not met');
      for (const { status, text, headers } of refused) {
        assert.equal(status, 503);
        assert.match(text, /the database takes no more connections just now/);
        assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
      }
    } finally {
      await toolhost.stop();
    }
    await query(admin, 'alter role few connection limit 0');
    assert.match(
      await refusal({ DATABASE_URL: url.href }),
      /PostgreSQL takes no more connections; each process of toolhost uses up to DATABASE_POOL of them/,
    );
  });

  it('are waited for as long as connect_timeout says', async () => {
    const silent = createServer();
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const askedAt = performance.now();
    const said = await refusal({ DATABASE_URL: `postgres://u@127.0.0.1:${port}/db?connect_timeout=5` });
    assert.match(said, /the database does not answer/);
    assert.ok(performance.now() - askedAt >= 5000);
    silent.close();
  });

  it('[find C3] that are impossible are refused at the start in a sentence without the password', async () => {
    const url = await postgres.createDatabase();
    const { host, pathname } = new URL(url);
    const cases: [url: string, said: RegExp][] = [
      [`postgres://u:hidden@one:5432,two:5432${pathname}`, /names several hosts; allowed: one/],
      [`postgres://u:hidden@one,two${pathname}`, /names several hosts/],
      [`postgres:///db?host=one,two&password=hidden`, /names several hosts/],
      [`postgres://u:hid/den@${host}${pathname}`, /is not a URL; write spaces and characters such as/],
      [`postgres://u:hid#den@${host}${pathname}`, /is not a URL/],
      [`postgres://u:hid%den@${host}${pathname}`, /is not a URL/],
      [`postgres://u:hidden@${host.replace(/:.*/, ':99999')}${pathname}`, /is not a URL/],
      ['postgres://', /is not a URL|does not answer|refuses the user/],
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
      [`postgres://postgres:hidden@${host}${pathname}`, /refuses the user or password of DATABASE_URL/],
      [`${url}-missing`, /has no such database; create it/],
      [`postgres://u:hidden@127.0.0.1:1${pathname}`, /the database does not answer: /],
      [`postgres://u:hidden@nowhere.invalid${pathname}`, /the database does not answer: /],
    ];
    for (const [text, said] of cases) {
      const stderr = await refusal({ DATABASE_URL: text });
      assert.match(stderr, said, text);
      assert.doesNotMatch(stderr, /hidden|hid\Wden/, text);
    }
  });
});

describe('any DATABASE_URL', () => {
  it('[find C3] is either refused in a sentence or understood by the driver', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '/',
        '@',
        ':',
        '?',
        '#',
        '&',
        '=',
        '%',
        '%20',
        '%ff',
        ',',
        '[',
        ']',
        ' ',
        '\\',
        'a',
        'host=',
        '5432',
      ),
      fc.string({ maxLength: 4 }),
    );
    const texts = fc.array(piece, { maxLength: 12 }).map((pieces) => `postgres://${pieces.join('')}`);
    fc.assert(
      fc.property(texts, (text) => {
        const problems = postgresUrlProblems(text, false);
        if (problems.length === 0) new pg.Client(postgresConfig(text, undefined));
        else assert.match(problems.join(), /^DATABASE_(URL|CA_FILE): \S/);
      }),
      { numRuns: 5000 },
    );
  });
});

describe('PostgreSQL with TLS', () => {
  const certificate = selfSigned('localhost');
  let postgres: TestPostgres;
  let folder: string;
  let url: string;
  const files = { own: '', other: '', text: '' };
  before(async () => {
    postgres = await startOwnPostgres(certificate);
    folder = mkdtempSync(join(tmpdir(), 'toolhost-tls-'));
    for (const [name, pem] of Object.entries({
      own: certificate.cert,
      other: selfSigned('localhost').cert,
      text: 'x',
    })) {
      files[name as keyof typeof files] = join(folder, `${name}.pem`);
      writeFileSync(join(folder, `${name}.pem`), pem);
    }
    url = (await postgres.createDatabase()).replace('127.0.0.1', 'localhost');
  });
  after(async () => {
    await postgres.stop();
    rmSync(folder, { recursive: true });
  });

  const isEncrypted = async (env: Record<string, string>) => {
    let rows: Json[] = [];
    await withToolhost(env, async (toolhost) => {
      await toolhost.rest('GET', '/servers');
      rows = await query(
        url,
        "select bool_and(ssl) as ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'toolhost'",
      );
    });
    return rows[0]?.ssl;
  };

  it('[find C3] is used and checked when DATABASE_CA_FILE is set, with any sslmode', async () => {
    for (const mode of [
      '',
      '?sslmode=require',
      '?sslmode=verify-full&connect_timeout=5',
      '?connect_timeout=5&sslmode=prefer',
    ])
      assert.equal(await isEncrypted({ DATABASE_URL: url + mode, DATABASE_CA_FILE: files.own }), true, mode);
  });

  it('[find C3] is used unchecked with sslmode=no-verify, and not at all without sslmode or a file', async () => {
    assert.equal(await isEncrypted({ DATABASE_URL: `${url}?sslmode=no-verify` }), true);
    assert.equal(await isEncrypted({ DATABASE_URL: url }), false);
    assert.equal(await isEncrypted({ DATABASE_URL: `${url}?sslmode=disable` }), false);
  });

  it('[find C3] that cannot be trusted refuses the start with a sentence', async () => {
    const other = url.replace('localhost', '127.0.0.1');
    const cases: [env: Record<string, string>, said: RegExp][] = [
      [{ DATABASE_URL: `${url}?sslmode=require` }, /is not trusted: .*set DATABASE_CA_FILE/],
      [{ DATABASE_URL: url, DATABASE_CA_FILE: files.other }, /is not trusted/],
      [{ DATABASE_URL: other, DATABASE_CA_FILE: files.own }, /is not trusted: .*does not match/],
      [{ DATABASE_URL: url, DATABASE_CA_FILE: files.text }, /DATABASE_CA_FILE: holds no certificate; allowed:/],
      [{ DATABASE_URL: url, DATABASE_CA_FILE: join(folder, 'none') }, /DATABASE_CA_FILE: cannot be read; allowed:/],
      [
        { DATABASE_URL: `${url}?sslmode=disable`, DATABASE_CA_FILE: files.own },
        /DATABASE_CA_FILE: DATABASE_URL says sslmode=disable/,
      ],
    ];
    for (const [env, said] of cases) assert.match(await refusal(env), said);
  });

  it('[find C3] that the server does not support refuses the start with a sentence', async () => {
    const plain = await startPostgres();
    try {
      const DATABASE_URL = await plain.createDatabase();
      assert.match(await refusal({ DATABASE_URL, DATABASE_CA_FILE: files.own }), /the database does not speak TLS/);
    } finally {
      await plain.stop();
    }
  });
});

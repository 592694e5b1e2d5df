import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { serverAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { movableClock } from '../support/toolhost/movable-clock.ts';
import { scrape } from '../support/toolhost/scrape.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost, toolhostJson } from '../support/toolhost/toolhost-command.ts';
import { wrongClock } from '../support/toolhost/wrong-clock.ts';

const hour = 3_600_000;
/** Two seconds are promised, and a busy database takes longer; what nobody noticed would be trusted for a minute. */
const noticedMs = 10_000;

type Key = { id: string; name: string; key: string; expires_at?: string };

describe('[find B1] a process whose clock is wrong', () => {
  let postgres: TestPostgres;
  let env: Record<string, string>;
  let right: TestToolhost;
  before(async () => {
    postgres = await startPostgres();
    env = { DATABASE_URL: await postgres.createDatabase(), MASTER_KEY: randomBytes(32).toString('base64') };
    right = await startToolhost({ env });
  });
  after(async () => {
    await right?.stop();
    await postgres.stop();
  });

  const readiness = async (url: string) => {
    const response = await fetch(`${url}/readyz`);
    const { reason } = (await response.json()) as { reason?: string };
    return { status: response.status, reason };
  };

  it('is not ready above 5 seconds, says why, and is ready again when its clock is right', async () => {
    let ahead = 0;
    const wrong = await startToolhost({ env, surroundings: { now: () => Date.now() + ahead } });
    const ready = async () => (await scrape(wrong.url)).value('toolhost_ready');
    const skew = async () => (await scrape(wrong.url)).value('toolhost_clock_skew_seconds');
    try {
      for (const [ms, side] of [
        [hour, 'ahead of'],
        [-hour, 'behind'],
        [6000, 'ahead of'],
        [-6000, 'behind'],
      ] as const) {
        ahead = 0;
        assert.equal((await readiness(wrong.url)).status, 200);
        assert.equal(await ready(), 1);
        assert.ok((await skew()) < 1);
        ahead = ms;
        const { status, reason } = await readiness(wrong.url);
        assert.equal(status, 503);
        const said = new RegExp(` (\\d+\\.\\d) s ${side}`).exec(reason ?? '');
        assert.ok(Math.abs(Number(said?.[1]) - Math.abs(ms) / 1000) <= 1, reason ?? 'it is ready');
        assert.match(reason ?? '', /allowed: 5 s; synchronise/);
        assert.equal(await ready(), 0);
        assert.ok(Math.abs((await skew()) - Math.abs(ms) / 1000) < 1);
      }
      ahead = 4000;
      assert.equal((await readiness(wrong.url)).status, 200);
      assert.equal((await readiness(right.url)).status, 200);
      assert.equal((await fetch(`${wrong.url}/livez`)).status, 200);
    } finally {
      await wrong.stop();
    }
  });

  it('logs it once; a server started so uses the database’s time, and is not ready', async () => {
    const child = await startChildToolhost({ ...env, ...wrongClock(hour), DATA_DIR: right.dataDir });
    try {
      const { status, reason } = await readiness(child.url);
      assert.deepEqual([status, reason?.includes('ahead of that of the database')], [503, true]);
      const { key } = (await right.rest('POST', '/keys', { body: { name: 'n', scopes: ['manage'], expires_in: 600 } }))
        .body as Key;
      const servers = () => fetch(`${child.url}/api/v1/servers`, { headers: { authorization: `Bearer ${key}` } });
      assert.equal((await servers()).status, 200, 'by its own clock the key ended long ago');
      // Some more looks, each of which renews the trust in cached values.
      const age = async () => (await scrape(child.url)).value('toolhost_changes_age_seconds');
      for (let looks = 0; looks < 3; looks += 1) {
        const old = await eventually(async () => {
          const found = await age();
          assert.ok(found > 0.5);
          return found;
        });
        await eventually(async () => assert.ok((await age()) < old));
      }
      assert.equal(child.output().match(/not ready: the clock of this machine/g)?.length, 1);
    } finally {
      await child.end('SIGKILL');
    }
  });

  it('makes, lists and revokes keys from the command line as any other', async () => {
    await right.createServer(
      serverAt('things', 'https://api.example.com/', { authentication: { type: 'ApiKey', token: 't' } }),
    );
    for (const ahead of [-60_000, -hour, hour]) {
      const wrong = { env: { ...env, ...wrongClock(ahead) } };
      const name = `made ${ahead}`;
      const args = ['keys', 'create', '--name', name, '--scopes', 'call', '--expires', '1h'];
      const { id, key } = await toolhostJson<Key>(args, wrong);
      assert.equal((await right.rpc('things', key, 'ping')).status, 200);
      const { keys } = (await right.rest('GET', '/keys')).body as { keys: Key[] };
      const expiresAt = Date.parse(keys.find((one) => one.id === id)?.expires_at ?? '');
      assert.ok(Math.abs(expiresAt - Date.now() - hour) < 60_000);
      const { stdout } = await toolhost(['keys', 'list'], wrong);
      assert.match(stdout, new RegExp(`${id} .* good until`));
      const revoked = await toolhost(['keys', 'revoke', id], wrong);
      assert.match(revoked.stdout, /is revoked; it stops working everywhere within two seconds/);
      await eventually(async () => assert.equal((await right.rpc('things', key, 'ping')).status, 401), noticedMs);
    }
  });

  it('refuses a span beside a time, and takes either', async () => {
    const make = (more: object) => right.rest('POST', '/keys', { body: { name: 'n', scopes: ['call'], ...more } });
    const at = new Date(Date.now() + hour).toISOString();
    assert.equal((await make({ expires_at: at })).body.expires_at, at);
    assert.ok(
      Math.abs(Date.parse(String((await make({ expires_in: 3600 })).body.expires_at)) - Date.parse(at)) < 60_000,
    );
    for (const wrong of [
      { expires_at: at, expires_in: 3600 },
      { expires_in: 0 },
      { expires_in: 1.5 },
      { expires_in: 1e12 },
    ])
      assert.equal((await make(wrong)).status, 400, JSON.stringify(wrong));
  });
});

describe('[find B1] a database whose clock moves', () => {
  it('moves the time of its processes, at their next look', async () => {
    const postgres = await startPostgres();
    const url = await postgres.createDatabase();
    const clock = await movableClock(url);
    const one = await startToolhost({ env: { DATABASE_URL: url } });
    const { key } = (await one.rest('POST', '/keys', { body: { name: 'n', scopes: ['manage'], expires_in: 3600 } }))
      .body as Key;
    const status = async () => {
      await one.running.app.runner.onCommitted();
      return (await one.rest('GET', '/servers', { key })).status;
    };
    assert.equal(await status(), 200);
    await clock.move(hour + 1000);
    assert.equal(await status(), 401);
    await clock.move(-hour);
    assert.equal(await status(), 200);
    await one.stop();
    await postgres.stop();
  });
});

describe('[find B1] SQLite on a machine whose clock is set', () => {
  it('revives nothing that has expired, loses no change and stays ready', async () => {
    let ahead = 0;
    const one = await startToolhost({ surroundings: { now: () => Date.now() + ahead } });
    const make = async (expires_in: number) =>
      (await one.rest('POST', '/keys', { body: { name: 'n', scopes: ['manage'], expires_in } })).body as Key;
    const status = async ({ key }: Key) => (await one.rest('GET', '/servers', { key })).status;
    const short = await make(1800);
    const long = await make(7200);
    assert.deepEqual([await status(short), await status(long)], [200, 200]);
    ahead = hour;
    assert.deepEqual([await status(short), await status(long)], [401, 200]);
    ahead = 0;
    assert.deepEqual([await status(short), await status(long)], [401, 200], 'expired once is expired');
    const soon = await make(1);
    await eventually(async () => assert.equal(await status(soon), 401), 10_000);
    for (const step of [hour, -hour, 0]) {
      ahead = step;
      const made = await make(7200);
      assert.equal(await status(made), 200);
      const { stdout } = await toolhost(['keys', 'revoke', made.id], {
        env: { DATA_DIR: one.dataDir, ...wrongClock(-step) },
      });
      assert.match(stdout, /is revoked/);
      await eventually(async () => assert.equal(await status(made), 401), noticedMs);
      assert.equal((await fetch(`${one.url}/readyz`)).status, 200);
    }
    await one.stop();
  });
});

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { version } from '../../src/version.ts';
import { eventually } from '../support/eventually.ts';
import { onTime } from '../support/on-time.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/store/postgres.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { type MovableClock, movableClock } from '../support/toolhost/movable-clock.ts';
import { scrape } from '../support/toolhost/scrape.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

/** Time after its last heartbeat until a process no longer counts. */
const absentMs = 10_000;

describe('[find C6] processes that serve from one database', () => {
  let postgres: OwnPostgres;
  let clock: MovableClock;
  let env: Record<string, string>;
  let first: TestToolhost;
  before(async () => {
    postgres = await startOwnPostgres();
    const url = await postgres.createDatabase();
    clock = await movableClock(url);
    env = { DATABASE_URL: url, MASTER_KEY: randomBytes(32).toString('base64') };
    first = await startToolhost({ env });
  });
  after(async () => {
    await first?.stop();
    await postgres.stop();
  });

  const seen = async (url = first.url) => (await scrape(url)).value('toolhost_serving_processes');
  const sees = (count: number, url = first.url) => eventually(async () => assert.equal(await seen(url), count), 10_000);
  const rows = () => first.running.app.runner.db.selectFrom('processes').selectAll().execute();

  it('know their number and names from the first moment', async () => {
    assert.equal(await seen(), 1);
    // Its clock is an hour ahead, which has no effect here.
    const second = await startToolhost({ env, surroundings: { now: () => Date.now() + 3_600_000 } });
    await sees(2, second.url);
    await sees(2);
    for (const row of await rows()) {
      assert.deepEqual([row.version, row.host, row.pid], [version, hostname(), process.pid]);
      // Each reading of the database clock corrects the previous one, so the later time may be the smaller one.
      for (const at of [row.started_at, row.seen_at]) assert.ok(Math.abs(at - Date.now()) < 60_000, String(at));
    }
    await second.stop();
    assert.equal((await rows()).length, 1, 'the process removed its membership');
    await sees(1);
  });

  it('detect that one was killed', async () => {
    const child = await startChildToolhost({ ...env, DATA_DIR: first.dataDir });
    await sees(2);
    await child.end('SIGKILL');
    assert.equal((await rows()).length, 2);
    await clock.move(absentMs + 1000);
    await sees(1);
  });

  it('count each of their workers', async () => {
    const child = await startChildToolhost({ ...env, DATA_DIR: first.dataDir, WORKERS: '2' });
    await sees(3);
    await sees(3, child.url);
    assert.equal(await child.end('SIGTERM'), 0);
    await sees(1);
  });

  it('keep the last known count while the database is down', async () => {
    const second = await startToolhost({ env });
    await sees(2);
    await postgres.crash();
    await eventually(async () => assert.equal((await scrape(first.url)).value('toolhost_database_up'), 0));
    assert.equal(await seen(), 2);
    await onTime(10_000, second.stop);
    await postgres.restart();
    await clock.move(absentMs + 1000);
    await sees(1);
  });
});

describe('[find C6] processes of a service on SQLite', () => {
  it('are its workers', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-processes-'));
    const one = await startToolhost({ dataDir });
    assert.equal((await scrape(one.url)).value('toolhost_serving_processes'), 1);
    await one.stop();
    const three = await startChildToolhost({ DATA_DIR: dataDir, WORKERS: '3' });
    assert.equal((await scrape(three.url)).value('toolhost_serving_processes'), 3);
    await three.end();
    rmSync(dataDir, { recursive: true });
  });
});

import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { describe, it } from 'node:test';
import { version } from '../../apps/server/src/version.ts';
import { eventually } from '../support/eventually.ts';
import { startDedicatedPostgres } from '../support/store/postgres.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { createMovableClock } from '../support/toolhost/movable-clock.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

/** Time after its last heartbeat until a process no longer counts. */
const membershipTimeoutMs = 10_000;

describe('[find C6] processes that serve from one database', () => {
  const fixtures = useFixtures();
  const { postgres, database } = usePostgres(fixtures, startDedicatedPostgres);
  const clock = fixtures.start(() => createMovableClock(database.url));
  const first = fixtures.start(() => startToolhost({ env: database.env }));

  const getProcessCount = async (url = first.url) => (await scrapeMetrics(url)).value('toolhost_serving_processes');
  const waitForProcessCount = (count: number, url = first.url) =>
    eventually(async () => assert.equal(await getProcessCount(url), count), 10_000);
  const getMembershipRows = () => first.running.app.runner.db.selectFrom('processes').selectAll().execute();

  it('know their number and names from the first moment', async () => {
    assert.equal(await getProcessCount(), 1);
    // Its clock is an hour ahead, which has no effect here.
    const second = await startToolhost({
      env: database.env,
      runtimeOptions: { now: () => Date.now() + 3_600_000 },
    });
    await waitForProcessCount(2, second.url);
    await waitForProcessCount(2);
    for (const row of await getMembershipRows()) {
      assert.deepEqual([row.version, row.host, row.pid], [version, hostname(), process.pid]);
      // Each reading of the database clock corrects the previous one, so the later time may be the smaller one.
      for (const at of [row.started_at, row.seen_at]) assert.ok(Math.abs(at - Date.now()) < 60_000, String(at));
    }
    await second.stop();
    assert.equal((await getMembershipRows()).length, 1, 'the process removed its membership');
    await waitForProcessCount(1);
  });

  it('detect that one was killed', async () => {
    const child = await startChildToolhost({ ...database.env, DATA_DIR: first.dataDir });
    await waitForProcessCount(2);
    await child.end('SIGKILL');
    assert.equal((await getMembershipRows()).length, 2);
    await clock.move(membershipTimeoutMs + 1000);
    await waitForProcessCount(1);
  });

  it('count each of their workers', async () => {
    const child = await startChildToolhost({ ...database.env, DATA_DIR: first.dataDir, WORKERS: '2' });
    await waitForProcessCount(3);
    await waitForProcessCount(3, child.url);
    assert.equal(await child.end('SIGTERM'), 0);
    await waitForProcessCount(1);
  });

  it('keep the last known count while the database is down', async () => {
    const second = await startToolhost({ env: database.env });
    await waitForProcessCount(2);
    await postgres.crash();
    await eventually(async () => assert.equal((await scrapeMetrics(first.url)).value('toolhost_database_up'), 0));
    assert.equal(await getProcessCount(), 2);
    await assertWithinDeadline(10_000, second.stop);
    await postgres.restart();
    await clock.move(membershipTimeoutMs + 1000);
    await waitForProcessCount(1);
  });
});

describe('[find C6] processes of a service on SQLite', () => {
  const dataDir = useFixtures().folder();

  it('are its workers', async () => {
    const single = await startToolhost({ dataDir });
    assert.equal((await scrapeMetrics(single.url)).value('toolhost_serving_processes'), 1);
    await single.stop();
    const withWorkers = await startChildToolhost({ DATA_DIR: dataDir, WORKERS: '3' });
    assert.equal((await scrapeMetrics(withWorkers.url)).value('toolhost_serving_processes'), 3);
    await withWorkers.end();
  });
});

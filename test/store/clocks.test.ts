import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { blockThread } from '../support/block-thread.ts';
import { eventually } from '../support/eventually.ts';
import { getResultText, startOneTool } from '../support/one-tool.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { createMovableClock } from '../support/toolhost/movable-clock.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const hour = 3_600_000;

async function createKey(toolhost: TestToolhost, expires_in: number): Promise<string> {
  const { body } = await toolhost.rest('POST', '/keys', { body: { name: 'n', scopes: ['manage'], expires_in } });
  return String(body.key);
}

const getStatus = async (toolhost: TestToolhost, key: string) =>
  (await toolhost.rest('GET', '/servers', { key })).status;

describe('[find B1] a process on PostgreSQL', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const databaseClock = fixtures.start(() => createMovableClock(database.url));
  /** Error of the process clock, in ms. */
  let clockOffsetMs = 0;
  const toolhost = fixtures.start(() =>
    startToolhost({ env: database.env, runtimeOptions: { now: () => Date.now() + clockOffsetMs } }),
  );
  afterEach(() => {
    clockOffsetMs = 0;
  });

  const getReadiness = async () => {
    const response = await fetch(`${toolhost.url}/readyz`);
    const { reason } = (await response.json()) as { reason?: string };
    return { status: response.status, reason };
  };

  it('stays ready while it is the only process, regardless of the two clocks', async () => {
    clockOffsetMs = hour;
    await toolhost.running.app.runner.onCommitted();
    assert.equal((await getReadiness()).status, 200);
    assert.ok((await scrapeMetrics(toolhost.url)).value('toolhost_clock_skew_seconds') > 3599);
  });

  it('is not ready when its clock is off by more than 5 s and another process agrees with the database, but stays ready when the database clock is wrong', async (t) => {
    const other = await startToolhost({ env: database.env });
    t.after(other.stop);
    const countProcesses = async () => (await scrapeMetrics(toolhost.url)).value('toolhost_serving_processes');
    await eventually(async () => assert.equal(await countProcesses(), 2));
    for (const [ms, side] of [
      [hour, 'ahead of'],
      [-6000, 'behind'],
    ] as const) {
      clockOffsetMs = 4000;
      assert.equal((await getReadiness()).status, 200);
      clockOffsetMs = ms;
      const { status, reason } = await getReadiness();
      assert.equal(status, 503);
      const offsetText = new RegExp(` (\\d+\\.\\d) s ${side}`).exec(reason ?? '');
      assert.ok(Math.abs(Number(offsetText?.[1]) - Math.abs(ms) / 1000) <= 1, reason ?? 'it is ready');
      assert.match(reason ?? '', /allowed: 5 s; synchronize/);
      const metrics = await scrapeMetrics(toolhost.url);
      assert.equal(metrics.value('toolhost_ready'), 0);
      assert.ok(Math.abs(metrics.value('toolhost_clock_skew_seconds') - Math.abs(ms) / 1000) < 1);
    }
    clockOffsetMs = 0;
    await databaseClock.move(6000);
    const getSkew = async (url: string) => (await scrapeMetrics(url)).value('toolhost_clock_skew_seconds');
    for (const one of [toolhost, other]) {
      await eventually(async () => assert.ok((await getSkew(one.url)) > 5));
      await eventually(async () => assert.equal((await fetch(`${one.url}/readyz`)).status, 200));
    }
    await databaseClock.move(-6000);
    await toolhost.running.app.runner.onCommitted();
  });

  it('lets keys expire by the database clock, regardless of its own clock', async () => {
    const key = await createKey(toolhost, 600);
    for (const offset of [hour, -hour]) {
      clockOffsetMs = offset;
      await toolhost.running.app.runner.onCommitted();
      assert.equal(await getStatus(toolhost, key), 200);
    }
    await databaseClock.move(601_000);
    await toolhost.running.app.runner.onCommitted();
    assert.equal(await getStatus(toolhost, key), 401);
  });
});

describe('[find B1] a process on SQLite whose system clock is changed', () => {
  it('keeps expired keys expired, loses no change, and stays ready', async (t) => {
    let clockOffsetMs = 0;
    const toolhost = await startToolhost({ runtimeOptions: { now: () => Date.now() + clockOffsetMs } });
    t.after(toolhost.stop);
    const [short, long] = [await createKey(toolhost, 1800), await createKey(toolhost, 7200)];
    const getStatuses = async () => [await getStatus(toolhost, short), await getStatus(toolhost, long)];
    assert.deepEqual(await getStatuses(), [200, 200]);
    clockOffsetMs = hour;
    assert.deepEqual(await getStatuses(), [401, 200]);
    clockOffsetMs = 0;
    assert.deepEqual(await getStatuses(), [401, 200], 'a key that has expired stays expired');
    const soon = await createKey(toolhost, 1);
    await eventually(async () => assert.equal(await getStatus(toolhost, soon), 401), 10_000);
    for (const offsetMs of [hour, -hour, 0]) {
      clockOffsetMs = offsetMs;
      const key = await createKey(toolhost, 7200);
      assert.equal(await getStatus(toolhost, key), 200);
      assert.equal((await toolhost.rest('DELETE', `/keys/key_${key.split('_')[1]}`)).status, 200);
      assert.equal(await getStatus(toolhost, key), 401);
      assert.equal((await fetch(`${toolhost.url}/readyz`)).status, 200);
    }
  });
});

describe('a process that is stopped for a while and resumes', () => {
  it('[find C5] reads the response that arrived in the meantime, and does not blame the upstream', async (t) => {
    const fixture = await startOneTool();
    t.after(fixture.stop);
    const timeoutMs = 2000;
    const slug = await fixture.createToolServer({ timeout_ms: timeoutMs });
    fixture.upstream.on('*', () => 'hold');
    const call = fixture.call(slug);
    const request = await fixture.upstream.waitForRequest();
    request.release({ body: { found: true } });
    blockThread(timeoutMs + 1000);
    assert.match(getResultText(await call), /found/);
  });
});

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { createNoonClock } from '../support/noon-clock.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { callGet, callGetTimes, countStatus } from '../support/tool-calls.ts';
import { createMovableClock } from '../support/toolhost/movable-clock.ts';
import { runOperatorOperation } from '../support/toolhost/run-operator-operation.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const stored = { authentication: { type: 'Bearer', token: 'stored' } };

describe('limits of several processes', async () => {
  const [postgres, upstream] = await Promise.all([startPostgres(), startRecordingUpstream()]);
  const url = await postgres.createDatabase();
  // The clock is stopped, so the day of the quota does not end, and no pause makes a process look dead.
  const noon = createNoonClock()();
  const now = () => noon;
  await (await createMovableClock(url)).stopAt(noon);
  const env = {
    DATABASE_URL: url,
    MASTER_KEY: randomBytes(32).toString('hex'),
    CALLS_PER_SECOND: '0',
    CONCURRENT_CALLS: '9',
    CONCURRENT_CALLS_PER_KEY: '0',
    REFUSALS_PER_MINUTE: '30',
  };
  const replicas = await Promise.all(
    [1, 2, 3].map(() => startToolhost({ egressPorts: [upstream.port], env, runtimeOptions: { now, clock: () => 0 } })),
  );
  const [first] = replicas as [TestToolhost];
  const key = await first.createKey();
  await first.createServer(buildServerAt('shared', upstream.url, stored));
  await first.createServer(buildServerAt('daily', upstream.url, stored));
  await first.rest('PATCH', '/servers/daily/limits', { body: { calls_per_day: 20 } });
  // Each process learns the number of processes within a second.
  await eventually(async () => {
    for (const { url } of replicas) assert.equal((await scrapeMetrics(url)).value('toolhost_serving_processes'), 3);
  });
  after(async () => {
    await Promise.all(replicas.map((replica) => replica.stop()));
    await upstream.close();
    await postgres.stop();
  });

  it('[find C6] run no more concurrent calls together than one process', async () => {
    upstream.on('*', () => 'hold');
    const flood = replicas.flatMap((replica) => Array.from({ length: 9 }, () => callGet(replica, 'shared', key)));
    await upstream.waitForRequest(9);
    // All other calls are queued until they are rejected.
    await eventually(async () => {
      for (const replica of replicas) {
        const { use } = (await replica.rest('GET', '/servers/shared/limits', { key })).body as { use: Json };
        assert.deepEqual(use, { running: 3, waiting: 6, refused: 0 });
      }
    });
    assert.equal(upstream.requests.length, 9);
    upstream.on('*', () => ({ body: {} }));
    for (const request of upstream.requests) request.release({ body: {} });
    await Promise.all(flood);
  });

  it('[find C6] apply a limit that was set in one of them, for a server and for its workspace', async () => {
    upstream.on('*', () => ({ body: {} }));
    const [first, second] = replicas as [TestToolhost, TestToolhost, TestToolhost];
    const isLimited = async () => countStatus(await callGetTimes(second, 'shared', key, 4), 429) > 0;
    assert.equal(await isLimited(), false);
    const setRate = (calls_per_second: number | null) =>
      first.rest('PATCH', '/servers/shared/limits', { body: { calls_per_second } });
    const setWorkspaceRate = (calls_per_second: number | null) =>
      runOperatorOperation(first, 'setWorkspaceLimits', 'local', { calls_per_second });
    for (const set of [setRate, setWorkspaceRate]) {
      for (const rate of [1, null]) {
        await set(rate);
        await eventually(async () => assert.equal(await isLimited(), rate !== null));
      }
    }
  });

  it('[find C6] share one limit of rejected requests per address', async () => {
    const replies = await Promise.all(
      replicas.flatMap((replica) => Array.from({ length: 20 }, () => callGet(replica, 'shared', 'made-up-key'))),
    );
    assert.deepEqual([countStatus(replies, 401), countStatus(replies, 429)], [30, 30]);
  });

  it('[find C6] together count a daily quota once, however calls are distributed', async () => {
    upstream.on('*', () => ({ body: {} }));
    const [first, second, third] = replicas as [TestToolhost, TestToolhost, TestToolhost];
    const replies = [
      ...(await callGetTimes(first, 'daily', key, 12)),
      ...(await Promise.all([...Array(10).keys()].map((n) => callGet(n % 2 ? second : third, 'daily', key)))),
    ];
    assert.deepEqual([countStatus(replies, 200), countStatus(replies, 429)], [20, 2]);
  });
});

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { createNoonClock } from '../support/noon-clock.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { createMovableClock } from '../support/toolhost/movable-clock.ts';
import { runOperatorOperation } from '../support/toolhost/run-operator-operation.ts';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const stored = { authentication: { type: 'Bearer', token: 'stored' } };
const countStatus = (replies: readonly Reply[], status: number) =>
  replies.filter((reply) => reply.status === status).length;
const callTool = (toolhost: TestToolhost, slug: string, key: string) =>
  toolhost.rpc(slug, key, 'tools/call', { name: 'get', arguments: {} });
const callTools = (toolhost: TestToolhost, slug: string, key: string, times: number) =>
  Promise.all(Array.from({ length: times }, () => callTool(toolhost, slug, key)));

describe('limits of several processes', () => {
  let postgres: TestPostgres;
  let upstream: RecordingUpstream;
  let replicas: TestToolhost[];
  let key: string;
  before(async () => {
    [postgres, upstream] = await Promise.all([startPostgres(), startRecordingUpstream()]);
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
    replicas = await Promise.all(
      [1, 2, 3].map(() =>
        startToolhost({ egressPorts: [upstream.port], env, runtimeOptions: { now, clock: () => 0 } }),
      ),
    );
    const [first] = replicas as [TestToolhost];
    key = await first.createKey();
    await first.createServer(buildServerAt('shared', upstream.url, stored));
    await first.createServer(buildServerAt('daily', upstream.url, stored));
    await first.rest('PATCH', '/servers/daily/limits', { body: { calls_per_day: 20 } });
    // Each process learns the number of processes within a second.
    await eventually(async () => {
      for (const replica of replicas)
        assert.equal(
          (await fetch(`${replica.url}/metrics`).then((r) => r.text())).match(
            /^toolhost_serving_processes (\d+)/m,
          )?.[1],
          '3',
        );
    });
  });
  after(async () => {
    await Promise.all(replicas.map((replica) => replica.stop()));
    await upstream.close();
    await postgres.stop();
  });

  it('[find C6] run no more concurrent calls together than one process', async () => {
    upstream.on('*', () => 'hold');
    const flood = replicas.flatMap((replica) => Array.from({ length: 9 }, () => callTool(replica, 'shared', key)));
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
    const isLimited = async () => countStatus(await callTools(second, 'shared', key, 4), 429) > 0;
    assert.equal(await isLimited(), false);
    const setRate = (calls_per_second: number | null) =>
      first.rest('PATCH', '/servers/shared/limits', { body: { calls_per_second } });
    await setRate(1);
    await eventually(async () => assert.equal(await isLimited(), true));
    await setRate(null);
    await eventually(async () => assert.equal(await isLimited(), false));
    await runOperatorOperation(first, 'setWorkspaceLimits', 'local', { calls_per_second: 1 });
    await eventually(async () => assert.equal(await isLimited(), true));
    await runOperatorOperation(first, 'setWorkspaceLimits', 'local', { calls_per_second: null });
    await eventually(async () => assert.equal(await isLimited(), false));
  });

  it('[find C6] share one limit of rejected requests per address', async () => {
    const replies = await Promise.all(
      replicas.flatMap((replica) => Array.from({ length: 20 }, () => callTool(replica, 'shared', 'made-up-key'))),
    );
    assert.deepEqual([countStatus(replies, 401), countStatus(replies, 429)], [30, 30]);
  });

  it('[find C6] together count a daily quota once, however calls are distributed', async () => {
    upstream.on('*', () => ({ body: {} }));
    const [first, second, third] = replicas as [TestToolhost, TestToolhost, TestToolhost];
    const replies = [
      ...(await callTools(first, 'daily', key, 12)),
      ...(await Promise.all([...Array(10).keys()].map((n) => callTool(n % 2 ? second : third, 'daily', key)))),
    ];
    assert.deepEqual([countStatus(replies, 200), countStatus(replies, 429)], [20, 2]);
  });
});

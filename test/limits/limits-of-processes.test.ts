import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { createCallQuotas } from '../../src/gateway/limits/call-quotas.ts';
import type { Limited } from '../../src/gateway/limits/lane-book.ts';
import { createLimits, type Limits } from '../../src/gateway/limits/limits.ts';
import { createQuotaReserves } from '../../src/gateway/limits/quota-reserves.ts';
import { type QuotaWish, settleQuotas, takeOfQuotas } from '../../src/store/calls/call-quota-use.ts';
import { openDatabase } from '../../src/store/database.ts';
import { serverAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { fromNoon } from '../support/from-noon.ts';
import { patientLimits, patientUrl } from '../support/store/patient-limits.ts';
import { startOwnPostgres, startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { startPostgresProxy } from '../support/store/postgres-proxy.ts';
import { usualOptions } from '../support/store/usual-options.ts';
import { movableClock } from '../support/toolhost/movable-clock.ts';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const stored = { authentication: { type: 'Bearer', token: 'stored' } };
const count = (replies: readonly Reply[], status: number) => replies.filter((reply) => reply.status === status).length;
const call = (toolhost: TestToolhost, slug: string, key: string) =>
  toolhost.rpc(slug, key, 'tools/call', { name: 'get', arguments: {} });
const calls = (toolhost: TestToolhost, slug: string, key: string, times: number) =>
  Promise.all(Array.from({ length: times }, () => call(toolhost, slug, key)));

describe('limits of several processes', () => {
  let postgres: TestPostgres;
  let upstream: RecordingUpstream;
  let replicas: TestToolhost[];
  let key: string;
  before(async () => {
    [postgres, upstream] = await Promise.all([startPostgres(), startRecordingUpstream()]);
    const url = await postgres.createDatabase();
    // Time stands still, so the day whose quota is counted does not end, and no pause makes a process count as gone.
    const noon = fromNoon()();
    const now = () => noon;
    await (await movableClock(url)).stopAt(noon);
    const env = {
      DATABASE_URL: url,
      MASTER_KEY: randomBytes(32).toString('hex'),
      CONCURRENT_CALLS: '9',
      CONCURRENT_CALLS_PER_KEY: '0',
      REFUSALS_PER_MINUTE: '30',
    };
    replicas = await Promise.all(
      [1, 2, 3].map(() => startToolhost({ egress: [upstream.port], env, surroundings: { now, clock: () => 0 } })),
    );
    const [first] = replicas as [TestToolhost];
    key = await first.key();
    await first.createServer(serverAt('shared', upstream.url, stored));
    await first.createServer(serverAt('daily', upstream.url, stored));
    await first.rest('PATCH', '/servers/daily/limits', { body: { calls_per_day: 20 } });
    // Each hears within a second how many they are.
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

  it('[find C6] together run no more calls at once than one', async () => {
    upstream.on('*', () => 'hold');
    const flood = replicas.flatMap((replica) => Array.from({ length: 9 }, () => call(replica, 'shared', key)));
    await upstream.waitForRequest(9);
    // All others wait until they are refused.
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

  it('[find C6] together allow one address no more refusals than one process', async () => {
    const replies = await Promise.all(
      replicas.flatMap((replica) => Array.from({ length: 20 }, () => call(replica, 'shared', 'made-up-key'))),
    );
    assert.deepEqual([count(replies, 401), count(replies, 429)], [30, 30]);
  });

  it('[find C6] together take the quota of a day once, whichever is asked how often', async () => {
    upstream.on('*', () => ({ body: {} }));
    const [first, second, third] = replicas as [TestToolhost, TestToolhost, TestToolhost];
    const replies = [
      ...(await calls(first, 'daily', key, 12)),
      ...(await Promise.all([...Array(10).keys()].map((n) => call(n % 2 ? second : third, 'daily', key)))),
    ];
    assert.deepEqual([count(replies, 200), count(replies, 429)], [20, 2]);
  });
});

describe('shares of limits', () => {
  it('[find C6] of all processes together never exceed a limit of at least one each (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.nat({ max: 7 }), { maxLength: 120 }),
        async (limit, processes, order) => {
          const limits = {
            server: { callsPerSecond: limit, concurrentCalls: limit },
            workspace: { callsPerSecond: 0, concurrentCalls: 0 },
          };
          const gates = Array.from({ length: processes }, () =>
            createLimits({ ...still, processCount: () => processes }),
          );
          let running = 0;
          for (const n of order) if (await isLetIn(gates[n % processes] as Limits, limits)) running++;
          assert.ok(running <= Math.max(limit, processes), `${running} of ${limit} in ${processes}`);
          if (order.length > 0) assert.ok(running > 0);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('[find C6] of a quota: several processes never run more calls than it has (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.nat({ max: 3 }), { maxLength: 150 }),
        fc.constantFrom('callsPerMinute', 'callsPerDay'),
        async (scheduler, quota, processes, order, name) => {
          const books = quotaBook((work) => scheduler.schedule(Promise.resolve()).then(work));
          const gates = Array.from({ length: processes }, () => {
            const processCount = () => processes;
            const reserves = createQuotaReserves({
              ...books,
              processCount,
              now: () => 0,
              onError: String,
              onSuccess: () => undefined,
            });
            const quotas = createCallQuotas({ now: () => 0, reserves });
            return { reserves, limits: createLimits({ ...still, processCount, quotas }) };
          });
          const limits = {
            server: { callsPerSecond: 0, concurrentCalls: 0, [name]: quota },
            workspace: { callsPerSecond: 0, concurrentCalls: 0 },
          };
          const asked = order.map((n) => isLetIn((gates[n % processes] as (typeof gates)[number]).limits, limits));
          const made = (await scheduler.waitFor(Promise.all(asked))).filter(Boolean).length;
          assert.ok(made <= quota, `${made} of ${quota}`);
          if (order.length <= quota / 2) assert.equal(made, order.length);
          if (processes === 1) assert.equal(made, Math.min(quota, order.length));
          await scheduler.waitFor(Promise.all(gates.map(({ reserves }) => reserves.stop())));
          assert.equal(books.taken(), made);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('[find C6] of a quota: without the database each process allows its share, and reports it afterwards', async () => {
    let isDown = true;
    let faults = 0;
    const books = quotaBook(async (work) => {
      if (isDown) throw new Error('no database');
      return work();
    });
    const onError = () => {
      faults++;
    };
    const reserves = createQuotaReserves({
      ...books,
      processCount: () => 3,
      now: () => 0,
      onError,
      onSuccess: () => undefined,
    });
    const gate = createLimits({ ...still, quotas: createCallQuotas({ now: () => 0, reserves }) });
    const limits = {
      server: { callsPerSecond: 0, concurrentCalls: 0, callsPerDay: 30 },
      workspace: { callsPerSecond: 0, concurrentCalls: 0 },
    };
    const made = [];
    for (let n = 0; n < 40; n++) made.push(await isLetIn(gate, limits));
    assert.equal(made.filter(Boolean).length, 10);
    assert.equal(faults, 1);
    isDown = false;
    await reserves.stop();
    assert.equal(books.taken(), 10);
  });

  it('[find C6] of a quota: calls are given back once, even when the answer to it was lost', async () => {
    const postgres = await startOwnPostgres();
    const proxy = await startPostgresProxy(await postgres.createDatabase());
    const location = { url: patientUrl(proxy.url), connections: 2, authorities: undefined };
    const database = await openDatabase({
      ...usualOptions,
      postgres: location,
      postgresLimits: patientLimits,
    });
    const { db } = database;
    try {
      const reserves = createQuotaReserves({
        take: (wishes) => takeOfQuotas(db, wishes),
        settle: (uses) => settleQuotas(db, uses),
        processCount: () => 1,
        now: () => 0,
        onError: () => undefined,
        onSuccess: () => undefined,
      });
      const reserve = reserves.make({ kind: 'server', ref: 's', span: 'day', startsAt: 0 }, 86_400_000, 1000);
      const taken = async () => Number((await db.selectFrom('call_quota_use').select('calls').execute())[0]?.calls);
      await reserves.ask(reserve);
      assert.ok((await taken()) > 0);
      proxy.loseAnswer('+ excluded.granted');
      await reserves.stop();
      await reserves.stop();
      assert.equal(await taken(), 0);
      // What did not reach the database is given back later.
      await reserves.ask(reserve);
      await postgres.crash();
      await reserves.stop();
      await postgres.restart();
      await eventually(() => reserves.stop().then(async () => assert.equal(await taken(), 0)));
    } finally {
      await database.close();
      await proxy.close();
      await postgres.stop();
    }
  });
});

/** Limits of a process whose time stands still. */
const still = { concurrentPerKey: 0, clock: () => 0, lagMs: () => 0, queueMs: 0 };

async function isLetIn(gate: Limits, limits: Limited['limits']): Promise<boolean> {
  try {
    await gate.enter({ id: 's', workspaceId: 'w', limits }, 'k');
    return true;
  } catch (error) {
    assert.match(String(error), /this server (takes|runs) \d+/);
    return false;
  }
}

/** What the database keeps of one quota, behind `answer`, which delays or refuses. */
function quotaBook(answer: <Value>(work: () => Value) => Promise<Value>) {
  let taken = 0;
  return {
    taken: () => taken,
    take: (wishes: readonly QuotaWish[]) =>
      answer(() =>
        wishes.map(({ calls, quota }) => {
          const granted = Math.max(0, Math.min(calls, quota - taken));
          taken += granted;
          return { granted, taken };
        }),
      ),
    settle: (uses: readonly { calls: number }[]) =>
      answer(() => {
        for (const { calls } of uses) taken += calls;
      }),
  };
}

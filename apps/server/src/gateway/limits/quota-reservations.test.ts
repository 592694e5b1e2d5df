import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { eventually } from '../../../../../test/support/eventually.ts';
import { buildDatabaseOptions } from '../../../../../test/support/store/default-options.ts';
import { startDedicatedPostgres } from '../../../../../test/support/store/postgres.ts';
import { startPostgresProxy } from '../../../../../test/support/store/postgres-proxy.ts';
import { openDatabase } from '../../store/database.ts';
import { type QuotaRequest, settleQuotas, takeFromQuotas } from '../../store/workspaces.ts';
import { QuotaCounter } from './call-quotas.ts';
import { type LimitedServer, LimiterRegistry } from './limiter-registry.ts';
import { Limits } from './limits.ts';

const noLimits = { callsPerSecond: 0, concurrentCalls: 0 };
const caller = { id: 'k', keyId: 'k', network: undefined, isVerified: true };
/** Limits of a process whose clock is stopped. */
const stoppedClockOptions = { concurrentPerKey: 0, clock: () => 0, lag: { ms: 0 }, queueMs: 0 };
const ignore = () => undefined;
const counterOptions = { processes: { count: 1 }, now: () => 0, onError: ignore, onSuccess: ignore };

describe('quota reservations', () => {
  it('[find C6] of several processes never exceed the quota (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.nat({ max: 3 }), { maxLength: 150 }),
        fc.constantFrom('callsPerMinute', 'callsPerDay'),
        async (scheduler, quota, processes, order, name) => {
          const quotaStore = createQuotaStore((work) => scheduler.schedule(Promise.resolve()).then(work));
          const limiters = Array.from({ length: processes }, () => {
            const quotas = new QuotaCounter({ ...counterOptions, ...quotaStore, processes: { count: processes } });
            return { quotas, limits: new Limits({ ...stoppedClockOptions, processes: { count: processes }, quotas }) };
          });
          const limits = { server: { ...noLimits, [name]: quota }, workspace: noLimits };
          const admissions = order.map((n) =>
            isAdmitted((limiters[n % processes] as (typeof limiters)[number]).limits, limits),
          );
          const admittedCount = (await scheduler.waitFor(Promise.all(admissions))).filter(Boolean).length;
          assert.ok(admittedCount <= quota, `${admittedCount} of ${quota}`);
          if (order.length <= quota / 2) assert.equal(admittedCount, order.length);
          if (processes === 1) assert.equal(admittedCount, Math.min(quota, order.length));
          await scheduler.waitFor(Promise.all(limiters.map(({ quotas }) => quotas.stop())));
          assert.equal(quotaStore.taken(), admittedCount);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("[find C6] without the database are limited to each process's share, which it reports afterwards", async () => {
    let isDown = true;
    let failureCount = 0;
    const quotaStore = createQuotaStore(async (work) => {
      if (isDown) throw new Error('no database');
      return work();
    });
    const onError = () => {
      failureCount++;
    };
    const quotas = new QuotaCounter({ ...counterOptions, ...quotaStore, processes: { count: 3 }, onError });
    const callLimits = new Limits({ ...stoppedClockOptions, quotas });
    const limits = { server: { ...noLimits, callsPerDay: 30 }, workspace: noLimits };
    const admitted = [];
    for (let n = 0; n < 40; n++) admitted.push(await isAdmitted(callLimits, limits));
    assert.equal(admitted.filter(Boolean).length, 10);
    assert.equal(failureCount, 1);
    isDown = false;
    await quotas.stop();
    assert.equal(quotaStore.taken(), 10);
  });

  it('[find C6] are returned once, even when the response to the return is lost', async () => {
    const postgres = await startDedicatedPostgres();
    const proxy = await startPostgresProxy(await postgres.createDatabase());
    const database = await openDatabase(buildDatabaseOptions(proxy.url, ''));
    const { db } = database;
    try {
      const quotas = new QuotaCounter({
        ...counterOptions,
        reserve: (quotaRequests) => takeFromQuotas(db, quotaRequests),
        settle: (uses) => settleQuotas(db, uses),
      });
      const limits = { server: { ...noLimits, callsPerDay: 1000 }, workspace: noLimits };
      const server = { id: 's', workspaceId: 'w', limits };
      const callLimiters = new LimiterRegistry(stoppedClockOptions).getLimiters(server, caller, 0);
      const reserveAndRefund = async () => {
        await quotas.count(callLimiters);
        quotas.refund(callLimiters, 0);
      };
      const getStoredCalls = async () =>
        Number((await db.selectFrom('call_quota_use').select('calls').execute())[0]?.calls);
      await reserveAndRefund();
      assert.ok((await getStoredCalls()) > 0);
      proxy.dropAtResponse('+ excluded.granted');
      await quotas.stop();
      await quotas.stop();
      assert.equal(await getStoredCalls(), 0);
      // Use that did not reach the database is returned later.
      await reserveAndRefund();
      await postgres.crash();
      await quotas.stop();
      await postgres.restart();
      await eventually(() => quotas.stop().then(async () => assert.equal(await getStoredCalls(), 0)));
    } finally {
      await database.close();
      await proxy.close();
      await postgres.stop();
    }
  });
});

async function isAdmitted(callLimits: Limits, limits: LimitedServer['limits']): Promise<boolean> {
  try {
    await callLimits.enter({ id: 's', workspaceId: 'w', limits }, caller);
    return true;
  } catch (error) {
    assert.match(String(error), /this server (gets|runs) at most \d+/);
    return false;
  }
}

/** The stored use of one quota, behind `respond`, which delays or rejects. */
function createQuotaStore(respond: <Value>(work: () => Value) => Promise<Value>) {
  let taken = 0;
  return {
    taken: () => taken,
    reserve: (quotaRequests: readonly QuotaRequest[]) =>
      respond(() =>
        quotaRequests.map(({ calls, quota }) => {
          const granted = Math.max(0, Math.min(calls, quota - taken));
          taken += granted;
          return { granted, taken };
        }),
      ),
    settle: (uses: readonly { calls: number }[]) =>
      respond(() => {
        for (const { calls } of uses) taken += calls;
      }),
  };
}

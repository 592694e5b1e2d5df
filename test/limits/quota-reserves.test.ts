import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { QuotaCounter } from '../../src/gateway/limits/call-quotas.ts';
import { type LimitedServer, LimiterRegistry } from '../../src/gateway/limits/lanes.ts';
import { Limits } from '../../src/gateway/limits/limits.ts';
import { openDatabase } from '../../src/store/database.ts';
import { type QuotaRequest, settleQuotas, takeFromQuotas } from '../../src/store/workspaces.ts';
import { eventually } from '../support/eventually.ts';
import { patientLimits, patientUrl } from '../support/store/patient-limits.ts';
import { startOwnPostgres } from '../support/store/postgres.ts';
import { startPostgresProxy } from '../support/store/postgres-proxy.ts';
import { usualOptions } from '../support/store/usual-options.ts';

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
          const books = quotaBook((work) => scheduler.schedule(Promise.resolve()).then(work));
          const gates = Array.from({ length: processes }, () => {
            const serving = { count: processes };
            const now = () => 0;
            const quotas = new QuotaCounter({
              ...books,
              processes: serving,
              now,
              onError: String,
              onSuccess: () => undefined,
            });
            return { quotas, limits: new Limits({ ...still, processes: serving, quotas }) };
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
          await scheduler.waitFor(Promise.all(gates.map(({ quotas }) => quotas.stop())));
          assert.equal(books.taken(), made);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("[find C6] without the database are limited to each process's share, which it reports afterwards", async () => {
    let isDown = true;
    let faults = 0;
    const books = quotaBook(async (work) => {
      if (isDown) throw new Error('no database');
      return work();
    });
    const onError = () => {
      faults++;
    };
    const quotas = new QuotaCounter({
      ...books,
      processes: { count: 3 },
      now: () => 0,
      onError,
      onSuccess: () => undefined,
    });
    const gate = new Limits({ ...still, quotas });
    const limits = {
      server: { callsPerSecond: 0, concurrentCalls: 0, callsPerDay: 30 },
      workspace: { callsPerSecond: 0, concurrentCalls: 0 },
    };
    const made = [];
    for (let n = 0; n < 40; n++) made.push(await isLetIn(gate, limits));
    assert.equal(made.filter(Boolean).length, 10);
    assert.equal(faults, 1);
    isDown = false;
    await quotas.stop();
    assert.equal(books.taken(), 10);
  });

  it('[find C6] are returned once, even when the response to the return is lost', async () => {
    const postgres = await startOwnPostgres();
    const proxy = await startPostgresProxy(await postgres.createDatabase());
    const location = { url: patientUrl(proxy.url), maxConnections: 2, authorities: undefined };
    const database = await openDatabase({
      ...usualOptions,
      postgres: location,
      postgresLimits: patientLimits,
    });
    const { db } = database;
    try {
      const quotas = new QuotaCounter({
        reserve: (wishes) => takeFromQuotas(db, wishes),
        settle: (uses) => settleQuotas(db, uses),
        processes: { count: 1 },
        now: () => 0,
        onError: () => undefined,
        onSuccess: () => undefined,
      });
      const limits = { callsPerSecond: 0, concurrentCalls: 0 };
      const server = {
        id: 's',
        workspaceId: 'w',
        limits: { server: { ...limits, callsPerDay: 1000 }, workspace: limits },
      };
      const caller = { id: 'k', keyId: 'k', network: undefined, isVerified: true };
      const lanes = new LimiterRegistry(still).getLimiters(server, caller, 0);
      const takeAndGiveBack = async () => {
        await quotas.count(lanes);
        quotas.refund(lanes, 0);
      };
      const taken = async () => Number((await db.selectFrom('call_quota_use').select('calls').execute())[0]?.calls);
      await takeAndGiveBack();
      assert.ok((await taken()) > 0);
      proxy.loseAnswer('+ excluded.granted');
      await quotas.stop();
      await quotas.stop();
      assert.equal(await taken(), 0);
      // Use that did not reach the database is returned later.
      await takeAndGiveBack();
      await postgres.crash();
      await quotas.stop();
      await postgres.restart();
      await eventually(() => quotas.stop().then(async () => assert.equal(await taken(), 0)));
    } finally {
      await database.close();
      await proxy.close();
      await postgres.stop();
    }
  });
});

/** Limits of a process whose clock is stopped. */
const still = { concurrentPerKey: 0, clock: () => 0, lag: { ms: 0 }, queueMs: 0 };

async function isLetIn(gate: Limits, limits: LimitedServer['limits']): Promise<boolean> {
  try {
    await gate.enter(
      { id: 's', workspaceId: 'w', limits },
      { id: 'k', keyId: 'k', network: undefined, isVerified: true },
    );
    return true;
  } catch (error) {
    assert.match(String(error), /this server (gets|runs) at most \d+/);
    return false;
  }
}

/** The stored use of one quota, behind `answer`, which delays or rejects. */
function quotaBook(answer: <Value>(work: () => Value) => Promise<Value>) {
  let taken = 0;
  return {
    taken: () => taken,
    reserve: (wishes: readonly QuotaRequest[]) =>
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

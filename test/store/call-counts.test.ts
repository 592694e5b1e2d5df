import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { durationBuckets, getDurationBucket } from '../../src/domain/duration-classes.ts';
import { outcomes } from '../../src/errors.ts';
import {
  type CallScope,
  countByInterval,
  countByServer,
  findMostCalled,
} from '../../src/store/calls/call-statistics.ts';
import {
  batchRows,
  type CallRecord,
  dayMs,
  hourMs,
  minuteMs,
  startOfPeriod,
} from '../../src/store/calls/call-writer.ts';
import type { Database } from '../../src/store/database.ts';
import { engines, tries } from '../sets.ts';
import { aCall } from '../support/store/rows.ts';
import { type Stores, startStores } from '../support/store/stores.ts';

const epoch = Date.parse('2026-11-18T22:30:00Z');
const workspaces = ['ours', 'theirs'];
const slugs = ['one', 'two', 'three'];
const tools = ['get', 'put', 'list'];

/** Calls over two and a half days, many of them in the same minutes. */
const call = fc.record({
  workspace_id: fc.constantFrom(...workspaces),
  slug: fc.constantFrom(...slugs),
  tool: fc.constantFrom(...tools),
  started_at: fc
    .oneof(fc.integer({ max: 2.5 * dayMs, min: 0 }), fc.integer({ max: 3 * minuteMs, min: 0 }))
    .map((after) => epoch + after),
  outcome: fc.constantFrom(...outcomes, 'ok', 'ok', 'ok', 'ok'),
  duration_ms: fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 40_000 })),
});

/** Writes of the service: whole batches and partial batches, some repeated. */
const history = fc.array(
  fc.record({
    calls: fc.oneof(
      fc.array(call, { minLength: batchRows, maxLength: batchRows }),
      fc.array(call, { minLength: 1, maxLength: 12 }),
    ),
    how: fc.constantFrom('write', 'write again', 'write a part again'),
  }),
  { minLength: 1, maxLength: 5 },
);

const scopes = fc.record({
  from: fc.integer({ min: -30, max: 3600 }),
  minutes: fc.integer({ min: 1, max: 3900 }),
  intervals: fc.integer({ min: 1, max: 60 }),
  wholeHours: fc.boolean(),
  slugs: fc.option(fc.subarray(slugs), { nil: undefined }),
  tool: fc.option(fc.constantFrom(...tools), { nil: undefined }),
});

type Sum = { calls: number; errors: number; durations: number[] };

function recount(calls: readonly CallRecord[]): Sum {
  const durations = durationBuckets.map(() => 0);
  for (const { duration_ms } of calls)
    durations[getDurationBucket(duration_ms)] = (durations[getDurationBucket(duration_ms)] ?? 0) + 1;
  return { calls: calls.length, errors: calls.filter(({ outcome }) => outcome !== 'ok').length, durations };
}

function scopeOf(
  wanted: typeof scopes extends fc.Arbitrary<infer Scope> ? Scope : never,
): CallScope & { widthMs: number } {
  const unit = wanted.wholeHours ? hourMs : minuteMs;
  const from = startOfPeriod(epoch + wanted.from * minuteMs, unit);
  const until = startOfPeriod(from + wanted.minutes * minuteMs, unit) + unit;
  const widthMs = Math.ceil((until - from) / wanted.intervals / unit) * unit;
  return {
    workspaceId: 'ours',
    from,
    until,
    widthMs,
    ...(wanted.slugs && { slugs: wanted.slugs }),
    ...(wanted.tool !== undefined && { tool: wanted.tool }),
  };
}

for (const engine of engines) {
  describe(`[find A4] call statistics on ${engine}`, () => {
    let stores: Stores;
    before(async () => {
      stores = await startStores(engine);
    });
    after(() => stores.stop());

    let made = 0;
    const write = async (database: Database, { calls, how }: { calls: Partial<CallRecord>[]; how: string }) => {
      const rows = calls.map((one) => aCall({ ...one, id: `call_${++made}` }));
      const { write: writeCalls } = database.calls;
      await writeCalls(rows);
      if (how === 'write again') await writeCalls(rows);
      // The response was lost, and other calls arrived before the retry.
      if (how === 'write a part again')
        await writeCalls([...rows.slice(Math.floor(rows.length / 2)), aCall({ ...rows[0], id: `call_${++made}` })]);
    };

    it('returns the same counts as a recount of the records, regardless of how often a batch was written', async () => {
      const database = await stores.open();
      await fc.assert(
        fc.asyncProperty(history, fc.array(scopes, { minLength: 3, maxLength: 6 }), async (steps, wanted) => {
          await database.db.deleteFrom('calls').execute();
          await database.db.deleteFrom('call_counts').execute();
          for (const step of steps) await write(database, step);
          const records = await database.db
            .selectFrom('calls')
            .selectAll()
            .where('workspace_id', '=', 'ours')
            .execute();
          for (const one of wanted) await compare(database, scopeOf(one), records);
        }),
        { numRuns: tries(50), endOnFailure: true },
      );
    });

    const compare = async (
      database: Database,
      scope: CallScope & { widthMs: number },
      records: readonly CallRecord[],
    ) => {
      const { from, until, widthMs, workspaceId } = scope;
      const mine = records.filter(
        ({ started_at, slug, tool }) =>
          started_at >= from &&
          started_at < until &&
          (!scope.slugs || scope.slugs.includes(slug)) &&
          (scope.tool === undefined || scope.tool === tool),
      );
      const intervals = await countByInterval(database.reports, scope, widthMs);
      const byInterval = Map.groupBy(
        mine,
        ({ started_at }) => from + Math.floor((started_at - from) / widthMs) * widthMs,
      );
      assert.deepEqual(
        intervals.toSorted((a, b) => a.at - b.at),
        [...byInterval].toSorted(([a], [b]) => a - b).map(([at, calls]) => ({ at, ...recount(calls) })),
      );
      const { servers, tools: found } = await findMostCalled(database.reports, scope, 100);
      const sums = (key: (call: CallRecord) => string) =>
        new Map([...Map.groupBy(mine, key)].map(([name, calls]) => [name, recount(calls)]));
      const asMap = (rows: typeof servers) =>
        new Map(rows.map(({ slug, tool, ...sum }) => [`${slug}/${tool}`, { ...sum }]));
      assert.deepEqual(
        asMap(servers),
        sums(({ slug }) => `${slug}/`),
      );
      assert.deepEqual(
        asMap(found),
        sums(({ slug, tool }) => `${slug}/${tool}`),
      );
      assert.deepEqual(
        found.map((row) => row.calls),
        found.map((row) => row.calls).toSorted((a, b) => b - a),
      );
      const hourly = await countByServer(database.reports, { workspaceId, from, until, slugs }, hourMs);
      const all = records.filter(({ started_at }) => started_at >= from && started_at < until);
      assert.deepEqual(
        new Map(hourly.map(({ slug, at, calls, errors }) => [`${slug} ${at}`, [calls, errors]])),
        new Map(
          [
            ...Map.groupBy(
              all,
              ({ slug, started_at }) => `${slug} ${from + Math.floor((started_at - from) / hourMs) * hourMs}`,
            ),
          ].map(([name, calls]) => [name, [calls.length, recount(calls).errors]]),
        ),
      );
    };
  });
}

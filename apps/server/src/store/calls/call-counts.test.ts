import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { outcomes } from '@toolhost/errors/errors';
import fc from 'fast-check';
import { engines, getRunCount } from '../../../../../test/sets.ts';
import { assertMapped } from '../../../../../test/support/assert-lists.ts';
import { buildCall } from '../../../../../test/support/store/rows.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import { durationBuckets, getDurationBucket } from '../../duration-buckets.ts';
import type { Database } from '../database.ts';
import { type CallScope, countByInterval, countByServer, findMostCalled } from './call-statistics.ts';
import { batchRecords, type CallRecord, dayMs, hourMs, minuteMs, startOfPeriod } from './call-writer.ts';

const epoch = Date.parse('2026-11-18T22:30:00Z');
const workspaces = ['ours', 'theirs'];
const slugs = ['one', 'two', 'three'];
const tools = ['get', 'put', 'list'];

/** Calls over two and a half days, many of them in the same minutes. */
const callArbitrary = fc.record({
  workspace_id: fc.constantFrom(...workspaces),
  slug: fc.constantFrom(...slugs),
  tool: fc.constantFrom(...tools),
  started_at: fc
    .oneof(fc.integer({ max: 2.5 * dayMs, min: 0 }), fc.integer({ max: 3 * minuteMs, min: 0 }))
    .map((after) => epoch + after),
  outcome: fc.constantFrom(...outcomes, 'ok', 'ok', 'ok', 'ok'),
  duration_ms: fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 40_000 })),
});

const history = fc.array(
  fc.record({
    calls: fc.oneof(
      fc.array(callArbitrary, { minLength: batchRecords, maxLength: batchRecords + 3 }),
      fc.array(callArbitrary, { minLength: 1, maxLength: 12 }),
    ),
    mode: fc.constantFrom('write', 'write again', 'write a part again'),
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

type CallSum = { calls: number; errors: number; durations: number[] };

function recount(calls: readonly CallRecord[]): CallSum {
  const durations = durationBuckets.map(() => 0);
  for (const { duration_ms } of calls)
    durations[getDurationBucket(duration_ms)] = (durations[getDurationBucket(duration_ms)] ?? 0) + 1;
  return { calls: calls.length, errors: calls.filter(({ outcome }) => outcome !== 'ok').length, durations };
}

function toScope(
  input: typeof scopes extends fc.Arbitrary<infer Scope> ? Scope : never,
): CallScope & { widthMs: number } {
  const unit = input.wholeHours ? hourMs : minuteMs;
  const from = startOfPeriod(epoch + input.from * minuteMs, unit);
  const until = startOfPeriod(from + input.minutes * minuteMs, unit) + unit;
  const widthMs = Math.ceil((until - from) / input.intervals / unit) * unit;
  return {
    workspaceId: 'ours',
    from,
    until,
    widthMs,
    ...(input.slugs && { slugs: input.slugs }),
    ...(input.tool !== undefined && { tool: input.tool }),
  };
}

for (const engine of engines)
  describe(`[find A4] call statistics on ${engine}`, () => {
    const stores = useStores(engine);

    let recordCount = 0;
    const write = async (database: Database, { calls, mode }: { calls: Partial<CallRecord>[]; mode: string }) => {
      const rows = calls.map((row) => buildCall({ ...row, id: `call_${++recordCount}` }));
      const { write: writeCalls } = database.calls;
      await writeCalls(rows);
      if (mode === 'write again') await writeCalls(rows);
      // The response was lost, and other calls arrived before the retry.
      if (mode === 'write a part again')
        await writeCalls([
          ...rows.slice(Math.floor(rows.length / 2)),
          buildCall({ ...rows[0], id: `call_${++recordCount}` }),
        ]);
    };

    it('returns the same counts as a recount of the records, regardless of how often a batch was written', async () => {
      const database = await stores.open();
      await fc.assert(
        fc.asyncProperty(history, fc.array(scopes, { minLength: 3, maxLength: 6 }), async (steps, scopeInputs) => {
          await database.db.deleteFrom('calls').execute();
          await database.db.deleteFrom('call_counts').execute();
          for (const step of steps) await write(database, step);
          const records = await database.db
            .selectFrom('calls')
            .selectAll()
            .where('workspace_id', '=', 'ours')
            .execute();
          for (const scopeInput of scopeInputs) await assertCountsMatch(database, toScope(scopeInput), records);
        }),
        { numRuns: getRunCount(50), endOnFailure: true },
      );
    });

    const assertCountsMatch = async (
      database: Database,
      scope: CallScope & { widthMs: number },
      records: readonly CallRecord[],
    ) => {
      const { from, until, widthMs, workspaceId } = scope;
      const matchingCalls = records.filter(
        ({ started_at, slug, tool }) =>
          started_at >= from &&
          started_at < until &&
          (!scope.slugs || scope.slugs.includes(slug)) &&
          (scope.tool === undefined || scope.tool === tool),
      );
      const intervals = await countByInterval(database.reports, scope, widthMs);
      const byInterval = Map.groupBy(
        matchingCalls,
        ({ started_at }) => from + Math.floor((started_at - from) / widthMs) * widthMs,
      );
      assert.deepEqual(
        intervals.toSorted((a, b) => a.at - b.at),
        [...byInterval].toSorted(([a], [b]) => a - b).map(([at, calls]) => ({ at, ...recount(calls) })),
      );
      const { servers, tools: mostCalledTools } = await findMostCalled(database.reports, scope, 100);
      const sums = (key: (call: CallRecord) => string) =>
        new Map([...Map.groupBy(matchingCalls, key)].map(([name, calls]) => [name, recount(calls)]));
      const toMap = (rows: typeof servers) =>
        new Map(rows.map(({ slug, tool, ...sum }) => [`${slug}/${tool}`, { ...sum }]));
      assert.deepEqual(
        toMap(servers),
        sums(({ slug }) => `${slug}/`),
      );
      assert.deepEqual(
        toMap(mostCalledTools),
        sums(({ slug, tool }) => `${slug}/${tool}`),
      );
      assertMapped(
        mostCalledTools,
        (row) => row.calls,
        mostCalledTools.map((row) => row.calls).toSorted((a, b) => b - a),
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

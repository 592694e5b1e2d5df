import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { outcomes } from '@toolhost/errors/errors';
import { callerKinds } from '@toolhost/tool-config/server-wide';
import fc from 'fast-check';
import { engines, getRunCount } from '../../../../../test/sets.ts';
import { assertMapped } from '../../../../../test/support/assert-lists.ts';
import { buildCall } from '../../../../../test/support/store/rows.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import { decodeCursor, type Page } from '../page.ts';
import type { CallRecord } from './call-writer.ts';
import { type CallFilter, findCalls } from './calls.ts';

const slugs = ['one', 'two', 'three'];
const tools = ['get', 'put', 'list'];
const keys = ['key_1', 'key_2', null];

const calls = fc
  .array(
    fc.record({
      workspace_id: fc.constantFrom('ours', 'ours', 'ours', 'theirs'),
      slug: fc.constantFrom(...slugs),
      tool: fc.constantFrom(...tools),
      // Many at the same time, so that ids decide the order.
      started_at: fc.integer({ min: 1000, max: 1020 }),
      outcome: fc.constantFrom('ok', 'ok', ...outcomes.slice(0, 4)),
      caller_kind: fc.constantFrom(...callerKinds),
      key_id: fc.constantFrom(...keys),
    }),
    { maxLength: 60 },
  )
  .map((rows) => rows.map((row, n) => buildCall({ ...row, id: `call_${(n * 7919) % 997}` })));

const filters = fc.record(
  {
    slug: fc.constantFrom(...slugs, 'nowhere'),
    slugs: fc.subarray(slugs),
    tool: fc.constantFrom(...tools),
    outcome: fc.constantFrom(...outcomes.slice(0, 5)),
    callerKind: fc.constantFrom(...callerKinds),
    keyId: fc.constantFrom('key_1', 'key_2', 'key_3'),
    since: fc.integer({ min: 995, max: 1020 }),
    until: fc.integer({ min: 1000, max: 1025 }),
  },
  { requiredKeys: [] },
);

function matchesFilter(call: CallRecord, filter: CallFilter): boolean {
  return (
    call.workspace_id === 'ours' &&
    (filter.slug === undefined || call.slug === filter.slug) &&
    (!filter.slugs || filter.slugs.includes(call.slug)) &&
    (filter.tool === undefined || call.tool === filter.tool) &&
    (filter.outcome === undefined || call.outcome === filter.outcome) &&
    (filter.callerKind === undefined || call.caller_kind === filter.callerKind) &&
    (filter.keyId === undefined || call.key_id === filter.keyId) &&
    (filter.since === undefined || call.started_at >= filter.since) &&
    (filter.until === undefined || call.started_at < filter.until)
  );
}

const newestFirst = (a: CallRecord, b: CallRecord) => b.started_at - a.started_at || (a.id < b.id ? 1 : -1);

for (const engine of engines)
  describe(`[find A4] the filtered call list on ${engine}`, () => {
    const stores = useStores(engine);

    it('returns every matching call in order, regardless of how few are read for a page', async () => {
      const { db, calls: writer } = await stores.open();
      const paging = fc.record({ limit: fc.integer({ min: 1, max: 7 }), atOnce: fc.integer({ min: 1, max: 70 }) });
      await fc.assert(
        fc.asyncProperty(calls, fc.array(fc.tuple(filters, paging), { maxLength: 8 }), async (rows, lists) => {
          await db.deleteFrom('calls').execute();
          await writer.write(rows);
          for (const [filter, { limit, atOnce: searchLimit }] of lists) {
            const foundCalls: CallRecord[] = [];
            let page: Page | undefined = { limit, after: undefined };
            while (page) {
              const {
                rows: pageRows,
                next,
                searchedTo,
              } = await findCalls(db, 'ours', filter as CallFilter, { ...page, searchLimit });
              assert.ok(pageRows.length <= limit);
              assert.ok(pageRows.length === limit || next === undefined || searchedTo !== undefined);
              foundCalls.push(...pageRows);
              page = next === undefined ? undefined : { limit, after: decodeCursor(next) };
            }
            const expected = rows.filter((row) => matchesFilter(row, filter as CallFilter)).toSorted(newestFirst);
            assertMapped(
              foundCalls,
              ({ id }) => id,
              expected.map(({ id }) => id),
            );
          }
        }),
        { numRuns: getRunCount(60), endOnFailure: true },
      );
    });
  });

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { outcomes } from '@toolhost/errors/errors';
import { callerKinds } from '@toolhost/tool-config/server-wide';
import { engines } from '../../../../../test/sets.ts';
import { pluck } from '../../../../../test/support/pluck.ts';
import { buildCall } from '../../../../../test/support/store/rows.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import { decodeCursor, type Page } from '../page.ts';
import type { CallRecord } from './call-writer.ts';
import { type CallFilter, findCalls } from './calls.ts';

const slugs = ['one', 'two', 'three'];
const tools = ['get', 'put', 'list'];
const pick = <Value>(values: readonly Value[], at: number) => values[at % values.length] as Value;

/** Calls of two workspaces, of which many began at the same time, so that ids decide the order. */
const calls = Array.from({ length: 60 }, (_, n) =>
  buildCall({
    id: `call_${(n * 7919) % 997}`,
    workspace_id: pick(['ours', 'ours', 'ours', 'theirs'], n),
    slug: pick(slugs, n >> 1),
    tool: pick(tools, n >> 2),
    started_at: 1000 + ((n * 13) % 21),
    outcome: pick(['ok', 'ok', ...outcomes.slice(0, 4)], n),
    caller_kind: pick(callerKinds, n >> 1),
    key_id: pick(['key_1', 'key_2', null], n >> 3),
  }),
);

const conditions: readonly CallFilter[] = [
  ...[...slugs, 'nowhere'].map((slug) => ({ slug })),
  ...[{ slugs: ['one', 'three'] }, { slugs: [] }, ...tools.map((tool) => ({ tool }))],
  ...outcomes.slice(0, 5).map((outcome) => ({ outcome })),
  ...callerKinds.map((callerKind) => ({ callerKind })),
  ...['key_1', 'key_2', 'key_3'].map((keyId) => ({ keyId })),
  ...[{ since: 995 }, { since: 1008 }, { until: 1000 }, { until: 1012 }],
];

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
      await writer.write(calls);
      const filters = conditions.flatMap((one) => conditions.map((other): CallFilter => ({ ...one, ...other })));
      for (const [index, filter] of [{}, ...filters].entries()) {
        const limit = 1 + (index % 7);
        const searchLimit = pick([70, 1, 3, 10, 20], index);
        const foundCalls: CallRecord[] = [];
        let page: Page | undefined = { limit, after: undefined };
        while (page) {
          const { rows, next, searchedTo } = await findCalls(db, 'ours', filter, { ...page, searchLimit });
          assert.ok(rows.length <= limit);
          assert.ok(rows.length === limit || next === undefined || searchedTo !== undefined);
          foundCalls.push(...rows);
          page = next === undefined ? undefined : { limit, after: decodeCursor(next) };
        }
        const expected = calls.filter((call) => matchesFilter(call, filter)).toSorted(newestFirst);
        assert.deepEqual(pluck(foundCalls, 'id'), pluck(expected, 'id'), JSON.stringify(filter));
      }
    });
  });

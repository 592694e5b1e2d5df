import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { engines } from '../../../../../test/sets.ts';
import { pluck } from '../../../../../test/support/pluck.ts';
import { buildCall } from '../../../../../test/support/store/rows.ts';
import { startStores } from '../../../../../test/support/store/stores.ts';
import { countByInterval, findCountableStart, findMostCalled } from './call-statistics.ts';
import { hourMs, minuteMs } from './call-writer.ts';

const startAt = Date.parse('2026-11-18T00:00:00Z');
const scope = { workspaceId: 'ours', from: startAt, until: startAt + 6 * hourMs };

for (const engine of engines) {
  describe(`[find A4] statistics over more counts than a query reads, on ${engine}`, async () => {
    const stores = await startStores(engine);
    const database = await stores.open();
    // In hour n, the server s<n> gets n calls and the server `always` gets one.
    const calls = [0, 1, 2, 3, 4, 5].flatMap((hour) =>
      [...Array.from({ length: hour }, () => `s${hour}`), 'always'].map((slug, n) =>
        buildCall({ id: `call_${hour}_${n}`, slug, started_at: startAt + hour * hourMs + minuteMs }),
      ),
    );
    await database.calls.write(calls);
    after(() => stores.stop());

    it('rank the newest calls, report the ranking start, and count over the whole time range', async () => {
      const { servers, tools, rankedFrom } = await findMostCalled(database.reports, scope, 100, 4);
      const formatCounts = (rows: typeof servers) => rows.map(({ slug, calls }) => `${slug} ${calls}`);
      assert.deepEqual(formatCounts(servers), ['always 6', 's5 5', 's4 4']);
      assert.deepEqual(formatCounts(tools), formatCounts(servers));
      assert.equal(rankedFrom, startAt + 4 * hourMs + minuteMs);
    });

    it('rank all servers if there are few enough', async () => {
      const { servers, rankedFrom } = await findMostCalled(database.reports, scope, 3, 12);
      assert.deepEqual(pluck(servers, 'slug'), ['always', 's5', 's4']);
      assert.equal(rankedFrom, undefined);
    });

    it('start later if a tool is selected in all servers, and count every call from there', async () => {
      const toolScope = { ...scope, tool: 'get' };
      assert.equal(await findCountableStart(database.reports, toolScope, hourMs, 100), startAt);
      const from = await findCountableStart(database.reports, toolScope, hourMs, 4);
      assert.equal(from, startAt + 4 * hourMs);
      const rows = await countByInterval(database.reports, { ...toolScope, from }, hourMs);
      assert.deepEqual(rows.map(({ calls }) => calls).toSorted(), [5, 6]);
      assert.equal(await findCountableStart(database.reports, { ...toolScope, slugs: ['s1'] }, hourMs, 1), startAt);
    });
  });
}

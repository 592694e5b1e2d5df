import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import type { CallRecord } from '../../apps/server/src/store/calls/call-writer.ts';
import { engines } from '../sets.ts';
import { pluck } from '../support/pluck.ts';
import { buildCall } from '../support/store/rows.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { createKeyClient } from '../support/toolhost/rest-clients.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

type Summary = { calls: number; errors: number; p50_ms?: number; p95_ms?: number };
type Row = Summary & { slug: string; tool: string };
type Interval = Summary & { at: string };
type Statistics = {
  from: string;
  to: string;
  bucket_ms: number;
  buckets: Interval[];
  by_server: Row[];
  by_tool: Row[];
};
type Activity = { servers: { slug: string; calls: number; errors: number; hourly: number[] }[] };

for (const engine of engines) {
  describe(`call statistics on ${engine}`, async () => {
    let seeded = 0;
    const upstream = await startRecordingUpstream();
    const world = await startToolhostOnEngine(engine, { egressPorts: [upstream.port] });
    after(() => Promise.all([world.stop(), upstream.close()]));

    /** Creates a server, and returns a function that adds calls of any time to it. */
    const createServer = async (slug: string) => {
      await world.toolhost.createServer(buildServerAt(slug, upstream.url));
      return (calls: Partial<CallRecord>[]) => seed(calls.map((call) => ({ slug, ...call })));
    };
    const seed = async (calls: Partial<CallRecord>[]) => {
      const rows = calls.map((call) =>
        buildCall({ workspace_id: 'local', started_at: world.now(), ...call, id: call.id ?? `call_${++seeded}` }),
      );
      await (await world.database()).calls.write(rows);
    };
    const get = async (path: string, key?: string) => {
      const reply = await world.toolhost.rest('GET', path, key ? { key } : {});
      assert.equal(reply.status, 200, reply.text);
      return reply;
    };
    const getStatistics = async (query: string, key?: string) =>
      (await get(`/statistics?${query}`, key)).body as unknown as Statistics;
    const getActivity = async (query = '', key?: string) =>
      (await get(`/activity${query}`, key)).body as unknown as Activity;
    const getServerActivity = async (slug: string) =>
      (await getActivity()).servers.find((server) => server.slug === slug);

    it('count the calls of every server in each of the last 24 hours', async () => {
      const addCalls = await createServer('busy');
      await createServer('idle');
      const at = (hoursAgo: number) => ({ started_at: world.now() - hoursAgo * hourMs });
      await addCalls([at(0), { ...at(0.5), outcome: 'timeout' }, at(1.5), at(23.9)]);
      await addCalls([{ ...at(23.9), outcome: 'blocked' }]);
      await addCalls([at(24.1), at(48), { workspace_id: 'theirs' }]);
      const idle = { slug: 'idle', calls: 0, errors: 0, hourly: Array(24).fill(0) };
      assert.deepEqual(await getServerActivity('idle'), idle);
      const hourly = [2, ...Array(21).fill(0), 1, 2];
      assert.deepEqual(await getServerActivity('busy'), { slug: 'busy', calls: 5, errors: 2, hourly });
    });

    it('count the calls of every tool of a server, and return the tokens of its definition', async () => {
      const addCalls = await createServer('tooled');
      const { config } = (await get('/servers/tooled')).body as { config: { tools: Json[] } };
      const [tool] = config.tools;
      const long = { ...tool, name: 'long', description: 'Says much. '.repeat(100) };
      await world.toolhost.rest('PATCH', '/servers/tooled', { body: { tools: [tool, long] } });
      await addCalls([{ tool: 'long' }, { tool: 'long', outcome: 'timeout' }, { tool: 'gone' }]);
      await addCalls([{ tool: 'long', started_at: world.now() - 24.1 * hourMs }]);
      const { tools } = (await get('/servers/tooled/activity')).body;
      assert.deepEqual(pluck(tools, 'tool', 'calls', 'errors'), ['get', 0, 0, 'long', 2, 1]);
      const isLong = pluck(tools, 'tokens').map((tokens) => Number(tokens) > 250);
      assert.deepEqual(isLong, [false, true]);
    });

    it('omit a deleted server from the activity', async () => {
      await (await createServer('gone'))([{}]);
      assert.equal((await getServerActivity('gone'))?.calls, 1);
      await world.toolhost.rest('DELETE', '/servers/gone');
      assert.equal(await getServerActivity('gone'), undefined);
    });

    it('count a call immediately', async () => {
      await createServer('at-once');
      await world.toolhost.callTool('at-once', await world.toolhost.createKey(), 'get');
      assert.equal((await getServerActivity('at-once'))?.hourly[23], 1);
      const { by_tool, buckets } = await getStatistics('slug=at-once&buckets=3');
      assert.equal(by_tool[0]?.calls, 1);
      assert.equal(buckets[2]?.calls, 1);
    });

    it('divide a time range into intervals, including empty ones', async () => {
      const addCalls = await createServer('spread');
      const from = world.now() - 10 * hourMs;
      await addCalls([
        { started_at: from - 1 },
        { started_at: from, duration_ms: 3 },
        { started_at: from + 30 * minuteMs - 1, duration_ms: 39, outcome: 'timeout' },
        { started_at: from + 30 * minuteMs, duration_ms: 7 },
        { started_at: from + 2 * hourMs },
      ]);
      const at = (minutes: number) => new Date(from + minutes * minuteMs).toISOString();
      const total = { slug: 'spread', calls: 3, errors: 1, p50_ms: 7, p95_ms: 37 };
      assert.deepEqual(await getStatistics(`slug=spread&since=${at(0)}&until=${at(120)}&buckets=4`), {
        from: at(0),
        to: at(120),
        bucket_ms: 30 * minuteMs,
        buckets: [
          { at: at(0), calls: 2, errors: 1, p50_ms: 3, p95_ms: 37 },
          { at: at(30), calls: 1, errors: 0, p50_ms: 7, p95_ms: 7 },
          { at: at(60), calls: 0, errors: 0 },
          { at: at(90), calls: 0, errors: 0 },
        ],
        by_server: [total],
        by_tool: [{ ...total, tool: 'get' }],
      });
    });

    it('return percentiles that are exact below 8 ms and within one eighth above', async () => {
      const addCalls = await createServer('durations');
      for (const [tool, maxDuration] of Object.entries({ a: 8, b: 500, c: 20_000, d: 31_000 })) {
        // A fixed, unordered sequence of many small and few large durations.
        const scale = maxDuration / 401 ** 3;
        const durations = Array.from({ length: 401 }, (_, n) => Math.floor(((n * 7919) % 401) ** 3 * scale));
        await addCalls(durations.map((duration_ms) => ({ tool, duration_ms })));
        const sorted = durations.toSorted((a, b) => a - b);
        const { by_tool } = await getStatistics(`slug=durations&tool=${tool}`);
        assert.equal(by_tool.length, 1);
        const actuals = { 0.5: by_tool[0]?.p50_ms, 0.95: by_tool[0]?.p95_ms };
        for (const [share, actual] of Object.entries(actuals)) {
          const exact = sorted[Math.ceil(sorted.length * Number(share)) - 1] ?? 0;
          const allowed = exact < 8 ? 0 : exact / 8;
          assert.ok(Math.abs((actual ?? -1) - exact) <= allowed, `${tool}: ${actual} for ${exact}`);
        }
      }
    });

    it('rank servers and tools by calls, in the whole workspace or for one tool', async () => {
      const [first, second] = [await createServer('ranked-one'), await createServer('ranked-two')];
      await first([{ tool: 'x' }, { tool: 'x' }, { tool: 'y', outcome: 'blocked' }]);
      await second([{ tool: 'x' }, { tool: 'x' }]);
      const onlyRanked = (rows: Row[]) => rows.filter((row) => row.slug.startsWith('ranked'));
      const { by_server, by_tool } = await getStatistics('buckets=1');
      const servers = pluck(onlyRanked(by_server), 'slug', 'calls', 'errors');
      assert.deepEqual(servers, ['ranked-one', 3, 1, 'ranked-two', 2, 0]);
      const tools = onlyRanked(by_tool).map(({ slug, tool, calls }) => `${slug} ${tool} ${calls}`);
      assert.deepEqual(tools.toSorted(), ['ranked-one x 2', 'ranked-one y 1', 'ranked-two x 2']);
      const ofX = await getStatistics('tool=x&buckets=1');
      assert.deepEqual(pluck(onlyRanked(ofX.by_tool), 'slug', 'calls'), ['ranked-one', 2, 'ranked-two', 2]);
    });

    it('[sec E3] show a key that is limited to servers only those servers', async () => {
      const key = await world.toolhost.createKey({ servers: ['limited-mine'] });
      for (const slug of ['limited-mine', 'limited-other'])
        await (await createServer(slug))([{ id: `call_of_${slug}` }]);
      assert.deepEqual(pluck((await getActivity('', key)).servers, 'slug', 'calls'), ['limited-mine', 1]);
      assert.deepEqual(pluck((await getStatistics('', key)).by_server, 'slug'), ['limited-mine']);
      assert.equal((await get('/calls/call_of_limited-mine', key)).status, 200);
      for (const path of [
        '/statistics?slug=limited-other',
        '/activity?slug=limited-other',
        '/calls/call_of_limited-other',
      ])
        assert.equal((await world.toolhost.rest('GET', path, { key })).status, 404, path);
      const csv = (await get('/calls.csv', key)).text;
      assert.deepEqual([csv.includes('limited-mine'), csv.includes('limited-other')], [true, false]);
    });

    it('[sec E3] are hidden from other workspaces', async () => {
      await (await createServer('private'))([{ id: 'call_private' }]);
      const key = await world.toolhost.createKey({ workspace: 'theirs' });
      assert.deepEqual((await getActivity('', key)).servers, []);
      assert.doesNotMatch((await get('/statistics', key)).text, /private/);
      assert.equal((await world.toolhost.rest('GET', '/statistics?slug=private', { key })).status, 404);
      assert.equal((await world.toolhost.rest('GET', '/calls/call_private', { key })).status, 404);
      const callOnlyKey = await world.toolhost.createKey({ scopes: ['call'] });
      for (const path of ['/statistics', '/activity', '/calls/call_private', '/calls.csv'])
        assert.equal((await world.toolhost.rest('GET', path, { key: callOnlyKey })).status, 403, path);
    });

    it('[find A4] use whole minutes, and whole days if the range starts more than three days ago', async () => {
      for (const [since, until, buckets, ...expected] of [
        ['20T10:00:30.5', '20T10:00:30.6', 48, '20T10:00', '20T10:01', 1, 1],
        ['20T10:00:59', '20T11:00:01', 10, '20T10:00', '20T11:01', 7, 9],
        ['18T11:07:00', '20T12:00:00', 40, '18T11:07', '20T12:00', 120, 25],
        ['10T11:07:00', '20T11:01:00', 500, '10T00:00', '21T00:00', 24 * 60, 11],
      ]) {
        const query = `since=2026-11-${since}Z&until=2026-11-${until}Z&buckets=${buckets}`;
        const { from, to, ...statistics } = await getStatistics(query);
        const times = [from, to].map((time) => time.replace(/^2026-11-(.*):00\.000Z$/, '$1'));
        const actual = [...times, statistics.bucket_ms / minuteMs, statistics.buckets.length];
        assert.deepEqual(actual, expected);
      }
    });

    it('[find A4] return activity in the same pages as the server list', async () => {
      const key = await world.toolhost.createKey({ workspace: 'paged' });
      const send = createKeyClient(world.toolhost, key);
      for (const slug of ['paged-a', 'paged-b', 'paged-c'])
        assert.equal((await send('POST', '/servers', buildServerAt(slug, upstream.url))).status, 201);
      let query = '?limit=2';
      for (const expected of [2, 1]) {
        const [servers, activity] = [await get(`/servers${query}`, key), await get(`/activity${query}`, key)];
        const slugs = pluck(activity.body.servers, 'slug');
        assert.equal(slugs.length, expected);
        assert.deepEqual(slugs, pluck(servers.body.servers, 'slug'));
        assert.equal(activity.body.next_cursor, servers.body.next_cursor);
        query = `?limit=2&cursor=${activity.body.next_cursor}`;
      }
    });

    it('refuse a time range that ends before it starts, and an invalid number of intervals', async () => {
      const refused = async (query: string) => {
        const { status, body } = await world.toolhost.rest('GET', `/statistics?${query}`);
        assert.equal(status, 400, query);
        return (body.problems as Json[])[0]?.path;
      };
      assert.equal(await refused('since=2026-11-20T10:00:00Z&until=2026-11-20T10:00:00Z'), 'since');
      assert.equal(await refused('since=yesterday'), 'since');
      for (const buckets of ['0', '501', 'x']) assert.equal(await refused(`buckets=${buckets}`), 'buckets');
      const tiny = await getStatistics('since=2026-11-20T10:00:00.000Z&until=2026-11-20T10:00:00.002Z&buckets=500');
      assert.deepEqual([tiny.bucket_ms, tiny.buckets.length], [minuteMs, 1]);
    });
  });
}

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { followRecords, type ReadRecords } from '../../apps/cli/src/commands/follow-records.ts';
import { getRunCount } from '../sets.ts';
import { eventually } from '../support/eventually.ts';
import { pluck } from '../support/pluck.ts';
import { startCommandService } from '../support/toolhost/command-world.ts';
import { startFollowing } from '../support/toolhost/follow-command.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

type Call = { id: string; at: string; tool: string; outcome: string; server: string };
type Calls = { calls: Call[]; next_cursor?: string };

const timeoutMs = 30_000;

describe('toolhost calls and audit', async () => {
  const upstream = await startRecordingUpstream();
  const { running, env, run, runJson } = await startCommandService({ egressPorts: [upstream.port] });
  const tools = ['run', 'slow', 'fail'].map((name) =>
    buildToolAt(`${upstream.url}/${name}`, { name, timeout_ms: 20_000 }),
  );
  await running.createServer(buildServerAt('things', upstream.url, { tools }));
  await running.createServer(buildServerAt('others', upstream.url));
  upstream.on('GET /fail', () => ({ status: 500 }));
  after(() => upstream.close());
  const call = (tool = 'run', slug = 'things') => running.callTool(slug, 'some-token', tool);
  const listCalls = async () => (await running.rest('GET', '/calls?limit=200')).body as unknown as Calls;

  it('[ship 7] lists calls newest first, as text and as JSON, with the filters of the service', async () => {
    await call();
    await call('fail');
    await call('get', 'others');
    const all = await listCalls();
    assert.equal(all.calls.length, 3);
    const json = (...args: string[]) => runJson<Calls>(['calls', ...args]);
    assert.deepEqual(await json(), all);
    const tools = async (...args: string[]) =>
      (await json(...args)).calls.map(({ server, tool }) => `${server} ${tool}`);
    assert.deepEqual(await tools('--outcome', 'upstream_status'), ['things fail']);
    assert.deepEqual(await tools('--server', 'things', '--tool', 'run'), ['things run']);
    assert.deepEqual(await tools('--caller', 'api_key'), []);
    assert.equal((await tools('--since', '1h')).length, 3);
    assert.deepEqual(await tools('--since', '2099-01-01'), []);
    const first = await json('--limit', '1');
    assert.deepEqual([first.calls, typeof first.next_cursor], [all.calls.slice(0, 1), 'string']);
    const { stdout } = await run(['calls', '--server', 'things']);
    const lines = stdout.trimEnd().split('\n');
    assert.match(lines[0] ?? '', /^\S+Z {2}upstream_status {4}500 {2}\s*\d+ ms {2}things fail {2}\(.*500.*\)$/);
    assert.match(lines[1] ?? '', /^\S+Z {2}ok {17}200 {2}\s*\d+ ms {2}things run$/);
    for (const option of ['--since=yesterday', '--outcome=bad', '--limit=0'])
      assert.equal((await run(['calls', option])).code, 2, option);
  });

  it('[ship 7] follows calls until Ctrl-C and prints each once, even one that ends long after later ones', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<object>();
    upstream.on('GET /slow', () => released);
    const following = startFollowing(['calls', '--json', '--limit', '1'], env);
    await eventually(() => assert.equal(following.lines().length, 1), timeoutMs);
    const slow = call('slow');
    for (let i = 0; i < 5; i++) await call();
    await eventually(() => assert.equal(following.lines().length, 6), timeoutMs);
    release({ body: {} });
    await slow;
    await eventually(() => assert.equal(following.lines().length, 7), timeoutMs);
    const expected = pluck((await listCalls()).calls.slice(0, 7), 'id');
    assert.deepEqual(following.ids().toSorted(), expected.toSorted());
    assert.deepEqual(await following.end(), { code: 0, stderr: '' });
  });

  it('[ship 7] lists and follows audit events', async () => {
    type Events = { events: { operation: string; target?: string }[] };
    const { events } = await runJson<Events>(['audit']);
    assert.deepEqual(events, (await running.rest('GET', '/audit')).body.events);
    assert.ok(events.some(({ operation, target }) => operation === 'createMcpServer' && target === 'things'));
    const { stdout } = await run(['audit', '--limit', '1']);
    assert.match(stdout, /^\S+Z {2}\w+ .* by (api_key|operator) \S+/);
    assert.deepEqual((await runJson<Events>(['audit', '--since', '2099-01-01'])).events, []);
    const following = startFollowing(['audit', '--limit', '1'], env);
    await eventually(() => assert.equal(following.lines().length, 1), timeoutMs);
    await running.createServer(buildServerAt('followed', upstream.url));
    await eventually(() => assert.match(following.lines()[1] ?? '', /createMcpServer {5}followed/), timeoutMs);
    assert.equal((await following.end()).code, 0);
  });
});

describe('following records', () => {
  type Item = { id: string; at: string };
  const start = Date.parse('2026-01-01T00:00:00Z');
  /** Records that appear between two polls, with times up to two minutes before the newest. */
  const arrivals = fc.array(fc.array(fc.integer({ min: 0, max: 120_000 }), { maxLength: 8 }), { maxLength: 12 });

  it('[ship 7] shows each record once, however late and in whatever order records appear', async () => {
    await fc.assert(
      fc.asyncProperty(arrivals, fc.integer({ min: 1, max: 5 }), async (polls, page) => {
        const stored: Item[] = [];
        let clock = start;
        const add = (lateMs: number) =>
          stored.push({ id: `call_${stored.length}`, at: new Date(clock - lateMs).toISOString() });
        for (let i = 0; i < 4; i++) add(i * 1000);
        const read: ReadRecords<Item> = async ({ since = 0, cursor, limit }) => {
          const sorted = stored
            .filter(({ at }) => Date.parse(at) >= since)
            .toSorted((a, b) => (a.at === b.at ? (a.id < b.id ? 1 : -1) : a.at < b.at ? 1 : -1));
          const from = cursor === undefined ? 0 : sorted.findIndex(({ id }) => id === cursor) + 1;
          const entries = sorted.slice(from, from + Math.min(page, limit));
          return { entries, nextCursor: from + entries.length < sorted.length ? entries.at(-1)?.id : undefined };
        };
        const shown: string[] = [];
        const endOfTest = new Error('over');
        let waits = 0;
        const following = followRecords({
          read,
          showRecords: (records) => shown.push(...records.map(({ id }) => id)),
          since: undefined,
          initialCount: 2,
          now: clock,
          note: () => undefined,
          async wait() {
            clock += 1000;
            for (const lateMs of polls[waits] ?? []) add(lateMs);
            // After the last arrival, the whole window is read once more.
            if (++waits > polls.length + 11) throw endOfTest;
          },
        });
        await assert.rejects(following, endOfTest);
        // Of the four records that were there before, the newest two are shown.
        const expected = stored.map(({ id }) => id).toSpliced(2, 2);
        assert.deepEqual(shown.toSorted(), expected.toSorted());
      }),
      { numRuns: getRunCount(100) },
    );
  });
});

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createLimits } from '../../src/gateway/limits/limits.ts';
import { serverAt, toolAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { mirrors, modernMessage } from '../support/mcp.ts';
import { operate } from '../support/toolhost/operate.ts';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const token = 'token-of-the-caller';
const messageOf = (reply: Reply | undefined) => String((reply?.body.error as Json | undefined)?.message);
const count = (replies: readonly Reply[], status: number) => replies.filter((reply) => reply.status === status).length;

describe('[sec M9] limits of a workspace', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  /** The monotonic clock of the service. */
  let at: number;
  beforeEach(async () => {
    at = 1_000_000;
    upstream = await startRecordingUpstream();
  });
  afterEach(() => Promise.all([toolhost.stop(), upstream.close()]));

  /** Servers `slug-1` and so on, each with the path `/slug-1` upstream. */
  const start = async (env: Record<string, string>, servers: number) => {
    toolhost = await startToolhost({
      egress: [upstream.port],
      env,
      surroundings: { clock: () => at, queueMs: 60_000 },
    });
    await serve('greedy', servers);
    await serve('modest', 1);
  };
  const serve = async (workspace: string, servers: number) => {
    const key = await toolhost.key({ workspace });
    for (let n = 1; n <= servers; n += 1) {
      const tool = toolAt(`${upstream.url}/${workspace}-${n}`, {
        input_schema: { n: { type: 'integer', optional: true } },
        timeout_ms: 20_000,
      });
      const body = serverAt(`${workspace}-${n}`, '', { tools: [tool] });
      assert.equal((await toolhost.rest('POST', '/servers', { key, body })).status, 201);
    }
  };
  const call = (slug: string, args: Json = {}) =>
    toolhost.rpc(slug, token, 'tools/call', { name: 'get', arguments: args });
  const flood = (servers: number, each: number) =>
    Array.from({ length: servers * each }, (_, n) => call(`greedy-${(n % servers) + 1}`));
  const held = (path: string) => upstream.requests.filter(({ url }) => url.startsWith(path));
  const answerAll = () => {
    upstream.on('*', () => ({ body: {} }));
    for (const request of upstream.requests) request.release({ body: {} });
  };

  it('refuses calls above five times the rate of one server, without effect on other workspaces', async () => {
    await start({ CALLS_PER_SECOND: '2' }, 6);
    // An idle lane may use a second of its rate at once, and the next call.
    const replies = await Promise.all(flood(6, 3));
    assert.deepEqual([count(replies, 200), count(replies, 429)], [11, 7]);
    const refused = replies.find((reply) => reply.status === 429);
    assert.match(messageOf(refused), /the servers of this workspace together take 10 a second/);
    assert.match(messageOf(refused), /this call was not made, try again in 1 s/);
    assert.equal(refused?.headers.get('retry-after'), '1');
    assert.equal(upstream.requests.length, 11);
    assert.equal((await call('modest-1')).status, 200);
    const key = await toolhost.key({ workspace: 'greedy' });
    const { body } = await toolhost.rest('GET', '/calls?outcome=limited', { key });
    assert.equal((body.calls as Json[]).length, 7);
    at += 1000;
    assert.equal((await call('greedy-6')).status, 200);
  });

  it('runs five times as many calls at once as one server, and lets only its own calls wait', async () => {
    await start({ CONCURRENT_CALLS: '2' }, 6);
    upstream.on('*', () => 'hold');
    const calls = flood(6, 2);
    await upstream.waitForRequest(10);
    const modest = call('modest-1');
    const request = await upstream.waitForRequest(11);
    assert.match(request.url, /^\/modest-1/);
    request.release({ body: {} });
    assert.equal((await modest).status, 200);
    assert.equal(held('/greedy').length, 10);
    answerAll();
    assert.equal(count(await Promise.all(calls), 200), 12);
  });

  it('[sec F5] gets 429 for a slow upstream, while another workspace is served at once', async () => {
    await start({ CONCURRENT_CALLS: '2' }, 6);
    upstream.on('*', (request) => (request.url.startsWith('/greedy') ? 'hold' : { body: {} }));
    // Ten run; six servers have queues of 50, and so has the workspace.
    const calls = flood(6, 100);
    await upstream.waitForRequest(10);
    for (let n = 0; n < 10; n += 1) assert.equal((await call('modest-1')).status, 200);
    const early: Reply[] = [];
    for (const each of calls) void each.then((reply) => early.push(reply));
    await eventually(() => assert.ok(count(early, 429) >= 288, String(early.length)));
    assert.equal(held('/greedy').length, 10);
    answerAll();
    const replies = await Promise.all(calls);
    assert.deepEqual([count(replies, 200), count(replies, 429)], [312, 288]);
    assert.equal((await call('greedy-1')).status, 200);
  });

  it('starts waiting calls in order, while servers take turns', async () => {
    await start({}, 3);
    await operate(toolhost, 'setWorkspaceLimits', 'greedy', { concurrent_calls: 1 });
    upstream.on('*', () => 'hold');
    const key = await toolhost.key({ workspace: 'greedy' });
    const use = async () => (await toolhost.rest('GET', '/workspace/limits', { key })).body.use;
    const calls: Promise<Reply>[] = [];
    for (const [waiting, server] of [1, 1, 1, 2, 3, 3].entries()) {
      calls.push(call(`greedy-${server}`, { n: waiting + 1 }));
      await eventually(async () => assert.deepEqual(await use(), { running: 1, waiting, refused: 0 }));
    }
    for (const [index, expected] of ['1', '4', '5', '2', '6', '3'].entries()) {
      const request = await upstream.waitForRequest(index + 1);
      assert.equal(request.url.split('n=')[1], expected);
      request.release({ body: {} });
    }
    assert.equal(count(await Promise.all(calls), 200), 6);
    assert.deepEqual(await use(), { running: 0, waiting: 0, refused: 0 });
  });

  it('a call that is cancelled while it waits leaves the queue and is never sent', async () => {
    await start({}, 2);
    await operate(toolhost, 'setWorkspaceLimits', 'greedy', { concurrent_calls: 1 });
    upstream.on('*', () => 'hold');
    const running = call('greedy-1');
    const request = await upstream.waitForRequest();
    const leaving = new AbortController();
    const waiting = fetch(`${toolhost.url}/mcp/greedy-2`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
        ...mirrors('tools/call', 'get'),
      },
      body: JSON.stringify(modernMessage('tools/call', { name: 'get', arguments: {} })),
      signal: leaving.signal,
    });
    const key = await toolhost.key({ workspace: 'greedy' });
    const isWaiting = (n: number) =>
      eventually(async () => {
        const { body } = await toolhost.rest('GET', '/workspace/limits', { key });
        assert.equal((body.use as Json).waiting, n);
      });
    await isWaiting(1);
    leaving.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    await isWaiting(0);
    request.release({ body: {} });
    assert.equal((await running).status, 200);
    assert.equal(upstream.requests.length, 1);
    const { body } = await toolhost.rest('GET', '/calls?outcome=cancelled', { key });
    assert.deepEqual(
      (body.calls as Json[]).map((record) => record.server),
      ['greedy-2'],
    );
  });
});

describe('[sec M9] the fair share of a process', () => {
  const limits = {
    server: { callsPerSecond: 0, concurrentCalls: 0 },
    workspace: { callsPerSecond: 0, concurrentCalls: 0 },
  };
  const serverOf = (workspaceId: string) => ({ id: `server of ${workspaceId}`, workspaceId, limits });

  it('a workspace gets at most as much as is still free', async () => {
    const gate = createLimits({ concurrentPerKey: 0, clock: () => 0, lagMs: () => 0, queueMs: 10, capacity: 9 });
    const enterAll = async (workspace: string) => {
      const slots = [];
      try {
        for (;;) slots.push(await gate.enter(serverOf(workspace), undefined));
      } catch (error) {
        assert.match(String(error), /the service is busy, and this workspace has its share/);
      }
      return slots;
    };
    const first = await enterAll('first');
    const second = await enterAll('second');
    const third = await enterAll('third');
    assert.deepEqual([first.length, second.length, third.length], [5, 2, 1]);
    assert.deepEqual(gate.snapshot(), {
      running: 8,
      waiting: 0,
      refused: { ...Object.fromEntries(Object.keys(gate.snapshot().refused).map((by) => [by, 0])), fair_share: 3 },
    });
    for (const place of [...first, ...second, ...third]) gate.leave(place);
    assert.equal((await enterAll('third')).length, 5);
  });

  it('drops idle state, however many servers were called', async () => {
    const gate = createLimits({ concurrentPerKey: 5, clock: () => 0, lagMs: () => 0, queueMs: 10 });
    const kept = await gate.enter({ id: 'kept', workspaceId: 'w', limits }, 'k');
    for (let n = 0; n < 25_000; n += 1) {
      gate.leave(await gate.enter({ id: `s${n}`, workspaceId: `w${n}`, limits }, `k${n}`));
    }
    assert.deepEqual(gate.serverUse('kept'), { running: 1, waiting: 0, refused: 0 });
    gate.leave(kept);
    assert.equal(gate.snapshot().running, 0);
  });
});

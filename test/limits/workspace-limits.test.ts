import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import { divideProcessMemory } from '../../apps/server/src/app/process-memory.ts';
import { Limits } from '../../apps/server/src/gateway/limits/limits.ts';
import { eventually } from '../support/eventually.ts';
import { callUntil, countStatus, getErrorMessage } from '../support/tool-calls.ts';
import { runOperatorOperation } from '../support/toolhost/run-operator-operation.ts';
import { countShedWork } from '../support/toolhost/scrape-metrics.ts';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const megabyte = 1024 * 1024;
const token = 'token-of-the-caller';

describe('[sec M9] workspace limits', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  /** The monotonic clock of the service. */
  let clockMs: number;
  beforeEach(async () => {
    clockMs = 1_000_000;
    upstream = await startRecordingUpstream();
  });
  afterEach(() => Promise.all([toolhost.stop(), upstream.close()]));

  /** Creates servers `slug-1` and so on, each with the path `/slug-1` upstream. */
  const start = async (env: Record<string, string>, servers: number) => {
    toolhost = await startToolhost({ egressPorts: [upstream.port], env, runtimeOptions: { clock: () => clockMs } });
    await createServers('greedy', servers);
    await createServers('modest', 1);
  };
  const createServers = async (workspace: string, servers: number) => {
    const key = await toolhost.createKey({ workspace });
    const options = { input_schema: { n: { type: 'integer', optional: true } }, timeout_ms: 20_000 };
    for (let n = 1; n <= servers; n += 1) {
      const tools = [buildToolAt(`${upstream.url}/${workspace}-${n}`, options)];
      const body = buildServerAt(`${workspace}-${n}`, '', { tools });
      assert.equal((await toolhost.rest('POST', '/servers', { key, body })).status, 201);
    }
  };
  /** Limits the greedy workspace to one concurrent call. Returns a function that shows the use of its limits. */
  const limitToOneCall = async () => {
    await runOperatorOperation(toolhost, 'setWorkspaceLimits', 'greedy', { concurrent_calls: 1 });
    const key = await toolhost.createKey({ workspace: 'greedy' });
    return async () => (await toolhost.rest('GET', '/workspace/limits', { key })).body.use as Json;
  };
  const listCalls = async (outcome: string) => {
    const key = await toolhost.createKey({ workspace: 'greedy' });
    return (await toolhost.rest('GET', `/calls?outcome=${outcome}`, { key })).body.calls as Json[];
  };
  const call = (slug: string, args: Json = {}) =>
    toolhost.rpc(slug, token, 'tools/call', { name: 'get', arguments: args });
  const flood = (servers: number, each: number) =>
    Array.from({ length: servers * each }, (_, n) => call(`greedy-${(n % servers) + 1}`));
  const findRequests = (path: string) => upstream.requests.filter(({ url }) => url.startsWith(path));
  const respondToAll = () => {
    upstream.on('*', () => ({ body: {} }));
    for (const request of upstream.requests) request.release({ body: {} });
  };

  it('reject calls above five times the rate of one server, without affecting other workspaces', async () => {
    await start({ CALLS_PER_SECOND: '2' }, 6);
    // An idle limiter immediately allows one second of its rate, and the next call.
    const replies = await Promise.all(flood(6, 3));
    assert.deepEqual([countStatus(replies, 200), countStatus(replies, 429)], [11, 7]);
    const refused = replies.find((reply) => reply.status === 429);
    assert.match(getErrorMessage(refused), /all servers of this workspace together get at most 10 per second/);
    assert.match(getErrorMessage(refused), /The call was not made; retry in 1 s/);
    assert.equal(refused?.headers.get('retry-after'), '1');
    assert.equal(upstream.requests.length, 11);
    assert.equal((await call('modest-1')).status, 200);
    assert.equal((await listCalls('limited')).length, 7);
    clockMs += 1000;
    assert.equal((await call('greedy-6')).status, 200);
  });

  it("allow five times as many concurrent calls as one server, and queue only the workspace's own calls", async () => {
    await start({ CONCURRENT_CALLS: '2' }, 6);
    upstream.on('*', () => 'hold');
    const calls = flood(6, 2);
    await upstream.waitForRequest(10);
    const modestCall = call('modest-1');
    const request = await upstream.waitForRequest(11);
    assert.match(request.url, /^\/modest-1/);
    request.release({ body: {} });
    assert.equal((await modestCall).status, 200);
    assert.equal(findRequests('/greedy').length, 10);
    respondToAll();
    assert.equal(countStatus(await Promise.all(calls), 200), 12);
  });

  it('[sec F5] return 429 for a slow upstream, while another workspace is served immediately', async () => {
    await start({ CONCURRENT_CALLS: '2' }, 6);
    upstream.on('*', (request) => (request.url.startsWith('/greedy') ? 'hold' : { body: {} }));
    // Ten calls run. Each of the six servers has a queue of 50, and so has the workspace.
    const calls = flood(6, 100);
    await upstream.waitForRequest(10);
    for (let n = 0; n < 10; n += 1) assert.equal((await call('modest-1')).status, 200);
    const earlyReplies: Reply[] = [];
    for (const each of calls) void each.then((reply) => earlyReplies.push(reply));
    await eventually(() => assert.ok(countStatus(earlyReplies, 429) >= 288, String(earlyReplies.length)));
    assert.equal(findRequests('/greedy').length, 10);
    respondToAll();
    const replies = await Promise.all(calls);
    assert.deepEqual([countStatus(replies, 200), countStatus(replies, 429)], [312, 288]);
    assert.equal((await call('greedy-1')).status, 200);
  });

  it('start queued calls in order, alternating between servers', async () => {
    await start({}, 3);
    const getUse = await limitToOneCall();
    upstream.on('*', () => 'hold');
    const calls: Promise<Reply>[] = [];
    for (const [waiting, server] of [1, 1, 1, 2, 3, 3].entries()) {
      calls.push(call(`greedy-${server}`, { n: waiting + 1 }));
      await eventually(async () => assert.deepEqual(await getUse(), { running: 1, waiting, refused: 0 }));
    }
    for (const [index, expected] of ['1', '4', '5', '2', '6', '3'].entries()) {
      const request = await upstream.waitForRequest(index + 1);
      assert.equal(request.url.split('n=')[1], expected);
      request.release({ body: {} });
    }
    assert.equal(countStatus(await Promise.all(calls), 200), 6);
    assert.deepEqual(await getUse(), { running: 0, waiting: 0, refused: 0 });
  });

  it('remove a call that is canceled while it is queued, and never send it', async () => {
    await start({}, 2);
    const getUse = await limitToOneCall();
    upstream.on('*', () => 'hold');
    const running = call('greedy-1');
    const request = await upstream.waitForRequest();
    const abortController = new AbortController();
    const queued = callUntil(abortController.signal, toolhost, 'greedy-2', token);
    await eventually(async () => assert.equal((await getUse()).waiting, 1));
    abortController.abort();
    await assert.rejects(queued, { name: 'AbortError' });
    await eventually(async () => assert.equal((await getUse()).waiting, 0));
    request.release({ body: {} });
    assert.equal((await running).status, 200);
    assert.equal(upstream.requests.length, 1);
    const servers = (await listCalls('cancelled')).map((record) => record.server);
    assert.deepEqual(servers, ['greedy-2']);
  });
});

describe('[sec M9] the fair share of a process', () => {
  const noLimits = { callsPerSecond: 0, concurrentCalls: 0 };
  const limits = { server: noLimits, workspace: noLimits };
  const anonymousCaller = { id: undefined, keyId: undefined, network: '198.51.100.1', isVerified: false };
  const getServer = (workspaceId: string) => ({ id: `server of ${workspaceId}`, workspaceId, limits });

  it('gives a workspace at most half of the free capacity', async () => {
    const limits = new Limits({ concurrentPerKey: 0, clock: () => 0, lag: { ms: 0 }, queueMs: 10, capacity: 9 });
    const enterAll = async (workspace: string) => {
      const slots = [];
      try {
        for (;;) slots.push(await limits.enter(getServer(workspace), anonymousCaller));
      } catch (error) {
        assert.match(String(error), /The service is busy, and the workspaces of this owner have used their share/);
      }
      return slots;
    };
    const first = await enterAll('first');
    const second = await enterAll('second');
    const third = await enterAll('third');
    assert.deepEqual([first.length, second.length, third.length], [5, 2, 1]);
    const { running, waiting, refused } = limits.snapshot();
    assert.deepEqual([running, waiting], [8, 0]);
    const reasons = Object.entries(refused).filter(([, count]) => count > 0);
    assert.deepEqual(reasons, [['fair_share', 3]]);
    for (const slot of [...first, ...second, ...third]) limits.leave(slot, anonymousCaller);
    assert.equal((await enterAll('third')).length, 5);
  });
});

describe('[find A7] the memory of calls', async () => {
  const heldResponses: ServerResponse[] = [];
  // The path states how many megabytes are sent. A response at /held is not completed.
  const upstream = createServer((request, response) => {
    const [, kind, megabytes] = (request.url ?? '').split('/');
    request.resume();
    response.setHeader('Content-Type', 'text/plain');
    if (kind === 'held') heldResponses.push(response);
    const body = 'x'.repeat(Number(megabytes) * megabyte);
    if (kind === 'held' && body !== '') response.write(body);
    else if (kind !== 'held') response.end(body);
  }).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  const divideMemory = () => ({ ...divideProcessMemory(1), work: 40 * megabyte, queuedInputs: 20 * megabyte });
  const toolhost = await startToolhost({ egressPorts: [port], runtimeOptions: { divideMemory, queueMs: 60_000 } });
  const keys = {
    greedy: await toolhost.createKey({ workspace: 'greedy' }),
    modest: await toolhost.createKey({ workspace: 'modest' }),
  };
  const url = `http://127.0.0.1:${port}`;
  const wait = { timeout_ms: 20_000, method: 'POST', input_schema: { a: { type: 'object' } } };
  const tools = [
    buildToolAt(`${url}/whole/3`),
    buildToolAt(`${url}/held/5`, { name: 'long', timeout_ms: 20_000 }),
    buildToolAt(`${url}/held/0`, { ...wait, name: 'wait' }),
  ];
  for (const [slug, key] of Object.entries(keys)) {
    const created = await toolhost.rest('POST', '/servers', { key, body: { name: slug, slug, tools } });
    assert.equal(created.status, 201, created.text);
  }
  after(async () => {
    upstream.closeAllConnections();
    await toolhost.stop();
    upstream.close();
  });

  const call = (slug: 'greedy' | 'modest', name: string, args = {}) =>
    toolhost.rpc(slug, keys[slug], 'tools/call', { name, arguments: args });

  it('gives a workspace at most half of the free memory while responses arrive', async () => {
    const replies: Reply[] = [];
    const all = Array.from({ length: 6 }, () => call('greedy', 'long').then((reply) => replies.push(reply)));
    await eventually(() => assert.equal(replies.length, 2));
    assert.ok((await countShedWork(toolhost.url, 'memory')) >= 2);
    assert.doesNotMatch((await call('modest', 'get')).text, /isError":true/);
    for (const { status, text } of replies) {
      assert.equal(status, 200);
      assert.match(text, /no memory left for its response and the workspaces of this owner have used their share; /);
      assert.match(text, / fewer parallel large calls/);
    }
    for (const response of heldResponses.splice(0)) response.end();
    await Promise.all(all);
    await eventually(() => assert.equal(toolhost.running.app.runner.memory.bytes, 0));
  });

  it('gives a workspace at most half of the free memory for arguments', async () => {
    const replies: Reply[] = [];
    const a = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`name${n}`, 1]));
    const all = Array.from({ length: 20 }, () => call('greedy', 'wait', { a }).then((reply) => replies.push(reply)));
    await eventually(() => assert.ok(replies.length > 8, `${replies.length} were refused`), 20_000);
    for (const { text } of replies) assert.match(text, /no memory left for /);
    const before = heldResponses.length;
    let resultText: string | undefined;
    const modestCall = call('modest', 'wait', { a }).then(({ text }) => {
      resultText = text;
    });
    await eventually(() => assert.ok(heldResponses.length > before));
    assert.doesNotMatch((await call('modest', 'get')).text, /isError":true|error/);
    // Other calls of the greedy workspace may still be on their way to the upstream.
    await eventually(() => {
      for (const response of heldResponses.splice(0)) response.end('done');
      assert.ok(resultText !== undefined && replies.length === all.length);
    }, 20_000);
    await Promise.all([modestCall, ...all]);
    assert.match(resultText ?? '', /done/);
    await eventually(() => assert.equal(toolhost.running.app.runner.memory.bytes, 0));
  });
});

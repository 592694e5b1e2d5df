import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import { createLoopLag } from '../../apps/server/src/app/observability/loop-lag.ts';
import { defaultRuntimeOptions } from '../../apps/server/src/process/start.ts';
import { assertRefused } from '../support/mcp.ts';
import { callGet, callGetTimes, countStatus } from '../support/tool-calls.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import {
  type Json,
  type Reply,
  type StartOptions,
  startToolhost,
  type TestToolhost,
} from '../support/toolhost/toolhost.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Two calls and a ping. */
const batch = [
  ...['a', 'b'].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'get', arguments: {} } })),
  { jsonrpc: '2.0', id: 'c', method: 'ping' },
];
/** Returns the id and the error code or result of each response of a batch. */
const getOutcomes = (reply: Reply) =>
  (reply.body as unknown as Json[]).map(({ id, error, result }) => {
    const { code } = (error ?? {}) as { code?: number };
    return `${id} ${code ?? JSON.stringify(result)}`;
  });
const stored = { authentication: { type: 'Bearer', token: 'stored-credential' } };

describe('call limits', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
  });
  afterEach(() => Promise.all([toolhost.stop(), upstream.close()]));

  /** Time of the service in ms. The limits use no other clock. */
  let clockMs: number;
  const start = async (env: Record<string, string>, runtimeOptions: StartOptions['runtimeOptions'] = {}) => {
    clockMs = 1_000_000;
    const options = { env, runtimeOptions: { clock: () => clockMs, ...runtimeOptions } };
    toolhost = await startToolhost({ ...options, egressPorts: [upstream.port] });
    for (const slug of ['busy', 'quiet']) await toolhost.createServer(buildServerAt(slug, upstream.url, stored));
  };
  const call = (slug: string, token: string) => callGet(toolhost, slug, token);

  it('[mcp 34] reject calls above the rate of one server with the time to wait, and no others, and count them in the metrics', async () => {
    await start({ CALLS_PER_SECOND: '5' });
    const token = await toolhost.createKey();
    const replies = await callGetTimes(toolhost, 'busy', token, 20);
    const servedCount = countStatus(replies, 200);
    assert.ok(servedCount >= 5 && servedCount <= 6, String(servedCount));
    assert.equal(countStatus(replies, 429), 20 - servedCount);
    const stateless = await toolhost.statelessRpc('busy', token, 'tools/call', { name: 'get' });
    for (const refused of [replies.find((reply) => reply.status === 429), stateless]) {
      assert.ok(refused);
      assert.match(assertRefused(refused, 429, 429), /Too many calls.*at most 5 per second\. .*not made; retry in 1 s/);
      assert.equal(refused.headers.get('retry-after'), '1');
    }
    const batchReply = await toolhost.post('busy', batch, { token });
    assert.deepEqual(getOutcomes(batchReply), ['a 429', 'b 429', 'c {}']);
    assert.equal(upstream.requests.length, servedCount);
    const metrics = await scrapeMetrics(toolhost.url);
    const limitedCount = 23 - servedCount;
    assert.equal(metrics.sum('toolhost_calls_total', { outcome: 'limited' }), limitedCount);
    assert.equal(metrics.sum('toolhost_calls_total', { outcome: 'ok' }), servedCount);
    assert.equal(metrics.value('toolhost_limit_refusals_total', { limit: 'server_rate' }), limitedCount);
    assert.equal(metrics.sum('toolhost_limit_refusals_total'), limitedCount);
    assert.equal((await call('quiet', token)).status, 200);
    assert.equal((await toolhost.rpc('busy', token, 'tools/list')).status, 200);
    clockMs += 1000;
    assert.equal((await call('busy', token)).status, 200);
    const { body } = await toolhost.rest('GET', '/calls?outcome=limited&limit=200');
    assert.ok((body.calls as Json[]).length >= 20 - servedCount);
  });

  it('[mcp 34] queue calls above the concurrency of a server, up to a maximum number and time', async () => {
    await start({ CONCURRENT_CALLS: '2', CONCURRENT_CALLS_PER_KEY: '0' });
    upstream.on('*', () => 'hold');
    const token = await toolhost.createKey();
    const calls = Array.from({ length: 54 }, () => call('busy', token));
    const [first, second] = [await upstream.waitForRequest(1), await upstream.waitForRequest(2)];
    const overflow = await Promise.race(calls);
    assert.equal(overflow.status, 429);
    upstream.on('*', () => ({ body: {} }));
    assert.equal((await call('quiet', token)).status, 200);
    first.release({ body: {} });
    const released = Promise.all(calls);
    await upstream.waitForRequest(52);
    second.release({ body: {} });
    const replies = await released;
    assert.deepEqual([countStatus(replies, 200), countStatus(replies, 429)], [52, 2]);
  });

  it('[mcp 34] reject a call that has waited too long, and free its slot in the queue', async () => {
    await start({ CONCURRENT_CALLS: '1', CONCURRENT_CALLS_PER_KEY: '0' }, { queueMs: defaultRuntimeOptions.queueMs });
    upstream.on('*', () => 'hold');
    const token = await toolhost.createKey();
    const running = call('busy', token);
    const request = await upstream.waitForRequest();
    const waited = await call('busy', token);
    assert.equal(waited.status, 429);
    assert.equal(waited.headers.get('retry-after'), '2');
    upstream.on('*', () => ({ body: {} }));
    request.release({ body: {} });
    assert.equal(countStatus([await running, await call('busy', token)], 200), 2);
  });

  it('[mcp 34] limit one API key to its own share of a server', async () => {
    await start({ CONCURRENT_CALLS: '3', CONCURRENT_CALLS_PER_KEY: '1' });
    const [greedy, modest] = [await toolhost.createKey(), await toolhost.createKey()];
    upstream.on('*', () => 'hold');
    const flood = Array.from({ length: 20 }, () => call('busy', greedy));
    const heldRequest = await upstream.waitForRequest();
    upstream.on('*', () => ({ body: {} }));
    assert.equal((await call('busy', modest)).status, 200);
    heldRequest.release({ body: {} });
    assert.equal(countStatus(await Promise.all(flood), 200), 20);
  });

  it('free slots after calls of every outcome', async () => {
    await start({ CONCURRENT_CALLS: '1', CONCURRENT_CALLS_PER_KEY: '1' });
    const token = await toolhost.createKey();
    const broken = { headers: { 'content-type': 'application/json' }, body: '{' };
    for (const response of [{ status: 500 }, { status: 302 }, broken, { body: { fine: true } }]) {
      upstream.on('*', () => response);
      for (let n = 0; n < 3; n += 1) assert.equal((await call('busy', token)).status, 200);
      const invalid = { name: 'get', arguments: { unknown: 1 } };
      assert.equal((await toolhost.rpc('busy', token, 'tools/call', invalid)).status, 200);
    }
  });
});

describe('[sec 4.1] an overloaded event loop', async () => {
  const lag = { ms: 0, start: () => undefined, stop: () => undefined };
  const { upstream, toolhost, stop } = await startToolhostWithUpstream({
    runtimeOptions: { createLoopLag: () => lag },
  });
  await toolhost.createServer(buildServerAt('shed', upstream.url));
  after(stop);

  const call = () => toolhost.rpc('shed', 'any-token', 'tools/call', { name: 'get', arguments: {} });

  it('rejects only new calls, immediately, with 503 and the time to wait', async () => {
    upstream.on('*', () => 'hold');
    const running = call();
    const request = await upstream.waitForRequest();
    lag.ms = 201;
    const refused = await call();
    assert.match(assertRefused(refused, 503, 503), /The service is overloaded.*The call was not made; retry in 1 s\.$/);
    assert.equal(refused.headers.get('retry-after'), '1');
    request.release({ body: { fine: true } });
    assert.equal((await running).status, 200);
    assert.equal(upstream.requests.length, 1);

    assert.equal((await toolhost.rpc('shed', 'any-token', 'tools/list')).status, 200);
    assert.equal((await toolhost.rpc('manage', await toolhost.createKey(), 'tools/list')).status, 200);
    assert.equal((await toolhost.rest('GET', '/servers')).status, 200);
    for (const path of ['/livez', '/readyz']) assert.equal((await fetch(toolhost.url + path)).status, 200);
    const { body } = await toolhost.rest('GET', '/calls?outcome=limited');
    assert.equal((body.calls as Json[]).length, 1);

    lag.ms = 200;
    upstream.on('*', () => ({ body: {} }));
    assert.equal((await call()).status, 200);
  });

  it('rejects only the calls of a batch', async () => {
    lag.ms = 500;
    assert.deepEqual(getOutcomes(await toolhost.post('shed', batch, { token: 'any-token' })), [
      'a 503',
      'b 503',
      'c {}',
    ]);
    lag.ms = 0;
  });
});

describe('the event loop lag measurement', () => {
  it('requires two measurements in a row: neither one long pause nor startup is overload', async () => {
    const times = [0, 100, 500, 600, 1000, 1400, 1500];
    const ticks = new EventEmitter();
    let readCount = 0;
    const keepAliveTimer = setTimeout(() => undefined, 60_000);
    const lag = createLoopLag(() => {
      ticks.emit('read');
      return times[readCount++] ?? 0;
    });
    assert.equal(readCount, 0);
    lag.start();
    const measured = [lag.ms];
    while (readCount < times.length) {
      await once(ticks, 'read');
      measured.push(lag.ms);
    }
    lag.stop();
    clearTimeout(keepAliveTimer);
    assert.deepEqual(measured, [0, 0, 0, 0, 0, 300, 0]);
  });
});

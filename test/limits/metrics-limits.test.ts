import assert from 'node:assert/strict';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { callGet, countStatus } from '../support/tool-calls.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('limit metrics', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
  });
  afterEach(() => Promise.all([toolhost.stop(), upstream.close()]));
  const start = async (env: Record<string, string>) => {
    toolhost = await startToolhost({ egressPorts: [upstream.port], env, runtimeOptions: { clock: () => 0 } });
    await toolhost.createServer(buildServerAt('busy', upstream.url));
  };
  const call = () => callGet(toolhost, 'busy', 'caller-token-0123456789');

  it('count rejected calls by limit', async () => {
    await start({ CALLS_PER_SECOND: '2' });
    const replies = await Promise.all(Array.from({ length: 20 }, call));
    const refused = countStatus(replies, 429);
    const metrics = await scrapeMetrics(toolhost.url);
    assert.ok(refused > 0);
    assert.equal(metrics.sum('toolhost_calls_total', { outcome: 'limited' }), refused);
    assert.equal(metrics.sum('toolhost_calls_total', { outcome: 'ok' }), 20 - refused);
    assert.equal(metrics.value('toolhost_limit_refusals_total', { limit: 'server_rate' }), refused);
    assert.equal(metrics.sum('toolhost_limit_refusals_total'), refused);
  });

  it('count running and queued calls, and their queue time', async () => {
    await start({ CONCURRENT_CALLS: '1' });
    upstream.on('*', () => 'hold');
    const calls = [call(), call(), call()];
    const first = await upstream.waitForRequest();
    await eventually(async () => {
      const metrics = await scrapeMetrics(toolhost.url);
      assert.equal(metrics.value('toolhost_calls_in_progress', { state: 'running' }), 1);
      assert.equal(metrics.value('toolhost_calls_in_progress', { state: 'waiting' }), 2);
    });
    upstream.on('*', () => ({ body: {} }));
    first.release({ body: {} });
    await Promise.all(calls);
    const metrics = await scrapeMetrics(toolhost.url);
    assert.equal(metrics.sum('toolhost_calls_in_progress'), 0);
    const [waited, total] = ['toolhost_call_queue_seconds_sum', 'toolhost_call_duration_seconds_sum'].map((name) =>
      metrics.value(name),
    ) as [number, number];
    assert.ok(waited > 0 && waited < total);
    // Queue time is neither upstream time nor the service's own overhead.
    const durationMetrics = ['toolhost_upstream_duration_seconds_sum', 'toolhost_overhead_seconds_sum'];
    const sum = durationMetrics.reduce((all, name) => all + metrics.value(name), waited);
    assert.ok(Math.abs(total - sum) < 1e-6, `${total} ${sum}`);
  });

  it('report open circuit breakers', async () => {
    await start({});
    upstream.on('*', () => ({ status: 503 }));
    assert.equal((await scrapeMetrics(toolhost.url)).sum('toolhost_circuit_breakers'), 0);
    for (let n = 0; n < 25; n++) await call();
    const metrics = await scrapeMetrics(toolhost.url);
    assert.equal(metrics.value('toolhost_circuit_breakers', { state: 'open' }), 1);
    assert.equal(metrics.value('toolhost_circuit_breakers', { state: 'half_open' }), 0);
    assert.equal(metrics.sum('toolhost_calls_total', { outcome: 'circuit_open' }), 5);
  });
});

describe('login metrics', async () => {
  const world = await startLoginWorld();
  after(() => world.stop());

  it('count logins that are started, finished, failed, and refreshed', async () => {
    const { slug, client } = await world.createClient();
    const { access_token } = await world.getTokens(client);
    const getLoginEvents = async () => {
      const metrics = await scrapeMetrics(world.toolhost.url);
      return ['started', 'finished', 'failed', 'refreshed', 'refresh_failed'].map((event) =>
        metrics.value('toolhost_logins_total', { event }),
      );
    };
    assert.deepEqual(await getLoginEvents(), [1, 1, 0, 0, 0]);
    world.provider.onToken(() => ({ status: 400, body: { error: 'invalid_grant' } }));
    await world.returnFromProvider(client.authorization());
    assert.deepEqual(await getLoginEvents(), [2, 1, 1, 0, 0]);
    world.provider.onToken();
    world.advanceClock(3582_000);
    await world.callTool(slug, access_token);
    assert.deepEqual(await getLoginEvents(), [2, 1, 1, 1, 0]);
    assert.ok((await scrapeMetrics(world.toolhost.url)).value('toolhost_cache_misses_total', { cache: 'logins' }) >= 1);
  });
});

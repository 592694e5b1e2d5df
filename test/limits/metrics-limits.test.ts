import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { nearExpiryMs, startLoginWorld } from '../support/oauth/login-world.ts';
import { callGet } from '../support/tool-calls.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

describe('limit metrics', async () => {
  const { upstream, toolhost, stop } = await startToolhostWithUpstream({ env: { CONCURRENT_CALLS: '1' } });
  await toolhost.createServer(buildServerAt('busy', upstream.url));
  after(stop);

  it('count running and queued calls, and their queue time', async () => {
    const call = () => callGet(toolhost, 'busy', 'caller-token-0123456789');
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
    const waited = metrics.value('toolhost_call_queue_seconds_sum');
    const total = metrics.value('toolhost_call_duration_seconds_sum');
    assert.ok(waited > 0 && waited < total);
    // Queue time is neither upstream time nor the service's own overhead.
    const durationMetrics = ['toolhost_upstream_duration_seconds_sum', 'toolhost_overhead_seconds_sum'];
    const sum = durationMetrics.reduce((all, name) => all + metrics.value(name), waited);
    assert.ok(Math.abs(total - sum) < 1e-6, `${total} ${sum}`);
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
      const events = ['started', 'finished', 'failed', 'refreshed', 'refresh_failed'];
      return events.map((event) => metrics.value('toolhost_logins_total', { event }));
    };
    assert.deepEqual(await getLoginEvents(), [1, 1, 0, 0, 0]);
    world.provider.onToken(() => ({ status: 400, body: { error: 'invalid_grant' } }));
    await world.returnFromProvider(client.authorization());
    assert.deepEqual(await getLoginEvents(), [2, 1, 1, 0, 0]);
    world.provider.onToken();
    world.advanceClock(nearExpiryMs);
    await world.callTool(slug, access_token);
    assert.deepEqual(await getLoginEvents(), [2, 1, 1, 1, 0]);
    assert.ok((await scrapeMetrics(world.toolhost.url)).value('toolhost_cache_misses_total', { cache: 'logins' }) >= 1);
  });
});

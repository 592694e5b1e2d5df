import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { getBlockedClass } from '@toolhost/safe-http/address';
import type { Resolve } from '@toolhost/safe-http/connector';
import { formatMetrics, mergeMetrics } from '../../apps/server/src/telemetry/metric.ts';
import { eventually } from '../support/eventually.ts';
import { type ParsedMetrics, parseMetrics, scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const token = 'caller-token-canary-0123456789';
const stored = { authentication: { type: 'Bearer', token: 'stored-credential-canary' } };

describe('metrics', () => {
  let key: string;
  let addresses = ['10.1.2.3'];
  const resolve: Resolve = (_hostname, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  const { toolhost, upstream } = useToolhostWithUpstream({ runtimeOptions: { resolve } });
  before(async () => {
    upstream.on('GET /failing', () => ({ status: 503 }));
    upstream.on('GET /slow', () => ({ delayMs: 60, body: {} }));
    upstream.on('GET /silent', () => 'hold');
    upstream.on('GET /held', () => 'hold');
    key = await toolhost.createKey();
    const at = (path: string, more: Json = {}) => buildToolAt(`${upstream.url}${path}`, more);
    const tools = [
      at('/thing', { name: 'fine_canary_tool', input_schema: { text: { type: 'string', optional: true } } }),
      at('/failing', { name: 'failing' }),
      at('/slow', { name: 'slow' }),
      at('/silent', { name: 'silent', timeout_ms: 50 }),
      at('/held', { name: 'held' }),
      buildToolAt('https://inside.example.com/', { name: 'inside' }),
    ];
    await toolhost.createServer({ name: 'Canary name', slug: 'canary-slug', tools });
    await toolhost.createServer(buildServerAt('keyed', upstream.url, stored));
  });

  const call = (name: string, args: Json = {}) => toolhost.callTool('canary-slug', token, name, args);
  /** Returns what was added between two scrapes. */
  async function measureIncrease(work: () => Promise<unknown>) {
    const earlier = await scrapeMetrics(toolhost.url);
    await work();
    const later = await scrapeMetrics(toolhost.url);
    return {
      calls: (labels: Record<string, string>) => later.sum(callsMetric, labels) - earlier.sum(callsMetric, labels),
      count: (name: string, labels: Record<string, string> = {}) => later.sum(name, labels) - earlier.sum(name, labels),
      later,
    };
  }
  const callsMetric = 'toolhost_calls_total';

  it('count each call by outcome, kind of access, and protocol generation', async () => {
    const { calls: countCalls, count } = await measureIncrease(async () => {
      await call('fine_canary_tool');
      await call('fine_canary_tool');
      await call('failing');
      await call('silent');
      await call('inside');
      await call('fine_canary_tool', { text: [5] });
      await toolhost.statelessRpc('keyed', key, 'tools/call', { name: 'get', arguments: {} });
    });
    const openLabels = { access: 'caller_token', generation: 'stateful' };
    const outcomes = { ok: 2, upstream_status: 1, timeout: 1, blocked: 1, invalid_arguments: 1 };
    for (const [outcome, times] of Object.entries(outcomes))
      assert.equal(countCalls({ outcome, ...openLabels }), times, outcome);
    assert.equal(countCalls({ outcome: 'ok', access: 'api_key', generation: 'stateless' }), 1);
    assert.equal(countCalls({}), 7);
    for (const kind of ['call_duration', 'call_queue']) assert.equal(count(`toolhost_${kind}_seconds_count`), 7, kind);
    // The call with invalid arguments sent no request.
    for (const kind of ['upstream_duration', 'overhead'])
      assert.equal(count(`toolhost_${kind}_seconds_count`), 6, kind);
  });

  it('measure the total and the upstream duration, not rounded, in cumulative buckets', async () => {
    const { count, later } = await measureIncrease(() => call('slow'));
    const total = count('toolhost_call_duration_seconds_sum');
    const upstreamPart = count('toolhost_upstream_duration_seconds_sum');
    const overhead = count('toolhost_overhead_seconds_sum');
    const wait = count('toolhost_call_queue_seconds_sum');
    assert.ok(upstreamPart >= 0.055 && total > upstreamPart, `${total} ${upstreamPart}`);
    assert.ok(overhead > 0 && wait >= 0);
    assert.ok(Math.abs(total - upstreamPart - overhead - wait) < 1e-6, `${total} ${upstreamPart} ${overhead} ${wait}`);
    const histograms = [...later.families].filter(([, { type }]) => type === 'histogram').map(([name]) => name);
    assert.equal(histograms.length, 5);
    for (const name of histograms) {
      const buckets = later.buckets(name);
      const sorted = buckets.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]);
      assert.deepEqual(buckets, sorted);
      assert.deepEqual(buckets.at(-1), [Number.POSITIVE_INFINITY, later.value(`${name}_count`)]);
    }
    const bounds = later.buckets('toolhost_call_duration_seconds').map(([bound]) => bound);
    assert.deepEqual([bounds[0], bounds.at(-2)], [0.001, 20]);
  });

  it('count requests by method and status class, whatever methods clients invent', async () => {
    const method = 'canary/method';
    const { count, later } = await measureIncrease(async () => {
      for (const [slug, caller, requestMethod] of [
        ['canary-slug', token, 'tools/list'],
        ['canary-slug', token, method],
        ['canary-slug', undefined, 'tools/list'],
        ['nowhere', token, 'ping'],
      ] as const)
        await toolhost.rpc(slug, caller, requestMethod);
      const notification = { jsonrpc: '2.0', method: 'notifications/initialized' };
      for (const message of ['{', [{ jsonrpc: '2.0', id: 1, method: 'ping' }], notification])
        await toolhost.post('canary-slug', message, { token });
    });
    const name = 'toolhost_mcp_requests_total';
    const methods = ['tools/list 2xx', 'other 2xx', 'tools/list 4xx', 'ping 4xx', 'none 4xx', 'batch 2xx'];
    for (const labels of [...methods, 'notification 2xx']) {
      const [methodLabel = '', status = ''] = labels.split(' ');
      assert.equal(count(name, { method: methodLabel, status }), 1, labels);
    }
    assert.equal(count(name), 7);
    assert.ok(!later.text.includes('canary'));
  });

  it('count rejected credentials by kind at both entry points, and responses of the other entry points', async () => {
    const { count } = await measureIncrease(async () => {
      const manageKey = await toolhost.createKey({ scopes: ['manage'] });
      for (const caller of [undefined, 'wrong', manageKey]) await toolhost.rpc('keyed', caller, 'tools/list');
      assert.equal((await fetch(`${toolhost.url}/api/v1/servers`)).status, 401);
      assert.equal((await toolhost.rest('GET', '/servers', { key: 'wrong' })).status, 401);
      assert.equal((await fetch(`${toolhost.url}/livez`)).status, 200);
    });
    for (const [kind, times] of Object.entries({ missing: 2, invalid: 2, forbidden: 1 }))
      assert.equal(count('toolhost_authentication_refusals_total', { kind }), times, kind);
    const web = 'toolhost_web_requests_total';
    // One of them is the previous scrape.
    assert.deepEqual([count(web, { status: '4xx' }), count(web, { status: '2xx' })], [2, 2]);
  });

  it('[sec E] count blocked addresses by address class', async () => {
    for (const [address, addressClass] of [
      ['127.0.0.1', 'loopback'],
      ['192.168.1.1', 'private'],
      ['fd12::1', 'private'],
      ['169.254.169.254', 'link_local'],
      ['100.64.0.1', 'shared'],
      ['64:ff9b::a9fe:a9fe', 'embedded_ipv4'],
      ['240.0.0.1', 'reserved'],
    ] as const) {
      addresses = ['203.0.114.1', address];
      const { count } = await measureIncrease(() => call('inside'));
      assert.equal(count('toolhost_blocked_addresses_total', { class: addressClass }), 1, address);
      assert.equal(count('toolhost_blocked_addresses_total'), 1);
    }
    assert.equal(getBlockedClass('::ffff:127.0.0.1'), 'loopback');
    assert.equal(getBlockedClass('not an address'), 'reserved');
  });

  it('count cache entries and outbound requests', async () => {
    const { count, later } = await measureIncrease(async () => {
      const fresh = await toolhost.createKey();
      for (let n = 0; n < 3; n++) await toolhost.callTool('keyed', fresh, 'get');
    });
    assert.equal(count('toolhost_cache_misses_total', { cache: 'keys' }), 1);
    assert.equal(count('toolhost_cache_hits_total', { cache: 'keys' }), 2);
    assert.equal(count('toolhost_cache_hits_total', { cache: 'servers' }), 3);
    assert.ok(later.value('toolhost_cache_entries', { cache: 'servers' }) >= 2);
    assert.ok(later.value('toolhost_outbound_pools') >= 1);
    assert.ok(later.value('toolhost_outbound_connections') >= 1);
    upstream.take();
    const heldCall = call('held');
    const request = await upstream.waitForRequest();
    const during = await scrapeMetrics(toolhost.url);
    assert.equal(during.value('toolhost_outbound_requests', { state: 'running' }), 1);
    request.release({ body: {} });
    await heldCall;
  });

  it('describe the state of the process and its database', async () => {
    const later = await eventually(async () => {
      const { later } = await measureIncrease(() => call('fine_canary_tool'));
      assert.ok(later.value('toolhost_call_records_queued') > 0);
      return later;
    });
    await toolhost.rest('GET', '/calls');
    assert.equal((await scrapeMetrics(toolhost.url)).value('toolhost_call_records_queued'), 0);
    assert.equal(later.value('toolhost_call_records_dropped_total'), 0);
    for (const name of ['toolhost_database_up', 'toolhost_ready']) assert.equal(later.value(name), 1, name);
    assert.ok(later.value('toolhost_change_poll_age_seconds') < 60);
    assert.ok(later.value('process_resident_memory_bytes') > 1e7);
    for (const name of ['process_cpu_seconds_total', 'toolhost_event_loop_busy_seconds_total'])
      assert.ok(later.value(name) > 0, name);
    assert.ok(Math.abs(later.value('process_start_time_seconds') - performance.timeOrigin / 1000) < 1);
    const { labels } = later.families.get('toolhost_build_info') ?? assert.fail();
    assert.deepEqual([...labels].sort(), ['database', 'mode', 'node', 'version']);
  });

  it('[sec C] contain no slug, tool, argument, credential, key, host, or workspace', async () => {
    await call('fine_canary_tool', { text: 'argument-canary' });
    await toolhost.statelessRpc('keyed', key, 'tools/call', { name: 'get', arguments: {} });
    const { text, families } = await scrapeMetrics(toolhost.url);
    for (const secret of ['canary', 'keyed', 'fine', key, key.split('_')[1] as string, token, '127.0.0.1'])
      assert.ok(!text.includes(secret), secret);
    // The mode, not the workspace of the same name.
    assert.deepEqual(text.match(/\w+="local"/g), ['mode="local"']);
    const labels = [...families.values()].flatMap((family) => [...family.labels]);
    const knownLabels =
      /^(access|cache|class|database|event|generation|kind|limit|method|mode|node|outcome|state|status|version|what)$/;
    for (const label of labels) assert.match(label, knownLabels);
  });

  it('of several processes are summed, except those where the worst value counts', () => {
    const one = toolhost.running.app.observability.read();
    const other = structuredClone(one);
    for (const { name, samples } of other) {
      if (name === 'toolhost_database_up') for (const sample of samples) sample.value = 0;
      if (name === 'toolhost_change_poll_age_seconds') for (const sample of samples) sample.value = 99;
    }
    const read = (processes: (typeof one)[]): ParsedMetrics => parseMetrics(formatMetrics(mergeMetrics(processes)));
    const [alone, both] = [read([one]), read([one, other])];
    assert.equal(both.sum(callsMetric), 2 * alone.sum(callsMetric));
    assert.ok(alone.sum(callsMetric) > 0);
    const duration = 'toolhost_call_duration_seconds_sum';
    assert.equal(both.value(duration), 2 * alone.value(duration));
    assert.equal(both.value('toolhost_database_up'), 0);
    assert.equal(both.value('toolhost_ready'), 1);
    assert.equal(both.value('toolhost_change_poll_age_seconds'), 99);
    assert.equal(both.value('toolhost_processes'), 2);
    assert.equal(both.value('process_start_time_seconds'), alone.value('process_start_time_seconds'));
  });
});

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Resolve } from '@toolhost/safe-http/connector';
import { version } from '../../apps/server/src/version.ts';
import { eventually } from '../support/eventually.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { startToolhost, statelessMeta, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type CollectedSpan, startTraceCollector, type TraceCollector } from '../support/toolhost/trace-collector.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const token = 'caller-token-canary-0123456789';
const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${parentId}-01`;

/** Waits until the collector has `count` spans. On a busy machine a service may end before they arrive. */
const waitForSpans = (collector: TraceCollector, count: number) =>
  eventually(() => assert.ok(collector.spans.length >= count, `${collector.spans.length} spans`));

describe('traces of calls', () => {
  let upstream: RecordingUpstream;
  let collector: TraceCollector;
  let toolhost: TestToolhost;
  const resolve: Resolve = (_hostname, callback) => callback(null, [{ address: '10.1.2.3', family: 4 }]);

  beforeEach(async () => {
    [upstream, collector] = await Promise.all([startRecordingUpstream(), startTraceCollector()]);
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` };
    toolhost = await startToolhost({ egressPorts: [upstream.port], env, runtimeOptions: { resolve } });
    const input_schema = { id: { type: 'string' }, q: { type: 'string', optional: true } };
    const tool = buildToolAt(`${upstream.url}/secret-path-canary/:id`, { name: 'get_thing', input_schema });
    const inside = buildToolAt('https://inside.example.com/', { name: 'inside' });
    await toolhost.createServer({ name: 'Things', slug: 'things', tools: [tool, inside] });
  });
  afterEach(() => Promise.all([upstream.close(), collector.close()]));

  const params = { name: 'get_thing', arguments: { id: 'argument-canary', q: 'query-canary' } };
  const callWith = (headers: Record<string, string> = {}) =>
    toolhost.rpc('things', token, 'tools/call', params, headers);
  /**
   * Stops the service, which exports pending spans, waits for `count` spans, and returns the server and client spans.
   */
  async function stopAndGetSpans(count: number): Promise<{ servers: CollectedSpan[]; clients: CollectedSpan[] }> {
    await toolhost.stop();
    await waitForSpans(collector, count);
    const getSpans = (kind: number) => collector.spans.filter((span) => span.kind === kind);
    return { servers: getSpans(2), clients: getSpans(3) };
  }

  it('have a server span and a client span, whose context is sent to the upstream', async () => {
    await callWith();
    const sent = upstream.requests[0]?.headers.traceparent;
    const { servers, clients } = await stopAndGetSpans(2);
    const [[server], [client]] = [servers as [CollectedSpan], clients as [CollectedSpan]];
    assert.equal(collector.spans.length, 2);
    assert.deepEqual([server.name, server.parentSpanId, client.name], ['tools/call get_thing', '', 'GET']);
    const { 'toolhost.request_id': requestId, ...attributes } = server.attributes;
    assert.match(String(requestId), /^\w+$/);
    assert.deepEqual(attributes, {
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'get_thing',
      'toolhost.server': 'things',
      'toolhost.outcome': 'ok',
    });
    assert.deepEqual([client.traceId, client.parentSpanId], [server.traceId, server.spanId]);
    assert.deepEqual(client.attributes, {
      'http.request.method': 'GET',
      'server.address': '127.0.0.1',
      'server.port': upstream.port,
      'http.response.status_code': 200,
    });
    assert.equal(sent, `00-${client.traceId}-${client.spanId}-01`);
    assert.deepEqual([server.status, client.status], [0, 0]);
    assert.ok(server.durationMs >= client.durationMs && client.durationMs > 0);
    const { 'service.name': serviceName, 'service.version': serviceVersion } = server.resource;
    assert.deepEqual([serviceName, serviceVersion], ['toolhost', version]);
    assert.ok(collector.requests.every(({ path }) => path === '/v1/traces'));
  });

  it('[mcp 35] continue the trace of the caller from _meta or the header, with its state', async () => {
    const meta = { ...statelessMeta, traceparent, tracestate: 'vendor=one' };
    await toolhost.statelessRpc('things', token, 'tools/call', { _meta: meta, ...params });
    await callWith({ traceparent, tracestate: 'vendor=two' });
    const sent = upstream.requests.map((request) => request.headers);
    const { servers, clients } = await stopAndGetSpans(4);
    for (const [n, state] of ['vendor=one', 'vendor=two'].entries()) {
      const [server, client] = [servers[n] as CollectedSpan, clients[n] as CollectedSpan];
      assert.deepEqual([server.traceId, server.parentSpanId, server.traceState], [traceId, parentId, state]);
      assert.deepEqual([client.traceId, client.parentSpanId], [traceId, server.spanId]);
      assert.equal(sent[n]?.traceparent, `00-${traceId}-${client.spanId}-01`);
      assert.equal(sent[n]?.tracestate, state);
    }
  });

  it('are not sampled if the caller declines, and the decision is sent to the upstream', async () => {
    await callWith({ traceparent: traceparent.replace(/01$/, '00') });
    assert.match(String(upstream.requests[0]?.headers.traceparent), new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`));
    await stopAndGetSpans(0);
    assert.deepEqual(collector.spans, []);
  });

  it("start a new trace if the caller's context is invalid", async () => {
    await callWith({ traceparent: `00-${'0'.repeat(32)}-${parentId}-01`, tracestate: 'vendor=one' });
    const { servers } = await stopAndGetSpans(2);
    assert.equal(servers[0]?.parentSpanId, '');
    assert.equal(upstream.requests[0]?.headers.tracestate, undefined);
  });

  it('contain the error type of a failed call, but no content', async () => {
    upstream.on('*', () => ({ status: 503, body: 'body-canary' }));
    await callWith();
    await toolhost.callTool('things', token, 'get_thing', { id: [5] });
    await toolhost.callTool('things', token, 'inside');
    const { servers, clients } = await stopAndGetSpans(5);
    const errors = (spans: readonly CollectedSpan[]) =>
      spans.map(({ attributes, status, statusMessage }) => `${attributes['error.type']} ${status}${statusMessage}`);
    assert.deepEqual(errors(servers), ['upstream_status 2', 'invalid_arguments 2', 'blocked 2']);
    assert.deepEqual(errors(clients), ['503 2', 'blocked 2']);
    for (const { body } of collector.requests) assert.ok(!body.includes('canary'));
  });
});

describe('trace of a call whose login is refreshed during it', () => {
  it('has a client span for each request', async () => {
    const collector = await startTraceCollector();
    const world = await startLoginWorld({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
    const slug = await world.createServer();
    const { access_token } = await world.getTokens(await world.registerClient(slug));
    world.upstream.take();
    world.rejectFirstToken();
    await world.callTool(slug, access_token);
    const sent = world.upstream.take().map(({ headers }) => String(headers.traceparent).split('-')[2]);
    await world.stop();
    await waitForSpans(collector, 3);
    const clients = collector.spans.filter(({ kind }) => kind === 3);
    const received = clients.map(({ spanId, attributes }) => `${spanId} ${attributes['http.response.status_code']}`);
    assert.deepEqual(received, [`${sent[0]} 401`, `${sent[1]} 200`]);
    assert.equal(collector.spans.filter(({ kind }) => kind === 2).length, 1);
    await collector.close();
  });
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { Resolve } from '../../src/outbound/connector.ts';
import { version } from '../../src/version.ts';
import { serverAt, toolAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { onTime } from '../support/on-time.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { modernMeta, startToolhost, type TestToolhost, type ToolReply } from '../support/toolhost/toolhost.ts';
import { toolhostJson } from '../support/toolhost/toolhost-command.ts';
import { type CollectedSpan, startTraceCollector, type TraceCollector } from '../support/toolhost/trace-collector.ts';
import { freePort, startListener } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const token = 'caller-token-canary-0123456789';
const stored = { authentication: { type: 'Bearer', token: 'stored-credential-canary' } };
/** The exporter is a guest in the process: nothing waits for it, so it may be slow on a busy machine. */
const slowMs = 30_000;
const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${parentId}-01`;

/** Waits for so many spans: on a busy machine a service may end before the collector has what it sent. */
const allSpans = (collector: TraceCollector, count: number) =>
  eventually(() => assert.ok(collector.spans.length >= count, `${collector.spans.length} spans`));

describe('the traces of calls', () => {
  let upstream: RecordingUpstream;
  let collector: TraceCollector;
  let toolhost: TestToolhost;
  const resolve: Resolve = (_hostname, callback) => callback(null, [{ address: '10.1.2.3', family: 4 }]);

  beforeEach(async () => {
    [upstream, collector] = await Promise.all([startRecordingUpstream(), startTraceCollector()]);
    toolhost = await startToolhost({
      egress: [upstream.port],
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` },
      surroundings: { resolve },
    });
    const tool = toolAt(`${upstream.url}/secret-path-canary/:id`, {
      name: 'get_thing',
      input_schema: { id: { type: 'string' }, q: { type: 'string', optional: true } },
    });
    const inside = toolAt('https://inside.example.com/', { name: 'inside' });
    await toolhost.createServer({ name: 'Things', slug: 'things', tools: [tool, inside] });
  });
  afterEach(() => Promise.all([upstream.close(), collector.close()]));

  const args = { id: 'argument-canary', q: 'query-canary' };
  /** Ends the service, which sends what waits, and gives the server and client spans, of which there are so many. */
  async function collected(count: number): Promise<{ servers: CollectedSpan[]; clients: CollectedSpan[] }> {
    await toolhost.stop();
    await allSpans(collector, count);
    const of = (kind: number) => collector.spans.filter((span) => span.kind === kind);
    return { servers: of(2), clients: of(3) };
  }

  it('are a server span and a client span, and the upstream gets the context of the latter', async () => {
    await toolhost.callTool('things', token, 'get_thing', args);
    const sent = upstream.requests[0]?.headers.traceparent;
    const { servers, clients } = await collected(2);
    const [[server], [client]] = [servers as [CollectedSpan], clients as [CollectedSpan]];
    assert.equal(collector.spans.length, 2);
    assert.equal(server.name, 'tools/call get_thing');
    assert.equal(server.parentSpanId, '');
    assert.match(String(server.attributes['toolhost.request_id']), /^\w+$/);
    delete server.attributes['toolhost.request_id'];
    assert.deepEqual(server.attributes, {
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'get_thing',
      'toolhost.server': 'things',
      'toolhost.outcome': 'ok',
    });
    assert.equal(client.name, 'GET');
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
    assert.equal(server.resource['service.name'], 'toolhost');
    assert.equal(server.resource['service.version'], version);
    assert.ok(collector.requests.every(({ path }) => path === '/v1/traces'));
  });

  it('[mcp 35] go on from the trace of the caller, from _meta or the header, with its state', async () => {
    const meta = { ...modernMeta, traceparent, tracestate: 'vendor=one' };
    await toolhost.modern('things', token, 'tools/call', { _meta: meta, name: 'get_thing', arguments: args });
    const headers = { traceparent, tracestate: 'vendor=two' };
    await toolhost.rpc('things', token, 'tools/call', { name: 'get_thing', arguments: args }, headers);
    const sent = upstream.requests.map((request) => request.headers);
    const { servers, clients } = await collected(4);
    for (const [n, state] of ['vendor=one', 'vendor=two'].entries()) {
      const [server, client] = [servers[n] as CollectedSpan, clients[n] as CollectedSpan];
      assert.deepEqual([server.traceId, server.parentSpanId, server.traceState], [traceId, parentId, state]);
      assert.deepEqual([client.traceId, client.parentSpanId], [traceId, server.spanId]);
      assert.equal(sent[n]?.traceparent, `00-${traceId}-${client.spanId}-01`);
      assert.equal(sent[n]?.tracestate, state);
    }
  });

  it('are not kept for a caller who does not want it, and the upstream gets that decision', async () => {
    const headers = { traceparent: traceparent.replace(/01$/, '00') };
    await toolhost.rpc('things', token, 'tools/call', { name: 'get_thing', arguments: args }, headers);
    assert.match(String(upstream.requests[0]?.headers.traceparent), new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`));
    await collected(0);
    assert.deepEqual(collector.spans, []);
  });

  it('begin anew when what the caller sent is not valid', async () => {
    const headers = { traceparent: `00-${'0'.repeat(32)}-${parentId}-01`, tracestate: 'vendor=one' };
    await toolhost.rpc('things', token, 'tools/call', { name: 'get_thing', arguments: args }, headers);
    const { servers } = await collected(2);
    assert.equal(servers[0]?.parentSpanId, '');
    assert.equal(upstream.requests[0]?.headers.tracestate, undefined);
  });

  it('say how calls fail, and nothing of what they were about', async () => {
    upstream.on('*', () => ({ status: 503, body: 'body-canary' }));
    await toolhost.callTool('things', token, 'get_thing', args);
    await toolhost.callTool('things', token, 'get_thing', { id: 5 });
    await toolhost.callTool('things', token, 'inside');
    const { servers, clients } = await collected(5);
    const errors = (spans: readonly CollectedSpan[]) =>
      spans.map(({ attributes, status, statusMessage }) => [attributes['error.type'], status, statusMessage]);
    assert.deepEqual(errors(servers), [
      ['upstream_status', 2, ''],
      ['invalid_arguments', 2, ''],
      ['blocked', 2, ''],
    ]);
    assert.deepEqual(errors(clients), [
      ['503', 2, ''],
      ['blocked', 2, ''],
    ]);
    for (const { body } of collector.requests) assert.ok(!body.includes('canary'));
  });

  it('are whole for a call that the circuit breaker refuses', async () => {
    upstream.on('*', () => ({ status: 503, body: '' }));
    for (let n = 0; n < 21; n += 1) await toolhost.callTool('things', token, 'get_thing', args);
    const { servers, clients } = await collected(42);
    const kinds = (spans: readonly CollectedSpan[]) => spans.map(({ attributes }) => attributes['error.type']);
    assert.deepEqual(kinds(servers).slice(19), ['upstream_status', 'circuit_open']);
    assert.deepEqual(kinds(clients).slice(19), ['503', 'circuit_open']);
  });
});

describe('the trace of a call whose login is renewed during it', () => {
  it('has a client span for each request', async () => {
    const collector = await startTraceCollector();
    const world = await startLoginWorld({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
    const slug = await world.serve();
    const { access_token } = await world.tokens(await world.client(slug));
    world.upstream.take();
    world.refuseFirstToken();
    await world.call(slug, access_token);
    const sent = world.upstream.take().map(({ headers }) => String(headers.traceparent).split('-')[2]);
    await world.stop();
    await allSpans(collector, 3);
    const clients = collector.spans.filter(({ kind }) => kind === 3);
    assert.deepEqual(
      clients.map(({ spanId, attributes }) => [spanId, attributes['http.response.status_code']]),
      [
        [sent[0], 401],
        [sent[1], 200],
      ],
    );
    assert.equal(collector.spans.filter(({ kind }) => kind === 2).length, 1);
    await collector.close();
  });
});

describe('a collector that fails', () => {
  let upstream: RecordingUpstream;
  before(async () => {
    upstream = await startRecordingUpstream();
  });
  after(() => upstream.close());

  it('fails no call, is logged once, and gets spans again when it is back', async () => {
    const port = await freePort();
    const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-traces-'));
    const env = {
      DATA_DIR: dataDir,
      PORT: '0',
      DEMO: '0',
      EGRESS_ALLOW: `127.0.0.1:${upstream.port}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=header-canary',
      OTEL_BSP_SCHEDULE_DELAY: '10',
      OTEL_SERVICE_NAME: 'ours',
    };
    const child = await startChildToolhost(env);
    const arguments_ = ['keys', 'create', '--name', 'x', '--scopes', 'manage,call'];
    const { key } = await toolhostJson<{ key: string }>(arguments_, { env });
    const post = (path: string, body: object) =>
      fetch(child.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    assert.equal((await post('/api/v1/servers', serverAt('things', upstream.url, stored))).status, 201);
    const call = async () => {
      const reply = await post('/mcp/things', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get' } });
      const { result } = (await reply.json()) as { result: ToolReply };
      assert.notEqual(result.isError, true);
    };
    const times = (words: RegExp) => child.output().match(words)?.length ?? 0;
    const down = () => times(/collector does not take spans/g);
    await eventually(async () => {
      await call();
      assert.equal(down(), 1);
    }, slowMs);
    const collector = await startTraceCollector(port);
    collector.answerWith(400);
    await eventually(async () => {
      await call();
      assert.ok(collector.requests.length >= 3);
    }, slowMs);
    assert.deepEqual([down(), times(/takes spans again/g)], [1, 0]);
    collector.answerWith(200);
    await eventually(async () => {
      await call();
      assert.ok(collector.spans.length >= 2);
    }, slowMs);
    assert.equal(await child.end(), 0);
    assert.deepEqual([down(), times(/takes spans again/g)], [1, 1]);
    assert.ok(collector.requests.every(({ headers }) => headers['x-collector-key'] === 'header-canary'));
    assert.equal(collector.spans[0]?.resource['service.name'], 'ours');
    assert.ok(!child.output().includes('canary'));
    await collector.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('that says nothing holds up neither calls nor, for long, the end', async () => {
    const silent = await startListener();
    const toolhost = await startToolhost({
      egress: [upstream.port],
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${silent.port}` },
    });
    await toolhost.createServer(serverAt('things', upstream.url));
    for (let n = 0; n < 3; n++) assert.notEqual((await toolhost.callTool('things', token, 'get')).isError, true);
    // Well below the ten seconds that the exporter itself would wait.
    await onTime(7500, toolhost.stop);
    // One for the end, and one for each export that came before it.
    await eventually(() => assert.ok(silent.connections >= 1));
    await silent.close();
  });
});

describe('without a collector', () => {
  let upstream: RecordingUpstream;
  before(async () => {
    upstream = await startRecordingUpstream();
  });
  after(() => upstream.close());

  it('the context of the caller goes to the upstream as it came', async () => {
    const toolhost = await startToolhost({ egress: [upstream.port] });
    await toolhost.createServer(serverAt('things', upstream.url));
    await toolhost.rpc('things', token, 'tools/call', { name: 'get' }, { traceparent, tracestate: 'vendor=one' });
    const { headers } = await upstream.waitForRequest();
    assert.deepEqual([headers.traceparent, headers.tracestate], [traceparent, 'vendor=one']);
    await toolhost.stop();
    upstream.take();
  });
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { freshRequest } from '../support/fresh-request.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { type Json, startToolhost, type ToolCallResult } from '../support/toolhost/toolhost.ts';
import { runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { startTraceCollector } from '../support/toolhost/trace-collector.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { findFreePort, startListener } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

const token = 'caller-token-canary-0123456789';
const stored = { authentication: { type: 'Bearer', token: 'stored-credential-canary' } };
/** Timeout for exports. Nothing waits for the exporter, so it may be slow on a busy machine. */
const exportTimeoutMs = 30_000;

describe('a failing trace collector', () => {
  const upstream = useFixture(startRecordingUpstream);

  it('fails no call, is logged once, and receives spans again when it is back', async () => {
    const port = await findFreePort();
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
    const { key } = await runToolhostJson<{ key: string }>(arguments_, { env });
    const post = (path: string, body: Json) => freshRequest(child.url + path, { key, body });
    assert.equal((await post('/api/v1/servers', buildServerAt('things', upstream.url, stored))).status, 201);
    const callUntil = (check: () => void) =>
      eventually(async () => {
        const { body } = await post('/mcp/things', {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'get' },
        });
        assert.notEqual((body.result as ToolCallResult).isError, true);
        check();
      }, exportTimeoutMs);
    const countLogLines = (pattern: RegExp) => child.output().match(pattern)?.length ?? 0;
    const countFailureLines = () => countLogLines(/collector does not accept spans/g);
    await callUntil(() => assert.equal(countFailureLines(), 1));
    const collector = await startTraceCollector(port);
    collector.respondWith(400);
    await callUntil(() => assert.ok(collector.requests.length >= 3));
    assert.deepEqual([countFailureLines(), countLogLines(/accepts spans again/g)], [1, 0]);
    collector.respondWith(200);
    await callUntil(() => assert.ok(collector.spans.length >= 2));
    assert.equal(await child.end(), 0);
    assert.deepEqual([countFailureLines(), countLogLines(/accepts spans again/g)], [1, 1]);
    assert.ok(collector.requests.every(({ headers }) => headers['x-collector-key'] === 'header-canary'));
    assert.equal(collector.spans[0]?.resource['service.name'], 'ours');
    assert.ok(!child.output().includes('canary'));
    await collector.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('delays no calls, and shutdown only briefly, when it does not respond', async () => {
    const silent = await startListener();
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${silent.port}` };
    const toolhost = await startToolhost({ egressPorts: [upstream.port], env });
    await toolhost.createServer(buildServerAt('things', upstream.url));
    for (let n = 0; n < 3; n++) assert.notEqual((await toolhost.callTool('things', token, 'get')).isError, true);
    // Well below the ten seconds that the exporter itself would wait.
    await assertWithinDeadline(7500, toolhost.stop);
    // One connection for the final export, and one for each previous export.
    await eventually(() => assert.ok(silent.connections >= 1));
    await silent.close();
  });
});

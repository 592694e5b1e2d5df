import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { parseMetrics } from '../support/toolhost/scrape-metrics.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

const json = { 'content-type': 'application/json' };

describe('CPU budget of rejected requests', () => {
  let child: ChildToolhost;
  let dataDir: string;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'toolhost-cost-'));
    child = await startChildToolhost({ DATA_DIR: dataDir, LOG_LEVEL: 'silent' });
  });
  after(async () => {
    agent.destroy();
    await child.end();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Measures the CPU time of the service for a number of sequential requests, in seconds. */
  const measureCpuSeconds = async (send: () => Promise<unknown>, times: number) => {
    const readCpuSeconds = async () =>
      parseMetrics((await sendRawRequest(`${child.url}/metrics`)).text).value('process_cpu_seconds_total');
    const startSeconds = await readCpuSeconds();
    for (let i = 0; i < times; i++) await send();
    return (await readCpuSeconds()) - startSeconds;
  };

  it('[find A3] rejects a 400 KB body of an unverified caller without parsing it, at every endpoint', async () => {
    const items = Array.from({ length: 30_000 }, (_, a) => ({ a }));
    const large = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { arguments: { items } } });
    const entries = ['/mcp/absent', '/mcp/manage', '/api/v1/servers', '/nowhere', '/mcp/manage/consent'];
    for (const path of entries) {
      const post = (body: string) => () =>
        sendRawRequest(child.url + path, { method: 'POST', agent, headers: json }, body);
      await measureCpuSeconds(post(large), 20);
      const emptySeconds = await measureCpuSeconds(post(''), 200);
      const fullSeconds = await measureCpuSeconds(post(large), 200);
      // Parsing the body would take a hundred times as long as an empty request. The 0.05 s cover the clock resolution.
      assert.ok(fullSeconds < 15 * emptySeconds + 0.05, `${path}: ${fullSeconds} s against ${emptySeconds} s`);
    }
  });
});

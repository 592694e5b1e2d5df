import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startListener } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe("the operator's exceptions to the address guard", async () => {
  const upstream = await startRecordingUpstream();
  const otherPort = await startListener();
  const otherAddress = await startListener('127.0.0.2', upstream.port);
  const toolhost = await startToolhost({
    env: { EGRESS_ALLOW: `127.0.0.1:${upstream.port}, named.example:${upstream.port}, 10.1.0.0/16:8080` },
  });
  after(() => Promise.all([toolhost.stop(), upstream.close(), otherPort.close(), otherAddress.close()]));

  it('[sec B10] allow exactly one address on exactly one port', async () => {
    await toolhost.createServer(buildServerAt('excepted', upstream.url));
    assert.notEqual((await toolhost.callTool('excepted', 'some-token', 'get')).isError, true);
    const [otherUrl, otherHost] = [`http://127.0.0.1:${otherPort.port}`, `http://127.0.0.2:${upstream.port}`];
    const ranges = ['http://10.1.2.3:22', 'http://10.2.2.3:8080'];
    for (const origin of [otherUrl, otherHost, otherUrl.replace('http', 'https'), ...ranges]) {
      const reply = await toolhost.rest('POST', '/servers', { body: buildServerAt('not-excepted', origin) });
      assert.equal(reply.status, 400, origin);
    }
    const allowed = [`http://named.example:${upstream.port}`, 'http://10.1.2.3:8080', 'https://10.1.2.3:8080'];
    for (const [index, origin] of allowed.entries())
      await toolhost.createServer(buildServerAt(`excepted-${index}`, origin));
    assert.equal(otherPort.connections + otherAddress.connections, 0);
  });

  it('[sec B10] stop applying when removed: a URL stored under one is rejected at the call', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-test-'));
    const earlier = await startToolhost({ dataDir, egressPorts: [otherPort.port] });
    await earlier.createServer(buildServerAt('formerly', `http://127.0.0.1:${otherPort.port}`));
    await earlier.stop();
    const later = await startToolhost({ dataDir });
    const result = await later.callTool('formerly', 'some-token', 'get');
    assert.match(result.content[0]?.text ?? '', /does not resolve to an address that may be called/);
    assert.equal(otherPort.connections, 0);
    await later.stop();
    rmSync(dataDir, { recursive: true });
  });
});

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type Listener, startListener } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe("the operator's exceptions to the address guard", () => {
  let upstream: RecordingUpstream;
  let otherPort: Listener;
  let otherAddress: Listener;
  let toolhost: TestToolhost;
  before(async () => {
    upstream = await startRecordingUpstream();
    otherPort = await startListener();
    otherAddress = await startListener('127.0.0.2', upstream.port);
    toolhost = await startToolhost({
      env: { EGRESS_ALLOW: `127.0.0.1:${upstream.port}, named.example:${upstream.port}, 10.1.0.0/16:8080` },
    });
  });
  after(() => Promise.all([toolhost.stop(), upstream.close(), otherPort.close(), otherAddress.close()]));

  it('[sec B10] allow exactly one address on exactly one port', async () => {
    await toolhost.createServer(buildServerAt('excepted', upstream.url));
    assert.notEqual((await toolhost.callTool('excepted', 'some-token', 'get')).isError, true);
    for (const origin of [
      `http://127.0.0.1:${otherPort.port}`,
      `http://127.0.0.2:${upstream.port}`,
      `https://127.0.0.1:${otherPort.port}`,
      'http://10.1.2.3:22',
      'http://10.2.2.3:8080',
    ]) {
      assert.equal(
        (await toolhost.rest('POST', '/servers', { body: buildServerAt('not-excepted', origin) })).status,
        400,
        origin,
      );
    }
    for (const [index, origin] of [
      `http://named.example:${upstream.port}`,
      'http://10.1.2.3:8080',
      'https://10.1.2.3:8080',
    ].entries()) {
      await toolhost.createServer(buildServerAt(`excepted-${index}`, origin));
    }
    assert.equal(otherPort.connections + otherAddress.connections, 0);
  });

  it('[sec B10] cannot be extended by any configuration field', async () => {
    for (const field of ['egress_allow', 'EGRESS_ALLOW', 'allow']) {
      const config = buildServerAt('extended', `http://127.0.0.1:${otherPort.port}`, {
        [field]: [`127.0.0.1:${otherPort.port}`],
      });
      const { status, text } = await toolhost.rest('POST', '/servers', { body: config });
      assert.equal(status, 400);
      assert.match(text, /unknown field/);
    }
    assert.equal(otherPort.connections, 0);
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

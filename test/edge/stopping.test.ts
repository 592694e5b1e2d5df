import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { serverAt } from '../support/configs.ts';
import { textOf } from '../support/one-tool.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('a service that is stopped during a call', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
    upstream.on('*', () => 'hold');
    toolhost = await startToolhost({ egress: [upstream.port] });
    await toolhost.createServer(serverAt('slow', upstream.url));
    key = await toolhost.key();
  });
  afterEach(() => upstream.close());

  it('[sec G4] reports not ready and exits after the call has completed', async () => {
    const call = toolhost.callTool('slow', key, 'get');
    const asked = await upstream.waitForRequest();
    toolhost.running.drain();
    assert.equal((await fetch(`${toolhost.url}/readyz`)).status, 503);
    const stopped = toolhost.running.stop();
    asked.release({ body: { said: 'something' } });
    assert.match(textOf(await call), /something/);
    assert.equal(await stopped, true);
    await assert.rejects(fetch(`${toolhost.url}/livez`));
  });

  it('reports that it aborted a call that took longer than the remaining time', async () => {
    const cut = assert.rejects(toolhost.callTool('slow', key, 'get'));
    await upstream.waitForRequest();
    assert.equal(await toolhost.running.stop(1), false);
    await cut;
  });
});

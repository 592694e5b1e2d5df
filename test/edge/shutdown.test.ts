import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { getResultText } from '../support/one-tool.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('a service that is stopped during a call', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
    upstream.on('*', () => 'hold');
    toolhost = await startToolhost({ egressPorts: [upstream.port] });
    await toolhost.createServer(buildServerAt('slow', upstream.url));
    key = await toolhost.createKey();
  });
  afterEach(() => upstream.close());

  it('[sec G4] reports not ready and exits after the call has completed', async () => {
    const call = toolhost.callTool('slow', key, 'get');
    const upstreamRequest = await upstream.waitForRequest();
    toolhost.running.drain();
    assert.equal((await fetch(`${toolhost.url}/readyz`)).status, 503);
    const stopped = toolhost.running.stop();
    upstreamRequest.release({ body: { said: 'something' } });
    assert.match(getResultText(await call), /something/);
    assert.equal(await stopped, true);
    await assert.rejects(fetch(`${toolhost.url}/livez`));
  });

  it('reports that it aborted a call that took longer than the remaining time', async () => {
    const aborted = assert.rejects(toolhost.callTool('slow', key, 'get'));
    await upstream.waitForRequest();
    assert.equal(await toolhost.running.stop(1), false);
    await aborted;
  });
});

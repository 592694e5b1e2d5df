import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { startToolhost, type TestToolhost, type ToolCallResult } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { type AdversarialUpstream, startAdversarialUpstream } from '../support/upstreams/adversarial-upstream.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('connections to upstreams', () => {
  let upstream: RecordingUpstream;
  let adversary: AdversarialUpstream;
  let toolhost: TestToolhost;
  const start = async () => {
    [upstream, adversary] = await Promise.all([startRecordingUpstream(), startAdversarialUpstream()]);
    toolhost = await startToolhost({ egressPorts: [upstream.port, adversary.port] });
  };
  const stop = () => Promise.all([toolhost.stop(), upstream.close(), adversary.close()]);
  beforeEach(start);
  afterEach(stop);

  /**
   * Runs work whose calls follow each other while their connection is open, which is at least two seconds. Repeats all
   * of it when a busy machine let more time pass between two calls.
   */
  const runInSequence = async (work: (call: (slug: string) => Promise<ToolCallResult>) => Promise<void>) => {
    for (;;) {
      let maxGapMs = 0;
      let endedAt: number | undefined;
      await work(async (slug) => {
        const reply = await toolhost.callTool(slug, 'some-token', 'get');
        const now = performance.now();
        maxGapMs = Math.max(maxGapMs, now - (endedAt ?? now));
        endedAt = now;
        return reply;
      });
      if (maxGapMs < 1500) return;
      await stop();
      await start();
    }
  };

  it('[sec M1] are reused and shared by the servers of a workspace, but never with another workspace', async () => {
    let ourConnections = 0;
    await runInSequence(async (call) => {
      const manager = await toolhost.createKey({ workspace: 'other' });
      for (const slug of ['ours-one', 'ours-two']) await toolhost.createServer(buildServerAt(slug, upstream.url));
      await toolhost.rest('POST', '/servers', { key: manager, body: buildServerAt('theirs', upstream.url) });
      for (let n = 0; n < 20; n += 1) assert.notEqual((await call(n % 2 ? 'ours-one' : 'ours-two')).isError, true);
      ourConnections = upstream.connections;
      for (let n = 0; n < 3; n += 1) await call('theirs');
    });
    assert.deepEqual([ourConnections, upstream.connections, upstream.requests.length], [1, 2, 23]);
  });

  it('[sec G3] never send a request twice, not even a GET', async () => {
    const tools = ['keep-alive-close', 'reset', 'garbage', 'half-close'].flatMap((path) => [
      buildToolAt(`${adversary.url}/${path}`, { name: `get-${path}` }),
      buildToolAt(`${adversary.url}/${path}`, { name: `post-${path}`, method: 'POST' }),
    ]);
    await toolhost.createServer(buildServerAt('resent', adversary.url, { tools }));
    const countRequests = async (name: string) => {
      const before = adversary.requests.length;
      const { isError } = await toolhost.callTool('resent', 'some-token', name);
      return { isError: isError === true, requests: adversary.requests.length - before };
    };
    for (const path of ['reset', 'garbage', 'half-close'])
      for (const method of ['post', 'get'])
        assert.deepEqual(await countRequests(`${method}-${path}`), { isError: true, requests: 1 }, path);
    for (let n = 0; n < 5; n += 1) {
      assert.ok((await countRequests('post-keep-alive-close')).requests <= 1);
      assert.ok((await countRequests('get-keep-alive-close')).requests <= 1);
    }
  });
});

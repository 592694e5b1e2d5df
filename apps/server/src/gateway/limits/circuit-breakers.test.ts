import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { JobError } from '@toolhost/errors/errors';
import { createExchange, createTestClient } from '../../../../../test/support/upstreams/http-client.ts';
import { startRecordingUpstream } from '../../../../../test/support/upstreams/recording-upstream.ts';
import { CircuitBreakers, minFailures } from './circuit-breakers.ts';

describe('the circuit of an upstream', () => {
  it('stays closed if this service fails to decode the responses', async (t) => {
    const upstream = await startRecordingUpstream();
    upstream.on('GET /', () => ({ headers: { 'content-encoding': 'gzip' }, body: gzipSync(Buffer.alloc(200_000)) }));
    const crash = new JobError('failed', 'the thread ended');
    const client = createTestClient(`127.0.0.1:${upstream.port}`, { decodeOnThread: () => Promise.reject(crash) });
    t.after(() => Promise.all([client.close(), upstream.close()]));
    const circuits = new CircuitBreakers(() => 1_000_000);
    const sent = Array.from({ length: minFailures }, () => circuits.send(client, createExchange(upstream.url)));
    for (const { status, reason } of (await Promise.allSettled(sent)) as PromiseRejectedResult[])
      assert.deepEqual([status, reason], ['rejected', crash]);
    const { state, failures } = circuits.getState('w', upstream.url);
    assert.deepEqual({ state, failures }, { state: 'closed', failures: 0 });
  });
});

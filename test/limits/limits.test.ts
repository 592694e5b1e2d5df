import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { usualSurroundings } from '../../src/process/start.ts';
import { serverAt } from '../support/configs.ts';
import {
  type Json,
  type Reply,
  type StartOptions,
  startToolhost,
  type TestToolhost,
} from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const stored = { authentication: { type: 'Bearer', token: 'stored-credential' } };

describe('limits of calls', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
  });
  afterEach(() => Promise.all([toolhost.stop(), upstream.close()]));

  /** Time that passes for the service, in ms; the limits see no other. */
  let at: number;
  const start = async (env: Record<string, string>, surroundings: StartOptions['surroundings'] = {}) => {
    at = 1_000_000;
    toolhost = await startToolhost({
      egress: [upstream.port],
      env,
      surroundings: { clock: () => at, ...surroundings },
    });
    for (const slug of ['busy', 'quiet']) await toolhost.createServer(serverAt(slug, upstream.url, stored));
  };
  const call = (slug: string, token: string) => toolhost.rpc(slug, token, 'tools/call', { name: 'get', arguments: {} });
  const statuses = (replies: readonly Reply[]) => replies.map((reply) => reply.status);
  const count = (replies: readonly Reply[], status: number) =>
    statuses(replies).filter((found) => found === status).length;

  it('[mcp 34] refuses calls above the rate of one server, with the time to wait, and no others', async () => {
    await start({ CALLS_PER_SECOND: '5' });
    const token = await toolhost.key();
    const replies = await Promise.all(Array.from({ length: 20 }, () => call('busy', token)));
    const served = count(replies, 200);
    assert.ok(served >= 5 && served <= 6, String(served));
    assert.equal(count(replies, 429), 20 - served);
    const refused = replies.find((reply) => reply.status === 429);
    assert.match(refused?.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.equal(refused?.body.id, 1);
    assert.match(String((refused?.body.error as Json | undefined)?.message), /too many calls.*try again in \d+ s/);
    assert.equal(upstream.requests.length, served);
    assert.equal((await call('quiet', token)).status, 200);
    assert.equal((await toolhost.rpc('busy', token, 'tools/list')).status, 200);
    at += 1000;
    assert.equal((await call('busy', token)).status, 200);
    const { body } = await toolhost.rest('GET', '/calls?outcome=limited&limit=200');
    assert.ok((body.calls as Json[]).length >= 20 - served);
  });

  it('[mcp 34] lets calls above the concurrency of a server wait, in a short queue, for a short time', async () => {
    await start({ CONCURRENT_CALLS: '2', CONCURRENT_CALLS_PER_KEY: '0' });
    upstream.on('*', () => 'hold');
    const token = await toolhost.key();
    const calls = Array.from({ length: 54 }, () => call('busy', token));
    const [first, second] = [await upstream.waitForRequest(1), await upstream.waitForRequest(2)];
    const overflow = await Promise.race(calls);
    assert.equal(overflow.status, 429);
    upstream.on('*', () => ({ body: {} }));
    assert.equal((await call('quiet', token)).status, 200);
    first.release({ body: {} });
    const released = Promise.all(calls);
    await upstream.waitForRequest(52);
    second.release({ body: {} });
    const replies = await released;
    assert.deepEqual([count(replies, 200), count(replies, 429)], [52, 2]);
  });

  it('[mcp 34] refuses a call that has waited too long, and frees its slot in the queue', async () => {
    await start({ CONCURRENT_CALLS: '1', CONCURRENT_CALLS_PER_KEY: '0' }, { queueMs: usualSurroundings.queueMs });
    upstream.on('*', () => 'hold');
    const token = await toolhost.key();
    const running = call('busy', token);
    const request = await upstream.waitForRequest();
    const waited = await call('busy', token);
    assert.equal(waited.status, 429);
    assert.equal(waited.headers.get('retry-after'), '2');
    upstream.on('*', () => ({ body: {} }));
    request.release({ body: {} });
    assert.deepEqual(statuses([await running, await call('busy', token)]), [200, 200]);
  });

  it('[mcp 34] holds one API key to its own share of a server', async () => {
    await start({ CONCURRENT_CALLS: '3', CONCURRENT_CALLS_PER_KEY: '1' });
    const [greedy, modest] = [await toolhost.key(), await toolhost.key()];
    upstream.on('*', () => 'hold');
    const flood = Array.from({ length: 20 }, () => call('busy', greedy));
    const held = await upstream.waitForRequest();
    upstream.on('*', () => ({ body: {} }));
    assert.equal((await call('busy', modest)).status, 200);
    held.release({ body: {} });
    assert.equal(count(await Promise.all(flood), 200), 20);
  });

  it('frees slots after calls of every outcome', async () => {
    await start({ CONCURRENT_CALLS: '1', CONCURRENT_CALLS_PER_KEY: '1' });
    const token = await toolhost.key();
    for (const answer of [
      { status: 500 },
      { status: 302 },
      { headers: { 'content-type': 'application/json' }, body: '{' },
      { body: { fine: true } },
    ]) {
      upstream.on('*', () => answer);
      for (let n = 0; n < 3; n += 1) assert.equal((await call('busy', token)).status, 200);
      assert.equal(
        (await toolhost.rpc('busy', token, 'tools/call', { name: 'get', arguments: { unknown: 1 } })).status,
        200,
      );
    }
  });
});

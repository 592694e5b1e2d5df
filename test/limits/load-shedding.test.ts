import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { createLoopLag } from '../../src/app/observability/loop-lag.ts';
import { serverAt } from '../support/configs.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const token = 'token-of-the-caller';

describe('[sec 4.1] a late event loop', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let lagMs = 0;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({
      egress: [upstream.port],
      surroundings: { createLoopLag: () => ({ ms: () => lagMs, stop: () => undefined }) },
    });
    await toolhost.createServer(serverAt('shed', upstream.url));
  });
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  const call = () => toolhost.rpc('shed', token, 'tools/call', { name: 'get', arguments: {} });

  it('refuses only new calls, at once, with 503 and the time to wait', async () => {
    upstream.on('*', () => 'hold');
    const running = call();
    const request = await upstream.waitForRequest();
    lagMs = 201;
    const refused = await call();
    assert.deepEqual([refused.status, refused.headers.get('retry-after'), refused.body.id], [503, '1', 1]);
    const error = refused.body.error as Json;
    assert.match(String(error.message), /the service is overloaded.*this call was not made, try again in 1 s$/);
    request.release({ body: { fine: true } });
    assert.equal((await running).status, 200);
    assert.equal(upstream.requests.length, 1);

    assert.equal((await toolhost.rpc('shed', token, 'tools/list')).status, 200);
    assert.equal((await toolhost.rpc('manage', await toolhost.key(), 'tools/list')).status, 200);
    assert.equal((await toolhost.rest('GET', '/servers')).status, 200);
    for (const path of ['/livez', '/readyz']) assert.equal((await fetch(toolhost.url + path)).status, 200);
    const { body } = await toolhost.rest('GET', '/calls?outcome=limited');
    assert.equal((body.calls as Json[]).length, 1);

    lagMs = 200;
    upstream.on('*', () => ({ body: {} }));
    assert.equal((await call()).status, 200);
  });

  it('in a batch refuses only the calls', async () => {
    lagMs = 500;
    const reply = await toolhost.post(
      'shed',
      [
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } },
        { jsonrpc: '2.0', id: 2, method: 'ping' },
      ],
      { token },
    );
    const [refused = {}, pong = {}] = reply.body as unknown as Json[];
    assert.equal((refused.error as Json).code, 503);
    assert.deepEqual(pong.result, {});
    lagMs = 0;
  });
});

describe('the measure of lateness', () => {
  it('takes two measurements in a row: one long pause is no overload, and neither is a start', async () => {
    const times = [0, 100, 500, 600, 1000, 1400, 1500];
    const ticks = new EventEmitter();
    let read = 0;
    const alive = setTimeout(() => undefined, 60_000);
    const lag = createLoopLag(() => {
      ticks.emit('read');
      return times[read++] ?? 0;
    });
    assert.equal(read, 0);
    const shown = [lag.ms()];
    while (read < times.length) {
      await once(ticks, 'read');
      shown.push(lag.ms());
    }
    lag.stop();
    clearTimeout(alive);
    assert.deepEqual(shown, [0, 0, 0, 0, 0, 300, 0]);
  });
});

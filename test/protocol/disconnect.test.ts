import assert from 'node:assert/strict';
import http from 'node:http';
import { after, beforeEach, describe, it } from 'node:test';
import { buildEchoConfig, buildStatelessMessage, mirrorHeaders } from '../support/mcp.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';

const token = 'caller-token';

describe('a client that disconnects', async () => {
  const { upstream, toolhost, stop } = await startToolhostWithUpstream({ env: { CONCURRENT_CALLS: '1' } });
  upstream.on('GET /echo', () => 'hold');
  upstream.on('POST /notes', () => 'hold');
  await toolhost.createServer(buildEchoConfig(upstream.url));
  beforeEach(() => void upstream.take());
  after(stop);

  /** Starts a call and returns a function that disconnects the client. */
  const startCall = (message: Json, headers: Record<string, string> = {}) => {
    const request = http.request(`${toolhost.url}/mcp/echo`, {
      method: 'POST',
      agent: false,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    });
    request.on('error', () => undefined);
    request.end(JSON.stringify(message));
    return async () => {
      const closed = new Promise((resolve) => request.once('close', resolve));
      request.destroy();
      await closed;
    };
  };
  const startStatelessCall = (name: string, args: Json = {}) =>
    startCall(buildStatelessMessage('tools/call', { name, arguments: args }), mirrorHeaders('tools/call', name));
  const startStatefulCall = (name: string, args: Json = {}) =>
    startCall({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });
  /** Sends a request on another connection. Its response shows that the service has processed earlier events. */
  const waitForService = async () => assert.equal((await toolhost.rpc('echo', token, 'ping')).status, 200);
  /** Returns the call records, newest first. */
  const listCalls = async () => (await toolhost.rest('GET', '/servers/echo/calls')).body.calls as Json[];

  for (const [name, args] of Object.entries({ echo: {}, note: { text: 'x' } })) {
    it(`[mcp 29] stateless: aborts the upstream request of ${name} and frees its slot`, async () => {
      const disconnect = startStatelessCall(name, args);
      const request = await upstream.waitForRequest();
      await disconnect();
      assert.equal(await request.closed, 'aborted');
      const params = { name: 'note', arguments: { text: 'next' } };
      const secondCall = toolhost.statelessRpc('echo', token, 'tools/call', params);
      const next = await upstream.waitForRequest(2);
      assert.equal(next.body.toString(), '{"text":"next"}');
      next.release({ body: { stored: true } });
      assert.equal((await secondCall).status, 200);
      assert.equal(upstream.requests.length, 2);
      const outcomes = (await listCalls()).slice(0, 2).map((call) => call.outcome);
      assert.deepEqual(outcomes, ['ok', 'cancelled']);
    });
  }

  it('[mcp 29] stateful: does not cancel its call, which finishes', async () => {
    const disconnect = startStatefulCall('note', { text: 'x' });
    const request = await upstream.waitForRequest();
    await disconnect();
    await waitForService();
    assert.equal(request.aborted, false);
    request.release({ status: 201, body: { stored: true } });
    assert.equal(await request.closed, 'answered');
    assert.equal((await listCalls())[0]?.outcome, 'ok');
  });

  it('[mcp 29] stateless: cancels a queued call, which is never sent to the upstream', async () => {
    startStatefulCall('note', { text: 'first' });
    const first = await upstream.waitForRequest();
    const disconnect = startStatelessCall('note', { text: 'second' });
    await waitForService();
    const third = toolhost.rpc('echo', token, 'tools/call', { name: 'note', arguments: { text: 'third' } });
    await disconnect();
    await waitForService();
    first.release({ body: {} });
    const next = await upstream.waitForRequest(2);
    assert.equal(next.body.toString(), '{"text":"third"}');
    next.release({ body: {} });
    assert.equal((await third).status, 200);
    assert.equal(upstream.requests.length, 2);
  });

  it('[mcp 29] stateful: can send a cancellation notification, which has no effect', async () => {
    const response = toolhost.rpc('echo', token, 'tools/call', { name: 'echo' });
    const request = await upstream.waitForRequest();
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
    assert.equal((await toolhost.post('echo', cancelled, { token })).status, 202);
    request.release({ body: { done: true } });
    assert.equal((await response).status, 200);
  });
});

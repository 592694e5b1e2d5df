import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it, type TestContext } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { openIdleConnection } from '../support/idle-connection.ts';
import { buildEchoConfig } from '../support/mcp.ts';
import { countShedWork } from '../support/toolhost/scrape-metrics.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Two loopback addresses, so that connections come from different networks. */
const crowdedAddress = '127.0.0.2';
const otherAddress = '127.0.0.3';

/** Opens connections one after another. */
async function openIdleConnections(count: number, url: string, localAddress: string): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) sockets.push(await openIdleConnection(url, localAddress));
  return sockets;
}

function post(url: string, body: string, localAddress: string): ClientRequest {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer token' };
  return request(url, { method: 'POST', agent: false, localAddress, headers }).end(body);
}

const callBody = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } });
const isOpen = ({ destroyed }: Socket) => !destroyed;

/** Starts a service with a connection limit and an upstream that does not respond. */
async function startLimited(t: TestContext, maxConnections: number) {
  const upstream = await startRecordingUpstream();
  upstream.on('GET /echo', () => 'hold');
  const toolhost = await startToolhost({ egressPorts: [upstream.port], runtimeOptions: { maxConnections } });
  t.after(() => Promise.all([toolhost.stop(), upstream.close()]));
  await toolhost.createServer(buildEchoConfig(upstream.url));
  return { toolhost, upstream };
}

describe('the client connection limit', () => {
  it('[find A6] closes idle connections of the network that has the most, oldest first, without breaking a call', async (t) => {
    const { toolhost, upstream } = await startLimited(t, 30);
    const earlierSockets = await openIdleConnections(5, toolhost.url, otherAddress);
    const pendingCall = post(`${toolhost.url}/mcp/echo`, callBody, crowdedAddress);
    const upstreamRequest = await upstream.waitForRequest();
    const sockets = await openIdleConnections(60, toolhost.url, crowdedAddress);
    const laterSockets = await openIdleConnections(5, toolhost.url, otherAddress);
    // The client may not have noticed the last closed connections yet.
    const lastSocket = await openIdleConnection(toolhost.url, otherAddress);
    assert.deepEqual([...earlierSockets, ...laterSockets, lastSocket].map(isOpen), Array(11).fill(true));
    assert.equal(isOpen(sockets[0] as Socket), false);
    assert.equal(isOpen(sockets.at(-1) as Socket), true);
    const openCount = sockets.filter(isOpen).length;
    assert.ok(openCount > 10 && openCount < 25, `${openCount} are left`);
    assert.ok((await countShedWork(toolhost.url, 'connection')) >= 60 - openCount);
    upstreamRequest.release({ body: { done: true } });
    const [response] = await once(pendingCall, 'response');
    assert.match(await text(response), /done/);
    for (const socket of [...earlierSockets, ...laterSockets, lastSocket, ...sockets]) socket.destroy();
  });

  it('[find A6] rejects a connection of the network that has the most busy ones, but not of another network', async (t) => {
    const { toolhost, upstream } = await startLimited(t, 8);
    const pendingCalls = Array.from({ length: 12 }, () => post(`${toolhost.url}/mcp/echo`, callBody, crowdedAddress));
    let closedCount = 0;
    for (const sent of pendingCalls) sent.on('error', () => closedCount++);
    await upstream.waitForRequest(7);
    await eventually(() => assert.ok(closedCount >= 4));
    const before = closedCount;
    const [rejectedSocket] = await openIdleConnections(1, toolhost.url, crowdedAddress);
    assert.deepEqual([rejectedSocket?.destroyed, closedCount], [true, before]);
    const [otherSocket] = await openIdleConnections(1, toolhost.url, otherAddress);
    assert.equal(otherSocket?.destroyed, false);
    await eventually(() => assert.equal(closedCount, before + 1));
    for (const sent of pendingCalls) sent.destroy();
    otherSocket?.destroy();
  });

  it('[find A6] does not apply behind a trusted proxy, which owns all connections', async (t) => {
    const env = { TRUSTED_PROXIES: '1' };
    const toolhost = await startToolhost({ env, runtimeOptions: { maxConnections: 30 } });
    t.after(() => toolhost.stop());
    const sockets = await openIdleConnections(60, toolhost.url, crowdedAddress);
    assert.deepEqual(sockets.map(isOpen), Array(60).fill(true));
    for (const socket of sockets) socket.destroy();
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { echoConfig } from '../support/mcp.ts';
import { countGivenUp } from '../support/toolhost/scrape.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Two loopback addresses, so that connections come from different networks. */
const stranger = '127.0.0.2';
const other = '127.0.0.3';

/** Opens a connection that has received its response and stays open. */
async function idleConnection(url: string, localAddress: string): Promise<Socket> {
  const { host, port } = new URL(url);
  const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  socket.write(`GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  // The server may close the connection before it responds.
  await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  return socket.resume();
}

/** Opens connections one after another. */
async function open(count: number, url: string, localAddress: string): Promise<Socket[]> {
  const sockets: Socket[] = [];
  while (sockets.length < count) sockets.push(await idleConnection(url, localAddress));
  return sockets;
}

function post(url: string, body: string, localAddress: string): ClientRequest {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer token' };
  return request(url, { method: 'POST', agent: false, localAddress, headers }).end(body);
}

const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } });
const isOpen = ({ destroyed }: Socket) => !destroyed;

describe('the client connection limit', () => {
  it('[find A6] closes idle connections of the network that has the most, oldest first, without breaking a call', async (t) => {
    const upstream = await startRecordingUpstream();
    upstream.on('GET /echo', () => 'hold');
    const toolhost = await startToolhost({ egress: [upstream.port], surroundings: { maxConnections: 30 } });
    t.after(() => Promise.all([toolhost.stop(), upstream.close()]));
    await toolhost.createServer(echoConfig(upstream.url));
    const own = await open(5, toolhost.url, other);
    const begun = post(`${toolhost.url}/mcp/echo`, call, stranger);
    const held = await upstream.waitForRequest();
    const sockets = await open(60, toolhost.url, stranger);
    const later = await open(5, toolhost.url, other);
    // The client may not have noticed the last closed connections yet.
    const last = await idleConnection(toolhost.url, other);
    assert.deepEqual([...own, ...later, last].map(isOpen), Array(11).fill(true));
    assert.equal(isOpen(sockets[0] as Socket), false);
    assert.equal(isOpen(sockets.at(-1) as Socket), true);
    const left = sockets.filter(isOpen).length;
    assert.ok(left > 10 && left < 25, `${left} are left`);
    assert.ok((await countGivenUp(toolhost.url, 'connection')) >= 60 - left);
    held.release({ body: { done: true } });
    const [response] = await once(begun, 'response');
    assert.match(await text(response), /done/);
    for (const socket of [...own, ...later, last, ...sockets]) socket.destroy();
  });

  it('[find A6] rejects a connection of the network that has the most busy ones, but not of another network', async (t) => {
    const upstream = await startRecordingUpstream();
    upstream.on('GET /echo', () => 'hold');
    const toolhost = await startToolhost({ egress: [upstream.port], surroundings: { maxConnections: 8 } });
    t.after(() => Promise.all([toolhost.stop(), upstream.close()]));
    await toolhost.createServer(echoConfig(upstream.url));
    const begun = Array.from({ length: 12 }, () => post(`${toolhost.url}/mcp/echo`, call, stranger));
    let cut = 0;
    for (const sent of begun) sent.on('error', () => cut++);
    await upstream.waitForRequest(7);
    await eventually(() => assert.ok(cut >= 4));
    const before = cut;
    const [more] = await open(1, toolhost.url, stranger);
    assert.deepEqual([more?.destroyed, cut], [true, before]);
    const [one] = await open(1, toolhost.url, other);
    assert.equal(one?.destroyed, false);
    await eventually(() => assert.equal(cut, before + 1));
    for (const sent of begun) sent.destroy();
    one?.destroy();
  });

  it('[find A6] does not apply behind a trusted proxy, which owns all connections', async (t) => {
    const env = { TRUSTED_PROXIES: '1' };
    const toolhost = await startToolhost({ env, surroundings: { maxConnections: 30 } });
    t.after(() => toolhost.stop());
    const sockets = await open(60, toolhost.url, stranger);
    assert.deepEqual(sockets.map(isOpen), Array(60).fill(true));
    for (const socket of sockets) socket.destroy();
  });
});

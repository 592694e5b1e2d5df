import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { divideProcessMemory } from '../../apps/server/src/app/process-memory.ts';
import { chunkOverheadBytes } from '../../apps/server/src/http/read-body.ts';
import { measureReachableBytes } from '../support/collect-garbage.ts';
import { eventually } from '../support/eventually.ts';
import { buildEchoConfig } from '../support/mcp.ts';
import { countShedWork } from '../support/toolhost/scrape-metrics.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const mebibyte = 1024 * 1024;
/** Maximum bytes of arriving bodies per tenant, in a process with twice this work memory. */
const maxBytes = 16 * mebibyte;

/** Connects and sends the head of a request, without its body. */
function openBody({ url }: TestToolhost, path: string, token: string, framing: string): Socket {
  const { host, port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  const head = [`Host: ${host}`, `Authorization: Bearer ${token}`, 'Content-Type: application/json', framing];
  socket.write(`POST ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
  return socket;
}

describe('the memory limit for request bodies that never complete', () => {
  let sockets: Socket[] = [];
  // The service waits for open requests when it stops.
  after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const divideMemory = () => ({ ...divideProcessMemory(1), work: 2 * maxBytes });
  const toolhost = useFixture(() => startToolhost({ runtimeOptions: { divideMemory } }));
  let key: string;
  before(async () => {
    key = await toolhost.createKey();
    await toolhost.createServer(buildEchoConfig('https://api.example'));
  });

  async function sendHead(path: string, token: string, framing: string): Promise<Socket> {
    const socket = openBody(toolhost, path, token, framing);
    sockets.push(socket);
    return socket;
  }
  /** Starts a request and sends all but the last byte of its body. */
  async function startBody(path: string, token: string, bytes: number): Promise<Socket> {
    const socket = await sendHead(path, token, `Content-Length: ${bytes}`);
    await new Promise((resolve) => socket.write(`"${'x'.repeat(bytes - 2)}`, resolve));
    return socket;
  }
  /** Completes a body, which is no valid request, and asserts that it is read. */
  async function completeBody(socket: Socket): Promise<void> {
    const pendingResponse = once(socket, 'data');
    socket.write('"');
    assert.match(String((await pendingResponse)[0]), /^HTTP\/1\.1 400 /);
  }
  const overflowError = /^HTTP\/1\.1 503 .*retry-after: 5\r\n.*too many request bodies are arriving/is;

  /** Starts more bodies than the memory limit allows, and asserts that the last ones are rejected. */
  async function assertOverflowRejected(path: string, token: string, bytes: number): Promise<void> {
    const firstResponse = Promise.withResolvers<string>();
    for (let begun = 0; begun <= maxBytes + 4 * bytes; begun += bytes) {
      const socket = await startBody(path, token, bytes);
      socket.once('data', (data) => firstResponse.resolve(String(data)));
    }
    assert.match(await firstResponse.promise, overflowError);
    assert.ok((await countShedWork(toolhost.url, 'memory')) >= 1);
  }

  it('[find A6] rejects bodies of unverified callers, but not the body of a caller with an API key at the same IP address', async () => {
    const ownSocket = await startBody('/api/v1/servers', key, mebibyte / 4);
    await assertOverflowRejected('/mcp/echo', 'made-up', mebibyte);
    await completeBody(ownSocket);
  });

  it('[sec F3] caps the memory of incomplete bodies, with invalid credentials and with an API key', async () => {
    const before = measureReachableBytes();
    await assertOverflowRejected('/mcp/echo', 'made-up', mebibyte);
    await assertOverflowRejected('/api/v1/servers', key, 4 * mebibyte);
    const growth = measureReachableBytes() - before;
    assert.ok(growth < 3 * maxBytes, `${growth / mebibyte} MiB`);
  });

  it('[sec F3] counts each chunk of a body, because a one-byte chunk takes more memory than its byte', async () => {
    const chunkCount = 12_000;
    const firstResponse = Promise.withResolvers<string>();
    for (let count = 0; count * chunkCount * chunkOverheadBytes <= maxBytes + 4 * mebibyte; count++) {
      const socket = await sendHead('/mcp/echo', 'made-up', 'Transfer-Encoding: chunked');
      socket.once('data', (data) => firstResponse.resolve(String(data)));
      await new Promise((resolve) => socket.write('1\r\nx\r\n'.repeat(chunkCount), resolve));
    }
    assert.match(await firstResponse.promise, overflowError);
  });

  it('[sec F3] still reads the body of another workspace, and rejects only its content', async () => {
    const other = await toolhost.createKey({ workspace: 'other' });
    const description = 'x'.repeat(mebibyte / 8);
    const created = await toolhost.rest('POST', '/servers', { key: other, body: { description } });
    assert.equal(created.status, 400, created.text);
  });

  it('[sec F3] releases the memory of a body when its connection closes', async () => {
    const ended = sockets.map((socket) => once(socket.destroy(), 'close'));
    await Promise.all(ended);
    sockets = [];
    const slow = await startBody('/mcp/echo', 'token', mebibyte);
    for (let i = 0; i < 14; i++) await startBody('/mcp/echo', 'token', mebibyte);
    await completeBody(slow);
  });
});

describe('a body that was answered', () => {
  it('[sec F3] is released after the response, although its connection stays open', async (t) => {
    const toolhost = await startToolhost();
    t.after(() => toolhost.stop());
    await toolhost.createServer(buildEchoConfig('https://api.example'));
    const sendBody = async () => {
      const socket = openBody(toolhost, '/mcp/echo', 'token', `Content-Length: ${mebibyte}`);
      t.after(() => socket.destroy());
      const pendingResponse = once(socket, 'data');
      socket.write(`"${'x'.repeat(mebibyte - 2)}"`);
      assert.match(String((await pendingResponse)[0]), /^HTTP\/1\.1 400 /);
      return socket;
    };
    const firstSocket = await sendBody();
    const before = measureReachableBytes();
    for (let count = 0; count < 16; count++) await sendBody();
    const growth = measureReachableBytes() - before;
    assert.ok(growth < 8 * mebibyte, `${growth / mebibyte} MiB`);
    assert.equal(firstSocket.readyState, 'open');
  });
});

describe('the slot limit for bodies of more than 4 MiB', () => {
  it('[find A6] evicts a slow sender in favor of a workspace that has no slot', async (t) => {
    let clockOffsetMs = 0;
    const toolhost = await startToolhost({ runtimeOptions: { runningClock: () => clockOffsetMs } });
    t.after(() => toolhost.stop());
    const createKey = (workspace: string) => toolhost.createKey({ workspace });
    const rejections: string[] = [];
    for (const key of await Promise.all(['one', 'two', 'three', 'four', 'five'].map(createKey))) {
      for (let count = 0; count < 2; count++) {
        const socket = openBody(toolhost, '/api/v1/import', key, 'Content-Length: 5000000');
        t.after(() => socket.destroy());
        socket.on('data', (data) => rejections.push(String(data)));
        socket.write('{"document":"');
      }
    }
    const other = await createKey('other');
    const paths = { '/a': { get: { operationId: 'a', responses: {} } } };
    const info = { title: 'A', version: '1' };
    const documentHead = { openapi: '3.0.0', info, servers: [{ url: 'https://api.example' }] };
    const document = JSON.stringify({ ...documentHead, paths, 'x-padding': 'x'.repeat(4.4 * mebibyte) });
    const startImport = () => toolhost.rest('POST', '/import', { key: other, body: { document } });
    const rejectedText = await eventually(async () => {
      const { status, text } = await startImport();
      assert.equal(status, 429);
      return text;
    });
    assert.match(rejectedText, /too many large bodies are being read/);
    // Two of the ten requests got no slot.
    await eventually(() => assert.equal(rejections.length, 2));
    clockOffsetMs += 3000;
    const imported = await startImport();
    assert.equal(imported.status, 200, imported.text);
    await eventually(() => assert.equal(rejections.length, 3));
    assert.match(
      String(rejections[2]),
      /^HTTP\/1\.1 429 .*retry-after: 5\r\n.*the body arrived slowly while other requests were waiting/is,
    );
  });
});

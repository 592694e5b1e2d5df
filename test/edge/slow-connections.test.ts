import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

const token = 'caller-token';
const connectionsPerKind = 100;
const byteIntervalMs = 100;
const idleTimeoutMs = 400;

/** Connection that sends `begins` and then `drip`, one byte per interval. */
type SlowClient = { closed: Promise<void>; getReceived(): string };

function openSlowClient(toolhost: TestToolhost, prefix: string, slowBytes: string): SlowClient {
  const socket = connect(Number(new URL(toolhost.url).port), '127.0.0.1');
  let received = '';
  let remaining = slowBytes;
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  // Writes fail after the server closed the connection.
  socket.on('error', () => undefined);
  socket.write(prefix);
  const timer = setInterval(() => {
    if (!socket.writable || remaining === '') return;
    socket.write(remaining.slice(0, 1));
    remaining = remaining.slice(1);
  }, byteIntervalMs);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve())).then(() => clearInterval(timer));
  return { closed, getReceived: () => received };
}

describe('timeout handling of slow connections', () => {
  it('[sec F4] closes hundreds of slow connections on time, whatever they send, while calls of other clients are served', async (t) => {
    // Longer than a busy machine may delay reading an arrived request, which would otherwise be closed too.
    const timeouts = { headersTimeoutMs: 6000, requestTimeoutMs: 9000 };
    const upstream = await startRecordingUpstream();
    const toolhost = await startToolhost({ egressPorts: [upstream.port], runtimeOptions: timeouts });
    t.after(() => Promise.all([toolhost.stop(), upstream.close()]));
    await toolhost.createServer(buildServerAt('quick', upstream.url));
    const { host } = new URL(toolhost.url);
    const head = ['POST /mcp/quick HTTP/1.1', `Host: ${host}`, `Authorization: Bearer ${token}`];
    const body = ['Content-Type: application/json', 'Content-Length: 10000', '', '{"jsonrpc":'];
    const kinds: [begins: string, drip: string][] = [
      ['', ''],
      [`${head.join('\r\n')}\r\nX-Slow: `, 'a'.repeat(1000)],
      [[...head, ...body].join('\r\n'), ' '.repeat(1000)],
    ];
    const clients = kinds.map(([begins, drip]) =>
      Array.from({ length: connectionsPerKind }, () => openSlowClient(toolhost, begins, drip)),
    );
    let open = true;
    // Without the two timeouts, Node.js defaults of a minute and more apply, far longer than any delay of a busy machine.
    const allClosed = assertWithinDeadline(30_000, () => Promise.all(clients.flat().map(({ closed }) => closed)));
    void allClosed.finally(() => {
      open = false;
    });
    let completedCalls = 0;
    while (open) {
      assert.notEqual((await toolhost.callTool('quick', token, 'get')).isError, true);
      completedCalls += 1;
      await delay(50);
    }
    await allClosed;
    assert.ok(completedCalls > 10, `${completedCalls} calls were answered`);
    assert.equal(upstream.requests.length, completedCalls);
    const [, headers = [], bodies = []] = clients;
    for (const { getReceived } of [...headers, ...bodies]) assert.match(getReceived(), /^$|^HTTP\/1\.1 408 /);
    assert.ok([...headers, ...bodies].some(({ getReceived }) => getReceived() !== ''));
  });

  it('[sec F4] allows a request that arrives slowly but in time', async (t) => {
    const toolhost = await startToolhost();
    t.after(() => toolhost.stop());
    await toolhost.createServer(buildServerAt('quick', 'https://api.example'));
    const { host, port } = new URL(toolhost.url);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const head = ['POST /mcp/quick HTTP/1.1', `Host: ${host}`, `Authorization: Bearer ${token}`, 'Connection: close'];
    const text = [...head, 'Content-Type: application/json', `Content-Length: ${body.length}`, '', body].join('\r\n');
    const socket = connect(Number(port), '127.0.0.1');
    const response = readUntilClosed(socket);
    for (const [few] of text.matchAll(/.{1,8}/gs)) {
      socket.write(few);
      await delay(1);
    }
    assert.match(await response, /^HTTP\/1\.1 200 .*"result":\{\}/s);
  });

  it('[sec F4] closes an idle connection after the idle timeout, and not earlier', async (t) => {
    const toolhost = await startToolhost({ runtimeOptions: { idleTimeoutMs } });
    t.after(() => toolhost.stop());
    const { host, port } = new URL(toolhost.url);
    const socket = connect(Number(port), '127.0.0.1');
    const startedAt = performance.now();
    const response = readUntilClosed(socket);
    socket.write(`GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    assert.match(await response, /^HTTP\/1\.1 200 .*connection: keep-alive/is);
    assert.ok(performance.now() - startedAt >= idleTimeoutMs);
  });
});

async function readUntilClosed(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (data) => {
    text += data.toString('latin1');
  });
  await once(socket, 'close');
  return text;
}

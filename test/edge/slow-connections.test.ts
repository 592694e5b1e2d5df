import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { serverAt } from '../support/configs.ts';
import { onTime } from '../support/on-time.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const token = 'caller-token';
const connectionsOfAKind = 100;
const dripMs = 100;
const silentMs = 400;

/** Connection that sends `begins` and then `drip`, one byte per interval. */
type SlowClient = { closed: Promise<void>; said(): string };

function slowClient(toolhost: TestToolhost, begins: string, drip: string): SlowClient {
  const socket = connect(Number(new URL(toolhost.url).port), '127.0.0.1');
  let said = '';
  let left = drip;
  socket.on('data', (data) => {
    said += data.toString('latin1');
  });
  // Writes fail after the server closed the connection.
  socket.on('error', () => undefined);
  socket.write(begins);
  const timer = setInterval(() => {
    if (!socket.writable || left === '') return;
    socket.write(left.slice(0, 1));
    left = left.slice(1);
  }, dripMs);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve())).then(() => clearInterval(timer));
  return { closed, said: () => said };
}

describe('timeout handling of slow connections', () => {
  it('[sec F4] closes hundreds of slow connections on time, whatever they send, while calls of other clients are served', async () => {
    const upstream = await startRecordingUpstream();
    // Longer than a busy machine may delay reading an arrived request, which would otherwise be closed too.
    const patience = { headersTimeoutMs: 6000, requestTimeoutMs: 9000 };
    const toolhost = await startToolhost({ egress: [upstream.port], surroundings: patience });
    await toolhost.createServer(serverAt('quick', upstream.url));
    const { host } = new URL(toolhost.url);
    const head = ['POST /mcp/quick HTTP/1.1', `Host: ${host}`, `Authorization: Bearer ${token}`];
    const body = ['Content-Type: application/json', 'Content-Length: 10000', '', '{"jsonrpc":'];
    const kinds: [begins: string, drip: string][] = [
      ['', ''],
      [`${head.join('\r\n')}\r\nX-Slow: `, 'a'.repeat(1000)],
      [[...head, ...body].join('\r\n'), ' '.repeat(1000)],
    ];
    const clients = kinds.map(([begins, drip]) =>
      Array.from({ length: connectionsOfAKind }, () => slowClient(toolhost, begins, drip)),
    );
    let open = true;
    // Without the two timeouts, Node.js defaults of a minute and more apply, far longer than any delay of a busy machine.
    const allClosed = onTime(30_000, () => Promise.all(clients.flat().map(({ closed }) => closed))).finally(() => {
      open = false;
    });
    let answered = 0;
    while (open) {
      assert.notEqual((await toolhost.callTool('quick', token, 'get')).isError, true);
      answered += 1;
      await delay(50);
    }
    await allClosed;
    assert.ok(answered > 10, `${answered} calls were answered`);
    assert.equal(upstream.requests.length, answered);
    const [, headers = [], bodies = []] = clients;
    for (const { said } of [...headers, ...bodies]) assert.match(said(), /^$|^HTTP\/1\.1 408 /);
    assert.ok([...headers, ...bodies].some(({ said }) => said() !== ''));
    await toolhost.stop();
    await upstream.close();
  });

  it('[sec F4] allows a request that arrives slowly but in time', async () => {
    const upstream = await startRecordingUpstream();
    const toolhost = await startToolhost({ egress: [upstream.port] });
    await toolhost.createServer(serverAt('quick', upstream.url));
    const { host, port } = new URL(toolhost.url);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const head = ['POST /mcp/quick HTTP/1.1', `Host: ${host}`, `Authorization: Bearer ${token}`, 'Connection: close'];
    const text = [...head, 'Content-Type: application/json', `Content-Length: ${body.length}`, '', body].join('\r\n');
    const socket = connect(Number(port), '127.0.0.1');
    const answered = read(socket);
    for (const [few] of text.matchAll(/.{1,8}/gs)) {
      socket.write(few);
      await delay(1);
    }
    assert.match(await answered, /^HTTP\/1\.1 200 .*"result":\{\}/s);
    await toolhost.stop();
    await upstream.close();
  });

  it('[sec F4] closes an idle connection after the idle timeout, and not earlier', async () => {
    const toolhost = await startToolhost({ surroundings: { idleTimeoutMs: silentMs } });
    const { host, port } = new URL(toolhost.url);
    const socket = connect(Number(port), '127.0.0.1');
    const startedAt = performance.now();
    const answered = read(socket);
    socket.write(`GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    assert.match(await answered, /^HTTP\/1\.1 200 .*connection: keep-alive/is);
    assert.ok(performance.now() - startedAt >= silentMs);
    await toolhost.stop();
  });
});

async function read(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (data) => {
    text += data.toString('latin1');
  });
  await once(socket, 'close');
  return text;
}

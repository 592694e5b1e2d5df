import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { before, describe, it } from 'node:test';
import { divideProcessMemory } from '../../apps/server/src/app/process-memory.ts';
import { buildEchoConfig } from '../support/mcp.ts';
import { getResultText } from '../support/one-tool.ts';
import { countShedWork } from '../support/toolhost/scrape-metrics.ts';
import type { TestToolhost } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

const mebibyte = 1024 * 1024;

/** Sends requests over a new connection and reads nothing. */
function sendUnread({ url }: TestToolhost, head: string, { token = '', body = '', times: repeatCount = 1 }): Socket {
  const { host, port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  const lines = [head, `Host: ${host}`, ...(token && [`Authorization: Bearer ${token}`])];
  const sent = body && ['Content-Type: application/json', `Content-Length: ${body.length}`];
  socket.write(`${[...lines, ...sent].join('\r\n')}\r\n\r\n${body}`.repeat(repeatCount));
  return socket;
}

/** Resolves when the server closed the connection, which a client that reads nothing detects by writing. */
async function waitUntilClosed(socket: Socket): Promise<void> {
  const probing = setInterval(() => socket.write('\r\n'), 20);
  await new Promise((resolve) => socket.once('close', resolve));
  clearInterval(probing);
}

/** Reads a response to its end and returns the length of its body. */
async function readBodyLength(socket: Socket): Promise<number> {
  let head = '';
  let read = 0;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    if (!head.includes('\r\n\r\n')) head += chunk.toString('latin1');
    read += chunk.length;
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1]);
    const start = head.indexOf('\r\n\r\n') + 4;
    if (read - start === length) return length;
  }
  return 0;
}

const message = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
/** Creates a server whose description and tool list have more than 3 MB each. */
const wideConfig = (url: string) => {
  const [tool] = buildServerAt('wide', url).tools as object[];
  const tools = Array.from({ length: 900 }, (_, n) => ({ ...tool, name: `get-${n}`, description: 'x'.repeat(3800) }));
  return { name: 'wide', slug: 'wide', tools };
};

describe('a response that the client does not read', () => {
  const divideMemory = () => ({ ...divideProcessMemory(1), work: 73 * mebibyte });
  const { toolhost, upstream } = useToolhostWithUpstream({ runtimeOptions: { divideMemory } });
  let key: string;
  before(async () => {
    upstream.on('GET /echo', () => ({ body: { text: '"'.repeat(4 * mebibyte) } }));
    key = await toolhost.createKey();
    await toolhost.createServer(buildEchoConfig(upstream.url));
  });

  const call = (token: string) =>
    sendUnread(toolhost, 'POST /mcp/echo HTTP/1.1', { token, body: message('tools/call', { name: 'echo' }) });

  it('[find A6] is cut off for an unverified caller if memory is short, but not for a caller with an API key at the same IP address', async () => {
    const verifiedSocket = call(key);
    await once(verifiedSocket, 'readable');
    const unverifiedSockets: Socket[] = [];
    // A response takes twice the size of the upstream response, and the second one has room only for that.
    for (let count = 0; count < 2; count++) {
      const socket = call('made-up');
      unverifiedSockets.push(socket);
      await Promise.race([once(socket, 'readable'), once(socket, 'close')]);
    }
    await Promise.any(unverifiedSockets.map(waitUntilClosed));
    assert.ok((await countShedWork(toolhost.url, 'unread_answer')) >= 1);
    assert.ok((await readBodyLength(verifiedSocket)) > 8 * mebibyte);
    for (const socket of [verifiedSocket, ...unverifiedSockets]) socket.destroy();
  });

  it('[find A6] is charged to the caller if it is a batch of a tool list and a call', async () => {
    const body = `[${message('tools/list', {})},${message('tools/call', { name: 'echo' })}]`;
    const sockets: Socket[] = [];
    // Half of the memory is less than five responses.
    for (let count = 0; count < 4; count++) {
      const socket = sendUnread(toolhost, 'POST /mcp/echo HTTP/1.1', { token: key, body });
      sockets.push(socket);
      await once(socket, 'readable');
    }
    const result = await toolhost.callTool('echo', key, 'echo');
    assert.match(getResultText(result), /no memory left/);
    for (const socket of sockets) socket.destroy();
  });
});

describe('a client that reads nothing and keeps sending bytes', () => {
  const { toolhost, upstream } = useToolhostWithUpstream({ runtimeOptions: { slowReaderMs: 200 } });
  let key: string;
  before(async () => {
    key = await toolhost.createKey();
    await toolhost.createServer(wideConfig(upstream.url));
  });

  // Larger than the socket buffers between client and server.
  const routes: [what: string, head: string, times: number, body?: string][] = [
    ['a REST operation', 'GET /api/v1/servers/wide HTTP/1.1', 5],
    ['a document of the service', 'GET /api/v1/openapi.json HTTP/1.1', 90],
    ['an MCP endpoint', 'POST /mcp/wide HTTP/1.1', 5, message('tools/list', {})],
  ];
  for (const [name, head, repeatCount, body = ''] of routes) {
    it(`[sec G3] is disconnected at ${name}`, () =>
      waitUntilClosed(sendUnread(toolhost, head, { token: key, body, times: repeatCount })));
  }
});

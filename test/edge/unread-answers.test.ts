import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { processMemory } from '../../src/app/process-memory.ts';
import { serverAt } from '../support/configs.ts';
import { echoConfig } from '../support/mcp.ts';
import { countGivenUp } from '../support/toolhost/scrape.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const mebibyte = 1024 * 1024;

/** Sends requests over one connection of its own, and reads nothing. */
function ask({ url }: TestToolhost, head: string, { token = '', body = '', times = 1 }): Socket {
  const { host, port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  const lines = [head, `Host: ${host}`, ...(token && [`Authorization: Bearer ${token}`])];
  const sent = body && ['Content-Type: application/json', `Content-Length: ${body.length}`];
  socket.write(`${[...lines, ...sent].join('\r\n')}\r\n\r\n${body}`.repeat(times));
  return socket;
}

/** Resolves when a connection was cut off, which a client that reads nothing learns by writing. */
async function isCut(socket: Socket): Promise<void> {
  const probing = setInterval(() => socket.write('\r\n'), 20);
  await new Promise((resolve) => socket.once('close', resolve));
  clearInterval(probing);
}

/** Reads an answer to its end, and gives the bytes of its body. */
async function bytesOf(socket: Socket): Promise<number> {
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
/** A server whose description and list of tools have more than 3 MB each. */
const wideConfig = (url: string, slug = 'wide') => {
  const [tool] = serverAt('wide', url).tools as object[];
  const tools = Array.from({ length: 900 }, (_, n) => ({ ...tool, name: `get-${n}`, description: 'x'.repeat(3800) }));
  return { name: slug, slug, tools };
};

describe('answers that a client does not read', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  let moved = 0;
  before(async () => {
    upstream = await startRecordingUpstream();
    upstream.on('GET /echo', () => ({ body: { text: 'x'.repeat(4 * mebibyte) } }));
    const clock = () => performance.now() + moved;
    toolhost = await startToolhost({ egress: [upstream.port], surroundings: { runningClock: clock } });
    key = await toolhost.key();
    await toolhost.createServer(echoConfig(upstream.url));
    await toolhost.createServer(wideConfig(upstream.url));
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  const call = (token: string) =>
    ask(toolhost, 'POST /mcp/echo HTTP/1.1', { token, body: message('tools/call', { name: 'echo' }) });
  const owners: [what: string, begin: () => Socket, bytes: number][] = [
    ['a call with a key', () => call(key), 8 * mebibyte],
    ['a REST request with a key', () => ask(toolhost, 'GET /api/v1/servers/wide HTTP/1.1', { token: key }), 3_000_000],
  ];
  for (const [what, begin, bytes] of owners) {
    it(`[find A6] of strangers go when there are too many, and not that of ${what} from the same address`, async () => {
      const own = begin();
      await once(own, 'readable');
      const strangers = Array.from({ length: 10 }, () => call('made-up'));
      await Promise.all(strangers.map((socket) => once(socket, 'readable')));
      // What began less than two seconds ago may still be read at a usual pace.
      moved += 3000;
      const last = call('made-up');
      // Which of them began first is not known here: their answers come from the upstream at the same time.
      await Promise.any(strangers.map(isCut));
      assert.ok((await countGivenUp(toolhost.url, 'unread_answer')) >= 1);
      assert.ok((await bytesOf(own)) > bytes);
      // Those that were not cut can still be read.
      assert.ok((await bytesOf(last)) > 8 * mebibyte);
      for (const socket of [own, last, ...strangers]) socket.destroy();
    });
  }

  it('[find A6] count once where all hold the same list of tools, and nobody who reads it slowly is cut off', async () => {
    // The system takes the first answer of a connection; the second one stays with the service.
    const list = () =>
      ask(toolhost, 'POST /mcp/wide HTTP/1.1', { token: key, body: message('tools/list', {}), times: 2 });
    // In full for each of them, these would be more than twice the limit.
    const readers = Array.from({ length: 45 }, list);
    await Promise.all(readers.map((socket) => once(socket, 'readable')));
    moved += 3000;
    readers.push(list());
    for (const socket of readers) {
      let read = 0;
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        read += chunk.length;
        if (read > 6_500_000) break;
      }
      assert.ok(read > 6_500_000, `${read} bytes`);
    }
  });

  it('[find A6] are spared while they are new, up to twice the limit', async () => {
    const sockets = Array.from({ length: 20 }, () => call('made-up'));
    await Promise.any(sockets.map(isCut));
    for (const socket of sockets) socket.destroy();
  });
});

describe('a list of tools that several clients leave unread', () => {
  it('[find A6] counts for those that are left when the first of them has gone', async (t) => {
    let moved = 0;
    const clock = () => performance.now() + moved;
    const memory = () => ({ ...processMemory(1), slowClients: 4 * mebibyte });
    const toolhost = await startToolhost({ surroundings: { runningClock: clock, memory } });
    const sockets: Socket[] = [];
    t.after(() => {
      for (const socket of sockets) socket.destroy();
      return toolhost.stop();
    });
    const token = await toolhost.key();
    for (const slug of ['wide', 'other']) await toolhost.createServer(wideConfig('https://api.example', slug));
    // The system takes the first answer of a connection; the second one stays with the service.
    const list = async (slug: string) => {
      const socket = ask(toolhost, `POST /mcp/${slug} HTTP/1.1`, { token, body: message('tools/list', {}), times: 2 });
      sockets.push(socket);
      await once(socket, 'readable');
      return socket;
    };
    const first = await list('wide');
    const second = await list('wide');
    first.destroy();
    let hasEnded = false;
    const ended = isCut(second).then(() => {
      hasEnded = true;
    });
    // Together with that of another server the list is above the limit. It may begin to wait at any time.
    while (!hasEnded) {
      moved += 3000;
      await list('other');
    }
    await ended;
  });
});

describe('a client that reads nothing, and sends bytes all the time', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port], surroundings: { slowReaderMs: 200 } });
    key = await toolhost.key();
    await toolhost.createServer(wideConfig(upstream.url));
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  // More than the buffers between the two hold.
  const routes: [what: string, head: string, times: number, body?: string][] = [
    ['a REST operation', 'GET /api/v1/servers/wide HTTP/1.1', 5],
    ['a document of the service', 'GET /api/v1/openapi.json HTTP/1.1', 90],
    ['an MCP endpoint', 'POST /mcp/wide HTTP/1.1', 5, message('tools/list', {})],
  ];
  for (const [what, head, times, body = ''] of routes) {
    it(`[sec G3] is cut off at ${what}`, () => isCut(ask(toolhost, head, { token: key, body, times })));
  }
});

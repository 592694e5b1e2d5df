import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { absentId, assertRefused, buildEchoConfig, getRpcResult } from '../support/mcp.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { sendRawRequest, sendUntilClosed } from '../support/upstreams/raw-request.ts';

const token = 'caller-token';
const mebibyte = 1024 * 1024;

/**
 * CPU time of this thread since `startUsage`, in ms. Nothing can block the event loop for longer than that, and unlike
 * wall-clock time it does not grow when other programs are busy. It includes the client's own work. Other threads of
 * the process are excluded, because they mostly collect the garbage of earlier test files.
 */
function getCpuMs(startUsage: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(startUsage);
  return (user + system) / 1000;
}

describe('the HTTP listener under adversarial requests', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();
  let host: string;
  before(async () => {
    host = new URL(toolhost.url).host;
    await toolhost.createServer(buildEchoConfig(upstream.url));
  });

  const post = (body: string) => toolhost.post('echo', body, { token });
  const head = (extra: readonly string[], version = '1.1') => {
    const lines = [`Host: ${host}`, `Authorization: Bearer ${token}`, 'Content-Type: application/json', ...extra];
    return `POST /mcp/echo HTTP/${version}\r\n${lines.join('\r\n')}\r\n\r\n`;
  };
  const chunked = 'Transfer-Encoding: chunked';
  const livez = (...lines: string[]) => `GET /livez HTTP/1.1\r\n${[`Host: ${host}`, ...lines].join('\r\n')}\r\n\r\n`;
  /** Sends bytes and returns the status lines of the responses. */
  const sendForStatuses = async (bytes: string) =>
    (await sendUntilClosed(toolhost.url, bytes)).match(/HTTP\/1\.1 \d+/g)?.map((line) => Number(line.slice(9)));
  const connectToToolhost = () => {
    const socket = connect(Number(new URL(toolhost.url).port), '127.0.0.1');
    return socket.on('error', () => undefined);
  };
  const assertCheap = (startUsage: NodeJS.CpuUsage) =>
    assert.ok(getCpuMs(startUsage) < 400, `${getCpuMs(startUsage)} ms of work`);
  const assertAlive = async () => assert.deepEqual(getRpcResult(await toolhost.rpc('echo', token, 'ping')), {});
  const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' });

  const oversizedBodies: [string, () => string, number, number][] = [
    ['5 MB of one string', () => JSON.stringify('x'.repeat(5 * mebibyte)), 413, -32600],
    ['a batch of 10,000', () => JSON.stringify(Array.from({ length: 10_000 }, (_, id) => ping(id))), 400, -32600],
    ['1,000,000 elements', () => `[${'0,'.repeat(999_999)}0]`, 413, -32600],
    ['400,000 elements below the size limit', () => `[${'0,'.repeat(399_999)}0]`, 413, -32600],
    ['100,001 empty objects below the size limit', () => `[${'{},'.repeat(100_000)}{}]`, 413, -32600],
    ['a depth of 100,000', () => '['.repeat(100_000) + ']'.repeat(100_000), 413, -32600],
    ['a depth of 100,000 objects', () => '{"a":'.repeat(100_000), 413, -32600],
    ['a depth of 65', () => '['.repeat(65) + ']'.repeat(65), 413, -32600],
    ['a number of a million digits', () => `{"jsonrpc":"2.0","method":"ping","id":${'9'.repeat(1e6)}}`, 400, -32600],
    ['a million escapes', () => `["${'\\n'.repeat(500_000)}`, 400, -32700],
  ];
  for (const [name, createBody, status, code] of oversizedBodies) {
    it(`[sec F3] returns ${status} for ${name} within the CPU budget, and no other request waits`, async () => {
      const body = createBody();
      const memory = process.memoryUsage.rss();
      const startUsage = process.threadCpuUsage();
      assertRefused(await post(body), status, code, absentId);
      assertCheap(startUsage);
      assert.ok(process.memoryUsage.rss() - memory < 100 * mebibyte);
      await assertAlive();
    });
  }

  it('[sec F3] returns an error with the id of a message that has too many elements', async () => {
    const params = `{"a":[${'0,'.repeat(60_000)}0]}`;
    const rejected = await post(`{"jsonrpc":"2.0","id":17,"method":"ping","params":${params}}`);
    assertRefused(rejected, 413, -32600, 17);
    // The official TypeScript client writes the id last.
    assertRefused(await post(`{"method":"ping","params":${params},"jsonrpc":"2.0","id":18}`), 413, -32600, 18);
    assertRefused(await post('{"jsonrpc":"2.0","id":19,"method":"ping","params":{bad}}'), 400, -32700, absentId);
  });

  it('[find A3] enables stack traces again after it disconnected a client with too many requests', async () => {
    const { stackTraceLimit } = Error;
    const requests = `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(1000);
    await sendUntilClosed(toolhost.url, requests).catch(() => undefined);
    await assertAlive();
    assert.equal(Error.stackTraceLimit, stackTraceLimit);
    assert.ok(stackTraceLimit > 0);
  });

  it('[sec F3] returns 413 for 5 MB in chunks without a Content-Length, and the connection stays reusable', async () => {
    const startUsage = process.threadCpuUsage();
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const body = `${chunk.repeat(80)}0\r\n\r\n`;
    assert.deepEqual(await sendForStatuses(head([chunked]) + body + livez('Connection: close')), [413, 200]);
    assertCheap(startUsage);
  });

  for (const length of ['Content-Length: 5242880', 'Transfer-Encoding: chunked']) {
    it(`[sec F3] returns 413 to a client that sends 5 MB (${length}) before it reads`, async () => {
      const socket = connectToToolhost();
      const body = 'x'.repeat(5 * mebibyte);
      socket.pause();
      socket.write(head([length]));
      const framed = length.startsWith('T') ? `500000\r\n${body}\r\n0\r\n\r\n` : body;
      await promisify((callback: (error?: Error | null) => void) => socket.write(framed, callback))();
      socket.resume();
      const [response] = await once(socket, 'data');
      assert.match(String(response), /^HTTP\/1\.1 413 /);
      socket.destroy();
    });
  }

  it('[sec F3] rejects and disconnects a client whose body arrives in tens of thousands of one-byte chunks', async () => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"ping"${' '.repeat(100_000)}}`;
    const chunks = `${[...text].map((character) => `1\r\n${character}\r\n`).join('')}0\r\n\r\n`;
    const startUsage = process.threadCpuUsage();
    const responses = await sendUntilClosed(toolhost.url, head([chunked]) + chunks).catch(String);
    assert.match(responses, /^HTTP\/1\.1 413 |ECONNRESET/);
    assertCheap(startUsage);
    const acceptedChunks = `${chunks.slice(0, 6 * 16_000)}0\r\n\r\n`;
    const statuses = await sendForStatuses(head([chunked]) + acceptedChunks + livez('Connection: close'));
    assert.deepEqual(statuses, [400, 200]);
    await assertAlive();
  });

  for (const expectation of [[], ['Expect: 100-continue'], ['Expect: something-else']]) {
    it(`[sec F3] disconnects a client whose body has no end ${expectation}`, async () => {
      const socket = connectToToolhost();
      socket.resume();
      socket.write(head([...expectation, chunked]));
      const chunk = `100000\r\n${'x'.repeat(mebibyte)}\r\n`;
      let sent = 0;
      while (!socket.destroyed && sent < 200) {
        sent++;
        if (!socket.write(chunk))
          await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined);
      }
      assert.ok(sent < 60, `${sent} MB`);
      await assertAlive();
    });
  }

  it('ignores an unknown expectation', async () => {
    const body = JSON.stringify(ping(7));
    const headers = [`Content-Length: ${body.length}`, 'Expect: something-else', 'Connection: close'];
    const response = await sendUntilClosed(toolhost.url, head(headers) + body);
    assert.match(response, /^HTTP\/1\.1 200 .*"id":7,"result"/s);
  });

  it('[sec F3] returns an invalid JSON error for bytes that are not UTF-8', async () => {
    const params = { name: 'note', arguments: { text: '?' } };
    const call = Buffer.from(JSON.stringify({ ...ping(1), method: 'tools/call', params }));
    const broken = Buffer.from(call);
    broken[call.indexOf('?')] = 0xff;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const reply = await sendRawRequest(`${toolhost.url}/mcp/echo`, { method: 'POST', headers }, broken);
    assert.deepEqual([reply.status, /-32700/.test(reply.text)], [400, true]);
    assert.equal(upstream.requests.length, 0);
  });

  /** Header lines of requests with an empty chunked body. */
  const ambiguousChunkedHeads: [name: string, lines: string[], version?: string][] = [
    ['Content-Length and Transfer-Encoding', ['Content-Length: 5', chunked]],
    ['Transfer-Encoding and Content-Length', [chunked, 'Content-Length: 5']],
    ['an unknown Transfer-Encoding', ['Transfer-Encoding: xchunked']],
    ['another coding before chunked', ['Transfer-Encoding: gzip, chunked']],
    ['two Transfer-Encoding', ['Transfer-Encoding: gzip', chunked]],
    ['a Transfer-Encoding in HTTP/1.0', ['Connection: keep-alive', chunked], '1.0'],
    ['a Transfer-Encoding with a space before the colon', ['Transfer-Encoding : chunked']],
  ];
  /** Further header lines of requests with a body of two bytes. */
  const ambiguousHeads: [name: string, ...lines: string[]][] = [
    ['two different Content-Length', 'Content-Length: 3'],
    ['two equal Content-Length', 'Content-Length: 2'],
    ['two Host', 'Host: $host'],
    ['a foreign second Host', 'Host: evil.example'],
    ['two Authorization', 'Authorization: Bearer other'],
    ['two Host in two spellings', 'HOST: $host'],
    ['two Origin in two spellings', 'Origin: $url', 'ORIGIN: $url'],
    ['two Content-Type in two spellings', 'CONTENT-TYPE: text/plain'],
    [
      'two Authorization in two spellings, with a name between them that begins alike',
      ...['Accept-Answer: a', 'AUTHORIZATION: Bearer other'],
    ],
    ['two Origin', 'Origin: $url', 'Origin: https://evil.example'],
    ['two Content-Type', 'Content-Type: text/plain'],
    ['a folded header', 'X-Folded: a\r\n b'],
    ['a bare line feed', 'X-A: b\nX-B: c'],
    ['a NUL in a header', 'X-A: b\0c'],
  ];
  /** Requests that are sent verbatim, followed by a second request that must not be served. */
  const smuggledRequests: [name: string, createRequest: () => string, status: number][] = [
    ...ambiguousChunkedHeads.map(([name, lines, version]): [string, () => string, number] => [
      name,
      () => `${head(lines, version)}0\r\n\r\n`,
      400,
    ]),
    ...ambiguousHeads.map(([name, ...lines]): [string, () => string, number] => [
      name,
      () =>
        `${head([...lines, 'Content-Length: 2'])
          .replaceAll('$host', host)
          .replaceAll('$url', toolhost.url)}{}`,
      400,
    ]),
    ['a list of Content-Length', () => `${head(['Content-Length: 2, 2'])}{}`, 400],
    ['a header of 17 KB', () => `${head([`X-Large: ${'x'.repeat(17 * 1024)}`, 'Content-Length: 2'])}{}`, 431],
    ['no Host', () => 'POST /mcp/echo HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}', 400],
    ['no Host in HTTP/1.0', () => 'GET /mcp/echo HTTP/1.0\r\n\r\n', 421],
    ['TLS on the plain port', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
  ];
  for (const [name, createRequest, status] of smuggledRequests) {
    it(`[sec F4] returns ${status} and closes the connection for ${name}`, async () => {
      const responses = await sendUntilClosed(toolhost.url, createRequest() + livez());
      assert.deepEqual(responses.match(/HTTP\/1\.1 \d+/g), [`HTTP/1.1 ${status}`]);
      assert.match(responses, /Connection: close/);
      assert.equal(upstream.requests.length, 0);
    });
  }

  it('accepts repeated headers whose names only resemble headers that may occur once', async () => {
    const body = JSON.stringify(ping(1));
    // Each name has the length and first letter of such a header, and occurs twice.
    const names = ['Hope', 'Accept-Answer', 'Option', 'Content-Kind', 'Content-Answer'];
    const similarHeaders = names.flatMap((name) => [`${name}: a`, `${name}: b`]);
    const headers = [...similarHeaders, 'Connection: close', `Content-Length: ${body.length}`];
    assert.match(await sendUntilClosed(toolhost.url, head(headers) + body), /^HTTP\/1\.1 200 /);
  });

  const dotSegments = [
    '/mcp/../mcp/echo',
    '/mcp/../x',
    '/mcp/./echo',
    '/mcp/%2e%2e/x',
    '/mcp/%2E%2e/x',
    '/mcp/echo/..',
  ];
  const otherPaths = ['/mcp/echo%2fx', '/mcp/echo%5cx', '/mcp\\echo', '//mcp/echo', '/mcp//echo', '*'];
  for (const path of [...dotSegments, ...otherPaths]) {
    it(`[sec F4] returns 400 and closes the connection for the path ${path}`, async () => {
      const method = path === '*' ? 'OPTIONS' : 'POST';
      const request = head(['Content-Length: 2']).replace('POST /mcp/echo', `${method} ${path}`);
      const responses = await sendUntilClosed(toolhost.url, `${request}{}`);
      assert.deepEqual(responses.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 400']);
      assert.match(responses, /Connection: close/);
    });
  }

  it('[sec F4] still serves requests afterwards', assertAlive);
});

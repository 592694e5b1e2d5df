import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, describe, it } from 'node:test';
import { formatApiKey } from '@toolhost/credentials/ids';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

const json = { 'content-type': 'application/json' };
const unknownKey = formatApiKey(new Uint8Array(9).fill(7), new Uint8Array(32).fill(9)).key;

/** Requests that are rejected by their headers, labeled by the problem. */
const refusals: [what: string, path: string, headers: Record<string, string>, status: number][] = [
  ['an unknown slug', '/mcp/absent-here', {}, 404],
  ['an invalid slug', '/mcp/Not_A_Slug!', {}, 404],
  ['no credential', '/mcp/keyed', {}, 401],
  ['a malformed credential', '/mcp/keyed', { authorization: 'Basic x' }, 401],
  ['a made-up credential', '/mcp/keyed', { authorization: 'Bearer made-up' }, 401],
  ['a well-formed key that does not exist', '/mcp/keyed', { authorization: `Bearer ${unknownKey}` }, 401],
  ['no credential at the management server', '/mcp/manage', {}, 401],
  ['a made-up login at the management server', '/mcp/manage', { authorization: `Bearer tha_${'x'.repeat(43)}` }, 401],
];

describe('requests that are rejected by their headers', async () => {
  const toolhost = await startToolhost();
  const authentication = { type: 'Bearer', token: 'stored' };
  await toolhost.createServer(buildServerAt('keyed', 'https://api.example', { authentication }));
  after(() => toolhost.stop());

  const sendRejected = (path: string, headers: Record<string, string>, body: string | Buffer) =>
    sendRawRequest(toolhost.url + path, { method: 'POST', headers: { ...json, ...headers } }, body);
  /** Returns the ID of an error response as text, with all its digits, or undefined without one. */
  const getId = (text: string) => /^\{"jsonrpc":"2.0",(?:"id":(.*?),)?"error":\{"code":/s.exec(text)?.[1];
  const getEchoedId = async (body: string | Buffer) => getId((await sendRejected('/mcp/absent-here', {}, body)).text);

  it('[find A3] get a response with the message ID, whatever rejects them', async () => {
    for (const [problem, path, headers, status] of refusals) {
      const reply = await sendRejected(path, headers, '{"jsonrpc":"2.0","id":"mine","method":"ping"}');
      assert.deepEqual([reply.status, getId(reply.text)], [status, '"mine"'], problem);
    }
  });

  it('[find A3] get the ID that a parser would find, without parsing', async () => {
    const cases: [body: string, id: string][] = [
      ['{"id":1}', '1'],
      [' \n{\t"id" : 1 }\r\n', '1'],
      ['{"id":9007199254740992}', '9007199254740992'],
      ['{"id":9007199254740993}', '9007199254740993'],
      ['{"id":-100000000000000000000}', '-100000000000000000000'],
      [`{"id":${'9'.repeat(100)}}`, '9'.repeat(100)],
      ['{"id":-0}', '-0'],
      ['{"id":""}', '""'],
      ['{"id":"a\\"b\\\\"}', '"a\\"b\\\\"'],
      ['{"id":"\\u00e9\\ud83d\\ude00"}', '"é😀"'],
      ['{"\\u0069d":7}', '7'],
      ['{"params":{"id":2},"id":3}', '3'],
      ['{"params":{"a":"}\\"]","b":[{"id":2}]},"id":3}', '3'],
      ['{"id":1,"id":2}', '2'],
      ['{"id":1,"params":{"id":2}}', '1'],
    ];
    const withoutId = [
      ...['{"id":1e+21}', `{"id":${'9'.repeat(101)}}`, '{"id":1.5}', '{"id":1e2}', '{"id":null}', '{"id":true}'],
      ...['{"id":[1]}', '{"id":{"id":1}}', '{"id":1,"id":null}', '{"ID":1}', '{"a":"\\"id\\":1"}', '[{"id":1}]'],
      ...['"id"', '1', '', '{', '{}', '{"id":1', '{"id":1}}', '{"id":1} x', '{"id" 1}', '{"id":}', '{"id":1,}'],
      ...['{id:1}', '\ufeff{"id":1}', Buffer.from('{"id":"\xff"}', 'latin1')],
    ];
    for (const body of withoutId) assert.equal(await getEchoedId(body), undefined, String(body));
    for (const [body, id] of cases) assert.equal(await getEchoedId(body), id, body);
  });

  it('[find A3] get an ID at the start of a long body, but not at its end', async () => {
    const longParams = JSON.stringify({ text: 'x'.repeat(400_000) });
    assert.equal(await getEchoedId(`{"jsonrpc":"2.0","id":"first","params":${longParams}}`), '"first"');
    assert.equal(await getEchoedId(`{"jsonrpc":"2.0","params":${longParams},"id":"last"}`), undefined);
    assert.equal(await getEchoedId(`{"id":"${'x'.repeat(400_000)}"}`), undefined);
    assert.equal(await getEchoedId(`{"id":${'1'.repeat(400_000)}}`), undefined);
    assert.equal(await getEchoedId(`{"id":5,"params":{"text":"broken`.padEnd(400_000, 'x')), '5');
  });

  /** Returns the beginning of a request that announces more than it sends. */
  function formatUnfinished(request: string, announced: string, start: string, type = 'application/json'): string {
    const { host } = new URL(toolhost.url);
    return `${request} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${type}\r\n${announced}\r\n\r\n${start}`;
  }
  const openSocket = (bytes: string) => {
    const socket = connect(Number(new URL(toolhost.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(bytes);
    return socket;
  };

  it('[find A3] get a response without waiting for the rest of a body, or for a body that never arrives', async () => {
    const bodyStart = `{"id":"early","params":"${'x'.repeat(5000)}`;
    for (const [path, start, id] of [
      ['/mcp/absent-here', bodyStart, '"early"'],
      ['/mcp/keyed', bodyStart, '"early"'],
      ['/mcp/keyed', '', undefined],
    ] as const) {
      const socket = openSocket(formatUnfinished(`POST ${path}`, 'Content-Length: 400000', start));
      const [response] = (await once(socket, 'data')) as [Buffer];
      const [head = '', body = ''] = String(response).split('\r\n\r\n');
      assert.match(head, /^HTTP\/1\.1 40[14] /);
      assert.equal(getId(body), id);
      socket.destroy();
    }
  });

  it('[find A3] are cut off after one or two megabytes of an endless body, at every path', async () => {
    const others = ['GET /mcp/keyed', 'GET /livez', 'GET /', 'POST /api/v1/servers', 'DELETE /mcp/manage/token'];
    for (const request of ['POST /mcp/absent-here', 'POST /mcp/keyed', ...others, 'POST /mcp/keyed/../x']) {
      const [type, size] = request === 'POST /mcp/keyed' ? ['text/plain', 16] : ['application/json', 16_384];
      const socket = openSocket(formatUnfinished(request, 'Transfer-Encoding: chunked', '', type));
      socket.resume();
      const chunks = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`.repeat(65_536 / size);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      let sent = 0;
      while (!socket.destroyed && sent < 400) {
        sent++;
        await Promise.race([new Promise((resolve) => socket.write(chunks, resolve)), closed]);
      }
      assert.ok(sent < 400, `${request}: ${sent} × 64 KB`);
      await closed;
    }
  });
});

describe('static documents', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());

  it('[find A3] have an entity tag, and are not sent again to a client that has them', async () => {
    for (const path of ['/api/v1/openapi.json', '/schema/server.json']) {
      const url = toolhost.url + path;
      const { status, headers, text } = await sendRawRequest(url);
      assert.equal(status, 200);
      assert.match(String(headers['content-type']), /^application\/json/);
      const etag = String(headers.etag);
      assert.match(etag, /^"[\w-]+"$/);
      assert.equal((await sendRawRequest(url)).text, text);
      for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const unchanged = await sendRawRequest(url, { headers: { 'if-none-match': tag } });
        assert.deepEqual([unchanged.status, unchanged.text, unchanged.headers.etag], [304, '', etag]);
      }
      assert.equal((await sendRawRequest(url, { headers: { 'if-none-match': '"other"' } })).status, 200);
      const head = await sendRawRequest(url, { method: 'HEAD' });
      assert.deepEqual([head.status, head.text, head.headers.etag], [200, '', etag]);
    }
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { absentId, assertRefused, buildEchoConfig } from '../support/mcp.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';
import { useFixture } from '../support/use-fixtures.ts';

const json = 'application/json';
const form = 'application/x-www-form-urlencoded';

describe('a compressed request body', () => {
  const toolhost = useFixture(startToolhost);
  let key: string;
  before(async () => {
    key = await toolhost.createKey();
    await toolhost.createServer(buildEchoConfig('https://api.example'));
  });

  /** Sends a request head without its body and returns the response head. */
  async function fetchResponseHead(path: string, type: string): Promise<string> {
    const { host, port } = new URL(toolhost.url);
    const socket = connect(Number(port), '127.0.0.1');
    const token = path === '/mcp/echo' ? 'token' : key;
    const lines = [`Host: ${host}`, `Authorization: Bearer ${token}`, `Content-Type: ${type}`, 'Content-Length: 30'];
    socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\nContent-Encoding: gzip\r\n\r\n`);
    const [response] = await once(socket, 'data');
    socket.destroy();
    return String(response);
  }

  for (const [path, type] of [
    ['/mcp/echo', json],
    ['/mcp/manage', json],
    ['/api/v1/servers', json],
    ['/mcp/manage/register', json],
    ['/mcp/manage/token', form],
    ['/mcp/manage/revoke', form],
    ['/mcp/manage/consent', form],
  ] as const) {
    it(`[mcp 30] is rejected at POST ${path} with 415 before the body arrives, and the response names the accepted encoding`, async () => {
      const response = await fetchResponseHead(path, type);
      assert.match(response, /^HTTP\/1\.1 415 /);
      assert.match(response, /\r\naccept-encoding: identity\r\n/i);
      assert.match(response, /Content-Encoding .*gzip.*; send it uncompressed/);
    });
  }

  it('[mcp 30] leaves the connection reusable, and gets no Accept-Encoding if the media type is wrong', async () => {
    const ping = gzipSync('{"jsonrpc":"2.0","id":1,"method":"ping"}');
    const send = (more: Record<string, string>) => {
      const headers = { authorization: 'Bearer token', connection: 'keep-alive', ...more };
      return sendRawRequest(`${toolhost.url}/mcp/echo`, { method: 'POST', headers }, ping);
    };
    const { status, headers } = await send({ 'content-type': json, 'content-encoding': 'GZIP' });
    assert.deepEqual([status, headers['accept-encoding'], headers.connection], [415, 'identity', 'keep-alive']);
    const text = await send({ 'content-type': 'text/plain', 'content-encoding': 'gzip' });
    assert.deepEqual([text.status, text.headers['accept-encoding']], [415, undefined]);
  });

  it('[mcp 30] is rejected for every coding except "identity" and an empty one', async () => {
    const post = (coding: string) => toolhost.rpc('echo', 't', 'ping', undefined, { 'content-encoding': coding });
    for (const coding of ['br', 'deflate', 'gzip, identity', 'aws-chunked', 'x'.repeat(5000)]) {
      const message = assertRefused(await post(coding), 415, -32600, absentId);
      assert.ok(message.includes(coding.slice(0, 100)) && message.length < 300);
    }
    for (const coding of ['identity', 'Identity', '']) assert.equal((await post(coding)).status, 200, coding);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { buildEchoConfig } from '../support/mcp.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RawReply, sendRawRequest } from '../support/upstreams/raw-request.ts';

/** Accept headers that browsers and programs send. */
const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';
const programAccepts = [undefined, '*/*', 'application/json', 'text/event-stream, application/json'];

/** URLs without a server or view, and the URL of a server whose slug is no longer in use. */
const unknownEndpoints = [
  '/mcp/nobody',
  '/mcp/nobody/desk',
  '/mcp/echo/desk',
  '/mcp/manage/desk',
  '/mcp/gone',
  '/mcp/<b>',
];

const unknownPaths = [
  '/nope',
  '/nope/deeper',
  '/mcp',
  '/mcp/nope/deeper/still',
  '/<script>alert(1)</script>',
  '/keyss?a=1',
];

/**
 * Returns the status and the headers, except those that differ between requests or that HEAD may omit (RFC 9110,
 * 9.3.2).
 */
function getHead({ status, headers }: RawReply) {
  const { date, 'x-request-id': id, 'content-length': length, 'transfer-encoding': coding, ...rest } = headers;
  assert.ok(id);
  const policy = String(rest['content-security-policy']).replace(/'nonce-[^']+'/, '');
  return { status, ...rest, 'content-security-policy': policy };
}

describe('an unknown URL', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
    for (const slug of ['echo', 'gone'])
      await toolhost.createServer({ ...buildEchoConfig('https://api.example.com'), slug });
    await toolhost.rest('DELETE', '/servers/gone', { key: await toolhost.createKey() });
  });
  after(() => toolhost?.stop());
  const send = (method: string, path: string, accept: string | undefined, headers = {}) =>
    sendRawRequest(encodeURI(toolhost.url + path), {
      method,
      headers: { ...(accept !== undefined && { accept }), ...headers },
    });
  const get = (path: string, accept: string | undefined, headers = {}) => send('GET', path, accept, headers);

  for (const path of unknownPaths) {
    it(`[find D4] returns a page with a link home to browsers and JSON to programs: ${path}`, async () => {
      const page = await get(path, browserAccept);
      assert.equal(page.status, 404);
      assert.match(String(page.headers['content-type']), /^text\/html/);
      assert.match(page.text, /There is nothing at this URL/);
      assert.match(page.text, /<a [^>]*href="\/"/);
      assert.doesNotMatch(page.text, /<script/);
      assert.match(String(page.headers['content-security-policy']), /default-src 'none'; style-src 'sha256-/);
      assert.ok(page.headers['x-request-id']);
      for (const accept of programAccepts) {
        const response = await get(path, accept);
        assert.equal(response.status, 404, String(accept));
        assert.match(String(response.headers['content-type']), /json/);
        assert.ok(JSON.parse(response.text));
      }
    });
  }

  it('[find D4] returns the same page for all unknown MCP endpoints, and the ordinary error to programs', async () => {
    const pages = new Set<string>();
    const programResponses = new Set<string>();
    for (const path of unknownEndpoints) {
      const page = await get(path, browserAccept);
      assert.deepEqual([page.status, page.headers['content-type']], [404, 'text/html; charset=utf-8'], path);
      assert.match(String(page.headers['content-security-policy']), /default-src 'none'; style-src 'sha256-/);
      pages.add(page.text);
      for (const accept of [...programAccepts, 'application/json, text/event-stream']) {
        const response = await get(path, accept);
        assert.deepEqual(
          [response.status, response.headers['content-type']],
          [404, 'application/json'],
          String(accept),
        );
        programResponses.add(response.text);
      }
      const posted = await sendRawRequest(
        encodeURI(toolhost.url + path),
        { method: 'POST', headers: { accept: browserAccept, 'content-type': 'application/json' } },
        '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      );
      assert.deepEqual([posted.status, posted.headers['content-type']], [404, 'application/json'], path);
    }
    assert.deepEqual(
      [...programResponses],
      ['{"jsonrpc":"2.0","error":{"code":-32600,"message":"there is no server at this URL"}}'],
    );
    const [text = '', ...others] = pages;
    assert.deepEqual(others, []);
    assert.match(text, /There is no server at this URL/);
    assert.match(text, /<a [^>]*href="\/"/);
  });

  it('[find D4] returns the same headers for HEAD and GET, to browsers and programs', async () => {
    const fixed = ['/', '/mcp/echo', '/mcp/manage', '/api/v1/nope', '/api/v1/servers', '/livez', '/readyz'];
    const others = ['/files/nothing', '/.well-known/oauth-protected-resource/mcp/nobody', '/mcp/echo/register'];
    for (const path of [...unknownPaths, ...unknownEndpoints, ...fixed, ...others]) {
      for (const accept of [browserAccept, ...programAccepts]) {
        const [getReply, headReply] = [await get(path, accept), await send('HEAD', path, accept)];
        assert.deepEqual([getHead(headReply), headReply.text], [getHead(getReply), ''], `${path} for ${accept}`);
      }
    }
    const host = { host: 'elsewhere.example' };
    for (const path of ['/', '/mcp/echo']) {
      const [getReply, headReply] = [
        await get(path, browserAccept, host),
        await send('HEAD', path, browserAccept, host),
      ];
      assert.deepEqual(getHead(headReply), getHead(getReply), path);
    }
  });

  it('[find D4] always returns JSON below /api', async () => {
    const response = await get('/api/v1/nope', browserAccept);
    assert.deepEqual([response.status, response.headers['content-type']], [404, 'application/problem+json']);
  });

  it("[find D4] returns an error page with advice if the host name is not the service's", async () => {
    const page = await get('/', browserAccept, { host: 'elsewhere.example' });
    assert.equal(page.status, 421);
    assert.match(String(page.headers['content-type']), /^text\/html/);
    assert.match(page.text, /does not serve that host name/);
    assert.match(page.text, /BASE_URL/);
    const endpoint = await get('/mcp/echo', browserAccept, { host: 'elsewhere.example' });
    assert.deepEqual([endpoint.status, endpoint.text], [421, page.text]);
    for (const path of ['/', '/mcp/echo']) {
      const response = await get(path, '*/*', { host: 'elsewhere.example' });
      assert.match(String(response.headers['content-type']), /json/);
    }
  });
});

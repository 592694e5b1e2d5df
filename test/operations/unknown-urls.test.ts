import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { buildEchoConfig } from '../support/mcp.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { type RawReply, sendRawRequest } from '../support/upstreams/raw-request.ts';

/** Accept headers that browsers and programs send. */
const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';
const programAccepts = [undefined, '*/*', 'application/json', 'text/event-stream, application/json'];

/** URLs without a server or view, and the URL of a server whose slug is no longer in use. */
const unknownEndpoints = ['absent', 'absent/desk', 'echo/desk', 'manage/desk', 'gone', '<b>'].map(
  (path) => `/mcp/${path}`,
);

const html = '/<script>alert(1)</script>';
const unknownPaths = ['/nope', '/nope/deeper', '/mcp', '/mcp/nope/deeper/still', html, '/keyss?a=1'];

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

describe('an unknown URL', async () => {
  const toolhost = await startToolhost();
  for (const slug of ['echo', 'gone'])
    await toolhost.createServer({ ...buildEchoConfig('https://api.example.com'), slug });
  await toolhost.rest('DELETE', '/servers/gone', { key: await toolhost.createKey() });
  after(() => toolhost.stop());
  const send = (method: string, path: string, accept: string | undefined, more = {}, body?: string) => {
    const headers = { ...(accept !== undefined && { accept }), ...more };
    return sendRawRequest(encodeURI(toolhost.url + path), { method, headers }, body);
  };
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
        const { status, headers, text } = await get(path, accept);
        assert.deepEqual([status, headers['content-type']], [404, 'application/json'], String(accept));
        programResponses.add(text);
      }
      const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
      const posted = await send('POST', path, browserAccept, { 'content-type': 'application/json' }, ping);
      assert.deepEqual([posted.status, posted.headers['content-type']], [404, 'application/json'], path);
    }
    const response = '{"jsonrpc":"2.0","error":{"code":-32600,"message":"there is no server at this URL"}}';
    assert.deepEqual([...programResponses], [response]);
    const [text = '', ...others] = pages;
    assert.deepEqual(others, []);
    assert.match(text, /There is no server at this URL/);
    assert.match(text, /<a [^>]*href="\/"/);
  });

  it('[find D4] returns the same headers for HEAD and GET, to browsers and programs', async () => {
    const fixed = ['/', '/mcp/echo', '/mcp/manage', '/api/v1/nope', '/api/v1/servers', '/livez', '/readyz'];
    const others = ['/files/nothing', '/.well-known/oauth-protected-resource/mcp/absent', '/mcp/echo/register'];
    const assertSameHead = async (path: string, accept: string | undefined, headers = {}) => {
      const [getReply, headReply] = [await get(path, accept, headers), await send('HEAD', path, accept, headers)];
      assert.deepEqual([getHead(headReply), headReply.text], [getHead(getReply), ''], `${path} for ${accept}`);
    };
    for (const path of [...unknownPaths, ...unknownEndpoints, ...fixed, ...others])
      for (const accept of [browserAccept, ...programAccepts]) await assertSameHead(path, accept);
    for (const path of ['/', '/mcp/echo']) await assertSameHead(path, browserAccept, { host: 'elsewhere.example' });
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

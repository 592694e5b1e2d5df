import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { echoConfig } from '../support/mcp.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type WireReply, wire } from '../support/upstreams/wire.ts';

/** Accept headers that browsers and programs send. */
const browsers = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';
const programs = [undefined, '*/*', 'application/json', 'text/event-stream, application/json'];

/** URLs without a server or view, and the URL of a server whose slug is no longer in use. */
const noServer = ['/mcp/nobody', '/mcp/nobody/desk', '/mcp/echo/desk', '/mcp/manage/desk', '/mcp/gone', '/mcp/<b>'];

const nowhere = ['/nope', '/nope/deeper', '/mcp', '/mcp/nope/deeper/still', '/<script>alert(1)</script>', '/keyss?a=1'];

/**
 * Returns the status and the headers, except those that differ between requests or that HEAD may omit (RFC 9110,
 * 9.3.2).
 */
function headOf({ status, headers }: WireReply) {
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
      await toolhost.createServer({ ...echoConfig('https://api.example.com'), slug });
    await toolhost.rest('DELETE', '/servers/gone', { key: await toolhost.key() });
  });
  after(() => toolhost?.stop());
  const ask = (method: string, path: string, accept: string | undefined, headers = {}) =>
    wire(encodeURI(toolhost.url + path), { method, headers: { ...(accept !== undefined && { accept }), ...headers } });
  const get = (path: string, accept: string | undefined, headers = {}) => ask('GET', path, accept, headers);

  for (const path of nowhere) {
    it(`[find D4] returns a page with a link home to browsers and JSON to programs: ${path}`, async () => {
      const page = await get(path, browsers);
      assert.equal(page.status, 404);
      assert.match(String(page.headers['content-type']), /^text\/html/);
      assert.match(page.text, /There is nothing at this URL/);
      assert.match(page.text, /<a [^>]*href="\/"/);
      assert.doesNotMatch(page.text, /<script/);
      assert.match(String(page.headers['content-security-policy']), /default-src 'none'; style-src 'sha256-/);
      assert.ok(page.headers['x-request-id']);
      for (const accept of programs) {
        const answer = await get(path, accept);
        assert.equal(answer.status, 404, String(accept));
        assert.match(String(answer.headers['content-type']), /json/);
        assert.ok(JSON.parse(answer.text));
      }
    });
  }

  it('[find D4] returns the same page for all unknown MCP endpoints, and the ordinary error to programs', async () => {
    const shown = new Set<string>();
    const answered = new Set<string>();
    for (const path of noServer) {
      const page = await get(path, browsers);
      assert.deepEqual([page.status, page.headers['content-type']], [404, 'text/html; charset=utf-8'], path);
      assert.match(String(page.headers['content-security-policy']), /default-src 'none'; style-src 'sha256-/);
      shown.add(page.text);
      for (const accept of [...programs, 'application/json, text/event-stream']) {
        const answer = await get(path, accept);
        assert.deepEqual([answer.status, answer.headers['content-type']], [404, 'application/json'], String(accept));
        answered.add(answer.text);
      }
      const posted = await wire(
        encodeURI(toolhost.url + path),
        { method: 'POST', headers: { accept: browsers, 'content-type': 'application/json' } },
        '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      );
      assert.deepEqual([posted.status, posted.headers['content-type']], [404, 'application/json'], path);
    }
    assert.deepEqual(
      [...answered],
      ['{"jsonrpc":"2.0","error":{"code":-32600,"message":"there is no server at this URL"}}'],
    );
    const [text = '', ...others] = shown;
    assert.deepEqual(others, []);
    assert.match(text, /There is no server at this URL/);
    assert.match(text, /<a [^>]*href="\/"/);
  });

  it('[find D4] returns the same headers for HEAD and GET, to browsers and programs', async () => {
    const fixed = ['/', '/mcp/echo', '/mcp/manage', '/api/v1/nope', '/api/v1/servers', '/livez', '/readyz'];
    const others = ['/files/nothing', '/.well-known/oauth-protected-resource/mcp/nobody', '/mcp/echo/register'];
    for (const path of [...nowhere, ...noServer, ...fixed, ...others]) {
      for (const accept of [browsers, ...programs]) {
        const [got, asked] = [await get(path, accept), await ask('HEAD', path, accept)];
        assert.deepEqual([headOf(asked), asked.text], [headOf(got), ''], `${path} for ${accept}`);
      }
    }
    const host = { host: 'elsewhere.example' };
    for (const path of ['/', '/mcp/echo']) {
      const [got, asked] = [await get(path, browsers, host), await ask('HEAD', path, browsers, host)];
      assert.deepEqual(headOf(asked), headOf(got), path);
    }
  });

  it('[find D4] always returns JSON below /api', async () => {
    const answer = await get('/api/v1/nope', browsers);
    assert.deepEqual([answer.status, answer.headers['content-type']], [404, 'application/problem+json']);
  });

  it("[find D4] returns an error page with advice if the host name is not the service's", async () => {
    const page = await get('/', browsers, { host: 'elsewhere.example' });
    assert.equal(page.status, 421);
    assert.match(String(page.headers['content-type']), /^text\/html/);
    assert.match(page.text, /does not serve that host name/);
    assert.match(page.text, /BASE_URL/);
    const endpoint = await get('/mcp/echo', browsers, { host: 'elsewhere.example' });
    assert.deepEqual([endpoint.status, endpoint.text], [421, page.text]);
    for (const path of ['/', '/mcp/echo']) {
      const answer = await get(path, '*/*', { host: 'elsewhere.example' });
      assert.match(String(answer.headers['content-type']), /json/);
    }
  });
});

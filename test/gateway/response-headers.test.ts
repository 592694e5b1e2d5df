import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import { useStarted } from '../support/suite-fixtures.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';

describe('response_headers of a tool', () => {
  const fixture = useStarted(startOneTool);

  let routeCount = 0;
  const callWithResponse = async (
    response: CannedResponse,
    tool: Json = {},
    server: Json = {},
  ): Promise<ToolCallResult> => {
    const path = `/answer-${++routeCount}`;
    fixture.upstream.on(`${String(tool.method ?? 'GET')} ${path}`, () => response);
    return fixture.call(await fixture.createToolServer({ ...tool, url: path }, server));
  };
  const json = (body: unknown, headers: CannedResponse['headers'] = {}): CannedResponse => ({ body, headers });
  const text = (value: string) => ({ type: 'text', text: value });
  const headers = { link: '</things?page=2>; rel="next"', etag: '"33a6"', 'x-total-count': '42' };
  const response_headers = ['Link', 'X-Total-Count', 'Location'];
  const lines = 'Link: </things?page=2>; rel="next"\nX-Total-Count: 42';

  it('[conf 5] adds exactly the named headers as text before the body', async () => {
    const { content } = await callWithResponse(json([1, 2], headers), { response_headers });
    assert.deepEqual(content, [text(lines), text('[1,2]')]);
    const without = await callWithResponse(json([1, 2], headers));
    assert.deepEqual(without.content, [text('[1,2]')]);
    const absent = await callWithResponse(json([1, 2]), { response_headers });
    assert.deepEqual(absent.content, [text('[1,2]')]);
    const image = { 'content-type': 'application/octet-stream', etag: '"x"' };
    const binary = await callWithResponse(
      { body: Buffer.from([0, 255]), headers: image },
      { response_headers: ['ETag'] },
    );
    assert.deepEqual(binary.content[0], text('ETag: "x"'));
    assert.equal(binary.content[2]?.type, 'resource');
    const plain = await callWithResponse(
      { body: 'words', headers: { 'content-type': 'text/plain', etag: '"x"' } },
      { response_headers: ['ETag'] },
    );
    assert.deepEqual(plain.content, [text('ETag: "x"'), text('words')]);
  });

  it('[conf 5] adds the headers to structured content if output_schema declares them, and leaves large numbers unchanged', async () => {
    const id = { id: { type: 'integer' } };
    const closed = { type: 'object', properties: id, required: ['id'], additionalProperties: false };
    const result = await callWithResponse(json({ id: 1 }, headers), { response_headers, output_schema: closed });
    assert.deepEqual(
      [result.isError, result.structuredContent, result.content[0]?.text],
      [undefined, { id: 1 }, lines],
    );
    const open = { type: 'object', properties: id };
    assert.deepEqual(
      (await callWithResponse(json({ id: 1 }, headers), { response_headers, output_schema: open })).structuredContent,
      { id: 1 },
    );
    const declaring = {
      ...closed,
      properties: { ...id, response_headers: { type: 'object', required: ['Link'] } },
      required: ['id', 'response_headers'],
    };
    const declared = await callWithResponse(json({ id: 1 }, headers), { response_headers, output_schema: declaring });
    assert.deepEqual(declared.structuredContent, {
      response_headers: { Link: headers.link, 'X-Total-Count': '42' },
      id: 1,
    });
    const slug = await fixture.createToolServer({ url: '/big', response_headers, output_schema: declaring });
    const big = '{ "id": 9007199254740993 }';
    fixture.upstream.on('GET /big', () => ({ body: big, headers: { 'content-type': 'application/json', ...headers } }));
    const { text: raw } = await fixture.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} });
    assert.match(
      raw,
      /"structuredContent":\{"response_headers":\{"Link":.*"X-Total-Count":"42"\},"id":9007199254740993\}/,
    );
    assert.match(
      getErrorText(await callWithResponse(json({ id: 1 }), { response_headers, output_schema: declaring })),
      /output_schema/,
    );
  });

  it('[conf 5] shows the headers after the status if the response has no body', async () => {
    const accepted = await callWithResponse(
      { status: 202, headers: { location: '/jobs/7?token=t', 'retry-after': '5' } },
      { method: 'POST', response_headers: ['Location', 'Retry-After'] },
    );
    const expectedText = '202 Accepted: the response has no body\nLocation: /jobs/7?token=t\nRetry-After: 5';
    assert.deepEqual(accepted, { content: [text(expectedText)] });
    const output_schema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
    const strict = await callWithResponse(
      { status: 204, headers },
      { method: 'POST', response_headers, output_schema },
    );
    assert.match(
      getErrorText(strict),
      /^output_schema requires a JSON response, but HTTP 204 No Content has no body.*\nLink: /,
    );
  });

  it('[conf 5] shows the status and the headers of a HEAD response', async () => {
    const length = { 'content-length': '123456789012', etag: '"v1"' };
    const shown = { method: 'HEAD', response_headers: ['ETag', 'Content-Length'] };
    const content = [text('200 OK\nETag: "v1"\nContent-Length: 123456789012')];
    assert.deepEqual(await callWithResponse({ headers: length }, shown), { content });
    const head = await callWithResponse({ headers: length }, { ...shown, output_schema: { type: 'object' } });
    assert.deepEqual(head, {
      content,
      structuredContent: { status: 200, response_headers: { ETag: '"v1"', 'Content-Length': '123456789012' } },
    });
    const bare = await callWithResponse({ headers: length }, { method: 'HEAD' });
    assert.match(
      getResultText(bare),
      /^200 OK: a response to HEAD has no body; set response_headers to show its headers$/,
    );
    assert.match(getErrorText(await callWithResponse({ status: 404 }, { method: 'HEAD' })), /^HTTP 404 Not Found$/);
  });

  it('[conf 5] adds the headers to an error, where they say what to do next', async () => {
    const limited = { status: 429, headers: { 'retry-after': '7', 'x-ratelimit-reset': '99' }, body: 'slow down' };
    assert.equal(
      getErrorText(await callWithResponse(limited, { response_headers: ['X-RateLimit-Reset'] })),
      'HTTP 429 Too Many Requests\nRetry-After: 7\nX-RateLimit-Reset: 99\nslow down',
    );
    assert.equal(
      getErrorText(await callWithResponse(limited, { response_headers: ['Retry-After'] })),
      'HTTP 429 Too Many Requests\nX-RateLimit-Reset: in 99 s\nRetry-After: 7\nslow down',
    );
    const redirected = await callWithResponse(
      { status: 303, headers: { location: '/result/7?part=1' } },
      { response_headers: ['location'] },
    );
    assert.match(getErrorText(redirected), /^HTTP 303 See Other: .*\nlocation: \/result\/7\?part=1$/s);
  });

  it('[conf 5] explains an upstream rejection by WWW-Authenticate and by the reset time of the rate limit', async () => {
    const date = 'Sun, 29 Nov 2026 12:00:00 GMT';
    const time = '2026-11-29T12:00:00.000Z';
    const authentication = { type: 'QueryParam', query_key: 'key' };
    const challenge = (value: string) => ({ 'www-authenticate': value });
    const cases: [status: number, headers: NonNullable<CannedResponse['headers']>, lines: string[]][] = [
      [
        401,
        challenge('Bearer realm="x", error="invalid_token", error_description="The \\"token\\" expired"'),
        ['WWW-Authenticate: invalid_token: The "token" expired'],
      ],
      [403, challenge('DPoP error=insufficient_scope, scope="a b"'), ['WWW-Authenticate: insufficient_scope']],
      [401, challenge('Basic realm="Staff"'), ['WWW-Authenticate: Basic realm="Staff"']],
      [401, challenge(`Basic realm="${callerToken}"`), ['WWW-Authenticate: Basic realm="[redacted]"']],
      [401, challenge(`Bearer error="${'e'.repeat(400)}"`), [`WWW-Authenticate: ${'e'.repeat(300)}`]],
      [429, { 'x-ratelimit-reset': '1795953600' }, [`X-RateLimit-Reset: ${time}`]],
      [429, { 'x-rate-limit-reset': '1795953600000' }, [`X-Rate-Limit-Reset: ${time}`]],
      [429, { 'ratelimit-reset': '30' }, ['RateLimit-Reset: in 30 s']],
      [403, { 'x-ratelimit-reset': date, 'x-ratelimit-remaining': '0' }, [`X-RateLimit-Reset: ${time}`]],
      [403, { 'x-ratelimit-reset': date, 'x-ratelimit-remaining': '7' }, []],
      [429, { 'x-ratelimit-reset': 'soon', 'retry-after': '5' }, ['Retry-After: 5']],
      [404, { ...challenge('Bearer error="x"'), 'x-ratelimit-reset': '30' }, []],
    ];
    for (const [status, responseHeaders, expectedLines] of cases) {
      const result = await callWithResponse({ status, headers: responseHeaders, body: '' }, {}, { authentication });
      const [, ...explanation] = getErrorText(result).split('\n');
      assert.deepEqual(explanation, expectedLines, JSON.stringify(responseHeaders));
    }
  });

  it('[conf 5] redacts credentials in any encoding and omits a header that is too long', async () => {
    const authentication = { type: 'QueryParam', query_key: 'key' };
    const encoded = Buffer.from(callerToken).toString('base64');
    const echo = {
      link: `<https://api.example.com/?key=${callerToken}&page=2>; rel="next"`,
      'x-echo': `Basic ${encoded}`,
    };
    const tool = { response_headers: ['Link', 'X-Echo', 'X-Long'] };
    for (const response of [json({}, echo), { status: 404, headers: echo }, { status: 204, headers: echo }]) {
      const all = JSON.stringify(await callWithResponse(response, tool, { authentication }));
      assert.ok(!all.includes(callerToken) && !all.includes(encoded), all);
      assert.match(all, /key=\[redacted\]&page=2/);
    }
    const long = await callWithResponse(json({}, { 'x-long': 'y'.repeat(4097) }), tool);
    assert.equal(long.content[0]?.text, 'X-Long: (omitted: 4097 characters; allowed: at most 4096)');
  });

  it('[conf 5] joins repeated headers to one list and decodes non-ASCII characters as UTF-8', async () => {
    const many = json([], {
      link: ['<a>; rel=next', '<b>; rel=last'],
      'x-name': Buffer.from('Zürich ☃').toString('latin1'),
    });
    const { content } = await callWithResponse(many, { response_headers: ['Link', 'X-Name'] });
    assert.equal(content[0]?.text, 'Link: <a>; rel=next, <b>; rel=last\nX-Name: Zürich ☃');
  });

  it('[conf 5] shows the same headers for a long response as for a short one', async () => {
    const items = Array.from({ length: 60_000 }, (_, id) => ({ id }));
    const result = await callWithResponse(json({ items }, headers), { response_headers });
    assert.equal(result.content[0]?.text, lines);
    assert.deepEqual(JSON.parse(result.content[1]?.text ?? ''), { items });
  });
});

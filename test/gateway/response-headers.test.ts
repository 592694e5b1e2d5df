import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, startOneTool } from '../support/one-tool.ts';
import { buildResponse, createResponseCaller } from '../support/response-caller.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('response_headers of a tool', () => {
  const fixture = useFixture(startOneTool);

  const { serve, call, getText, getError } = createResponseCaller(fixture);
  const json = (body: unknown, headers: CannedResponse['headers'] = {}): CannedResponse => ({ body, headers });
  const text = (value: string) => ({ type: 'text', text: value });
  const headers = { link: '</things?page=2>; rel="next"', etag: '"33a6"', 'x-total-count': '42' };
  const response_headers = ['Link', 'X-Total-Count', 'Location'];
  const lines = 'Link: </things?page=2>; rel="next"\nX-Total-Count: 42';

  it('[conf 5] adds exactly the named headers as text before the body', async () => {
    const etag = { response_headers: ['ETag'] };
    for (const [response, tool, expected] of [
      [json([1, 2], headers), { response_headers }, [text(lines), text('[1,2]')]],
      [json([1, 2], headers), {}, [text('[1,2]')]],
      [json([1, 2]), { response_headers }, [text('[1,2]')]],
      [buildResponse('text/plain', 'words', { etag: '"x"' }), etag, [text('ETag: "x"'), text('words')]],
    ] as const)
      assert.deepEqual((await call(response, tool)).content, expected);
    const binary = buildResponse('application/octet-stream', Buffer.from([0, 255]), { etag: '"x"' });
    const { content } = await call(binary, etag);
    assert.deepEqual([content[0], content[2]?.type], [text('ETag: "x"'), 'resource']);
  });

  it('[conf 5] adds the headers to structured content if output_schema declares them, and leaves large numbers unchanged', async () => {
    const id = { id: { type: 'integer' } };
    const closed = { type: 'object', properties: id, required: ['id'], additionalProperties: false };
    const open = { type: 'object', properties: id };
    const declaring = {
      ...closed,
      properties: { ...id, response_headers: { type: 'object', required: ['Link'] } },
      required: ['id', 'response_headers'],
    };
    const declaredHeaders = { Link: headers.link, 'X-Total-Count': '42' };
    for (const [output_schema, structuredContent] of [
      [closed, { id: 1 }],
      [open, { id: 1 }],
      [declaring, { response_headers: declaredHeaders, id: 1 }],
    ]) {
      const result = await call(json({ id: 1 }, headers), { response_headers, output_schema });
      assert.deepEqual([result.isError, result.structuredContent], [undefined, structuredContent]);
      assert.equal(result.content[0]?.text, lines);
    }
    const slug = await serve(buildResponse('application/json', '{ "id": 9007199254740993 }', headers), {
      response_headers,
      output_schema: declaring,
    });
    const { text: raw } = await fixture.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} });
    assert.match(
      raw,
      /"structuredContent":\{"response_headers":\{"Link":.*"X-Total-Count":"42"\},"id":9007199254740993\}/,
    );
    const missing = await getError(json({ id: 1 }), { response_headers, output_schema: declaring });
    assert.match(missing, /output_schema/);
  });

  it('[conf 5] shows the headers after the status if the response has no body', async () => {
    const accepted = { status: 202, headers: { location: '/jobs/7?token=t', 'retry-after': '5' } };
    const result = await call(accepted, { method: 'POST', response_headers: ['Location', 'Retry-After'] });
    const expectedText = '202 Accepted: the response has no body\nLocation: /jobs/7?token=t\nRetry-After: 5';
    assert.deepEqual(result, { content: [text(expectedText)] });
    const output_schema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
    const strict = await getError({ status: 204, headers }, { method: 'POST', response_headers, output_schema });
    assert.match(strict, /^output_schema requires a JSON response, but HTTP 204 No Content has no body.*\nLink: /);
  });

  it('[conf 5] shows the status and the headers of a HEAD response', async () => {
    const response = { headers: { 'content-length': '123456789012', etag: '"v1"' } };
    const shown = { method: 'HEAD', response_headers: ['ETag', 'Content-Length'] };
    const content = [text('200 OK\nETag: "v1"\nContent-Length: 123456789012')];
    assert.deepEqual(await call(response, shown), { content });
    const structuredContent = {
      status: 200,
      response_headers: { ETag: '"v1"', 'Content-Length': '123456789012' },
    };
    const head = await call(response, { ...shown, output_schema: { type: 'object' } });
    assert.deepEqual(head, { content, structuredContent });
    const bare = await getText(response, { method: 'HEAD' });
    assert.equal(bare, '200 OK: a response to HEAD has no body; set response_headers to show its headers');
    assert.equal(await getError({ status: 404 }, { method: 'HEAD' }), 'HTTP 404 Not Found');
  });

  it('[conf 5] adds the headers to an error, where they say what to do next', async () => {
    const limited = { status: 429, headers: { 'retry-after': '7', 'x-ratelimit-reset': '99' }, body: 'slow down' };
    for (const [name, lines] of [
      ['X-RateLimit-Reset', 'Retry-After: 7\nX-RateLimit-Reset: 99'],
      ['Retry-After', 'X-RateLimit-Reset: in 99 s\nRetry-After: 7'],
    ]) {
      const message = await getError(limited, { response_headers: [name] });
      assert.equal(message, `HTTP 429 Too Many Requests\n${lines}\nslow down`);
    }
    const redirect = { status: 303, headers: { location: '/result/7?part=1' } };
    const message = await getError(redirect, { response_headers: ['location'] });
    assert.match(message, /^HTTP 303 See Other: .*\nlocation: \/result\/7\?part=1$/s);
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
      const message = await getError({ status, headers: responseHeaders, body: '' }, {}, { authentication });
      const [, ...explanation] = message.split('\n');
      assert.deepEqual(explanation, expectedLines, JSON.stringify(responseHeaders));
    }
  });

  it('[conf 5] redacts credentials in any encoding and omits a header that is too long', async () => {
    const authentication = { type: 'QueryParam', query_key: 'key' };
    const encoded = Buffer.from(callerToken).toString('base64');
    const link = `<https://api.example.com/?key=${callerToken}&page=2>; rel="next"`;
    const echo = { link, 'x-echo': `Basic ${encoded}` };
    const tool = { response_headers: ['Link', 'X-Echo', 'X-Long'] };
    for (const response of [json({}, echo), { status: 404, headers: echo }, { status: 204, headers: echo }]) {
      const all = JSON.stringify(await call(response, tool, { authentication }));
      assert.ok(!all.includes(callerToken) && !all.includes(encoded), all);
      assert.match(all, /key=\[redacted\]&page=2/);
    }
    const long = await getText(json({}, { 'x-long': 'y'.repeat(4097) }), tool);
    assert.equal(long, 'X-Long: (omitted: 4097 characters; allowed: at most 4096)');
  });

  it('[conf 5] joins repeated headers to one list and decodes non-ASCII characters as UTF-8', async () => {
    const name = Buffer.from('Zürich ☃').toString('latin1');
    const many = json([], { link: ['<a>; rel=next', '<b>; rel=last'], 'x-name': name });
    const shown = await getText(many, { response_headers: ['Link', 'X-Name'] });
    assert.equal(shown, 'Link: <a>; rel=next, <b>; rel=last\nX-Name: Zürich ☃');
  });

  it('[conf 5] shows the same headers for a long response as for a short one', async () => {
    const items = Array.from({ length: 60_000 }, (_, id) => ({ id }));
    const result = await call(json({ items }, headers), { response_headers });
    assert.equal(result.content[0]?.text, lines);
    assert.deepEqual(JSON.parse(result.content[1]?.text ?? ''), { items });
  });
});

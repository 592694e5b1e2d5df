import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { revisions, statelessRevision } from '@toolhost/mcp-protocol/mcp';
import { callerToken, getErrorText, getResultText, type OneToolFixture, startOneTool } from '../support/one-tool.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import {
  BINARY,
  type ContentUpstream,
  PNG,
  startContentUpstream,
  TEXT,
  WAV,
} from '../support/upstreams/content-upstream.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';

describe('the content of a tool result', () => {
  let fixture: OneToolFixture;
  let content: ContentUpstream;
  before(async () => {
    content = await startContentUpstream();
    fixture = await startOneTool({ egressPorts: [content.port] });
  });
  after(async () => {
    await fixture.stop();
    await content.close();
  });

  let routeCount = 0;
  /** Calls a tool whose upstream sends this response, and returns the result. */
  const callWithResponse = async (response: CannedResponse, tool: Json = {}): Promise<ToolCallResult> => {
    const path = `/answer-${++routeCount}`;
    const method = String(tool.method ?? 'GET');
    fixture.upstream.on(`${method} ${path}`, () => response);
    return fixture.call(await fixture.createToolServer({ ...tool, url: path }));
  };
  const createResponse = (
    type: string,
    body: string | Buffer,
    overrides: Partial<CannedResponse> = {},
  ): CannedResponse => ({ headers: { 'content-type': type }, body, ...overrides });
  const getContent = async (response: CannedResponse) => {
    const result = await callWithResponse(response);
    assert.deepEqual([result.isError, result.structuredContent], [undefined, undefined], getResultText(result));
    return result.content;
  };
  const callContentUpstream = async (path: string) =>
    fixture.call(await fixture.createToolServer({ url: `${content.url}${path}` }));
  const text = (value: string) => [{ type: 'text', text: value }];
  const fileText = (type: string, bytes: string | Buffer) =>
    text(`The response is a file: ${type}, ${bytes.length} bytes.`);

  it('[behaviour The tool result] is one text block with compact JSON for a JSON response', async () => {
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'application/hal+json',
      'text/json',
      'APPLICATION/JSON',
    ]) {
      const result = await callWithResponse(
        createResponse(type, '\ufeff { "b" : [ 1, 2 ],\r\n\t"a" : "x , y : { z" } \n'),
      );
      const compact = '{"b":[1,2],"a":"x , y : { z"}';
      assert.deepEqual(result, { content: text(compact) }, type);
    }
  });

  /** Returns the result and the raw response in each protocol version. */
  const callInAllVersions = async (slug: string): Promise<{ [revision: string]: ToolCallResult & { raw: string } }> => {
    const params = { name: 'run', arguments: {} };
    const results: { [revision: string]: ToolCallResult & { raw: string } } = {};
    for (const revision of revisions) {
      const reply =
        revision === statelessRevision
          ? await fixture.toolhost.statelessRpc(slug, callerToken, 'tools/call', params)
          : await fixture.toolhost.rpc(slug, callerToken, 'tools/call', params, { 'mcp-protocol-version': revision });
      results[revision] = { ...(reply.body.result as ToolCallResult), raw: reply.text };
    }
    return results;
  };
  const jsonWithExactNumbers = '{"big":12345678901234567890,"price":1.10}';

  it('[behaviour The tool result] contains an object only once without output_schema, with unchanged numbers', async () => {
    fixture.upstream.on('GET /exact', () => createResponse('application/json', jsonWithExactNumbers));
    for (const [revision, result] of Object.entries(
      await callInAllVersions(await fixture.createToolServer({ url: '/exact' })),
    )) {
      assert.deepEqual([result.content, result.structuredContent], [text(jsonWithExactNumbers), undefined], revision);
    }
    const output_schema = { type: 'object', properties: { big: { type: 'integer' } } };
    for (const [revision, { content, raw }] of Object.entries(
      await callInAllVersions(await fixture.createToolServer({ url: '/exact', output_schema })),
    )) {
      assert.deepEqual(content, text(jsonWithExactNumbers));
      assert.ok(raw.includes(`"structuredContent":${jsonWithExactNumbers}`), revision);
    }
    // `tools/list` omits the output schema of a tool with a token limit.
    const limited = await callInAllVersions(
      await fixture.createToolServer({ url: '/exact', output_schema, max_response_tokens: 500 }),
    );
    for (const result of Object.values(limited)) assert.equal(result.structuredContent, undefined);
  });

  it('[behaviour The tool result] wraps JSON other than an object in structured content for protocol versions before 2026-07-28', async () => {
    const long = JSON.stringify(Array.from({ length: 60_000 }, (_, id) => ({ id, at: '10:00:00.000Z' })));
    const responses: [answer: CannedResponse, json: string, structured: string][] = [
      ...[
        '[{"id":1},{"id":2}]',
        '[1,{"a":"00:00:00.120 and 1.10"}]',
        '"a \\"1.10\\""',
        '5',
        '-0.5',
        'true',
        'null',
        long,
      ].map((json): [CannedResponse, string, string] => [createResponse('application/json', json), json, json]),
      ...[`[${jsonWithExactNumbers}]`, '[9007199254740993]', '12345678901234567890', '1.10', '[-0]'].map(
        (json): [CannedResponse, string, string] => [
          createResponse('application/json', json),
          json,
          JSON.stringify(json),
        ],
      ),
      [createResponse('text/plain', '[1,2] '), '[1,2] ', '[1,2] '],
      [createResponse('text/csv', '42'), '42', '42'],
    ];
    for (const [response, json, structured] of responses) {
      fixture.upstream.on('GET /value', () => response);
      for (const [revision, result] of Object.entries(
        await callInAllVersions(await fixture.createToolServer({ url: '/value' })),
      )) {
        assert.deepEqual(result.content, text(json));
        if (revision === statelessRevision) assert.equal(result.structuredContent, undefined);
        else assert.ok(result.raw.includes(`"structuredContent":{"result":${structured}}`), result.raw.slice(-300));
      }
    }
    for (const words of ['[WARN] all [is] well]', '"a" and "b"', 'trueish', '12 apples']) {
      const result = await callWithResponse(createResponse('text/plain', words));
      assert.deepEqual([result.content, result.structuredContent], [text(words), undefined]);
    }
  });

  it('[behaviour The tool result] is the unchanged text for text, XML, HTML, and SVG, decoded with the declared charset', async () => {
    assert.deepEqual((await callContentUpstream('/text')).content, text(TEXT));
    const samples: [string, string][] = [
      ['text/plain', 'two\r\nlines é'],
      ['text/csv', 'a,b\n1,2\n'],
      ['text/html; charset=utf-8', '<p onclick="x()">é</p><script>1</script>'],
      ['application/xml', '<?xml version="1.0"?><a>1 &lt; 2</a>'],
      ['application/atom+xml', '<feed/>'],
      ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
      ['text/markdown', '{"not": "parsed"}'],
    ];
    for (const [type, body] of samples)
      assert.deepEqual(await getContent(createResponse(type, body)), text(body), type);
    const latin = Buffer.from('caf\xe9', 'latin1');
    assert.deepEqual(await getContent(createResponse('text/plain; charset="ISO-8859-1"', latin)), text('café'));
    assert.deepEqual(await getContent(createResponse('text/plain; charset=unknown', 'plain')), text('plain'));
  });

  it('[behaviour The tool result] is JSON, text, or bytes depending on the body if the response has no media type', async () => {
    assert.deepEqual(await callWithResponse({ body: '{"a": 1}' }), { content: text('{"a":1}') });
    assert.deepEqual(await getContent({ body: 'just words' }), text('just words'));
    const [, block] = await getContent({ body: BINARY });
    assert.equal((block?.resource as Json | undefined)?.mimeType, 'application/octet-stream');
  });

  it('[behaviour The tool result] is an image or audio block for images and sounds', async () => {
    const image = { type: 'image', data: PNG.toString('base64'), mimeType: 'image/png' };
    const audio = { type: 'audio', data: WAV.toString('base64'), mimeType: 'audio/wav' };
    assert.deepEqual(await callContentUpstream('/image'), { content: [...fileText('image/png', PNG), image] });
    assert.deepEqual(await callContentUpstream('/audio'), { content: [...fileText('audio/wav', WAV), audio] });
    assert.deepEqual(await getContent(createResponse('image/PNG; x=y', PNG)), [...fileText('image/png', PNG), image]);
  });

  it('[behaviour The tool result] is an embedded resource with its media type for any other binary', async () => {
    const resource = (mimeType: string) => [
      ...fileText(mimeType, BINARY),
      { type: 'resource', resource: { uri: 'urn:toolhost:answer', mimeType, blob: BINARY.toString('base64') } },
    ];
    assert.deepEqual((await callContentUpstream('/resource')).content, resource('application/octet-stream'));
    assert.deepEqual(await getContent(createResponse('application/pdf', BINARY)), resource('application/pdf'));
  });

  it('[behaviour The tool result] is one block for each part of a multipart response', async () => {
    assert.deepEqual(await callContentUpstream('/mixed'), {
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        ...fileText('image/png', PNG),
        { type: 'image', data: PNG.toString('base64'), mimeType: 'image/png' },
        ...fileText('application/json', '{"test":"data","value":123}'),
        {
          type: 'resource',
          resource: { uri: 'urn:toolhost:answer', mimeType: 'application/json', text: '{"test":"data","value":123}' },
        },
      ],
    });
    const parts = [
      'preamble',
      '',
      '--b',
      '',
      'no head\r\n\r\nbut blank lines',
      '--b',
      'Content-Type: image/png',
      'Content-Transfer-Encoding: base64',
      '',
      PNG.toString('base64'),
      '--b--',
      'epilogue',
    ];
    assert.deepEqual(await getContent(createResponse('multipart/mixed; boundary=b', parts.join('\r\n'))), [
      { type: 'text', text: 'no head\r\n\r\nbut blank lines' },
      ...fileText('image/png', PNG),
      { type: 'image', data: PNG.toString('base64'), mimeType: 'image/png' },
    ]);
    const many = `${'--b\r\n\r\nx\r\n'.repeat(51)}--b--`;
    const rejectedCases: [string, string, RegExp][] = [
      ['multipart/mixed', 'x', /multipart body without a boundary; the request itself was carried out$/],
      ['multipart/mixed; boundary=b', 'no parts', /multipart body with no parts; allowed: 1 to 50;/],
      ['multipart/mixed; boundary=b', many, /multipart body with more than 50 parts; allowed: 1 to 50;/],
    ];
    for (const [type, body, message] of rejectedCases)
      assert.match(getErrorText(await callWithResponse(createResponse(type, body))), message);
  });

  it('[behaviour The tool result] is a text block with the status for an empty response', async () => {
    assert.deepEqual(await getContent({ status: 204 }), text('204 No Content: the response has no body'));
    assert.deepEqual(
      await getContent(createResponse('application/json', '')),
      text('200 OK: the response has no body'),
    );
    assert.deepEqual(await getContent({ status: 201 }), text('201 Created: the response has no body'));
  });

  it('[spec 4.3.10] [spec 7] suggests return=representation for an empty response to a POST or PATCH without Prefer', async () => {
    const hint =
      '204 No Content: the response has no body (with the header "Prefer: return=representation", some upstreams return the written row)';
    for (const method of ['POST', 'PATCH']) {
      assert.equal(getResultText(await callWithResponse({ status: 204 }, { method })), hint);
      const headers = { prefer: 'return=representation' };
      assert.doesNotMatch(getResultText(await callWithResponse({ status: 204 }, { method, headers })), /Prefer/);
    }
    for (const method of ['PUT', 'DELETE'])
      assert.doesNotMatch(getResultText(await callWithResponse({ status: 204 }, { method })), /Prefer/);
  });

  it('[find D4] contains the Location of a created resource and mentions Prefer only if it helps', async () => {
    const empty = (status: number, location?: string): CannedResponse => ({
      status,
      ...(location !== undefined && { headers: { location } }),
    });
    const message = async (response: CannedResponse, tool: Json = { method: 'POST' }) =>
      getResultText(await callWithResponse(response, tool));
    const accepted = '202 Accepted: the response has no body';
    assert.equal(await message(empty(202)), accepted);
    assert.equal(await message(empty(202, '/jobs/7')), `${accepted}\nLocation: /jobs/7`);
    assert.equal(await message(empty(202, '/jobs/7'), { method: 'GET' }), `${accepted}\nLocation: /jobs/7`);
    assert.equal(
      await message(empty(201, 'https://user:pass@api.example.com/things/9?sig=abc#x')),
      '201 Created: the response has no body\nLocation: /things/9',
    );
    const noContent = await message(empty(204, '/rows/3'), { method: 'PATCH' });
    assert.match(noContent, /^204 No Content: the response has no body\nLocation: \/rows\/3$/);
    for (const status of [200, 201, 204]) assert.match(await message(empty(status)), /Prefer/);
    for (const invalidLocation of ['', 'http://[', 'javascript:alert(1)', '//'])
      assert.doesNotMatch(await message(empty(202, invalidLocation)), /Location|alert/);
    const long = await message(empty(202, `/${'x'.repeat(5000)}`));
    assert.ok(long.length < 400, String(long.length));
    fixture.upstream.on('POST /echo', () => empty(202, `/token/${callerToken}/x`));
    const echo = await fixture.createToolServer(
      { method: 'POST', url: '/echo' },
      { authentication: { type: 'Bearer' } },
    );
    assert.equal(getResultText(await fixture.call(echo)), `${accepted}\nLocation: /token/[redacted]/x`);
    assert.match(
      getErrorText(await callWithResponse(empty(202, '/jobs/7'), { method: 'POST', response_transform: 'id' })),
      /HTTP 202 Accepted has no body; the request itself was carried out\nLocation: \/jobs\/7$/,
    );
  });

  it('[behaviour The tool result] is an error for response_transform on a response other than JSON', async () => {
    const tool = { response_transform: 'data' };
    const message = 'response_transform requires a JSON response, but ';
    assert.equal(
      getErrorText(await callWithResponse(createResponse('text/html', '<p>'), tool)),
      `${message}the upstream returned text/html; the request itself was carried out`,
    );
    assert.equal(
      getErrorText(await callWithResponse(createResponse('image/png', PNG), tool)),
      `${message}the upstream returned image/png; the request itself was carried out`,
    );
    assert.equal(
      getErrorText(await callWithResponse({ status: 204 }, tool)),
      `${message}HTTP 204 No Content has no body; the request itself was carried out`,
    );
    for (const path of ['.', '']) {
      assert.equal(
        getResultText(await callWithResponse(createResponse('text/html', '<p>'), { response_transform: path })),
        '<p>',
      );
    }
  });
});

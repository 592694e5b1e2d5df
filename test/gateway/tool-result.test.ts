import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { revisions, statelessRevision } from '@toolhost/mcp-protocol/mcp';
import { callerToken, getResultText, startOneTool } from '../support/one-tool.ts';
import { buildJsonResponse, buildResponse, createResponseCaller } from '../support/response-caller.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { BINARY, PNG, startContentUpstream, TEXT, WAV } from '../support/upstreams/content-upstream.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('the content of a tool result', () => {
  const content = useFixture(startContentUpstream);
  const fixture = useFixture(() => startOneTool({ egressPorts: [content.port] }));
  const { serve, call, getText, getError } = createResponseCaller(fixture);

  const getContent = async (response: CannedResponse) => {
    const result = await call(response);
    assert.deepEqual([result.isError, result.structuredContent], [undefined, undefined], getResultText(result));
    return result.content;
  };
  const callContentUpstream = async (path: string) =>
    fixture.call(await fixture.createToolServer({ url: `${content.url}${path}` }));
  const text = (value: string) => [{ type: 'text', text: value }];
  const fileText = (type: string, bytes: string | Buffer) =>
    text(`The response is a file: ${type}, ${bytes.length} bytes.`);

  it('[behaviour The tool result] is one text block with compact JSON for a JSON response', async () => {
    const mediaTypes = ['application/json', 'application/json; charset=utf-8', 'application/hal+json', 'text/json'];
    for (const type of [...mediaTypes, 'APPLICATION/JSON']) {
      const result = await call(buildResponse(type, '\ufeff { "b" : [ 1, 2 ],\r\n\t"a" : "x , y : { z" } \n'));
      assert.deepEqual(result, { content: text('{"b":[1,2],"a":"x , y : { z"}') }, type);
    }
  });

  /** Returns the revision, the result, and the raw response in each protocol version. */
  const callInAllVersions = async (slug: string) => {
    const params = { name: 'run', arguments: {} };
    const results = [];
    for (const revision of revisions) {
      const send = revision === statelessRevision ? fixture.toolhost.statelessRpc : fixture.toolhost.rpc;
      const headers = { 'mcp-protocol-version': revision };
      const { body, text: raw } = await send(slug, callerToken, 'tools/call', params, headers);
      results.push({ revision, raw, ...(body.result as ToolCallResult) });
    }
    return results;
  };
  const jsonWithExactNumbers = '{"big":12345678901234567890,"price":1.10}';

  it('[behaviour The tool result] contains an object only once without output_schema, with unchanged numbers', async () => {
    const response = buildJsonResponse(jsonWithExactNumbers);
    for (const { content, structuredContent, revision } of await callInAllVersions(await serve(response)))
      assert.deepEqual([content, structuredContent], [text(jsonWithExactNumbers), undefined], revision);
    const output_schema = { type: 'object', properties: { big: { type: 'integer' } } };
    for (const { content, raw, revision } of await callInAllVersions(await serve(response, { output_schema }))) {
      assert.deepEqual(content, text(jsonWithExactNumbers));
      assert.ok(raw.includes(`"structuredContent":${jsonWithExactNumbers}`), revision);
    }
    // `tools/list` omits the output schema of a tool with a token limit.
    const limited = await serve(response, { output_schema, max_response_tokens: 500 });
    for (const result of await callInAllVersions(limited)) assert.equal(result.structuredContent, undefined);
  });

  it('[behaviour The tool result] wraps JSON other than an object in structured content for protocol versions before 2026-07-28', async () => {
    const long = JSON.stringify(Array.from({ length: 60_000 }, (_, id) => ({ id, at: '10:00:00.000Z' })));
    const unchanged = ['[{"id":1},{"id":2}]', '[1,{"a":"00:00:00.120 and 1.10"}]', '"a \\"1.10\\""', '5', '-0.5'];
    const inexact = [`[${jsonWithExactNumbers}]`, '[9007199254740993]', '12345678901234567890', '1.10', '[-0]'];
    const responses: [type: string, json: string, structured: string][] = [
      ...[...unchanged, 'true', 'null', long].map(
        (json) => ['application/json', json, json] as [string, string, string],
      ),
      ...inexact.map((json) => ['application/json', json, JSON.stringify(json)] as [string, string, string]),
      ['text/plain', '[1,2] ', '[1,2] '],
      ['text/csv', '42', '42'],
    ];
    for (const [type, json, structured] of responses)
      for (const result of await callInAllVersions(await serve(buildResponse(type, json)))) {
        assert.deepEqual(result.content, text(json));
        if (result.revision === statelessRevision) assert.equal(result.structuredContent, undefined);
        else assert.ok(result.raw.includes(`"structuredContent":{"result":${structured}}`), result.raw.slice(-300));
      }
    for (const words of ['[WARN] all [is] well]', '"a" and "b"', 'trueish', '12 apples'])
      assert.deepEqual(await getContent(buildResponse('text/plain', words)), text(words));
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
    for (const [type, body] of samples) assert.deepEqual(await getContent(buildResponse(type, body)), text(body), type);
    const latin = Buffer.from('caf\xe9', 'latin1');
    assert.deepEqual(await getContent(buildResponse('text/plain; charset="ISO-8859-1"', latin)), text('café'));
    assert.deepEqual(await getContent(buildResponse('text/plain; charset=unknown', 'plain')), text('plain'));
  });

  it('[behaviour The tool result] is JSON, text, or bytes depending on the body if the response has no media type', async () => {
    assert.deepEqual(await call({ body: '{"a": 1}' }), { content: text('{"a":1}') });
    assert.deepEqual(await getContent({ body: 'just words' }), text('just words'));
    const [, block] = await getContent({ body: BINARY });
    assert.equal((block?.resource as Json | undefined)?.mimeType, 'application/octet-stream');
  });

  it('[behaviour The tool result] is an image or audio block for images and sounds', async () => {
    const image = { type: 'image', data: PNG.toString('base64'), mimeType: 'image/png' };
    const audio = { type: 'audio', data: WAV.toString('base64'), mimeType: 'audio/wav' };
    assert.deepEqual(await callContentUpstream('/image'), { content: [...fileText('image/png', PNG), image] });
    assert.deepEqual(await callContentUpstream('/audio'), { content: [...fileText('audio/wav', WAV), audio] });
    assert.deepEqual(await getContent(buildResponse('image/PNG; x=y', PNG)), [...fileText('image/png', PNG), image]);
  });

  it('[behaviour The tool result] is an embedded resource with its media type for any other binary', async () => {
    const resource = (mimeType: string) => [
      ...fileText(mimeType, BINARY),
      { type: 'resource', resource: { uri: 'urn:toolhost:answer', mimeType, blob: BINARY.toString('base64') } },
    ];
    assert.deepEqual((await callContentUpstream('/resource')).content, resource('application/octet-stream'));
    assert.deepEqual(await getContent(buildResponse('application/pdf', BINARY)), resource('application/pdf'));
  });

  it('[behaviour The tool result] is one block for each part of a multipart response', async () => {
    const image = [
      ...fileText('image/png', PNG),
      { type: 'image', data: PNG.toString('base64'), mimeType: 'image/png' },
    ];
    const json = '{"test":"data","value":123}';
    const resource = { uri: 'urn:toolhost:answer', mimeType: 'application/json', text: json };
    const mixed = [...text('Multiple content types test:'), ...image, ...fileText('application/json', json)];
    assert.deepEqual(await callContentUpstream('/mixed'), { content: [...mixed, { type: 'resource', resource }] });
    const head = 'Content-Type: image/png\r\nContent-Transfer-Encoding: base64';
    const textPart = 'no head\r\n\r\nbut blank lines';
    const parts = `preamble\r\n\r\n--b\r\n\r\n${textPart}\r\n--b\r\n${head}\r\n\r\n${PNG.toString('base64')}\r\n--b--`;
    assert.deepEqual(await getContent(buildResponse('multipart/mixed; boundary=b', `${parts}\r\nepilogue`)), [
      ...text(textPart),
      ...image,
    ]);
    const many = `${'--b\r\n\r\nx\r\n'.repeat(51)}--b--`;
    const rejectedCases: [string, string, RegExp][] = [
      ['multipart/mixed', 'x', /multipart body without a boundary; the request itself was carried out$/],
      ['multipart/mixed; boundary=b', 'no parts', /multipart body with no parts; allowed: 1 to 50;/],
      ['multipart/mixed; boundary=b', many, /multipart body with more than 50 parts; allowed: 1 to 50;/],
    ];
    for (const [type, body, message] of rejectedCases) assert.match(await getError(buildResponse(type, body)), message);
  });

  it('[behaviour The tool result] is a text block with the status for an empty response', async () => {
    for (const [response, start] of [
      [{ status: 204 }, '204 No Content'],
      [buildJsonResponse(''), '200 OK'],
      [{ status: 201 }, '201 Created'],
    ] as const)
      assert.deepEqual(await getContent(response), text(`${start}: the response has no body`));
  });

  it('[spec 4.3.10] [spec 7] suggests return=representation for an empty response to a POST or PATCH without Prefer', async () => {
    const hint =
      '204 No Content: the response has no body (with the header "Prefer: return=representation", some upstreams return the written row)';
    for (const method of ['POST', 'PATCH']) {
      assert.equal(await getText({ status: 204 }, { method }), hint);
      const headers = { prefer: 'return=representation' };
      assert.doesNotMatch(await getText({ status: 204 }, { method, headers }), /Prefer/);
    }
    for (const method of ['PUT', 'DELETE']) assert.doesNotMatch(await getText({ status: 204 }, { method }), /Prefer/);
  });

  it('[find D4] contains the Location of a created resource and mentions Prefer only if it helps', async () => {
    const empty = (status: number, location?: string): CannedResponse => ({
      status,
      ...(location !== undefined && { headers: { location } }),
    });
    const message = (response: CannedResponse, tool: Json = { method: 'POST' }, server?: Json) =>
      getText(response, tool, server);
    const accepted = '202 Accepted: the response has no body';
    assert.equal(await message(empty(202)), accepted);
    for (const method of ['POST', 'GET'])
      assert.equal(await message(empty(202, '/jobs/7'), { method }), `${accepted}\nLocation: /jobs/7`);
    const created = await message(empty(201, 'https://user:pass@api.example.com/things/9?sig=abc#x'));
    assert.equal(created, '201 Created: the response has no body\nLocation: /things/9');
    const noContent = await message(empty(204, '/rows/3'), { method: 'PATCH' });
    assert.match(noContent, /^204 No Content: the response has no body\nLocation: \/rows\/3$/);
    for (const status of [200, 201, 204]) assert.match(await message(empty(status)), /Prefer/);
    for (const invalidLocation of ['', 'http://[', 'javascript:alert(1)', '//'])
      assert.doesNotMatch(await message(empty(202, invalidLocation)), /Location|alert/);
    const long = await message(empty(202, `/${'x'.repeat(5000)}`));
    assert.ok(long.length < 400, String(long.length));
    const forwarding = { authentication: { type: 'Bearer' } };
    const echo = await message(empty(202, `/token/${callerToken}/x`), { method: 'POST' }, forwarding);
    assert.equal(echo, `${accepted}\nLocation: /token/[redacted]/x`);
    assert.match(
      await getError(empty(202, '/jobs/7'), { method: 'POST', response_transform: 'id' }),
      /HTTP 202 Accepted has no body; the request itself was carried out\nLocation: \/jobs\/7$/,
    );
  });

  it('[behaviour The tool result] is an error for response_transform on a response other than JSON', async () => {
    for (const [response, found] of [
      [buildResponse('text/html', '<p>'), 'the upstream returned text/html'],
      [buildResponse('image/png', PNG), 'the upstream returned image/png'],
      [{ status: 204 }, 'HTTP 204 No Content has no body'],
    ] as const) {
      const message = `response_transform requires a JSON response, but ${found}; the request itself was carried out`;
      assert.equal(await getError(response, { response_transform: 'data' }), message);
    }
    for (const response_transform of ['.', ''])
      assert.equal(await getText(buildResponse('text/html', '<p>'), { response_transform }), '<p>');
  });
});

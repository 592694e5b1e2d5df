import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import { buildJsonResponse, buildResponse, createResponseCaller } from '../support/response-caller.ts';
import { getTools } from '../support/server-requests.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('the tool result of a JSON response', () => {
  const fixture = useFixture(startOneTool);
  const { serve, call, getText, getError } = createResponseCaller(fixture);
  const serveJson = (json: string, tool?: Json) => serve(buildJsonResponse(json), tool);
  const params = { name: 'run', arguments: {} };
  /** Returns the whole response to a call. */
  const callForResponse = async (json: string, tool?: Json) =>
    (await fixture.toolhost.rpc(await serveJson(json, tool), callerToken, 'tools/call', params)).text;
  const transform = async (json: string, response_transform: string) => {
    const result = await call(buildJsonResponse(json), { response_transform });
    assert.notEqual(result.isError, true, getResultText(result));
    return getResultText(result);
  };

  it('[behaviour The tool result] keeps all digits of numbers, in the whole and in selected parts', async () => {
    const json = '{"id":9007199254740993,"price":1.10,"list":[-0,1e2,0.0000001,12345678.123456789,1E400]}';
    for (const tool of [{}, { response_fields: ['id', 'price', 'list'] }]) {
      const text = await callForResponse(json, tool);
      assert.ok(text.includes(JSON.stringify(json)), text);
    }
    assert.equal(await transform(json, 'id'), '9007199254740993');
    assert.equal(await transform(json, 'list'), '[-0,1e2,0.0000001,12345678.123456789,1E400]');
  });

  for (const length of [10, 4095, 4096, 50_000, 65_536, 65_537, 200_000]) {
    it(`[behaviour The tool result] passes on ${length} bytes of JSON unchanged, as text and as structured content with output_schema`, async () => {
      const fixed = '{"quote\\"":"back\\\\slash \\u00e9 é 😀","n":1.10,"pad":""}';
      const json = fixed.replace('""}', `"${'x'.repeat(Math.max(0, length - Buffer.byteLength(fixed)))}"}`);
      const text = await callForResponse(json, { output_schema: { type: 'object' } });
      assert.ok(text.includes(`"structuredContent":${json}`), text.slice(0, 300));
      assert.deepEqual(JSON.parse(text).result.content, [{ type: 'text', text: json }]);
    });
  }

  it('[behaviour The tool result] replaces an unpaired surrogate by U+FFFD, because strict parsers reject the whole message', async () => {
    const callWithSchema = (json: string, tool: Json = {}) =>
      callForResponse(json, { output_schema: { type: 'object' }, ...tool });
    const json =
      '{"a":"\\ud83d","\\uDE00":["\\uD83D\\ude00","\\\\ud83d","\\ud83d\\u0041","\\udbff\\ud83d\\ude00","\\ud7ff\\ue000"]}';
    const repaired =
      '{"a":"\\ufffd","\\ufffd":["\\uD83D\\ude00","\\\\ud83d","\\ufffd\\u0041","\\ufffd\\ud83d\\ude00","\\ud7ff\\ue000"]}';
    assert.ok((await callWithSchema(json)).includes(`"structuredContent":${repaired}`));
    for (const length of [5000, 300_000]) {
      const padding = `,"pad":"${'x'.repeat(length)}"}`;
      const text = await callWithSchema(json.slice(0, -1) + padding);
      assert.ok(text.endsWith(`"structuredContent":${repaired.slice(0, -1)}${padding}}}`), text.slice(0, 300));
    }
    const selected = await callWithSchema(json, { response_fields: ['a'] });
    assert.ok(selected.includes('"structuredContent":{"a":"\\ufffd"}'));
    for (const truncatedJson of ['{"a":"\\ud83d', '{"a":"\\ud8', '{"a":"\\ud'])
      assert.match(await callWithSchema(truncatedJson), /not strict JSON/);
    const output_schema = { type: 'object', properties: { a: { type: 'number' } } };
    const misfit = await callWithSchema(`{"a":"${'x'.repeat(993)}${'😀'.repeat(10)}"}`, { output_schema });
    // The truncation splits no character.
    assert.match(misfit, /x"\}/);
    assert.doesNotMatch(misfit, /\\ud/);
  });

  it('[spec 4.3.9] selects everything, a path, or an index with response_transform', async () => {
    const json = '{"data":{"results":[{"id":1},{"id":2}],"empty":null},"a":{"":{"x":1}}}';
    for (const [path, expected] of [
      ['.', json],
      ['', json],
      ['data.results', '[{"id":1},{"id":2}]'],
      ['.data.results.1.id', '2'],
      ['data.empty', 'null'],
      ['data.results.0', '{"id":1}'],
    ] as const)
      assert.equal(await transform(json, path), expected, path);
    assert.equal(await transform('[[1,[2]]]', '0.1.0'), '2');
  });

  it('[behaviour The tool result] is an error with the path and the existing keys if the path of response_transform does not exist', async () => {
    const json = '{"data":{"items":[1,2],"none":[],"text":"x","big":9007199254740993,"o":{}}}';
    for (const [path, found] of [
      ['dta.items', 'the response has the keys "data"'],
      ['data.itms', '"data" has the keys "items", "none", "text", "big", "o"'],
      ['data.items.2', '"data.items" has the indexes 0 to 1'],
      ['data.none.0', '"data.none" has no entries'],
      ['data.text.length', '"data.text" has no keys, because it is a single value'],
      ['data.big.rawJSON', '"data.big" has no keys, because it is a single value'],
      ['data.o.x', '"data.o" has no keys'],
    ] as const) {
      const problem = `response_transform "${path}" does not exist in the response: ${found}`;
      const message = await getError(buildJsonResponse(json), { response_transform: path });
      assert.equal(message, `${problem}; the request itself was carried out`);
    }
    const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`k${i}`, i])));
    const message = await getError(buildJsonResponse(wide), { response_transform: 'x' });
    assert.match(message, /"k19" and 5 more; the request/);
  });

  it('[sec C9] selects only own properties with response_transform', async () => {
    const json = '{"a":[1],"items":[{"y":1}],"__proto__":{"mine":true}}';
    assert.equal(await transform(json, '__proto__'), '{"mine":true}');
    assert.equal(await transform(json, '__proto__.mine'), 'true');
    const inherited = ['constructor.prototype', 'constructor', 'toString', 'a.length', 'a.map', 'items.0.__proto__'];
    for (const response_transform of [...inherited, 'a.-1', 'a.01', 'items.0.x']) {
      const message = await getError(buildJsonResponse(json), { response_transform });
      assert.match(message, /^response_transform ".*" does not exist/, response_transform);
    }
  });

  it('[behaviour Configuration] contains only the paths in response_fields, of an object or of each item of an array', async () => {
    const json = '[{"id":1,"name":"A","owner":{"id":5,"mail":"m"},"tags":[{"n":"x","s":1},{"n":"y"}]},{"id":2},null]';
    const all = '[{"owner":{"id":5,"mail":"m"}},{},null]';
    for (const [response_fields, expected, source = json] of [
      [['id', 'owner.id'], '[{"id":1,"owner":{"id":5}},{"id":2},null]'],
      [['tags.n', 'name'], '[{"tags":[{"n":"x"},{"n":"y"}],"name":"A"},{},null]'],
      [['owner', 'owner.mail'], all],
      [['owner.id', 'owner.mail', 'owner.none'], all],
      [['__proto__', 'constructor'], '{"__proto__":{"a":1}}', '{"__proto__":{"a":1},"b":2}'],
      [['list.a'], '{"list":[{},{"a":1.10}]}', '{"list":[9007199254740993,{"a":1.10}]}'],
    ] as const)
      assert.equal(await getText(buildJsonResponse(source), { response_fields }), expected, response_fields.join());
    const both = { response_fields: ['id'], response_transform: '0.owner' };
    assert.equal(await getText(buildJsonResponse(json), both), '{"id":5}');
  });

  it('[mcp 33] has valid structuredContent with output_schema, and an error if the response does not match', async () => {
    const output_schema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
    const slug = await serveJson('{"data": {"id": 9007199254740993}}', { output_schema, response_transform: 'data' });
    const listed = await fixture.toolhost.rpc(slug, callerToken, 'tools/list');
    assert.deepEqual(getTools(listed)[0]?.outputSchema, output_schema);
    const { text } = await fixture.toolhost.rpc(slug, callerToken, 'tools/call', params);
    assert.ok(text.includes('"structuredContent":{"id":9007199254740993}'), text);
    for (const json of ['{"data":{"id":"x"}}', '{"data":{}}', '{"data":[{"id":1}]}', '{"data":null}']) {
      const misfit = await serveJson(json, { output_schema, response_transform: 'data' });
      const message = 'the response does not match output_schema; the request itself was carried out: ';
      const found = getErrorText(await fixture.call(misfit));
      assert.equal(found, `${message}${JSON.stringify(JSON.parse(json).data)}`);
      const { body } = await fixture.toolhost.statelessRpc(misfit, callerToken, 'tools/call', params);
      const { isError, structuredContent } = body.result as ToolCallResult;
      assert.deepEqual([isError, structuredContent], [true, undefined]);
    }
    const json = '{"id":1,"more":[1.0]}';
    assert.equal(await getText(buildJsonResponse(json), { output_schema }), json);
    const many = `{"id":${JSON.stringify(Array(100_000).fill('x'))}}`;
    const list = { type: 'object', properties: { id: { type: 'array', items: { type: 'integer' } } } };
    const mismatch = await getError(buildJsonResponse(many), { output_schema: list });
    assert.match(mismatch, /^the response does not match output_schema; /);
  });

  it('[sec A10] contains no credential and no partial credential if an error quotes the response', async () => {
    const secret = 'stored-upstream-secret-9f8e7d';
    const authentication = { type: 'Bearer', token: secret };
    const key = await fixture.toolhost.createKey();
    const output_schema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
    const callForError = async (body: Json, tool: Json) => {
      const slug = await serve(buildJsonResponse(JSON.stringify(body)), tool, { authentication });
      return getErrorText(await fixture.toolhost.callTool(slug, key, 'run'));
    };
    const expired = { error: `token Bearer ${secret} is expired` };
    assert.equal(
      await callForError(expired, { output_schema }),
      'the response does not match output_schema; the request itself was carried out: {"error":"token Bearer [redacted] is expired"}',
    );
    for (let before = 960; before < 1000; before += 7) {
      const a = `${'x'.repeat(before)}${secret}`;
      assert.doesNotMatch(await callForError({ a }, { output_schema }), /stored/);
      const long = { a, b: 'y'.repeat(1_500_000) };
      assert.doesNotMatch(await callForError(long, { output_schema, response_limit_bytes: 2_000_000 }), /stored/);
    }
    for (const [body, path] of [
      [{ [secret]: 1 }, 'data'],
      [{ a: { [secret]: 1 } }, 'a.data'],
    ] as const) {
      const message = await callForError(body, { response_transform: path });
      assert.match(message, /the keys "\[redacted\]"|has the keys/);
      assert.doesNotMatch(message, /stored/);
    }
  });

  it('[imp 2] is text for a raw file with a type such as application/vnd.github.raw+json, unless it is JSON', async () => {
    const raw = (body: string | Buffer) => buildResponse('application/vnd.github.raw+json; charset=utf-8', body);
    const readme = '# Readme\n\nHello';
    assert.deepEqual(await call(raw(readme)), { content: [{ type: 'text', text: readme }] });
    assert.equal(await getText(raw('{ "a": 1 }')), '{"a":1}');
    const message = await getError(raw('# Readme'), { response_transform: 'a' });
    assert.match(message, /not strict JSON; the request itself was/);
    assert.equal((await call(raw(Buffer.from([0xff, 0xfd, 0])))).content[1]?.type, 'resource');
  });

  it('[behaviour The tool result] is text for JSON that is nested too deep, and an error if a filter needs JSON', async () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    assert.equal(await getText(buildJsonResponse(nested(1000))), nested(1000));
    const { content } = await call(buildJsonResponse(nested(1001)));
    assert.match(String(content[1]?.text), /as text, because it is nested deeper than 1000 levels\.$/);
    const message = await getError(buildJsonResponse(nested(100_000)), { response_transform: '0' });
    assert.match(message, /deeper than 1000 levels; the request/);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import { useStarted } from '../support/suite-fixtures.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';

describe('the tool result of a JSON response', () => {
  const fixture = useStarted(startOneTool);

  let routeCount = 0;
  /** Creates a server whose upstream responds with this JSON text. */
  const serveJson = (json: string, tool: Json = {}) => {
    const path = `/json-${++routeCount}`;
    fixture.upstream.on(`GET ${path}`, () => ({ headers: { 'content-type': 'application/json' }, body: json }));
    return fixture.createToolServer({ ...tool, url: path });
  };
  const callWithJson = async (json: string, tool: Json = {}) => fixture.call(await serveJson(json, tool));
  const transform = async (json: string, response_transform: string) => {
    const result = await callWithJson(json, { response_transform });
    assert.notEqual(result.isError, true, getResultText(result));
    return getResultText(result);
  };

  it('[behaviour The tool result] keeps all digits of numbers, in the whole and in selected parts', async () => {
    const json = '{"id":9007199254740993,"price":1.10,"list":[-0,1e2,0.0000001,12345678.123456789,1E400]}';
    for (const tool of [{}, { response_fields: ['id', 'price', 'list'] }]) {
      const slug = await serveJson(json, tool);
      const { text } = await fixture.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} });
      assert.ok(text.includes(JSON.stringify(json)), text);
    }
    assert.equal(await transform(json, 'id'), '9007199254740993');
    assert.equal(await transform(json, 'list'), '[-0,1e2,0.0000001,12345678.123456789,1E400]');
  });

  for (const length of [10, 4095, 4096, 50_000, 65_536, 65_537, 200_000]) {
    it(`[behaviour The tool result] passes on ${length} bytes of JSON unchanged, as text and as structured content with output_schema`, async () => {
      const fixed = '{"quote\\"":"back\\\\slash \\u00e9 é 😀","n":1.10,"pad":""}';
      const json = fixed.replace('""}', `"${'x'.repeat(Math.max(0, length - Buffer.byteLength(fixed)))}"}`);
      const slug = await serveJson(json, { output_schema: { type: 'object' } });
      const { text } = await fixture.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} });
      assert.ok(text.includes(`"structuredContent":${json}`), text.slice(0, 300));
      const result = (JSON.parse(text) as { result: { content: { type: string; text: string }[] } }).result;
      assert.deepEqual(result.content, [{ type: 'text', text: json }]);
    });
  }

  it('[behaviour The tool result] replaces an unpaired surrogate by U+FFFD, because strict parsers reject the whole message', async () => {
    const callForResponse = async (json: string, tool: Json = {}) => {
      const slug = await serveJson(json, { output_schema: { type: 'object' }, ...tool });
      return (await fixture.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} })).text;
    };
    const json =
      '{"a":"\\ud83d","\\uDE00":["\\uD83D\\ude00","\\\\ud83d","\\ud83d\\u0041","\\udbff\\ud83d\\ude00","\\ud7ff\\ue000"]}';
    const repaired =
      '{"a":"\\ufffd","\\ufffd":["\\uD83D\\ude00","\\\\ud83d","\\ufffd\\u0041","\\ufffd\\ud83d\\ude00","\\ud7ff\\ue000"]}';
    assert.ok((await callForResponse(json)).includes(`"structuredContent":${repaired}`));
    for (const length of [5000, 300_000]) {
      const padding = `,"pad":"${'x'.repeat(length)}"}`;
      const text = await callForResponse(json.slice(0, -1) + padding);
      assert.ok(text.endsWith(`"structuredContent":${repaired.slice(0, -1)}${padding}}}`), text.slice(0, 300));
    }
    assert.ok(
      (await callForResponse(json, { response_fields: ['a'] })).includes('"structuredContent":{"a":"\\ufffd"}'),
    );
    for (const truncatedJson of ['{"a":"\\ud83d', '{"a":"\\ud8', '{"a":"\\ud'])
      assert.match(await callForResponse(truncatedJson), /not strict JSON/);
    const output_schema = { type: 'object', properties: { a: { type: 'number' } } };
    const misfit = await callForResponse(`{"a":"${'x'.repeat(993)}${'😀'.repeat(10)}"}`, { output_schema });
    // The truncation splits no character.
    assert.match(misfit, /x"\}/);
    assert.doesNotMatch(misfit, /\\ud/);
  });

  it('[spec 4.3.9] selects everything, a path, or an index with response_transform', async () => {
    const json = '{"data":{"results":[{"id":1},{"id":2}],"empty":null},"a":{"":{"x":1}}}';
    assert.equal(await transform(json, '.'), json);
    assert.equal(await transform(json, ''), json);
    assert.equal(await transform(json, 'data.results'), '[{"id":1},{"id":2}]');
    assert.equal(await transform(json, '.data.results.1.id'), '2');
    assert.equal(await transform(json, 'data.empty'), 'null');
    assert.equal(await transform('[[1,[2]]]', '0.1.0'), '2');
    const structured = await callWithJson(json, { response_transform: 'data.results.0' });
    assert.equal(getResultText(structured), '{"id":1}');
  });

  it('[behaviour The tool result] is an error with the path and the existing keys if the path of response_transform does not exist', async () => {
    const json = '{"data":{"items":[1,2],"none":[],"text":"x","big":9007199254740993,"o":{}}}';
    const message = async (path: string) => {
      const text = getErrorText(await callWithJson(json, { response_transform: path }));
      return text.replace(
        /^response_transform ".*?" does not exist in the response: (.*); the request itself was carried out$/,
        '$1',
      );
    };
    assert.equal(await message('dta.items'), 'the response has the keys "data"');
    assert.equal(await message('data.itms'), '"data" has the keys "items", "none", "text", "big", "o"');
    assert.equal(await message('data.items.2'), '"data.items" has the indexes 0 to 1');
    assert.equal(await message('data.none.0'), '"data.none" has no entries');
    assert.equal(await message('data.text.length'), '"data.text" has no keys, because it is a single value');
    assert.equal(await message('data.big.rawJSON'), '"data.big" has no keys, because it is a single value');
    assert.equal(await message('data.o.x'), '"data.o" has no keys');
    const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`k${i}`, i])));
    assert.match(getErrorText(await callWithJson(wide, { response_transform: 'x' })), /"k19" and 5 more; the request/);
  });

  it('[sec C9] selects only own properties with response_transform', async () => {
    const json = '{"a":[1],"items":[{"y":1}],"__proto__":{"mine":true}}';
    assert.equal(await transform(json, '__proto__'), '{"mine":true}');
    assert.equal(await transform(json, '__proto__.mine'), 'true');
    for (const path of [
      'constructor.prototype',
      'constructor',
      'toString',
      'a.length',
      'a.-1',
      'a.01',
      'items.0.x',
      'items.0.__proto__',
      'a.map',
    ]) {
      assert.match(
        getErrorText(await callWithJson(json, { response_transform: path })),
        /^response_transform ".*" does not exist/,
        path,
      );
    }
  });

  it('[behaviour Configuration] contains only the paths in response_fields, of an object or of each item of an array', async () => {
    const json = '[{"id":1,"name":"A","owner":{"id":5,"mail":"m"},"tags":[{"n":"x","s":1},{"n":"y"}]},{"id":2},null]';
    const selectFields = async (fields: string[], overrides: Json = {}) =>
      getResultText(await callWithJson(json, { response_fields: fields, ...overrides }));
    assert.equal(await selectFields(['id', 'owner.id']), '[{"id":1,"owner":{"id":5}},{"id":2},null]');
    assert.equal(await selectFields(['tags.n', 'name']), '[{"tags":[{"n":"x"},{"n":"y"}],"name":"A"},{},null]');
    assert.equal(await selectFields(['owner', 'owner.mail']), '[{"owner":{"id":5,"mail":"m"}},{},null]');
    assert.equal(
      await selectFields(['owner.id', 'owner.mail', 'owner.none']),
      '[{"owner":{"id":5,"mail":"m"}},{"id":2},null]'.replace('{"id":2}', '{}'),
    );
    assert.equal(await selectFields(['id'], { response_transform: '0.owner' }), '{"id":5}');
    const proto = await callWithJson('{"__proto__":{"a":1},"b":2}', { response_fields: ['__proto__', 'constructor'] });
    assert.equal(getResultText(proto), '{"__proto__":{"a":1}}');
    const long = await callWithJson('{"list":[9007199254740993,{"a":1.10}]}', { response_fields: ['list.a'] });
    assert.equal(getResultText(long), '{"list":[{},{"a":1.10}]}');
  });

  it('[mcp 33] has valid structuredContent with output_schema, and an error if the response does not match', async () => {
    const output_schema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
    const slug = await serveJson('{"data": {"id": 9007199254740993}}', { output_schema, response_transform: 'data' });
    const listed = await fixture.toolhost.rpc(slug, callerToken, 'tools/list');
    assert.deepEqual((listed.body.result as { tools: Json[] }).tools[0]?.outputSchema, output_schema);
    const { text } = await fixture.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} });
    assert.ok(text.includes('"structuredContent":{"id":9007199254740993}'), text);
    for (const json of ['{"data":{"id":"x"}}', '{"data":{}}', '{"data":[{"id":1}]}', '{"data":null}']) {
      const misfit = await serveJson(json, { output_schema, response_transform: 'data' });
      const message = getErrorText(await fixture.call(misfit));
      assert.equal(
        message,
        `the response does not match output_schema; the request itself was carried out: ${JSON.stringify(JSON.parse(json).data)}`,
      );
      const { body } = await fixture.toolhost.statelessRpc(misfit, callerToken, 'tools/call', {
        name: 'run',
        arguments: {},
      });
      assert.deepEqual(
        [(body.result as ToolCallResult).isError, (body.result as ToolCallResult).structuredContent],
        [true, undefined],
      );
    }
    const repaired = await callWithJson('{"id":1,"more":[1.0]}', { output_schema });
    assert.equal(getResultText(repaired), '{"id":1,"more":[1.0]}');
    const many = `{"id":${JSON.stringify(Array(100_000).fill('x'))}}`;
    const list = { type: 'object', properties: { id: { type: 'array', items: { type: 'integer' } } } };
    assert.match(
      getErrorText(await callWithJson(many, { output_schema: list })),
      /^the response does not match output_schema; /,
    );
  });

  it('[sec A10] contains no credential and no partial credential if an error quotes the response', async () => {
    const secret = 'stored-upstream-secret-9f8e7d';
    const authentication = { type: 'Bearer', token: secret };
    const key = await fixture.toolhost.createKey();
    const output_schema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
    const callForError = async (body: string, tool: Json) => {
      const path = `/echoes-${++routeCount}`;
      fixture.upstream.on(`GET ${path}`, () => ({ headers: { 'content-type': 'application/json' }, body }));
      const slug = await fixture.createToolServer({ url: path, ...tool }, { authentication });
      return getErrorText(await fixture.toolhost.callTool(slug, key, 'run'));
    };
    const expired = JSON.stringify({ error: `token Bearer ${secret} is expired` });
    assert.equal(
      await callForError(expired, { output_schema }),
      'the response does not match output_schema; the request itself was carried out: {"error":"token Bearer [redacted] is expired"}',
    );
    for (let before = 960; before < 1000; before += 7) {
      const message = await callForError(JSON.stringify({ a: `${'x'.repeat(before)}${secret}` }), { output_schema });
      assert.doesNotMatch(message, /stored/);
      const long = JSON.stringify({ a: `${'x'.repeat(before)}${secret}`, b: 'y'.repeat(1_500_000) });
      assert.doesNotMatch(await callForError(long, { output_schema, response_limit_bytes: 2_000_000 }), /stored/);
    }
    for (const [body, path] of [
      [{ [secret]: 1 }, 'data'],
      [{ a: { [secret]: 1 } }, 'a.data'],
    ] as const)
      assert.match(
        await callForError(JSON.stringify(body), { response_transform: path }),
        /the keys "\[redacted\]"|has the keys/,
      );
    assert.doesNotMatch(await callForError(JSON.stringify({ [secret]: 1 }), { response_transform: 'data' }), /stored/);
  });

  it('[sec A10] redacts the password within a Basic token', async () => {
    for (const password of ['Sup3r-geheim-Passw0rd', 'Zauberwört-geheim']) {
      const authentication = { type: 'Basic', token: Buffer.from(`anna:${password}`).toString('base64') };
      const path = `/echoes-${++routeCount}`;
      fixture.upstream.on(`GET ${path}`, () => ({ status: 400, body: { user: 'anna', password } }));
      const slug = await fixture.createToolServer({ url: path }, { authentication });
      const message = getErrorText(await fixture.toolhost.callTool(slug, await fixture.toolhost.createKey(), 'run'));
      assert.match(message, /"user":"anna","password":"\[redacted\]"/);
    }
  });

  it('[imp 2] is text for a raw file with a type such as application/vnd.github.raw+json, unless it is JSON', async () => {
    const callRawFile = async (body: string | Buffer, tool: Json = {}) => {
      const path = `/raw-${++routeCount}`;
      const headers = { 'content-type': 'application/vnd.github.raw+json; charset=utf-8' };
      fixture.upstream.on(`GET ${path}`, () => ({ headers, body }));
      return fixture.call(await fixture.createToolServer({ ...tool, url: path }));
    };
    const readme = await callRawFile('# Readme\n\nHello');
    assert.deepEqual(
      [getResultText(readme), readme.isError, readme.structuredContent],
      ['# Readme\n\nHello', undefined, undefined],
    );
    assert.equal(getResultText(await callRawFile('{ "a": 1 }')), '{"a":1}');
    assert.match(
      getErrorText(await callRawFile('# Readme', { response_transform: 'a' })),
      /not strict JSON; the request itself was/,
    );
    assert.equal((await callRawFile(Buffer.from([0xff, 0xfd, 0]))).content[1]?.type, 'resource');
  });

  it('[behaviour The tool result] is text for JSON that is nested too deep, and an error if a filter needs JSON', async () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    assert.equal(getResultText(await callWithJson(nested(1000))), nested(1000));
    const { content } = await callWithJson(nested(1001));
    assert.match(String(content[1]?.text), /as text, because it is nested deeper than 1000 levels\.$/);
    assert.match(
      getErrorText(await callWithJson(nested(100_000), { response_transform: '0' })),
      /deeper than 1000 levels; the request/,
    );
  });
});

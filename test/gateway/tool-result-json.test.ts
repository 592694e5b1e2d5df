import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callerToken, errorOf, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json, ToolReply } from '../support/toolhost/toolhost.ts';

describe('the tool result of a JSON response', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool();
  });
  after(() => one.stop());

  let routes = 0;
  /** Creates a server whose upstream responds with this JSON text. */
  const serving = (json: string, tool: Json = {}) => {
    const path = `/json-${++routes}`;
    one.upstream.on(`GET ${path}`, () => ({ headers: { 'content-type': 'application/json' }, body: json }));
    return one.serve({ ...tool, url: path });
  };
  const resultOf = async (json: string, tool: Json = {}) => one.call(await serving(json, tool));
  const part = async (json: string, response_transform: string) => {
    const result = await resultOf(json, { response_transform });
    assert.notEqual(result.isError, true, textOf(result));
    return textOf(result);
  };

  it('[behaviour The tool result] keeps all digits of numbers, in the whole and in selected parts', async () => {
    const json = '{"id":9007199254740993,"price":1.10,"list":[-0,1e2,0.0000001,12345678.123456789,1E400]}';
    for (const tool of [{}, { response_fields: ['id', 'price', 'list'] }]) {
      const slug = await serving(json, tool);
      const { text } = await one.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} });
      assert.ok(text.includes(JSON.stringify(json)), text);
    }
    assert.equal(await part(json, 'id'), '9007199254740993');
    assert.equal(await part(json, 'list'), '[-0,1e2,0.0000001,12345678.123456789,1E400]');
  });

  for (const length of [10, 4095, 4096, 50_000, 65_536, 65_537, 200_000]) {
    it(`[behaviour The tool result] passes on ${length} bytes of JSON unchanged, as text and as structured content with output_schema`, async () => {
      const fixed = '{"quote\\"":"back\\\\slash \\u00e9 é 😀","n":1.10,"pad":""}';
      const json = fixed.replace('""}', `"${'x'.repeat(Math.max(0, length - Buffer.byteLength(fixed)))}"}`);
      const slug = await serving(json, { output_schema: { type: 'object' } });
      const { text } = await one.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} });
      assert.ok(text.includes(`"structuredContent":${json}`), text.slice(0, 300));
      const result = (JSON.parse(text) as { result: { content: { type: string; text: string }[] } }).result;
      assert.deepEqual(result.content, [{ type: 'text', text: json }]);
    });
  }

  it('[behaviour The tool result] replaces an unpaired surrogate by U+FFFD, because strict parsers reject the whole message', async () => {
    const ofCall = async (json: string, tool: Json = {}) => {
      const slug = await serving(json, { output_schema: { type: 'object' }, ...tool });
      return (await one.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} })).text;
    };
    const json =
      '{"a":"\\ud83d","\\uDE00":["\\uD83D\\ude00","\\\\ud83d","\\ud83d\\u0041","\\udbff\\ud83d\\ude00","\\ud7ff\\ue000"]}';
    const whole =
      '{"a":"\\ufffd","\\ufffd":["\\uD83D\\ude00","\\\\ud83d","\\ufffd\\u0041","\\ufffd\\ud83d\\ude00","\\ud7ff\\ue000"]}';
    assert.ok((await ofCall(json)).includes(`"structuredContent":${whole}`));
    for (const length of [5000, 300_000]) {
      const padding = `,"pad":"${'x'.repeat(length)}"}`;
      const text = await ofCall(json.slice(0, -1) + padding);
      assert.ok(text.endsWith(`"structuredContent":${whole.slice(0, -1)}${padding}}}`), text.slice(0, 300));
    }
    assert.ok((await ofCall(json, { response_fields: ['a'] })).includes('"structuredContent":{"a":"\\ufffd"}'));
    for (const cut of ['{"a":"\\ud83d', '{"a":"\\ud8', '{"a":"\\ud'])
      assert.match(await ofCall(cut), /not strict JSON/);
    const output_schema = { type: 'object', properties: { a: { type: 'number' } } };
    const misfit = await ofCall(`{"a":"${'x'.repeat(993)}${'😀'.repeat(10)}"}`, { output_schema });
    // The truncation splits no character.
    assert.match(misfit, /x"\}/);
    assert.doesNotMatch(misfit, /\\ud/);
  });

  it('[spec 4.3.9] selects everything, a path, or an index with response_transform', async () => {
    const json = '{"data":{"results":[{"id":1},{"id":2}],"empty":null},"a":{"":{"x":1}}}';
    assert.equal(await part(json, '.'), json);
    assert.equal(await part(json, ''), json);
    assert.equal(await part(json, 'data.results'), '[{"id":1},{"id":2}]');
    assert.equal(await part(json, '.data.results.1.id'), '2');
    assert.equal(await part(json, 'data.empty'), 'null');
    assert.equal(await part('[[1,[2]]]', '0.1.0'), '2');
    const structured = await resultOf(json, { response_transform: 'data.results.0' });
    assert.equal(textOf(structured), '{"id":1}');
  });

  it('[behaviour The tool result] is an error with the path and the existing keys if the path of response_transform does not exist', async () => {
    const json = '{"data":{"items":[1,2],"none":[],"text":"x","big":9007199254740993,"o":{}}}';
    const message = async (path: string) => {
      const text = errorOf(await resultOf(json, { response_transform: path }));
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
    assert.match(errorOf(await resultOf(wide, { response_transform: 'x' })), /"k19" and 5 more; the request/);
  });

  it('[sec C9] selects only own properties with response_transform', async () => {
    const json = '{"a":[1],"items":[{"y":1}],"__proto__":{"mine":true}}';
    assert.equal(await part(json, '__proto__'), '{"mine":true}');
    assert.equal(await part(json, '__proto__.mine'), 'true');
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
        errorOf(await resultOf(json, { response_transform: path })),
        /^response_transform ".*" does not exist/,
        path,
      );
    }
  });

  it('[behaviour Configuration] contains only the paths in response_fields, of an object or of each item of an array', async () => {
    const json = '[{"id":1,"name":"A","owner":{"id":5,"mail":"m"},"tags":[{"n":"x","s":1},{"n":"y"}]},{"id":2},null]';
    const kept = async (fields: string[], more: Json = {}) =>
      textOf(await resultOf(json, { response_fields: fields, ...more }));
    assert.equal(await kept(['id', 'owner.id']), '[{"id":1,"owner":{"id":5}},{"id":2},null]');
    assert.equal(await kept(['tags.n', 'name']), '[{"tags":[{"n":"x"},{"n":"y"}],"name":"A"},{},null]');
    assert.equal(await kept(['owner', 'owner.mail']), '[{"owner":{"id":5,"mail":"m"}},{},null]');
    assert.equal(
      await kept(['owner.id', 'owner.mail', 'owner.none']),
      '[{"owner":{"id":5,"mail":"m"}},{"id":2},null]'.replace('{"id":2}', '{}'),
    );
    assert.equal(await kept(['id'], { response_transform: '0.owner' }), '{"id":5}');
    const proto = await resultOf('{"__proto__":{"a":1},"b":2}', { response_fields: ['__proto__', 'constructor'] });
    assert.equal(textOf(proto), '{"__proto__":{"a":1}}');
    const long = await resultOf('{"list":[9007199254740993,{"a":1.10}]}', { response_fields: ['list.a'] });
    assert.equal(textOf(long), '{"list":[{},{"a":1.10}]}');
  });

  it('[mcp 33] has valid structuredContent with output_schema, and an error if the response does not match', async () => {
    const output_schema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
    const slug = await serving('{"data": {"id": 9007199254740993}}', { output_schema, response_transform: 'data' });
    const listed = await one.toolhost.rpc(slug, callerToken, 'tools/list');
    assert.deepEqual((listed.body.result as { tools: Json[] }).tools[0]?.outputSchema, output_schema);
    const { text } = await one.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} });
    assert.ok(text.includes('"structuredContent":{"id":9007199254740993}'), text);
    for (const json of ['{"data":{"id":"x"}}', '{"data":{}}', '{"data":[{"id":1}]}', '{"data":null}']) {
      const misfit = await serving(json, { output_schema, response_transform: 'data' });
      const message = errorOf(await one.call(misfit));
      assert.equal(
        message,
        `the response does not match output_schema; the request itself was carried out: ${JSON.stringify(JSON.parse(json).data)}`,
      );
      const { body } = await one.toolhost.modern(misfit, callerToken, 'tools/call', { name: 'run', arguments: {} });
      assert.deepEqual(
        [(body.result as ToolReply).isError, (body.result as ToolReply).structuredContent],
        [true, undefined],
      );
    }
    const whole = await resultOf('{"id":1,"more":[1.0]}', { output_schema });
    assert.equal(textOf(whole), '{"id":1,"more":[1.0]}');
    const many = `{"id":${JSON.stringify(Array(100_000).fill('x'))}}`;
    const list = { type: 'object', properties: { id: { type: 'array', items: { type: 'integer' } } } };
    assert.match(
      errorOf(await resultOf(many, { output_schema: list })),
      /^the response does not match output_schema; /,
    );
  });

  it('[sec A10] contains no credential and no partial credential if an error quotes the response', async () => {
    const secret = 'stored-upstream-secret-9f8e7d';
    const authentication = { type: 'Bearer', token: secret };
    const key = await one.toolhost.key();
    const output_schema = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
    const said = async (body: string, tool: Json) => {
      const path = `/echoes-${++routes}`;
      one.upstream.on(`GET ${path}`, () => ({ headers: { 'content-type': 'application/json' }, body }));
      const slug = await one.serve({ url: path, ...tool }, { authentication });
      return errorOf(await one.toolhost.callTool(slug, key, 'run'));
    };
    const expired = JSON.stringify({ error: `token Bearer ${secret} is expired` });
    assert.equal(
      await said(expired, { output_schema }),
      'the response does not match output_schema; the request itself was carried out: {"error":"token Bearer [redacted] is expired"}',
    );
    for (let before = 960; before < 1000; before += 7) {
      const message = await said(JSON.stringify({ a: `${'x'.repeat(before)}${secret}` }), { output_schema });
      assert.doesNotMatch(message, /stored/);
      const long = JSON.stringify({ a: `${'x'.repeat(before)}${secret}`, b: 'y'.repeat(1_500_000) });
      assert.doesNotMatch(await said(long, { output_schema, response_limit_bytes: 2_000_000 }), /stored/);
    }
    for (const [body, path] of [
      [{ [secret]: 1 }, 'data'],
      [{ a: { [secret]: 1 } }, 'a.data'],
    ] as const)
      assert.match(
        await said(JSON.stringify(body), { response_transform: path }),
        /the keys "\[redacted\]"|has the keys/,
      );
    assert.doesNotMatch(await said(JSON.stringify({ [secret]: 1 }), { response_transform: 'data' }), /stored/);
  });

  it('[sec A10] redacts the password within a Basic token', async () => {
    for (const password of ['Sup3r-geheim-Passw0rd', 'Zauberwört-geheim']) {
      const authentication = { type: 'Basic', token: Buffer.from(`anna:${password}`).toString('base64') };
      const path = `/echoes-${++routes}`;
      one.upstream.on(`GET ${path}`, () => ({ status: 400, body: { user: 'anna', password } }));
      const slug = await one.serve({ url: path }, { authentication });
      const message = errorOf(await one.toolhost.callTool(slug, await one.toolhost.key(), 'run'));
      assert.match(message, /"user":"anna","password":"\[redacted\]"/);
    }
  });

  it('[imp 2] is text for a raw file with a type such as application/vnd.github.raw+json, unless it is JSON', async () => {
    const raw = async (body: string | Buffer, tool: Json = {}) => {
      const path = `/raw-${++routes}`;
      const headers = { 'content-type': 'application/vnd.github.raw+json; charset=utf-8' };
      one.upstream.on(`GET ${path}`, () => ({ headers, body }));
      return one.call(await one.serve({ ...tool, url: path }));
    };
    const readme = await raw('# Readme\n\nHello');
    assert.deepEqual(
      [textOf(readme), readme.isError, readme.structuredContent],
      ['# Readme\n\nHello', undefined, undefined],
    );
    assert.equal(textOf(await raw('{ "a": 1 }')), '{"a":1}');
    assert.match(
      errorOf(await raw('# Readme', { response_transform: 'a' })),
      /not strict JSON; the request itself was/,
    );
    assert.equal((await raw(Buffer.from([0xff, 0xfd, 0]))).content[1]?.type, 'resource');
  });

  it('[behaviour The tool result] is text for JSON that is nested too deep, and an error if a filter needs JSON', async () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    assert.equal(textOf(await resultOf(nested(1000))), nested(1000));
    const { content } = await resultOf(nested(1001));
    assert.match(String(content[1]?.text), /as text, because it is nested deeper than 1000 levels\.$/);
    assert.match(
      errorOf(await resultOf(nested(100_000), { response_transform: '0' })),
      /deeper than 1000 levels; the request/,
    );
  });
});

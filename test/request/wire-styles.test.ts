import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken } from '../support/one-tool.ts';
import { integer, listOf, object as objectOf, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useOneTool } from '../support/use-one-tool.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration } from '../support/valid-configs.ts';

const list = { type: 'array' };
const object = { type: 'object' };
const closed = { additionalProperties: false };
const form = { method: 'POST', body: 'form' };
const queryKey = { authentication: { type: 'QueryParam', query_key: 'api_key' } };
const named = (wire_name: string, more: Json = {}) => ({ ...text, wire_name, ...more });
describe('the encoding of arguments in the upstream request', () => {
  const oneTool = useOneTool();
  const { send, getRefusal } = oneTool;
  const sendQuery = async (input_schema: Json, args: Json) =>
    (await send({ input_schema, url: '/q' }, args)).url.replace(/^\/q\??/, '');
  const sendForm = async (input_schema: Json, args: Json) =>
    (await send({ ...form, input_schema }, args)).body.toString();
  const sendJson = async (input_schema: Json, args: Json) =>
    JSON.parse((await send({ method: 'POST', input_schema }, args)).body.toString()) as unknown;
  const getProblems = (tool: Json) => oneTool.getProblems({ method: 'POST', ...tool });
  const getWarnings = async (tool: Json, server: Json = {}) =>
    (await checkConfiguration(oneTool.toolhost, buildServerConfig({ tools: [buildToolConfig(tool)], ...server })))
      .warnings;

  it('[conf 1] names an argument with its upstream name in query, header, form, and JSON', async () => {
    const version = named('X-Version', { in: 'header' });
    const input_schema = { after: named('StartTime>'), filter: named('$filter'), version };
    const args = { after: '2026-01-01', filter: "name eq 'a'", version: '7' };
    const request = await send({ url: '/q', input_schema }, args);
    assert.equal(request.url, '/q?StartTime%3E=2026-01-01&%24filter=name%20eq%20%27a%27');
    assert.equal(request.headers['x-version'], '7');
    const posted = await sendJson(input_schema, args);
    assert.deepEqual(posted, { 'StartTime>': '2026-01-01', $filter: "name eq 'a'" });
    const sent = await sendForm({ a: named('prefs/x'), b: named('@id') }, { a: '1', b: '2' });
    assert.equal(sent, 'prefs%2Fx=1&%40id=2');
  });

  it('[conf 1] allows the same name in path, query, header, and body', async () => {
    const ids = { query_id: named('id', { in: 'query' }), header_id: named('Id', { in: 'header' }) };
    const input_schema = { id: text, ...ids, body_id: named('id') };
    const args = { id: 'p', query_id: 'q', header_id: 'h', body_id: 'b' };
    const request = await send({ method: 'PUT', url: '/things/:id', input_schema }, args);
    assert.deepEqual([request.url, request.headers.id, request.body.toString()], ['/things/p?id=q', 'h', '{"id":"b"}']);
  });

  it('[conf 1] encodes an array in a query and a form in each style', async () => {
    const expected: [style: string, written: string, empty?: string][] = [
      ['repeat', 'a=x%2Cy&a=2&a=true'],
      ['comma', 'a=x%2Cy,2,true', 'a='],
      ['brackets', 'a%5B%5D=x%2Cy&a%5B%5D=2&a%5B%5D=true'],
      ['indices', 'a%5B0%5D=x%2Cy&a%5B1%5D=2&a%5B2%5D=true'],
      ['pipe', 'a=x%2Cy%7C2%7Ctrue', 'a='],
      ['space', 'a=x%2Cy%202%20true', 'a='],
      ['deep', 'a=x%2Cy&a=2&a=true'],
      ['json', 'a=%5B%22x%2Cy%22%2C2%2Ctrue%2Cnull%5D', 'a=%5B%5D'],
    ];
    for (const [style, written, empty = ''] of expected) {
      const input_schema = { a: { ...list, style } };
      for (const sendStyled of [sendQuery, sendForm])
        assert.equal(await sendStyled(input_schema, { a: ['x,y', 2, true, null] }), written, style);
      assert.equal(await sendQuery(input_schema, { a: [] }), empty, style);
    }
  });

  it('[conf 1] encodes an object in a query and a form in each style', async () => {
    const nested = 'o%5Bb%5D=1&o%5Bc%5D%5Bd%5D=2';
    const expected: [style: string, written: string][] = [
      ['repeat', 'b=1&c=%7B%22d%22%3A2%7D'],
      ['comma', 'o=b,1,c,%7B%22d%22%3A2%7D'],
      ['brackets', nested],
      ['indices', nested],
      ['deep', nested],
      ['pipe', 'o=b%7C1%7Cc%7C%7B%22d%22%3A2%7D'],
      ['json', 'o=%7B%22b%22%3A1%2C%22c%22%3A%7B%22d%22%3A2%7D%2C%22z%22%3Anull%7D'],
    ];
    for (const [style, written] of expected)
      for (const sendStyled of [sendQuery, sendForm])
        assert.equal(
          await sendStyled({ o: { ...object, style } }, { o: { b: 1, c: { d: 2 }, z: null } }),
          written,
          style,
        );
  });

  it('[conf 1] encodes arrays of objects and objects of arrays like Stripe, PHP, and OpenAPI', async () => {
    const args = { items: [{ price: 'p', tiers: [1, 2] }, { price: 'q' }], meta: { 'order id': '6' } };
    for (const [style, written] of [
      ['indices', 'items[0][price]=p&items[0][tiers][0]=1&items[0][tiers][1]=2&items[1][price]=q'],
      ['brackets', 'items[][price]=p&items[][tiers][]=1&items[][tiers][]=2&items[][price]=q'],
      ['deep', 'items[0][price]=p&items[0][tiers]=1&items[0][tiers]=2&items[1][price]=q'],
    ] as const) {
      const sent = await sendForm({ items: { ...list, style }, meta: { ...object, style } }, args);
      assert.equal(decodeURIComponent(sent), `${written}&meta[order id]=6`, style);
    }
  });

  it('[conf 1] encodes lists, objects, and JSON in a header as ASCII', async () => {
    const cases: [style: string | undefined, value: unknown, sent: string[]][] = [
      [undefined, ['a', 1], ['a,1']],
      ['comma', ['a', 1], ['a,1']],
      ['comma', { a: 1, b: 2 }, ['a,1,b,2']],
      ['repeat', ['a', 1], ['a', '1']],
      ['pipe', ['a', 1], ['a|1']],
      ['json', { path: '/Grüße 🎉' }, ['{"path":"/Gr\\u00fc\\u00dfe \\ud83c\\udf89"}']],
    ];
    for (const [style, value, sent] of cases) {
      const input_schema = objectOf({ a: { wire_name: 'X-A', in: 'header', ...(style && { style }) } });
      const { rawHeaders } = await send({ input_schema }, { a: value });
      const values = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1] === 'X-A');
      assert.deepEqual(values, sent, String(style));
    }
  });

  it('[conf 1] encodes a list in a URL token with literal commas, pipes, or spaces, or as JSON', async () => {
    for (const [style, written] of [
      ['comma', 'a%2Cb,2'],
      ['pipe', 'a%2Cb%7C2'],
      ['json', '%5B%22a%2Cb%22%2C2%5D'],
    ] as const) {
      const tool = { url: '/x/:ids?f=in.(:ids)', input_schema: { ids: { ...list, style } } };
      assert.equal((await send(tool, { ids: ['a,b', 2] })).url, `/x/${written}?f=in.(${written})`);
    }
  });

  it('[conf 1] encodes a value with a style as text in a JSON body', async () => {
    const input_schema = { input: { ...object, style: 'json' }, tags: { ...list, style: 'comma' }, plain: list };
    const sent = await sendJson(input_schema, { input: { a: [1] }, tags: ['x', 'y'], plain: [1] });
    assert.deepEqual(sent, { input: '{"a":[1]}', tags: 'x,y', plain: [1] });
  });

  it('[conf 1] rejects a text that contains the separator where it would be ambiguous', async () => {
    const separated = (style: string, more: Json = {}) => ({ input_schema: { a: { ...list, style, ...more } } });
    const message = /^a: an entry contains ".+", which separates the entries$/;
    for (const [tool, value] of [
      [separated('pipe'), ['x|y', 'z']],
      [separated('space'), ['x y', 'z']],
      [separated('comma', { in: 'header' }), ['x,y', 'z']],
      [{ ...separated('comma'), method: 'POST', body: 'multipart' }, ['x,y']],
    ] as const)
      assert.match(await getRefusal(tool, { a: value }), message);
  });

  it('[conf 1] [sec C8] rejects property names that would add a parameter outside their argument', async () => {
    for (const style of ['brackets', 'indices', 'deep', 'repeat', 'comma']) {
      const tool = { input_schema: { o: { ...object, style }, status: { ...text, optional: true } } };
      for (const key of ['a][b', '[', '', 'a\u0000', 'a\r\nb'])
        assert.match(await getRefusal(tool, { o: { [key]: 'v' } }), /^o: a property name here must not be empty/);
      if (style === 'repeat') continue;
      const sentQuery = decodeURIComponent((await send(tool, { o: { 'a&status': 'x=1', 'b#': '?' } })).url);
      assert.ok(sentQuery.includes('a&status') && sentQuery.includes('b#'), sentQuery);
    }
    const input_schema = { o: { ...object, style: 'repeat' }, status: { ...text, value: 'open' } };
    const tool = { url: '/q?fixed=1', input_schema };
    assert.equal((await send(tool, { o: { other: 1 } })).url, '/q?fixed=1&other=1&status=open');
    for (const key of ['status', 'Status', 'fixed', 'fixed.', ' status'])
      assert.match(await getRefusal(tool, { o: { [key]: 'x' } }), /^o: a property has the name of another parameter/);
  });

  it('[conf 1] [agent 2] rejects property names that could be mistaken for a constant, also one with brackets', async () => {
    const cases: [style: string, wireName: string, keys: string[]][] = [
      ['repeat', 'f[account]', ['f', 'F', 'f.account', 'f_account', 'f account']],
      ['repeat', 'f[a][b]', ['f', 'f.a.b', 'f_a_b']],
      ['deep', 'o.account', ['account', 'Account']],
      ['indices', 'o_account', ['account', 'Account']],
      ['brackets', 'O_Account', ['account']],
    ];
    for (const [style, wireName, keys] of cases) {
      for (const more of [{ url: '/q' }, form]) {
        const input_schema = { c: named(wireName, { value: 'mine' }), o: { ...object, style } };
        const tool = { ...more, input_schema };
        for (const key of keys)
          assert.match(await getRefusal(tool, { o: { [key]: 'x' } }), /^o: a property has the name of another/, key);
        const request = await send(tool, { o: { other: 'x' } });
        assert.match(decodeURIComponent(request.url + request.body), /mine/);
      }
    }
  });

  it('[conf 1] [find B5] rejects property names that could be mistaken for the credential in the query', async () => {
    for (const [style, argument, key] of [
      ['repeat', 'o', 'api_key'],
      ['repeat', 'o', 'API.key'],
      ['indices', 'api', 'key'],
      ['deep', 'api', 'key'],
      ['brackets', 'api', 'KEY'],
    ] as const) {
      const input_schema = { [argument]: { ...object, style } };
      for (const tool of [{ method: 'GET' }, form, { method: 'POST', body: 'multipart' }]) {
        const refusal = await getRefusal({ ...tool, input_schema }, { [argument]: { [key]: 'mine' } }, queryKey);
        assert.match(refusal, /a property has the name of another parameter/);
      }
    }
    const renamed = await send({ input_schema: { a: named('api_key') } }, { a: 'mine' }, queryKey);
    assert.ok(!renamed.url.includes('mine'));
  });

  it('[conf 1] [sec C7] rejects deep, wide, and long values before they are processed', async () => {
    const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) });
    const nested = { input_schema: { o: { ...object, style: 'indices' } } };
    const posted = { ...nested, ...form };
    assert.ok(await send(posted, { o: deep(20) }));
    const wide = { ['k'.repeat(100_000)]: Array(20_000).fill(1) };
    const many = { a: Array(20_001).fill(1) };
    const cases: [tool: Json, o: unknown, refusal: RegExp][] = [
      [nested, deep(21), /^o: is nested deeper than 20 levels$/],
      [posted, deep(21), /^o: is nested deeper than 20 levels$/],
      [posted, wide, /^o: produces names of more than 262144 bytes in total; send fewer or shorter names$/],
      [nested, wide, /^o: produces a URL of more than 65536 characters; send less, or use/],
      [posted, many, /^o: produces more than 10000 parameters, the maximum of a form; send fewer$/],
    ];
    for (const [tool, o, refusal] of cases) assert.match(await getRefusal(tool, { o }), refusal);
  });

  it('[conf 1] sends a constant, and rejects it as an argument', async () => {
    const input_schema = {
      type: { ...text, value: 'articles' },
      version: { ...text, value: 'v2' },
      key: named('X-Key', { value: 'k', in: 'header' }),
      expand: { ...listOf(text), value: ['a', 'b'], in: 'query', style: 'brackets' },
      title: text,
    };
    const slug = await oneTool.createToolServer({ method: 'POST', url: '/:version/items', input_schema });
    const request = await oneTool.captureRequest(slug, { title: 't' });
    assert.equal(request.url, '/v2/items?expand%5B%5D=a&expand%5B%5D=b');
    assert.equal(request.headers['x-key'], 'k');
    assert.deepEqual(JSON.parse(request.body.toString()), { type: 'articles', title: 't' });
    for (const name of ['type', 'version', 'key', 'expand']) {
      const refusal = await oneTool.captureRefusal(slug, { title: 't', [name]: 'mine' });
      assert.match(refusal, new RegExp(`${name}: unknown argument`));
    }
    const properties = { query: { value: '{ me { id } }' }, off: { value: null }, n: {} };
    const full = { ...objectOf(properties, ['query']), ...closed };
    const graph = await send({ method: 'POST', input_schema: full }, { n: 1 });
    assert.equal(graph.body.toString(), '{"query":"{ me { id } }","off":null,"n":1}');
  });

  it('[conf 1] [sec C1] keeps the slashes of a path argument only where allowed, and checks each segment', async () => {
    const tool = { url: '/repos/contents/:path', input_schema: { path: { ...text, allow_slashes: true } } };
    assert.equal((await send(tool, { path: 'src/a b/ü?#.ts' })).url, '/repos/contents/src/a%20b/%C3%BC%3F%23.ts');
    assert.equal((await send(tool, { path: '100%/50%25' })).url, '/repos/contents/100%25/50%2525');
    const plain = { ...tool, input_schema: { path: text } };
    assert.equal((await send(plain, { path: 'a/b' })).url, '/repos/contents/a%2Fb');
    const bad = [
      ...['', '/', '/a', 'a/', 'a//b', '.', '..', 'a/..', '../a', 'a/./b', 'a/%2e%2e/b', 'a/.%2e', '%252e%252e/a'],
      ...['a\\b', 'a/%5c', 'a%2fb', '..%2fadmin', 'a/%252f', 'a\u0000/b', 'a/\r\nb'],
    ];
    for (const path of bad) assert.match(await getRefusal(tool, { path }), /^path: must not/, JSON.stringify(path));
    const withAffixes = { ...tool, url: '/f/.:path.json' };
    assert.equal((await send(withAffixes, { path: 'a/b' })).url, '/f/.a/b.json');
    assert.match(await getRefusal({ ...tool, url: '/f/.:path' }, { path: './a' }), /^path: /);
  });

  it('[conf 1] reports settings that have no effect or are ambiguous as problems', async () => {
    const inPath = { url: 'https://a.example/:a' };
    const headers = { 'X-A': { ...text, in: 'header' }, b: named('x_a', { in: 'header' }) };
    const deep = { a: { ...object, style: 'deep' }, b: named('a[b]', { value: 'x' }) };
    const indices = { ...list, style: 'indices' };
    const expected: [input_schema: Json, problem: RegExp, tool?: Json][] = [
      [{ a: named('b') }, /\.a\.wire_name: has no effect here/, inPath],
      [{ a: text, b: named('a') }, /\.b\.wire_name: "a" is already sent for the argument a/],
      [headers, /\.b\.wire_name: this header is already set/],
      [{ b: named('Host', { in: 'header' }) }, /\.b\.wire_name: this header is set by the service/],
      [deep, /\.b\.wire_name: "a\[b\]" is also the name of a possible property of the argument a/, { method: 'GET' }],
      [{ a: indices }, /\.a\.style: found "indices"; allowed in a JSON body/],
      [{ a: { ...indices, in: 'header' } }, /\.a\.style: found "indices"; allowed in a header: repeat, comma/],
      [{ a: { ...list, style: 'repeat' } }, /\.a\.style: found "repeat"; allowed for a token of the url/, inPath],
      [{ a: { ...text, allow_slashes: true } }, /\.a\.allow_slashes: is for an argument of the path/],
      [{ a: { ...text, value: 'x', default: 'y' } }, /\.a\.default: has no effect on a constant/],
      [{ a: named(' x') }, /\.a\.wire_name: /],
      [{ a: named('x\ny') }, /\.a\.wire_name: /],
    ];
    for (const [input_schema, problem, tool] of expected) {
      const found = await getProblems({ ...tool, input_schema });
      assert.equal(found.length, 1, JSON.stringify([input_schema, found]));
      assert.match(found.join(), problem);
    }
  });

  /** Returns the input schema of the one tool in `tools/list`. */
  const listInputSchema = async (input_schema: Json): Promise<Json> => {
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema });
    const { body } = await oneTool.toolhost.rpc(slug, callerToken, 'tools/list');
    return (body.result as { tools: { inputSchema: Json }[] }).tools[0]?.inputSchema ?? assert.fail('no tool');
  };

  it('[conf 1] hides constants and encoding keywords from agents', async () => {
    const started = named('StartTime>', { description: 'Start.' });
    const version = { ...text, value: '2026-01' };
    const properties = { started, version, tags: { ...listOf(text), style: 'comma', in: 'query' } };
    const shownProperties = { started: { ...text, description: 'Start.' }, tags: listOf(text) };
    const shown = { ...objectOf(shownProperties, ['started', 'tags']), ...closed };
    assert.deepEqual(await listInputSchema(properties), shown);
    const full = { ...objectOf(properties, ['started', 'version', 'tags']), ...closed };
    assert.deepEqual(await listInputSchema(full), shown);
  });

  it('[conf 1] lists a JSON Schema without these keywords as written', async () => {
    const schema = { ...objectOf({ a: text, b: { $ref: '#/$defs/b' } }, ['a']), $defs: { b: integer } };
    assert.deepEqual(await listInputSchema(schema), schema);
  });

  it('[conf 1] lists no keyword of this service, and stores none below an argument', async () => {
    const withKeywords = { ...named('b'), in: 'query', style: 'json' };
    const shown = { ...objectOf({ a: text }, ['a']), ...closed };
    for (const a of [{ ...text, in: 'query' }, withKeywords])
      assert.deepEqual(await listInputSchema({ ...shown, properties: { a } }), shown);
    assert.deepEqual(await listInputSchema({ a: withKeywords }), shown);
    const inside = objectOf({ a: objectOf({ b: { in: 'query' } }) });
    assert.match(String(await getProblems({ input_schema: inside })), /b\.in: this keyword is not supported/);
  });

  it('[conf 1] reports invalid keywords as problems in both forms of a schema', async () => {
    const wrong = { type: 'string', wire_name: '', style: 'commas', allow_slashes: 'yes', content: 'base32' };
    const flat = await getProblems({ input_schema: { a: wrong } });
    assert.equal(flat.length, 4);
    assert.ok(flat.some((line) => line.startsWith('tools[0].input_schema.a.style: found "commas"; allowed: "repeat"')));
    const full = await getProblems({ input_schema: objectOf({ a: wrong }) });
    const inProperties = flat.map((line) => line.replace('input_schema.a', 'input_schema.properties.a'));
    assert.deepEqual(full, inProperties);
    const deeper = objectOf({ a: objectOf({ b: { wire_name: 'x' } }) });
    assert.match(String(await getProblems({ input_schema: deeper })), /this keyword is not supported/);
    const mistyped = await getProblems({ input_schema: { a: { ...text, value: 1 } } });
    assert.deepEqual(mistyped, ['tools[0].input_schema.a.value: found a value that is not of type string']);
  });

  it('[conf 1] [find B5] warns about an upstream name that could be mistaken for the credential', async () => {
    assert.deepEqual(await getWarnings({ input_schema: { a: named('Api.Key') } }, queryKey), [
      'tools[0].input_schema.a: could be read as the credential in the query, so it is sent only where it is part of a JSON body',
    ]);
  });

  it('[conf 2] does not warn about the Content-Type of a GET request that has a body', async () => {
    const headers = { 'Content-Type': 'application/json' };
    assert.equal((await getWarnings({ headers })).length, 1);
    assert.deepEqual(await getWarnings({ headers, body_template: { a: 1 } }), []);
    assert.deepEqual(await getWarnings({ headers, input_schema: { a: { ...text, in: 'body' } } }), []);
  });

  it('[conf 1] [find B3] rejects a key of this service in a constant and in a body template', async () => {
    const key = await oneTool.toolhost.createKey();
    const path = 'holds an API key or a token of this service, which is never sent to an upstream; remove it';
    const constant = await getProblems({ input_schema: { a: { ...text, value: key } } });
    assert.deepEqual(constant, [`tools[0].input_schema.a.value: ${path}`]);
    const template = await getProblems({ body_template: { deep: [{ a: key }] } });
    assert.deepEqual(template, [`tools[0].body_template.deep[0].a: ${path}`]);
  });
});

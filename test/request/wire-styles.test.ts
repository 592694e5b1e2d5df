import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type OneToolFixture, startOneTool } from '../support/one-tool.ts';
import { integer, listOf, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration, findToolProblems } from '../support/valid-configs.ts';

const list = { type: 'array' };
const object = { type: 'object' };

describe('the encoding of arguments in the upstream request', () => {
  let oneTool: OneToolFixture;
  before(async () => {
    oneTool = await startOneTool();
  });
  after(() => oneTool.stop());

  const send = async (tool: Json, args: Json = {}, server: Json = {}) =>
    oneTool.captureRequest(await oneTool.createToolServer(tool, server), args);
  const sendQuery = async (input_schema: Json, args: Json, more: Json = {}) =>
    (await send({ input_schema, url: '/q', ...more }, args)).url.replace(/^\/q\??/, '');
  const sendForm = async (input_schema: Json, args: Json) =>
    (await send({ method: 'POST', body: 'form', input_schema }, args)).body.toString();
  const getProblems = (tool: Json) => findToolProblems(oneTool.toolhost, { method: 'POST', ...tool });
  const getRefusal = async (tool: Json, args: Json, server: Json = {}) =>
    oneTool.captureRefusal(await oneTool.createToolServer(tool, server), args);

  it('[conf 1] names an argument with its upstream name in query, header, form, and JSON', async () => {
    const withWireName = (wire_name: string, more: Json = {}) => ({ ...text, wire_name, ...more });
    const input_schema = {
      after: withWireName('StartTime>'),
      filter: withWireName('$filter'),
      version: withWireName('X-Version', { in: 'header' }),
    };
    const args = { after: '2026-01-01', filter: "name eq 'a'", version: '7' };
    const request = await send({ url: '/q', input_schema }, args);
    assert.equal(request.url, '/q?StartTime%3E=2026-01-01&%24filter=name%20eq%20%27a%27');
    assert.equal(request.headers['x-version'], '7');
    const posted = await send({ method: 'POST', input_schema }, args);
    assert.deepEqual(JSON.parse(posted.body.toString()), { 'StartTime>': '2026-01-01', $filter: "name eq 'a'" });
    assert.equal(
      await sendForm({ a: withWireName('prefs/x'), b: withWireName('@id') }, { a: '1', b: '2' }),
      'prefs%2Fx=1&%40id=2',
    );
  });

  it('[conf 1] allows the same name in path, query, header, and body', async () => {
    const input_schema = {
      id: text,
      query_id: { ...text, wire_name: 'id', in: 'query' },
      header_id: { ...text, wire_name: 'Id', in: 'header' },
      body_id: { ...text, wire_name: 'id' },
    };
    const args = { id: 'p', query_id: 'q', header_id: 'h', body_id: 'b' };
    const request = await send({ method: 'PUT', url: '/things/:id', input_schema }, args);
    assert.deepEqual([request.url, request.headers.id, request.body.toString()], ['/things/p?id=q', 'h', '{"id":"b"}']);
  });

  it('[conf 1] encodes an array in a query and a form in each style', async () => {
    const expected: [style: string, written: string][] = [
      ['repeat', 'a=x%2Cy&a=2&a=true'],
      ['comma', 'a=x%2Cy,2,true'],
      ['brackets', 'a%5B%5D=x%2Cy&a%5B%5D=2&a%5B%5D=true'],
      ['indices', 'a%5B0%5D=x%2Cy&a%5B1%5D=2&a%5B2%5D=true'],
      ['pipe', 'a=x%2Cy%7C2%7Ctrue'],
      ['space', 'a=x%2Cy%202%20true'],
      ['deep', 'a=x%2Cy&a=2&a=true'],
      ['json', 'a=%5B%22x%2Cy%22%2C2%2Ctrue%2Cnull%5D'],
    ];
    for (const [style, written] of expected) {
      const args = { a: ['x,y', 2, true, null] };
      assert.equal(await sendQuery({ a: { ...list, style } }, args), written, style);
      assert.equal(await sendForm({ a: { ...list, style } }, args), written, style);
      assert.equal(
        await sendQuery({ a: { ...list, style } }, { a: [] }),
        style === 'json' ? 'a=%5B%5D' : /comma|pipe|space/.test(style) ? 'a=' : '',
      );
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
    for (const [style, written] of expected) {
      const args = { o: { b: 1, c: { d: 2 }, z: null } };
      assert.equal(await sendQuery({ o: { ...object, style } }, args), written, style);
      assert.equal(await sendForm({ o: { ...object, style } }, args), written, style);
    }
  });

  it('[conf 1] encodes arrays of objects and objects of arrays like Stripe, PHP, and OpenAPI', async () => {
    const args = { items: [{ price: 'p', tiers: [1, 2] }, { price: 'q' }], meta: { 'order id': '6' } };
    const getPlainForm = async (style: string) =>
      decodeURIComponent(await sendForm({ items: { ...list, style }, meta: { ...object, style } }, args));
    assert.equal(
      await getPlainForm('indices'),
      'items[0][price]=p&items[0][tiers][0]=1&items[0][tiers][1]=2&items[1][price]=q&meta[order id]=6',
    );
    assert.equal(
      await getPlainForm('brackets'),
      'items[][price]=p&items[][tiers][]=1&items[][tiers][]=2&items[][price]=q&meta[order id]=6',
    );
    assert.equal(
      await getPlainForm('deep'),
      'items[0][price]=p&items[0][tiers]=1&items[0][tiers]=2&items[1][price]=q&meta[order id]=6',
    );
  });

  it('[conf 1] encodes lists, objects, and JSON in a header as ASCII', async () => {
    const header = async (style: string | undefined, value: unknown) => {
      const input_schema = {
        type: 'object',
        properties: { a: { wire_name: 'X-A', in: 'header', ...(style && { style }) } },
      };
      return (await send({ input_schema }, { a: value })).rawHeaders.flatMap((name, i, all) =>
        name === 'X-A' && i % 2 === 0 ? [all[i + 1]] : [],
      );
    };
    assert.deepEqual(await header(undefined, ['a', 1]), ['a,1']);
    assert.deepEqual(await header('comma', ['a', 1]), ['a,1']);
    assert.deepEqual(await header('comma', { a: 1, b: 2 }), ['a,1,b,2']);
    assert.deepEqual(await header('repeat', ['a', 1]), ['a', '1']);
    assert.deepEqual(await header('pipe', ['a', 1]), ['a|1']);
    assert.deepEqual(await header('json', { path: '/Grüße 🎉' }), ['{"path":"/Gr\\u00fc\\u00dfe \\ud83c\\udf89"}']);
  });

  it('[conf 1] encodes a list in a URL token with literal commas, pipes, or spaces, or as JSON', async () => {
    const input_schema = (style: string) => ({ ids: { ...list, style } });
    const url = async (style: string) =>
      (await send({ url: '/x/:ids?f=in.(:ids)', input_schema: input_schema(style) }, { ids: ['a,b', 2] })).url;
    assert.equal(await url('comma'), '/x/a%2Cb,2?f=in.(a%2Cb,2)');
    assert.equal(await url('pipe'), '/x/a%2Cb%7C2?f=in.(a%2Cb%7C2)');
    assert.equal(await url('json'), '/x/%5B%22a%2Cb%22%2C2%5D?f=in.(%5B%22a%2Cb%22%2C2%5D)');
  });

  it('[conf 1] encodes a value with a style as text in a JSON body', async () => {
    const input_schema = { input: { ...object, style: 'json' }, tags: { ...list, style: 'comma' }, plain: list };
    const { body } = await send({ method: 'POST', input_schema }, { input: { a: [1] }, tags: ['x', 'y'], plain: [1] });
    assert.deepEqual(JSON.parse(body.toString()), { input: '{"a":[1]}', tags: 'x,y', plain: [1] });
  });

  it('[conf 1] rejects a text that contains the separator where it would be ambiguous', async () => {
    const separated = (style: string, more: Json = {}) => ({ input_schema: { a: { ...list, style, ...more } } });
    const message = /^a: an entry contains ".+", which separates the entries$/;
    assert.match(await getRefusal(separated('pipe'), { a: ['x|y', 'z'] }), message);
    assert.match(await getRefusal(separated('space'), { a: ['x y', 'z'] }), message);
    assert.match(await getRefusal(separated('comma', { in: 'header' }), { a: ['x,y', 'z'] }), message);
    assert.match(
      await getRefusal({ ...separated('comma'), method: 'POST', body: 'multipart' }, { a: ['x,y'] }),
      message,
    );
  });

  it('[conf 1] [sec C8] rejects property names that would add a parameter outside their argument', async () => {
    for (const style of ['brackets', 'indices', 'deep', 'repeat', 'comma']) {
      const tool = { input_schema: { o: { ...object, style }, status: { ...text, optional: true } } };
      for (const key of ['a][b', '[', '', 'a\u0000', 'a\r\nb']) {
        assert.match(await getRefusal(tool, { o: { [key]: 'v' } }), /^o: a property name here must not be empty/);
      }
      if (style === 'repeat') continue;
      const sentQuery = decodeURIComponent((await send(tool, { o: { 'a&status': 'x=1', 'b#': '?' } })).url);
      assert.ok(sentQuery.includes('a&status') && sentQuery.includes('b#'), sentQuery);
    }
    const tool = {
      url: '/q?fixed=1',
      input_schema: { o: { ...object, style: 'repeat' }, status: { ...text, value: 'open' } },
    };
    assert.equal((await send(tool, { o: { other: 1 } })).url, '/q?fixed=1&other=1&status=open');
    for (const key of ['status', 'Status', 'fixed', 'fixed.', ' status'])
      assert.match(await getRefusal(tool, { o: { [key]: 'x' } }), /^o: a property has the name of another parameter/);
  });

  it('[conf 1] [agent 2] rejects property names that could be mistaken for a constant, also one with brackets', async () => {
    const constant = (wire_name: string) => ({ ...text, value: 'mine', wire_name });
    const cases: [style: string, wireName: string, keys: string[]][] = [
      ['repeat', 'f[account]', ['f', 'F', 'f.account', 'f_account', 'f account']],
      ['repeat', 'f[a][b]', ['f', 'f.a.b', 'f_a_b']],
      ['deep', 'o.account', ['account', 'Account']],
      ['indices', 'o_account', ['account', 'Account']],
      ['brackets', 'O_Account', ['account']],
    ];
    for (const [style, wireName, keys] of cases) {
      for (const more of [{ url: '/q' }, { method: 'POST', body: 'form' }]) {
        const tool = { ...more, input_schema: { c: constant(wireName), o: { ...object, style } } };
        for (const key of keys)
          assert.match(await getRefusal(tool, { o: { [key]: 'x' } }), /^o: a property has the name of another/, key);
        const request = await send(tool, { o: { other: 'x' } });
        assert.match(decodeURIComponent(request.url + request.body), /mine/);
      }
    }
  });

  it('[conf 1] [find B5] rejects property names that could be mistaken for the credential in the query', async () => {
    const authentication = { type: 'QueryParam', query_key: 'api_key' };
    for (const [style, key] of [
      ['repeat', 'api_key'],
      ['repeat', 'API.key'],
      ['indices', 'key'],
      ['deep', 'key'],
      ['brackets', 'KEY'],
    ] as const) {
      const argument = style === 'repeat' ? 'o' : 'api';
      for (const tool of [{ method: 'GET' }, { method: 'POST', body: 'form' }, { method: 'POST', body: 'multipart' }]) {
        const full = { ...tool, input_schema: { [argument]: { ...object, style } } };
        assert.match(
          await getRefusal(full, { [argument]: { [key]: 'mine' } }, { authentication }),
          /a property has the name of another parameter/,
        );
      }
    }
    const renamed = await send(
      { input_schema: { a: { ...text, wire_name: 'api_key' } } },
      { a: 'mine' },
      { authentication },
    );
    assert.ok(!renamed.url.includes('mine'));
  });

  it('[conf 1] [sec C7] rejects deep, wide, and long values before they are processed', async () => {
    const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) });
    const nested = { input_schema: { o: { ...object, style: 'indices' } } };
    const posted = { ...nested, method: 'POST', body: 'form' };
    assert.ok(await send(posted, { o: deep(20) }));
    for (const tool of [nested, posted])
      assert.match(await getRefusal(tool, { o: deep(21) }), /^o: is nested deeper than 20 levels$/);
    const wide = { o: { ['k'.repeat(100_000)]: Array.from({ length: 20_000 }, () => 1) } };
    assert.match(
      await getRefusal(posted, wide),
      /^o: produces names of more than 262144 bytes in total; send fewer or shorter names$/,
    );
    assert.match(await getRefusal(nested, wide), /^o: produces a URL of more than 65536 characters; send less, or use/);
    const many = { o: { a: Array.from({ length: 20_001 }, () => 1) } };
    assert.match(
      await getRefusal(posted, many),
      /^o: produces more than 10000 parameters, the maximum of a form; send fewer$/,
    );
  });

  it('[conf 1] sends a constant, and rejects it as an argument', async () => {
    const input_schema = {
      type: { type: 'string', value: 'articles' },
      version: { type: 'string', value: 'v2' },
      key: { type: 'string', value: 'k', in: 'header', wire_name: 'X-Key' },
      expand: { type: 'array', items: text, value: ['a', 'b'], in: 'query', style: 'brackets' },
      title: text,
    };
    const slug = await oneTool.createToolServer({ method: 'POST', url: '/:version/items', input_schema });
    const request = await oneTool.captureRequest(slug, { title: 't' });
    assert.equal(request.url, '/v2/items?expand%5B%5D=a&expand%5B%5D=b');
    assert.equal(request.headers['x-key'], 'k');
    assert.deepEqual(JSON.parse(request.body.toString()), { type: 'articles', title: 't' });
    for (const name of ['type', 'version', 'key', 'expand'])
      assert.match(
        await oneTool.captureRefusal(slug, { title: 't', [name]: 'mine' }),
        new RegExp(`${name}: unknown argument`),
      );
    const full = {
      type: 'object',
      properties: { query: { value: '{ me { id } }' }, off: { value: null }, n: {} },
      required: ['query'],
      additionalProperties: false,
    };
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
    for (const path of bad) {
      assert.match(await getRefusal(tool, { path }), /^path: must not/, JSON.stringify(path));
    }
    const withAffixes = { url: '/f/.:path.json', input_schema: { path: { ...text, allow_slashes: true } } };
    assert.equal((await send(withAffixes, { path: 'a/b' })).url, '/f/.a/b.json');
    assert.match(
      await getRefusal({ url: '/f/.:path', input_schema: withAffixes.input_schema }, { path: './a' }),
      /^path: /,
    );
  });

  it('[conf 1] reports settings that have no effect or are ambiguous as problems', async () => {
    const expected: [tool: Json, problem: RegExp][] = [
      [
        { url: 'https://a.example/:a', input_schema: { a: { ...text, wire_name: 'b' } } },
        /\.a\.wire_name: has no effect here/,
      ],
      [
        { input_schema: { a: text, b: { ...text, wire_name: 'a' } } },
        /\.b\.wire_name: "a" is already sent for the argument a/,
      ],
      [
        { input_schema: { 'X-A': { ...text, in: 'header' }, b: { ...text, in: 'header', wire_name: 'x_a' } } },
        /\.b\.wire_name: this header is already set/,
      ],
      [
        { input_schema: { b: { ...text, in: 'header', wire_name: 'Host' } } },
        /\.b\.wire_name: this header is set by the service/,
      ],
      [
        {
          method: 'GET',
          input_schema: { a: { ...object, style: 'deep' }, b: { ...text, wire_name: 'a[b]', value: 'x' } },
        },
        /\.b\.wire_name: "a\[b\]" is also the name of a possible property of the argument a/,
      ],
      [{ input_schema: { a: { ...list, style: 'indices' } } }, /\.a\.style: found "indices"; allowed in a JSON body/],
      [
        { input_schema: { a: { ...list, style: 'indices', in: 'header' } } },
        /\.a\.style: found "indices"; allowed in a header: repeat, comma/,
      ],
      [
        { url: 'https://a.example/:a', input_schema: { a: { ...list, style: 'repeat' } } },
        /\.a\.style: found "repeat"; allowed for a token of the url/,
      ],
      [{ input_schema: { a: { ...text, allow_slashes: true } } }, /\.a\.allow_slashes: is for an argument of the path/],
      [{ input_schema: { a: { ...text, value: 'x', default: 'y' } } }, /\.a\.default: has no effect on a constant/],
      [{ input_schema: { a: { ...text, wire_name: ' x' } } }, /\.a\.wire_name: /],
    ];
    for (const [tool, problem] of expected) {
      const found = await getProblems(tool);
      assert.equal(found.length, 1, JSON.stringify([tool, found]));
      assert.match(found.join(), problem);
    }
  });

  /** Returns the input schema of the one tool in `tools/list`. */
  const listInputSchema = async (input_schema: Json): Promise<Json> => {
    const slug = await oneTool.createToolServer({ method: 'POST', input_schema });
    const { body } = await oneTool.toolhost.post(
      slug,
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { token: 'caller-token' },
    );
    return (body.result as { tools: { inputSchema: Json }[] }).tools[0]?.inputSchema ?? assert.fail('no tool');
  };

  it('[conf 1] hides constants and encoding keywords from agents', async () => {
    const started = { type: 'string', description: 'Start.', wire_name: 'StartTime>' };
    const version = { type: 'string', value: '2026-01' };
    const tags = { type: 'array', items: text, style: 'comma', in: 'query' };
    const shown = {
      type: 'object',
      properties: { started: { type: 'string', description: 'Start.' }, tags: listOf(text) },
      required: ['started', 'tags'],
      additionalProperties: false,
    };
    assert.deepEqual(await listInputSchema({ started, version, tags }), shown);
    const full = {
      type: 'object',
      properties: { started, version, tags },
      required: ['started', 'version', 'tags'],
      additionalProperties: false,
    };
    assert.deepEqual(await listInputSchema(full), shown);
  });

  it('[conf 1] lists a JSON Schema without these keywords as written', async () => {
    const schema = {
      type: 'object',
      properties: { a: text, b: { $ref: '#/$defs/b' } },
      required: ['a'],
      $defs: { b: integer },
    };
    assert.deepEqual(await listInputSchema(schema), schema);
  });

  it('[conf 1] lists no keyword of this service, and stores none below an argument', async () => {
    const a = text;
    const encodingKeywords = { in: 'query', wire_name: 'b', style: 'json' };
    const shown = { type: 'object', properties: { a }, required: ['a'], additionalProperties: false };
    assert.deepEqual(await listInputSchema({ ...shown, properties: { a: { ...a, in: 'query' } } }), shown);
    assert.deepEqual(await listInputSchema({ ...shown, properties: { a: { ...a, ...encodingKeywords } } }), shown);
    assert.deepEqual(await listInputSchema({ a: { ...a, ...encodingKeywords } }), shown);
    const inside = { type: 'object', properties: { a: { type: 'object', properties: { b: { in: 'query' } } } } };
    assert.match(String(await getProblems({ input_schema: inside })), /b\.in: this keyword is not supported/);
  });

  it('[conf 1] reports invalid keywords as problems in both forms of a schema', async () => {
    const wrong = { type: 'string', wire_name: '', style: 'commas', allow_slashes: 'yes', content: 'base32' };
    const flat = await getProblems({ input_schema: { a: wrong } });
    assert.equal(flat.length, 4);
    assert.ok(flat.some((line) => line.startsWith('tools[0].input_schema.a.style: found "commas"; allowed: "repeat"')));
    const full = await getProblems({ input_schema: { type: 'object', properties: { a: wrong } } });
    assert.deepEqual(
      full,
      flat.map((line) => line.replace('input_schema.a', 'input_schema.properties.a')),
    );
    const deeper = { type: 'object', properties: { a: { type: 'object', properties: { b: { wire_name: 'x' } } } } };
    assert.match(String(await getProblems({ input_schema: deeper })), /this keyword is not supported/);
    assert.deepEqual(await getProblems({ input_schema: { a: { type: 'string', value: 1 } } }), [
      'tools[0].input_schema.a.value: found a value that is not of type string',
    ]);
  });

  it('[conf 1] [find B5] warns about an upstream name that could be mistaken for the credential', async () => {
    const authentication = { type: 'QueryParam', query_key: 'api_key' };
    const tool = buildToolConfig({ input_schema: { a: { type: 'string', wire_name: 'Api.Key' } } });
    const { warnings } = await checkConfiguration(
      oneTool.toolhost,
      buildServerConfig({ tools: [tool], authentication }),
    );
    assert.deepEqual(warnings, [
      'tools[0].input_schema.a: could be read as the credential in the query, so it is sent only where it is part of a JSON body',
    ]);
  });

  it('[conf 2] does not warn about the Content-Type of a GET request that has a body', async () => {
    const headers = { 'Content-Type': 'application/json' };
    const getWarnings = async (fields: Json) =>
      (
        await checkConfiguration(
          oneTool.toolhost,
          buildServerConfig({ tools: [buildToolConfig({ headers, ...fields })] }),
        )
      ).warnings;
    assert.equal((await getWarnings({})).length, 1);
    assert.deepEqual(await getWarnings({ body_template: { a: 1 } }), []);
    assert.deepEqual(await getWarnings({ input_schema: { a: { type: 'string', in: 'body' } } }), []);
  });

  it('[conf 1] [find B3] rejects a key of this service in a constant and in a body template', async () => {
    const key = await oneTool.toolhost.createKey();
    const path = 'holds an API key or a token of this service, which is never sent to an upstream; remove it';
    assert.deepEqual(await getProblems({ input_schema: { a: { type: 'string', value: key } } }), [
      `tools[0].input_schema.a.value: ${path}`,
    ]);
    assert.deepEqual(await getProblems({ body_template: { deep: [{ a: key }] } }), [
      `tools[0].body_template.deep[0].a: ${path}`,
    ]);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { configWith, oauth, toolWith } from '../support/configurations.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('CPU budget of schema checks', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost();
  });
  after(() => priced.stop());

  const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
    Array.from({ length: count }, (_, i) => make(i));
  const object = (more: Json): Json => ({ type: 'object', properties: {}, ...more });
  const withSchema = (schema: Json, field = 'input_schema') =>
    configWith({ tools: [toolWith({ method: 'POST', [field]: schema })] });

  /** Returns the problems that `checkMcpServer` reports within the CPU budget. */
  const problemsOf = async (what: string, config: Json): Promise<string[]> => {
    const { status, text, body } = await priced.costsLittle(what, () => priced.rest('POST', '/check', config));
    assert.ok(status === 200 || status === 413, text.slice(0, 500));
    if (status === 413) return [String(body.detail)];
    const problems = body.problems as { path: string; message: string }[];
    assert.ok(problems.length <= 21, `${problems.length} problems in one response`);
    assert.ok(text.length < 60_000, 'keeps every problem short');
    return problems.map(({ path, message }) => `${path}: ${message}`);
  };

  it('[find A1] compiles a schema with many patterns or empty subschemas within the CPU budget of the first call', async () => {
    const schemas: Record<string, Json[]> = {
      patterns: times(20, (i) => ({ pattern: `${i}${'abcdefghij'.repeat(98)}` })),
      'short patterns': times(1000, (i) => ({ pattern: `^[a-z]{1,${10 + (i % 50)}}$` })),
      'empty schemas': times(1700, () => ({})),
    };
    for (const [what, anyOf] of Object.entries(schemas)) {
      // Each attempt calls another tool, so that it is always a first call.
      const tools = times(20, (i) =>
        toolWith({ name: `t${i}`, method: 'POST', input_schema: object({ properties: { a: { anyOf } } }) }),
      );
      const slug = what.replace(' ', '-');
      const made = await priced.rest('POST', '/servers', configWith({ slug, tools }));
      assert.equal(made.status, 201, made.text.slice(0, 300));
      let called = 0;
      for (const args of [{}, { a: 'no pattern fits this!' }]) {
        await priced.costsLittle(`first call: ${what}`, () =>
          priced.rpc(slug, 'tools/call', { name: `t${called++}`, arguments: args }),
        );
      }
    }
  });

  for (const count of [450, 1400, 9000]) {
    it(`[find A1] checks ${count} references to one anchor within the CPU budget`, async () => {
      const schema = object({ $defs: { a: { $anchor: 'a' } }, allOf: times(count, () => ({ $ref: '#a' })) });
      for (const field of ['input_schema', 'output_schema']) {
        const problems = await problemsOf(`${count} references in ${field}`, withSchema(schema, field));
        assert.match(problems.join(), count > 1000 ? /expands to more than 2000 schemas/ : /^$/);
      }
    });
  }

  it('[find A1] reports 28,000 unknown keywords, unknown fields, and invalid values within the CPU budget', async () => {
    const names = Object.fromEntries(times(28_000, (i) => [`keyword${i}`, i]));
    const unknown = await problemsOf('unknown keywords', withSchema(object(names)));
    assert.equal(unknown.length, 21);
    assert.equal(unknown.at(-1), ': and 27980 more');
    const fields = await problemsOf('unknown fields', { ...configWith(), ...names });
    // The service examines only the first 500 fields of a large input.
    assert.equal(fields.at(-1), ': and 477 more');
    await problemsOf('unknown fields of a tool', configWith({ tools: [toolWith(names)] }));
    await problemsOf('headers that are numbers', configWith({ tools: [toolWith({ headers: names })] }));
    const texts = Object.fromEntries(times(28_000, (i) => [`X-${i}`, '{{A}}']));
    await problemsOf('headers', configWith({ tools: [toolWith({ headers: texts })] }));
    await problemsOf('an argument each', withSchema(names));
    await problemsOf('properties of an argument', withSchema({ a: { type: 'object', properties: names } }));
    await problemsOf('entries that are numbers', configWith({ tools: times(50_000, (i) => i) }));
    await problemsOf('scopes', { ...configWith(), oauth: { ...oauth, scopes: times(50_000, () => 'a b') } });
    const many = Object.fromEntries(times(50_000, (i) => [`f${i}`, 1]));
    assert.match(
      (await problemsOf('60,000 fields', { ...configWith(), ...many })).join(),
      /more than 30000 different names/,
    );
  });

  /** Returns 200 tools that together are almost as large as a request body may be. */
  const largeTools = (field: (i: number) => Json) =>
    times(200, (i) => {
      const input_schema = Object.fromEntries(times(30, (j) => [`argument_${j}`, field(j)]));
      const url = `https://api.example.com/v1/${times(10, (j) => `:argument_${j}`).join('/')}`;
      return toolWith({ name: `tool_${i}`, method: 'POST', url, input_schema });
    });

  it('[find A1] checks, stores, changes, returns, and calls 200 tools near the body size limit within the CPU budget', async () => {
    const tools = largeTools((j) => ({
      type: 'string',
      description: `What argument ${j} means to the model, in a sentence, and what it should be.`,
    }));
    const config = configWith({ slug: 'large', tools });
    assert.ok(JSON.stringify(config).length > 700_000, String(JSON.stringify(config).length));
    assert.deepEqual(await problemsOf('check', config), []);
    const created = await priced.costsLittle('create', async () => {
      const slug = `large-${Math.random().toString(36).slice(2)}`;
      return priced.rest('POST', '/servers', { ...config, slug });
    });
    assert.equal(created.status, 201, created.text.slice(0, 300));
    const { slug } = created.body.server as { slug: string };
    const steps: [what: string, method: string, path: string, body?: unknown][] = [
      ['get', 'GET', ''],
      ['update the name', 'PATCH', '', { name: 'Other' }],
      ['update the tools', 'PATCH', '', { tools: tools.slice(1) }],
      ['replace', 'PUT', '', { ...config, slug }],
      ['restore', 'POST', '/versions/1/restore', {}],
      [
        'preview',
        'POST',
        '/tools/tool_7/preview',
        { arguments: Object.fromEntries(times(30, (j) => [`argument_${j}`, 'x'])) },
      ],
      ['check the connection', 'POST', '/connection-check', {}],
    ];
    for (const [what, method, path, body] of steps) {
      const { status, text } = await priced.costsLittle(what, () =>
        priced.rest(method, `/servers/${slug}${path}`, body),
      );
      assert.ok(status === 200, `${what}: ${status} ${text.slice(0, 300)}`);
    }
    await priced.costsLittle('list', () => priced.rest('GET', '/servers'));
    const rpc = (method: string, params: Json = {}) =>
      priced.costsLittle(method, () => priced.rpc(slug, method, params));
    await rpc('tools/list');
    await rpc('tools/call', { name: 'tool_3', arguments: {} });
    for (const [tool, args] of [
      ['getMcpServer', { slug }],
      ['listMcpServers', {}],
      ['checkMcpServer', config],
      ['updateMcpServer', { slug, tools }],
    ] as const) {
      const { status, text } = await priced.costsLittle(tool, () =>
        priced.rpc('manage', 'tools/call', { name: tool, arguments: args }),
      );
      assert.ok(status === 200 && !text.includes('"isError":true'), text.slice(0, 300));
    }
  });

  it('[find A1] checks and creates tools of the maximum size, length, and depth within the CPU budget', async () => {
    const url = `https://api.example.com/${':a'.repeat(900)}`.slice(0, 2000);
    const names = (j: number) => `a${'b'.repeat(60)}${j}`;
    const configs: Record<string, Json> = {
      'tokens that are none': configWith({
        tools: times(200, (i) =>
          toolWith({
            name: `t${i}`,
            url,
            input_schema: Object.fromEntries(times(100, (j) => [names(j), { type: 'string' }])),
          }),
        ),
      }),
      'tokens that repeat': configWith({
        tools: times(200, (i) =>
          toolWith({
            name: `t${i}`,
            url: `https://api.example.com/${':a/'.repeat(600)}`,
            input_schema: { a: { type: 'string' } },
          }),
        ),
      }),
      enums: configWith({
        tools: times(20, (i) =>
          toolWith({
            name: `t${i}`,
            input_schema: Object.fromEntries(
              times(5, (j) => [`a${j}`, { type: 'string', enum: times(500, (k) => k) }]),
            ),
          }),
        ),
      }),
      'one enum': withSchema(object({ properties: { a: { enum: times(50_000, (k) => k) } } })),
      'one default': withSchema({ a: { type: 'array', default: times(50_000, (k) => k) } }),
      examples: withSchema(object({ examples: times(20_000, () => [[1]]) })),
      required: withSchema(object({ required: times(50_000, (k) => `n${k}`) })),
      types: withSchema(object({ properties: { a: { type: times(50_000, () => 'string') } } })),
      'a chain of references': withSchema(
        object({
          $ref: '#/$defs/d0',
          $defs: Object.fromEntries(times(1500, (i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }])),
        }),
      ),
      'references that lead nowhere': withSchema(
        object({ allOf: times(1900, (i) => ({ $ref: `#/$defs/${'x/'.repeat(100)}${i}` })) }),
      ),
      'header annotations': withSchema(
        object({
          properties: Object.fromEntries(times(100, (i) => [`a${i}`, { type: 'string', 'x-mcp-header': 'Same' }])),
        }),
      ),
      'response fields': configWith({
        tools: times(100, (i) => toolWith({ name: `t${i}`, response_fields: times(100, () => 'a..b '.repeat(30)) })),
      }),
      'long texts': configWith({ description: 'd'.repeat(900_000) }),
      'a long name': { ...configWith(), ['n'.repeat(900_000)]: 1 },
      'a long keyword': withSchema(object({ ['k'.repeat(900_000)]: 1 })),
      'a long slug': configWith({ slug: 'a-'.repeat(400_000) }),
      'a long url': configWith({ tools: [toolWith({ url: `https://api.example.com/${':a'.repeat(400_000)}` })] }),
      'a long header name': configWith({ tools: [toolWith({ headers: { ['X'.repeat(900_000)]: 'x' } })] }),
      placeholders: configWith({
        tools: [toolWith({ headers: Object.fromEntries(times(200, (i) => [`X-${i}`, '{{ '.repeat(1300)])) })],
      }),
      'a long authentication': configWith({
        authentication: { type: 'Bearer', token: '{{'.repeat(400_000), header: 'h'.repeat(10_000) },
      }),
      'urls of a login': configWith({
        oauth: { ...oauth, authorization_url: `https://login.example.com/?${'a=1&'.repeat(200_000)}` },
      }),
      'parameters of a login': configWith({
        oauth: { ...oauth, extra_params: Object.fromEntries(times(28_000, (i) => [`p${i}`, 'x'])) },
      }),
      'the same name': configWith({ tools: times(5000, () => ({ name: 'same' })) }),
    };
    for (const [what, config] of Object.entries(configs)) {
      await problemsOf(what, config);
      const { status } = await priced.costsLittle(`create: ${what}`, () =>
        priced.rest('POST', '/servers', { ...config, name: 'X' }),
      );
      assert.ok([201, 400, 409, 413].includes(status), `${what}: ${status}`);
    }
  });
});

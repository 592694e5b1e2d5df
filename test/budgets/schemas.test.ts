import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerConfig, buildToolConfig, oauthConfig } from '../support/valid-configs.ts';

describe('CPU budget of schema checks', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost();
  });
  after(() => toolhost.stop());

  const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
    Array.from({ length: count }, (_, i) => make(i));
  const objectSchema = (fields: Json): Json => ({ type: 'object', properties: {}, ...fields });
  const configWithSchema = (schema: Json, field = 'input_schema') =>
    buildServerConfig({ tools: [buildToolConfig({ method: 'POST', [field]: schema })] });

  /** Returns the problems that `checkMcpServer` reports within the CPU budget. */
  const getProblems = async (label: string, config: Json): Promise<string[]> => {
    const { status, text, body } = await toolhost.assertWithinBudget(label, () =>
      toolhost.rest('POST', '/check', config),
    );
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
    for (const [label, anyOf] of Object.entries(schemas)) {
      // Each attempt calls another tool, so that it is always a first call.
      const tools = times(20, (i) =>
        buildToolConfig({
          name: `t${i}`,
          method: 'POST',
          input_schema: objectSchema({ properties: { a: { anyOf } } }),
        }),
      );
      const slug = label.replace(' ', '-');
      const created = await toolhost.rest('POST', '/servers', buildServerConfig({ slug, tools }));
      assert.equal(created.status, 201, created.text.slice(0, 300));
      let callCount = 0;
      for (const args of [{}, { a: 'no pattern fits this!' }]) {
        await toolhost.assertWithinBudget(`first call: ${label}`, () =>
          toolhost.rpc(slug, 'tools/call', { name: `t${callCount++}`, arguments: args }),
        );
      }
    }
  });

  for (const count of [450, 1400, 9000]) {
    it(`[find A1] checks ${count} references to one anchor within the CPU budget`, async () => {
      const schema = objectSchema({ $defs: { a: { $anchor: 'a' } }, allOf: times(count, () => ({ $ref: '#a' })) });
      for (const field of ['input_schema', 'output_schema']) {
        const problems = await getProblems(`${count} references in ${field}`, configWithSchema(schema, field));
        assert.match(problems.join(), count > 1000 ? /expands to more than 2000 schemas/ : /^$/);
      }
    });
  }

  it('[find A1] reports 28,000 unknown keywords, unknown fields, and invalid values within the CPU budget', async () => {
    const names = Object.fromEntries(times(28_000, (i) => [`keyword${i}`, i]));
    const unknown = await getProblems('unknown keywords', configWithSchema(objectSchema(names)));
    assert.equal(unknown.length, 21);
    assert.equal(unknown.at(-1), ': and 27980 more');
    const fields = await getProblems('unknown fields', { ...buildServerConfig(), ...names });
    // The service examines only the first 500 fields of a large input.
    assert.equal(fields.at(-1), ': and 477 more');
    await getProblems('unknown fields of a tool', buildServerConfig({ tools: [buildToolConfig(names)] }));
    await getProblems('headers that are numbers', buildServerConfig({ tools: [buildToolConfig({ headers: names })] }));
    const texts = Object.fromEntries(times(28_000, (i) => [`X-${i}`, '{{A}}']));
    await getProblems('headers', buildServerConfig({ tools: [buildToolConfig({ headers: texts })] }));
    await getProblems('an argument each', configWithSchema(names));
    await getProblems('properties of an argument', configWithSchema({ a: { type: 'object', properties: names } }));
    await getProblems('entries that are numbers', buildServerConfig({ tools: times(50_000, (i) => i) }));
    await getProblems('scopes', {
      ...buildServerConfig(),
      oauth: { ...oauthConfig, scopes: times(50_000, () => 'a b') },
    });
    const manyFields = Object.fromEntries(times(50_000, (i) => [`f${i}`, 1]));
    assert.match(
      (await getProblems('60,000 fields', { ...buildServerConfig(), ...manyFields })).join(),
      /more than 30000 different names/,
    );
  });

  /** Returns 200 tools that together are almost as large as a request body may be. */
  const makeLargeTools = (field: (i: number) => Json) =>
    times(200, (i) => {
      const input_schema = Object.fromEntries(times(30, (j) => [`argument_${j}`, field(j)]));
      const url = `https://api.example.com/v1/${times(10, (j) => `:argument_${j}`).join('/')}`;
      return buildToolConfig({ name: `tool_${i}`, method: 'POST', url, input_schema });
    });

  it('[find A1] checks, stores, changes, returns, and calls 200 tools near the body size limit within the CPU budget', async () => {
    const tools = makeLargeTools((j) => ({
      type: 'string',
      description: `What argument ${j} means to the model, in a sentence, and what it should be.`,
    }));
    const config = buildServerConfig({ slug: 'large', tools });
    assert.ok(JSON.stringify(config).length > 700_000, String(JSON.stringify(config).length));
    assert.deepEqual(await getProblems('check', config), []);
    const created = await toolhost.assertWithinBudget('create', async () => {
      const slug = `large-${Math.random().toString(36).slice(2)}`;
      return toolhost.rest('POST', '/servers', { ...config, slug });
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
    for (const [label, method, path, body] of steps) {
      const { status, text } = await toolhost.assertWithinBudget(label, () =>
        toolhost.rest(method, `/servers/${slug}${path}`, body),
      );
      assert.ok(status === 200, `${label}: ${status} ${text.slice(0, 300)}`);
    }
    await toolhost.assertWithinBudget('list', () => toolhost.rest('GET', '/servers'));
    const rpc = (method: string, params: Json = {}) =>
      toolhost.assertWithinBudget(method, () => toolhost.rpc(slug, method, params));
    await rpc('tools/list');
    await rpc('tools/call', { name: 'tool_3', arguments: {} });
    for (const [tool, args] of [
      ['getMcpServer', { slug }],
      ['listMcpServers', {}],
      ['checkMcpServer', config],
      ['updateMcpServer', { slug, tools }],
    ] as const) {
      const { status, text } = await toolhost.assertWithinBudget(tool, () =>
        toolhost.rpc('manage', 'tools/call', { name: tool, arguments: args }),
      );
      assert.ok(status === 200 && !text.includes('"isError":true'), text.slice(0, 300));
    }
  });

  it('[find A1] checks and creates tools of the maximum size, length, and depth within the CPU budget', async () => {
    const url = `https://api.example.com/${':a'.repeat(900)}`.slice(0, 2000);
    const names = (j: number) => `a${'b'.repeat(60)}${j}`;
    const configs: Record<string, Json> = {
      'tokens that are none': buildServerConfig({
        tools: times(200, (i) =>
          buildToolConfig({
            name: `t${i}`,
            url,
            input_schema: Object.fromEntries(times(100, (j) => [names(j), { type: 'string' }])),
          }),
        ),
      }),
      'tokens that repeat': buildServerConfig({
        tools: times(200, (i) =>
          buildToolConfig({
            name: `t${i}`,
            url: `https://api.example.com/${':a/'.repeat(600)}`,
            input_schema: { a: { type: 'string' } },
          }),
        ),
      }),
      enums: buildServerConfig({
        tools: times(20, (i) =>
          buildToolConfig({
            name: `t${i}`,
            input_schema: Object.fromEntries(
              times(5, (j) => [`a${j}`, { type: 'string', enum: times(500, (k) => k) }]),
            ),
          }),
        ),
      }),
      'one enum': configWithSchema(objectSchema({ properties: { a: { enum: times(50_000, (k) => k) } } })),
      'one default': configWithSchema({ a: { type: 'array', default: times(50_000, (k) => k) } }),
      examples: configWithSchema(objectSchema({ examples: times(20_000, () => [[1]]) })),
      required: configWithSchema(objectSchema({ required: times(50_000, (k) => `n${k}`) })),
      types: configWithSchema(objectSchema({ properties: { a: { type: times(50_000, () => 'string') } } })),
      'a chain of references': configWithSchema(
        objectSchema({
          $ref: '#/$defs/d0',
          $defs: Object.fromEntries(times(1500, (i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }])),
        }),
      ),
      'references that lead nowhere': configWithSchema(
        objectSchema({ allOf: times(1900, (i) => ({ $ref: `#/$defs/${'x/'.repeat(100)}${i}` })) }),
      ),
      'header annotations': configWithSchema(
        objectSchema({
          properties: Object.fromEntries(times(100, (i) => [`a${i}`, { type: 'string', 'x-mcp-header': 'Same' }])),
        }),
      ),
      'response fields': buildServerConfig({
        tools: times(100, (i) =>
          buildToolConfig({ name: `t${i}`, response_fields: times(100, () => 'a..b '.repeat(30)) }),
        ),
      }),
      'long texts': buildServerConfig({ description: 'd'.repeat(900_000) }),
      'a long name': { ...buildServerConfig(), ['n'.repeat(900_000)]: 1 },
      'a long keyword': configWithSchema(objectSchema({ ['k'.repeat(900_000)]: 1 })),
      'a long slug': buildServerConfig({ slug: 'a-'.repeat(400_000) }),
      'a long url': buildServerConfig({
        tools: [buildToolConfig({ url: `https://api.example.com/${':a'.repeat(400_000)}` })],
      }),
      'a long header name': buildServerConfig({
        tools: [buildToolConfig({ headers: { ['X'.repeat(900_000)]: 'x' } })],
      }),
      placeholders: buildServerConfig({
        tools: [buildToolConfig({ headers: Object.fromEntries(times(200, (i) => [`X-${i}`, '{{ '.repeat(1300)])) })],
      }),
      'a long authentication': buildServerConfig({
        authentication: { type: 'Bearer', token: '{{'.repeat(400_000), header: 'h'.repeat(10_000) },
      }),
      'urls of a login': buildServerConfig({
        oauth: { ...oauthConfig, authorization_url: `https://login.example.com/?${'a=1&'.repeat(200_000)}` },
      }),
      'parameters of a login': buildServerConfig({
        oauth: { ...oauthConfig, extra_params: Object.fromEntries(times(28_000, (i) => [`p${i}`, 'x'])) },
      }),
      'the same name': buildServerConfig({ tools: times(5000, () => ({ name: 'same' })) }),
    };
    for (const [label, config] of Object.entries(configs)) {
      await getProblems(label, config);
      const { status } = await toolhost.assertWithinBudget(`create: ${label}`, () =>
        toolhost.rest('POST', '/servers', { ...config, name: 'X' }),
      );
      assert.ok([201, 400, 409, 413].includes(status), `${label}: ${status}`);
    }
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeObject, times } from '../support/long-values.ts';
import { useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerConfig, buildToolConfig, oauthConfig } from '../support/valid-configs.ts';

describe('CPU budget of schema checks', () => {
  const toolhost = useCpuBudgetToolhost();
  const objectSchema = (fields: Json): Json => ({ type: 'object', properties: {}, ...fields });
  const configWithTools = (count: number, fields: Json) =>
    buildServerConfig({ tools: times(count, (i) => buildToolConfig({ name: `t${i}`, ...fields })) });
  const configWithSchema = (schema: Json, field = 'input_schema') =>
    configWithTools(1, { method: 'POST', [field]: schema });

  /** Returns the problems that `checkMcpServer` reports within the CPU budget. */
  const getProblems = async (label: string, config: Json): Promise<string[]> => {
    const { status, text, body } = await toolhost.measure(label).rest('POST', '/check', config);
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
      const config = configWithTools(20, {
        method: 'POST',
        input_schema: objectSchema({ properties: { a: { anyOf } } }),
      });
      const slug = label.replace(' ', '-');
      await toolhost.createServer({ ...config, slug });
      let callCount = 0;
      for (const args of ['{}', '{"a":"no pattern fits this!"}'])
        await toolhost.assertWithinBudget(label, () => toolhost.call(slug, `t${callCount++}`, args));
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
    const names = makeObject(28_000, (i) => [`keyword${i}`, i]);
    const unknown = await getProblems('unknown keywords', configWithSchema(objectSchema(names)));
    assert.equal(unknown.length, 21);
    assert.equal(unknown.at(-1), ': and 27980 more');
    const fields = await getProblems('unknown fields', { ...buildServerConfig(), ...names });
    // The service examines only the first 500 fields of a large input.
    assert.equal(fields.at(-1), ': and 477 more');
    const manyFields = makeObject(50_000, (i) => [`f${i}`, 1]);
    const tooMany = await getProblems('60,000 fields', { ...buildServerConfig(), ...manyFields });
    assert.match(tooMany.join(), /more than 30000 different names/);
    const headers = makeObject(28_000, (i) => [`X-${i}`, '{{A}}']);
    const configs: Record<string, Json> = {
      'unknown fields of a tool': configWithTools(1, names),
      'headers that are numbers': configWithTools(1, { headers: names }),
      headers: configWithTools(1, { headers }),
      'an argument each': configWithSchema(names),
      'properties of an argument': configWithSchema({ a: { type: 'object', properties: names } }),
      'entries that are numbers': buildServerConfig({ tools: times(50_000, (i) => i) }),
      scopes: buildServerConfig({ oauth: { ...oauthConfig, scopes: times(50_000, () => 'a b') } }),
    };
    for (const [label, config] of Object.entries(configs)) await getProblems(label, config);
  });

  it('[find A1] checks, stores, changes, returns, and calls 200 tools near the body size limit within the CPU budget', async () => {
    const name = (j: number) => `argument_${j}`;
    const input_schema = makeObject(30, (j) => [
      name(j),
      {
        type: 'string',
        description: `What argument ${j} means to the model, in a sentence, and what it should be.`,
      },
    ]);
    const url = `https://api.example.com/v1/${times(10, (j) => `:argument_${j}`).join('/')}`;
    const tools = times(200, (i) => buildToolConfig({ name: `tool_${i}`, method: 'POST', url, input_schema }));
    const config = buildServerConfig({ slug: 'large', tools });
    assert.ok(JSON.stringify(config).length > 700_000, String(JSON.stringify(config).length));
    assert.deepEqual(await getProblems('check', config), []);
    const created = await toolhost
      .measure('create')
      .rest('POST', '/servers', () => ({ ...config, slug: `large-${Math.random().toString(36).slice(2)}` }));
    assert.equal(created.status, 201, created.text.slice(0, 300));
    const { slug } = created.body.server as { slug: string };
    for (const [method, path, body] of [
      ['GET', ''],
      ['PATCH', '', { name: 'Other' }],
      ['PATCH', '', { tools: tools.slice(1) }],
      ['PUT', '', { ...config, slug }],
      ['POST', '/versions/1/restore', {}],
      ['POST', '/tools/tool_7/preview', { arguments: makeObject(30, (i) => [name(i), 'x']) }],
      ['POST', '/connection-check', {}],
    ] as const) {
      const label = `${method} ${path}`;
      const { status, text } = await toolhost.measure(label).rest(method, `/servers/${slug}${path}`, body);
      assert.ok(status === 200, `${label}: ${status} ${text.slice(0, 300)}`);
    }
    await toolhost.measure('list').rest('GET', '/servers');
    await toolhost.measure('tools/list').rpc(slug, 'tools/list', {});
    await toolhost.measure('tools/call').call(slug, 'tool_3');
    for (const [tool, args] of [
      ['getMcpServer', { slug }],
      ['listMcpServers', {}],
      ['checkMcpServer', config],
      ['updateMcpServer', { slug, tools }],
    ] as const) {
      const { status, text } = await toolhost.measure(tool).call('manage', tool, JSON.stringify(args));
      assert.ok(status === 200 && !text.includes('"isError":true'), text.slice(0, 300));
    }
  });

  it('[find A1] checks and creates tools of the maximum size, length, and depth within the CPU budget', async () => {
    const withProperties = (properties: Json) => configWithSchema(objectSchema({ properties }));
    const configs: Record<string, Json> = {
      'tokens that are none': configWithTools(200, {
        url: `https://api.example.com/${':a'.repeat(900)}`.slice(0, 2000),
        input_schema: makeObject(100, (j) => [`a${'b'.repeat(60)}${j}`, { type: 'string' }]),
      }),
      'tokens that repeat': configWithTools(200, {
        url: `https://api.example.com/${':a/'.repeat(600)}`,
        input_schema: { a: { type: 'string' } },
      }),
      enums: configWithTools(20, {
        input_schema: makeObject(5, (j) => [`a${j}`, { type: 'string', enum: times(500, (k) => k) }]),
      }),
      'one enum': withProperties({ a: { enum: times(50_000, (k) => k) } }),
      'one default': configWithSchema({ a: { type: 'array', default: times(50_000, (k) => k) } }),
      examples: configWithSchema(objectSchema({ examples: times(20_000, () => [[1]]) })),
      required: configWithSchema(objectSchema({ required: times(50_000, (k) => `n${k}`) })),
      types: withProperties({ a: { type: times(50_000, () => 'string') } }),
      'a chain of references': configWithSchema(
        objectSchema({
          $ref: '#/$defs/d0',
          $defs: makeObject(1500, (i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }]),
        }),
      ),
      'references that lead nowhere': configWithSchema(
        objectSchema({ allOf: times(1900, (i) => ({ $ref: `#/$defs/${'x/'.repeat(100)}${i}` })) }),
      ),
      'header annotations': withProperties(
        makeObject(100, (i) => [`a${i}`, { type: 'string', 'x-mcp-header': 'Same' }]),
      ),
      'response fields': configWithTools(100, { response_fields: times(100, () => 'a..b '.repeat(30)) }),
      'long texts': buildServerConfig({ description: 'd'.repeat(900_000) }),
      'a long name': { ...buildServerConfig(), ['n'.repeat(900_000)]: 1 },
      'a long keyword': configWithSchema(objectSchema({ ['k'.repeat(900_000)]: 1 })),
      'a long slug': buildServerConfig({ slug: 'a-'.repeat(400_000) }),
      'a long url': configWithTools(1, { url: `https://api.example.com/${':a'.repeat(400_000)}` }),
      'a long header name': configWithTools(1, { headers: { ['X'.repeat(900_000)]: 'x' } }),
      placeholders: configWithTools(1, {
        headers: makeObject(200, (i) => [`X-${i}`, '{{ '.repeat(1300)]),
      }),
      'a long authentication': buildServerConfig({
        authentication: { type: 'Bearer', token: '{{'.repeat(400_000), header: 'h'.repeat(10_000) },
      }),
      'urls of a login': buildServerConfig({
        oauth: { ...oauthConfig, authorization_url: `https://login.example.com/?${'a=1&'.repeat(200_000)}` },
      }),
      'parameters of a login': buildServerConfig({
        oauth: {
          ...oauthConfig,
          extra_params: makeObject(28_000, (i) => [`p${i}`, 'x']),
        },
      }),
      'the same name': buildServerConfig({ tools: times(5000, () => ({ name: 'same' })) }),
    };
    for (const [label, config] of Object.entries(configs)) {
      await getProblems(label, config);
      const { status } = await toolhost.measure(`create: ${label}`).rest('POST', '/servers', { ...config, name: 'X' });
      assert.ok([201, 400, 409, 413].includes(status), `${label}: ${status}`);
    }
  });
});

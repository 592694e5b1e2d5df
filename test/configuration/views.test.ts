import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { integer, text } from '../support/schemas.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration } from '../support/valid-configs.ts';

const tools = () => [
  buildToolConfig({
    name: 'list_orders',
    tags: ['orders'],
    input_schema: { account: { type: 'string', minLength: 2 } },
  }),
  buildToolConfig({ name: 'get_order', tags: ['orders'], input_schema: { id: integer } }),
  buildToolConfig({
    name: 'refund',
    method: 'POST',
    tags: ['money'],
    input_schema: {
      amount: { type: 'number', minimum: 0 },
      currency: { type: 'string', enum: ['EUR', 'USD'], default: 'EUR' },
      source: { type: 'string', value: 'agent' },
      api_key: { type: 'string', optional: true, in: 'query' },
    },
  }),
];

describe('the views of a configuration', () => {
  const toolhost = useFixture(startToolhost);

  const checkViews = (views: unknown, more: Json = {}) =>
    checkConfiguration(toolhost, buildServerConfig({ tools: tools(), views, ...more }));
  const getProblems = async (views: unknown, more: Json = {}) => (await checkViews(views, more)).problems;

  it('contain tools, tags, texts, and fixed arguments [agent 2]', async () => {
    const support = {
      title: 'Support',
      description: 'For the support desk.',
      tools: ['get_order', { name: 'list_orders', title: 'Orders', arguments: { account: 'acme' } }],
      tags: ['money'],
      tool_mode: 'search',
    };
    assert.deepEqual(await getProblems({ support, audit: { read_only: true }, money: { tags: ['money'] } }), []);
  });

  it('must not be named like a login path [agent 2]', async () => {
    const view = { tools: ['get_order'] };
    assert.deepEqual(await getProblems({ token: view }), [
      'views.token: "token" is reserved for another page of the server; choose another name for the view',
    ]);
    const [wrong = ''] = await getProblems({ 'Nightly Job': view });
    assert.match(wrong, /^views\.Nightly Job: not a valid view name; allowed: 1 to 40 .*did you mean `nightly-job`/);
    for (const name of ['-a', 'a_b', 'a.b', 'ä', '', 'x'.repeat(41), `${'x'.repeat(40)}-`, 'Token']) {
      const found = await getProblems({ [name]: view });
      assert.equal(found.length, 1, name);
      const proposed = /did you mean `(.*)`/.exec(found.join())?.[1];
      if (proposed !== undefined) assert.deepEqual(await getProblems({ [proposed]: view }), [], name);
    }
    assert.deepEqual(await getProblems({ '0': view, ['x'.repeat(40)]: view }), []);
  });

  it('refer only to tools and tags that the server has [agent 2]', async () => {
    const views = {
      a: { tools: ['get_ordr', { name: 'nothing' }, 'refund', 'refund'], tags: ['order'] },
      b: {},
      c: { tools: [], tags: [] },
      d: { read_only: true, tools: ['refund'] },
    };
    assert.deepEqual(await getProblems(views), [
      'views.a.tools[0]: the server has no tool "get_ordr"; did you mean `get_order`?',
      'views.a.tools[1].name: the server has no tool "nothing"; it has: list_orders, get_order, refund',
      'views.a.tools[3]: "refund" is listed twice; remove one',
      'views.a.tags[0]: no tool has the tag "order"; did you mean `orders`?',
      'views.b: selects no tools; set tools, tags, or "read_only": true for every tool that only reads',
      'views.c: has no tools; select some with tools or tags',
      'views.d: has no tools, because read_only keeps only tools that read and none of these does; select others, or leave read_only out',
    ]);
  });

  it('fix only existing arguments to valid values [agent 2]', async () => {
    const getFixedProblems = (name: string, args: Json, more: Json = {}) =>
      getProblems({ v: { tools: [{ name, arguments: args }] } }, more);
    const basePath = 'views.v.tools[0].arguments';
    assert.deepEqual(await getFixedProblems('list_orders', { acount: 'acme', account: 'a' }), [
      `${basePath}.acount: the tool has no argument "acount"; did you mean \`account\`?`,
      `${basePath}.account: found "a"; minLength 2 is not met`,
    ]);
    assert.deepEqual(await getFixedProblems('get_order', { id: 'x' }), [`${basePath}.id: found "x"; allowed: integer`]);
    assert.deepEqual(await getFixedProblems('refund', { currency: 'GBP', source: 'me', amount: null }), [
      `${basePath}.source: is already a constant of the tool, which a view cannot change`,
      `${basePath}.currency: found "GBP"; allowed: "EUR", "USD"`,
      `${basePath}.amount: found null; allowed: number`,
    ]);
    assert.deepEqual(
      await getFixedProblems('refund', { currency: '{{CURRENCY}}' }, { variables: { CURRENCY: { value: 'USD' } } }),
      [],
    );
    assert.deepEqual(await getFixedProblems('refund', { currency: '{{CURRENCY}}' }), [
      `${basePath}.currency: contains {{CURRENCY}}, which is not a variable of the server; put a secret into the tool itself, as a constant`,
    ]);
    const authentication = { type: 'QueryParam', query_key: 'api_key', token: '{{KEY}}' };
    assert.deepEqual(await getFixedProblems('refund', { api_key: 'x' }, { authentication }), [
      `${basePath}.api_key: has the same location as the credential in authentication, so it is never sent; leave it out`,
    ]);
  });

  it('fix an argument of a JSON Schema only where it can be removed from the schema [agent 2]', async () => {
    const schema = (more: Json) => ({
      type: 'object',
      properties: { a: text, b: { $ref: '#/$defs/id' } },
      required: ['a', 'b'],
      $defs: { id: integer },
      ...more,
    });
    const getFixedProblems = (more: Json, args: Json) =>
      getProblems(
        { v: { tools: [{ name: 'get_thing', arguments: args }] } },
        { tools: [buildToolConfig({ input_schema: schema(more) })] },
      );
    const basePath = 'views.v.tools[0].arguments';
    assert.deepEqual(await getFixedProblems({}, { b: 3 }), []);
    assert.deepEqual(await getFixedProblems({}, { b: 'x' }), [`${basePath}.b: found "x"; allowed: integer`]);
    const formatReason = (text: string) =>
      `${basePath}.a: cannot be fixed, because the tool's input_schema ${text}, which may affect this argument; use a plain list of properties`;
    for (const keyword of ['oneOf', 'anyOf', 'allOf']) {
      assert.deepEqual(await getFixedProblems({ [keyword]: [{ required: ['a'] }] }, { a: 'x' }), [
        formatReason(`has ${keyword} at its root`),
      ]);
    }
    assert.deepEqual(await getFixedProblems({ dependentRequired: { a: ['b'] } }, { a: 'x' }), [
      formatReason('has dependentRequired at its root'),
    ]);
    const properties = { a: text, b: { $ref: '#/properties/a' } };
    assert.deepEqual(await getFixedProblems({ properties }, { a: 'x' }), [formatReason('refers to #/properties/a')]);
  });

  it('report problems with their own fields [agent 2]', async () => {
    assert.deepEqual(await getProblems({ v: { tools: 'get_order', readonly: true, tool_mode: 'find' } }), [
      'views.v.tools: found "get_order"; allowed: an array',
      'views.v.tool_mode: found "find"; allowed: "list", "search"',
      'views.v.readonly: unknown field; did you mean `read_only`?',
    ]);
    assert.deepEqual(await getProblems({ v: { tools: [{ name: 'get_order', args: {} }] } }), [
      'views.v.tools[0].args: unknown field; allowed: name, title, description, arguments',
    ]);
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`v${i}`, { tools: ['get_order'] }]));
    assert.deepEqual(await getProblems(many), ['views: has too many views; allowed: at most 20']);
    const named = [...tools(), buildToolConfig({ name: 'call_tool' })];
    assert.deepEqual(await getProblems({ v: { tools: ['call_tool'], tool_mode: 'search' } }, { tools: named }), [
      'views.v: has the tool "call_tool", which is the name of a built-in tool of views in search mode; leave it out',
    ]);
  });

  it('warn about tools that they name but do not include [agent 2]', async () => {
    const all = tools().map((tool) => (tool.name === 'get_order' ? { ...tool, disabled: true } : tool));
    const { warnings } = await checkViews(
      { v: { tools: ['list_orders', 'get_order', 'refund'], read_only: true } },
      { tools: all },
    );
    assert.deepEqual(warnings, [
      'views.v.tools[1]: the tool "get_order" is disabled, so the view does not include it',
      'views.v.tools[2]: the tool "refund" may change data, so read_only omits it; remove its name, or set its annotation readOnlyHint',
    ]);
  });
});

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createNoonClock } from '../support/noon-clock.ts';
import { getErrorText } from '../support/one-tool.ts';
import { getTexts, getToolNames, getTools, listCalls, patchServer } from '../support/server-requests.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration, findToolProblems } from '../support/valid-configs.ts';

const token = 'of-the-caller';
const getText = (reply: ToolCallResult) => getTexts(reply).join('\n');

describe('a server in search mode', () => {
  const { toolhost, upstream } = useToolhostWithUpstream({ runtimeOptions: { now: createNoonClock() } });

  const tool = (name: string, description: string, overrides: Json = {}) =>
    buildToolConfig({ name, description, url: `${upstream.url}/${name}`, ...overrides });
  const string = { type: 'string' };
  const shop = () => [
    tool('list_orders', 'Lists the orders of a customer.', { tags: ['orders'], pinned: true }),
    tool('create_order', 'Creates an order.', {
      method: 'POST',
      tags: ['orders', 'Sales desk'],
      input_schema: { item: { ...string, 'x-mcp-header': 'Item' }, count: { type: 'integer', minimum: 1 } },
    }),
    tool('delete_order', 'Deletes an order for good.', { method: 'DELETE', tags: ['orders'] }),
    tool('get_invoice', 'Gets the invoice of an order.', { tags: ['billing'] }),
    tool('hidden', 'Lists orders that no one may see.', { disabled: true }),
  ];
  const serve = (slug: string, tools: Json[] = shop(), tool_mode = 'search') =>
    toolhost.createServer(buildServerConfig({ slug, tool_mode, tools }));
  const call = (slug: string, name: string, args: Json = {}) => toolhost.callTool(slug, token, name, args);
  const callForText = async (name: string, args: Json = {}, slug = 'shop') => getText(await call(slug, name, args));
  const list = (slug: string) => toolhost.rpc(slug, token, 'tools/list');

  before(async () => {
    upstream.on('*', ({ method, url }) => ({ body: { method, url } }));
    await serve('shop');
  });

  it('lists the three built-in tools and the pinned tools, in every protocol version [agent 1]', async () => {
    const statelessReply = await toolhost.statelessRpc('shop', token, 'tools/list');
    for (const reply of [await list('shop'), statelessReply]) {
      assert.deepEqual(getToolNames(reply), ['search_tools', 'describe_tool', 'call_tool', 'list_orders']);
      const search = String(getTools(reply)[0]?.description);
      assert.match(search, /4 tools/);
      assert.match(search, /orders \(3\), Sales desk \(1\), billing \(1\)/);
    }
    const { body } = await toolhost.rpc('shop', token, 'initialize', { protocolVersion: '2025-11-25' });
    assert.match(String((body.result as Json).instructions), /search_tools/);
  });

  it('derives the annotations of call_tool from the tools of the server [agent 1]', async () => {
    for (const [slug, tools, expected] of [
      ['shop-hints', shop(), [false, true]],
      ['reads', [tool('one', 'Reads one thing.'), tool('all', 'Reads all things.')], [true, false]],
      ['writes', [tool('vague', 'Does something.', { method: 'POST' })], [false, false]],
    ] as const) {
      await serve(slug, [...tools]);
      const callTool = getTools(await list(slug)).find(({ name }) => name === 'call_tool');
      const { readOnlyHint, destructiveHint } = (callTool?.annotations ?? {}) as Json;
      assert.deepEqual([readOnlyHint, destructiveHint], expected, slug);
    }
  });

  it('finds tools by words, names, tags, and arguments, always in the same order [agent 1]', async () => {
    const search = async (args: Json) =>
      Array.from(
        (await callForText('search_tools', args)).matchAll(/^- (\w+) \((\w+)\)/gm),
        ([, name, effect]) => `${name} ${effect}`,
      );
    const creating = await search({ query: 'creating orders' });
    assert.deepEqual(await search({ query: 'creating orders' }), creating);
    for (const [query, first] of [
      ['creating orders', 'create_order writes'],
      ['REMOVE an order', 'delete_order destroys'],
      ['get_invoice', 'get_invoice reads'],
      ['count', 'create_order writes'],
    ] as const)
      assert.equal((await search({ query }))[0], first, query);
    assert.deepEqual(await search({ tag: 'BILLING' }), ['get_invoice reads']);
    assert.deepEqual(await search({ query: 'orders', tag: 'sales desk' }), ['create_order writes']);
    assert.equal((await search({ query: 'order', offset: 3 })).length, 1);
    assert.deepEqual(await search({ query: 'order', offset: 9 }), []);
  });

  it('explains a search without results, without a query, or with an unknown tag [agent 1]', async () => {
    assert.match(await callForText('search_tools', { query: 'xylophone' }), /No tool matches "xylophone"/);
    assert.match(await callForText('search_tools'), /4 tools.*orders \(3\)/s);
    const invalid = await call('shop', 'search_tools', { tag: 'order' });
    assert.equal(invalid.isError, true);
    assert.match(getText(invalid), /no tool has the tag "order".*did you mean `orders`/);
    assert.match(await callForText('search_tools', { query: [3] }), /query: found an array of 1; allowed: string/);
  });

  it('describes tools as tools/list would, with their annotations [agent 1]', async () => {
    const tools = shop().map(({ tags: _, pinned: __, ...rest }) => rest);
    await serve('shop-list', tools, 'list');
    const all = getTools(await list('shop-list'));
    const names = ['create_order', 'delete_ordr', 'delete_order'];
    const [json = '', note = ''] = getTexts(await call('shop', 'describe_tool', { names }));
    const described = JSON.parse(json) as Json[];
    const definitions = described.map(({ tags: _, ...definition }) => definition);
    const expected = ['create_order', 'delete_order'].map((name) => all.find((tool) => tool.name === name));
    assert.deepEqual(definitions, expected);
    assert.deepEqual(described[0]?.tags, ['orders', 'Sales desk']);
    assert.match(note, /no tool "delete_ordr".*did you mean `delete_order`/);
    assert.equal((await call('shop', 'describe_tool', { names: ['hidden'] })).isError, true);
  });

  it('omits tools from a description that would be too long, and lists the omitted ones [agent 1]', async () => {
    const description = 'y'.repeat(1500);
    const input_schema = Object.fromEntries(
      Array.from({ length: 8 }, (_, at) => [`a${at}`, { ...string, description }]),
    );
    const many = Array.from({ length: 8 }, (_, n) => tool(`wide_${n}`, 'x'.repeat(4000), { input_schema }));
    await serve('wide', many);
    const names = many.map(({ name }) => String(name));
    const [json = '', note = ''] = getTexts(await call('wide', 'describe_tool', { names }));
    assert.ok(json.length < 62_000);
    const described = (JSON.parse(json) as Json[]).map(({ name }) => String(name));
    assert.deepEqual(described, names.slice(0, described.length));
    assert.match(note, new RegExp(`Omitted.*${names.slice(described.length).join(', ')}`));
  });

  it('calls a tool exactly like a direct call: same request, result, and validation [agent 1]', async () => {
    upstream.take();
    const args = { item: 'pen', count: 2 };
    const direct = await call('shop', 'create_order', args);
    const viaCallTool = await call('shop', 'call_tool', { name: 'create_order', arguments: args });
    assert.deepEqual(viaCallTool, direct);
    const [first, second] = upstream.take();
    assert.deepEqual([second?.method, second?.url, second?.body], [first?.method, first?.url, first?.body]);
    const invalid = { item: 'pen', count: 0, colour: 'red' };
    const rejected = await call('shop', 'call_tool', { name: 'create_order', arguments: invalid });
    assert.deepEqual(rejected, await call('shop', 'create_order', invalid));
    assert.equal(rejected.isError, true);
    for (const nothing of [{}, { arguments: {} }, { arguments: null }]) {
      const listed = await call('shop', 'call_tool', { name: 'list_orders', ...nothing });
      assert.notEqual(listed.isError, true, getText(listed));
    }
  });

  it('requires no mirrored header for an argument inside call_tool in the stateless protocol version [agent 1]', async () => {
    const params = { name: 'call_tool', arguments: { name: 'create_order', arguments: { item: 'pen', count: 1 } } };
    const { body, status } = await toolhost.statelessRpc('shop', token, 'tools/call', params);
    const { isError, resultType } = body.result as Json;
    assert.deepEqual([status, isError, resultType], [200, undefined, 'complete']);
  });

  it('explains a call without a tool, or with misplaced arguments [agent 1]', async () => {
    upstream.take();
    for (const [args, expected] of [
      [{ name: 'create_ordr' }, /no tool "create_ordr".*did you mean `create_order`/],
      [{ name: 'hidden' }, /no tool "hidden"/],
      [{ name: 'call_tool' }, /no tool "call_tool"/],
      [{}, /name: found nothing/],
      [{ name: 'create_order', item: 'pen' }, /item: not an argument of call_tool.*"arguments"/],
      [{ name: 'create_order', arguments: '[1]' }, /arguments: found "\[1\]"; allowed: an object/],
    ] as const)
      assert.match(getErrorText(await call('shop', 'call_tool', args)), expected);
    assert.deepEqual(upstream.take(), []);
    const { body } = await toolhost.rpc('shop', token, 'tools/call', { name: 'create_ordr' });
    assert.match(String((body.error as Json).message), /did you mean `create_order`/);
  });

  it('records calls under the name of the called tool, and searches under the name of the search tool [agent 1]', async () => {
    await serve('recorded');
    await call('recorded', 'search_tools', { query: 'order' });
    await call('recorded', 'describe_tool', { names: ['create_order'] });
    await call('recorded', 'call_tool', { name: 'create_order', arguments: { item: 'a', count: 1 } });
    await call('recorded', 'call_tool', { name: 'nothing' });
    const calls = await listCalls(toolhost, 'recorded');
    const rows = calls.map(({ tool, outcome, upstream_status }) => [tool, outcome, upstream_status]);
    assert.deepEqual(rows.toReversed(), [
      ['search_tools', 'ok', undefined],
      ['describe_tool', 'ok', undefined],
      ['create_order', 'ok', 200],
      ['call_tool', 'invalid_arguments', undefined],
    ]);
  });

  it('counts searches toward the call limits [agent 1]', async () => {
    await serve('limited');
    const limits = { body: { calls_per_day: 2 } };
    assert.equal((await toolhost.rest('PATCH', '/servers/limited/limits', limits)).status, 200);
    const params = { name: 'search_tools', arguments: { query: 'order' } };
    for (const status of [200, 200, 429])
      assert.equal((await toolhost.rpc('limited', token, 'tools/call', params)).status, status);
  });

  it('rejects a tool with the name of a built-in tool, in search mode only [agent 1]', async () => {
    const tools = ['search_tools', 'describe_tool', 'call_tool'].map((name) => buildToolConfig({ name }));
    const { problems } = await checkConfiguration(toolhost, buildServerConfig({ tool_mode: 'search', tools }));
    const sentence = 'is the name of a built-in tool with these settings; choose another name';
    const expectedProblems = tools.map(({ name }, index) => `tools[${index}].name: "${name}" ${sentence}`);
    assert.deepEqual(problems, expectedProblems);
    assert.deepEqual((await checkConfiguration(toolhost, buildServerConfig({ tools }))).problems, []);
  });

  it('validates tool_mode, tags, and pinned [agent 1]', async () => {
    const validate = (fields: Json, overrides: Json = {}) => findToolProblems(toolhost, fields, overrides);
    assert.deepEqual(await validate({}, { tool_mode: 'find' }), ['tool_mode: found "find"; allowed: "list", "search"']);
    assert.match((await validate({ tags: ['a\u202eb'] })).join(), /tools\[0\]\.tags\[0\]: has a control/);
    assert.match((await validate({ tags: [''] })).join(), /tools\[0\]\.tags\[0\]/);
    assert.match((await validate({ tags: Array.from({ length: 21 }, (_, n) => `t${n}`) })).join(), /tools\[0\]\.tags/);
    assert.deepEqual(await validate({ tags: ['Größe, ä & ö'], pinned: true }), []);
  });

  it('avoids the size warnings that list mode gives for many tools, and passes the connection check [agent 1]', async () => {
    const many = Array.from({ length: 60 }, (_, n) => tool(`t${n}`, 'd'.repeat(1000)));
    const { warnings: inListMode } = await checkConfiguration(toolhost, buildServerConfig({ tools: many }));
    assert.deepEqual([inListMode.length, inListMode.every((warning) => /tool_mode/.test(warning))], [2, true]);
    const config = buildServerConfig({ slug: 'many', tool_mode: 'search', tools: many });
    assert.deepEqual((await checkConfiguration(toolhost, config)).warnings, []);
    await toolhost.createServer(config);
    const { body } = await toolhost.rest('POST', '/servers/many/connection-check', { body: {} });
    const checkResults = new Map((body.checks as Json[]).map(({ id, status, detail }) => [id, `${status} ${detail}`]));
    for (const id of ['tool_list', 'tool_count', 'tool_names']) assert.match(checkResults.get(id) ?? '', /^ok/, id);
  });

  it('finds a new tool after its tools changed [agent 1]', async () => {
    await serve('changing');
    assert.match(await callForText('search_tools', { query: 'zebra' }, 'changing'), /No tool matches/);
    const tools = [...shop(), tool('feed_zebra', 'Feeds the zebra.', { method: 'POST' })];
    await patchServer(toolhost, 'changing', { tools });
    assert.match(await callForText('search_tools', { query: 'zebra' }, 'changing'), /- feed_zebra/);
  });

  it('supports previews and trial calls by tool name [agent 1]', async () => {
    const args = { arguments: { item: 'pen', count: 1 } };
    for (const [action, body] of Object.entries({ preview: args, call: { ...args, token } }))
      assert.equal((await toolhost.rest('POST', `/servers/shop/tools/create_order/${action}`, { body })).status, 200);
  });
});

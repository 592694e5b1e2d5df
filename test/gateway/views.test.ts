import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createNoonClock } from '../support/noon-clock.ts';
import { getTexts, getToolNames, getTools, listCalls } from '../support/server-requests.ts';
import type { Json, Reply, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerConfig, buildToolConfig } from '../support/valid-configs.ts';

const token = 'of-the-caller';
const getText = (result: ToolCallResult) => getTexts(result).join('\n');
const string = { type: 'string' };

describe('a view of a server', () => {
  const { toolhost, upstream } = useToolhostWithUpstream({ runtimeOptions: { now: createNoonClock() } });

  const tool = (name: string, overrides: Json = {}) =>
    buildToolConfig({
      name,
      description: `The tool ${name} of the shop.`,
      url: `${upstream.url}/${name}`,
      ...overrides,
    });
  const shop = () => [
    tool('list_orders', {
      tags: ['orders'],
      url: `${upstream.url}/accounts/:account/orders`,
      input_schema: { account: { ...string, 'x-mcp-header': 'Account' }, limit: { type: 'integer', optional: true } },
    }),
    tool('create_order', {
      method: 'POST',
      tags: ['orders'],
      input_schema: {
        type: 'object',
        properties: { item: string, count: { type: 'integer' }, note: string },
        required: ['item', 'count'],
      },
    }),
    tool('delete_order', { method: 'DELETE', tags: ['orders'], pinned: true }),
    tool('get_invoice', { tags: ['billing'] }),
    tool('find_invoice', { method: 'POST', tags: ['billing'], annotations: { readOnlyHint: true } }),
    tool('hidden', { disabled: true, tags: ['billing'] }),
  ];
  const views: Json = {
    support: {
      title: 'Support desk',
      description: 'For people at the support desk.',
      tools: [
        'get_invoice',
        { name: 'list_orders', title: 'Orders of Acme', description: 'For Acme.', arguments: { account: 'a/c me' } },
        { name: 'create_order', arguments: { count: 1, item: 'tea' } },
      ],
    },
    billing: { tags: ['billing'] },
    audit: { read_only: true, tool_mode: 'search' },
  };
  const serve = (slug: string, views: Json, overrides: Json = {}) =>
    toolhost.createServer(buildServerConfig({ slug, tools: shop(), views, ...overrides }));

  before(async () => {
    upstream.on('*', ({ method, url, body }) => ({ body: { method, url, body: String(body) } }));
    await serve('shop', views, { description: 'The whole shop.' });
  });

  const list = (address: string) => toolhost.rpc(address, token, 'tools/list');
  const listToolNames = async (address: string) => getToolNames(await list(address));
  const call = (address: string, name: string, args: Json = {}) => toolhost.callTool(address, token, name, args);
  const getErrorMessage = ({ body }: Reply) => (body.error as { message: string }).message;

  it('lists its tools in its order, with its texts, in every protocol version [agent 2]', async () => {
    for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
      const { body } = await toolhost.rpc('shop/support', token, 'initialize', { protocolVersion: revision });
      const { serverInfo, instructions, protocolVersion } = body.result as Json;
      const expectedInfo = { name: 'shop/support', title: 'Support desk', version: '1' };
      assert.deepEqual([protocolVersion, instructions], [revision, 'For people at the support desk.']);
      assert.deepEqual(serverInfo, expectedInfo);
      const listed = await toolhost.rpc('shop/support', token, 'tools/list', {}, { 'mcp-protocol-version': revision });
      assert.equal(getTools(listed).length, 3);
    }
    const tools = getTools(await list('shop/support'));
    assert.deepEqual(getTools(await toolhost.statelessRpc('shop/support', token, 'tools/list')), tools);
    const limit = { type: 'integer' };
    const summaries = tools.map(({ name, title, inputSchema }) => [name, title, inputSchema]);
    assert.deepEqual(summaries, [
      ['get_invoice', undefined, { type: 'object', properties: {}, additionalProperties: false }],
      ['list_orders', 'Orders of Acme', { type: 'object', properties: { limit }, additionalProperties: false }],
      ['create_order', undefined, { type: 'object', properties: { note: string }, required: [] }],
    ]);
    assert.equal(tools[1]?.description, 'For Acme.');
    assert.deepEqual(await listToolNames('shop/billing'), ['get_invoice', 'find_invoice']);
    const allNames = ['list_orders', 'create_order', 'delete_order', 'get_invoice', 'find_invoice'];
    assert.deepEqual(await listToolNames('shop'), allNames);
  });

  it('sends fixed arguments as if the caller had sent them [agent 2]', async () => {
    for (const [name, args, fixedArgs] of [
      ['list_orders', { limit: 3 }, { account: 'a/c me' }],
      ['create_order', { note: 'now' }, { count: 1, item: 'tea' }],
    ] as const) {
      const direct = await call('shop', name, { ...args, ...fixedArgs });
      assert.deepEqual(JSON.parse(getText(await call('shop/support', name, args))), JSON.parse(getText(direct)));
    }
  });

  it('rejects fixed arguments from callers, with the name and not the value [agent 2]', async () => {
    const sentCount = upstream.requests.length;
    for (const [name, args, fixed] of [
      ['list_orders', { account: 'other', limit: 1 }, 'account'],
      ['list_orders', { account: null }, 'account'],
      ['create_order', { note: 'x', item: 'tea' }, 'item'],
    ] as const) {
      const reply = await call('shop/support', name, args);
      assert.equal(reply.isError, true);
      assert.equal(getText(reply), `The arguments are invalid: ${fixed}: is fixed in this view; omit it`);
    }
    assert.equal(upstream.requests.length, sentCount);
  });

  it('rejects calls of tools that it does not include, in any form of call [agent 2]', async () => {
    for (const [address, name] of [
      ['shop/support', 'delete_order'],
      ['shop/billing', 'list_orders'],
      ['shop/billing', 'hidden'],
      ['shop/audit', 'create_order'],
      ['shop/support', 'search_tools'],
    ] as const) {
      const params = { name, arguments: {} };
      for (const send of [toolhost.rpc, toolhost.statelessRpc])
        assert.match(getErrorMessage(await send(address, token, 'tools/call', params)), /^there is no tool "/);
    }
    const inner = await call('shop/audit', 'call_tool', { name: 'create_order', arguments: {} });
    assert.equal(inner.isError, true);
    assert.match(getText(inner), /^There is no tool "create_order"/);
    assert.equal((await call('shop/audit', 'describe_tool', { names: ['delete_order'] })).isError, true);
  });

  it('supports its own search mode, over its read-only tools [agent 2]', async () => {
    assert.deepEqual(await listToolNames('shop/audit'), ['search_tools', 'describe_tool', 'call_tool']);
    const searchResult = getText(await call('shop/audit', 'search_tools', { query: 'orders invoice' }));
    assert.match(searchResult, /list_orders/);
    assert.doesNotMatch(searchResult, /delete_order|create_order|hidden/);
    assert.match(getText(await call('shop/audit', 'search_tools')), /3 tools/);
    const reply = await call('shop/audit', 'call_tool', { name: 'get_invoice' });
    assert.equal(JSON.parse(getText(reply)).url, '/get_invoice');
  });

  it('returns the same 404 for an unknown view as for an unknown server [agent 2]', async () => {
    const toComparable = async (reply: Promise<Reply>) => {
      const { status, text, headers } = await reply;
      return [status, text, headers.get('content-type'), headers.get('www-authenticate')];
    };
    const unknown = await toComparable(list('nowhere'));
    assert.equal(unknown[0], 404);
    for (const address of ['shop/nothing', 'nowhere/support', 'nowhere/nothing', 'shop/constructor', 'manage/support'])
      for (const bearer of [token, undefined])
        assert.deepEqual(await toComparable(toolhost.rpc(address, bearer, 'tools/list')), unknown, address);
    for (const path of ['/mcp/shop/support//', '/mcp/shop/Support', '/mcp/shop/support/more', '/mcp/shop/token']) {
      const { status } = await fetch(`${toolhost.url}${path}`, { method: 'POST' });
      assert.ok(status === 404 || status === 400, `${path} ${status}`);
    }
  });

  it('responds to GET and browsers at its URL like a server [agent 2]', async () => {
    const url = `${toolhost.url}/mcp/shop/support`;
    const page = await fetch(url, { headers: { accept: 'text/html' } });
    const text = await page.text();
    assert.equal(page.status, 200);
    for (const pattern of [/Support desk/, /3 tools/]) assert.match(text, pattern);
    assert.ok(text.includes(`claude mcp add --transport http shop-support ${url}`));
    const stream = await fetch(url, { headers: { accept: 'text/event-stream', authorization: `Bearer ${token}` } });
    assert.deepEqual([stream.status, stream.headers.get('allow')], [405, 'POST']);
    assert.equal((await toolhost.rpc('shop/support', undefined, 'tools/list')).status, 401);
  });

  it('is stored in its call records, which can be filtered by it [agent 2]', async () => {
    await serve('recorded', { v: { tools: ['get_invoice'] }, w: { tools: ['get_invoice'], tool_mode: 'search' } });
    await call('recorded', 'get_invoice');
    await call('recorded/v', 'get_invoice');
    await call('recorded/w', 'search_tools', { query: 'invoice' });
    await call('recorded/w', 'call_tool', { name: 'get_invoice' });
    const expectedCalls = [
      ['recorded', undefined, 'get_invoice'],
      ['recorded', 'v', 'get_invoice'],
      ['recorded', 'w', 'search_tools'],
      ['recorded', 'w', 'get_invoice'],
    ];
    for (const [query, expected] of [
      ['', expectedCalls],
      ['?view=w', expectedCalls.slice(2)],
      ['?view=x', []],
    ] as const) {
      const calls = await listCalls(toolhost, 'recorded', query);
      assert.deepEqual(calls.map(({ server, view, tool }) => [server, view, tool]).toReversed(), expected, query);
    }
    const { text } = await toolhost.rest('GET', '/calls.csv?slug=recorded&view=v');
    assert.match(text, /^id,at,server,tool,.*,view,model,/);
    assert.equal(text.trim().split('\r\n').length, 2);
  });

  it('shares the call limits of its server [agent 2]', async () => {
    await serve('limited', { v: { tools: ['get_invoice'] }, w: { tools: ['get_invoice'] } });
    const limits = { body: { calls_per_day: 2 } };
    assert.equal((await toolhost.rest('PATCH', '/servers/limited/limits', limits)).status, 200);
    await call('limited/v', 'get_invoice');
    await call('limited/w', 'get_invoice');
    for (const address of ['limited', 'limited/v', 'limited/w'])
      assert.equal((await toolhost.rpc(address, token, 'tools/call', { name: 'get_invoice' })).status, 429);
  });

  it('supports trial calls and previews with its fixed arguments [agent 2]', async () => {
    const body = { view: 'support', token, arguments: { limit: 2 } };
    const trialCall = await toolhost.rest('POST', '/servers/shop/tools/list_orders/call', { body });
    assert.equal(trialCall.status, 200, trialCall.text);
    assert.match(trialCall.text, /accounts\/a%2Fc%20me\/orders\?limit=2/);
    for (const [fields, expected] of [
      [{ view: 'support', arguments: {} }, /a%2Fc%20me/],
      [{ view: 'suport' }, /"detail":"[^}]*has no view \\"suport\\"; did you mean `support`/],
      [{ view: 'billing' }, /"detail":"[^}]*the view has no tool \\"list_orders\\"/],
    ] as const)
      assert.match(
        (await toolhost.rest('POST', '/servers/shop/tools/list_orders/preview', { body: fields })).text,
        expected,
      );
  });

  it('cannot be broken by a change of one tool, and follows a renamed tool [agent 2]', async () => {
    await serve('kept', { v: { tools: [{ name: 'list_orders', arguments: { account: 'acme' } }, 'get_invoice'] } });
    const change = (method: string, name: string, body: Json = {}) =>
      toolhost.rest(method, `/servers/kept/tools/${name}`, method === 'DELETE' ? {} : { body });
    const assertRejected = async (reply: Reply, expected: string) => {
      assert.equal(reply.status, 400, reply.text);
      const [problem] = reply.body.problems as { path: string; message: string }[];
      assert.equal(`${problem?.path}: ${problem?.message}`, expected);
    };
    await assertRejected(
      await change('DELETE', 'get_invoice'),
      'views.v.tools[1]: the server has no tool "get_invoice"; did you mean `find_invoice`?',
    );
    const url = `${upstream.url}/orders`;
    await assertRejected(
      await change('PATCH', 'list_orders', { url, input_schema: { limit: { type: 'integer' } } }),
      'views.v.tools[0].arguments.account: the tool has no argument "account"; it has: limit',
    );
    assert.equal((await change('PATCH', 'list_orders', { name: 'orders' })).status, 200);
    assert.equal((await change('DELETE', 'delete_order')).status, 200);
    assert.deepEqual(await listToolNames('kept/v'), ['orders', 'get_invoice']);
    const disabled = await change('PATCH', 'get_invoice', { disabled: true });
    assert.equal(disabled.status, 200);
    assert.match(disabled.text, /the tool \\"get_invoice\\" is disabled, so the view does not include it/);
    assert.deepEqual(await listToolNames('kept/v'), ['orders']);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getToolNames, patchServer } from '../support/server-requests.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration } from '../support/valid-configs.ts';

const token = 'of-the-caller';

describe('a disabled tool', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();

  const tool = (name: string, overrides: Json = {}) =>
    buildToolConfig({ name, url: `${upstream.url}/${name}`, ...overrides });
  const create = (slug: string, tools = [tool('shown'), tool('hidden', { disabled: true })]) =>
    toolhost.createServer(buildServerConfig({ slug, tools }));
  const check = (...tools: Json[]) => checkConfiguration(toolhost, buildServerConfig({ tools }));
  const assertListed = async (slug: string, expected: string) => {
    for (const send of [toolhost.rpc, toolhost.statelessRpc])
      assert.deepEqual(getToolNames(await send(slug, token, 'tools/list')), [expected]);
  };
  const callForStatus = async (slug: string, name: string) => {
    const replies = [toolhost.rpc, toolhost.statelessRpc].map((send) => send(slug, token, 'tools/call', { name }));
    return (await Promise.all(replies)).flatMap(({ status, body }) => [status, (body.error as Json | undefined)?.code]);
  };

  it('is not listed and cannot be called', async () => {
    await create('in-part');
    await assertListed('in-part', 'shown');
    upstream.take();
    assert.deepEqual(await callForStatus('in-part', 'hidden'), await callForStatus('in-part', 'none'));
    assert.deepEqual((await callForStatus('in-part', 'hidden')).slice(0, 2), [200, -32602]);
    assert.deepEqual(upstream.take(), []);
    assert.deepEqual(await callForStatus('in-part', 'shown'), [200, undefined, 200, undefined]);
  });

  it('stays in the configuration and its versions, and can be enabled by an update or a restore', async () => {
    await create('switched');
    const { config } = (await toolhost.rest('GET', '/servers/switched')).body as { config: { tools: Json[] } };
    const flags = config.tools.map(({ name, disabled }) => `${name} ${disabled}`);
    assert.deepEqual(flags, ['shown undefined', 'hidden true']);
    const tools = [tool('shown', { disabled: true }), tool('hidden', { disabled: false })];
    await patchServer(toolhost, 'switched', { tools });
    await assertListed('switched', 'hidden');
    await toolhost.rest('POST', '/servers/switched/versions/1/restore', { body: {} });
    await assertListed('switched', 'shown');
    assert.deepEqual(await callForStatus('switched', 'hidden'), await callForStatus('switched', 'none'));
  });

  it('is excluded from the tool count of the server and from the size warnings', async () => {
    const { body } = await create('counted');
    assert.equal((body.server as Json).tool_count, 1);
    const page = await fetch(`${toolhost.url}/mcp/counted`, { headers: { accept: 'text/html' } });
    assert.match(await page.text(), /An MCP server with 1 tool\./);
    const many = Array.from({ length: 60 }, (_, n) =>
      tool(`t${n}`, { description: 'd'.repeat(2000), disabled: n > 3 }),
    );
    assert.deepEqual((await check(...many)).warnings, []);
    const { warnings } = await check(...many.map((t) => ({ ...t, disabled: false })));
    const starts = warnings.map((warning) => warning.slice(0, 20));
    assert.deepEqual(starts, ['tools: has 60 tools,', 'tools: the tool list']);
  });

  it('is validated like any other tool, but needs no secret', async () => {
    const invalidTool = buildToolConfig({ disabled: true, url: 'nowhere', headers: { 'X-Key': '{{KEY}}' } });
    const { problems } = await check(invalidTool);
    assert.equal(problems.map((problem) => problem.split(':')[0]).join(), 'tools[0].url');
    const { warnings } = await check({ ...invalidTool, url: 'https://api.example.com/' });
    assert.deepEqual(warnings, ['tools: every tool of the server is disabled; agents see none']);
    const invalidFlag = await check(buildToolConfig({ disabled: 'yes' }));
    assert.deepEqual(invalidFlag.problems, ['tools[0].disabled: found "yes"; allowed: a boolean']);
  });

  it('is excluded from the connection check', async () => {
    await create('connected', [
      tool('shown'),
      tool('a.b', { disabled: true }),
      tool('wants', { headers: { 'X-Key': '{{KEY}}' }, disabled: true }),
    ]);
    const { body } = await toolhost.rest('POST', '/servers/connected/connection-check', { body: {} });
    const checkResults = new Map((body.checks as Json[]).map(({ id, status, detail }) => [id, `${status} ${detail}`]));
    for (const id of ['tool_list', 'tool_names', 'secrets']) assert.match(checkResults.get(id) ?? '', /^ok/, id);
    assert.match(checkResults.get('tool_count') ?? '', /^ok 1 tool\./);
  });

  it('is rejected by trial calls and previews with an explanation', async () => {
    await create('tried');
    for (const action of ['call', 'preview']) {
      const reply = await toolhost.rest('POST', `/servers/tried/tools/hidden/${action}`, { body: {} });
      assert.deepEqual([reply.status, reply.body.detail], [404, 'the tool "hidden" is disabled; enable it first']);
    }
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { useToolhostWithUpstream } from '../support/suite-fixtures.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration } from '../support/valid-configs.ts';

const token = 'of-the-caller';

describe('a disabled tool', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();

  const tool = (name: string, overrides: Json = {}) =>
    buildToolConfig({ name, url: `${upstream.url}/${name}`, ...overrides });
  const bothTools = () => [tool('shown'), tool('hidden', { disabled: true })];
  const create = (slug: string, tools = bothTools()) => toolhost.createServer(buildServerConfig({ slug, tools }));
  const read = async (slug: string) => (await toolhost.rest('GET', `/servers/${slug}`)).body;
  const listToolNames = async (slug: string) => {
    const replies = [
      await toolhost.rpc(slug, token, 'tools/list'),
      await toolhost.statelessRpc(slug, token, 'tools/list', {}),
    ];
    return replies.map(({ body }) => (body.result as { tools: Json[] }).tools.map(({ name }) => name));
  };
  const callForStatus = async (slug: string, name: string) => {
    const replies = [
      await toolhost.rpc(slug, token, 'tools/call', { name, arguments: {} }),
      await toolhost.statelessRpc(slug, token, 'tools/call', { name, arguments: {} }),
    ];
    return replies.map(({ status, body }) => [status, (body.error as Json | undefined)?.code]);
  };

  it('is not listed and cannot be called', async () => {
    await create('in-part');
    assert.deepEqual(await listToolNames('in-part'), [['shown'], ['shown']]);
    upstream.take();
    assert.deepEqual(await callForStatus('in-part', 'hidden'), await callForStatus('in-part', 'none'));
    assert.deepEqual((await callForStatus('in-part', 'hidden'))[0], [200, -32602]);
    assert.deepEqual(upstream.take(), []);
    assert.deepEqual(await callForStatus('in-part', 'shown'), [
      [200, undefined],
      [200, undefined],
    ]);
  });

  it('stays in the configuration and its versions, and can be enabled by an update or a restore', async () => {
    await create('switched');
    const config = (await read('switched')).config as { tools: Json[] };
    assert.deepEqual(
      config.tools.map(({ name, disabled }) => [name, disabled]),
      [
        ['shown', undefined],
        ['hidden', true],
      ],
    );
    const tools = [tool('shown', { disabled: true }), tool('hidden', { disabled: false })];
    const updated = await toolhost.rest('PATCH', '/servers/switched', { body: { tools } });
    assert.equal(updated.status, 200, updated.text);
    assert.deepEqual(await listToolNames('switched'), [['hidden'], ['hidden']]);
    await toolhost.rest('POST', '/servers/switched/versions/1/restore', { body: {} });
    assert.deepEqual(await listToolNames('switched'), [['shown'], ['shown']]);
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
    assert.deepEqual((await checkConfiguration(toolhost, buildServerConfig({ tools: many }))).warnings, []);
    const { warnings } = await checkConfiguration(
      toolhost,
      buildServerConfig({ tools: many.map((t) => ({ ...t, disabled: false })) }),
    );
    assert.deepEqual(
      warnings.map((warning) => warning.slice(0, 20)),
      ['tools: has 60 tools,', 'tools: the tool list'],
    );
  });

  it('is validated like any other tool, but needs no secret', async () => {
    const invalidTool = buildToolConfig({ disabled: true, url: 'nowhere', headers: { 'X-Key': '{{KEY}}' } });
    const { problems } = await checkConfiguration(toolhost, buildServerConfig({ tools: [invalidTool] }));
    assert.deepEqual(
      problems.map((problem) => problem.split(':')[0]),
      ['tools[0].url'],
    );
    const { warnings } = await checkConfiguration(
      toolhost,
      buildServerConfig({ tools: [{ ...invalidTool, url: 'https://api.example.com/' }] }),
    );
    assert.deepEqual(warnings, ['tools: every tool of the server is disabled; agents see none']);
    const invalidFlag = await checkConfiguration(
      toolhost,
      buildServerConfig({ tools: [buildToolConfig({ disabled: 'yes' })] }),
    );
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
    assert.match(checkResults.get('tool_list') ?? '', /^ok/);
    assert.match(checkResults.get('tool_count') ?? '', /^ok 1 tool\./);
    assert.match(checkResults.get('tool_names') ?? '', /^ok/);
    assert.match(checkResults.get('secrets') ?? '', /^ok/);
  });

  it('is rejected by trial calls and previews with an explanation', async () => {
    await create('tried');
    for (const action of ['call', 'preview']) {
      const reply = await toolhost.rest('POST', `/servers/tried/tools/hidden/${action}`, { body: {} });
      assert.deepEqual([reply.status, reply.body.detail], [404, 'the tool "hidden" is disabled; enable it first']);
    }
  });
});

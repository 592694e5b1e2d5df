import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { type Schema, Validator } from '@cfworker/json-schema';
import { operationList } from '@toolhost/server/operations';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
import { startManagementAgent } from '../support/oauth/management-agent.ts';
import { pluck } from '../support/pluck.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const oauth = {
  authorization_url: 'https://id.example/a',
  token_url: 'https://tokens.example/t',
  client_id: 'c',
  client_secret: 's',
};

describe('management server', async () => {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ egressPorts: [upstream.port] });
  const key = await toolhost.createKey();
  const manager = await startManagementAgent(toolhost, key);
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  const manage = (name: string, args?: Json, token?: string) => manager.callTool(name, args, token);
  const done = (name: string, args?: Json) => manager.expectSuccess(name, args);
  const refused = (name: string, args: Json, why: RegExp) => manager.expectError(name, args, why);

  it('[spec 4.2] lists its tools with descriptive schemas and hints', () => {
    const { tools } = manager;
    const requiredTools = [
      ...['listMcpServers', 'createMcpServer', 'getMcpServer', 'updateMcpServer', 'deleteMcpServer', 'checkMcpServer'],
      ...['previewToolCall', 'callTool', 'setSecret', 'deleteSecret', 'listSecrets', 'listCalls', 'listVersions'],
      ...['restoreVersion', 'listGrants', 'revokeGrant'],
    ];
    for (const name of requiredTools) assert.ok(tools.has(name), name);
    const listed = operationList.filter((op) => op.isTool);
    assert.deepEqual([...tools.keys()], pluck(listed, 'name'));
    for (const { name, description, inputSchema, annotations } of tools.values()) {
      assert.ok(description.length > 20, name);
      assert.equal(inputSchema.type, 'object', name);
      assert.equal(annotations.readOnlyHint, /^(list|get|check|describe|preview|propose)/.test(name), name);
      assert.equal(annotations.destructiveHint, /^(delete|revoke|remove)/.test(name), name);
      assert.equal(annotations.openWorldHint, name === 'callTool');
    }
  });

  it('[spec 4.2] returns a tool list of at most 6,300 tokens that has every input and no references', async () => {
    const { text } = await toolhost.rpc('manage', key, 'tools/list');
    assert.ok(estimateTokenCount(text.length) < 6300, `${estimateTokenCount(text.length)} tokens`);
    assert.doesNotMatch(text, /\$ref|\$defs/);
    for (const op of operationList.filter(({ isTool }) => isTool)) {
      const { properties, required } = manager.tools.get(op.name)?.inputSchema ?? {};
      const schema = op.inputSchema() as Schema;
      assert.deepEqual(Object.keys(properties ?? {}), Object.keys(schema.properties ?? {}));
      assert.deepEqual(required, schema.required);
    }
  });

  it('[spec 4.2] explains every part briefly in describeConfiguration, with an example that can be stored', async () => {
    const token = await toolhost.createKey({ workspace: 'examples' });
    const { part: input } = manager.tools.get('describeConfiguration')?.inputSchema.properties ?? {};
    const examples: Json = {};
    for (const part of Object(input).enum as string[]) {
      const { output, text } = await done('describeConfiguration', { part });
      assert.ok(estimateTokenCount(text.length) < 2000, `${part}: ${estimateTokenCount(text.length)} tokens`);
      assert.doesNotMatch(text, /\$ref|\$defs/);
      const { properties } = output.schema as { properties: Record<string, { description?: string }> };
      for (const [field, { description }] of Object.entries(properties)) assert.ok(description, `${part}.${field}`);
      examples[part] = output.example;
    }
    const { server, input_schema, tools, oauth, ...fields } = examples as Record<string, Json>;
    const exampleTools = Object.values(tools ?? {}) as Json[];
    const upload = { name: 'send', description: 'Send a thing', method: 'POST', body: 'multipart' };
    const withFile = { ...upload, url: 'https://api.example.com/things', input_schema };
    const configs = [
      { ...server, ...fields, tools: [...exampleTools, withFile] },
      { ...server, slug: 'of-a-login', authentication: { type: 'Bearer' }, oauth },
    ];
    const listed = new Validator(manager.tools.get('createMcpServer')?.inputSchema ?? false, '2020-12', false);
    for (const config of configs) {
      assert.deepEqual(listed.validate(config).errors, []);
      const { isError, text } = await manage('createMcpServer', config, token);
      assert.equal(isError, false, text);
    }
  });

  it('[spec 4.2] confirms the name and the URL in createMcpServer, and lists the next steps', async () => {
    const more = { method: 'POST', description: 'Short.', headers: { 'X-Key': '{{KEY}}' } };
    const tools = [buildToolAt(`${upstream.url}/rest/v1/rows`, more)];
    const config = buildServerAt('first-server', upstream.url, { name: 'First Server', oauth, tools });
    const { text, output } = await done('createMcpServer', config);
    const url = `${toolhost.url}/mcp/first-server`;
    assert.match(text, new RegExp(`^Created the server "First Server" \\(version 1\\) at ${url}\n`));
    assert.match(text, /Access: oauth\. Tools: 1\./);
    type Created = { server: Json; warnings: Json[]; next_steps: string[] };
    const { server, warnings, next_steps, ...remaining } = output as Created;
    assert.deepEqual(remaining, { url });
    const { id, created_at, updated_at, created_by, ...summary } = server;
    assert.match(`${id} ${created_by}`, /^srv_\S+ key_/);
    assert.equal(created_at, updated_at);
    const stored = { name: 'First Server', slug: 'first-server', url, access: 'oauth', tool_count: 1, version: 1 };
    assert.deepEqual(summary, stored);
    const paths = pluck(warnings, 'path').toSorted();
    const toolPaths = ['tools[0].description', 'tools[0].headers', 'tools[0].headers.X-Key'];
    assert.deepEqual(paths, ['authentication', 'oauth.token_url', ...toolPaths]);
    for (const path of paths) assert.ok(text.includes(`Warning: ${path}: `));
    const connect = `Connect a client: claude mcp add .* first-server ${url}$`;
    const steps = new RegExp(`Set the secret KEY.*\nRegister the callback URL ${url}/callback.*\n${connect}`);
    assert.match(next_steps.join('\n'), steps);
    for (const step of next_steps) assert.ok(text.includes(`Next: ${step}`));
  });

  it('suggests a variable for the client in createMcpServer that differs from the secret, and explains it', async () => {
    const token = await toolhost.createKey({ workspace: 'clients' });
    const getConnectStep = async (slug: string, authentication?: object) => {
      const config = buildServerAt(slug, upstream.url, { authentication });
      const { output } = await manage('createMcpServer', config, token);
      return (output as { next_steps: string[] }).next_steps.at(-1) ?? '';
    };
    const key =
      /"Authorization: Bearer \$TOOLHOST_API_KEY" \(TOOLHOST_API_KEY is a workspace API key with the scope call/;
    assert.match(await getConnectStep('with-a-secret', { type: 'Bearer', token: '{{TOKEN}}' }), key);
    assert.match(await getConnectStep('open'), new RegExp(`${key.source}, or any other text`));
    const ownToken = /\$API_TOKEN" \(API_TOKEN is the caller's own API token/;
    assert.match(await getConnectStep('with-own-tokens', { type: 'Bearer' }), ownToken);
  });

  it('reports every problem together in createMcpServer, and stores nothing', async () => {
    const tool = { ...buildToolAt('ftp://x'), metod: 'GET', method: 'TRACE', timeout_ms: 20_001 };
    const invalidConfig = { name: '', slug: 'Bad Slug', tools: [tool], owner: 'me' };
    const { isError, text } = await manage('createMcpServer', invalidConfig);
    assert.equal(isError, true);
    const toolPaths = ['metod', 'method', 'url', 'timeout_ms'].map((field) => `tools[0].${field}`);
    for (const path of ['name', 'slug', 'owner', ...toolPaths]) assert.ok(text.includes(`\n- ${path}: `), path);
    assert.match(text, /tools\[0\]\.metod: unknown field; did you mean `method`\?/);
    const taken =
      /^slug: "first-server" is used by a server of this workspace; change that server with updateMcpServer /;
    await refused('createMcpServer', buildServerAt('first-server', upstream.url), taken);
  });

  it('masks secrets in getMcpServer and listMcpServers', async () => {
    const { output } = await done('getMcpServer', { slug: 'first-server' });
    const config = output.config as { oauth: Json; slug: string };
    assert.equal(config.oauth.client_secret, '********');
    assert.equal(output.callback_url, `${toolhost.url}/mcp/first-server/callback`);
    assert.deepEqual(output.secrets, []);
    const { output: list } = await done('listMcpServers');
    assert.deepEqual(list.servers, [output.server]);
    const unknown = /^there is no such server in this workspace; it has: first-server$/;
    await refused('getMcpServer', { slug: 'none' }, unknown);
    await refused('getMcpServer', {}, /slug: required/);
    await refused('getMcpServer', { slug: 'first-server', Slug: 1 }, /Slug: unknown field; did you mean `slug`\?/);
  });

  it('replaces the given fields in updateMcpServer, keeps the others, and removes fields that are null', async () => {
    const update = (changes: Json) => done('updateMcpServer', { slug: 'first-server', ...changes });
    const { text, output } = await update({ description: 'Described.', oauth: null });
    assert.match(text, /^Updated the server "First Server" \(version 2\) at /);
    const server = output.server as Json;
    assert.deepEqual([server.version, server.description, server.access], [2, 'Described.', 'api_key']);
    for (const [changes, why] of [
      [{ expected_version: 1, name: 'X' }, /changed in the meantime and is at version 2/],
      [{ tools: null }, /tools: found null/],
      [{ workspace_id: 'theirs' }, /workspace_id: unknown field/],
    ] as const)
      await refused('updateMcpServer', { slug: 'first-server', ...changes }, why);
    await update({ expected_version: 2, description: null });
    assert.equal(((await done('getMcpServer', { slug: 'first-server' })).output.server as Json).description, undefined);
  });

  it('checks a configuration in checkMcpServer without storing it', async () => {
    const tools = [buildToolAt(`${upstream.url}/x`, { description: 'Short.' })];
    const good = await done('checkMcpServer', buildServerAt('not-stored', upstream.url, { tools }));
    assert.deepEqual([good.output.valid, good.output.problems, good.output.access], [true, [], 'caller_token']);
    assert.equal((good.output.warnings as Json[]).length, 1);
    const bad = await done('checkMcpServer', { slug: 'not-stored', tools: [{}] });
    assert.equal(bad.output.valid, false);
    assert.ok((bad.output.problems as Json[]).length > 3);
    await refused('getMcpServer', { slug: 'not-stored' }, /no such server/);
  });

  it('reports a taken slug in checkMcpServer to callers who may create a server', async () => {
    const check = async (credential: string, slug: string) =>
      (await manage('checkMcpServer', buildServerAt(slug, upstream.url), credential)).output;
    const otherKey = await toolhost.createKey({ workspace: 'others' });
    const own = await check(key, 'first-server');
    assert.match(String(own.slug_taken), /^"first-server" is used by a server of this workspace/);
    const { valid, slug_taken } = await check(otherKey, 'first-server');
    assert.deepEqual([valid, slug_taken], [true, '"first-server" is taken or was used before; choose another slug']);
    const readers = await toolhost.createKey({ scopes: ['manage:read'], workspace: 'others' });
    assert.equal('slug_taken' in (await check(readers, 'first-server')), false);
    assert.equal('slug_taken' in (await check(key, 'not-stored')), false);
  });

  it('[sec E2] deletes the server in deleteMcpServer and keeps its slug reserved', async () => {
    const { text, output } = await done('deleteMcpServer', { slug: 'first-server' });
    assert.equal(output.deleted, 'first-server');
    const deleted =
      /^Deleted the server first-server\. It can be restored until .* restoreMcpServer .* Its slug stays reserved\.$/;
    assert.match(text, deleted);
    assert.equal((await toolhost.rpc('first-server', key, 'ping')).status, 404);
    const config = buildServerAt('first-server', upstream.url);
    await refused('createMcpServer', config, /a deleted server; restore that server/);
  });

  it('[spec 5.2] requires a key with the scope manage', async () => {
    const caller = await toolhost.createKey({ scopes: ['call'] });
    for (const [token, status] of [[undefined, 401] as const, ['some-token', 401] as const, [caller, 403] as const])
      assert.equal((await toolhost.rpc('manage', token, 'tools/list')).status, status);
    const reader = await toolhost.createKey({ scopes: ['manage:read'] });
    assert.equal((await manage('listMcpServers', {}, reader)).isError, false);
    const { isError, text } = await manage('deleteMcpServer', { slug: 'forwarding' }, reader);
    assert.equal(isError, true);
    assert.equal(text, 'this operation needs the scope manage:write; the credential has manage:read');
  });
});

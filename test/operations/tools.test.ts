import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { startManagementAgent } from '../support/oauth/management-agent.ts';
import { pluck } from '../support/pluck.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { runOperatorOperation } from '../support/toolhost/run-operator-operation.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const apiUrl = 'https://api.example.com';

for (const engine of engines) {
  describe(`changing one tool of a server, on ${engine}`, async () => {
    const world = await startToolhostOnEngine(engine, { env: { QUOTAS: 'tools=20' } });
    const agent = await startManagementAgent(world.toolhost, await world.toolhost.createKey());
    after(() => world.stop());

    const rest = (method: string, path: string, body?: Json, headers: Record<string, string> = {}) =>
      world.toolhost.rest(method, path, { ...(body && { body }), headers });
    const done = async (method: string, path: string, body?: Json, headers?: Record<string, string>) => {
      const reply = await rest(method, path, body, headers);
      assert.ok(reply.status < 300, reply.text);
      return reply.body;
    };
    const getConfig = async (slug: string) => (await done('GET', `/servers/${slug}`)).config as Json;
    const getTools = async (slug: string) => (await getConfig(slug)).tools as Json[];
    const getToolNames = async (slug: string) => pluck(await getTools(slug), 'name');
    const create = (slug: string, more: Json = {}) => done('POST', '/servers', buildServerAt(slug, apiUrl, more));
    const makeTool = (name: string, more: Json = {}) => ({ ...buildToolAt(`${apiUrl}/${name}`), name, ...more });
    const formatProblems = (body: Json) => (body.problems as Json[]).map(({ path, message }) => `${path}: ${message}`);

    it('[conf 7] adds, changes, renames, and removes a tool, each as a version with an audit entry', async () => {
      await create('one', { authentication: { type: 'Bearer', token: 'kept' } });
      const added = await done('POST', '/servers/one/tools', makeTool('second', { timeout_ms: 500 }));
      assert.deepEqual([added.tool, (added.server as Json).version], ['second', 2]);
      const changed = await done('PATCH', '/servers/one/tools/second', { title: 'Second', timeout_ms: 700 });
      assert.equal((changed.server as Json).version, 3);
      assert.deepEqual((await getTools('one'))[1], {
        ...{ name: 'second', title: 'Second', description: 'Gets the thing from the upstream.', method: 'GET' },
        ...{ url: `${apiUrl}/second`, headers: {}, input_schema: {}, response_transform: '.', timeout_ms: 700 },
      });
      const changes = { name: 'other', title: null, timeout_ms: null };
      const renamed = await done('PATCH', '/servers/one/tools/second', changes);
      assert.equal(renamed.tool, 'other');
      const other = (await getTools('one'))[1] as Json;
      assert.deepEqual([other.name, other.timeout_ms, 'title' in other], ['other', 10_000, false]);
      const removed = await done('DELETE', '/servers/one/tools/get');
      assert.deepEqual([removed.tool, await getToolNames('one')], ['get', ['other']]);
      assert.deepEqual((await getConfig('one')).authentication, { type: 'Bearer', token: '********' });
      const { events } = await done('GET', '/audit');
      // The clock stands still, so events are not sorted by the order of the changes.
      const changeEvents = (events as { operation: string; target: string; detail: { version: number } }[])
        .filter(({ operation, target }) => target === 'one' && operation !== 'createMcpServer')
        .toSorted((a, b) => b.detail.version - a.detail.version);
      assert.deepEqual(pluck(changeEvents, 'operation', 'detail'), [
        ...['removeTool', { tool: 'get', version: 5, tools: 1 }],
        ...['updateTool', { was: 'second', tool: 'other', version: 4, tools: 2 }],
        ...['updateTool', { tool: 'second', version: 3, tools: 2 }],
        ...['addTool', { tool: 'second', version: 2, tools: 2 }],
      ]);
    });

    it('[conf 7] creates no version if nothing changes', async () => {
      await create('same');
      const [tool] = await getTools('same');
      for (const fields of [{}, { title: null }, { method: 'get' }, tool as Json]) {
        const response = await done('PATCH', '/servers/same/tools/get', fields);
        assert.deepEqual([response.unchanged, (response.server as Json).version], [true, 1], JSON.stringify(fields));
      }
    });

    it('[conf 7] reports a problem with the path of the invalid field, and stores nothing', async () => {
      await create('bad');
      const added = await rest('POST', '/servers/bad/tools', { ...makeTool('b'), metod: 'GET', url: `${apiUrl}/:id` });
      assert.equal(added.status, 400);
      assert.deepEqual(formatProblems(added.body), [
        'metod: unknown field; did you mean `method`?',
        'url: `:id` looks like a token, but input_schema has no such argument',
      ]);
      const changed = await rest('PATCH', '/servers/bad/tools/get', { url: null, timeout_ms: 30_000, tool_name: 'x' });
      const problems = formatProblems(changed.body).map((problem) => problem.replace(/;.*/, ''));
      assert.deepEqual(problems, ['url: required', 'timeout_ms: found 30000', 'tool_name: unknown field']);
      const taken = await rest('POST', '/servers/bad/tools', makeTool('get'));
      assert.match(taken.text, /\\"get\\" is already the name of another tool; change that tool with updateTool/);
      assert.equal((await rest('PATCH', '/servers/bad/tools/get', { name: 'get' })).status, 200);
      const unknown = await rest('DELETE', '/servers/bad/tools/gett');
      assert.match(`${unknown.status} ${unknown.text}`, /^404 .*the server has no such tool; did you mean `get`\?/);
      assert.deepEqual(await getToolNames('bad'), ['get']);
    });

    it('[conf 7] changes other tools even if newer rules would refuse one stored tool', async () => {
      await create('older', { tools: [makeTool('a'), makeTool('b')] });
      const { db } = await world.database();
      const query = db.selectFrom('servers').select('config').where('slug', '=', 'older');
      const config = (await query.executeTakeFirstOrThrow()).config.replace(`${apiUrl}/a`, `${apiUrl}/:unknown`);
      await db.updateTable('servers').set({ config }).where('slug', '=', 'older').execute();
      await done('PATCH', '/servers/older/tools/b', { title: 'B' });
      await done('POST', '/servers/older/tools', makeTool('c'));
      assert.equal((await rest('PATCH', '/servers/older/tools/a', { title: 'A' })).status, 400);
      await done('DELETE', '/servers/older/tools/a');
      assert.deepEqual(await getToolNames('older'), ['b', 'c']);
    });

    it('[conf 7] returns only the warnings of the changed tool and of the tool list', async () => {
      const short = { description: 'Short.' };
      await create('warned', { tools: [makeTool('a', short), makeTool('b')] });
      const { warnings } = await done('PATCH', '/servers/warned/tools/b', { title: 'B' });
      assert.deepEqual(warnings, []);
      const added = await done('POST', '/servers/warned/tools', makeTool('c', { ...short, headers: { K: '{{KEY}}' } }));
      assert.deepEqual(pluck(added.warnings, 'path'), ['description', 'headers.K']);
      assert.match(String(added.next_steps), /^Set the secret KEY/);
      for (const name of ['a', 'b', 'c']) await done('DELETE', `/servers/warned/tools/${name}`);
      const { warnings: none } = await done('POST', '/servers/warned/tools', makeTool('d', { disabled: true }));
      assert.match(JSON.stringify(none), /every tool of the server is disabled/);
    });

    it('[conf 7] reports a conflict if the expected version is not the current one', async () => {
      await create('expected');
      const stale = { 'If-Match': '"7"' };
      assert.equal((await rest('POST', '/servers/expected/tools', makeTool('b'), stale)).status, 409);
      assert.equal((await rest('PATCH', '/servers/expected/tools/get', { title: 'T' }, stale)).status, 409);
      assert.equal((await rest('DELETE', '/servers/expected/tools/get', undefined, stale)).status, 409);
      assert.equal((await rest('DELETE', '/servers/expected/tools/get', { expected_version: 2 })).status, 409);
      await done('PATCH', '/servers/expected/tools/get', { title: 'T', expected_version: 1 });
      await done('DELETE', '/servers/expected/tools/get', undefined, { 'If-Match': '"2"' });
    });

    it('[conf 7] loses nothing when agents change different tools concurrently', async () => {
      const tools = Array.from({ length: 8 }, (_, i) => makeTool(`t${i}`));
      await create('busy', { tools });
      const change = (name: string, args: Json) => agent.expectSuccess(name, { slug: 'busy', ...args });
      await Promise.all([
        ...tools.slice(0, 6).map(({ name }) => change('updateTool', { tool: name, title: `T ${name}` })),
        ...[1, 2, 3].map((i) => change('addTool', makeTool(`new${i}`))),
        change('removeTool', { tool: 't7' }),
        change('updateMcpServer', { description: 'At the same time' }),
      ]);
      const config = await getConfig('busy');
      assert.equal(config.description, 'At the same time');
      const stored = (config.tools as Json[]).map(({ name, title }) => `${name} ${title ?? ''}`);
      const changed = [0, 1, 2, 3, 4, 5].map((i) => `t${i} T t${i}`);
      assert.deepEqual(stored.toSorted(), ['new1 ', 'new2 ', 'new3 ', ...changed, 't6 ']);
      assert.equal(((await done('GET', '/servers/busy')).server as Json).version, 12);
    });

    it('[conf 7] applies the tool quota to every change, and lets a server above it shrink', async () => {
      const makeTools = (count: number) => Array.from({ length: count }, (_, i) => makeTool(`t${i}`));
      const excess = /21 tools; allowed: 20; split them into several servers, or ask the operator for a higher quota/;
      const tooLarge = buildServerAt('full', apiUrl, { tools: makeTools(21) });
      assert.match((await rest('POST', '/servers', tooLarge)).text, excess);
      const checked = await done('POST', '/check', tooLarge);
      assert.deepEqual(formatProblems(checked), [
        'tools: 21 tools; allowed: 20; split them into several servers, or ask the operator for a higher quota',
      ]);
      await create('full', { tools: makeTools(20) });
      const refused = await rest('POST', '/servers/full/tools', makeTool('more'));
      assert.equal(refused.status, 403);
      assert.match(refused.text, excess);
      assert.equal((await rest('PATCH', '/servers/full', { tools: makeTools(21) })).status, 403);
      await runOperatorOperation(world.toolhost, 'setWorkspaceQuotas', 'local', { tools: 10 });
      await done('PATCH', '/servers/full/tools/t3', { title: 'T' });
      await done('DELETE', '/servers/full/tools/t3');
      assert.equal((await rest('POST', '/servers/full/tools', makeTool('more'))).status, 403);
      const above = await rest('POST', '/check', buildServerAt('above', apiUrl, { tools: makeTools(11) }));
      assert.match(`${above.status} ${above.text}`, /^200 .*allowed: 10/);
      await runOperatorOperation(world.toolhost, 'setWorkspaceQuotas', 'local', { tools: null });
    });

    it('[conf 7] reports every change through the management server', async () => {
      await create('told');
      const { text } = await agent.expectSuccess('updateTool', { slug: 'told', tool: 'get', description: 'Short.' });
      const report =
        /^Changed the tool "get" of the server "told" \(version 2\)\.\nWarning: description: is shorter than 20/;
      assert.match(text, report);
      const same = await agent.expectSuccess('updateTool', { slug: 'told', tool: 'get' });
      assert.match(same.text, /^Nothing changed in the tool "get"/);
      await agent.expectError('updateTool', { slug: 'told', tool: 'got' }, /no such tool; did you mean `get`/);
      await agent.expectError('removeTool', { slug: 'told' }, /tool: required/);
    });
  });
}

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { buildLargeServer, buildLargeTool } from '../support/large-server.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

for (const engine of engines) {
  describe(`a server with a thousand tools, on ${engine}`, async () => {
    const world = await startToolhostOnEngine(engine);
    after(() => world.stop());
    const countTools = async (slug: string) => {
      const { body } = await world.toolhost.rest('GET', `/servers/${slug}`);
      return ((body.config as Json).tools as Json[]).length;
    };

    it('[conf 7] is stored through REST', async () => {
      const stored = await world.toolhost.rest('POST', '/servers', { body: buildLargeServer('by-rest') });
      assert.equal(stored.status, 201, stored.text.slice(0, 300));
      assert.equal(await countTools('by-rest'), 1000);
    });

    it('[conf 7] returns all tools to clients without pagination, and previews the last one', async () => {
      const listed = await world.toolhost.rpc('by-rest', 'a-token-of-a-caller-0123', 'tools/list', {});
      const { tools, nextCursor } = listed.body.result as { tools: Json[]; nextCursor?: string };
      assert.deepEqual([tools.length, nextCursor], [1000, undefined]);
      const name = 'post_customers_customer_sources_999';
      const body = { arguments: { customer: 'cus_1' } };
      const preview = await world.toolhost.rest('POST', `/servers/by-rest/tools/${name}/preview`, { body });
      assert.match(preview.text, /customers\/cus_1\/sources_999/);
    });

    it('[conf 7] keeps concurrent changes of one tool and of the server', async () => {
      const change = (path: string, body: Json) => world.toolhost.rest('PATCH', `/servers/by-rest${path}`, { body });
      const replies = await Promise.all([
        change('/tools/post_customers_customer_sources_1', { title: 'One' }),
        change('', { description: 'Changed' }),
      ]);
      for (const { status, text } of replies) assert.equal(status, 200, text);
      const { body } = await world.toolhost.rest('GET', '/servers/by-rest');
      const { tools, description } = body.config as { tools: Json[]; description: string };
      assert.deepEqual([tools.length, tools[1]?.title, description], [1000, 'One', 'Changed']);
    });

    it('[conf 7] is duplicated in the version that the copy names, although it changes in the meantime', async () => {
      const { rest } = world.toolhost;
      const [duplicated, changed] = await Promise.all([
        rest('POST', '/servers/by-rest/duplicate', { body: { to: 'copy' } }),
        rest('PATCH', '/servers/by-rest/tools/post_customers_customer_sources_1', { body: { title: 'Again' } }),
      ]);
      for (const { status, text } of [duplicated, changed]) assert.equal(status, 200, text);
      const original = (await rest('GET', '/servers/by-rest')).body;
      const copy = (await rest('GET', '/servers/copy')).body;
      const [{ copied_version: copiedVersion }] = original.copies as [Json];
      const isChanged = ((copy.config as Json).tools as Json[])[1]?.title === 'Again';
      assert.equal(isChanged, copiedVersion === (original.server as Json).version);
    });

    it('[conf 7] accepts large configurations only from credentials that may store them, and no other large input', async () => {
      const { toolhost } = world;
      const reader = await toolhost.createKey({ scopes: ['manage:read'] });
      const large = buildLargeServer('other');
      assert.equal((await toolhost.rest('POST', '/check', { key: reader, body: large })).status, 413);
      const asReader = await toolhost.rpc('manage', reader, 'tools/call', { name: 'checkMcpServer', arguments: large });
      assert.equal(asReader.status, 413);
      const padding = 'x'.repeat(1024 * 1024);
      const preview = '/servers/by-rest/tools/post_customers_customer_sources_1/preview';
      assert.equal((await toolhost.rest('POST', preview, { body: { arguments: { padding } } })).status, 413);
      const tool = { ...buildLargeTool(1), name: 'one', description: padding };
      assert.equal((await toolhost.rest('POST', '/servers/by-rest/tools', { body: tool })).status, 413);
      const called = await toolhost.callTool('manage', await toolhost.createKey(), 'previewToolCall', { padding });
      const error = 'the arguments are larger than 1048576 bytes or 60000 elements; send less per call';
      assert.deepEqual([called.isError, called.content[0]?.text], [true, error]);
      const more = await toolhost.rest('POST', '/check', { body: buildLargeServer('more', 1100) });
      assert.equal(more.status, 413);
    });
  });
}

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

const stored = { authentication: { type: 'Bearer', token: 'stored-token' } };

const quantum = { type: 'Quantum', token: 'x' };
const variables = { private_name: { value: 'x', futuristic: 1 } };
const withKeyword = { private_name: { type: 'string', futuristic: 1 } };
const withStyle = { type: 'object', properties: { private_name: { type: 'string', style: 'futuristic' } } };

/** Configuration parts of a newer version that this one does not know, with the path that names each. */
const unknownParts: [name: string, path: string, server: Json, tool?: Json][] = [
  ['a field of the server', 'futuristic', { futuristic: true }],
  ['a field of a tool', 'tools[].futuristic', {}, { futuristic: true }],
  ['a tool mode', 'tool_mode', { tool_mode: 'futuristic' }],
  ['a kind of credential', 'authentication.type', { authentication: quantum }],
  ['a kind of credential in a list', 'authentication[].type', { authentication: [quantum] }],
  ['a keyword of an argument', 'tools[].input_schema.*.futuristic', {}, { input_schema: withKeyword }],
  ['a style of an argument in a JSON Schema', 'tools[].input_schema.*.style', {}, { input_schema: withStyle }],
  ['a field of a variable', 'variables.*.futuristic', { variables }],
];

for (const engine of engines) {
  describe(`a configuration of a newer version, on ${engine}`, () => {
    const upstream = useFixture(startRecordingUpstream);
    const service = useFixture(() => startToolhostOnEngine(engine, { egressPorts: [upstream.port] }));
    let toolhost: TestToolhost;
    let key: string;
    before(async () => {
      ({ toolhost } = service);
      key = await toolhost.createKey();
    });

    /** Stores a configuration like a newer version, bypassing the validation of this one. */
    async function storeUnknown(slug: string, server: Json, tool: Json = {}): Promise<string> {
      await toolhost.createServer(buildServerAt(slug, upstream.url, stored));
      const { db } = toolhost.running.app.runner;
      const config = JSON.parse(await readConfig(slug)) as Json & { tools: Json[] };
      const text = JSON.stringify({ ...config, tools: [{ ...config.tools[0], ...tool }], ...server });
      await db.updateTable('servers').set({ config: text }).where('slug', '=', slug).execute();
      return text;
    }
    const readConfig = async (slug: string) => {
      const { db } = toolhost.running.app.runner;
      return (await db.selectFrom('servers').select('config').where('slug', '=', slug).executeTakeFirstOrThrow())
        .config;
    };

    for (const [index, [name, path, server, tool]] of unknownParts.entries()) {
      it(`[ship 4] is not served while ${name} is unknown to this version`, async () => {
        const slug = `later-${index}`;
        await storeUnknown(slug, server, tool);
        for (const token of [key, undefined]) {
          const { status, headers, text } = await toolhost.rpc(slug, token, 'tools/list');
          assert.deepEqual([status, headers.get('retry-after')], [503, '5'], text);
          assert.ok(text.includes(`\\"${path}\\"`), text);
          assert.doesNotMatch(text, /private_name/);
        }
        const called = await toolhost.rpc(slug, key, 'tools/call', { name: 'get', arguments: {} });
        assert.equal(called.status, 503);
        const tryOut = await toolhost.rest('POST', `/servers/${slug}/tools/get/call`, { body: {} });
        assert.equal(tryOut.status, 503, tryOut.text);
        assert.deepEqual(upstream.take(), []);
      });
    }

    it('[ship 4] is not changed, so that unknown fields are never dropped', async () => {
      const before = await storeUnknown('kept', { futuristic: true });
      const patched = await toolhost.rest('PATCH', '/servers/kept', { body: { description: 'changed' } });
      assert.equal(patched.status, 400, patched.text);
      assert.match(patched.text, /futuristic/);
      const tool = buildToolAt(upstream.url, { name: 'second' });
      const added = await toolhost.rest('POST', '/servers/kept/tools', { body: { tool } });
      assert.equal(added.status, 400, added.text);
      assert.equal(await readConfig('kept'), before);
    });

    it('[ship 4] is served again once this version knows all of it', async () => {
      await storeUnknown('again', { futuristic: true });
      assert.equal((await toolhost.rpc('again', key, 'tools/list')).status, 503);
      const body = buildServerAt('again', upstream.url, stored);
      const whole = await toolhost.rest('PUT', '/servers/again', { body });
      assert.equal(whole.status, 200, whole.text);
      assert.equal((await toolhost.rpc('again', key, 'tools/list')).status, 200);
    });
  });
}

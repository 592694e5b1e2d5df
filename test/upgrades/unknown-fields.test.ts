import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const stored = { authentication: { type: 'Bearer', token: 'stored-token' } };

/** Configuration parts of a newer version that this one does not know, with the path that names each. */
const unknownParts: [name: string, change: (config: Json) => void, path: string][] = [
  ['a field of the server', (config) => Object.assign(config, { futuristic: true }), 'futuristic'],
  ['a field of a tool', (config) => Object.assign(getFirstTool(config), { futuristic: true }), 'tools[].futuristic'],
  ['a tool mode', (config) => Object.assign(config, { tool_mode: 'futuristic' }), 'tool_mode'],
  [
    'a kind of credential',
    (config) => Object.assign(config, { authentication: { type: 'Quantum', token: 'x' } }),
    'authentication.type',
  ],
  [
    'a kind of credential in a list',
    (config) => Object.assign(config, { authentication: [{ type: 'Quantum', token: 'x' }] }),
    'authentication[].type',
  ],
  [
    'a keyword of an argument',
    (config) =>
      Object.assign(getFirstTool(config), { input_schema: { private_name: { type: 'string', futuristic: 1 } } }),
    'tools[].input_schema.*.futuristic',
  ],
  [
    'a style of an argument in the form of a JSON Schema',
    (config) => {
      const properties = { private_name: { type: 'string', style: 'futuristic' } };
      Object.assign(getFirstTool(config), { input_schema: { type: 'object', properties } });
    },
    'tools[].input_schema.*.style',
  ],
  [
    'a field of a variable',
    (config) => Object.assign(config, { variables: { private_name: { value: 'x', futuristic: 1 } } }),
    'variables.*.futuristic',
  ],
];

function getFirstTool(config: Json): Json {
  return (config.tools as Json[])[0] ?? assert.fail();
}

for (const engine of engines) {
  describe(`a configuration of a newer version, on ${engine}`, () => {
    let postgres: TestPostgres | undefined;
    let upstream: RecordingUpstream;
    let toolhost: TestToolhost;
    let key: string;
    before(async () => {
      postgres = engine === 'postgres' ? await startPostgres() : undefined;
      upstream = await startRecordingUpstream();
      const env = postgres && { DATABASE_URL: await postgres.createDatabase() };
      toolhost = await startToolhost({ egressPorts: [upstream.port], ...(env && { env }) });
      key = await toolhost.createKey();
    });
    after(async () => {
      await Promise.all([toolhost.stop(), upstream.close()]);
      await postgres?.stop();
    });

    /** Stores a configuration like a newer version, bypassing the validation of this one. */
    async function storeUnknown(slug: string, change: (config: Json) => void): Promise<string> {
      await toolhost.createServer(buildServerAt(slug, upstream.url, stored));
      const { db } = toolhost.running.app.runner;
      const row = await db.selectFrom('servers').select('config').where('slug', '=', slug).executeTakeFirstOrThrow();
      const config = JSON.parse(row.config) as Json;
      change(config);
      const text = JSON.stringify(config);
      await db.updateTable('servers').set({ config: text }).where('slug', '=', slug).execute();
      return text;
    }

    for (const [index, [name, change, path]] of unknownParts.entries()) {
      it(`[ship 4] is not served while ${name} is unknown to this version`, async () => {
        const slug = `later-${index}`;
        await storeUnknown(slug, change);
        for (const token of [key, undefined]) {
          const { status, headers, text } = await toolhost.rpc(slug, token, 'tools/list');
          assert.equal(status, 503, text);
          assert.equal(headers.get('retry-after'), '5');
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
      const before = await storeUnknown('kept', (config) => Object.assign(config, { futuristic: true }));
      const patched = await toolhost.rest('PATCH', '/servers/kept', { body: { description: 'changed' } });
      assert.equal(patched.status, 400, patched.text);
      assert.match(patched.text, /futuristic/);
      const added = await toolhost.rest('POST', '/servers/kept/tools', {
        body: { tool: buildToolAt(upstream.url, { name: 'second' }) },
      });
      assert.equal(added.status, 400, added.text);
      const { db } = toolhost.running.app.runner;
      const row = await db.selectFrom('servers').select('config').where('slug', '=', 'kept').executeTakeFirstOrThrow();
      assert.equal(row.config, before);
    });

    it('[ship 4] is served again once this version knows all of it', async () => {
      await storeUnknown('again', (config) => Object.assign(config, { futuristic: true }));
      assert.equal((await toolhost.rpc('again', key, 'tools/list')).status, 503);
      const whole = await toolhost.rest('PUT', '/servers/again', {
        body: buildServerAt('again', upstream.url, stored),
      });
      assert.equal(whole.status, 200, whole.text);
      assert.equal((await toolhost.rpc('again', key, 'tools/list')).status, 200);
    });
  });
}

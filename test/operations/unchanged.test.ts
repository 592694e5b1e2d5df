import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { operationList, operatorOperations } from '../../src/operations/index.ts';
import { engines } from '../sets.ts';
import { personSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { serverAt } from '../support/configs.ts';
import { type EngineToolhost, startOn } from '../support/toolhost/engine-toolhost.ts';
import { operate } from '../support/toolhost/operate.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

/** Operations whose every success changes something, because they create or end one object. */
const alwaysChanging = new Set([
  'createMcpServer',
  'importApi',
  'deleteMcpServer',
  'addTool',
  'removeTool',
  'createApiKey',
  'revokeApiKey',
  'createWebhook',
  'deleteWebhook',
  'revokeGrant',
  'deleteSecret',
  'removeMember',
  'endRemains',
  'leaveWorkspace',
  'createWorkspace',
  'saveModel',
  'deleteModel',
  'deleteWorkspace',
  'withdrawInvitation',
]);

describe('operations that change something', () => {
  it('[find D4] create or end one object, or report that nothing changed', () => {
    const all = [...operationList, ...Object.values(operatorOperations)].filter(({ effect }) => effect === 'write');
    const tells = all.filter((op) => op.isUnchanged && 'unchanged' in op.output.shape).map(({ name }) => name);
    const rest = all.map(({ name }) => name).filter((name) => !tells.includes(name));
    assert.deepEqual(new Set(rest), alwaysChanging);
  });
});

for (const engine of engines) {
  describe(`a request that changes nothing, on ${engine}`, () => {
    const api = 'https://api.example.com';
    let world: EngineToolhost;
    before(async () => {
      world = await startOn(engine);
    });
    after(() => world?.stop());

    const rest = async (method: string, path: string, body?: Json) => {
      const reply = await world.toolhost.rest(method, path, body && { body });
      assert.ok(reply.status < 300, reply.text);
      return reply.body;
    };
    const rows = async (table: 'audit_events' | 'changes' | 'server_versions') => {
      const { db } = await world.database();
      return (await db.selectFrom(table).selectAll().execute()).length;
    };
    const stored = async () => [await rows('audit_events'), await rows('changes'), await rows('server_versions')];

    /** Performs an action twice. The first time it changes something, and the second time it must not. */
    const twice = async (act: () => Promise<Json>): Promise<Json> => {
      const first = await act();
      assert.equal(first.unchanged, undefined, JSON.stringify(first));
      const was = await stored();
      await world.wait(1000);
      const second = await act();
      assert.equal(second.unchanged, true, JSON.stringify(second));
      assert.deepEqual(await stored(), was);
      return second;
    };

    it('[find D4] creates no server version and no audit entry', async () => {
      const config = serverAt('same', api, { authentication: { type: 'Bearer', token: 'stored' } });
      await rest('POST', '/servers', config);
      const patched = await twice(() => rest('PATCH', '/servers/same', { description: 'Another one' }));
      const now = (await rest('GET', '/servers/same')).server as Json;
      assert.equal(now.version, 2);
      assert.deepEqual(patched.server, now);
      const replaced = await twice(() => rest('PUT', '/servers/same', config));
      assert.equal((replaced.server as Json).version, 3);
      const masked = (await rest('GET', '/servers/same')).config as Json;
      assert.equal((await rest('PUT', '/servers/same', masked)).unchanged, true);
      await twice(() => rest('POST', '/servers/same/versions/2/restore'));
      const versions = (await rest('GET', '/servers/same/versions')).versions as Json[];
      assert.deepEqual(
        versions.map(({ version }) => version),
        [4, 3, 2, 1],
      );
    });

    it('[find D4] reports a change if it contains secrets other than the stored ones', async () => {
      const config = (token: string) => serverAt('bringing', api, { authentication: { type: 'Bearer', token } });
      await rest('POST', '/servers', config('first'));
      assert.equal((await rest('PUT', '/servers/bringing', config('first'))).unchanged, true);
      const other = await rest('PUT', '/servers/bringing', config('second'));
      assert.equal(other.unchanged, undefined);
      assert.equal((other.server as Json).version, 2);
    });

    it('[find D4] still checks the expected version', async () => {
      const config = serverAt('expected', api);
      await rest('POST', '/servers', config);
      const stale = await world.toolhost.rest('PUT', '/servers/expected', { body: { ...config, expected_version: 7 } });
      assert.equal(stale.status, 409);
    });

    it('[find D4] is distinguished from a change of a secret, limits, or capture', async () => {
      await rest('POST', '/servers', serverAt('parts', api));
      await twice(() => rest('PUT', '/servers/parts/secrets/KEY', { value: 'one' }));
      assert.equal((await rest('PUT', '/servers/parts/secrets/KEY', { value: 'two' })).unchanged, undefined);
      await rest('PATCH', '/servers/parts', { tools: serverAt('x', 'https://other.example.com').tools });
      const moved = await rest('PUT', '/servers/parts/secrets/KEY', { value: 'two' });
      assert.equal(moved.unchanged, undefined, 'the secret may now be sent to another host');
      await twice(() => rest('PATCH', '/servers/parts/limits', { calls_per_second: 5 }));
      await rest('POST', '/servers/parts/capture', { hours: 1 });
      await twice(() => rest('POST', '/servers/parts/capture', { hours: 0 }));
      const id = 'local';
      await twice(() => operate(world.toolhost, 'setWorkspaceLimits', id, { calls_per_second: 500 }));
      await twice(() => operate(world.toolhost, 'setWorkspaceQuotas', id, { keys: 500 }));
    });

    it('[find D4] is reported for a workspace and its people', async () => {
      const session = await personSession(world.toolhost, { name: 'Owner' });
      const act = async (method: string, path: string, body: Json) => {
        const reply = await personRequest(world.toolhost, session, method, path, body);
        assert.equal(reply.status, 200, JSON.stringify(reply.body));
        return reply.body;
      };
      await twice(() => act('PATCH', '/workspace', { name: 'Renamed' }));
      await twice(() => act('POST', '/invitations', { email: 'anna@example.com', role: 'viewer' }));
      assert.equal(
        (await act('POST', '/invitations', { email: 'anna@example.com', role: 'editor' })).unchanged,
        undefined,
      );
    });
  });
}

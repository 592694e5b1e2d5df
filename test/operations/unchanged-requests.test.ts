import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { operationList, operatorOperations } from '@toolhost/server/operations';
import { engines } from '../sets.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { pluck } from '../support/pluck.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { createPersonClient } from '../support/toolhost/rest-clients.ts';
import { runOperatorOperation } from '../support/toolhost/run-operator-operation.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

/** Operations whose every success changes something, because they create or end one object. */
const alwaysChanging = new Set([
  ...[
    'createMcpServer',
    'importApi',
    'addImport',
    'deleteMcpServer',
    'addTool',
    'removeTool',
    'createApiKey',
    'revokeApiKey',
  ],
  ...['createWebhook', 'deleteWebhook', 'revokeGrant', 'deleteSecret', 'removeMember', 'revokeMemberAccess'],
  ...['leaveWorkspace', 'createWorkspace', 'saveModel', 'deleteModel', 'deleteWorkspace', 'revokeInvitation'],
  'deleteOwnValues',
]);

describe('operations that change something', () => {
  it('[find D4] create or end one object, or report that nothing changed', () => {
    const all = [...operationList, ...Object.values(operatorOperations)].filter(({ effect }) => effect === 'write');
    const reporting = all.filter((op) => op.isUnchanged && 'unchanged' in op.output.shape).map(({ name }) => name);
    const others = all.map(({ name }) => name).filter((name) => !reporting.includes(name));
    assert.deepEqual(new Set(others), alwaysChanging);
  });
});

for (const engine of engines) {
  describe(`a request that changes nothing, on ${engine}`, async () => {
    const api = 'https://api.example.com';
    const world = await startToolhostOnEngine(engine);
    after(() => world.stop());

    const rest = async (method: string, path: string, body?: Json) => {
      const reply = await world.toolhost.rest(method, path, body && { body });
      assert.ok(reply.status < 300, reply.text);
      return reply.body;
    };
    const countStoredRows = async () => {
      const { db } = await world.database();
      const tables = (['audit_events', 'changes', 'server_versions'] as const).map((name) => db.selectFrom(name));
      return Promise.all(tables.map(async (table) => (await table.selectAll().execute()).length));
    };

    /** Performs an action twice. The first time it changes something, and the second time it must not. */
    const performTwice = async (action: () => Promise<Json>): Promise<Json> => {
      const first = await action();
      assert.equal(first.unchanged, undefined, JSON.stringify(first));
      const countsBefore = await countStoredRows();
      await world.advanceTime(1000);
      const second = await action();
      assert.equal(second.unchanged, true, JSON.stringify(second));
      assert.deepEqual(await countStoredRows(), countsBefore);
      return second;
    };

    it('[find D4] creates no server version and no audit entry', async () => {
      const config = buildServerAt('same', api, { authentication: { type: 'Bearer', token: 'stored' } });
      await rest('POST', '/servers', config);
      const patched = await performTwice(() => rest('PATCH', '/servers/same', { description: 'Another one' }));
      const current = (await rest('GET', '/servers/same')).server as Json;
      assert.equal(current.version, 2);
      assert.deepEqual(patched.server, current);
      const replaced = await performTwice(() => rest('PUT', '/servers/same', config));
      assert.equal((replaced.server as Json).version, 3);
      const masked = (await rest('GET', '/servers/same')).config as Json;
      assert.equal((await rest('PUT', '/servers/same', masked)).unchanged, true);
      await performTwice(() => rest('POST', '/servers/same/versions/2/restore'));
      const versions = (await rest('GET', '/servers/same/versions')).versions as Json[];
      assert.deepEqual(pluck(versions, 'version'), [4, 3, 2, 1]);
    });

    it('[find D4] reports a change if it contains secrets other than the stored ones', async () => {
      const config = (token: string) => buildServerAt('bringing', api, { authentication: { type: 'Bearer', token } });
      await rest('POST', '/servers', config('first'));
      assert.equal((await rest('PUT', '/servers/bringing', config('first'))).unchanged, true);
      const other = await rest('PUT', '/servers/bringing', config('second'));
      assert.deepEqual([other.unchanged, (other.server as Json).version], [undefined, 2]);
    });

    it('[find D4] still checks the expected version', async () => {
      const config = buildServerAt('expected', api);
      await rest('POST', '/servers', config);
      const stale = await world.toolhost.rest('PUT', '/servers/expected', { body: { ...config, expected_version: 7 } });
      assert.equal(stale.status, 409);
    });

    it('[find D4] is distinguished from a change of a secret, limits, or capture', async () => {
      await rest('POST', '/servers', buildServerAt('parts', api));
      await performTwice(() => rest('PUT', '/servers/parts/secrets/KEY', { value: 'one' }));
      assert.equal((await rest('PUT', '/servers/parts/secrets/KEY', { value: 'two' })).unchanged, undefined);
      await rest('PATCH', '/servers/parts', { tools: buildServerAt('x', 'https://other.example.com').tools });
      const moved = await rest('PUT', '/servers/parts/secrets/KEY', { value: 'two' });
      assert.equal(moved.unchanged, undefined, 'the secret may now be sent to another host');
      await performTwice(() => rest('PATCH', '/servers/parts/limits', { calls_per_second: 5 }));
      await rest('POST', '/servers/parts/capture', { hours: 1 });
      await performTwice(() => rest('POST', '/servers/parts/capture', { hours: 0 }));
      const limits = { calls_per_second: 500 };
      await performTwice(() => runOperatorOperation(world.toolhost, 'setWorkspaceLimits', 'local', limits));
      await performTwice(() => runOperatorOperation(world.toolhost, 'setWorkspaceQuotas', 'local', { keys: 500 }));
    });

    it('[find D4] is reported for a workspace and its people', async () => {
      const send = createPersonClient(world.toolhost, await createPersonSession(world.toolhost, { name: 'Owner' }));
      const requestAsOwner = async (method: string, path: string, body: Json) => {
        const reply = await send(method, path, body);
        assert.equal(reply.status, 200, JSON.stringify(reply.body));
        return reply.body;
      };
      const invite = (role: string) => requestAsOwner('POST', '/invitations', { email: 'anna@example.com', role });
      await performTwice(() => requestAsOwner('PATCH', '/workspace', { name: 'Renamed' }));
      await performTwice(() => invite('viewer'));
      assert.equal((await invite('editor')).unchanged, undefined);
    });
  });
}

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { saveMember } from '../../apps/server/src/store/people/users.ts';
import { prunePeople } from '../../apps/server/src/store/pruning/prune-people.ts';
import { engines } from '../sets.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { createPersonClient } from '../support/toolhost/rest-clients.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

for (const engine of engines) {
  describe(`workspaces of a person, on ${engine}`, async () => {
    const world = await startToolhostOnEngine(engine, {}, Date.now());
    after(() => world.stop());
    const signIn = async (name: string, workspace?: string) =>
      createPersonClient(
        world.toolhost,
        await createPersonSession(world.toolhost, { name, ...(workspace && { workspace }) }),
      );
    const request = await signIn('Ada', 'wsp_first');
    const getCurrentWorkspace = async () =>
      (await request('GET', '/session')).body.workspace as { id: string; name: string };

    it('are created, exported, and deleted by name, and stop serving immediately', async () => {
      const { db } = world.toolhost.running.app.runner;
      assert.equal((await request('POST', '/workspaces', { name: 'Second' })).status, 201);
      const { id, name } = await getCurrentWorkspace();
      assert.equal(name, 'Second');
      const [first] = (await request('GET', '/audit')).body.events as Json[];
      assert.deepEqual([first?.operation, first?.target], ['createWorkspace', id]);
      const authentication = { type: 'Bearer', token: '{{KEY}}' };
      await request('POST', '/servers', buildServerAt('second-shop', 'https://api.example.com', { authentication }));
      await request('PUT', '/servers/second-shop/secrets/KEY', { value: 'value-of-the-secret' });
      const key = String((await request('POST', '/keys', { name: 'k', scopes: ['manage', 'call'] })).body.key);
      const ping = async () => (await world.toolhost.rpc('second-shop', key, 'ping')).status;
      assert.equal(await ping(), 200);
      const file = await world.toolhost.rest('GET', '/workspace.json', { key });
      const [server] = file.body.servers as { configuration: Json; secrets: string[] }[];
      assert.deepEqual([server?.configuration.slug, server?.secrets], ['second-shop', ['KEY']]);
      assert.doesNotMatch(file.text, /value-of-the-secret/);
      const [requestAsBob, requestAsCid] = [await signIn('Bob', id), await signIn('Cid', 'wsp_first')];
      const { id: cid } = (await requestAsCid('GET', '/session')).body.user as { id: string };
      await saveMember(db, { workspaceId: id, userId: cid, role: 'viewer', at: world.now() });
      assert.equal((await requestAsCid('POST', '/session/workspace', { workspace_id: id })).status, 200);
      assert.equal((await request('POST', '/workspace/delete', { name: 'Wrong' })).status, 400);
      assert.equal((await request('POST', '/workspace/delete', { name: 'Second' })).status, 200);
      assert.notEqual(await ping(), 200);
      assert.equal((await world.toolhost.rest('GET', '/servers', { key })).status, 401);
      assert.equal((await requestAsBob('GET', '/session')).status, 401);
      assert.equal((await getCurrentWorkspace()).id, 'wsp_first');
      const moved = await requestAsCid('GET', '/session');
      assert.deepEqual([moved.status, (moved.body.workspace as Json | undefined)?.id], [200, 'wsp_first']);
      const taken = await request('POST', '/servers', buildServerAt('second-shop', 'https://api.example.com'));
      assert.match(JSON.stringify(taken.body), /taken or was used before/);
      await prunePeople(db, world.now() - 1000);
      const versions = db.selectFrom('server_versions').select('version').where('workspace_id', '=', id);
      assert.deepEqual(await versions.execute(), []);
    });

    it('are at most twenty, and exclude the local workspace from deletion', async () => {
      const statuses = [];
      for (let n = 0; n < 20; n++) statuses.push((await request('POST', '/workspaces', { name: `W${n}` })).status);
      assert.deepEqual([statuses.filter((status) => status === 201).length, statuses.at(-1)], [19, 403]);
      const requestAsEve = await signIn('Eve');
      assert.equal((await requestAsEve('POST', '/workspace/delete', { name: 'Local' })).status, 409);
    });
  });
}

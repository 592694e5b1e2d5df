import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { pruneDeletedServers, restorePeriodMs } from '../../apps/server/src/store/servers/deleted-servers.ts';
import { engines } from '../sets.ts';
import { pluck } from '../support/pluck.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { runOperatorOperation } from '../support/toolhost/run-operator-operation.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

for (const engine of engines) {
  describe(`[sec E2] a deleted server on ${engine}`, async () => {
    const upstream = await startRecordingUpstream();
    const world = await startToolhostOnEngine(engine, { egressPorts: [upstream.port] });
    after(async () => {
      await world.stop();
      await upstream.close();
    });

    const rest = (method: string, path: string, body?: Json, key?: string) =>
      world.toolhost.rest(method, path, { ...(body && { body }), ...(key !== undefined && { key }) });
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    const createServerWithSecret = async (slug: string) => {
      await world.toolhost.createServer(buildServerAt(slug, upstream.url, { authentication }));
      await rest('PUT', `/servers/${slug}/secrets/KEY`, { value: 'the-stored-value' });
    };
    const listDeletedSlugs = async () => pluck((await rest('GET', '/deleted-servers')).body.servers, 'slug');
    const getRow = async (slug: string) => {
      const { db } = await world.database();
      const row = await db.selectFrom('servers').selectAll().where('slug', '=', slug).executeTakeFirstOrThrow();
      const count = async (table: 'secrets' | 'server_versions') =>
        (await db.selectFrom(table).select('server_id').where('server_id', '=', row.id).execute()).length;
      return { ...row, secrets: await count('secrets'), versions: await count('server_versions') };
    };

    it('is not served, and is restored with its secrets, its versions, and the keys limited to it', async () => {
      await createServerWithSecret('undone');
      await rest('PATCH', '/servers/undone', { name: 'Renamed' });
      const key = await world.toolhost.createKey({ scopes: ['call'], servers: ['undone'] });
      const callAndGetAuthorization = async () => {
        await world.toolhost.callTool('undone', key, 'get');
        return upstream.take()[0]?.headers.authorization;
      };
      assert.equal(await callAndGetAuthorization(), 'Bearer the-stored-value');

      const { body } = await rest('DELETE', '/servers/undone');
      assert.equal(Date.parse(String(body.restorable_until)), world.now() + restorePeriodMs);
      assert.equal((await world.toolhost.rpc('undone', key, 'ping')).status, 404);
      assert.equal((await rest('GET', '/servers/undone')).status, 404);
      assert.equal((await rest('GET', '/servers')).text.includes('undone'), false);
      assert.deepEqual(await listDeletedSlugs(), ['undone']);
      const recreated = await rest('POST', '/servers', buildServerAt('undone', upstream.url));
      assert.match(`${recreated.status} ${recreated.text}`, /^409 .*restoreMcpServer/);

      const restored = await rest('POST', '/servers/undone/restore', {});
      assert.deepEqual([restored.status, (restored.body.server as Json).name], [200, 'Renamed']);
      assert.equal(await callAndGetAuthorization(), 'Bearer the-stored-value');
      assert.equal(((await rest('GET', '/servers/undone/versions')).body.versions as Json[]).length, 2);
      assert.deepEqual(await listDeletedSlugs(), []);
      assert.equal((await rest('POST', '/servers/undone/restore', {})).body.unchanged, true);
    });

    it('cannot be listed or restored from another workspace, or restored with a read-only key', async () => {
      await createServerWithSecret('ours');
      await rest('DELETE', '/servers/ours');
      const theirs = await world.toolhost.createKey({ workspace: 'theirs' });
      assert.deepEqual((await rest('GET', '/deleted-servers', undefined, theirs)).body.servers, []);
      assert.equal((await rest('POST', '/servers/ours/restore', {}, theirs)).status, 404);
      const taken = await rest('POST', '/servers', buildServerAt('ours', upstream.url), theirs);
      assert.match(taken.text, /is taken or was used before/);
      const reader = await world.toolhost.createKey({ scopes: ['manage:read'] });
      assert.equal((await rest('POST', '/servers/ours/restore', {}, reader)).status, 403);
    });

    it('can lose one or all of its secrets while it is restorable, including those in its configuration [find F4]', async () => {
      const named = { extra: { type: 'ApiKey', header: 'X-Key', token: 'a-literal-credential' } };
      const config = buildServerAt('emptied', upstream.url, { authentication, credentials: named });
      await world.toolhost.createServer(config);
      for (const name of ['KEY', 'OTHER']) await rest('PUT', `/servers/emptied/secrets/${name}`, { value: 'a-value' });
      assert.equal((await rest('DELETE', '/deleted-servers/emptied/secrets')).status, 404);
      await rest('DELETE', '/servers/emptied');
      const count = async () => {
        const servers = (await rest('GET', '/deleted-servers')).body.servers as Json[];
        return servers.find(({ slug }) => slug === 'emptied')?.secret_count;
      };
      assert.equal(await count(), 3);
      const reader = await world.toolhost.createKey({ scopes: ['manage:read'] });
      const theirs = await world.toolhost.createKey({ workspace: 'theirs' });
      for (const path of ['/servers/emptied/secrets/OTHER', '/deleted-servers/emptied/secrets'])
        for (const [key, status] of Object.entries({ [reader]: 403, [theirs]: 404 }))
          assert.equal((await rest('DELETE', path, undefined, key)).status, status);
      assert.equal((await rest('DELETE', '/servers/emptied/secrets/OTHER')).status, 200);
      assert.equal((await rest('DELETE', '/servers/emptied/secrets/OTHER')).status, 404);
      for (const outcome of [{ deleted: 2 }, { deleted: 0, unchanged: true }])
        assert.deepEqual((await rest('DELETE', '/deleted-servers/emptied/secrets')).body, outcome);
      assert.deepEqual([await count(), (await getRow('emptied')).secrets], [0, 0]);

      const restored = await rest('POST', '/servers/emptied/restore', {});
      assert.equal(restored.status, 200, restored.text);
      assert.deepEqual((await rest('GET', '/servers/emptied/secrets')).body.secrets, []);
      const refused = await world.toolhost.callTool('emptied', await world.toolhost.createKey(), 'get');
      assert.match(JSON.stringify(refused), /KEY/);
      assert.equal(upstream.take().length, 0);
    });

    it('is deleted permanently after 30 days, except for its slug', async () => {
      await createServerWithSecret('late');
      await rest('DELETE', '/servers/late');
      const { db } = await world.database();
      await world.advanceTime(restorePeriodMs - 1);
      await pruneDeletedServers(db, world.now() - restorePeriodMs, world.now());
      assert.deepEqual([(await getRow('late')).secrets, (await getRow('late')).versions], [1, 1]);
      await world.advanceTime(1);
      assert.equal((await rest('POST', '/servers/late/restore', {})).status, 404);
      await pruneDeletedServers(db, world.now() - restorePeriodMs, world.now());
      const { config, name, summary, stored_bytes, secrets, versions } = await getRow('late');
      assert.deepEqual([config, name, summary, stored_bytes, secrets, versions], ['{}', '', null, 0, 0, 0]);
      const recreated = await rest('POST', '/servers', buildServerAt('late', upstream.url));
      assert.match(recreated.text, /taken or was used before/);
    });

    it('does not count toward the server quota, and is removed when its bytes or secrets are needed', async () => {
      const key = await world.toolhost.createKey({ workspace: 'full' });
      const quotas = { servers: 1, secrets: 1, megabytes: 1 };
      await runOperatorOperation(world.toolhost, 'setWorkspaceQuotas', 'full', quotas);
      const send = (method: string, path: string, body?: Json) => rest(method, path, body, key);
      const create = (slug: string, description = 'Small') =>
        send('POST', '/servers', { ...buildServerAt(slug, upstream.url, { authentication }), description });
      const long = { description: 'd'.repeat(1900) };
      const large = {
        tools: Array.from({ length: 200 }, (_, n) => buildToolAt(upstream.url, { ...long, name: `tool_${n}` })),
      };
      await send('POST', '/servers', { ...buildServerAt('full-first', upstream.url), ...large });
      await send('DELETE', '/servers/full-first');
      assert.equal((await create('full-second')).status, 201);
      const refused = await send('POST', '/servers/full-first/restore', {});
      assert.deepEqual([refused.status, /2 hosted servers; allowed: 1/.test(refused.text)], [403, true]);
      // The quota has no space for both servers.
      const grown = await send('PATCH', '/servers/full-second', large);
      assert.equal(grown.status, 200, grown.text);
      assert.deepEqual((await send('GET', '/deleted-servers')).body.servers, []);

      await send('PUT', '/servers/full-second/secrets/KEY', { value: 'one' });
      await send('DELETE', '/servers/full-second');
      await create('full-third');
      assert.equal((await send('PUT', '/servers/full-third/secrets/KEY', { value: 'two' })).status, 200);
      assert.deepEqual((await send('GET', '/deleted-servers')).body.servers, []);
    });
  });
}

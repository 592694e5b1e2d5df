import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { buildServer } from '../../../../../test/support/store/rows.ts';
import { bothEngines } from '../../../../../test/support/store/stores.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import type { Db } from '../db.ts';
import { decodeCursor, type Page } from '../page.ts';
import { createKeyring } from '../sealing/sealing.ts';
import { insertWorkspace } from '../workspaces.ts';
import { deleteServer, purgeServer } from './deleted-servers.ts';
import { findSecrets, openSecrets, removeSecret, saveSecret } from './secrets.ts';
import { findVersion, findVersions } from './server-versions.ts';
import {
  findServer,
  findServingServer,
  insertServer,
  isSlugTaken,
  listServers,
  type StoredServer,
  updateServer,
} from './servers.ts';

const keyring = createKeyring([Buffer.alloc(32, 1)]);
const firstPage: Page = { limit: 10, after: undefined };
const secret = { name: 'KEY', value: 'v', origins: [], createdBy: 'x', updatedAt: 1 };
const nextVersion = (server: StoredServer, more: Partial<StoredServer> = {}): StoredServer => ({
  ...server,
  version: server.version + 1,
  updatedAt: server.updatedAt + 1,
  ...more,
});

/** Converts a server to the form in which it is found by its public address. */
const toServed = ({ config, ...server }: StoredServer) => ({ ...server, configText: JSON.stringify(config) });

for (const engine of bothEngines)
  describe(`the store of servers and secrets on ${engine}`, () => {
    const stores = useStores(engine);
    let db: Db;
    beforeEach(async () => {
      ({ db } = await stores.open());
      for (const id of ['ours', 'theirs']) await insertWorkspace(db, { id, name: id, at: 1 });
    });

    it('finds a server by slug: in its workspace for management, and for everyone for calls', async () => {
      const server = buildServer();
      assert.equal(await insertServer(db, server), true);
      assert.deepEqual(await findServer(db, 'ours', 'sample'), server);
      assert.equal(await findServer(db, 'theirs', 'sample'), undefined);
      assert.equal(await findServer(db, 'ours', 'Sample'), undefined);
      const found = await findServingServer(db, 'sample');
      assert.deepEqual(found, { ...toServed(server), configBytes: found?.configText?.length });
      assert.equal(await findServingServer(db, 'other'), undefined);
    });

    it('[sec E2] gives a slug to only one server, even when several request it at the same time', async () => {
      const results = await Promise.all(
        ['a', 'b', 'c'].map((id) => insertServer(db, buildServer({ id, workspaceId: id === 'a' ? 'ours' : 'theirs' }))),
      );
      assert.deepEqual(results.toSorted(), [false, false, true]);
      const servingServer = await findServingServer(db, 'sample');
      const fullServer = await findServer(db, servingServer?.workspaceId ?? '', 'sample');
      assert.equal((await findVersions(db, fullServer as StoredServer, firstPage)).rows.length, 1);
    });

    it('[sec E2] keeps the slug of a deleted server forever, and deletes its secrets when it is purged', async () => {
      const server = buildServer();
      await insertServer(db, server);
      await saveSecret(db, keyring, server, secret);
      assert.equal(await isSlugTaken(db, 'sample'), true);
      await deleteServer(db, server, 5000);
      assert.equal(await findServer(db, 'ours', 'sample'), undefined);
      assert.equal(await findServingServer(db, 'sample'), undefined);
      assert.deepEqual((await listServers(db, 'ours', undefined, firstPage)).rows, []);
      assert.equal((await findSecrets(db, server)).length, 1);
      await purgeServer(db, server, 6000);
      assert.deepEqual(await findSecrets(db, server), []);
      assert.equal(await isSlugTaken(db, 'sample'), true);
      assert.equal(await insertServer(db, buildServer({ id: 'srv_new' })), false);
      assert.equal(await updateServer(db, nextVersion(server), 'key_2'), false);
    });

    it('stores a change only on top of the version that it is based on', async () => {
      const first = buildServer();
      await insertServer(db, first);
      const second = nextVersion(first, { name: 'Second', config: { ...first.config, name: 'Second' } });
      assert.equal(await updateServer(db, second, 'key_2'), true);
      assert.equal(await updateServer(db, second, 'key_3'), false);
      assert.equal(await updateServer(db, nextVersion(second, { version: 4 }), 'key_3'), false);
      assert.equal(await updateServer(db, nextVersion(second, { workspaceId: 'theirs' }), 'key_3'), false);
      assert.deepEqual(await findServer(db, 'ours', 'sample'), second);
      const results = await Promise.all(
        [1, 2, 3, 4].map((n) => updateServer(db, nextVersion(second, { name: `Racer ${n}` }), `key_${n}`)),
      );
      assert.equal(results.filter((hasWon) => hasWon).length, 1);
      assert.equal((await findServer(db, 'ours', 'sample'))?.version, 3);
      assert.equal((await findVersions(db, first, firstPage)).rows.length, 3);
    });

    it('stores every version with its author, newest first', async () => {
      let server = buildServer();
      await insertServer(db, server);
      for (const by of ['key_2', 'key_3']) {
        server = nextVersion(server);
        await updateServer(db, server, by);
      }
      const { rows: versions } = await findVersions(db, server, firstPage);
      assert.deepEqual(
        versions.map(({ version, createdBy, createdAt }) => [version, createdBy, createdAt]),
        [
          [3, 'key_3', 1002],
          [2, 'key_2', 1001],
          [1, 'key_1', 1000],
        ],
      );
      assert.deepEqual(versions[0]?.config, server.config);
      const page = await findVersions(db, server, { limit: 2, after: undefined });
      assert.equal(page.rows.length, 2);
      const secondPage = await findVersions(db, server, { limit: 2, after: decodeCursor(page.next ?? '') });
      assert.deepEqual([secondPage.rows.map(({ version }) => version), secondPage.next], [[1], undefined]);
      const foreign = { ...server, workspaceId: 'theirs' };
      assert.deepEqual((await findVersions(db, foreign, firstPage)).rows, []);
      assert.equal((await findVersion(db, server, 2))?.createdBy, 'key_2');
      assert.equal(await findVersion(db, server, 4), undefined);
      assert.equal(await findVersion(db, foreign, 2), undefined);
    });

    it('pages through all servers of one workspace, newest first, and filters them by slug', async () => {
      for (const [index, slug] of ['one', 'two', 'three', 'four', 'five'].entries())
        await insertServer(db, buildServer({ slug, createdAt: index < 3 ? 1 : 2 }));
      await insertServer(db, buildServer({ slug: 'foreign', workspaceId: 'theirs' }));
      const listSlugs = async (slugs: string[] | undefined, page: Page) => {
        const { rows, next: cursor } = await listServers(db, 'ours', slugs, page);
        return { slugs: rows.map((row) => row.slug), cursor };
      };
      const first = await listSlugs(undefined, { limit: 3, after: undefined });
      assert.deepEqual(first.slugs, ['four', 'five', 'two']);
      const second = await listSlugs(undefined, { limit: 3, after: decodeCursor(first.cursor ?? '') });
      assert.deepEqual(second, { slugs: ['three', 'one'], cursor: undefined });
      assert.deepEqual((await listSlugs(['one', 'five', 'foreign', 'none'], firstPage)).slugs, ['five', 'one']);
      assert.deepEqual((await listSlugs([], firstPage)).slugs, []);
    });

    it('seals a secret, opens it for the gateway, and lists it without its value', async () => {
      const server = buildServer();
      await insertServer(db, server);
      const origins = ['https://a.example', 'https://b.example'];
      const info = { name: 'KEY', origins, createdBy: 'key_1', updatedAt: 9 };
      const openKey = async () => (await openSecrets(db, keyring, server)).get('KEY');
      await saveSecret(db, keyring, server, { ...info, value: 'canary-of-the-secret' });
      await saveSecret(db, keyring, server, { ...info, name: 'A', origins: [], value: 'x' });
      assert.deepEqual(await findSecrets(db, server), [{ ...info, name: 'A', origins: [] }, info]);
      assert.deepEqual(await openKey(), { value: 'canary-of-the-secret', origins });
      const [row] = await db.selectFrom('secrets').selectAll().where('name', '=', 'KEY').execute();
      assert.doesNotMatch(JSON.stringify(row), /canary/);
      await saveSecret(db, keyring, server, { ...info, origins: ['https://c.example'], updatedAt: 10, value: 'newer' });
      assert.deepEqual(await openKey(), { value: 'newer', origins: ['https://c.example'] });
      assert.equal((await findSecrets(db, server))[1]?.updatedAt, 10);
    });

    it('deletes a secret once, and only for its own workspace', async () => {
      const server = buildServer();
      await insertServer(db, server);
      await saveSecret(db, keyring, server, secret);
      const foreign = { ...server, workspaceId: 'theirs' };
      assert.deepEqual(await findSecrets(db, foreign), []);
      assert.equal(await removeSecret(db, foreign, 'KEY'), false);
      assert.equal(await removeSecret(db, server, 'NONE'), false);
      assert.equal(await removeSecret(db, server, 'KEY'), true);
      assert.equal(await removeSecret(db, server, 'KEY'), false);
    });

    it('refuses to open a secret that was moved to another row, name, or workspace', async () => {
      const [server, other] = [buildServer(), buildServer({ slug: 'other' })];
      for (const row of [server, other]) await insertServer(db, row);
      for (const owner of [server, other]) await saveSecret(db, keyring, owner, { ...secret, value: owner.slug });
      const stored = db.selectFrom('secrets').select('sealed_value').where('server_id', '=', server.id);
      const sealed = await stored.executeTakeFirstOrThrow();
      for (const [owner, change, openedAs] of [
        [other, sealed, other],
        [server, { name: 'RENAMED' }, server],
        [server, { name: 'KEY', workspace_id: 'theirs' }, { ...server, workspaceId: 'theirs' }],
      ] as const) {
        await db.updateTable('secrets').set(change).where('server_id', '=', owner.id).execute();
        await assert.rejects(openSecrets(db, keyring, openedAs), /cannot be opened/);
      }
    });
  });

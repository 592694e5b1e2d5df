import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { formatApiKey } from '../src/domain/api-key.ts';
import { createApiKeyCheck } from '../src/gateway/api-key-check.ts';
import { createHostedServers } from '../src/gateway/hosted-servers.ts';
import { findApiKey, insertApiKey, revokeApiKey } from '../src/store/api-keys.ts';
import type { Db } from '../src/store/database.ts';
import { createKeyring } from '../src/store/sealing.ts';
import { insertServer, updateServer } from '../src/store/servers.ts';
import { insertWorkspace } from '../src/store/workspaces.ts';
import { anApiKey, aServer } from './support/rows.ts';
import { type Stores, startStores } from './support/stores.ts';

describe('what a process remembers of the database', () => {
  let stores: Stores;
  let db: Db;
  let fresh = true;
  before(async () => {
    stores = await startStores('sqlite');
  });
  after(() => stores.stop());
  beforeEach(async () => {
    ({ db } = await stores.open());
    await insertWorkspace(db, { id: 'ours', name: 'ours', at: 1 });
    fresh = true;
  });

  const storeKey = async () => {
    const { id, key } = formatApiKey(randomBytes(9), randomBytes(32));
    const secretHash = createHash('sha256').update(key).digest('hex');
    await insertApiKey(db, anApiKey({ id, secretHash, expiresAt: undefined }));
    return { id, key };
  };
  const keyCheck = () =>
    createApiKeyCheck(
      db,
      () => 1000,
      () => fresh,
    );
  const hostedServers = () =>
    createHostedServers({
      db,
      keyring: createKeyring([Buffer.alloc(32)]),
      isFresh: () => fresh,
      userAgent: 'test',
      defaultLimits: { callsPerSecond: 60, concurrentCalls: 50 },
    });

  it('a key is read once, until it is reported to have changed, or changes are no longer seen', async () => {
    const { id, key } = await storeKey();
    const check = keyCheck();
    assert.equal((await check.verify(key))?.id, id);
    await revokeApiKey(db, 'ours', id, 2);
    assert.equal((await check.verify(key))?.id, id);
    fresh = false;
    assert.equal(await check.verify(key), undefined);
    const again = await storeKey();
    fresh = true;
    await check.verify(again.key);
    await revokeApiKey(db, 'ours', again.id, 2);
    check.forget(again.id);
    assert.equal(await check.verify(again.key), undefined);
  });

  it('[sec E3] a key that changes while it is being read is read again', async () => {
    const { id, key } = await storeKey();
    const check = keyCheck();
    const reading = check.verify(key);
    check.forget(id);
    await reading;
    await revokeApiKey(db, 'ours', id, 2);
    assert.equal(await check.verify(key), undefined);
  });

  it('a key whose secret is another one is not valid, whatever its id', async () => {
    const { id } = await storeKey();
    const idBytes = randomBytes(9);
    const other = formatApiKey(idBytes, randomBytes(32));
    await insertApiKey(db, anApiKey({ ...(await findApiKey(db, id)), id: other.id, expiresAt: undefined }));
    assert.equal(await keyCheck().verify(other.key), undefined);
  });

  it('what is no key does not reach the database', async () => {
    const { key } = await storeKey();
    const check = keyCheck();
    await db.destroy();
    for (const junk of [
      '',
      'junk',
      key.slice(1),
      `${key.slice(0, -1)}!`,
      key.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
    ]) {
      assert.equal(await check.verify(junk), undefined);
    }
    await assert.rejects(async () => check.verify(key));
  });

  it('a server that changes while it is being read is read again, and several who ask at once share one reading', async () => {
    const first = aServer();
    await insertServer(db, first);
    const servers = hostedServers();
    const [one, two] = await Promise.all([servers.find('sample'), servers.find('sample')]);
    assert.equal(one, two);
    assert.equal(await servers.find('sample'), one);
    servers.forget(first.id);
    const reading = servers.find('sample');
    servers.forget('sample');
    await reading;
    await updateServer(db, { ...first, version: 2, config: { ...first.config, name: 'Second' } }, 'x');
    assert.equal((await servers.find('sample'))?.config.name, 'Second');
  });

  it('a slug that nobody served is served as soon as it is reported', async () => {
    const servers = hostedServers();
    assert.equal(await servers.find('sample'), undefined);
    await insertServer(db, aServer());
    servers.forget('sample');
    assert.equal((await servers.find('sample'))?.slug, 'sample');
  });
});

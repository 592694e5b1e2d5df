import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { formatApiKey } from '../../src/domain/ids.ts';
import { createHostedServers } from '../../src/gateway/hosted/hosted-servers.ts';
import { createApiKeyCheck, findApiKey, insertApiKey, markKeyRevoked } from '../../src/store/api-keys.ts';
import { createReadThroughCache } from '../../src/store/changes/cache.ts';
import type { Db } from '../../src/store/db.ts';
import { createKeyring } from '../../src/store/sealing/sealing.ts';
import { insertServer, updateServer } from '../../src/store/servers/servers.ts';
import { insertWorkspace } from '../../src/store/workspaces.ts';
import { anApiKey, aServer } from '../support/store/rows.ts';
import { type Stores, startStores } from '../support/store/stores.ts';

const minute = 60_000;

describe('the cache of a process', () => {
  let stores: Stores;
  let db: Db;
  let at = 0;
  const freshness = { clock: () => at, fresh: { until: Number.POSITIVE_INFINITY }, isUp: () => true };
  before(async () => {
    stores = await startStores('sqlite');
  });
  after(() => stores.stop());
  beforeEach(async () => {
    ({ db } = await stores.open());
    await insertWorkspace(db, { id: 'ours', name: 'ours', at: 1 });
    at = 0;
  });

  const storeKey = async () => {
    const { id, key } = formatApiKey(randomBytes(9), randomBytes(32));
    const secretHash = createHash('sha256').update(key).digest('hex');
    await insertApiKey(db, anApiKey({ id, secretHash, expiresAt: undefined }));
    return { id, key };
  };
  const keyCheck = () => createApiKeyCheck(db, { now: () => 1000, freshness, onUse: () => undefined });
  const hostedServers = () =>
    createHostedServers({
      db,
      keyring: createKeyring([Buffer.alloc(32)]),
      freshness,
      userAgent: 'test',
      defaultLimits: { callsPerSecond: 60, concurrentCalls: 50 },
    });

  it('[sec E3] reads a key again when it changes while it is being read', async () => {
    const { id, key } = await storeKey();
    const check = keyCheck();
    const reading = check.verify(key);
    check.invalidate(id);
    await reading;
    await markKeyRevoked(db, 'ours', id, 2);
    await assert.rejects(async () => check.verify(key), /was revoked at 1970-01-01T00:00:00Z/);
  });

  it('rejects a key with a wrong secret, regardless of its id', async () => {
    const { id } = await storeKey();
    const idBytes = randomBytes(9);
    const other = formatApiKey(idBytes, randomBytes(32));
    await insertApiKey(db, anApiKey({ ...(await findApiKey(db, id)), id: other.id, expiresAt: undefined }));
    assert.equal(await keyCheck().verify(other.key), undefined);
  });

  it('rejects a text that is not a key without querying the database', async () => {
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

  it('reads a server again when it changes while it is being read, once for all callers', async () => {
    const first = aServer();
    await insertServer(db, first);
    const servers = hostedServers();
    const [one, two] = await Promise.all([servers.find('sample'), servers.find('sample')]);
    assert.equal(one, two);
    assert.equal(await servers.find('sample'), one);
    servers.invalidate(first.id);
    const reading = servers.find('sample');
    servers.invalidate('sample');
    await reading;
    await updateServer(db, { ...first, version: 2, config: { ...first.config, name: 'Second' } }, 'x');
    assert.equal((await servers.find('sample'))?.config.name, 'Second');
  });

  it('[sec E3] never returns an old value after a change was reported', async () => {
    const keys = ['a', 'b', 'c'];
    const ask = fc.record({ kind: fc.constant('ask' as const), key: fc.constantFrom(...keys) });
    const change = fc.record({ kind: fc.constant('change' as const), key: fc.constantFrom(...keys) });
    const other = fc.constantFrom('answer', 'clear', 'pass time').map((kind) => ({ kind, key: '' }));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(ask, ask, change, other), { maxLength: 60 }), async (plan) => {
        at = 0;
        const stored: Record<string, number> = { a: 0, b: 0, c: 0 };
        const remembered = createReadThroughCache<{ key: string; n: number }>({
          max: 2,
          freshness,
          getIds: ({ key }) => [`id of ${key}`],
          getOwner: () => 'nobody',
        });
        const waiting: (() => void)[] = [];
        const asked: Promise<void>[] = [];
        const read = (key: string) => async () => {
          const value = { key, n: stored[key] as number };
          await new Promise<void>((resolve) => waiting.push(resolve));
          return { value };
        };
        for (const { kind, key } of plan) {
          if (kind === 'ask') {
            const reported = stored[key] as number;
            const given = remembered.get(key) ?? remembered.load(key, read(key));
            asked.push(Promise.resolve(given).then((value) => assert.ok(value && value.n >= reported)));
          } else if (kind === 'change') {
            stored[key] = (stored[key] as number) + 1;
            remembered.invalidate(`id of ${key}`);
          } else if (kind === 'answer') {
            waiting.shift()?.();
            await new Promise((resolve) => setImmediate(resolve));
          } else if (kind === 'clear') remembered.clear();
          else at += minute / 3;
        }
        for (const resolve of waiting) resolve();
        await Promise.all(asked);
        assert.ok(remembered.counts().entries <= 2);
      }),
    );
  });
});

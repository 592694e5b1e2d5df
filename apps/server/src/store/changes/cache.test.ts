import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import { formatApiKey } from '@toolhost/credentials/ids';
import fc from 'fast-check';
import { buildApiKey, buildServer } from '../../../../../test/support/store/rows.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import { createHostedServers } from '../../gateway/hosted/hosted-servers.ts';
import { createApiKeyCheck, findApiKey, insertApiKey, markKeyRevoked } from '../api-keys.ts';
import type { Db } from '../db.ts';
import { createKeyring } from '../sealing/sealing.ts';
import { insertServer, updateServer } from '../servers/servers.ts';
import { insertWorkspace } from '../workspaces.ts';
import { createReadThroughCache } from './cache.ts';

const minute = 60_000;

describe('the cache of a process', () => {
  const stores = useStores('sqlite');
  let db: Db;
  let clockMs = 0;
  const freshness = { clock: () => clockMs, fresh: { until: Number.POSITIVE_INFINITY }, isUp: () => true };

  beforeEach(async () => {
    ({ db } = await stores.open());
    await insertWorkspace(db, { id: 'ours', name: 'ours', at: 1 });
    clockMs = 0;
  });

  const storeKey = async () => {
    const { id, key } = formatApiKey(randomBytes(9), randomBytes(32));
    const secretHash = createHash('sha256').update(key).digest('hex');
    await insertApiKey(db, buildApiKey({ id, secretHash, expiresAt: undefined }));
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
    const pendingRead = check.verify(key);
    check.invalidate(id);
    await pendingRead;
    await markKeyRevoked(db, 'ours', id, 2);
    await assert.rejects(async () => check.verify(key), /was revoked at 1970-01-01T00:00:00Z/);
  });

  it('rejects a key with a wrong secret, regardless of its id', async () => {
    const { id } = await storeKey();
    const idBytes = randomBytes(9);
    const other = formatApiKey(idBytes, randomBytes(32));
    await insertApiKey(db, buildApiKey({ ...(await findApiKey(db, id)), id: other.id, expiresAt: undefined }));
    assert.equal(await keyCheck().verify(other.key), undefined);
  });

  it('rejects a text that is not a key without querying the database', async () => {
    const { key } = await storeKey();
    const check = keyCheck();
    await db.destroy();
    const misspelled = key.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    for (const junk of ['', 'junk', key.slice(1), `${key.slice(0, -1)}!`, misspelled])
      assert.equal(await check.verify(junk), undefined);
    await assert.rejects(async () => check.verify(key));
  });

  it('reads a server again when it changes while it is being read, once for all callers', async () => {
    const first = buildServer();
    await insertServer(db, first);
    const servers = hostedServers();
    const [firstServer, secondServer] = await Promise.all([servers.find('sample'), servers.find('sample')]);
    assert.equal(firstServer, secondServer);
    assert.equal(await servers.find('sample'), firstServer);
    servers.invalidate(first.id);
    const pendingRead = servers.find('sample');
    servers.invalidate('sample');
    await pendingRead;
    await updateServer(db, { ...first, version: 2, config: { ...first.config, name: 'Second' } }, 'x');
    assert.equal((await servers.find('sample'))?.config.name, 'Second');
  });

  it('[sec E3] never returns an old value after a change was reported', async () => {
    const keys = ['a', 'b', 'c'];
    const readStep = fc.record({ kind: fc.constant('ask' as const), key: fc.constantFrom(...keys) });
    const changeStep = fc.record({ kind: fc.constant('change' as const), key: fc.constantFrom(...keys) });
    const otherStep = fc.constantFrom('answer', 'clear', 'pass time').map((kind) => ({ kind, key: '' }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(readStep, readStep, changeStep, otherStep), { maxLength: 60 }),
        async (stepList) => {
          clockMs = 0;
          const stored: Record<string, number> = { a: 0, b: 0, c: 0 };
          const cache = createReadThroughCache<{ key: string; n: number }>({
            max: 2,
            freshness,
            getIds: ({ key }) => [`id of ${key}`],
            getOwner: () => 'absent',
          });
          const waiting: (() => void)[] = [];
          const results: Promise<void>[] = [];
          const createRead = (key: string) => async () => {
            const value = { key, n: stored[key] as number };
            await new Promise<void>((resolve) => waiting.push(resolve));
            return { value };
          };
          for (const { kind, key } of stepList) {
            if (kind === 'ask') {
              const minimumVersion = stored[key] as number;
              const result = cache.get(key) ?? cache.load(key, createRead(key));
              results.push(Promise.resolve(result).then((value) => assert.ok(value && value.n >= minimumVersion)));
            } else if (kind === 'change') {
              stored[key] = (stored[key] as number) + 1;
              cache.invalidate(`id of ${key}`);
            } else if (kind === 'answer') {
              waiting.shift()?.();
              await new Promise((resolve) => setImmediate(resolve));
            } else if (kind === 'clear') cache.clear();
            else clockMs += minute / 3;
          }
          for (const resolve of waiting) resolve();
          await Promise.all(results);
          assert.ok(cache.counts().entries <= 2);
        },
      ),
    );
  });
});

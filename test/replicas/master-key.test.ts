import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import type { MasterKeyStatus } from '../../apps/server/src/app/keys/master-keys.ts';
import type { ResealResult } from '../../apps/server/src/app/keys/reseal.ts';
import { createKeyring } from '../../apps/server/src/store/sealing/sealing.ts';
import { saveSecret } from '../../apps/server/src/store/servers/secrets.ts';
import { findServer } from '../../apps/server/src/store/servers/servers.ts';
import { engines } from '../sets.ts';
import { useStores } from '../support/store/use-stores.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command, runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const createMasterKey = () => randomBytes(32).toString('base64');
const getKeyId = (key: string) => createKeyring([Buffer.from(key, 'base64')]).keyIds[0];

const stored = { authentication: { type: 'Bearer', token: '{{TOKEN}}' } };

for (const engine of engines)
  describe(`master key on ${engine}`, () => {
    const fixtures = useFixtures();
    const parent = fixtures.folder();
    const stores = useStores(engine, fixtures);
    const upstream = fixtures.start(startRecordingUpstream);
    let env: Record<string, string>;
    let folder: string;
    let oldKey: string;
    beforeEach(async () => {
      const { postgres } = await stores.newOptions();
      folder = mkdtempSync(join(parent, 'test-'));
      oldKey = createMasterKey();
      env = { DATA_DIR: folder, ...(postgres && { DATABASE_URL: postgres.url }) };
      upstream.on('*', () => ({ body: {} }));
      upstream.take();
    });

    /** Runs work with a service that has these keys, or the file `master.key` without any. */
    const withToolhost = async <Result>(
      MASTER_KEY: string | undefined,
      work: (toolhost: TestToolhost) => Promise<Result>,
    ) => {
      const ownEnv = { ...env, ...(MASTER_KEY !== undefined && { MASTER_KEY }) };
      const toolhost = await startToolhost({ dataDir: folder, egressPorts: [upstream.port], env: ownEnv });
      try {
        return await work(toolhost);
      } finally {
        await toolhost.stop();
      }
    };
    const createServerWithSecret = async (toolhost: TestToolhost, slug: string) => {
      await toolhost.createServer(buildServerAt(slug, upstream.url, stored));
      const body = { value: `of-${slug}` };
      assert.equal((await toolhost.rest('PUT', `/servers/${slug}/secrets/TOKEN`, { body })).status, 200);
    };
    const assertSends = async (toolhost: TestToolhost, slug: string) => {
      upstream.take();
      assert.notEqual((await toolhost.callTool(slug, await toolhost.createKey(), 'get')).isError, true);
      assert.equal(upstream.take()[0]?.headers.authorization, `Bearer of-${slug}`);
    };
    const runCommand = (args: string[], MASTER_KEY: string) =>
      command(args, { env: { PORT: '0', ...env, MASTER_KEY } });
    const getStatus = (MASTER_KEY: string) =>
      runToolhostJson<MasterKeyStatus>(['master-key', 'status'], { env: { ...env, MASTER_KEY } });
    const reseal = (MASTER_KEY: string) =>
      runToolhostJson<ResealResult>(['master-key', 'reseal'], { env: { ...env, MASTER_KEY } });
    const startExpectingRefusal = async (MASTER_KEY: string, more: Record<string, string> = {}) => {
      const { code, stdout, stderr } = await command(['serve'], {
        env: { PORT: '0', DEMO: '0', ...env, MASTER_KEY, ...more },
      });
      assert.equal(code, 1, stdout);
      assert.doesNotMatch(stderr, /\n\s+at /, 'a stack trace was printed');
      for (const key of MASTER_KEY.split(',')) assert.ok(!stderr.includes(key), 'a key was printed');
      return stderr;
    };

    it('[find C2] refuses to start with another key, and starts again with the right one', async () => {
      await withToolhost(oldKey, (toolhost) => createServerWithSecret(toolhost, 'kept'));
      const wrongKey = createMasterKey();
      for (const more of [{}, { WORKERS: '2' }]) {
        const message = await startExpectingRefusal(wrongKey, more);
        assert.match(message, /MASTER_KEY does not have all keys of this database/);
        assert.match(message, new RegExp(`it has ${getKeyId(wrongKey)}.*${getKeyId(oldKey)}`));
        assert.match(message, /1 rows of secrets .*place it after the new one \(new,old\)/);
      }
      await withToolhost(oldKey, (toolhost) => assertSends(toolhost, 'kept'));
    });

    it('[find C2] refuses to start without an old key that is still in use, and names it', async () => {
      await withToolhost(oldKey, (toolhost) => createServerWithSecret(toolhost, 'kept'));
      const freshKey = createMasterKey();
      await withToolhost(`${freshKey},${oldKey}`, (toolhost) => createServerWithSecret(toolhost, 'later'));
      assert.match(await startExpectingRefusal(freshKey), new RegExp(`1 rows of secrets with ${getKeyId(oldKey)}`));
      const { keys, unreadable_secrets } = await getStatus(freshKey);
      assert.deepEqual(unreadable_secrets, [{ slug: 'kept', name: 'TOKEN', key: getKeyId(oldKey) }]);
      const [fresh, old] = [freshKey, oldKey].map((key) => keys.find(({ id }) => id === getKeyId(key)));
      assert.deepEqual([fresh?.in_ring, fresh?.seals, fresh?.opens, fresh?.rows.secrets], [true, true, true, 1]);
      assert.deepEqual([old?.in_ring, old?.rows.secrets], [false, 1]);
      const text = await runCommand(['master-key', 'status'], freshKey);
      const rows = [`${getKeyId(freshKey)}\\s+seals`, `${getKeyId(oldKey)}\\s+missing`, 'kept: TOKEN'];
      assert.match(text.stdout, new RegExp(rows.join('[\\s\\S]*')));
      for (const secret of [freshKey, oldKey])
        assert.ok(!(text.stdout + text.stderr + JSON.stringify(keys)).includes(secret));
      await withToolhost(`${freshKey},${oldKey}`, async (toolhost) => {
        await assertSends(toolhost, 'kept');
        await assertSends(toolhost, 'later');
      });
    });

    it('[find C2] reports a value that a paused process sealed with the old key after resealing', async () => {
      const freshKey = createMasterKey();
      await withToolhost(oldKey, (toolhost) => createServerWithSecret(toolhost, 'late'));
      await withToolhost(`${freshKey},${oldKey}`, async ({ running: { app } }) => {
        assert.deepEqual((await reseal(`${freshKey},${oldKey}`)).unused_keys, [getKeyId(oldKey)]);
        const server = (await findServer(app.runner.db, 'local', 'late')) ?? assert.fail();
        const paused = createKeyring([Buffer.from(oldKey, 'base64')]);
        const value = { name: 'TOKEN', value: 'of-late', origins: [], createdBy: 'test', updatedAt: 1 };
        await saveSecret(app.runner.db, paused, server, value);
      });
      assert.match(await startExpectingRefusal(freshKey), new RegExp(`1 rows of secrets with ${getKeyId(oldKey)}`));
      assert.equal((await reseal(`${freshKey},${oldKey}`)).resealed.secrets, 1);
      await withToolhost(freshKey, async (toolhost) => {
        await toolhost.rest('PUT', '/servers/late/secrets/TOKEN', { body: { value: 'of-late' } });
        await assertSends(toolhost, 'late');
      });
    });

    it('[find C2] refuses to reseal before the service seals with the new key', async () => {
      const freshKey = createMasterKey();
      const assertRefused = async (toolhost: TestToolhost) => {
        await createServerWithSecret(toolhost, 'kept');
        const { code, stderr } = await runCommand(['master-key', 'reseal'], `${freshKey},${oldKey}`);
        assert.equal(code, 1);
        const reason = `does not seal with the key ${getKeyId(freshKey)} yet.*\\(new,old\\) before you reseal`;
        assert.match(stderr, new RegExp(reason));
        await assertSends(toolhost, 'kept');
      };
      await withToolhost(oldKey, assertRefused);
      await withToolhost(`${oldKey},${freshKey}`, (toolhost) => assertSends(toolhost, 'kept'));
    });

    it('[find C2] discards the values of a lost key, and tells their owners which', async () => {
      await withToolhost(oldKey, (toolhost) => createServerWithSecret(toolhost, 'lost'));
      const freshKey = createMasterKey();
      const id = getKeyId(oldKey);
      const discard = (key: string, ring = freshKey) => runCommand(['master-key', 'reseal', '--discard', key], ring);
      assert.equal((await discard('nonsense')).code, 2);
      assert.match((await discard('00000000')).stderr, /no value is sealed with/);
      assert.match((await discard(id, `${freshKey},${oldKey}`)).stderr, /is in MASTER_KEY/);
      await withToolhost(oldKey, async () => {
        const { code, stderr } = await discard(id);
        assert.equal(code, 1);
        assert.match(stderr, /another toolhost process serves|a serving process on .* has the key/);
      });
      const discarded = await discard(id);
      assert.equal(discarded.code, 0, discarded.stderr);
      assert.match(discarded.stdout, /Deleted: 1 secrets, 0 models, 0 grants/);
      await withToolhost(freshKey, async (toolhost) => {
        const { body } = await toolhost.rest('GET', '/audit');
        const event = (body.events as Json[]).find(({ operation }) => operation === 'deleteSecret');
        assert.equal(event?.target, 'lost');
        assert.equal((event?.detail as Json | undefined)?.reason, 'its master key is lost');
        assert.equal((await toolhost.callTool('lost', await toolhost.createKey(), 'get')).isError, true);
        await createServerWithSecret(toolhost, 'again');
        await assertSends(toolhost, 'again');
      });
    });

    it('[find C2] refuses a lost or changed key file in local mode, and does not replace it', async () => {
      const file = join(folder, 'master.key');
      const withLocalToolhost = (work: (toolhost: TestToolhost) => Promise<void>) => withToolhost(undefined, work);
      const idle = async () => undefined;
      await withLocalToolhost((toolhost) => createServerWithSecret(toolhost, 'kept'));
      const storedKey = readFileSync(file, 'utf8');
      rmSync(file);
      await assert.rejects(withLocalToolhost(idle), /the file \S+master\.key does not have all keys of this database/);
      assert.equal(existsSync(file), false);
      const freshKey = createMasterKey();
      writeFileSync(file, freshKey);
      await assert.rejects(withLocalToolhost(idle), /does not have all keys of this database/);
      writeFileSync(file, `${freshKey},${storedKey}`);
      await withLocalToolhost(async (toolhost) => {
        await assertSends(toolhost, 'kept');
        await runToolhostJson(['master-key', 'reseal'], { env });
      });
      writeFileSync(file, freshKey);
      await withLocalToolhost((toolhost) => assertSends(toolhost, 'kept'));
    });
  });

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { MasterKeyStatus } from '../../apps/server/src/app/keys/master-keys.ts';
import type { ResealResult } from '../../apps/server/src/app/keys/reseal.ts';
import { createKeyring } from '../../apps/server/src/store/sealing/sealing.ts';
import { saveSecret } from '../../apps/server/src/store/servers/secrets.ts';
import { findServer } from '../../apps/server/src/store/servers/servers.ts';
import { engines } from '../sets.ts';
import { type Stores, startStores } from '../support/store/stores.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command, runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const createMasterKey = () => randomBytes(32).toString('base64');
const getKeyId = (key: string) => createKeyring([Buffer.from(key, 'base64')]).keyIds[0];

const stored = { authentication: { type: 'Bearer', token: '{{TOKEN}}' } };

for (const engine of engines) {
  describe(`master key on ${engine}`, () => {
    let stores: Stores;
    let upstream: RecordingUpstream;
    let env: Record<string, string>;
    let folder: string;
    let oldKey: string;
    before(async () => {
      [stores, upstream] = await Promise.all([startStores(engine), startRecordingUpstream()]);
    });
    after(async () => {
      await Promise.all([stores.stop(), upstream.close()]);
    });
    beforeEach(async () => {
      const { postgres } = await stores.newOptions();
      folder = mkdtempSync(join(tmpdir(), 'toolhost-key-'));
      oldKey = createMasterKey();
      env = { DATA_DIR: folder, ...(postgres && { DATABASE_URL: postgres.url }) };
      upstream.on('*', () => ({ body: {} }));
      upstream.take();
    });

    afterEach(() => rmSync(folder, { recursive: true, force: true }));

    const withToolhost = async <Result>(MASTER_KEY: string, work: (toolhost: TestToolhost) => Promise<Result>) => {
      const toolhost = await startToolhost({
        dataDir: folder,
        egressPorts: [upstream.port],
        env: { ...env, MASTER_KEY },
      });
      try {
        return await work(toolhost);
      } finally {
        await toolhost.stop();
      }
    };
    /** Creates a server whose calls send a stored secret. */
    const createServerWithSecret = async (toolhost: TestToolhost, slug: string) => {
      await toolhost.createServer(buildServerAt(slug, upstream.url, stored));
      const { status } = await toolhost.rest('PUT', `/servers/${slug}/secrets/TOKEN`, {
        body: { value: `of-${slug}` },
      });
      assert.equal(status, 200);
    };
    const assertSends = async (toolhost: TestToolhost, slug: string, value = `of-${slug}`) => {
      upstream.take();
      assert.notEqual((await toolhost.callTool(slug, await toolhost.createKey(), 'get')).isError, true);
      assert.equal(upstream.take()[0]?.headers.authorization, `Bearer ${value}`);
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
        assert.match(
          message,
          new RegExp(
            `MASTER_KEY does not have all keys of this database.*it has ${getKeyId(wrongKey)}.*${getKeyId(oldKey)}`,
          ),
        );
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
      const byId = Object.fromEntries(keys.map((key) => [key.id, key]));
      assert.deepEqual(
        [
          byId[getKeyId(freshKey)]?.in_ring,
          byId[getKeyId(freshKey)]?.seals,
          byId[getKeyId(freshKey)]?.opens,
          byId[getKeyId(freshKey)]?.rows.secrets,
        ],
        [true, true, true, 1],
      );
      assert.deepEqual([byId[getKeyId(oldKey)]?.in_ring, byId[getKeyId(oldKey)]?.rows.secrets], [false, 1]);
      const text = await runCommand(['master-key', 'status'], freshKey);
      assert.match(
        text.stdout,
        new RegExp(`${getKeyId(freshKey)}\\s+seals[\\s\\S]*${getKeyId(oldKey)}\\s+missing[\\s\\S]*kept: TOKEN`),
      );
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
        assert.match(
          stderr,
          new RegExp(`does not seal with the key ${getKeyId(freshKey)} yet.*\\(new,old\\) before you reseal`),
        );
        await assertSends(toolhost, 'kept');
      };
      await withToolhost(oldKey, assertRefused);
      await withToolhost(`${oldKey},${freshKey}`, (toolhost) => assertSends(toolhost, 'kept'));
    });

    it('[find C2] discards the values of a lost key, and tells their owners which', async () => {
      await withToolhost(oldKey, (toolhost) => createServerWithSecret(toolhost, 'lost'));
      const freshKey = createMasterKey();
      const id = getKeyId(oldKey);
      assert.equal((await runCommand(['master-key', 'reseal', '--discard', 'nonsense'], freshKey)).code, 2);
      assert.match(
        (await runCommand(['master-key', 'reseal', '--discard', '00000000'], freshKey)).stderr,
        /no value is sealed with/,
      );
      assert.match(
        (await runCommand(['master-key', 'reseal', '--discard', id], `${freshKey},${oldKey}`)).stderr,
        /is in MASTER_KEY/,
      );
      await withToolhost(oldKey, async () => {
        const { code, stderr } = await runCommand(['master-key', 'reseal', '--discard', id], freshKey);
        assert.equal(code, 1);
        assert.match(stderr, /another toolhost process serves|a serving process on .* has the key/);
      });
      const discarded = await runCommand(['master-key', 'reseal', '--discard', id], freshKey);
      assert.equal(discarded.code, 0, discarded.stderr);
      assert.match(discarded.stdout, /Deleted: 1 secrets, 0 models, 0 grants/);
      await withToolhost(freshKey, async (toolhost) => {
        const { body } = await toolhost.rest('GET', '/audit');
        const event = (body.events as Json[]).find(({ operation }) => operation === 'deleteSecret');
        assert.deepEqual(
          [event?.target, (event?.detail as Json | undefined)?.reason],
          ['lost', 'its master key is lost'],
        );
        assert.equal((await toolhost.callTool('lost', await toolhost.createKey(), 'get')).isError, true);
        await createServerWithSecret(toolhost, 'again');
        await assertSends(toolhost, 'again');
      });
    });

    it('[find C2] refuses a lost or changed key file in local mode, and does not replace it', async () => {
      const file = join(folder, 'master.key');
      const withLocalToolhost = async (work: (toolhost: TestToolhost) => Promise<void>) => {
        const toolhost = await startToolhost({ dataDir: folder, egressPorts: [upstream.port], env });
        try {
          await work(toolhost);
        } finally {
          await toolhost.stop();
        }
      };
      await withLocalToolhost((toolhost) => createServerWithSecret(toolhost, 'kept'));
      const storedKey = readFileSync(file, 'utf8');
      rmSync(file);
      await assert.rejects(
        withLocalToolhost(async () => undefined),
        /the file \S+master\.key does not have all keys of this database/,
      );
      assert.equal(existsSync(file), false);
      const freshKey = createMasterKey();
      writeFileSync(file, freshKey);
      await assert.rejects(
        withLocalToolhost(async () => undefined),
        /does not have all keys of this database/,
      );
      writeFileSync(file, `${freshKey},${storedKey}`);
      await withLocalToolhost(async (toolhost) => {
        await assertSends(toolhost, 'kept');
        await runToolhostJson(['master-key', 'reseal'], { env });
      });
      writeFileSync(file, freshKey);
      await withLocalToolhost((toolhost) => assertSends(toolhost, 'kept'));
    });
  });
}

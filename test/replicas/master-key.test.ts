import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { MasterKeyStatus } from '../../src/app/keys/master-keys.ts';
import type { ResealResult } from '../../src/app/keys/reseal.ts';
import { createKeyring } from '../../src/store/sealing/sealing.ts';
import { saveSecret } from '../../src/store/servers/secrets.ts';
import { findServer } from '../../src/store/servers/servers.ts';
import { engines } from '../sets.ts';
import { serverAt } from '../support/configs.ts';
import { type Stores, startStores } from '../support/store/stores.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost as command, toolhostJson } from '../support/toolhost/toolhost-command.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const newKey = () => randomBytes(32).toString('base64');
const idOf = (key: string) => createKeyring([Buffer.from(key, 'base64')]).keyIds[0];

const stored = { authentication: { type: 'Bearer', token: '{{TOKEN}}' } };

for (const engine of engines) {
  describe(`master key on ${engine}`, () => {
    let stores: Stores;
    let upstream: RecordingUpstream;
    let env: Record<string, string>;
    let folder: string;
    let old: string;
    before(async () => {
      [stores, upstream] = await Promise.all([startStores(engine), startRecordingUpstream()]);
    });
    after(async () => {
      await Promise.all([stores.stop(), upstream.close()]);
    });
    beforeEach(async () => {
      const { postgres } = await stores.newOptions();
      folder = mkdtempSync(join(tmpdir(), 'toolhost-key-'));
      old = newKey();
      env = { DATA_DIR: folder, ...(postgres && { DATABASE_URL: postgres.url }) };
      upstream.on('*', () => ({ body: {} }));
      upstream.take();
    });

    afterEach(() => rmSync(folder, { recursive: true, force: true }));

    const using = async <Result>(MASTER_KEY: string, work: (toolhost: TestToolhost) => Promise<Result>) => {
      const toolhost = await startToolhost({ dataDir: folder, egress: [upstream.port], env: { ...env, MASTER_KEY } });
      try {
        return await work(toolhost);
      } finally {
        await toolhost.stop();
      }
    };
    /** Creates a server whose calls send a stored secret. */
    const store = async (toolhost: TestToolhost, slug: string) => {
      await toolhost.createServer(serverAt(slug, upstream.url, stored));
      const { status } = await toolhost.rest('PUT', `/servers/${slug}/secrets/TOKEN`, {
        body: { value: `of-${slug}` },
      });
      assert.equal(status, 200);
    };
    const assertSends = async (toolhost: TestToolhost, slug: string, value = `of-${slug}`) => {
      upstream.take();
      assert.notEqual((await toolhost.callTool(slug, await toolhost.key(), 'get')).isError, true);
      assert.equal(upstream.take()[0]?.headers.authorization, `Bearer ${value}`);
    };
    const run = (args: string[], MASTER_KEY: string) => command(args, { env: { PORT: '0', ...env, MASTER_KEY } });
    const status = (MASTER_KEY: string) =>
      toolhostJson<MasterKeyStatus>(['master-key', 'status'], { env: { ...env, MASTER_KEY } });
    const reseal = (MASTER_KEY: string) =>
      toolhostJson<ResealResult>(['master-key', 'reseal'], { env: { ...env, MASTER_KEY } });
    const refused = async (MASTER_KEY: string, more: Record<string, string> = {}) => {
      const { code, stdout, stderr } = await command(['serve'], {
        env: { PORT: '0', DEMO: '0', ...env, MASTER_KEY, ...more },
      });
      assert.equal(code, 1, stdout);
      assert.doesNotMatch(stderr, /\n\s+at /, 'a stack trace was printed');
      for (const key of MASTER_KEY.split(',')) assert.ok(!stderr.includes(key), 'a key was printed');
      return stderr;
    };

    it('[find C2] refuses to start with another key, and starts again with the right one', async () => {
      await using(old, (toolhost) => store(toolhost, 'kept'));
      const wrong = newKey();
      for (const more of [{}, { WORKERS: '2' }]) {
        const said = await refused(wrong, more);
        assert.match(
          said,
          new RegExp(`MASTER_KEY does not have all keys of this database.*it has ${idOf(wrong)}.*${idOf(old)}`),
        );
        assert.match(said, /1 rows of secrets .*place it after the new one \(new,old\)/);
      }
      await using(old, (toolhost) => assertSends(toolhost, 'kept'));
    });

    it('[find C2] refuses to start without an old key that is still in use, and names it', async () => {
      await using(old, (toolhost) => store(toolhost, 'kept'));
      const fresh = newKey();
      await using(`${fresh},${old}`, (toolhost) => store(toolhost, 'later'));
      assert.match(await refused(fresh), new RegExp(`1 rows of secrets with ${idOf(old)}`));
      const { keys, unreadable_secrets } = await status(fresh);
      assert.deepEqual(unreadable_secrets, [{ slug: 'kept', name: 'TOKEN', key: idOf(old) }]);
      const byId = Object.fromEntries(keys.map((key) => [key.id, key]));
      assert.deepEqual(
        [
          byId[idOf(fresh)]?.in_ring,
          byId[idOf(fresh)]?.seals,
          byId[idOf(fresh)]?.opens,
          byId[idOf(fresh)]?.rows.secrets,
        ],
        [true, true, true, 1],
      );
      assert.deepEqual([byId[idOf(old)]?.in_ring, byId[idOf(old)]?.rows.secrets], [false, 1]);
      const text = await run(['master-key', 'status'], fresh);
      assert.match(
        text.stdout,
        new RegExp(`${idOf(fresh)}\\s+seals[\\s\\S]*${idOf(old)}\\s+missing[\\s\\S]*kept: TOKEN`),
      );
      for (const secret of [fresh, old])
        assert.ok(!(text.stdout + text.stderr + JSON.stringify(keys)).includes(secret));
      await using(`${fresh},${old}`, async (toolhost) => {
        await assertSends(toolhost, 'kept');
        await assertSends(toolhost, 'later');
      });
    });

    it('[find C2] reports a value that a paused process sealed with the old key after resealing', async () => {
      const fresh = newKey();
      await using(old, (toolhost) => store(toolhost, 'late'));
      await using(`${fresh},${old}`, async ({ running: { app } }) => {
        assert.deepEqual((await reseal(`${fresh},${old}`)).unused_keys, [idOf(old)]);
        const server = (await findServer(app.runner.db, 'local', 'late')) ?? assert.fail();
        const paused = createKeyring([Buffer.from(old, 'base64')]);
        const value = { name: 'TOKEN', value: 'of-late', origins: [], createdBy: 'test', updatedAt: 1 };
        await saveSecret(app.runner.db, paused, server, value);
      });
      assert.match(await refused(fresh), new RegExp(`1 rows of secrets with ${idOf(old)}`));
      assert.equal((await reseal(`${fresh},${old}`)).resealed.secrets, 1);
      await using(fresh, async (toolhost) => {
        await toolhost.rest('PUT', '/servers/late/secrets/TOKEN', { body: { value: 'of-late' } });
        await assertSends(toolhost, 'late');
      });
    });

    it('[find C2] refuses to reseal before the service seals with the new key', async () => {
      const fresh = newKey();
      const running = async (toolhost: TestToolhost) => {
        await store(toolhost, 'kept');
        const { code, stderr } = await run(['master-key', 'reseal'], `${fresh},${old}`);
        assert.equal(code, 1);
        assert.match(
          stderr,
          new RegExp(`does not seal with the key ${idOf(fresh)} yet.*\\(new,old\\) before you reseal`),
        );
        await assertSends(toolhost, 'kept');
      };
      await using(old, running);
      await using(`${old},${fresh}`, (toolhost) => assertSends(toolhost, 'kept'));
    });

    it('[find C2] discards the values of a lost key, and tells their owners which', async () => {
      await using(old, (toolhost) => store(toolhost, 'lost'));
      const fresh = newKey();
      const id = idOf(old);
      assert.equal((await run(['master-key', 'reseal', '--discard', 'nonsense'], fresh)).code, 2);
      assert.match(
        (await run(['master-key', 'reseal', '--discard', '00000000'], fresh)).stderr,
        /no value is sealed with/,
      );
      assert.match(
        (await run(['master-key', 'reseal', '--discard', id], `${fresh},${old}`)).stderr,
        /is in MASTER_KEY/,
      );
      await using(old, async () => {
        const { code, stderr } = await run(['master-key', 'reseal', '--discard', id], fresh);
        assert.equal(code, 1);
        assert.match(stderr, /another toolhost process serves|a serving process on .* has the key/);
      });
      const given = await run(['master-key', 'reseal', '--discard', id], fresh);
      assert.equal(given.code, 0, given.stderr);
      assert.match(given.stdout, /Deleted: 1 secrets, 0 models, 0 grants/);
      await using(fresh, async (toolhost) => {
        const { body } = await toolhost.rest('GET', '/audit');
        const event = (body.events as Json[]).find(({ operation }) => operation === 'deleteSecret');
        assert.deepEqual(
          [event?.target, (event?.detail as Json | undefined)?.reason],
          ['lost', 'its master key is lost'],
        );
        assert.equal((await toolhost.callTool('lost', await toolhost.key(), 'get')).isError, true);
        await store(toolhost, 'again');
        await assertSends(toolhost, 'again');
      });
    });

    it('[find C2] refuses a lost or changed key file in local mode, and does not replace it', async () => {
      const file = join(folder, 'master.key');
      const local = async (work: (toolhost: TestToolhost) => Promise<void>) => {
        const toolhost = await startToolhost({ dataDir: folder, egress: [upstream.port], env });
        try {
          await work(toolhost);
        } finally {
          await toolhost.stop();
        }
      };
      await local((toolhost) => store(toolhost, 'kept'));
      const kept = readFileSync(file, 'utf8');
      rmSync(file);
      await assert.rejects(
        local(async () => undefined),
        /the file \S+master\.key does not have all keys of this database/,
      );
      assert.equal(existsSync(file), false);
      const fresh = newKey();
      writeFileSync(file, fresh);
      await assert.rejects(
        local(async () => undefined),
        /does not have all keys of this database/,
      );
      writeFileSync(file, `${fresh},${kept}`);
      await local(async (toolhost) => {
        await assertSends(toolhost, 'kept');
        await toolhostJson(['master-key', 'reseal'], { env });
      });
      writeFileSync(file, fresh);
      await local((toolhost) => assertSends(toolhost, 'kept'));
    });
  });
}

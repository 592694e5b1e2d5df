import assert from 'node:assert/strict';
import { copyFileSync, createWriteStream, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { after, before, describe, it } from 'node:test';
import { createGzip } from 'node:zlib';
import type { BackupReport } from '../../apps/server/src/app/backups.ts';
import { engines } from '../sets.ts';
import { readBackupLines, readBackupRows, writeBackup } from '../support/store/backup-text.ts';
import { type BackupFixture, masterKey, startBackupFixture } from '../support/toolhost/backup-fixture.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

const otherKey = 'Zx0pVdvl5R7mDnq3PaY1uH8kTjW2sOeC4bQfGi6XyNo=';
/** Minimum number of servers to create: more than a list operation returns by default (50). */
const minCreatedServers = 60;

describe('backup and restore', () => {
  let world: BackupFixture;
  before(async () => {
    world = await startBackupFixture(engines);
  });
  after(() => world?.stopAll());

  /** Serves a service with a server whose API key is a stored secret. */
  async function serveWithSecret(env: Record<string, string>, slug = 'sealed'): Promise<TestToolhost> {
    const running = await world.serve(env);
    const authentication = { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' };
    await running.createServer(buildServerAt(slug, world.upstream.url, { authentication }));
    const { status } = await running.rest('PUT', `/servers/${slug}/secrets/KEY`, { body: { value: 'the-api-secret' } });
    assert.equal(status, 200);
    return running;
  }

  for (const engine of engines) {
    it(`reports in the metrics when the last backup was made on ${engine}, and how busy the connection pool is`, async () => {
      const env = await world.newDatabase(engine);
      const { url } = await world.serve(env);
      const since = Date.now() / 1000;
      await world.backUp(env);
      const metrics = await scrapeMetrics(url);
      assert.ok(metrics.value('toolhost_leader_job_success_timestamp_seconds', { work: 'backup' }) >= since);
      const hasPool = metrics.families.get('toolhost_database_connections')?.labels.has('state');
      assert.equal(hasPool, engine === 'postgres');
    });

    it(`[ship 3] takes a consistent backup while the service on ${engine} is being written to`, async () => {
      const env = await world.newDatabase(engine);
      const running = await world.serve(env);
      const key = await running.createKey({ scopes: ['call'] });
      await running.createServer(buildServerAt('called', world.upstream.url));
      let shouldStop = false;
      let createdCount = 0;
      const createServers = async () => {
        for (; !shouldStop || createdCount < minCreatedServers; createdCount++) {
          await running.createServer(buildServerAt(`many-${createdCount}`, world.upstream.url));
        }
      };
      const failedCalls: unknown[] = [];
      const callRepeatedly = async () => {
        while (!shouldStop) {
          const { isError } = await running.callTool('called', key, 'get');
          if (isError) failedCalls.push(isError);
        }
      };
      const work = [createServers(), callRepeatedly()];
      const files = [await world.backUp(env), await world.backUp(env)];
      shouldStop = true;
      await Promise.all(work);
      await world.stop(running);
      assert.deepEqual(failedCalls, []);
      const sizes = files.map((file) => {
        const rows = readBackupRows(file);
        // Each creation stores one row in each table, in one transaction.
        const creations = rows.get('audit_events')?.filter((line) => line.includes('createMcpServer')).length;
        assert.equal(rows.get('server_versions')?.length, rows.get('servers')?.length);
        assert.equal(creations, rows.get('servers')?.length);
        return rows.get('servers')?.length ?? 0;
      });
      assert.ok((sizes[0] ?? 0) <= (sizes[1] ?? 0) && (sizes[1] ?? 0) <= createdCount + 1, String(sizes));
    });

    it(`[ship 3] restores keys, servers, and secrets on ${engine} so that the service works as before`, async () => {
      const env = await world.newDatabase('sqlite');
      const running = await serveWithSecret(env);
      const key = await running.createKey({ scopes: ['call'] });
      await world.stop(running);
      const restoredService = await world.serve(await world.restoreToNewDatabase(engine, await world.backUp(env)));
      try {
        const before = world.upstream.requests.length;
        const { isError } = await restoredService.callTool('sealed', key, 'get');
        assert.equal(isError, undefined);
        assert.equal(world.upstream.requests[before]?.headers['x-key'], 'the-api-secret');
      } finally {
        await world.stop(restoredService);
      }
    });

    it(`[ship 3] refuses to restore where ${engine} already has a database, and leaves it unchanged`, async () => {
      const env = await world.newDatabase(engine);
      const running = await world.serve(env);
      await running.createServer(buildServerAt('kept', world.upstream.url));
      const file = await world.backUp(env);
      for (const _state of ['running', 'stopped']) {
        const { code, stderr } = await runToolhostCommand(['restore', file], { env });
        assert.equal(code, 1);
        assert.match(stderr, /^error: .*(already exists|is not empty).*restore into an empty/);
        await world.stop(running);
      }
      assert.ok(
        readBackupRows(await world.backUp(env))
          .get('servers')
          ?.some((line) => line.includes('"kept"')),
      );
    });

    it(`[ship 3] refuses to restore the backup of a newer version on ${engine}, and leaves nothing behind`, async () => {
      const source = await world.newDatabase('sqlite');
      await world.stop(await world.serve(source));
      const lines = readBackupLines(await world.backUp(source));
      const header = JSON.parse(lines[0] ?? '') as { migrations: object[]; version: string };
      const newer = { name: '9999-newer.sql', applied_at: 1, checksum: 'x', version: '9.1.0', readable_by: '0.1.0' };
      const headers = [
        { ...header, version: '9.1.0', migrations: [...header.migrations, newer] },
        { ...header, version: '9.1.0', toolhost_backup: 3 },
      ];
      const env = await world.newDatabase(engine);
      for (const changed of headers) {
        const file = world.newPath('newer');
        writeBackup(file, [JSON.stringify(changed), ...lines.slice(1)]);
        for (const command of engine === 'sqlite' ? ['restore', 'verify'] : ['restore']) {
          const { code, stderr } = await runToolhostCommand([command, file], { env });
          assert.equal(code, 1);
          assert.match(
            stderr,
            /restore it with (version 9\.1\.0|the toolhost version that created it) or a newer one\n$/,
          );
        }
      }
      assert.equal((await runToolhostCommand(['backup', world.newPath('backup')], { env })).code, 1);
      await world.restore(await world.backUp(source), env);
    });
  }

  it('[ship 3] reports the values that a key ring cannot decrypt, and serves only with the right keys', async () => {
    const env = await world.newDatabase('sqlite');
    const running = await serveWithSecret(env, 'needs-key');
    await world.stop(running);
    const file = await world.backUp(env);
    const verify = async (path: string, key: string) => {
      const { code, stdout, stderr } = await runToolhostCommand(['verify', path, '--json'], {
        env: { DATA_DIR: world.folder, ...(key && { MASTER_KEY: key }) },
      });
      assert.equal(stderr, '');
      return { code, ...(JSON.parse(stdout) as BackupReport) };
    };
    const right = await verify(file, `${otherKey},${masterKey}`);
    assert.deepEqual([right.code, right.unreadable, right.unreadable_secrets], [0, {}, []]);
    const wrong = await verify(file, otherKey);
    const [{ id = '' } = {}] = wrong.keys;
    assert.deepEqual(
      [wrong.code, wrong.unreadable, wrong.unreadable_secrets, wrong.keys],
      [
        1,
        { secrets: 1, master_keys: 1 },
        [{ slug: 'needs-key', name: 'KEY', key: id }],
        [{ id, in_ring: false, rows: { secrets: 1, master_keys: 1 } }],
      ],
    );
    const withoutKey = await verify(file, '');
    assert.deepEqual([withoutKey.code, withoutKey.tried, withoutKey.unreadable], [0, false, {}]);
    const { stdout } = await runToolhostCommand(['verify', file], {
      env: { MASTER_KEY: otherKey, DATA_DIR: world.folder },
    });
    assert.match(
      stdout,
      new RegExp(`Cannot be decrypted with the available keys: 1 secrets, 1 master_keys\n  needs-key: KEY \\(${id}\\)`),
    );
    const target = await world.restoreToNewDatabase('sqlite', file);
    await assert.rejects(
      startToolhost({ dataDir: target.DATA_DIR ?? '', env: { MASTER_KEY: otherKey } }),
      (error: Error) => error.message.includes(id),
    );
    // A value that was moved to another row cannot be decrypted with any key.
    const movedFile = world.newPath('moved');
    writeBackup(
      movedFile,
      readBackupLines(file).map((line) => line.replace('"KEY","v1.', '"KEZ","v1.')),
    );
    const moved = await verify(movedFile, masterKey);
    assert.deepEqual([moved.code, moved.unreadable], [1, { secrets: 1 }]);
  });

  it('[ship 3] refuses to restore a damaged backup, and leaves no database behind', async () => {
    const env = await world.newDatabase('sqlite');
    await world.stop(await serveWithSecret(env));
    const lines = readBackupLines(await world.backUp(env));
    const row = lines.findIndex((line) => line.startsWith('['));
    const [, ...withoutHeader] = lines;
    const damagedBackups: Record<string, string[]> = {
      'the end is missing': lines.slice(0, -2),
      'a row is missing': lines.toSpliced(row, 1),
      'a row is twice': lines.toSpliced(row, 0, lines[row] ?? ''),
      'a row is too short': lines.with(row, '[1]'),
      'a value is an object': lines.with(row, '[{}]'),
      'a line is no JSON': lines.with(row, '[1,'),
      'a row references a missing row': lines.map((line) =>
        line.replace(/^\["srv_\w+","local",1,/, '["srv_none","local",1,'),
      ),
      'the header is missing': withoutHeader,
      'the end is twice': lines.toSpliced(-1, 0, lines.at(-2) ?? ''),
      'a table is unknown': lines.toSpliced(1, 0, '{"table":"passwords","columns":["a"]}'),
      'a table is not ours': lines.toSpliced(1, 0, '{"table":"migrations","columns":["name"]}'),
    };
    for (const [name, changed] of Object.entries(damagedBackups)) {
      const file = world.newPath('damaged');
      writeBackup(file, changed);
      const target = await world.newDatabase('sqlite');
      const { code, stderr } = await runToolhostCommand(['restore', file], { env: target });
      assert.deepEqual([code, existsSync(join(target.DATA_DIR ?? '', 'toolhost.sqlite'))], [1, false], name);
      assert.match(stderr, /^error: the backup is damaged: /, name);
      assert.deepEqual(readdirSync(target.DATA_DIR ?? ''), ['toolhost.sqlite.lock'], name);
    }
  });

  it('[F5] refuses a backup at an invalid line, however long the line is', async () => {
    const chunk = Buffer.alloc(1_000_000, '[');
    for (const [chunkCount, errorPattern] of [
      [200, /a line is longer than 33554432 bytes/],
      [30, /a line is not the JSON of a row/],
    ] as const) {
      const file = world.newPath('long');
      const text = Readable.from(Array.from({ length: chunkCount }, () => chunk));
      await pipeline(text, createGzip({ level: 1 }), createWriteStream(file));
      for (const command of ['verify', 'restore']) {
        const { code, stderr } = await assertWithinDeadline(20_000, () =>
          runToolhostCommand([command, file], { env: { DATA_DIR: world.newPath('none') } }),
        );
        assert.equal(code, 1);
        assert.match(stderr, errorPattern);
      }
    }
  });

  it('[ship 3] writes a backup that only its owner can read, completely or not at all, and never over another file', async () => {
    const env = await world.newDatabase('sqlite');
    await world.stop(await world.serve(env));
    const file = await world.backUp(env);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const copy = world.newPath('copy');
    copyFileSync(file, copy);
    const secondBackup = await runToolhostCommand(['backup', file], { env });
    assert.deepEqual([secondBackup.code, secondBackup.stdout], [1, '']);
    assert.match(secondBackup.stderr, /already exists; choose another name for the backup/);
    assert.deepEqual(readBackupLines(file), readBackupLines(copy));
    const missingFolder = await runToolhostCommand(['backup', join(world.folder, 'no', 'such')], { env });
    assert.deepEqual([missingFolder.code, missingFolder.stderr.includes('ENOENT')], [1, true]);
    const missingFile = await runToolhostCommand(['verify', join(world.folder, 'none')], { env });
    assert.deepEqual(
      [missingFile.code, missingFile.stderr],
      [1, `error: the file ${join(world.folder, 'none')} does not exist\n`],
    );
    const empty = await runToolhostCommand(['backup', world.newPath('empty')], {
      env: await world.newDatabase('sqlite'),
    });
    assert.deepEqual([empty.code, /there is no database in/.test(empty.stderr)], [1, true]);
  });
});

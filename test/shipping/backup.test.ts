import assert from 'node:assert/strict';
import { copyFileSync, createWriteStream, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { after, before, describe, it } from 'node:test';
import { createGzip } from 'node:zlib';
import type { BackupReport } from '../../src/app/backups.ts';
import { engines } from '../sets.ts';
import { serverAt } from '../support/configs.ts';
import { onTime } from '../support/on-time.ts';
import { backupLines, backupRows, writeBackup } from '../support/store/backup-text.ts';
import { type BackupWorld, masterKey, startBackupWorld } from '../support/toolhost/backup-world.ts';
import { scrape } from '../support/toolhost/scrape.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

const otherKey = 'Zx0pVdvl5R7mDnq3PaY1uH8kTjW2sOeC4bQfGi6XyNo=';
/**
 * Minimum number of servers to create. Their rows exceed the default limit of a command: the backup covers a whole
 * service.
 */
const manyRows = 60;

describe('backup and restore', () => {
  let world: BackupWorld;
  before(async () => {
    world = await startBackupWorld(engines);
  });
  after(() => world?.end());

  /** Serves a service with a server whose API key is a stored secret. */
  async function withSecret(env: Record<string, string>, slug = 'sealed'): Promise<TestToolhost> {
    const running = await world.serve(env);
    const authentication = { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' };
    await running.createServer(serverAt(slug, world.upstream.url, { authentication }));
    const { status } = await running.rest('PUT', `/servers/${slug}/secrets/KEY`, { body: { value: 'the-api-secret' } });
    assert.equal(status, 200);
    return running;
  }

  for (const engine of engines) {
    it(`reports in the metrics when the last backup was made on ${engine}, and how busy the connection pool is`, async () => {
      const env = await world.newDatabase(engine);
      const { url } = await world.serve(env);
      const since = Date.now() / 1000;
      await world.backupOf(env);
      const metrics = await scrape(url);
      assert.ok(metrics.value('toolhost_work_done_timestamp_seconds', { work: 'backup' }) >= since);
      const hasPool = metrics.families.get('toolhost_database_connections')?.labels.has('state');
      assert.equal(hasPool, engine === 'postgres');
    });

    it(`[ship 3] takes a consistent backup while the service on ${engine} is being written to`, async () => {
      const env = await world.newDatabase(engine);
      const running = await world.serve(env);
      const key = await running.key({ scopes: ['call'] });
      await running.createServer(serverAt('called', world.upstream.url));
      let isOver = false;
      let created = 0;
      const create = async () => {
        for (; !isOver || created < manyRows; created++) {
          await running.createServer(serverAt(`many-${created}`, world.upstream.url));
        }
      };
      const failed: unknown[] = [];
      const call = async () => {
        while (!isOver) {
          const { isError } = await running.callTool('called', key, 'get');
          if (isError) failed.push(isError);
        }
      };
      const work = [create(), call()];
      const files = [await world.backupOf(env), await world.backupOf(env)];
      isOver = true;
      await Promise.all(work);
      await world.stop(running);
      assert.deepEqual(failed, []);
      const sizes = files.map((file) => {
        const rows = backupRows(file);
        // Each creation stores one row in each table, in one transaction.
        const creations = rows.get('audit_events')?.filter((line) => line.includes('createMcpServer')).length;
        assert.equal(rows.get('server_versions')?.length, rows.get('servers')?.length);
        assert.equal(creations, rows.get('servers')?.length);
        return rows.get('servers')?.length ?? 0;
      });
      assert.ok((sizes[0] ?? 0) <= (sizes[1] ?? 0) && (sizes[1] ?? 0) <= created + 1, String(sizes));
    });

    it(`[ship 3] restores keys, servers, and secrets on ${engine} so that the service works as before`, async () => {
      const env = await world.newDatabase('sqlite');
      const running = await withSecret(env);
      const key = await running.key({ scopes: ['call'] });
      await world.stop(running);
      const again = await world.serve(await world.restored(engine, await world.backupOf(env)));
      try {
        const before = world.upstream.requests.length;
        const { isError } = await again.callTool('sealed', key, 'get');
        assert.equal(isError, undefined);
        assert.equal(world.upstream.requests[before]?.headers['x-key'], 'the-api-secret');
      } finally {
        await world.stop(again);
      }
    });

    it(`[ship 3] refuses to restore where ${engine} already has a database, and leaves it unchanged`, async () => {
      const env = await world.newDatabase(engine);
      const running = await world.serve(env);
      await running.createServer(serverAt('kept', world.upstream.url));
      const file = await world.backupOf(env);
      for (const _state of ['running', 'stopped']) {
        const { code, stderr } = await toolhost(['restore', file], { env });
        assert.equal(code, 1);
        assert.match(stderr, /^error: .*(already exists|is not empty).*restore into an empty/);
        await world.stop(running);
      }
      assert.ok(
        backupRows(await world.backupOf(env))
          .get('servers')
          ?.some((line) => line.includes('"kept"')),
      );
    });

    it(`[ship 3] refuses to restore the backup of a newer version on ${engine}, and leaves nothing behind`, async () => {
      const source = await world.newDatabase('sqlite');
      await world.stop(await world.serve(source));
      const lines = backupLines(await world.backupOf(source));
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
          const { code, stderr } = await toolhost([command, file], { env });
          assert.equal(code, 1);
          assert.match(
            stderr,
            /restore it with (version 9\.1\.0|the toolhost version that created it) or a newer one\n$/,
          );
        }
      }
      assert.equal((await toolhost(['backup', world.newPath('backup')], { env })).code, 1);
      await world.restore(await world.backupOf(source), env);
    });
  }

  it('[ship 3] reports the values that a key ring cannot decrypt, and serves only with the right keys', async () => {
    const env = await world.newDatabase('sqlite');
    const running = await withSecret(env, 'needs-key');
    await world.stop(running);
    const file = await world.backupOf(env);
    const verify = (key: string) =>
      toolhost(['verify', file, '--json'], { env: { DATA_DIR: world.folder, ...(key && { MASTER_KEY: key }) } });
    const read = async (key: string) => {
      const { code, stdout, stderr } = await verify(key);
      assert.equal(stderr, '');
      return { code, report: JSON.parse(stdout) as BackupReport };
    };
    const right = await read(`${otherKey},${masterKey}`);
    assert.deepEqual([right.code, right.report.unreadable, right.report.unreadable_secrets], [0, {}, []]);
    const wrong = await read(otherKey);
    const [{ id = '' } = {}] = wrong.report.keys;
    assert.deepEqual(
      [wrong.code, wrong.report.unreadable, wrong.report.unreadable_secrets],
      [1, { secrets: 1, master_keys: 1 }, [{ slug: 'needs-key', name: 'KEY', key: id }]],
    );
    assert.deepEqual(wrong.report.keys, [{ id, in_ring: false, rows: { secrets: 1, master_keys: 1 } }]);
    const none = await read('');
    assert.deepEqual([none.code, none.report.tried, none.report.unreadable], [0, false, {}]);
    const { stdout } = await toolhost(['verify', file], { env: { MASTER_KEY: otherKey, DATA_DIR: world.folder } });
    assert.match(
      stdout,
      new RegExp(`Cannot be decrypted with the available keys: 1 secrets, 1 master_keys\n  needs-key: KEY \\(${id}\\)`),
    );
    const target = await world.restored('sqlite', file);
    await assert.rejects(
      startToolhost({ dataDir: target.DATA_DIR ?? '', env: { MASTER_KEY: otherKey } }),
      (error: Error) => error.message.includes(id),
    );
    // A value that was moved to another row cannot be decrypted with any key.
    const moved = world.newPath('moved');
    const lines = backupLines(file).map((line) => line.replace('"KEY","v1.', '"KEZ","v1.'));
    writeBackup(moved, lines);
    const judged = await toolhost(['verify', moved, '--json'], {
      env: { MASTER_KEY: masterKey, DATA_DIR: world.folder },
    });
    assert.deepEqual([judged.code, (JSON.parse(judged.stdout) as BackupReport).unreadable], [1, { secrets: 1 }]);
  });

  it('[ship 3] refuses to restore a damaged backup, and leaves no database behind', async () => {
    const env = await world.newDatabase('sqlite');
    await world.stop(await withSecret(env));
    const lines = backupLines(await world.backupOf(env));
    const row = lines.findIndex((line) => line.startsWith('['));
    const [, ...withoutHeader] = lines;
    const damages: Record<string, string[]> = {
      'the end is missing': lines.slice(0, -2),
      'a row is missing': lines.toSpliced(row, 1),
      'a row is twice': lines.toSpliced(row, 0, lines[row] ?? ''),
      'a row is too short': lines.with(row, '[1]'),
      'a value is an object': lines.with(row, '[{}]'),
      'a line is no JSON': lines.with(row, '[1,'),
      'the header is missing': withoutHeader,
      'there is more after the end': [...lines, lines.at(-1) ?? ''],
      'the end is twice': lines.toSpliced(-1, 0, lines.at(-2) ?? ''),
      'a table is unknown': lines.toSpliced(1, 0, '{"table":"passwords","columns":["a"]}'),
      'a table is not ours': lines.toSpliced(1, 0, '{"table":"migrations","columns":["name"]}'),
    };
    for (const [name, changed] of Object.entries(damages)) {
      const file = world.newPath('damaged');
      writeBackup(file, changed);
      const target = await world.newDatabase('sqlite');
      const { code, stderr } = await toolhost(['restore', file], { env: target });
      assert.deepEqual([code, existsSync(join(target.DATA_DIR ?? '', 'toolhost.sqlite'))], [1, false], name);
      assert.match(stderr, /^error: the backup is damaged: /, name);
      assert.deepEqual(readdirSync(target.DATA_DIR ?? ''), ['toolhost.sqlite.lock'], name);
    }
  });

  it('[F5] refuses a backup at an invalid line, however long the line is', async () => {
    const piece = Buffer.alloc(1_000_000, '[');
    for (const [pieces, why] of [
      [200, /a line is longer than 33554432 bytes/],
      [30, /a line is not the JSON of a row/],
    ] as const) {
      const file = world.newPath('long');
      const text = Readable.from(Array.from({ length: pieces }, () => piece));
      await pipeline(text, createGzip({ level: 1 }), createWriteStream(file));
      for (const args of [
        ['verify', file],
        ['restore', file],
      ]) {
        const { code, stderr } = await onTime(20_000, () =>
          toolhost(args, { env: { DATA_DIR: world.newPath('none') } }),
        );
        assert.equal(code, 1);
        assert.match(stderr, why);
      }
    }
  });

  it('[ship 3] writes a backup that only its owner can read, completely or not at all, and never over another file', async () => {
    const env = await world.newDatabase('sqlite');
    await world.stop(await world.serve(env));
    const file = await world.backupOf(env);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const copy = world.newPath('copy');
    copyFileSync(file, copy);
    const again = await toolhost(['backup', file], { env });
    assert.deepEqual([again.code, again.stdout], [1, '']);
    assert.match(again.stderr, /already exists; choose another name for the backup/);
    assert.deepEqual(backupLines(file), backupLines(copy));
    const nowhere = await toolhost(['backup', join(world.folder, 'no', 'such')], { env });
    assert.deepEqual([nowhere.code, nowhere.stderr.includes('ENOENT')], [1, true]);
    const absent = await toolhost(['verify', join(world.folder, 'none')], { env });
    assert.deepEqual(
      [absent.code, absent.stderr],
      [1, `error: the file ${join(world.folder, 'none')} does not exist\n`],
    );
    const empty = await toolhost(['backup', world.newPath('empty')], { env: await world.newDatabase('sqlite') });
    assert.deepEqual([empty.code, /there is no database in/.test(empty.stderr)], [1, true]);
  });
});

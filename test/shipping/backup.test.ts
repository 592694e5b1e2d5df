import assert from 'node:assert/strict';
import { copyFileSync, cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import { type ReadBackup, readBackupFile } from '../../src/app/backups/backups.ts';
import { importTables } from '../../src/store/backup/import-tables.ts';
import { openEmptyPostgres, openEmptySqlite } from '../../src/store/backup/table-target.ts';
import type { Engine } from '../../src/store/db.ts';
import { readMigrations } from '../../src/store/engine/migration-files.ts';
import { root } from '../files.ts';
import { serverAt, toolAt } from '../support/configs.ts';
import { backupLines, backupRows, writeBackup } from '../support/store/backup-text.ts';
import { startPgBouncer } from '../support/store/pgbouncer.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { engines } from '../support/store/stores.ts';
import { migrationsFolder } from '../support/store/usual-options.ts';
import { runScript } from '../support/toolhost/run-script.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost, toolhostJson } from '../support/toolhost/toolhost-command.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const masterKey = 'kFUL2CNtL2Qk0mlw9bC8vLDnBsrmJg6Uoo0Nd1pLb0E=';
const otherKey = 'Zx0pVdvl5R7mDnq3PaY1uH8kTjW2sOeC4bQfGi6XyNo=';
/** Above the usual limit of a command: what is written and read here is a whole service. */
const manyRows = 60;

describe('backups', () => {
  let folder: string;
  let postgres: TestPostgres;
  let upstream: RecordingUpstream;
  let count = 0;
  const serving = new Set<TestToolhost>();
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-backups-'));
    [postgres, upstream] = await Promise.all([startPostgres(), startRecordingUpstream()]);
  });
  after(async () => {
    for (const running of serving) await running.stop();
    await Promise.all([postgres?.stop(), upstream?.close()]);
    rmSync(folder, { recursive: true, force: true });
  });

  const newPath = (name: string) => join(folder, `${++count}-${name}`);

  /** The environment of a new and empty database. */
  async function newDatabase(engine: Engine): Promise<Record<string, string>> {
    const DATA_DIR = newPath('data');
    return { DATA_DIR, ...(engine === 'postgres' && { DATABASE_URL: await postgres.createDatabase() }) };
  }

  /** Runs a command that must succeed, and returns what it printed. */
  async function done(args: readonly string[], env: Record<string, string>): Promise<string> {
    const { code, stdout, stderr } = await toolhost(args, { env });
    assert.deepEqual([code, stderr], [0, ''], args.join(' '));
    return stdout;
  }

  async function backupOf(env: Record<string, string>, ...options: string[]): Promise<string> {
    const file = newPath('backup');
    await done(['backup', file, ...options], env);
    return file;
  }

  async function restored(engine: Engine, file: string): Promise<Record<string, string>> {
    const env = await newDatabase(engine);
    await done(['restore', file], env);
    return env;
  }

  async function serve(env: Record<string, string>): Promise<TestToolhost> {
    const options = { env: { MASTER_KEY: masterKey, QUOTAS: 'writes=0,servers=0', ...env }, egress: [upstream.port] };
    const running = await startToolhost({ dataDir: env.DATA_DIR ?? '', ...options });
    serving.add(running);
    return running;
  }

  async function stop(running: TestToolhost): Promise<void> {
    if (serving.delete(running)) await running.stop();
  }

  /** A service with a server whose API key is a stored secret. */
  async function withSecret(env: Record<string, string>, slug = 'sealed'): Promise<TestToolhost> {
    const running = await serve(env);
    const authentication = { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' };
    await running.createServer(serverAt(slug, upstream.url, { authentication }));
    const { status } = await running.rest('PUT', `/servers/${slug}/secrets/KEY`, { body: { value: 'the-api-secret' } });
    assert.equal(status, 200);
    return running;
  }

  it('[ship 3] holds every row, also after a move from SQLite to PostgreSQL and back', async () => {
    const env = await newDatabase('sqlite');
    const seed = await runScript(join(root, 'examples', 'seed', 'main.ts'), [], folder, { env });
    assert.equal(seed.code, 0, seed.stderr);
    const first = await backupOf(env);
    const second = await backupOf(await restored('postgres', first));
    const third = await backupOf(await restored('sqlite', second));
    const rows = backupRows(first);
    for (const table of ['servers', 'secrets', 'calls', 'grants', 'audit_events', 'captures']) {
      assert.ok((rows.get(table)?.length ?? 0) > 0, table);
    }
    assert.deepEqual(backupRows(second), rows);
    assert.deepEqual(backupRows(third), rows);
    const without = backupRows(await backupOf(env, '--without-records'));
    assert.deepEqual([...rows.keys()].filter((table) => !without.has(table)).toSorted(), [
      'call_counts',
      'calls',
      'captures',
    ]);
  });

  for (const engine of engines) {
    it(`[ship 3] holds one moment of a service on ${engine} that goes on meanwhile`, async () => {
      const env = await newDatabase(engine);
      const running = await serve(env);
      const key = await running.key({ scopes: ['call'] });
      await running.createServer(serverAt('called', upstream.url));
      let isOver = false;
      let created = 0;
      const create = async () => {
        for (; !isOver || created < manyRows; created++) {
          await running.createServer(serverAt(`many-${created}`, upstream.url));
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
      const files = [await backupOf(env), await backupOf(env)];
      isOver = true;
      await Promise.all(work);
      await stop(running);
      assert.deepEqual(failed, []);
      const sizes = files.map((file) => {
        const rows = backupRows(file);
        // Each creation stores one of each, in one transaction.
        const creations = rows.get('audit_events')?.filter((line) => line.includes('createMcpServer')).length;
        assert.equal(rows.get('server_versions')?.length, rows.get('servers')?.length);
        assert.equal(creations, rows.get('servers')?.length);
        return rows.get('servers')?.length ?? 0;
      });
      assert.ok((sizes[0] ?? 0) <= (sizes[1] ?? 0) && (sizes[1] ?? 0) <= created + 1, String(sizes));
    });

    it(`[ship 3] serves as before when it is restored on ${engine}: keys, servers and secrets`, async () => {
      const env = await newDatabase(engine === 'sqlite' ? 'postgres' : 'sqlite');
      const running = await withSecret(env);
      const key = await running.key({ scopes: ['call'] });
      await stop(running);
      const again = await serve(await restored(engine, await backupOf(env)));
      try {
        const before = upstream.requests.length;
        const { isError } = await again.callTool('sealed', key, 'get');
        assert.equal(isError, undefined);
        assert.equal(upstream.requests[before]?.headers['x-key'], 'the-api-secret');
      } finally {
        await stop(again);
      }
    });

    it(`[ship 3] is refused where ${engine} has a database, which stays as it is`, async () => {
      const env = await newDatabase(engine);
      const running = await serve(env);
      await running.createServer(serverAt('kept', upstream.url));
      const file = await backupOf(env);
      for (const _state of ['running', 'stopped']) {
        const { code, stderr } = await toolhost(['restore', file], { env });
        assert.equal(code, 1);
        assert.match(stderr, /^error: .*(is there already|is not empty).*restore into an empty/);
        await stop(running);
      }
      assert.ok(
        backupRows(await backupOf(env))
          .get('servers')
          ?.some((line) => line.includes('"kept"')),
      );
    });

    it(`[ship 3] is refused by an older version on ${engine}, and leaves nothing behind`, async () => {
      const source = await newDatabase('sqlite');
      await stop(await serve(source));
      const lines = backupLines(await backupOf(source));
      const header = JSON.parse(lines[0] ?? '') as { migrations: object[]; version: string };
      const newer = { name: '9999-newer.sql', applied_at: 1, checksum: 'x', version: '9.1.0', readable_by: '0.1.0' };
      const headers = [
        { ...header, version: '9.1.0', migrations: [...header.migrations, newer] },
        { ...header, version: '9.1.0', toolhost_backup: 2 },
      ];
      const env = await newDatabase(engine);
      for (const changed of headers) {
        const file = newPath('newer');
        writeBackup(file, [JSON.stringify(changed), ...lines.slice(1)]);
        for (const command of engine === 'sqlite' ? ['restore', 'verify'] : ['restore']) {
          const { code, stderr } = await toolhost([command, file], { env });
          assert.equal(code, 1);
          assert.match(
            stderr,
            /restore it with (version 9\.1\.0|the version of toolhost that made it) or a newer one\n$/,
          );
        }
      }
      assert.equal((await toolhost(['backup', newPath('backup')], { env })).code, 1);
      await done(['restore', await backupOf(source)], env);
    });

    it(`[ship 3] of an older version is migrated when it is restored on ${engine}`, async () => {
      const source = await newDatabase('sqlite');
      await stop(await serve(source));
      const file = await backupOf(source);
      const newer = newPath('migrations');
      cpSync(migrationsFolder, newer, { recursive: true });
      writeFileSync(
        join(newer, '9999-later.sql'),
        "alter table workspaces add column colour text;\nupdate workspaces set colour = 'red';\n",
      );
      const { DATA_DIR = '', DATABASE_URL: url } = await newDatabase(engine);
      const target =
        url === undefined
          ? await openEmptySqlite(join(DATA_DIR, 'toolhost.sqlite'))
          : await openEmptyPostgres({ url, connections: 2, authorities: undefined });
      try {
        const options = { engine, files: readMigrations(newer), version: '9.9.9', now: () => 5 };
        await importTables(target.db, readBackupFile(file), options);
        const { rows } = await sql<{ colour: string }>`select colour from workspaces`.execute(target.db);
        assert.deepEqual(new Set(rows.map(({ colour }) => colour)), new Set(['red']));
        const applied = await target.db.selectFrom('migrations').selectAll().orderBy('name').execute();
        assert.deepEqual(
          applied.map(({ name }) => name),
          readdirSync(newer).toSorted(),
        );
        assert.ok((applied[0]?.applied_at ?? 0) > 5);
        assert.deepEqual([applied.at(-1)?.applied_at, applied.at(-1)?.version], [5, '9.9.9']);
      } finally {
        await target.close();
      }
    });
  }

  it('[ship 3] says which values a key ring cannot open, and starts only with the keys', async () => {
    const env = await newDatabase('sqlite');
    const running = await withSecret(env, 'needs-key');
    await stop(running);
    const file = await backupOf(env);
    const verify = (key: string) =>
      toolhost(['verify', file, '--json'], { env: { DATA_DIR: folder, ...(key && { MASTER_KEY: key }) } });
    const read = async (key: string) => {
      const { code, stdout, stderr } = await verify(key);
      assert.equal(stderr, '');
      return { code, report: JSON.parse(stdout) as ReadBackup };
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
    const { stdout } = await toolhost(['verify', file], { env: { MASTER_KEY: otherKey, DATA_DIR: folder } });
    assert.match(
      stdout,
      new RegExp(`The keys here do not open: 1 secrets, 1 master_keys\n  needs-key: KEY \\(${id}\\)`),
    );
    const target = await restored('sqlite', file);
    await assert.rejects(
      startToolhost({ dataDir: target.DATA_DIR ?? '', env: { MASTER_KEY: otherKey } }),
      (error: Error) => error.message.includes(id),
    );
    // A value that was moved to another row opens with no key.
    const moved = newPath('moved');
    const lines = backupLines(file).map((line) => line.replace('"KEY","v1.', '"KEZ","v1.'));
    writeBackup(moved, lines);
    const judged = await toolhost(['verify', moved, '--json'], { env: { MASTER_KEY: masterKey, DATA_DIR: folder } });
    assert.deepEqual([judged.code, (JSON.parse(judged.stdout) as ReadBackup).unreadable], [1, { secrets: 1 }]);
  });

  it('[ship 3] is refused wherever it was damaged, and leaves no database', async () => {
    const env = await newDatabase('sqlite');
    await stop(await withSecret(env));
    const lines = backupLines(await backupOf(env));
    const row = lines.findIndex((line) => line.startsWith('['));
    const [, ...withoutHeader] = lines;
    const damages: Record<string, string[]> = {
      'the end is missing': lines.slice(0, -1),
      'a row is missing': lines.toSpliced(row, 1),
      'a row is twice': lines.toSpliced(row, 0, lines[row] ?? ''),
      'a row is too short': lines.with(row, '[1]'),
      'a value is an object': lines.with(row, '[{}]'),
      'a line is no JSON': lines.with(row, '[1,'),
      'the header is missing': withoutHeader,
      'there is more after the end': [...lines, lines.at(-1) ?? ''],
      'a table is unknown': lines.toSpliced(1, 0, '{"table":"passwords","columns":["a"]}'),
      'a table is not ours': lines.toSpliced(1, 0, '{"table":"migrations","columns":["name"]}'),
    };
    for (const [name, changed] of Object.entries(damages)) {
      const file = newPath('damaged');
      // With a hash that fits, so that only the content tells.
      writeBackup(file, changed.at(-1)?.includes('"sha256"') ? changed : [...changed, '{"end":{}}']);
      const target = await newDatabase('sqlite');
      const { code, stderr } = await toolhost(['restore', file], { env: target });
      assert.deepEqual([code, existsSync(join(target.DATA_DIR ?? '', 'toolhost.sqlite'))], [1, false], name);
      assert.match(stderr, /^error: this is not a sound backup: /, name);
      assert.deepEqual(readdirSync(target.DATA_DIR ?? ''), ['toolhost.sqlite.lock'], name);
    }
  });

  it('[ship 3] is a file that only its owner reads, written whole or not at all, and never over another', async () => {
    const env = await newDatabase('sqlite');
    await stop(await serve(env));
    const file = await backupOf(env);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const copy = newPath('copy');
    copyFileSync(file, copy);
    const again = await toolhost(['backup', file], { env });
    assert.deepEqual([again.code, again.stdout], [1, '']);
    assert.match(again.stderr, /exists; give the backup another name/);
    assert.deepEqual(backupLines(file), backupLines(copy));
    const nowhere = await toolhost(['backup', join(folder, 'no', 'such')], { env });
    assert.deepEqual([nowhere.code, nowhere.stderr.includes('ENOENT')], [1, true]);
    const absent = await toolhost(['verify', join(folder, 'none')], { env });
    assert.deepEqual([absent.code, absent.stderr], [1, `error: there is no file ${join(folder, 'none')}\n`]);
    const empty = await toolhost(['backup', newPath('empty')], { env: await newDatabase('sqlite') });
    assert.deepEqual([empty.code, /there is no database in/.test(empty.stderr)], [1, true]);
  });

  it('[ship 3] is made and restored through PgBouncer in transaction mode', async () => {
    const [source, target] = [await newDatabase('postgres'), await newDatabase('postgres')];
    await stop(await serve(source));
    const poolers = [];
    try {
      for (const env of [source, target]) {
        const pooler = await startPgBouncer(env.DATABASE_URL ?? '', 2);
        poolers.push(pooler);
        env.DATABASE_URL = pooler.url;
      }
      const file = await backupOf(source);
      await done(['restore', file], target);
      assert.deepEqual(backupRows(await backupOf(target)), backupRows(file));
    } finally {
      await Promise.all(poolers.map((pooler) => pooler.stop()));
    }
  });

  it('[ship 3] goes through a pipe, with its report beside it', async () => {
    const env = await newDatabase('sqlite');
    const running = await serve(env);
    await running.createServer(serverAt('piped', upstream.url, { tools: [toolAt(`${upstream.url}/x`)] }));
    await stop(running);
    const target = await newDatabase('sqlite');
    const command = `"$TOOLHOST" backup - | DATA_DIR="${target.DATA_DIR}" "$TOOLHOST" restore - --json`;
    const { code, stdout, stderr } = await toolhost(['-c', command], {
      program: '/bin/sh',
      env: { ...env, TOOLHOST: join(root, 'bin', 'toolhost') },
    });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^Wrote \d+ rows of \d+ tables/);
    assert.equal((JSON.parse(stdout) as ReadBackup).rows.servers, 1);
    assert.deepEqual(
      (await toolhostJson<{ servers: unknown[] }>(['keys', 'list'], { env: target })) !== undefined,
      true,
    );
  });
});

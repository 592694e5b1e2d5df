import assert from 'node:assert/strict';
import { cpSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import { type BackupReport, readBackupFile } from '../../apps/server/src/app/backups.ts';
import { readMigrations } from '../../apps/server/src/store/engine/migrate.ts';
import { fillEmptyDatabase, importTables } from '../../apps/server/src/store/restore.ts';
import { root } from '../files.ts';
import { readBackupRows } from '../support/store/backup-text.ts';
import { migrationsFolder } from '../support/store/default-options.ts';
import { startPgBouncer } from '../support/store/pgbouncer.ts';
import { queryPostgres } from '../support/store/use-postgres.ts';
import { type BackupFixture, startBackupFixture } from '../support/toolhost/backup-fixture.ts';
import { runScript } from '../support/toolhost/run-script.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

describe('a backup that moves a service', () => {
  let world: BackupFixture;
  before(async () => {
    world = await startBackupFixture(['sqlite', 'postgres']);
  });
  after(() => world?.stopAll());

  it('[ship 3] keeps every row, even after a move from SQLite to PostgreSQL and back', async () => {
    const env = await world.newDatabase('sqlite');
    const seedRun = await runScript(join(root, 'examples', 'seed', 'main.ts'), [], world.folder, { env });
    assert.equal(seedRun.code, 0, seedRun.stderr);
    const first = await world.backUp(env);
    const second = await world.backUp(await world.restoreToNewDatabase('postgres', first));
    const third = await world.backUp(await world.restoreToNewDatabase('sqlite', second));
    const rowsByTable = readBackupRows(first);
    for (const table of ['servers', 'secrets', 'calls', 'grants', 'audit_events', 'captures']) {
      assert.ok((rowsByTable.get(table)?.length ?? 0) > 0, table);
    }
    assert.deepEqual(readBackupRows(second), rowsByTable);
    assert.deepEqual(readBackupRows(third), rowsByTable);
    const rowsWithoutRecords = readBackupRows(await world.backUp(env, '--without-records'));
    assert.deepEqual([...rowsByTable.keys()].filter((table) => !rowsWithoutRecords.has(table)).toSorted(), [
      'call_counts',
      'calls',
      'captures',
      'usage_counts',
    ]);
  });

  for (const engine of ['sqlite', 'postgres'] as const) {
    it(`[ship 3] migrates the backup of an older version when it is restored on ${engine}`, async () => {
      const source = await world.newDatabase('sqlite');
      await world.stop(await world.serve(source));
      const file = await world.backUp(source);
      const newerMigrations = world.newPath('migrations');
      cpSync(migrationsFolder, newerMigrations, { recursive: true });
      writeFileSync(
        join(newerMigrations, '9999-later.sql'),
        "alter table workspaces add column colour text;\nupdate workspaces set colour = 'red';\n",
      );
      const { DATA_DIR = '', DATABASE_URL: url } = await world.newDatabase(engine);
      const location = {
        postgres: url === undefined ? undefined : { url, maxConnections: 2, authorities: undefined },
        file: join(DATA_DIR, 'toolhost.sqlite'),
      };
      await fillEmptyDatabase(location, async (db) => {
        const options = {
          engine,
          files: readMigrations(newerMigrations),
          version: '9.9.9',
          now: () => 5,
          keyring: undefined,
          unverified: true,
        };
        await readBackupFile(file, (lines) => importTables(db, lines, options));
        const { rows } = await sql<{ colour: string }>`select colour from workspaces`.execute(db);
        assert.deepEqual(new Set(rows.map(({ colour }) => colour)), new Set(['red']));
        const appliedMigrations = await db.selectFrom('migrations').selectAll().orderBy('name').execute();
        assert.deepEqual(
          appliedMigrations.map(({ name }) => name),
          readdirSync(newerMigrations).toSorted(),
        );
        assert.ok((appliedMigrations[0]?.applied_at ?? 0) > 5);
        assert.deepEqual([appliedMigrations.at(-1)?.applied_at, appliedMigrations.at(-1)?.version], [5, '9.9.9']);
      });
    });
  }

  it('[ship 3] creates and restores a backup through PgBouncer in transaction mode', async () => {
    const [source, target] = [await world.newDatabase('postgres'), await world.newDatabase('postgres')];
    await world.stop(await world.serve(source));
    const poolers = [];
    try {
      for (const env of [source, target]) {
        const pooler = await startPgBouncer(env.DATABASE_URL ?? '', 2);
        poolers.push(pooler);
        env.DATABASE_URL = pooler.url;
      }
      const file = await world.backUp(source);
      await world.restore(file, target);
      assert.deepEqual(readBackupRows(await world.backUp(target)), readBackupRows(file));
    } finally {
      await Promise.all(poolers.map((pooler) => pooler.stop()));
    }
  });

  it('[ship 3] refuses a backup by a PostgreSQL user that may not read the tables', async () => {
    const env = await world.newDatabase('postgres');
    await world.stop(await world.serve(env));
    const url = new URL(env.DATABASE_URL ?? '');
    await queryPostgres(url.href, "create role blind login password 'blind'");
    url.username = url.password = 'blind';
    const { code, stderr } = await runToolhostCommand(['backup', world.newPath('none')], {
      env: { ...env, DATABASE_URL: url.href },
    });
    assert.equal(code, 1);
    assert.match(stderr, /the user in DATABASE_URL lacks a required privilege/);
  });

  it('[ship 3] pipes a backup into a restore, with the report on standard error', async () => {
    const env = await world.newDatabase('sqlite');
    const running = await world.serve(env);
    await running.createServer(
      buildServerAt('piped', world.upstream.url, { tools: [buildToolAt(`${world.upstream.url}/x`)] }),
    );
    await world.stop(running);
    const target = await world.newDatabase('sqlite');
    const command = `"$TOOLHOST" backup - | DATA_DIR="${target.DATA_DIR}" "$TOOLHOST" restore - --json`;
    const { code, stdout, stderr } = await runToolhostCommand(['-c', command], {
      program: '/bin/sh',
      env: { ...env, TOOLHOST: join(root, 'bin', 'toolhost') },
    });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^Wrote \d+ rows of \d+ tables/);
    assert.equal((JSON.parse(stdout) as BackupReport).rows.servers, 1);
    assert.equal((await runToolhostCommand(['keys', 'list'], { env: target })).code, 0);
  });
});

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { assertMapped } from '../../../../../test/support/assert-lists.ts';
import { eventually } from '../../../../../test/support/eventually.ts';
import { migrationsFolder } from '../../../../../test/support/store/default-options.ts';
import { bothEngines, type Stores, startStores } from '../../../../../test/support/store/stores.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import { startDatabaseOpeners } from '../../../../../test/support/toolhost/starters.ts';
import { type Database, openDatabase } from '../database.ts';
import { splitStatements } from './migrate.ts';

const migrationNames = readdirSync(migrationsFolder).sort();

for (const engine of bothEngines)
  describe(`the migration runner on ${engine}`, () => {
    let stores: Stores;
    let folder: string;
    before(async () => {
      stores = await startStores(engine);
      folder = mkdtempSync(join(tmpdir(), 'toolhost-migrations-'));
      cpSync(migrationsFolder, folder, { recursive: true });
    });
    after(async () => {
      await stores.stop();
      rmSync(folder, { recursive: true });
    });

    const findApplied = async ({ db }: Database) =>
      (await db.selectFrom('migrations').select('name').orderBy('name').execute()).map((row) => row.name);

    it('[sec G5] applies migrations once when four processes start on one empty database at the same time', async () => {
      const openers = await startDatabaseOpeners(4);
      try {
        for (let round = 0; round < 3; round += 1) {
          const options = await stores.newOptions();
          assert.deepEqual(await openers.open(options), Array(4).fill('opened'));
          const database = await openDatabase(options);
          assert.deepEqual(await findApplied(database), migrationNames);
          await database.close();
        }
      } finally {
        await openers.stop();
      }
    });

    if (engine === 'postgres') {
      it('[sec G5] waits for the migrations of another replica without a time limit', async () => {
        const options = await stores.newOptions();
        const otherClient = new pg.Client({ connectionString: options.postgres?.url });
        await otherClient.connect();
        await otherClient.query('select pg_advisory_lock(7236491)');
        const opening = openDatabase(options);
        const waiting = await eventually(async () => {
          const { rows } = await otherClient.query(
            "select pid from pg_locks where locktype = 'advisory' and not granted",
          );
          assert.equal(rows.length, 1);
          return rows[0] as { pid: number };
        });
        const startedAt = performance.now();
        await eventually(async () => {
          const { rows } = await otherClient.query('select 1 from pg_locks where not granted and pid = $1', [
            waiting.pid,
          ]);
          assert.equal(rows.length, 1, 'the start stopped waiting');
          assert.ok(performance.now() - startedAt > 2200);
        });
        await otherClient.query('select pg_advisory_unlock(7236491)');
        await (await opening).close();
        await otherClient.end();
      });
    }

    it('applies new migrations to a database that has the older ones, and keeps its rows', async () => {
      const options = await stores.newOptions();
      const older = await openDatabase(options);
      await older.db.insertInto('workspaces').values({ id: 'ours', name: 'Ours', created_at: 1 }).execute();
      await older.close();
      writeFileSync(
        join(folder, '9999-later.sql'),
        "-- a comment; with a semicolon\n-- readable-by: 0.1.0\nalter table workspaces add column colour text;\nupdate workspaces set colour = 'red; blue';\n",
      );
      const newer = await openDatabase({ ...options, migrations: folder });
      assert.deepEqual(await findApplied(newer), [...migrationNames, '9999-later.sql']);
      const { rows } = await sql`select id, colour from workspaces`.execute(newer.db);
      assertMapped(rows, (row) => ({ ...(row as object) }), [{ id: 'ours', colour: 'red; blue' }]);
      await newer.close();
      await (await openDatabase(options)).close();
    });

    it('[find C1] refuses a database of a build from before the first release, and changes nothing', async () => {
      const options = await stores.newOptions();
      const earlyFolder = mkdtempSync(join(folder, 'early-'));
      writeFileSync(join(earlyFolder, '0001-initial.sql'), 'create table workspaces (id text primary key);\n');
      const earlyDatabase = await openDatabase({ ...options, migrations: earlyFolder });
      await sql`insert into workspaces values ('kept')`.execute(earlyDatabase.db);
      await earlyDatabase.close();
      await assert.rejects(
        openDatabase(options),
        /created by a toolhost build from before the first release.*give toolhost an empty database, with another DATA_DIR or DATABASE_URL/,
      );
      const reopened = await openDatabase({ ...options, migrations: earlyFolder });
      assert.deepEqual(await findApplied(reopened), ['0001-initial.sql']);
      assert.equal((await sql`select id from workspaces`.execute(reopened.db)).rows.length, 1);
      await reopened.close();
    });

    it('leaves nothing behind when a migration fails', async () => {
      const options = await stores.newOptions();
      writeFileSync(join(folder, '9999-later.sql'), 'create table half (id text);\ncreate tabel typo (id text);\n');
      await assert.rejects(openDatabase({ ...options, migrations: folder }), /syntax/);
      const database = await openDatabase(options);
      assert.deepEqual(await findApplied(database), migrationNames);
      await assert.rejects(sql`select * from half`.execute(database.db));
      await database.close();
    });
  });

describe('the lock of a SQLite file', () => {
  const stores = useStores('sqlite');

  it('[sec E7] allows only one serving process: three of four that start at the same time exit with an error message', async () => {
    const openers = await startDatabaseOpeners(4);
    try {
      for (let round = 0; round < 10; round += 1) {
        const results = (await openers.open({ ...(await stores.newOptions()), exclusive: true })).toSorted();
        assertMapped(results, (result) => result.replace(/serves from \S+;.*/, 'serves'), [
          ...Array(3).fill('AppError: another toolhost process serves'),
          'opened',
        ]);
      }
    } finally {
      await openers.stop();
    }
  });
});

describe('the migration parser', () => {
  it('ends a statement at a semicolon at the end of a line, outside of comments', () => {
    assert.deepEqual(splitStatements('-- one; two\ncreate table a (x text);\n\n  -- three\ncreate index b on a (x);'), [
      'create table a (x text)',
      'create index b on a (x)',
    ]);
    assert.deepEqual(splitStatements('-- nothing\n'), []);
  });
});

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { sql } from 'kysely';
import { type DatabaseOptions, openDatabase } from '../../apps/server/src/store/database.ts';
import { engines } from '../sets.ts';
import { defaultDatabaseOptions, migrationsFolder } from '../support/store/default-options.ts';
import { createReadOnlyFolder } from '../support/store/full-disk.ts';
import { useDatabase, useStores } from '../support/store/use-stores.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

for (const engine of engines)
  describe(`opening a ${engine} database that differs from what this version left`, () => {
    const stores = useStores(engine);
    let options: DatabaseOptions;
    let folder: string;
    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), 'toolhost-opening-'));
      options = { ...(await stores.newOptions()), file: join(folder, 'toolhost.sqlite') };
    });
    afterEach(() => rmSync(folder, { recursive: true }));

    const prepareDatabase = async (work: (database: Awaited<ReturnType<typeof openDatabase>>) => Promise<unknown>) => {
      const database = await openDatabase(options);
      await work(database);
      await database.close();
    };
    const applied = { applied_at: 1, checksum: 'x', readable_by: null };
    const unknownMigration = { name: '9998-later.sql', version: '7.1.0', ...applied };

    it('[find C1] refuses a database that a newer version has changed', async () => {
      await prepareDatabase(({ db }) => db.insertInto('migrations').values(unknownMigration).execute());
      const errorPattern =
        /version 7\.1\.0 of toolhost.*does not know its migrations 9998-later\.sql.*start version 7\.1\.0/;
      await assert.rejects(openDatabase(options), errorPattern);
      const env = { DATA_DIR: folder, ...(options.postgres && { DATABASE_URL: options.postgres.url }) };
      const { code, stderr } = await runToolhostCommand(['serve'], { env: { PORT: '0', DEMO: '0', ...env } });
      assert.deepEqual([code, errorPattern.test(stderr)], [1, true], stderr);
      assert.doesNotMatch(stderr, /\n\s+at |unexpected/, 'no stack trace is printed');
    });

    it('[find C1] accepts a database of a newer version only when its migration declares that this version can read it', async () => {
      for (const [header, isAllowed] of [
        ['-- readable-by: 0.1.0\n', true],
        ['-- What it is for.\n-- readable-by: 0.0.9\n', true],
        ['-- readable-by: 0.1.1\n', false],
        ['-- readable-by: 0.10.0\n', false],
        ['-- readable-by: 1.0.0\n', false],
        ['', false],
      ] as const) {
        const emptyOptions = { ...(await stores.newOptions()), version: '0.1.0' };
        const newer = addMigration('9998-later.sql', `${header}create table later (id text);\n`, {
          ...emptyOptions,
          folder,
        });
        await (await openDatabase({ ...newer, version: '2.0.0' })).close();
        const older = openDatabase(emptyOptions).then((database) => database.close());
        if (isAllowed) await older;
        else await assert.rejects(older, /changed by version 2\.0\.0 of toolhost, but this version, 0\.1\.0/);
      }
    });

    it('[find C1] refuses a database when the statements of an applied migration have changed', async () => {
      const ownOptions = addMigration('9997-own.sql', 'create table own (id text);\n', { ...options, folder });
      await (await openDatabase(ownOptions)).close();
      addMigration('9997-own.sql', '-- A better comment.\r\n\r\ncreate table own (id text);\r\n', {
        ...options,
        folder,
      });
      await (await openDatabase(ownOptions)).close();
      addMigration('9997-own.sql', 'create table own (id bigint);\n', { ...options, folder });
      await assert.rejects(
        openDatabase(ownOptions),
        /differ from the files .*9997-own\.sql \(by version \d.*official release/,
      );
    });

    it('[find C1] refuses a database whose tables belong to another application', async () => {
      const empty = mkdtempSync(join(folder, 'no-migrations-'));
      for (const statement of ['create table users (id int)', 'create table migrations (id int, batch int)']) {
        const other = { ...(await stores.newOptions()), file: join(folder, `${statement.length}`, 'toolhost.sqlite') };
        const database = await openDatabase({ ...other, migrations: empty });
        await sql`drop table migrations`.execute(database.db);
        await sql.raw(statement).execute(database.db);
        await database.close();
        await assert.rejects(
          openDatabase(other),
          /belongs to another application: it has tables named (users|migrations)/,
        );
      }
    });
  });

function addMigration(name: string, text: string, options: DatabaseOptions & { folder: string }): DatabaseOptions {
  const migrations = join(options.folder, 'migrations');
  cpSync(migrationsFolder, migrations, { recursive: true });
  writeFileSync(join(migrations, name), text);
  return { ...options, migrations };
}

describe('opening files that are not a complete SQLite database', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-opening-'));
    file = join(folder, 'toolhost.sqlite');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const open = (at: string) => openDatabase({ ...defaultDatabaseOptions, postgres: undefined, file: at });
  const assertRefused = (at: string, errorPattern: RegExp) => assert.rejects(open(at), errorPattern);

  it('[find C1] refuses a database whose main file is missing or empty while its log exists', async () => {
    const { close } = await open(file);
    const lost = join(folder, 'lost.sqlite');
    copyFileSync(`${file}-wal`, `${lost}-wal`);
    await close();
    const errorPattern =
      /lost\.sqlite is missing or empty, but its log \S+lost\.sqlite-wal exists; put the database back/;
    await assertRefused(lost, errorPattern);
    writeFileSync(lost, '');
    await assertRefused(lost, errorPattern);
  });

  it('[find C1] refuses a damaged file, or a file that is not a database, with an error message', async () => {
    for (const content of [Buffer.from('this is a text, and no database\n'.repeat(100)), randomBytes(8192)]) {
      writeFileSync(file, content);
      await assertRefused(file, /is damaged or not a SQLite database; restore it/);
    }
  });

  it('[find C1] refuses a folder that the user may not write to with an error message', async () => {
    const readOnly = createReadOnlyFolder();
    try {
      for (const at of [readOnly.folder, join(readOnly.folder, 'below')])
        await assertRefused(
          join(at, 'toolhost.sqlite'),
          /cannot be (opened; allow the user that runs toolhost to write|created, because)/,
        );
    } finally {
      readOnly.remove();
    }
  });

  it('[find C1] refuses a file in place of a folder, or a folder in place of the file, with an error message', async () => {
    mkdirSync(file);
    await assertRefused(file, /toolhost\.sqlite cannot be opened/);
    writeFileSync(join(folder, 'a-file'), '');
    await assertRefused(join(folder, 'a-file', 'toolhost.sqlite'), /is a file; set DATA_DIR/);
  });
});

describe('an open SQLite database', () => {
  const database = useDatabase('sqlite');

  it('[sec G5] waits for the disk before it acknowledges a change, but not for call records', async () => {
    const values = await Promise.all(
      (['db', 'transactions', 'records'] as const).map(async (connection) => {
        const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(database[connection]);
        return [connection, rows[0]?.synchronous];
      }),
    );
    // 2 is FULL, 1 is NORMAL (SQLite, PRAGMA synchronous).
    assert.deepEqual(Object.fromEntries(values), { db: 2, transactions: 2, records: 1 });
  });
});

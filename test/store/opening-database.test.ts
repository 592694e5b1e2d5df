import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { sql } from 'kysely';
import { type DatabaseOptions, openDatabase } from '../../src/store/database.ts';
import { readOnlyFolder } from '../support/store/full-disk.ts';
import { engines, type Stores, startStores } from '../support/store/stores.ts';
import { migrationsFolder } from '../support/store/usual-options.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

/** The program's standard error when it refuses to start. */
async function refusal(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await toolhost(args, { env: { PORT: '0', DEMO: '0', LOG_LEVEL: 'warn', ...env } });
  assert.equal(code, 1, stdout + stderr);
  assert.doesNotMatch(stderr, /\n\s+at |unexpected/, 'no stack trace');
  assert.doesNotMatch(stdout, /toolhost ready/);
  return stderr;
}

/** Every start that opens the database. */
type Start = [name: string, args: string[], env?: Record<string, string>];
const starts: [Start, Start, Start, Start, Start] = [
  ['serve', ['serve']],
  ['serve with workers', ['serve'], { WORKERS: '2' }],
  ['keys list', ['keys', 'list']],
  ['keys create', ['keys', 'create', '--name', 'x', '--scopes', 'call']],
  ['limits show', ['limits', 'show']],
];
/** Those that make a database where there is none; the others say that there is none. */
const makingStarts = [starts[0], starts[1], starts[3]];

for (const engine of engines) {
  describe(`a start on a ${engine} database that is not as this version left it`, () => {
    let stores: Stores;
    let options: DatabaseOptions;
    let env: Record<string, string>;
    let folder: string;
    before(async () => {
      stores = await startStores(engine);
    });
    after(() => stores.stop());
    beforeEach(async () => {
      folder = mkdtempSync(join(tmpdir(), 'toolhost-opening-'));
      options = { ...(await stores.newOptions()), file: join(folder, 'toolhost.sqlite') };
      env = { DATA_DIR: folder, ...(options.postgres && { DATABASE_URL: options.postgres.url }) };
    });
    afterEach(() => rmSync(folder, { recursive: true }));

    const prepare = async (work: (database: Awaited<ReturnType<typeof openDatabase>>) => Promise<unknown>) => {
      const database = await openDatabase(options);
      await work(database);
      await database.close();
    };
    const unknown = { name: '9998-later.sql', applied_at: 1, checksum: 'x', version: '7.1.0', readable_by: null };

    it('[find C1] is refused by every command when a newer version has changed the database', async () => {
      await prepare(({ db }) => db.insertInto('migrations').values(unknown).execute());
      for (const [name, args, more] of starts) {
        const said = await refusal(args, { ...env, ...more });
        assert.match(said, /version 7\.1\.0 of toolhost.*does not know its migrations 9998-later\.sql/, name);
        assert.match(said, /start version 7\.1\.0 or a newer one, or restore a backup/, name);
      }
    });

    it('[find C1] is allowed when the newer migration says that this version can read it, and only then', async () => {
      for (const [header, isAllowed] of [
        ['-- readable-by: 0.1.0\n', true],
        ['-- What it is for.\n-- readable-by: 0.0.9\n', true],
        ['-- readable-by: 0.1.1\n', false],
        ['-- readable-by: 0.10.0\n', false],
        ['-- readable-by: 1.0.0\n', false],
        ['', false],
      ] as const) {
        const fresh = { ...(await stores.newOptions()), version: '0.1.0' };
        const newer = withFile('9998-later.sql', `${header}create table later (id text);\n`, { ...fresh, folder });
        await (await openDatabase({ ...newer, version: '2.0.0' })).close();
        const older = openDatabase(fresh).then((database) => database.close());
        if (isAllowed) await older;
        else await assert.rejects(older, /changed by version 2\.0\.0 of toolhost, and this is 0\.1\.0/);
      }
    });

    it('[find C1] is refused when the statements of an applied migration have changed', async () => {
      const own = withFile('9997-own.sql', 'create table own (id text);\n', { ...options, folder });
      await (await openDatabase(own)).close();
      withFile('9997-own.sql', '-- A better comment.\r\n\r\ncreate table own (id text);\r\n', { ...options, folder });
      await (await openDatabase(own)).close();
      withFile('9997-own.sql', 'create table own (id bigint);\n', { ...options, folder });
      await assert.rejects(openDatabase(own), /another text .*9997-own\.sql \(by version \d.*never changed/);
    });

    it('[find C1] is refused when the tables are those of another application', async () => {
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
}

/** A copy of the migrations with one more, or with another text for one. */
function withFile(name: string, text: string, options: DatabaseOptions & { folder: string }): DatabaseOptions {
  const migrations = join(options.folder, 'migrations');
  cpSync(migrationsFolder, migrations, { recursive: true });
  writeFileSync(join(migrations, name), text);
  return { ...options, migrations };
}

describe('a start on files that are not a whole SQLite database', () => {
  let folder: string;
  let env: Record<string, string>;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-opening-'));
    file = join(folder, 'toolhost.sqlite');
    env = { DATA_DIR: folder, MASTER_KEY: randomBytes(32).toString('base64') };
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('[find C1] is refused while its main file is gone or empty and its log is there', async () => {
    const child = await startChildToolhost(env);
    const made = await toolhost(['keys', 'create', '--name', 'kept', '--scopes', 'call', '--json'], { env });
    assert.equal(made.code, 0, made.stderr);
    await child.end('SIGKILL');
    copyFileSync(file, `${file}.away`);
    for (const lose of [() => rmSync(file), () => truncateSync(file)]) {
      lose();
      for (const [name, args, more] of starts) {
        assert.match(
          await refusal(args, { ...env, ...more }),
          /toolhost\.sqlite is missing or empty, but its log \S+toolhost\.sqlite-wal is there; put the database back/,
          name,
        );
      }
      copyFileSync(`${file}.away`, file);
    }
    const { stdout } = await toolhost(['keys', 'list', '--json'], { env });
    assert.match(stdout, /kept/);
  });

  it('[find C1] is refused with a sentence for a file that is damaged or something else', async () => {
    for (const content of [Buffer.from('this is a text, and no database\n'.repeat(100)), randomBytes(8192)]) {
      writeFileSync(file, content);
      for (const [name, args, more] of starts)
        assert.match(await refusal(args, { ...env, ...more }), /is damaged or not a SQLite database; restore it/, name);
    }
  });

  it('[find C1] is refused with a sentence where it may not write', async () => {
    const readOnly = readOnlyFolder();
    try {
      for (const DATA_DIR of [readOnly.folder, join(readOnly.folder, 'below')])
        for (const [name, args, more] of makingStarts)
          assert.match(
            await refusal(args, { ...env, ...more, DATA_DIR }),
            /cannot be (opened|written); let the user that runs toolhost write in its folder, or set DATA_DIR/,
            name,
          );
    } finally {
      readOnly.remove();
    }
  });

  it('[find C1] is refused with a sentence where a folder is a file, or the file is a folder', async () => {
    mkdirSync(file);
    assert.match(await refusal(['serve'], env), /toolhost\.sqlite cannot be opened/);
    rmSync(file, { recursive: true });
    writeFileSync(join(folder, 'a-file'), '');
    assert.match(await refusal(starts[3][1], { ...env, DATA_DIR: join(folder, 'a-file') }), /cannot be opened/);
    renameSync(join(folder, 'a-file'), join(folder, 'still-there'));
  });
});

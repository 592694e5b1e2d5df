import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { type Database, type DatabaseOptions, openDatabase } from '../../src/store/database.ts';
import { StoreFault } from '../../src/store/engine/faults.ts';
import { eventually } from '../support/eventually.ts';
import { aCall } from '../support/store/rows.ts';
import { type Stores, startStores } from '../support/store/stores.ts';
import { insertWorkspace, workspaceIds } from '../support/store/workspace-rows.ts';

/** What happens to a file that is open. */
const losses: { [how: string]: (file: string) => void } = {
  'is deleted': (file) => rmSync(file),
  'is deleted with its log': (file) => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix);
  },
  'is replaced by a copy': (file) => {
    copyFileSync(file, `${file}.copy`);
    renameSync(file, `${file}.moved`);
    renameSync(`${file}.copy`, file);
  },
  'is replaced by a database of another program': (file) => {
    renameSync(file, `${file}.moved`);
    const other = new DatabaseSync(file);
    other.exec('create table notes (text); insert into notes values (1)');
    other.close();
  },
  'is replaced by an empty file': (file) => {
    renameSync(file, `${file}.moved`);
    writeFileSync(file, '');
  },
};

/** The connections of a database that are opened at their first use. */
const uses: { [connection: string]: (database: Database) => Promise<unknown> } = {
  transactions: ({ transactions }) => transactions.transaction().execute((db) => insertWorkspace(db, 'written')),
  records: ({ records }) => insertWorkspace(records, 'written'),
  'the writer of call records': ({ calls }) => calls.write([aCall({})]),
  reports: ({ reports }) => workspaceIds(reports),
};

describe('a SQLite file', () => {
  let stores: Stores;
  before(async () => {
    stores = await startStores('sqlite');
  });
  after(() => stores.stop());

  /** Hashes of the file and of those that SQLite makes beside it. */
  const contents = ({ file }: DatabaseOptions) =>
    ['', '-wal', '-journal'].map((suffix) => existsSync(file + suffix) && hash('sha256', readFileSync(file + suffix)));

  for (const [how, lose] of Object.entries(losses)) {
    for (const [connection, use] of Object.entries(uses)) {
      it(`[find C1] that ${how} while it is open is neither made anew nor changed at the first use of ${connection}`, async () => {
        const options = await stores.newOptions();
        const database = await openDatabase(options);
        lose(options.file);
        const found = contents(options);
        const isDown = (error: unknown) => error instanceof StoreFault && error.fault === 'unavailable';
        await assert.rejects(use(database), isDown);
        assert.deepEqual(contents(options), found);
        await assert.rejects(use(database), isDown, 'nor at the second one');
        assert.deepEqual(contents(options), found);
        await database.close();
      });
    }
  }

  it('[find C1] that was lost is refused by the next start, whatever the process that lost it did meanwhile', async () => {
    const options = { ...(await stores.newOptions()), exclusive: true };
    const database = await openDatabase(options);
    let why = '';
    void database.lost.then((sentence) => {
      why = sentence;
    });
    rmSync(options.file);
    for (const use of Object.values(uses)) await use(database).catch(() => undefined);
    await eventually(() => assert.match(why, /was deleted while the service ran/));
    for (const use of Object.values(uses)) await use(database).catch(() => undefined);
    await database.close();
    await assert.rejects(openDatabase(options), /holds what a service had open|is missing or empty/);
  });

  it('[find C1] is found by every connection under a name that would mean something else in a URL', async () => {
    const options = await stores.newOptions();
    const file = join(dirname(options.file), 'a %41?mode=ro#b&c+ü.sqlite');
    const database = await openDatabase({ ...options, file });
    for (const use of Object.values(uses).slice(1)) await use(database);
    assert.deepEqual(await workspaceIds(database.reports), ['written']);
    await database.close();
    assert.ok(existsSync(file));
  });
});

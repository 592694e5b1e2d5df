import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { eventually } from '../support/eventually.ts';
import { aCall } from '../support/store/rows.ts';
import { type Stores, startStores } from '../support/store/stores.ts';
import { insertWorkspace, workspaceIds } from '../support/store/workspace-rows.ts';

/** Connections of a database that are opened at their first use. */
const uses: { [connection: string]: (database: Database) => Promise<unknown> } = {
  transactions: ({ transactions }) => transactions.transaction().execute((db) => insertWorkspace(db, 'written')),
  records: ({ records }) => insertWorkspace(records, 'written'),
  'the writer of call records': ({ calls }) => calls.write([aCall()]),
  reports: ({ reports }) => workspaceIds(reports),
};

describe('a SQLite file', () => {
  let stores: Stores;
  before(async () => {
    stores = await startStores('sqlite');
  });
  after(() => stores.stop());

  it('[find C1] refuses a SQLite file at the next start if it was lost while a process had it open', async () => {
    const options = { ...(await stores.newOptions()), exclusive: true };
    const database = await openDatabase(options);
    let why = '';
    void database.databaseLost.then((sentence) => {
      why = sentence;
    });
    rmSync(options.file);
    for (const use of Object.values(uses)) await use(database).catch(() => undefined);
    await eventually(() => assert.match(why, /was deleted while the service was running/));
    for (const use of Object.values(uses)) await use(database).catch(() => undefined);
    await database.close();
    await assert.rejects(openDatabase(options), /contains the data that a service had open|is missing or empty/);
  });

  it('[find C1] opens a SQLite file on every connection under a name that would have another meaning in a URL', async () => {
    const options = await stores.newOptions();
    const file = join(dirname(options.file), 'a %41?mode=ro#b&c+ü.sqlite');
    const database = await openDatabase({ ...options, file });
    for (const use of Object.values(uses).slice(1)) await use(database);
    assert.deepEqual(await workspaceIds(database.reports), ['written']);
    await database.close();
    assert.ok(existsSync(file));
  });
});

import assert from 'node:assert/strict';
import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { buildCall } from '../../../../../test/support/store/rows.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import { findWorkspaceIds, insertWorkspace } from '../../../../../test/support/store/workspace-rows.ts';
import { type Database, openDatabase } from '../database.ts';

/** A use of each connection of a database. Connections are opened at their first use. */
const connectionUses: { [connection: string]: (database: Database) => Promise<unknown> } = {
  transactions: ({ transactions }) => transactions.transaction().execute((db) => insertWorkspace(db, 'written')),
  records: ({ records }) => insertWorkspace(records, 'written'),
  'the writer of call records': ({ calls }) => calls.write([buildCall()]),
  reports: ({ reports }) => findWorkspaceIds(reports),
};

describe('a SQLite file', () => {
  const stores = useStores('sqlite');

  it('[find C1] refuses to open a SQLite file again after it was deleted while a process had it open', async () => {
    const options = { ...(await stores.newOptions()), exclusive: true };
    const database = await openDatabase(options);
    rmSync(options.file);
    for (const queryOnce of Object.values(connectionUses)) await queryOnce(database).catch(() => undefined);
    assert.match(await database.databaseLost, /was deleted while the service was running/);
    for (const queryOnce of Object.values(connectionUses)) await queryOnce(database).catch(() => undefined);
    await database.close();
    await assert.rejects(openDatabase(options), /contains the data that a service had open|is missing or empty/);
  });

  it('[find C1] opens a SQLite file on every connection even if its name would have another meaning in a URL', async () => {
    const options = await stores.newOptions();
    const file = join(dirname(options.file), 'a %41?mode=ro#b&c+ü.sqlite');
    const database = await openDatabase({ ...options, file });
    // The first use would insert the same row as the second.
    for (const queryOnce of Object.values(connectionUses).slice(1)) await queryOnce(database);
    assert.deepEqual(await findWorkspaceIds(database.reports), ['written']);
    await database.close();
    assert.ok(existsSync(file));
  });
});

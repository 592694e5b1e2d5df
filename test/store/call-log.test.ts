import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CallLog, createCallLog } from '../../src/gateway/call/call-log.ts';
import { findApiKey, insertApiKey } from '../../src/store/api-keys.ts';
import { batchRows } from '../../src/store/calls/call-writer.ts';
import { type CredentialUses, createCredentialUses } from '../../src/store/credential-uses.ts';
import type { Database } from '../../src/store/database.ts';
import { insertWorkspace } from '../../src/store/people/workspaces.ts';
import type { CallRow } from '../../src/store/schema.ts';
import { createKeyring } from '../../src/store/sealing/sealing.ts';
import { eventually } from '../support/eventually.ts';
import { aCall, anApiKey } from '../support/store/rows.ts';
import { engines, type Stores, startStores } from '../support/store/stores.ts';

for (const engine of engines) {
  describe(`call records under load on ${engine}`, { timeout: 60_000 }, () => {
    let stores: Stores;
    let database: Database;
    let log: CallLog;
    let uses: CredentialUses;
    const failures: unknown[] = [];
    let givenUp = 0;
    before(async () => {
      stores = await startStores(engine);
      database = await stores.open();
      await insertWorkspace(database.db, { id: 'ours', name: 'Ours', at: 0 });
      await insertApiKey(database.db, anApiKey());
      uses = createCredentialUses(database.records, () => 2000);
      log = createCallLog({
        uses,
        db: database.records,
        writeCalls: database.calls.write,
        keyring: createKeyring([Buffer.alloc(32, 7)]),
        onError: (error) => failures.push(error),
        onSuccess: () => undefined,
        onDropped(rows) {
          givenUp += rows;
        },
      });
    });
    after(async () => {
      await log?.stop();
      await stores.stop();
    });

    const written = async () => {
      const rows = await database.db.selectFrom('calls').select('id').execute();
      return new Set(rows.map(({ id }) => id)).size;
    };

    it('are written in whole batches, with the last use of the key', async () => {
      uses.keyUsed('key_1');
      for (let n = 0; n < batchRows; n += 1) log.add(aCall({ id: `whole_${n}`, started_at: 2000 + n }));
      await eventually(async () => {
        assert.equal(await written(), batchRows);
        assert.equal((await findApiKey(database.db, 'key_1'))?.lastUsedAt, 2000);
      });
    });

    it('can be awaited under continuous calls with captures; only those given up are lost', async () => {
      const before = await written();
      let added = 0;
      let over = false;
      const coming = (async () => {
        while (!over) {
          log.add(aCall({ id: `call_${added++}` }), '{}');
          await nextTurn();
        }
      })();
      await nextTurn();
      for (let n = 0; n < 3; n += 1) await log.flush();
      over = true;
      await coming;
      await log.flush();
      assert.equal(await written(), before + added - givenUp);
      assert.deepEqual(failures, []);
    });

    it('[find A5] are 600 a minute of the refused calls of a server, and all of the others', async () => {
      const kept = async (tool: string) =>
        (await database.db.selectFrom('calls').select('id').where('tool', '=', tool).execute()).length;
      const minute = 60_000;
      const add = (tool: string, row: Partial<CallRow>) => {
        for (let n = 0; n < 700; n += 1)
          log.add(aCall({ id: `${tool}_${n}`, tool, started_at: 10 * minute + n, ...row }));
      };
      add('refused', { outcome: 'limited' });
      add('elsewhere', { outcome: 'limited', server_id: 'srv_2' });
      add('made', { outcome: 'ok' });
      add('later', { outcome: 'limited', started_at: 11 * minute });
      await log.flush();
      const found = await Promise.all(['refused', 'elsewhere', 'made', 'later'].map(kept));
      assert.deepEqual(found, [600, 600, 700, 600]);
    });

    it('[find C4] keep their captures while the database takes none', async () => {
      const captured = async () =>
        (await database.db.selectFrom('captures').select('call_id').where('call_id', 'like', 'kept_%').execute())
          .length;
      await database.db.schema.alterTable('captures').renameTo('captures_away').execute();
      for (let n = 0; n < 60; n += 1) log.add(aCall({ id: `kept_${n}`, started_at: 3000 + n }), '{}');
      uses.keyUsed('key_1');
      await log.flush();
      // The log also writes by itself every half second, and fails again.
      assert.ok(failures.length > 0);
      await database.db.schema.alterTable('captures_away').renameTo('captures').execute();
      await log.flush();
      const failed = failures.length;
      await log.flush();
      assert.deepEqual([await captured(), uses.waiting(), failures.length], [60, 0, failed]);
    });
  });
}

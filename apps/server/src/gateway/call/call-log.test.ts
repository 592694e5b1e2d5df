import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { engines } from '../../../../../test/sets.ts';
import { pluck } from '../../../../../test/support/pluck.ts';
import { buildApiKey, buildCall } from '../../../../../test/support/store/rows.ts';
import { useDatabase } from '../../../../../test/support/store/use-stores.ts';
import { useFixtures } from '../../../../../test/support/use-fixtures.ts';
import { createCredentialUses, insertApiKey } from '../../store/api-keys.ts';
import type { CallRow } from '../../store/schema.ts';
import { createKeyring } from '../../store/sealing/sealing.ts';
import { insertWorkspace } from '../../store/workspaces.ts';
import { createCallLog } from './call-log.ts';

const buildRow = (more: Partial<CallRow>): CallRow => ({ server_id: 'srv_1', ...buildCall(), ...more });

for (const engine of engines)
  describe(`the call log under load on ${engine}`, () => {
    const fixtures = useFixtures();
    const database = useDatabase(engine, fixtures);
    const uses = fixtures.start(() => createCredentialUses(database.records, () => 2000));
    const failures: unknown[] = [];
    /** Number of records in each batch of each transaction. */
    const transactions: number[][] = [];
    let droppedCount = 0;
    const log = fixtures.start(() =>
      createCallLog({
        uses,
        db: database.records,
        calls: {
          ...database.calls,
          writeBatches(batches) {
            transactions.push(pluck(batches, 'count'));
            return database.calls.writeBatches(batches);
          },
        },
        keyring: createKeyring([Buffer.alloc(32, 7)]),
        onError: (error) => failures.push(error),
        onSuccess: () => undefined,
        onDropped(rows) {
          droppedCount += rows;
        },
      }),
    );
    before(async () => {
      for (const id of ['ours', 'flooder']) await insertWorkspace(database.db, { id, name: id, at: 0 });
      await insertApiKey(database.db, buildApiKey());
    });

    const countStored = async () => (await database.db.selectFrom('calls').select('id').execute()).length;

    it('can be flushed under continuous calls with captures, and loses only the records that it reports as dropped', async () => {
      const before = await countStored();
      let addedCount = 0;
      let isOver = false;
      const writing = (async () => {
        while (!isOver) {
          log.add(buildRow({ id: `call_${addedCount++}` }), '{}');
          await nextTurn();
        }
      })();
      await nextTurn();
      for (let n = 0; n < 3; n += 1) await log.flush();
      isOver = true;
      await writing;
      await log.flush();
      assert.equal(await countStored(), before + addedCount - droppedCount);
      assert.deepEqual(failures, []);
    });

    it('writes batches of 200 records, five in a transaction', async () => {
      await log.flush();
      transactions.length = 0;
      for (let n = 0; n < 2450; n += 1) log.add(buildRow({ id: `batched_${n}` }));
      await log.flush();
      const full = [200, 200, 200, 200, 200];
      assert.deepEqual(transactions, [full, full, [200, 200, 50]]);
    });

    it('[find A5] stores 600 refused calls per minute and server, and all other calls', async () => {
      const countByTool = async (tool: string) =>
        (await database.db.selectFrom('calls').select('id').where('tool', '=', tool).execute()).length;
      const minute = 60_000;
      const addRefusable = (tool: string, row: Partial<CallRow>) => {
        for (let n = 0; n < 700; n += 1)
          log.add(buildRow({ id: `${tool}_${n}`, tool, started_at: 10 * minute + n, ...row }));
      };
      addRefusable('refused', { outcome: 'limited' });
      addRefusable('elsewhere', { outcome: 'limited', server_id: 'srv_2' });
      addRefusable('made', { outcome: 'ok' });
      addRefusable('later', { outcome: 'limited', started_at: 11 * minute });
      await log.flush();
      const counts = await Promise.all(['refused', 'elsewhere', 'made', 'later'].map(countByTool));
      assert.deepEqual(counts, [600, 600, 700, 600]);
    });

    /** Adds more call records of one workspace than any list holds, with some of another workspace in between. */
    const addManyCalls = (kind: string, count: number, capture?: string) => {
      const add = (workspace_id: string, n: number) =>
        log.add(buildRow({ id: `${kind}_${workspace_id}_${n}`, workspace_id, started_at: 20 * 60_000 + n }), capture);
      for (let n = 0; n < count; n += 1) {
        add('flooder', n);
        if (n >= 1500 && n < 1510) add('ours', n);
      }
    };

    it('[find A6] evicts no captures of a workspace when another one floods the log', async () => {
      addManyCalls('captured', 2000, '{}');
      await log.flush();
      const captureRows = await database.db
        .selectFrom('captures')
        .select(({ fn }) => ['workspace_id', fn.countAll().as('count')])
        .where('call_id', 'like', 'captured_%')
        .groupBy('workspace_id')
        .execute();
      const counts = new Map(captureRows.map(({ workspace_id, count }) => [workspace_id, Number(count)]));
      assert.equal(counts.get('ours'), 10);
      assert.ok((counts.get('flooder') ?? 0) > 100);
    });

    it('[find A6] evicts no records of a workspace when another one floods the log while the database rejects writes', async () => {
      await database.db.schema.alterTable('calls').renameTo('calls_away').execute();
      const before = droppedCount;
      addManyCalls('waited', 25_000);
      await log.flush();
      await database.db.schema.alterTable('calls_away').renameTo('calls').execute();
      await log.flush();
      assert.equal(log.getWaitingCount(), 0);
      const storedCalls = await database.db.selectFrom('calls').select('id').where('id', 'like', 'waited_%').execute();
      assert.equal(storedCalls.filter(({ id }) => id.startsWith('waited_ours_')).length, 10);
      assert.equal(storedCalls.length + droppedCount - before, 25_010);
    });

    it('[find C4] keeps captures while the database rejects writes', async () => {
      const countCaptures = async () =>
        (await database.db.selectFrom('captures').select('call_id').where('call_id', 'like', 'kept_%').execute())
          .length;
      await database.db.schema.alterTable('captures').renameTo('captures_away').execute();
      for (let n = 0; n < 60; n += 1) log.add(buildRow({ id: `kept_${n}`, started_at: 3000 + n }), '{}');
      uses.recordKeyUse('key_1');
      await log.flush();
      // The log also writes every half second on its own and fails again.
      assert.ok(failures.length > 0);
      await database.db.schema.alterTable('captures_away').renameTo('captures').execute();
      await log.flush();
      const failed = failures.length;
      await log.flush();
      assert.deepEqual([await countCaptures(), uses.pendingCount(), failures.length], [60, 0, failed]);
    });
  });

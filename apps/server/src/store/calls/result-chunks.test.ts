import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { remainderRetentionMs } from '@toolhost/tool-config/read-more';
import { engines } from '../../../../../test/sets.ts';
import { useDatabase } from '../../../../../test/support/store/use-stores.ts';
import { createKeyring } from '../sealing/sealing.ts';
import {
  findResultChunks,
  insertResultChunks,
  maxStored,
  pruneResultChunks,
  trimResultChunks,
} from './result-chunks.ts';

const keyring = createKeyring([randomBytes(32)]);
const now = 1_000_000_000_000;
const owner = { workspaceId: 'ws', serverId: 'srv', caller: 'digest' };

for (const engine of engines)
  describe(`the result chunk store on ${engine}`, () => {
    const database = useDatabase(engine);

    const insert = (id: string, more: object = {}) =>
      insertResultChunks(database.records, keyring, {
        ...owner,
        id,
        at: now,
        chunkCount: 2,
        json: `["${id}"]`,
        ...more,
      });
    const find = (id: string, scope: object = {}, at = now) =>
      findResultChunks(database.db, keyring, { ...owner, id, ...scope }, at);
    const count = async () =>
      (await database.db.selectFrom('result_chunks').select('id').where('workspace_id', '=', 'ws').execute()).length;

    it('seals result chunks, returns them only to their caller on their server, and deletes them after ten minutes [agent 3]', async () => {
      await insert('one.1');
      assert.deepEqual(await find('one.1'), { json: '["one.1"]', chunkCount: 2 });
      const stored = await database.db.selectFrom('result_chunks').select('sealed_chunks').executeTakeFirstOrThrow();
      assert.ok(!stored.sealed_chunks.includes('one'));
      for (const other of [{ workspaceId: 'other' }, { serverId: 'other' }, { caller: 'other' }])
        assert.equal(await find('one.1', other), undefined);
      assert.ok(await find('one.1', {}, now + remainderRetentionMs - 1));
      assert.equal(await find('one.1', {}, now + remainderRetentionMs), undefined);
      await pruneResultChunks(database.records, now);
      assert.equal(await count(), 1);
      await pruneResultChunks(database.records, now + 1);
      assert.equal(await count(), 0);
    });

    it("limits a workspace's result chunks by rows and characters, and removes the caller's oldest first [agent 3]", async () => {
      const large = JSON.stringify(['x'.repeat(8_000_000)]);
      for (let n = 0; n < 7; n++) await insert(`large-${n}.1`, { at: now + n, json: large });
      await trimResultChunks(database.records, 'ws', now);
      assert.equal(await find('large-0.1'), undefined);
      assert.ok(await find('large-6.1'));
      assert.equal(await count(), Math.floor(maxStored.characters / (large.length * (4 / 3))));
      await database.records.deleteFrom('result_chunks').execute();
      const numbers = Array.from({ length: maxStored.rows + 3 }, (_, n) => n);
      for (let from = 0; from < numbers.length; from += 100) {
        await Promise.all(numbers.slice(from, from + 100).map((n) => insert(`small-${n}.1`, { at: now + n })));
      }
      await insert('elsewhere.1', { workspaceId: 'other', at: now - 1 });
      await trimResultChunks(database.records, 'ws', now);
      assert.equal(await count(), maxStored.rows);
      assert.ok(await find('elsewhere.1', { workspaceId: 'other' }));
      await trimResultChunks(database.records, 'ws', now + remainderRetentionMs + 4);
      assert.equal(await count(), maxStored.rows - 2);
      await database.records.deleteFrom('result_chunks').execute();
    });
  });

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { fileChunkBytes, fileRetentionMs } from '@toolhost/tool-config/file-names';
import { engines } from '../../../../../test/sets.ts';
import { useDatabase } from '../../../../../test/support/store/use-stores.ts';
import { countUnreadable, resealBatch } from '../sealing/master-keys.ts';
import { createKeyring, sealedColumns } from '../sealing/sealing.ts';
import {
  type FileRow,
  findFile,
  findFileChunk,
  insertFileChunk,
  maxStoredFiles,
  pruneFiles,
  reserveFile,
} from './files.ts';

const master = randomBytes(32);
const keyring = createKeyring([master]);
const now = 1_000_000_000_000;
const minuteMs = 60_000;
const file: FileRow = {
  id: 'digest',
  workspaceId: 'ws',
  serverId: 'srv',
  address: 'slug/view',
  caller: 'caller',
  at: now,
  bytes: 3,
  head: { name: 'secret.pdf', mediaType: 'application/pdf' },
};

for (const engine of engines)
  describe(`the file store on ${engine}`, () => {
    const database = useDatabase(engine);

    const reserveFileSpace = (id: string, more: Partial<FileRow> & { unverifiedCaller?: string } = {}) =>
      reserveFile(database.records, keyring, { ...file, id, ...more });
    const find = (id: string, at = now) => findFile(database.db, keyring, id, at);
    const countRows = async (table: 'files' | 'file_chunks') =>
      (await database.db.selectFrom(table).select('workspace_id').execute()).length;

    it('seals files, finds them for ten minutes, and then deletes them, but lets started downloads finish [agent 4]', async () => {
      assert.equal(await reserveFileSpace('one'), undefined);
      const bytes = randomBytes(fileChunkBytes);
      const chunk = { id: 'one', workspaceId: 'ws', number: 0 };
      await insertFileChunk(database.records, keyring, { ...chunk, at: now }, bytes);
      assert.deepEqual(await find('one'), { ...file, id: 'one' });
      assert.ok((await findFileChunk(database.db, keyring, chunk))?.equals(bytes));
      assert.equal(await findFileChunk(database.db, keyring, { ...chunk, workspaceId: 'other' }), undefined);
      const { sealed_head } = await database.db.selectFrom('files').selectAll().executeTakeFirstOrThrow();
      const { sealed_chunk } = await database.db.selectFrom('file_chunks').selectAll().executeTakeFirstOrThrow();
      assert.ok(!sealed_head.includes('secret') && sealed_chunk.length < 1.34 * bytes.length);
      assert.ok(await find('one', now + fileRetentionMs - 1));
      assert.equal(await find('one', now + fileRetentionMs), undefined);
      await pruneFiles(database.records, now + fileRetentionMs + minuteMs);
      assert.deepEqual([await countRows('files'), await countRows('file_chunks')], [1, 1]);
      await pruneFiles(database.records, now + fileRetentionMs + minuteMs + 1);
      assert.deepEqual([await countRows('files'), await countRows('file_chunks')], [0, 0]);
    });

    it('keeps the bytes when they are resealed with another key [agent 4]', async () => {
      await reserveFileSpace('sealed');
      const bytes = randomBytes(1000);
      const chunk = { id: 'sealed', workspaceId: 'ws', number: 7 };
      await insertFileChunk(database.records, keyring, { ...chunk, at: now }, bytes);
      const rotated = createKeyring([randomBytes(32), master]);
      for (const column of sealedColumns.filter(({ table }) => table === 'files' || table === 'file_chunks')) {
        const { resealed, unreadable } = await resealBatch(database.db, rotated, column, {
          after: undefined,
          limit: 9,
        });
        assert.deepEqual([resealed, unreadable], [1, 0]);
      }
      assert.equal((await countUnreadable(database.db, rotated)).file_chunks, undefined);
      assert.ok((await findFileChunk(database.db, rotated, chunk))?.equals(bytes));
      assert.deepEqual((await findFile(database.db, rotated, 'sealed', now))?.head, file.head);
      await database.records.deleteFrom('file_chunks').execute();
      await database.records.deleteFrom('files').execute();
    });

    it("limits a workspace's files by bytes, even when two are stored at the same time, and reuses the space of expired ones [agent 4]", async () => {
      const half = maxStoredFiles.bytes / 2;
      assert.equal(await reserveFileSpace('half', { bytes: half, at: now - minuteMs }), undefined);
      const results = await Promise.all([
        reserveFileSpace('two', { bytes: half }),
        reserveFileSpace('three', { bytes: half }),
      ]);
      assert.ok(results.filter((full) => full === undefined).length <= 1);
      assert.deepEqual(await reserveFileSpace('more', { bytes: half + 1 }), {
        scope: 'workspace',
        freeAt: now - minuteMs + fileRetentionMs,
      });
      assert.equal(await find('more'), undefined);
      assert.equal(await reserveFileSpace('elsewhere', { bytes: half + 1, workspaceId: 'other' }), undefined);
      const later = now + fileRetentionMs + minuteMs + 1;
      assert.equal(await reserveFileSpace('later', { bytes: maxStoredFiles.bytes, at: later }), undefined);
      assert.equal(await find('two', now), undefined);
      assert.ok(await find('elsewhere'));
      await database.records.deleteFrom('files').execute();
    });
  });

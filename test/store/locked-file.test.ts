import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { openDatabase } from '../../apps/server/src/store/database.ts';
import { transact } from '../../apps/server/src/store/engine/watched-dialect.ts';
import { eventually } from '../support/eventually.ts';
import { defaultDatabaseOptions } from '../support/store/default-options.ts';
import { findWorkspaceIds, insertWorkspace } from '../support/store/workspace-rows.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useToolhost } from '../support/toolhost/use-toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { useFixtures } from '../support/use-fixtures.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

/** Maximum time for all writes together. Writes that wait one after the other would take longer. */
const maxWaitMs = 9000;

/** Takes SQLite's write lock, as a backup tool or a shell does, and keeps it until the returned function is called. */
function lockForWriting(file: string): () => void {
  const lockingDatabase = new DatabaseSync(file);
  lockingDatabase.exec('begin immediate');
  return () => {
    lockingDatabase.exec('rollback');
    lockingDatabase.close();
  };
}

describe('a SQLite file that another program locks for a long time', () => {
  const file = join(useFixtures().folder(), 'locked.sqlite');
  const database = useFixtures().start(() => openDatabase({ ...defaultDatabaseOptions, postgres: undefined, file }));
  const ids = () => findWorkspaceIds(database.db);

  for (const [name, write] of [
    ['statements', (id: string) => insertWorkspace(database.db, id)],
    ['transactions', (id: string) => transact(database.db, (db) => insertWorkspace(db, id))],
  ] as const)
    it(`[find C4] allows reads while ${name} wait for the lock, and then applies them once`, async () => {
      const unlock = lockForWriting(file);
      const newIds = ['one', 'two', 'three'].map((id) => `${name}-${id}`);
      let endedCount = 0;
      const writes = newIds.map((id) => write(id).finally(() => endedCount++));
      for (const write of writes) write.catch(() => undefined);
      for (let n = 0; n < 5; n += 1) assert.ok(!(await ids()).some((id) => newIds.includes(id)));
      assert.equal(endedCount, 0, 'a read waited for a write');
      unlock();
      await Promise.all(writes);
      assert.deepEqual((await ids()).filter((id) => newIds.includes(id)).toSorted(), newIds.toSorted());
    });

  it('[find C4] fails every waiting write within one time limit, not one after the other', async () => {
    const unlock = lockForWriting(file);
    const results = await assertWithinDeadline(maxWaitMs, () =>
      Promise.allSettled(['a', 'b', 'c'].map((id) => insertWorkspace(database.db, id))),
    );
    unlock();
    for (const result of results) assert.match(String('reason' in result && result.reason), /the database is busy/);
    await insertWorkspace(database.db, 'a');
    assert.ok((await ids()).includes('a'));
  });

  it('[find C4] keeps other statements out of an open transaction', async () => {
    const openSignal = Promise.withResolvers<void>();
    const failSignal = Promise.withResolvers<void>();
    const failingTransaction = transact(database.db, async (db) => {
      await insertWorkspace(db, 'undone');
      openSignal.resolve();
      await failSignal.promise;
      throw new Error('undone');
    });
    await openSignal.promise;
    const otherInsert = insertWorkspace(database.db, 'kept');
    const idsWhileOpen = ids();
    failSignal.resolve();
    await assert.rejects(failingTransaction, /undone/);
    await otherInsert;
    assert.ok(!(await idsWhileOpen).includes('undone'));
    assert.ok((await ids()).includes('kept'));
  });
});

describe('a service whose SQLite file another program locks', () => {
  const { toolhost, upstream } = useToolhost();

  it('[find C4] serves calls, including calls of servers that it has not loaded yet, and recovers with every record', async () => {
    const slugs = ['first', 'second', 'third'];
    const token = await toolhost.createKey();
    for (const slug of slugs) await toolhost.createServer(buildServerAt(slug, upstream.url));
    const unlock = lockForWriting(join(toolhost.dataDir, 'toolhost.sqlite'));
    const changes = slugs.map((slug) => toolhost.rest('PATCH', `/servers/${slug}`, { body: { name: 'Changed' } }));
    for (const slug of slugs) assert.notEqual((await toolhost.callTool(slug, token, 'get')).isError, true);
    assert.equal((await fetch(`${toolhost.url}/readyz`)).status, 200);
    assert.equal((await toolhost.rest('GET', '/servers')).status, 200);
    const firstReply = await Promise.race(changes);
    assert.equal(firstReply.status, 503, firstReply.text);
    assert.match(firstReply.text, /the database is busy with other changes/);
    unlock();
    await Promise.all(changes);
    assert.equal((await toolhost.rest('PATCH', '/servers/first', { body: { name: 'After' } })).status, 200);
    await eventually(async () =>
      assert.equal(((await toolhost.rest('GET', '/calls')).body.calls as Json[]).length, slugs.length),
    );
  });
});

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { type Database, openDatabase } from '../../apps/server/src/store/database.ts';
import type { DatabaseErrorKind } from '../../apps/server/src/store/engine/database-errors.ts';
import { transact } from '../../apps/server/src/store/engine/watched-dialect.ts';
import { eventually } from '../support/eventually.ts';
import { defaultDatabaseOptions } from '../support/store/default-options.ts';
import { generousLimits, withConnectTimeout } from '../support/store/generous-limits.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { insertWorkspace } from '../support/store/workspace-rows.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Returns a barrier that opens once `count` callers have arrived. */
function barrier(count: number): () => Promise<void> {
  const open = Promise.withResolvers<void>();
  let missing = count;
  return () => {
    if (--missing <= 0) open.resolve();
    return open.promise;
  };
}

describe('transactions that PostgreSQL aborts because of concurrent ones', () => {
  const fixtures = useFixtures();
  const { database: location } = usePostgres(fixtures);
  const databaseErrors: DatabaseErrorKind[] = [];
  const database = fixtures.start(() =>
    openDatabase({
      ...defaultDatabaseOptions,
      postgres: { url: withConnectTimeout(location.url), maxConnections: 10, authorities: undefined },
      postgresLimits: generousLimits,
      onDatabaseError: (kind) => databaseErrors.push(kind),
    }),
  );
  before(async () => {
    for (const id of ['one', 'two']) await insertWorkspace(database.db, id);
  });
  const getName = async (id: string) =>
    (await database.db.selectFrom('workspaces').select('name').where('id', '=', id).executeTakeFirstOrThrow()).name;
  const rename = (db: Database['db'], id: string, to: string) =>
    db.updateTable('workspaces').set({ name: to }).where('id', '=', id).execute();

  it('[find C4] repeats a transaction after a deadlock (40P01), so that both transactions succeed', async () => {
    databaseErrors.length = 0;
    const waitForBoth = barrier(2);
    let attempts = 0;
    const renameBoth = (first: string, second: string, to: string) =>
      transact(database.db, async (db) => {
        attempts++;
        await rename(db, first, to);
        await waitForBoth();
        await rename(db, second, to);
      });
    await Promise.all([renameBoth('one', 'two', 'ann'), renameBoth('two', 'one', 'bob')]);
    // The repeated transaction may lock the row again before the other one has woken up, which causes another deadlock.
    assert.deepEqual([attempts, new Set(databaseErrors)], [2 + databaseErrors.length, new Set(['serialization'])]);
    assert.equal(await getName('one'), await getName('two'));
  });

  it('[find C4] fails as unavailable when a transaction is aborted again on every attempt', async () => {
    let attempts = 0;
    const transaction = transact(database.db, async (db) => {
      attempts++;
      await sql`set transaction isolation level repeatable read`.execute(db);
      await db.selectFrom('workspaces').selectAll().execute();
      await rename(database.db, 'one', `other ${attempts}`);
      await rename(db, 'one', 'never');
    });
    await assert.rejects(transaction, { kind: 'unavailable', errorKind: 'serialization', retryAfterS: 1 });
    assert.equal(attempts, 4);
  });

  describe('in a service with strictly isolated transactions', () => {
    const service = useFixtures();
    const other = service.start(
      async () => {
        const client = new pg.Client({ connectionString: location.url });
        await client.connect();
        const name = new URL(location.url).pathname.slice(1);
        await client.query(`alter database ${name} set default_transaction_isolation = 'repeatable read'`);
        return client;
      },
      (client) => client.end(),
    );
    const toolhost = service.start(() => startToolhost({ env: location.env }));
    before(() => toolhost.createServer(buildServerAt('contended', 'https://api.example.com')));
    /**
     * Waits until a statement that sets this column waits for a lock. Other statements, such as those of upkeep, may
     * wait as well.
     */
    const waitUntilBlocked = (column: string) =>
      eventually(async () => {
        // A transaction caches the activity after reading it once.
        await other.query('select pg_stat_clear_snapshot()');
        const { rows } = await other.query(
          "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like $1",
          [`update % set %"${column}" = $%`],
        );
        assert.equal(rows.length, 1);
      });

    it('[find C4] returns the ordinary response to a request whose transaction was aborted', async () => {
      await other.query('begin');
      await other.query("update servers set name = 'theirs' where slug = 'contended'");
      const reply = toolhost.rest('PATCH', '/servers/contended', { body: { name: 'Ours' } });
      await waitUntilBlocked('updated_at');
      await other.query('commit');
      assert.equal((await reply).status, 200, (await reply).text);
      const { body } = await toolhost.rest('GET', '/servers/contended');
      assert.equal((body.server as { name: string }).name, 'Ours');
    });

    it('[find C4] repeats a single statement that was aborted', async () => {
      const created = await toolhost.rest('POST', '/keys', { body: { name: 'k', scopes: ['call'] } });
      await other.query('begin');
      await other.query('update api_keys set name = name');
      const reply = toolhost.rest('DELETE', `/keys/${created.body.id}`);
      await waitUntilBlocked('revoked_at');
      await other.query('commit');
      assert.equal((await reply).status < 300, true, (await reply).text);
    });
  });
});

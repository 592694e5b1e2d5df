import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { type Kysely, type KyselyPlugin, sql, type Transaction } from 'kysely';
import { pino } from 'pino';
import { engines } from '../../../../../test/sets.ts';
import { buildApiKey, buildCall, buildServer } from '../../../../../test/support/store/rows.ts';
import { useDatabase, useStores } from '../../../../../test/support/store/use-stores.ts';
import { readConfig } from '../../config.ts';
import { insertApiKey, markKeyRevoked } from '../../store/api-keys.ts';
import { type Database, type DatabaseOptions, openDatabase } from '../../store/database.ts';
import { deleteInSteps } from '../../store/delete-in-steps.ts';
import { insertSession } from '../../store/people/sessions.ts';
import { saveUser } from '../../store/people/users.ts';
import { pruneKeysOverLimit, prunePeople } from '../../store/pruning/prune-people.ts';
import type { Tables } from '../../store/schema.ts';
import { insertServer } from '../../store/servers/servers.ts';
import { insertWorkspace } from '../../store/workspaces.ts';
import type { LeaderJob } from './leader-job.ts';
import { startMaintenance } from './leader-jobs.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
const start = Date.parse('2026-11-20T12:00:00Z');
const { config } = readConfig(
  { CALL_RETENTION_DAYS: '10', AUDIT_RETENTION_DAYS: '20', QUOTAS: 'versions=2' },
  () => '',
);

for (const engine of engines)
  describe(`maintenance of expired data on ${engine}`, () => {
    const stores = useStores(engine);

    /** Opens two processes on a new database. Time passes only with `advanceTime`. */
    const openWorld = async (t: TestContext) => {
      const options: DatabaseOptions = await stores.newOptions();
      const databases: Database[] = [await openDatabase(options), await openDatabase(options)];
      let now = start;
      const log = pino({ level: 'silent' });
      const statements = createStatementCounter();
      const [one, two] = databases.map((database) => {
        const records = database.records.withPlugin(statements.plugin);
        return startMaintenance(config, { ...database, records }, log, () => now, day);
      }) as [LeaderJob, LeaderJob];
      const { db } = databases[0] as Database;
      await insertWorkspace(db, { id: 'ours', name: 'Ours', at: start });
      t.after(async () => {
        for (const leaderJob of [one, two]) await leaderJob.stop();
        for (const database of databases) await database.close();
      });
      return {
        db,
        one,
        two,
        wait: (ms: number) => {
          now += ms;
        },
        now: () => now,
        statements,
        insert: (table: keyof Tables, ...rows: object[]) =>
          db
            .insertInto(table)
            .values(rows as never[])
            .execute(),
        async ids(table: keyof Tables, column = 'id'): Promise<unknown[]> {
          const { rows } = await sql<{ id: unknown }>`
            select ${sql.ref(column)} as id from ${sql.table(table)} order by 1`.execute(db);
          return rows.map(({ id }) => id);
        },
      };
    };
    const runRound = async (leaderJob: LeaderJob) => {
      await leaderJob.poll();
      await leaderJob.whenIdle();
    };
    const buildAuditEvent = (id: string, at: number) => ({
      id,
      at,
      workspace_id: 'ours',
      actor_kind: 'user',
      actor_id: 'usr_1',
      operation: 'x',
      target: null,
      detail: '{}',
      request_id: 'r',
    });

    /** Stores a person with a workspace, both with this id. */
    const insertOwner = async (
      { db, insert }: Awaited<ReturnType<typeof openWorld>>,
      id: string,
      created_at: number,
      last_seen_at: number,
    ) => {
      await insertWorkspace(db, { id, name: id, at: created_at });
      await insert('users', { id, issuer: 'x', subject: id, email: null, name: null, created_at, last_seen_at });
      await insert('members', { workspace_id: id, user_id: id, role: 'owner', created_at });
    };

    it('[find A5] runs in one process, and another one takes over within the lease when that process dies', async (t) => {
      const world = await openWorld(t);
      const { one, two, insert, ids, wait: advanceTime, now } = world;
      const insertOldEvent = (id: string) => insert('audit_events', buildAuditEvent(id, now() - 21 * day));
      await insertOldEvent('first');
      await runRound(one);
      assert.deepEqual(await ids('audit_events'), []);
      await insertOldEvent('second');
      await runRound(two);
      advanceTime(45_000);
      await runRound(two);
      assert.deepEqual(await ids('audit_events'), ['second'], 'the other process holds the lease');
      await runRound(one);
      advanceTime(45_000);
      await runRound(two);
      assert.deepEqual(await ids('audit_events'), ['second'], 'the lease was renewed');
      advanceTime(15_000);
      await runRound(two);
      assert.deepEqual(await ids('audit_events'), [], 'the lease has expired');
      await insertOldEvent('third');
      advanceTime(59 * minute);
      await Promise.all([runRound(one), runRound(two)]);
      await runRound(two);
      const remaining = await ids('audit_events');
      advanceTime(60 * minute);
      await runRound(two);
      assert.deepEqual([remaining.length <= 1, await ids('audit_events')], [true, []]);
      await two.stop();
      assert.deepEqual((await ids('leases', 'held_until')).map(Number), [0], 'a process that stops releases the lease');
      await insertOldEvent('fourth');
      await runRound(one);
      assert.deepEqual(await ids('audit_events'), []);
    });

    it('[find A5] deletes expired rows from every table, and keeps newer ones', async (t) => {
      const world = await openWorld(t);
      const { db, insert, ids, now } = world;
      const at = now();
      type Pair = [
        table: keyof Tables,
        column: string,
        ages: [number, number],
        row: (id: string, at: number) => object,
      ];
      const program = { version: 'x', host: 'x', pid: 1, started_at: 1, master_keys: 'x' };
      const invited = { role: 'viewer', invited_by: 'x' };
      const capture = { server_id: 's', sealed_document: 'x' };
      const grants = { server_id: 's', slug: 's', client_id: 'c', client_name: 'c', scope: '', agreement: 'a' };
      const sealed = { sealed_tokens: '', tokens_version: 1, generation: 1, rotated_at: 1, created_at: 1 };
      const user = { issuer: 'x', email: null, name: null, created_at: at - 100 * day };
      const ours = { workspace_id: 'ours' };
      const pairs: Pair[] = [
        ['audit_events', 'id', [21 * day, 19 * day], buildAuditEvent],
        ['calls', 'id', [11 * day, 9 * day], (id, started_at) => buildCall({ id, started_at })],
        ['changes', 'id', [2 * day, 1], (id, at) => ({ id, at, kind: 'server', ref: 'x', position: at })],
        [
          'processes',
          'id',
          [2 * minute, minute / 2],
          (id, seen_at) => ({ id, ...program, seen_at, clock_at: seen_at }),
        ],
        ['users', 'id', [21 * day, 19 * day], (id, last_seen_at) => ({ id, subject: id, ...user, last_seen_at })],
        [
          'invitations',
          'email',
          [91 * day, 89 * day],
          (email, created_at) => ({ ...ours, email, ...invited, created_at }),
        ],
        [
          'sessions',
          'hash',
          [1, -1],
          (hash, expires_at) => ({ hash, user_id: 'young', ...ours, created_at: 1, expires_at }),
        ],
        ['sign_in_links', 'hash', [1, -1], (hash, expires_at) => ({ hash, expires_at })],
        ['captures', 'call_id', [25 * 60 * minute, minute], (call_id, at) => ({ call_id, ...ours, ...capture, at })],
        ['grants', 'id', [21 * day, 19 * day], (id, revoked_at) => ({ id, ...ours, ...grants, ...sealed, revoked_at })],
      ];
      for (const [table, , [oldAge, youngAge], row] of pairs)
        await insert(table, row('old', at - oldAge), row('young', at - youngAge));
      for (const [id, revokedAt, createdBy] of [
        ['maker', at - 30 * day, 'usr_1'],
        ['made', undefined, 'maker'],
        ['ended', at - 21 * day, 'usr_1'],
        ['young', at - 19 * day, 'usr_1'],
      ] as const) {
        await insertApiKey(db, buildApiKey({ id, createdBy, expiresAt: undefined }));
        if (revokedAt !== undefined) await markKeyRevoked(db, 'ours', id, revokedAt);
      }
      await insertApiKey(db, buildApiKey({ id: 'expired', expiresAt: at - 21 * day }));
      await runRound(world.one);
      for (const [table, column] of pairs) assert.deepEqual(await ids(table, column), ['young'], table);
      assert.deepEqual(await ids('api_keys'), ['made', 'maker', 'young'], 'the creator of an active key must stay');
      await markKeyRevoked(db, 'ours', 'made', at - 25 * day);
      world.wait(60 * minute);
      await runRound(world.one);
      world.wait(60 * minute);
      await runRound(world.one);
      assert.deepEqual(await ids('api_keys'), ['young']);
    });

    it('[G2] runs no statement for a workspace that has nothing to delete', async (t) => {
      const world = await openWorld(t);
      const { db, insert, ids, now } = world;
      const countRoundStatements = async () => {
        world.wait(60 * minute);
        world.statements.count = 0;
        await runRound(world.one);
        return world.statements.count;
      };
      await countRoundStatements();
      const before = await countRoundStatements();
      assert.ok(before > 0);
      await sql`insert into workspaces (id, name, created_at)
        with recursive n (n) as (select 1 union all select n + 1 from n where n < 10000)
        select 'idle' || n, 'Idle', ${start} from n`.execute(db);
      const old = { started_at: now() - 11 * day };
      await insert('calls', buildCall({ id: 'one', ...old, workspace_id: 'idle1' }), buildCall({ id: 'two', ...old }));
      assert.equal(await countRoundStatements(), before);
      assert.deepEqual(await ids('calls'), []);
    });

    it('[find A5] prunes all other tables when one table cannot be pruned', async (t) => {
      const world = await openWorld(t);
      const { db, insert, ids, now } = world;
      await insert('audit_events', buildAuditEvent('old', now() - 21 * day));
      await sql`alter table captures rename to captures_elsewhere`.execute(db);
      await runRound(world.one);
      assert.deepEqual(await ids('audit_events'), []);
      await sql`alter table captures_elsewhere rename to captures`.execute(db);
      await insert('audit_events', buildAuditEvent('later', now() - 21 * day));
      world.wait(5 * minute);
      await runRound(world.one);
      assert.deepEqual(await ids('audit_events'), [], 'a failed round must be repeated soon');
    });

    it('[find A5] deletes empty workspaces whose members have not signed in for a long time', async (t) => {
      const world = await openWorld(t);
      const { db, ids, now } = world;
      const at = now();
      for (const [id, age] of [
        ['empty', 21 * day],
        ['full', 21 * day],
        ['visited', day],
      ] as const)
        await insertOwner(world, id, at - 100 * day, at - age);
      await insertServer(db, buildServer({ workspaceId: 'full' }));
      await insertWorkspace(db, { id: 'operators', name: 'x', at: at - 100 * day });
      await runRound(world.one);
      assert.deepEqual(await ids('workspaces'), ['full', 'operators', 'ours', 'visited']);
      assert.deepEqual(await ids('users'), ['full', 'visited']);
      assert.deepEqual(await ids('members', 'user_id'), ['full', 'visited']);
    });

    it('[find A5] keeps the workspace of a person who signs in during pruning', async (t) => {
      const world = await openWorld(t);
      const { db, ids, now } = world;
      const before = now() - 10 * day;
      for (const id of ['first', 'second']) await insertOwner(world, id, before - day, before - day);
      const returnedUsers: string[] = [];
      /** Signs in after the rows to delete were found and before the first one is deleted. */
      const signInAgain = async () => {
        if (returnedUsers.length > 0) return;
        const user = { id: 'second', issuer: 'x', subject: 'second', email: null, name: null };
        returnedUsers.push((await saveUser(db, { ...user, at: now() })).id);
      };
      const dbWithSignIn = Object.assign(db.withTables(), {
        transaction: () => ({
          execute: async (work: (transaction: Transaction<Tables>) => Promise<void>) => {
            await signInAgain();
            return db.transaction().execute(work);
          },
        }),
      }) as unknown as Kysely<Tables>;
      await prunePeople(dbWithSignIn, before);
      assert.deepEqual(returnedUsers, ['second']);
      assert.deepEqual(await ids('workspaces'), ['ours', 'second']);
      assert.deepEqual(await ids('members', 'user_id'), ['second']);
    });

    it('[find A5] deletes the sessions of a person beyond 50', async (t) => {
      const world = await openWorld(t);
      const { db, insert, ids } = world;
      await insert('users', { id: 'u', issuer: 'x', subject: 'u', email: null, name: null, created_at: 1 });
      for (let at = 1; at <= 52; at++)
        await insertSession(db, { hash: `h${at}`, userId: 'u', workspaceId: 'ours', at, expiresAt: start + day });
      const hashes = await ids('sessions', 'hash');
      assert.deepEqual([hashes.length, hashes.includes('h1'), hashes.includes('h2')], [50, false, false]);
    });

    it('[find A5] deletes revoked and expired keys of a workspace beyond the newest ones', async (t) => {
      const world = await openWorld(t);
      const { db, ids } = world;
      await insertWorkspace(db, { id: 'theirs', name: 'Theirs', at: start });
      for (const [id, createdAt, more] of [
        ['works', 1, { expiresAt: start + day }],
        ['maker', 2, {}],
        ['revoked', 3, {}],
        ['expired', 4, { expiresAt: start }],
        ['made', 5, { createdBy: 'maker' }],
        ['newest', 6, {}],
        ['theirs', 1, { workspaceId: 'theirs' }],
      ] as const)
        await insertApiKey(db, buildApiKey({ id, createdAt, expiresAt: undefined, createdBy: 'usr_1', ...more }));
      for (const id of ['maker', 'revoked', 'made', 'newest']) await markKeyRevoked(db, 'ours', id, start);
      await markKeyRevoked(db, 'theirs', 'theirs', start);
      await pruneKeysOverLimit(db, start, 2);
      assert.deepEqual(await ids('api_keys'), ['made', 'maker', 'newest', 'theirs', 'works']);
    });
  });

function createStatementCounter() {
  const statements = {
    count: 0,
    plugin: {
      transformQuery({ node }) {
        statements.count += 1;
        return node;
      },
      transformResult: async ({ result }) => result,
    } satisfies KyselyPlugin as KyselyPlugin,
  };
  return statements;
}

describe('the SQLite file', () => {
  const database = useDatabase('sqlite');

  it('[find A5] keeps the size of the SQLite file while as much is deleted as is added', async () => {
    const { db } = database;
    await insertWorkspace(db, { id: 'ours', name: 'Ours', at: start });
    const pages = async () => {
      const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(db);
      return rows[0]?.page_count ?? 0;
    };
    const addCalls = async (round: number) => {
      const rows = Array.from({ length: 2000 }, (_, n) => buildCall({ id: `${round}-${n}`, started_at: round }));
      for (let n = 0; n < rows.length; n += 100)
        await db
          .insertInto('calls')
          .values(rows.slice(n, n + 100))
          .execute();
    };
    await addCalls(1);
    const full = await pages();
    for (let n = 2; n < 6; n++) {
      await deleteInSteps(db, { table: 'calls', key: ['id'], where: sql`started_at < ${n}` });
      await addCalls(n);
    }
    assert.ok((await pages()) <= full * 1.1, `${await pages()} pages, ${full} before`);
  });
});

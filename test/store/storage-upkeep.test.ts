import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Kysely, type KyselyPlugin, sql, type Transaction } from 'kysely';
import { pino } from 'pino';
import { startMaintenance } from '../../src/app/elected/elected.ts';
import type { LeaderJob } from '../../src/app/elected/elected-work.ts';
import { readConfig } from '../../src/config.ts';
import { insertApiKey, markKeyRevoked } from '../../src/store/api-keys.ts';
import { type Database, type DatabaseOptions, openDatabase } from '../../src/store/database.ts';
import { deleteInSteps } from '../../src/store/delete-in-steps.ts';
import { insertSession } from '../../src/store/people/sessions.ts';
import { saveUser } from '../../src/store/people/users.ts';
import { pruneKeysOverLimit, prunePeople } from '../../src/store/pruning/prune-people.ts';
import type { Tables } from '../../src/store/schema.ts';
import { insertServer } from '../../src/store/servers/servers.ts';
import { insertWorkspace } from '../../src/store/workspaces.ts';
import { engines } from '../sets.ts';
import { aCall, anApiKey, aServer } from '../support/store/rows.ts';
import { type Stores, startStores } from '../support/store/stores.ts';

const minute = 60_000;
const day = 24 * 60 * minute;
const start = Date.parse('2026-11-20T12:00:00Z');
const { config } = readConfig(
  { CALL_RETENTION_DAYS: '10', AUDIT_RETENTION_DAYS: '20', QUOTAS: 'versions=2' },
  () => '',
);

for (const engine of engines) {
  describe(`maintenance of expired data on ${engine}`, () => {
    let stores: Stores;
    before(async () => {
      stores = await startStores(engine);
    });
    after(() => stores?.stop());

    /** Opens two processes on a new database. Time passes only with `advanceTime`. */
    const open = async () => {
      const options: DatabaseOptions = await stores.newOptions();
      const databases: Database[] = [await openDatabase(options), await openDatabase(options)];
      let now = start;
      const logged: string[] = [];
      const log = pino({ level: 'warn' }, { write: (line) => logged.push(line) });
      const statements = countedStatements();
      const [one, two] = databases.map((database) => {
        const records = database.records.withPlugin(statements.plugin);
        return startMaintenance(config, { ...database, records }, log, () => now, day);
      }) as [LeaderJob, LeaderJob];
      const { db } = databases[0] as Database;
      await insertWorkspace(db, { id: 'ours', name: 'Ours', at: start });
      return {
        db,
        one,
        two,
        wait: (ms: number) => {
          now += ms;
        },
        now: () => now,
        logged,
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
        async stop() {
          for (const upkeep of [one, two]) await upkeep.stop();
          for (const database of databases) await database.close();
        },
      };
    };
    const round = async (upkeep: LeaderJob) => {
      await upkeep.poll();
      await upkeep.whenIdle();
    };
    const audit = (id: string, at: number) => ({
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

    it('[find A5] runs in one process, and another one takes over within the lease when that process dies', async () => {
      const world = await open();
      const { one, two, insert, ids, wait, now } = world;
      const old = (id: string) => insert('audit_events', audit(id, now() - 21 * day));
      await old('first');
      await round(one);
      assert.deepEqual(await ids('audit_events'), []);
      await old('second');
      await round(two);
      wait(45_000);
      await round(two);
      assert.deepEqual(await ids('audit_events'), ['second'], 'the other process holds the lease');
      await round(one);
      wait(45_000);
      await round(two);
      assert.deepEqual(await ids('audit_events'), ['second'], 'the lease was renewed');
      wait(15_000);
      await round(two);
      assert.deepEqual(await ids('audit_events'), [], 'the lease has expired');
      await old('third');
      wait(59 * minute);
      await Promise.all([round(one), round(two)]);
      await round(two);
      const taken = await ids('audit_events');
      wait(60 * minute);
      await round(two);
      assert.deepEqual([taken.length <= 1, await ids('audit_events')], [true, []]);
      await two.stop();
      assert.deepEqual((await ids('leases', 'held_until')).map(Number), [0], 'a process that stops releases the lease');
      await old('fourth');
      await round(one);
      assert.deepEqual(await ids('audit_events'), []);
      await world.stop();
    });

    it('[find A5] deletes expired rows from every table, and keeps newer ones', async () => {
      const world = await open();
      const { db, insert, ids, now } = world;
      const at = now();
      const both = async (table: keyof Tables, row: (id: string, age: number) => object, ages: [number, number]) =>
        insert(table, row('old', ages[0]), row('young', ages[1]));
      await both('audit_events', (id, age) => audit(id, at - age), [21 * day, 19 * day]);
      await both('calls', (id, age) => ({ ...aCall({ id, started_at: at - age }) }), [11 * day, 9 * day]);
      const change = (id: string, age: number, position: number) => ({
        id,
        at: at - age,
        kind: 'server',
        ref: 'x',
        position,
      });
      await insert('changes', change('old', 2 * day, 1), change('young', 1, 2));
      const seen = (id: string, age: number) => ({
        id,
        version: 'x',
        host: 'x',
        pid: 1,
        started_at: 1,
        seen_at: at - age,
        clock_at: at - age,
        master_keys: 'x',
      });
      await both('processes', seen, [2 * minute, minute / 2]);
      const person = (id: string, age: number) => ({
        id,
        issuer: 'x',
        subject: id,
        email: null,
        name: null,
        created_at: at - 100 * day,
        last_seen_at: at - age,
      });
      await both('users', person, [21 * day, 19 * day]);
      const invitation = (email: string, age: number) => ({
        workspace_id: 'ours',
        email,
        role: 'viewer',
        invited_by: 'x',
        created_at: at - age,
      });
      await both('invitations', invitation, [91 * day, 89 * day]);
      const session = (hash: string, age: number) => ({
        hash,
        user_id: 'young',
        workspace_id: 'ours',
        created_at: 1,
        expires_at: at - age,
      });
      await both('sessions', session, [1, -1]);
      const capture = (call_id: string, age: number) => ({
        call_id,
        workspace_id: 'ours',
        server_id: 's',
        at: at - age,
        sealed_document: 'x',
      });
      await both('captures', capture, [25 * 60 * minute, minute]);
      const grant = (id: string, age: number) => ({
        id,
        workspace_id: 'ours',
        server_id: 'srv',
        slug: 's',
        client_id: 'c',
        client_name: 'c',
        user_id: null,
        scope: '',
        agreement: 'a',
        sealed_tokens: '',
        tokens_version: 1,
        generation: 1,
        rotated_at: 1,
        created_at: 1,
        revoked_at: at - age,
      });
      await both('grants', grant, [21 * day, 19 * day]);
      for (const [id, revokedAt, createdBy] of [
        ['maker', at - 30 * day, 'usr_1'],
        ['made', undefined, 'maker'],
        ['ended', at - 21 * day, 'usr_1'],
        ['young', at - 19 * day, 'usr_1'],
      ] as const) {
        await insertApiKey(db, anApiKey({ id, createdBy, expiresAt: undefined }));
        if (revokedAt !== undefined) await markKeyRevoked(db, 'ours', id, revokedAt);
      }
      await insertApiKey(db, anApiKey({ id: 'expired', expiresAt: at - 21 * day }));
      await round(world.one);
      for (const table of ['audit_events', 'calls', 'changes', 'processes', 'users', 'grants'] as const)
        assert.deepEqual(await ids(table), ['young'], table);
      assert.deepEqual(await ids('invitations', 'email'), ['young']);
      assert.deepEqual(await ids('sessions', 'hash'), ['young']);
      assert.deepEqual(await ids('captures', 'call_id'), ['young']);
      assert.deepEqual(await ids('api_keys'), ['made', 'maker', 'young'], 'the creator of an active key must stay');
      await markKeyRevoked(db, 'ours', 'made', at - 25 * day);
      world.wait(60 * minute);
      await round(world.one);
      world.wait(60 * minute);
      await round(world.one);
      assert.deepEqual(await ids('api_keys'), ['young']);
      await world.stop();
    });

    it('[G2] runs no statement for a workspace that has nothing to delete', async () => {
      const world = await open();
      const { db, insert, ids, now } = world;
      const statementsOfRound = async () => {
        world.wait(60 * minute);
        world.statements.count = 0;
        await round(world.one);
        return world.statements.count;
      };
      await statementsOfRound();
      const before = await statementsOfRound();
      assert.ok(before > 0);
      await sql`insert into workspaces (id, name, created_at)
        with recursive n (n) as (select 1 union all select n + 1 from n where n < 10000)
        select 'idle' || n, 'Idle', ${start} from n`.execute(db);
      const old = { started_at: now() - 11 * day };
      await insert('calls', aCall({ id: 'one', ...old, workspace_id: 'idle1' }), aCall({ id: 'two', ...old }));
      assert.equal(await statementsOfRound(), before);
      assert.deepEqual(await ids('calls'), []);
      await world.stop();
    });

    it('[find A5] prunes all other tables when one table cannot be pruned', async () => {
      const world = await open();
      const { db, insert, ids, now } = world;
      await insert('audit_events', audit('old', now() - 21 * day));
      await sql`alter table captures rename to captures_elsewhere`.execute(db);
      await round(world.one);
      assert.deepEqual(await ids('audit_events'), []);
      await sql`alter table captures_elsewhere rename to captures`.execute(db);
      await insert('audit_events', audit('later', now() - 21 * day));
      world.wait(5 * minute);
      await round(world.one);
      assert.deepEqual(await ids('audit_events'), [], 'a failed round must be repeated soon');
      await world.stop();
    });

    it('[find A5] deletes empty workspaces whose members have not signed in for a long time', async () => {
      const world = await open();
      const { db, insert, ids, now } = world;
      const at = now();
      for (const [id, seenAt] of [
        ['empty', at - 21 * day],
        ['full', at - 21 * day],
        ['visited', at - day],
      ] as const) {
        await insertWorkspace(db, { id, name: id, at: at - 100 * day });
        const times = { created_at: at - 100 * day, last_seen_at: seenAt };
        await insert('users', { id, issuer: 'x', subject: id, email: null, name: null, ...times });
        await insert('members', { workspace_id: id, user_id: id, role: 'owner', created_at: at - 100 * day });
      }
      await insertServer(db, aServer({ workspaceId: 'full' }));
      await insertWorkspace(db, { id: 'operators', name: 'x', at: at - 100 * day });
      await round(world.one);
      assert.deepEqual(await ids('workspaces'), ['full', 'operators', 'ours', 'visited']);
      assert.deepEqual(await ids('users'), ['full', 'visited']);
      assert.deepEqual(await ids('members', 'user_id'), ['full', 'visited']);
      await world.stop();
    });

    it('[find A5] keeps the workspace of a person who signs in during pruning', async () => {
      const world = await open();
      const { db, insert, ids, now } = world;
      const before = now() - 10 * day;
      for (const id of ['first', 'second']) {
        await insertWorkspace(db, { id, name: id, at: before - day });
        const times = { created_at: before - day, last_seen_at: before - day };
        await insert('users', { id, issuer: 'x', subject: id, email: null, name: null, ...times });
        await insert('members', { workspace_id: id, user_id: id, role: 'owner', created_at: before - day });
      }
      const back: string[] = [];
      /** Signs in after the rows to delete were found and before the first one is deleted. */
      const comeBack = async () => {
        if (back.length > 0) return;
        const user = { id: 'second', issuer: 'x', subject: 'second', email: null, name: null };
        back.push((await saveUser(db, { ...user, at: now() })).id);
      };
      const meanwhile = Object.assign(db.withTables(), {
        transaction: () => ({
          execute: async (work: (transaction: Transaction<Tables>) => Promise<void>) => {
            await comeBack();
            return db.transaction().execute(work);
          },
        }),
      }) as unknown as Kysely<Tables>;
      await prunePeople(meanwhile, before);
      assert.deepEqual(back, ['second']);
      assert.deepEqual(await ids('workspaces'), ['ours', 'second']);
      assert.deepEqual(await ids('members', 'user_id'), ['second']);
      await world.stop();
    });

    it('[find A5] deletes the sessions of a person beyond 50', async () => {
      const world = await open();
      const { db, insert, ids } = world;
      await insert('users', { id: 'u', issuer: 'x', subject: 'u', email: null, name: null, created_at: 1 });
      for (let at = 1; at <= 52; at++)
        await insertSession(db, { hash: `h${at}`, userId: 'u', workspaceId: 'ours', at, expiresAt: start + day });
      const hashes = await ids('sessions', 'hash');
      assert.deepEqual([hashes.length, hashes.includes('h1'), hashes.includes('h2')], [50, false, false]);
      await world.stop();
    });

    it('[find A5] deletes revoked and expired keys of a workspace beyond the newest ones', async () => {
      const world = await open();
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
        await insertApiKey(db, anApiKey({ id, createdAt, expiresAt: undefined, createdBy: 'usr_1', ...more }));
      for (const id of ['maker', 'revoked', 'made', 'newest']) await markKeyRevoked(db, 'ours', id, start);
      await markKeyRevoked(db, 'theirs', 'theirs', start);
      await pruneKeysOverLimit(db, start, 2);
      assert.deepEqual(await ids('api_keys'), ['made', 'maker', 'newest', 'theirs', 'works']);
      await world.stop();
    });
  });
}

/** Counts the statements of a database to which its plugin is added. */
function countedStatements() {
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
  it('[find A5] keeps the size of the SQLite file while as much is deleted as is added', async () => {
    const stores = await startStores('sqlite');
    try {
      const { db } = await stores.open();
      await insertWorkspace(db, { id: 'ours', name: 'Ours', at: start });
      const pages = async () => {
        const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(db);
        return rows[0]?.page_count ?? 0;
      };
      const fill = async (round: number) => {
        const rows = Array.from({ length: 2000 }, (_, n) => aCall({ id: `${round}-${n}`, started_at: round }));
        for (let n = 0; n < rows.length; n += 100)
          await db
            .insertInto('calls')
            .values(rows.slice(n, n + 100))
            .execute();
      };
      await fill(1);
      const full = await pages();
      for (let n = 2; n < 6; n++) {
        await deleteInSteps(db, { table: 'calls', key: ['id'], where: sql`started_at < ${n}` });
        await fill(n);
      }
      assert.ok((await pages()) <= full * 1.1, `${await pages()} pages, ${full} before`);
    } finally {
      await stores.stop();
    }
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type RootOperationNode, sql } from 'kysely';
import { operations } from '../../src/operations/index.ts';
import type { Actor, Operation } from '../../src/operations/operation.ts';
import { runOperation } from '../../src/operations/run-operation.ts';
import { insertCaptures, pruneCaptures } from '../../src/store/calls/captures.ts';
import { rowsAtOnce } from '../../src/store/delete-in-steps.ts';
import { pruneOAuth } from '../../src/store/pruning/prune-logins.ts';
import { serverAt } from '../support/configs.ts';
import { aCall } from '../support/store/rows.ts';
import { engines } from '../support/store/stores.ts';
import { type EngineToolhost, startOn } from '../support/toolhost/engine-toolhost.ts';
import { operate } from '../support/toolhost/operate.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const day = 24 * 60 * 60_000;
const [grants, captures] = [2500, 120];
/** Rows that the deletion itself may change in a table, so that others do not wait for it. */
const mostAtOnce = 500;

for (const engine of engines) {
  describe(`[find A5] a deleted server on ${engine}`, () => {
    let world: EngineToolhost;
    before(async () => {
      world = await startOn(engine);
    });
    after(() => world?.stop());

    const rest = (method: string, path: string) => world.toolhost.rest(method, path);
    const statuses = async (slug: string) => {
      const { body } = await rest('GET', `/grants?slug=${slug}&limit=200`);
      return new Set((body.grants as Json[]).map(({ status }) => status));
    };
    const count = async (from: string) => {
      const { db } = await world.database();
      const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.raw(from)}`.execute(db);
      return Number(rows[0]?.count);
    };

    /** A server with logins, an access token and a refresh token of each, and captures. */
    const makeServer = async (slug: string): Promise<string> => {
      const { body } = await world.toolhost.createServer(serverAt(slug, 'https://api.example.com'));
      const { id } = body.server as { id: string };
      const { db, calls } = await world.database();
      const rows = (count: number) =>
        sql.raw(
          `(with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count}) select i from n) as n`,
        );
      const name = sql`${sql.lit(slug)} || '-' || i`;
      await sql`insert into grants (id, workspace_id, server_id, slug, client_id, client_name, scope, agreement,
          sealed_tokens, tokens_version, generation, rotated_at, created_at)
        select ${name}, 'local', ${sql.lit(id)}, ${sql.lit(slug)}, 'c', 'c', '', 'a', 'sealed', 1, 1, 1, ${sql.lit(world.now())}
        from ${rows(grants)}`.execute(db);
      for (const kind of ['access', 'refresh'])
        await sql`insert into tokens (hash, grant_id, kind, generation, wrapped_key, expires_at)
          select ${sql.lit(kind)} || ${name}, ${name}, ${sql.lit(kind)}, 1, 'w', ${sql.lit(world.now() + 30 * day)}
          from ${rows(grants)}`.execute(db);
      await calls.write([
        aCall({ id: `call-${slug}`, workspace_id: 'local', server_id: id, slug, started_at: world.now() }),
      ]);
      await sql`insert into captures (call_id, workspace_id, server_id, at, sealed_document)
        select ${name}, 'local', ${sql.lit(id)}, ${sql.lit(world.now())}, 'sealed' from ${rows(captures)}`.execute(db);
      const { runner } = world.toolhost.running.app;
      const row = { callId: `call-${slug}`, workspaceId: 'local', serverId: id, at: world.now() + 1 };
      const document = JSON.stringify({ argumentsBytes: 0 });
      await insertCaptures(db, runner.parts.keyring, [{ ...row, document }]);
      return id;
    };

    it('is gone at once, with few rows of its many logins and captures; upkeep deletes the others in steps', async () => {
      const id = await makeServer('gone');
      await makeServer('kept');
      const tokens = () => count(`tokens where grant_id like 'gone-%'`);
      const captured = () => count(`captures where server_id = '${id}'`);
      const isShown = async (slug: string) => 'capture' in (await rest('GET', `/calls/call-${slug}`)).body;
      assert.deepEqual([...(await statuses('gone')), await isShown('gone')], ['active', true]);

      assert.equal((await rest('DELETE', '/servers/gone')).status, 200);
      assert.equal((await rest('GET', '/servers/gone')).status, 404);
      assert.deepEqual([...(await statuses('gone')), await isShown('gone')], ['revoked', false]);
      const changed = [2 * grants - (await tokens()), captures + 1 - (await captured())];
      assert.ok(
        changed.every((rows) => rows <= mostAtOnce),
        `deleted ${changed} tokens and captures in one transaction`,
      );

      const { db } = await world.database();
      const steps: number[] = [];
      let before = await tokens();
      const pause = async () => {
        const left = await tokens();
        steps.push(before - left);
        before = left;
      };
      await pruneOAuth(db, day, { now: world.now(), pause, onEnded: () => undefined });
      await pruneCaptures(db, world.now() - day);
      assert.deepEqual([await tokens(), await captured()], [0, 0]);
      assert.equal(await count(`grants where slug = 'gone' and (revoked_at is null or sealed_tokens <> '')`), 0);
      assert.ok(Math.max(...steps) <= rowsAtOnce, `deleted ${Math.max(...steps)} tokens in one step`);
      const kept = [
        await count(`tokens where grant_id like 'kept-%'`),
        await count(`captures where call_id like 'kept-%'`),
      ];
      assert.deepEqual(
        [...kept, ...(await statuses('kept'))],
        [2 * grants, captures, 'active'],
        'another server has all',
      );
    });

    describe('a change that deletes or ends many rows', () => {
      const rows = (count: number) =>
        sql.raw(
          `(with recursive n(i) as (select 1 union all select i + 1 from n where i < ${count}) select i from n) as n`,
        );
      const owner: Actor = {
        kind: 'user',
        id: 'usr_owner',
        workspaceId: 'local',
        scopes: ['manage'],
        servers: undefined,
        role: 'owner',
        sessionHash: 'session',
      };

      /** Runs an operation, and gives the number of its statements. */
      const statementsOf = async (op: Operation, input: object): Promise<number> => {
        const { runner } = world.toolhost.running.app;
        let statements = 0;
        const transactions = runner.transactions.withPlugin({
          transformQuery({ node }): RootOperationNode {
            statements += 1;
            return node;
          },
          transformResult: async ({ result }) => result,
        });
        await runOperation({ ...runner, transactions }, op, { actor: owner, input, requestId: 'test' });
        return statements;
      };

      it('takes as few statements for the keys of a member as for one', async () => {
        const { db } = await world.database();
        const member = async (id: string, keys: number) => {
          await db.insertInto('users').values({ id, issuer: 'x', subject: id, created_at: 1 }).execute();
          const role = id === owner.id ? 'owner' : 'viewer';
          await db.insertInto('members').values({ workspace_id: 'local', user_id: id, role, created_at: 1 }).execute();
          await sql`insert into api_keys (id, workspace_id, name, secret_hash, scopes, created_by, created_at)
            select ${sql.lit(`key_${id}`)} || i, 'local', 'k', 'x', '["call"]', ${sql.lit(id)}, 1 from ${rows(keys)}`.execute(
            db,
          );
        };
        await member(owner.id, 1);
        const session = { user_id: owner.id, workspace_id: 'local', created_at: 1, expires_at: world.now() + day };
        await db
          .insertInto('sessions')
          .values({ hash: 'session', ...session })
          .execute();
        await member('usr_one', 1);
        await member('usr_many', 300);
        const removed = (id: string) => statementsOf(operations.removeMember, { id, revoke_keys: true });
        const [one, many] = [await removed('usr_one'), await removed('usr_many')];
        // One more counts the long list of keys in the audit.
        assert.equal(many, one + 1);
        assert.equal(await count(`api_keys where created_by = 'usr_many' and revoked_at is null`), 0);
        assert.equal(await count(`changes where kind = 'key' and ref like 'key_usr_many%'`), 300);
      });

      it('takes as few statements for many old versions as for some, when a workspace is full', async () => {
        await operate(world.toolhost, 'setWorkspaceQuotas', 'local', { megabytes: 1 });
        const { db } = await world.database();
        const { body } = await world.toolhost.createServer(serverAt('crowded', 'https://api.example.com'));
        const { id } = body.server as { id: string };
        await db.updateTable('servers').set({ version: 1000 }).where('id', '=', id).execute();
        const text = 'x'.repeat(1000);
        await sql`insert into server_versions (server_id, workspace_id, version, config, created_by, created_at)
          select ${sql.lit(id)}, 'local', i + 1, ${sql.lit(text)}, 'x', 1 from ${rows(500)}`.execute(db);
        const create = async (slug: string, stored_bytes: number) => {
          await db.updateTable('servers').set({ stored_bytes }).where('id', '=', id).execute();
          const versions = await count(`server_versions where server_id = '${id}'`);
          const statements = await statementsOf(operations.createMcpServer, serverAt(slug, 'https://api.example.com'));
          const deleted = versions - (await count(`server_versions where server_id = '${id}'`));
          const left = await db.selectFrom('servers').select('stored_bytes').where('id', '=', id).executeTakeFirst();
          return { statements, deleted, freed: stored_bytes - Number(left?.stored_bytes) };
        };
        const some = await create('some', 1_000_000);
        const many = await create('many', 1_300_000);
        assert.ok(some.deleted < 20 && many.deleted > 300, `${some.deleted} and ${many.deleted} versions`);
        assert.equal(many.statements, some.statements);
        assert.ok(many.freed > 299_000 && many.freed <= 1000 * many.deleted, `${many.freed} bytes are free`);
      });
    });
  });
}

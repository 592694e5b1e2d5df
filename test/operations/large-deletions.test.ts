import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { sql } from 'kysely';
import { insertCaptures, pruneCaptures } from '../../apps/server/src/store/calls/captures.ts';
import { maxRowsPerStatement } from '../../apps/server/src/store/delete-in-steps.ts';
import { pruneOAuth } from '../../apps/server/src/store/pruning/prune-logins.ts';
import { pruneDeletedServers } from '../../apps/server/src/store/servers/deleted-servers.ts';
import { engines } from '../sets.ts';
import { buildCall } from '../support/store/rows.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

const dayMs = 24 * 60 * 60_000;
const [grantCount, captureCount] = [2500, 120];
/** Maximum number of rows per table that the deletion itself may change, so that other requests do not wait for it. */
const maxRowsInDeletion = 500;

for (const engine of engines) {
  describe(`[find A5] a deleted server on ${engine}`, async () => {
    const world = await startToolhostOnEngine(engine);
    after(() => world.stop());

    const rest = (method: string, path: string) => world.toolhost.rest(method, path);
    const getGrantStatuses = async (slug: string) => {
      const { body } = await rest('GET', `/grants?slug=${slug}&limit=200`);
      return new Set((body.grants as Json[]).map(({ status }) => status));
    };
    const count = async (from: string) => {
      const { db } = await world.database();
      const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.raw(from)}`.execute(db);
      return Number(rows[0]?.count);
    };

    /** Creates a server with captures and with logins that have an access token and a refresh token each. */
    const makeServer = async (slug: string): Promise<string> => {
      const { body } = await world.toolhost.createServer(buildServerAt(slug, 'https://api.example.com'));
      const { id } = body.server as { id: string };
      const { db, calls } = await world.database();
      const numbers = 'with recursive n(i) as (select 1 union all select i + 1 from n where i';
      const rows = (count: number) => sql.raw(`(${numbers} < ${count}) select i from n) as n`);
      const name = sql`${sql.lit(slug)} || '-' || i`;
      await sql`insert into grants (id, workspace_id, server_id, slug, client_id, client_name, scope, agreement,
          sealed_tokens, tokens_version, generation, rotated_at, created_at)
        select ${name}, 'local', ${sql.lit(id)}, ${sql.lit(slug)}, 'c', 'c', '', 'a', 'sealed', 1, 1, 1, ${sql.lit(world.now())}
        from ${rows(grantCount)}`.execute(db);
      for (const kind of ['access', 'refresh'])
        await sql`insert into tokens (hash, grant_id, kind, generation, wrapped_key, expires_at)
          select ${sql.lit(kind)} || ${name}, ${name}, ${sql.lit(kind)}, 1, 'w', ${sql.lit(world.now() + 30 * dayMs)}
          from ${rows(grantCount)}`.execute(db);
      const call = { id: `call-${slug}`, workspace_id: 'local', slug, started_at: world.now() };
      await calls.write([buildCall(call)]);
      const captured = sql`${name}, 'local', ${sql.lit(id)}, ${sql.lit(world.now())}, 'sealed'`;
      await sql`insert into captures (call_id, workspace_id, server_id, at, sealed_document)
        select ${captured} from ${rows(captureCount)}`.execute(db);
      const { runner } = world.toolhost.running.app;
      const row = { callId: `call-${slug}`, workspaceId: 'local', serverId: id, at: world.now() + 1 };
      const document = JSON.stringify({ argumentsBytes: 0 });
      await insertCaptures(db, runner.deps.keyring, [{ ...row, document }]);
      return id;
    };

    it('disappears immediately and is deleted permanently after 30 days, while upkeep deletes most of its logins and captures in steps', async () => {
      const id = await makeServer('gone');
      await makeServer('kept');
      const countTokens = () => count(`tokens where grant_id like 'gone-%'`);
      const countCaptures = () => count(`captures where server_id = '${id}'`);
      const hasCapture = async (slug: string) => 'capture' in (await rest('GET', `/calls/call-${slug}`)).body;
      assert.deepEqual([...(await getGrantStatuses('gone')), await hasCapture('gone')], ['active', true]);

      assert.equal((await rest('DELETE', '/servers/gone')).status, 200);
      assert.equal((await rest('GET', '/servers/gone')).status, 404);
      assert.deepEqual([...(await getGrantStatuses('gone')), await hasCapture('gone')], ['revoked', false]);
      const { db } = await world.database();
      await pruneOAuth(db, dayMs, { now: world.now(), onEnded: () => undefined });
      assert.equal(await countTokens(), 2 * grantCount, 'logins are retained while the server can be restored');
      await pruneDeletedServers(db, world.now(), world.now());
      const changed = [2 * grantCount - (await countTokens()), captureCount + 1 - (await countCaptures())];
      for (const rows of changed) assert.ok(rows <= maxRowsInDeletion, `deleted ${changed} tokens and captures`);

      const deletedPerStep: number[] = [];
      let before = await countTokens();
      const pause = async () => {
        const remaining = await countTokens();
        deletedPerStep.push(before - remaining);
        before = remaining;
      };
      await pruneOAuth(db, dayMs, { now: world.now(), pause, onEnded: () => undefined });
      await pruneCaptures(db, world.now() - dayMs);
      assert.deepEqual([await countTokens(), await countCaptures()], [0, 0]);
      assert.equal(await count(`grants where slug = 'gone' and (revoked_at is null or sealed_tokens <> '')`), 0);
      for (const rows of deletedPerStep) assert.ok(rows <= maxRowsPerStatement, `deleted ${rows} tokens in one step`);
      // Another server keeps all its rows.
      assert.equal(await count(`tokens where grant_id like 'kept-%'`), 2 * grantCount);
      assert.equal(await count(`captures where call_id like 'kept-%'`), captureCount);
      assert.deepEqual([...(await getGrantStatuses('kept'))], ['active']);
    });
  });
}

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { sql } from 'kysely';
import { findAuditEvents } from '../../src/store/audit-events.ts';
import type { Database } from '../../src/store/database.ts';
import { insertGrant } from '../../src/store/logins/grants.ts';
import { pruneHandedOutTokens, saveHandedOutToken } from '../../src/store/logins/handed-out-tokens.ts';
import { isOfLiveLogin, mostInMinute, takeLoginBytes, workspacesAbove } from '../../src/store/logins/login-bytes.ts';
import type { EndedLogins } from '../../src/store/logins/login-events.ts';
import { insertWorkspace } from '../../src/store/people/workspaces.ts';
import {
  endCrowdedGrants,
  endLargeGrants,
  mostBytesOfWorkspace,
  pruneEndedGrants,
} from '../../src/store/pruning/prune-logins.ts';
import { insertServer } from '../../src/store/servers/servers.ts';
import { aGrant, aServer } from '../support/store/rows.ts';
import { engines, type Stores, startStores } from '../support/store/stores.ts';

const minute = 60_000;
const now = Date.parse('2026-11-20T12:00:00Z');

const grant = aGrant({ sealed_tokens: 'x'.repeat(90_000), generation: 0 });

for (const engine of engines) {
  describe(`the bytes of logins on ${engine}`, () => {
    let stores: Stores;
    let db: Database['db'];
    let told: EndedLogins[];
    const ending = { now, onEnded: (ended: EndedLogins) => told.push(ended) };
    before(async () => {
      stores = await startStores(engine);
    });
    after(() => stores.stop());
    beforeEach(async () => {
      ({ db } = await stores.open());
      told = [];
    });

    const live = async () => {
      const rows = await db.selectFrom('grants').select('id').where('revoked_at', 'is', null).orderBy('id').execute();
      return rows.map(({ id }) => id);
    };

    it('[find A5] of a workspace are bounded: the logins beyond that were used longest ago end', async () => {
      for (const [id, more] of [
        ['a-new', { created_at: 50 }],
        ['b-used', { created_at: 10, last_used_at: 90 }],
        ['c-at-another-server', { server_id: 'srv_2', created_at: 5, last_used_at: 80 }],
        ['d-old', { created_at: 40 }],
        ['e-older', { created_at: 45, last_used_at: 46 }],
        ['f-small', { created_at: 1, sealed_tokens: 'x' }],
        ['g-of-a-person', { created_at: 1, user_id: 'usr_1' }],
        ['h-of-another', { created_at: 1, workspace_id: 'another' }],
        ['i-of-another', { created_at: 2, workspace_id: 'another' }],
      ] as const)
        await insertGrant(db, { ...grant, id, ...more });
      await endLargeGrants(db, 400_000, ending);
      assert.equal((await live()).length, 7, 'what was used before the first that is too many ends as well');
      await endLargeGrants(db, 280_000, ending);
      assert.deepEqual(await live(), [
        ...['a-new', 'b-used', 'c-at-another-server'],
        ...['g-of-a-person', 'h-of-another', 'i-of-another'],
      ]);
      const ended = await db.selectFrom('grants').select('sealed_tokens').where('revoked_at', '=', now).execute();
      assert.deepEqual(new Set(ended.map((row) => row.sealed_tokens)), new Set(['']));
    });

    it('[find A5] at one server end no login at another', async () => {
      const at = (server_id: string, n: number) =>
        insertGrant(db, {
          ...grant,
          id: `${server_id}-${n}`,
          server_id,
          created_at: server_id === 'crowd' ? 100 + n : n,
        });
      for (let n = 0; n < 6; n++) await at('crowd', n);
      for (const server of ['quiet', 'still']) await at(server, 0);
      await endLargeGrants(db, 460_000, ending);
      assert.deepEqual(await live(), ['crowd-3', 'crowd-4', 'crowd-5', 'quiet-0', 'still-0']);
    });

    it('[find A5] are ended with a word to the operator, and one in the audit of the workspace', async () => {
      for (let n = 0; n < 6; n++) await insertGrant(db, { ...grant, id: `grt_${n}`, created_at: n });
      await endLargeGrants(db, 280_000, ending);
      await endCrowdedGrants(db, 2, ending);
      await endLargeGrants(db, 280_000, ending);
      await endCrowdedGrants(db, 2, ending);
      assert.deepEqual(
        told.map(({ workspaceId, slug, logins }) => [workspaceId, slug, logins]),
        [
          [grant.workspace_id, grant.slug, 3],
          [grant.workspace_id, grant.slug, 1],
        ],
      );
      const { rows } = await findAuditEvents(db, grant.workspace_id, { limit: 10, after: undefined });
      const details = rows.map(({ detail }) => JSON.parse(detail) as { logins: number; reason: string });
      assert.deepEqual(
        details.toSorted((a, b) => a.logins - b.logins),
        [
          { logins: 1, reason: 'there were more than 2 at the server; those used longest ago ended' },
          {
            logins: 3,
            reason:
              'the logins of the workspace took more than 280000 bytes; those used longest ago at this server ended',
          },
        ],
      );
      assert.ok(rows.every((row) => row.operation === 'loginsEnded' && row.target === grant.slug && row.at === now));
    });

    it('[find A5] that ended before the upkeep was cut off are told too, and the next one tells of the others', async () => {
      for (let n = 0; n < 300; n++) await insertGrant(db, { ...grant, id: `grt_${String(n).padStart(3, '0')}` });
      const cutOff = async () => Promise.reject(new Error('another process is elected'));
      const logins = () => told.map((ended) => ended.logins);
      await assert.rejects(endLargeGrants(db, 1_000_000, { ...ending, pause: cutOff }), /another process is elected/);
      assert.deepEqual(logins(), [110]);
      await endLargeGrants(db, 1_000_000, ending);
      assert.deepEqual(logins(), [110, 179]);
      const { rows } = await findAuditEvents(db, grant.workspace_id, { limit: 10, after: undefined });
      assert.equal(rows.length, 2);
    });

    it('[find A5] are ended in statements of 10 MB, so that other writes do not wait', async () => {
      for (let n = 0; n < 300; n++) await insertGrant(db, { ...grant, id: `grt_${String(n).padStart(3, '0')}` });
      const left: number[] = [];
      const pause = async () => {
        left.push((await live()).length);
      };
      await endLargeGrants(db, 1_000_000, { ...ending, pause });
      assert.deepEqual(left, [190, 80, 11]);
    });

    it('[find A5] of logins that have ended are bounded as well: those that ended first are deleted', async () => {
      const ended = { sealed_tokens: '', client_id: 'c'.repeat(6000) };
      for (let at = 1; at <= 5; at++) await insertGrant(db, { ...grant, ...ended, id: `grt_${at}`, revoked_at: at });
      await insertGrant(db, { ...grant, ...ended, id: 'grt_another', workspace_id: 'another', revoked_at: 1 });
      await insertGrant(db, { ...grant, id: 'grt_live' });
      await pruneEndedGrants(db, 0, { most: 100, mostBytes: 30_000 });
      const left = await db.selectFrom('grants').select('id').orderBy('id').execute();
      assert.deepEqual(
        left.map(({ id }) => id),
        ['grt_4', 'grt_5', 'grt_another', 'grt_live'],
      );
    });

    it('[find A5] that are added in a minute are bounded for a server and a workspace, in all processes together', async () => {
      const take = (bytes: number, serverId = 'one', workspaceId = 'ours', at = now) =>
        takeLoginBytes(db, { workspaceId, serverId, bytes }, at);
      const part = mostInMinute.ofServer / 10;
      const taken = await Promise.all(Array.from({ length: 10 }, () => take(part)));
      assert.deepEqual(new Set(taken), new Set([true]));
      assert.equal(await take(1), false);
      const [elsewhere, later] = [await take(part, 'two'), await take(1, 'one', 'ours', now + minute)];
      assert.deepEqual([elsewhere, later], [true, true]);
      // What was refused has taken a byte of the workspace, because nothing is rolled back here.
      for (let n = 0; n < 9; n++) assert.equal(await take(part, 'three'), n < 8, String(n));
      assert.equal(await take(1, 'four', 'another'), true);
    });

    it('[find A5] that agents hold are bounded for a workspace: each of its servers keeps an equal share', async () => {
      const ids: string[] = [];
      for (const id of ['ours', 'another']) await insertWorkspace(db, { id, name: id, at: now });
      for (const [workspaceId, count] of [
        ['ours', 9],
        ['ours', 3],
        ['ours', 2],
        ['another', 5],
      ] as const) {
        const server = aServer({ workspaceId, slug: `server-${ids.length}`, id: `srv_${ids.length}` });
        await insertServer(db, server);
        ids.push(server.id);
        for (let n = 0; n < count; n++)
          await saveHandedOutToken(db, { server_id: server.id, hash: `h${n}`, agreement: 'a', expires_at: 100 + n });
      }
      const left = async () => {
        const rows = await db.selectFrom('handed_out_tokens').select(['server_id', 'hash']).orderBy('hash').execute();
        return ids.map((id) => rows.filter((row) => row.server_id === id).map(({ hash }) => hash));
      };
      await pruneHandedOutTokens(db, 1, { ofServer: 100, ofWorkspace: 14 });
      assert.deepEqual(
        (await left()).map((hashes) => hashes.length),
        [9, 3, 2, 5],
      );
      await pruneHandedOutTokens(db, 1, { ofServer: 100, ofWorkspace: 12 });
      assert.deepEqual(await left(), [
        ['h5', 'h6', 'h7', 'h8'],
        ['h0', 'h1', 'h2'],
        ['h0', 'h1'],
        ['h0', 'h1', 'h2', 'h3', 'h4'],
      ]);
      await pruneHandedOutTokens(db, 1, { ofServer: 2, ofWorkspace: 9 });
      assert.deepEqual(
        (await left()).map((hashes) => hashes.length),
        [2, 2, 2, 2],
      );
    });

    it('[find A5] keep 100,000 ordinary logins, and are summed up without reading their rows', async () => {
      const numbers = sql`(with recursive numbers (n) as (
        select 1 union all select n + 1 from numbers where n < 100000) select n from numbers) as numbers`;
      const long = engine === 'sqlite' ? sql`hex(zeroblob(1500))` : sql`repeat('ab', 1500)`;
      await sql`insert into grants (id, workspace_id, server_id, slug, client_id, client_name, scope, agreement,
          sealed_tokens, tokens_version, generation, rotated_at, created_at)
        select 'grt_' || n, 'ours', 'srv_1', 'sample', ${'c'.repeat(300)}, 'Agent', 'read', 'a', ${long}, 1, 0, 1, n
        from ${numbers}`.execute(db);
      await endLargeGrants(db, mostBytesOfWorkspace, { now, onEnded: () => undefined });
      assert.equal((await live()).length, 100_000);
      if (engine === 'postgres') return;
      const plan = sql<{ detail: string }>`explain query plan ${workspacesAbove(isOfLiveLogin, 5)}`;
      const { rows } = await plan.execute(db);
      assert.match(rows.map(({ detail }) => detail).join('\n'), /COVERING INDEX grants_by_bytes/);
    });
  });
}

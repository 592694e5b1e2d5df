import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Role } from '@toolhost/credentials/credential';
import { buildApiKey, buildCall } from '../../../../test/support/store/rows.ts';
import { bothEngines } from '../../../../test/support/store/stores.ts';
import { useStores } from '../../../../test/support/store/use-stores.ts';
import { createCredentialUses, findApiKey, findApiKeys, insertApiKey, markKeyRevoked } from './api-keys.ts';
import { type AuditEvent, findAuditEvents, insertAuditEvent } from './audit-events.ts';
import { findCalls } from './calls/calls.ts';
import type { Database } from './database.ts';
import type { Db } from './db.ts';
import { decodeCursor, type Page } from './page.ts';
import { findJoinedWorkspaces, saveMember, saveUser } from './people/users.ts';
import { pruneCalls } from './pruning/prunings.ts';
import { findWorkspace, insertWorkspace } from './workspaces.ts';

async function collectPages<Row>(
  limit: number,
  list: (page: Page) => Promise<{ rows: Row[]; next: string | undefined }>,
): Promise<Row[][]> {
  const found: Row[][] = [];
  let after: Page['after'];
  for (;;) {
    const { rows, next } = await list({ limit, after });
    found.push(rows);
    if (next === undefined) return found;
    after = decodeCursor(next);
  }
}

const getIds = (rows: readonly { id: string }[]) => rows.map((row) => row.id);
const firstPage: Page = { limit: 100, after: undefined };

for (const engine of bothEngines)
  describe(`the store on ${engine}`, () => {
    const stores = useStores(engine);
    let database: Database;
    let db: Db;
    beforeEach(async () => {
      database = await stores.open();
      ({ db } = database);
      for (const id of ['ours', 'theirs']) await insertWorkspace(db, { id, name: id, at: 1 });
    });

    it('returns an API key as it was stored, with and without optional fields', async () => {
      const key = buildApiKey();
      const minimalKey = buildApiKey({ id: 'key_2', servers: undefined, expiresAt: undefined });
      await insertApiKey(db, key);
      await insertApiKey(db, minimalKey);
      assert.deepEqual(await findApiKey(db, 'key_1'), key);
      assert.deepEqual(await findApiKey(db, 'key_2'), minimalKey);
      assert.equal(await findApiKey(db, 'key_3'), undefined);
      await assert.rejects(insertApiKey(db, key));
    });

    it('[sec E3] revokes an API key once, and only for its own workspace', async () => {
      await insertApiKey(db, buildApiKey());
      assert.equal(await markKeyRevoked(db, 'theirs', 'key_1', 7), false);
      assert.equal(await markKeyRevoked(db, 'ours', 'key_2', 7), false);
      assert.equal((await findApiKey(db, 'key_1'))?.revokedAt, undefined);
      assert.equal(await markKeyRevoked(db, 'ours', 'key_1', 7), true);
      assert.equal(await markKeyRevoked(db, 'ours', 'key_1', 8), false);
      assert.equal((await findApiKey(db, 'key_1'))?.revokedAt, 7);
    });

    it('records when an API key was last used', async () => {
      await insertApiKey(db, buildApiKey());
      const uses = createCredentialUses(db, () => 9_007_199_254_740_991);
      uses.recordKeyUse('key_1');
      await uses.flush();
      assert.equal(uses.pendingCount(), 0);
      assert.equal((await findApiKey(db, 'key_1'))?.lastUsedAt, 9_007_199_254_740_991);
    });

    it('pages through API keys of the same millisecond, returning each once', async () => {
      for (let n = 0; n < 7; n += 1)
        await insertApiKey(db, buildApiKey({ id: `key_${n}`, createdAt: n < 5 ? 1000 : 2000 }));
      await insertApiKey(db, buildApiKey({ id: 'key_other', workspaceId: 'theirs' }));
      const found = await collectPages(3, (page) => findApiKeys(db, 'ours', page));
      assert.deepEqual(found.map(getIds), [['key_6', 'key_5', 'key_4'], ['key_3', 'key_2', 'key_1'], ['key_0']]);
      assert.deepEqual((await collectPages(7, (page) => findApiKeys(db, 'ours', page))).length, 1);
    });

    it('pages through the audit events of one workspace', async () => {
      const actor = { actor_kind: 'api_key', actor_id: 'key_1' } as const;
      const event = { ...actor, workspace_id: 'ours', operation: 'setSecret', detail: '{"a":1}', request_id: 'r' };
      const insertEvent = (id: string, at: number, more: Partial<AuditEvent> = {}) =>
        insertAuditEvent(db, { id, at, target: null, ...event, ...more });
      await insertEvent('a', 1);
      await insertEvent('b', 1, { target: 'x' });
      await insertEvent('c', 2);
      await insertEvent('d', 3, { workspace_id: 'theirs' });
      const found = await collectPages(2, (page) => findAuditEvents(db, 'ours', page));
      assert.deepEqual(found.map(getIds), [['c', 'b'], ['a']]);
      assert.deepEqual({ ...found[0]?.[1] }, { id: 'b', at: 1, target: 'x', ...event });
    });

    it('stores calls with and without optional fields, and pages through those of one workspace', async () => {
      const call = buildCall({ id: 'a' });
      const unsent = { upstream_host: null, upstream_status: null, upstream_ms: null };
      const blockedCall = buildCall({ id: 'b', started_at: 2000, key_id: null, outcome: 'blocked', ...unsent });
      await database.calls.write([
        call,
        blockedCall,
        buildCall({ id: 'c', started_at: 3000, slug: 'second', tool: 'put' }),
        buildCall({ id: 'd', workspace_id: 'theirs' }),
      ]);
      const { rows } = await findCalls(db, 'ours', {}, firstPage);
      assert.deepEqual(getIds(rows), ['c', 'b', 'a']);
      assert.deepEqual({ ...rows[2] }, call);
      assert.deepEqual({ ...rows[1] }, blockedCall);

      assert.deepEqual((await collectPages(2, (page) => findCalls(db, 'ours', {}, page))).map(getIds), [
        ['c', 'b'],
        ['a'],
      ]);
    });

    it('accepts a full batch of calls, and deletes those that began before a time', async () => {
      await database.calls.write(Array.from({ length: 2500 }, (_, n) => buildCall({ id: `call_${n}`, started_at: n })));
      assert.equal(await pruneCalls(db, 2490), 2490);
      assert.equal((await findCalls(db, 'ours', {}, firstPage)).rows.length, 10);
      assert.equal(await pruneCalls(db, 2490), 0);
    });

    it('recognizes a person by issuer and subject, even if everything else has changed', async () => {
      const person = { id: 'usr_1', issuer: 'https://id.example', subject: 's', email: 'a@b.example', name: null };
      assert.deepEqual({ ...(await saveUser(db, { ...person, at: 1 })) }, person);
      const later = await saveUser(db, { ...person, id: 'usr_2', email: null, name: 'Ada', at: 2 });
      assert.deepEqual({ ...later }, { ...person, email: null, name: 'Ada' });
      const otherUser = await saveUser(db, { ...person, id: 'usr_3', issuer: 'https://other.example', at: 3 });
      assert.equal(otherUser.id, 'usr_3');
      const users = await Promise.all(
        [4, 5, 6].map((n) => saveUser(db, { ...person, id: `usr_${n}`, subject: 'new', at: n })),
      );
      assert.equal(new Set(getIds(users)).size, 1);
    });

    it('stores one role per person and workspace', async () => {
      const person = { issuer: 'i', subject: 's', email: null, name: null, at: 1 };
      const { id: userId } = await saveUser(db, { id: 'usr_1', ...person });
      const saveRole = (workspaceId: string, role: Role) => saveMember(db, { workspaceId, userId, role, at: 1 });
      await saveRole('ours', 'viewer');
      await saveRole('theirs', 'editor');
      await saveRole('ours', 'owner');
      const memberships = (await findJoinedWorkspaces(db, userId, 10)).toSorted((a, b) => a.id.localeCompare(b.id));
      assert.deepEqual(memberships, [
        { id: 'ours', name: 'ours', role: 'owner', isOwn: false, isChosen: false },
        { id: 'theirs', name: 'theirs', role: 'editor', isOwn: false, isChosen: false },
      ]);
      assert.deepEqual(await findJoinedWorkspaces(db, 'usr_2', 10), []);
      await assert.rejects(saveRole('nowhere', 'owner'));
    });

    it('creates a workspace once and keeps its first name', async () => {
      await insertWorkspace(db, { id: 'third', name: 'First', at: 1 });
      await insertWorkspace(db, { id: 'third', name: 'Second', at: 2 });
      assert.deepEqual({ ...(await findWorkspace(db, 'third')) }, { id: 'third', name: 'First' });
      assert.equal(await findWorkspace(db, 'nowhere'), undefined);
    });
  });

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, it } from 'node:test';
import { engines } from '../../../../../test/sets.ts';
import { assertMapped } from '../../../../../test/support/assert-lists.ts';
import { buildGrant } from '../../../../../test/support/store/rows.ts';
import { bothEngines } from '../../../../../test/support/store/stores.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import { type EndedLogins, findAuditEvents, insertLoginEvent, type LoginEventRow } from '../audit-events.ts';
import type { Database } from '../database.ts';
import { transact } from '../engine/watched-dialect.ts';
import { endGrantsOverByteLimit, pruneEndedGrants, pruneOAuth } from '../pruning/prune-logins.ts';
import * as grants from './grants.ts';
import * as issued from './issued-tokens.ts';
import {
  findPassthroughAgreement,
  hasOtherAgreement,
  prunePassthroughTokens,
  savePassthroughToken,
} from './passthrough-tokens.ts';

const login: grants.Authorization = {
  id: 'state',
  workspace_id: 'ours',
  server_id: 'srv_1',
  consent_id: 'consent',
  client_id: 'client',
  client_name: 'Agent',
  redirect_uri: 'https://agent.example/cb',
  code_challenge: 'challenge',
  scope: 'read',
  binding_hash: 'browser',
  sealed_verifier: 'sealed',
  created_at: 1,
  expires_at: 100,
};

const grant = buildGrant();

const code: issued.Code = {
  hash: 'code',
  grant_id: 'grt_1',
  client_id: 'client',
  redirect_uri: 'https://agent.example/cb',
  code_challenge: 'c',
  wrapped_key: 'w',
  expires_at: 100,
  used_at: null,
};
const token: issued.StoredToken = {
  hash: 'token',
  grant_id: 'grt_1',
  kind: 'access',
  generation: 1,
  wrapped_key: 'w',
  expires_at: 100,
};

const day = 24 * 60 * 60_000;

const countTrue = (results: readonly boolean[]) => results.filter((result) => result).length;

for (const engine of bothEngines)
  describe(`logins on ${engine}`, () => {
    const stores = useStores(engine);
    let db: Database['db'];
    beforeEach(async () => {
      ({ db } = await stores.open());
    });
    const consumeInput = { id: 'state', serverId: 'srv_1', bindingHash: 'browser', now: 50 };
    const insertGrants = async (...rows: Partial<grants.Grant>[]) => {
      for (const row of rows) await grants.insertGrant(db, { ...grant, ...row });
    };

    it('[find A5] removes two expired logins with each new login', async () => {
      const beginLogin = (id: string, created_at: number) =>
        grants.insertAuthorization(db, { ...login, id, consent_id: id, created_at, expires_at: created_at + 10 });
      for (const id of ['a', 'b', 'c', 'd']) await beginLogin(id, 1);
      await beginLogin('e', 11);
      const ids = async () =>
        (await db.selectFrom('authorizations').select('id').orderBy('id').execute()).map(({ id }) => id);
      assert.equal((await ids()).length, 5, 'a login may finish until it expires');
      await beginLogin('f', 12);
      assert.equal((await ids()).length, 4);
      await beginLogin('g', 13);
      assert.deepEqual(await ids(), ['e', 'f', 'g']);
    });

    it('[sec D4] begins only one login per consent form', async () => {
      const results = await Promise.all(['a', 'b', 'c'].map((id) => grants.insertAuthorization(db, { ...login, id })));
      assert.equal(countTrue(results), 1);
    });

    it('[sec D3] returns a login only to its own browser and server, before it expires', async () => {
      await grants.insertAuthorization(db, login);
      for (const wrongInput of [{ bindingHash: 'other' }, { serverId: 'srv_2' }, { id: 'other' }, { now: 100 }]) {
        assert.equal(await grants.consumeAuthorization(db, { ...consumeInput, ...wrongInput }), undefined);
      }
      assert.equal(await grants.isAuthorizationPending(db, consumeInput), true);
      for (const wrongInput of [{ serverId: 'srv_2' }, { now: 100 }])
        assert.equal(await grants.isAuthorizationPending(db, { ...consumeInput, ...wrongInput }), false);
    });

    it('[sec D12] returns a login to one of several concurrent callbacks, and its consent stays used', async () => {
      await grants.insertAuthorization(db, login);
      const taken = await Promise.all([1, 2, 3].map(() => grants.consumeAuthorization(db, consumeInput)));
      assertMapped(
        taken.filter((row) => row !== undefined),
        (row) => row?.client_id,
        ['client'],
      );
      assert.equal(await grants.isAuthorizationPending(db, consumeInput), false);
      assert.equal(await grants.insertAuthorization(db, { ...login, id: 'again' }), false);
    });

    it('[sec D9] accepts a code once, before it expires', async () => {
      await grants.insertGrant(db, grant);
      await issued.insertCode(db, code);
      assert.deepEqual({ ...(await issued.findCode(db, 'code')) }, code);
      assert.equal(await issued.findCode(db, 'other'), undefined);
      assert.equal(await issued.markCodeUsed(db, 'code', 100), false);
      assert.equal(countTrue(await Promise.all([1, 2, 3].map(() => issued.markCodeUsed(db, 'code', 50)))), 1);
      assert.equal((await issued.findCode(db, 'code'))?.used_at, 50);
      await assert.rejects(issued.insertCode(db, { ...code, hash: 'orphan', grant_id: 'grt_none' }));
    });

    it('[sec D18] rotates a refresh token once per generation', async () => {
      await grants.insertGrant(db, grant);
      assert.equal(countTrue(await Promise.all([1, 2, 3].map(() => grants.rotateGrant(db, 'grt_1', 1, 60)))), 1);
      const { generation, rotated_at, last_used_at } = (await grants.findGrant(db, 'grt_1')) ?? grant;
      assert.deepEqual([generation, rotated_at, last_used_at], [2, 60, 60]);
      await grants.revokeGrant(db, 'grt_1', 70);
      assert.equal(await grants.rotateGrant(db, 'grt_1', 2, 80), false);
    });

    it('[sec D18] lets only one replica refresh at the provider at the same time', async () => {
      await grants.insertGrant(db, grant);
      const claimVersion = (version: number, now: number) =>
        grants.claimRefresh(db, { id: 'grt_1', tokens_version: version }, now, now + 10);
      assert.equal(countTrue(await Promise.all([1, 2, 3].map(() => claimVersion(1, 50)))), 1);
      assert.equal(await claimVersion(1, 55), false);
      assert.equal(await claimVersion(1, 61), true);
      assert.equal(await grants.saveRefreshedTokens(db, 'grt_1', 'newer', 2), true);
      assert.equal(await grants.saveRefreshedTokens(db, 'grt_1', 'late', 2), false);
      assert.equal(await claimVersion(1, 62), false);
      assert.equal(await claimVersion(2, 62), true);
      await grants.releaseRefresh(db, 'grt_1', 71);
      assert.equal(await claimVersion(2, 63), false);
      await grants.releaseRefresh(db, 'grt_1', 72);
      assert.equal(await claimVersion(2, 63), true);
      assert.equal(await grants.breakGrant(db, 'grt_1', 1, 64), false);
      assert.equal(await grants.breakGrant(db, 'grt_1', 2, 64), true);
      const { sealed_tokens, tokens_version, refreshing_until, broken_at } =
        (await grants.findGrant(db, 'grt_1')) ?? grant;
      assert.deepEqual([sealed_tokens, tokens_version, refreshing_until, broken_at], ['newer', 2, null, 64]);
      await grants.revokeGrant(db, 'grt_1', 65);
      assert.equal(await claimVersion(2, 100), false);
      assert.equal(await grants.saveRefreshedTokens(db, 'grt_1', 'too late', 3), false);
    });

    it('ends a grant once, and deletes its tokens, codes, and sealed data', async () => {
      for (const id of ['grt_1', 'grt_2']) {
        await grants.insertGrant(db, { ...grant, id });
        await issued.insertCode(db, { ...code, hash: `code of ${id}`, grant_id: id });
        await issued.insertTokens(db, [
          { ...token, hash: `token of ${id}`, grant_id: id },
          { ...token, hash: `refresh of ${id}`, kind: 'refresh', grant_id: id },
        ]);
      }
      assert.deepEqual(
        { ...(await issued.findToken(db, 'refresh of grt_1')) },
        { ...token, hash: 'refresh of grt_1', kind: 'refresh' },
      );
      assert.equal(await grants.revokeGrant(db, 'grt_1', 70), true);
      assert.equal(await grants.revokeGrant(db, 'grt_1', 71), false);
      assert.equal(await grants.revokeGrant(db, 'grt_3', 71), false);
      const { sealed_tokens, revoked_at } = (await grants.findGrant(db, 'grt_1')) ?? grant;
      assert.deepEqual([sealed_tokens, revoked_at], ['', 70]);
      for (const kind of ['token', 'refresh']) {
        assert.equal(await issued.findToken(db, `${kind} of grt_1`), undefined);
        assert.ok(await issued.findToken(db, `${kind} of grt_2`));
      }
      assert.equal(await issued.findCode(db, 'code of grt_1'), undefined);
      assert.ok(await issued.findCode(db, 'code of grt_2'));
    });

    it('ends every grant of a server and no other', async () => {
      await insertGrants(
        { id: 'a' },
        { id: 'b' },
        { id: 'c', server_id: 'srv_2' },
        { id: 'd', workspace_id: 'theirs' },
      );
      assert.equal(await grants.endServerGrants(db, { workspaceId: 'ours', id: 'srv_1' }, 70, 10), 2);
      const ended = await Promise.all(
        ['a', 'b', 'c', 'd'].map(async (id) => (await grants.findGrant(db, id))?.revoked_at),
      );
      assert.deepEqual(ended, [70, 70, null, null]);
    });

    it('[sec E1] lists the grants of a workspace, of one server, or of the servers that a key is limited to', async () => {
      await insertGrants({ id: 'a' }, { id: 'b', slug: 'second' }, { id: 'c', slug: 'third', created_at: 2 });
      await insertGrants({ id: 'd', workspace_id: 'theirs' });
      const list = (slug?: string, slugs?: string[], limit = 10) =>
        grants.findGrants(db, 'ours', { slug, slugs }, { limit, after: undefined });
      const listIds = async (slug?: string, slugs?: string[]) =>
        (await list(slug, slugs)).rows.map((row) => row.id).join('');
      assert.equal(await listIds(), 'cba');
      assert.equal(await listIds('second'), 'b');
      assert.equal(await listIds(undefined, ['sample', 'third']), 'ca');
      assert.equal(await listIds(undefined, []), '');
      assert.equal(await grants.hasClientGrant(db, 'srv_1', 'client'), true);
      assert.equal(await grants.hasClientGrant(db, 'srv_2', 'client'), false);
      assert.equal(await grants.hasClientGrant(db, 'srv_1', 'other'), false);
      // The id of a registered client contains its registration and is too long for an index entry.
      await insertGrants({ id: 'long', client_id: randomBytes(4500).toString('base64url') });
      const { rows, next } = await list(undefined, undefined, 2);
      assert.deepEqual([rows.length, typeof next], [2, 'string']);
    });

    it('[find B6] stores the agreement of an issued token until it expires or the server has too many tokens', async () => {
      const saveToken = (server_id: string, hash: string, agreement: string, expires_at = 100) =>
        savePassthroughToken(db, { server_id, hash, agreement, expires_at });
      assert.equal(await hasOtherAgreement(db, 'srv_1', undefined), false);
      await saveToken('srv_1', 'a', 'first');
      await saveToken('srv_1', 'b', 'second', 50);
      await saveToken('srv_2', 'a', 'third', 200);
      const others = ['first', 'second', 'zzz', 'A', undefined].map((own) => hasOtherAgreement(db, 'srv_2', own));
      assert.deepEqual(await Promise.all(others), [true, true, true, true, true]);
      assert.deepEqual(
        [await hasOtherAgreement(db, 'srv_2', 'third'), await hasOtherAgreement(db, 'srv_1', 'first')],
        [false, true],
      );
      const findAgreements = () =>
        Promise.all(['a', 'b', 'c'].map((hash) => findPassthroughAgreement(db, 'srv_1', hash)));
      assert.deepEqual(await findAgreements(), ['first', 'second', undefined]);
      await saveToken('srv_1', 'a', 'second');
      assert.deepEqual(await findAgreements(), ['second', 'second', undefined]);
      await saveToken('srv_1', 'c', 'second', 300);
      await prunePassthroughTokens(db, 51, 2);
      assert.deepEqual(await findAgreements(), ['second', undefined, 'second']);
      await prunePassthroughTokens(db, 51, 1);
      assert.deepEqual(await findAgreements(), [undefined, undefined, 'second']);
      assert.equal(await findPassthroughAgreement(db, 'srv_2', 'a'), 'third');
    });

    it('[find A5] stores 500 login failures per day and server, and counts further ones', async () => {
      const buildFailure = (n: number, more: Partial<LoginEventRow> = {}): LoginEventRow => ({
        ...{ id: `aud_${n}`, workspace_id: 'ours', at: 5 * day + n, actor_kind: 'client', actor_id: 'oauth' },
        ...{ operation: 'loginFailed', target: 'sample', detail: '{"client":"Agent"}', request_id: `r${n}`, ...more },
      });
      const addEvent = (event: LoginEventRow, server = 'srv_1') =>
        transact(db, (transaction) => insertLoginEvent(transaction, server, event));
      for (let from = 0; from < 520; from += 20)
        await Promise.all(Array.from({ length: 20 }, (_, n) => addEvent(buildFailure(from + n))));
      await addEvent(buildFailure(600, { operation: 'login' }));
      await addEvent(buildFailure(601), 'srv_2');
      await addEvent(buildFailure(602, { workspace_id: 'another' }));
      await addEvent(buildFailure(603, { at: 6 * day }));
      const events = await db.selectFrom('audit_events').select(['id', 'detail']).execute();
      const countRows = events.filter(({ detail }) => detail.includes('further'));
      assert.deepEqual([events.length, countRows.map(({ detail }) => detail)], [505, ['{"further":20}']]);
      const storedIds = events.map(({ id }) => id);
      for (const id of ['aud_600', 'aud_601', 'aud_602', 'aud_603']) assert.ok(storedIds.includes(id), id);
    });

    it('[find A5] deletes the ended grants of a workspace beyond the newest bytes', async () => {
      for (const at of [1, 2, 3, 4]) await insertGrants({ id: `grt_${at}`, revoked_at: at });
      await insertGrants({ id: 'grt_live' }, { id: 'grt_another', revoked_at: 1, workspace_id: 'another' });
      await pruneEndedGrants(db, 0, 2 * grants.countLoginBytes(grant));
      const remaining = await db.selectFrom('grants').select('id').orderBy('id').execute();
      assertMapped(remaining, ({ id }) => id, ['grt_3', 'grt_4', 'grt_another', 'grt_live']);
    });

    it('deletes expired logins, codes, and tokens', async () => {
      await grants.insertGrant(db, grant);
      for (const name of ['old', 'new']) {
        const expires_at = name === 'old' ? 10 : 100;
        await grants.insertAuthorization(db, { ...login, id: name, consent_id: name, expires_at });
        await issued.insertCode(db, { ...code, hash: name, expires_at });
        await issued.insertTokens(db, [{ ...token, hash: name, expires_at }]);
      }
      await pruneOAuth(db, 45, { now: 50, onEnded: () => undefined });
      assert.equal(await grants.consumeAuthorization(db, { ...consumeInput, id: 'old', now: 5 }), undefined);
      assert.ok(await issued.findCode(db, 'old'));
      await pruneOAuth(db, 45, { now: 56, onEnded: () => undefined });
      for (const find of [issued.findCode, issued.findToken]) {
        assert.equal(await find(db, 'old'), undefined);
        assert.ok(await find(db, 'new'));
      }
      assert.ok(await grants.consumeAuthorization(db, { ...consumeInput, id: 'new' }));
    });
  });

for (const engine of engines)
  describe(`login storage on ${engine}`, () => {
    const now = Date.parse('2026-11-20T12:00:00Z');
    const grant = buildGrant({ sealed_tokens: 'x'.repeat(90_000), generation: 0 });
    const stores = useStores(engine);
    let db: Database['db'];
    let reportedLogins: EndedLogins[];
    const ending = { now, onEnded: (ended: EndedLogins) => reportedLogins.push(ended) };
    beforeEach(async () => {
      ({ db } = await stores.open());
      reportedLogins = [];
    });

    const findActiveIds = async () => {
      const rows = await db.selectFrom('grants').select('id').where('revoked_at', 'is', null).orderBy('id').execute();
      return rows.map(({ id }) => id);
    };

    it('[find A5] limits the login bytes of a workspace by ending the least recently used logins', async () => {
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
        await grants.insertGrant(db, { ...grant, id, ...more });
      await endGrantsOverByteLimit(db, 400_000, ending);
      assert.equal((await findActiveIds()).length, 7, 'logins used before the first one beyond the limit end as well');
      await endGrantsOverByteLimit(db, 280_000, ending);
      assert.deepEqual(await findActiveIds(), [
        ...['a-new', 'b-used', 'c-at-another-server'],
        ...['g-of-a-person', 'h-of-another', 'i-of-another'],
      ]);
      const ended = await db.selectFrom('grants').select('sealed_tokens').where('revoked_at', '=', now).execute();
      assert.deepEqual(new Set(ended.map((row) => row.sealed_tokens)), new Set(['']));
    });

    it("[find A5] reports logins ended by the limit to the operator and in the workspace's audit log", async () => {
      for (let n = 0; n < 6; n++) await grants.insertGrant(db, { ...grant, id: `grt_${n}`, created_at: n });
      const token = { grant_id: 'grt_0', kind: 'access', generation: 1, wrapped_key: 'x', expires_at: now } as const;
      await issued.insertTokens(
        db,
        Array.from({ length: 1200 }, (_, n) => ({ ...token, hash: `t${n}` })),
      );
      await endGrantsOverByteLimit(db, 280_000, ending);
      await endGrantsOverByteLimit(db, 280_000, ending);
      assertMapped(reportedLogins, ({ workspaceId, slug, logins }) => [workspaceId, slug, logins], [
        [grant.workspace_id, grant.slug, 3],
      ]);
      const { rows } = await findAuditEvents(db, grant.workspace_id, { limit: 10, after: undefined });
      const details = rows.map(({ detail }) => JSON.parse(detail) as { logins: number; reason: string });
      const reason =
        "the workspace's logins exceeded 280000 bytes, so the least recently used logins at this server were ended";
      assert.deepEqual(details, [{ logins: 3, reason }]);
      assert.ok(rows.every((row) => row.operation === 'loginsEnded' && row.target === grant.slug && row.at === now));
    });
  });

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { pruneKeys } from '../../apps/server/src/store/pruning/prune-people.ts';
import { engines } from '../sets.ts';
import { createMemberSession, createPersonSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { assertOAuthError } from '../support/oauth/oauth-client.ts';
import { signInAgent } from '../support/oauth/signed-in-agent.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

for (const engine of engines) {
  describe(`[find B8] a member who leaves a workspace or gets a lower role, on ${engine}`, () => {
    let toolhost: TestToolhost;
    let postgres: TestPostgres | undefined;
    let owner: string;
    before(async () => {
      postgres = engine === 'postgres' ? await startPostgres() : undefined;
      const url = await postgres?.createDatabase();
      toolhost = await startToolhost({ env: { ...(url !== undefined && { DATABASE_URL: url }) } });
      owner = await createPersonSession(toolhost, { name: 'Olga' });
    });
    after(async () => {
      await toolhost.stop();
      await postgres?.stop();
    });

    const asOwner = (method: string, path: string, body?: Json) => personRequest(toolhost, owner, method, path, body);
    const getUserId = (session: string) => `usr_${session}`;
    const join = async (role: 'owner' | 'editor' = 'editor', name = 'Ed') => {
      const session = await createPersonSession(toolhost, { name, role });
      return { session, id: getUserId(session) };
    };
    async function makeKey(session: string, name: string, more: Json = {}): Promise<{ id: string; key: string }> {
      const input = { name, scopes: ['manage'], ...more };
      const { status, body } = await personRequest(toolhost, session, 'POST', '/keys', input);
      assert.equal(status, 201, JSON.stringify(body));
      return body as { id: string; key: string };
    }
    const isAccepted = async (key: string) => (await toolhost.rest('GET', '/servers', { key })).status === 200;
    async function getLastEvent(): Promise<Json> {
      const { body } = await asOwner('GET', '/audit?limit=1');
      return (body.events as Json[])[0] ?? assert.fail();
    }
    async function getListedKey(id: string): Promise<Json> {
      const { body } = await asOwner('GET', '/keys');
      return (body.keys as Json[]).find((key) => key.id === id) ?? assert.fail();
    }

    it('leaves working keys, which the response, the audit log, and the key list report', async () => {
      const { session, id } = await join();
      const direct = await makeKey(session, 'deploy');
      const { body: second } = await toolhost.rest('POST', '/keys', {
        key: direct.key,
        body: { name: 'made with it', scopes: ['manage:read'] },
      });
      const revokedKey = await makeKey(session, 'over');
      await asOwner('DELETE', `/keys/${revokedKey.id}`);
      const before = await getListedKey(direct.id);
      assert.deepEqual([before.created_by_name, before.creator_left], ['Ed', undefined]);
      const { body: foundKeys } = await asOwner('GET', `/keys?creator_id=${id}`);
      const ids = (foundKeys.keys as Json[]).map((key) => key.id);
      assert.deepEqual(ids.toSorted(), [direct.id, second.id].toSorted());

      const { status, body } = await asOwner('DELETE', `/members/${id}`);
      assert.equal(status, 200);
      const { keys, ...counts } = body as { keys: { id: string; name: string }[] };
      assert.deepEqual(keys.map((key) => key.name).toSorted(), ['deploy', 'made with it']);
      assert.partialDeepStrictEqual(counts, { removed: id, key_count: 2, revoked_keys: [], revoked_key_count: 0 });
      const { operation, detail } = await getLastEvent();
      assert.equal(operation, 'removeMember');
      assert.deepEqual((detail as { working_keys: string[] }).working_keys.toSorted(), ids.toSorted());
      for (const key of [direct.key, String(second.key)]) assert.equal(await isAccepted(key), true);
      for (const key of [direct.id, String(second.id)]) assert.equal((await getListedKey(key)).creator_left, true);
      assert.equal((await getListedKey(direct.id)).created_by_name, 'Ed');
      assert.ok(!JSON.stringify([body, detail]).includes(direct.key));
    });

    it('loses all keys if the owner ends their access, including keys created with them', async () => {
      const { session, id } = await join();
      const direct = await makeKey(session, 'deploy');
      const { body: second } = await toolhost.rest('POST', '/keys', {
        key: direct.key,
        body: { name: 'made with it', scopes: ['manage:read'] },
      });
      const other = await makeKey(owner, 'of somebody else');
      assert.equal(await isAccepted(direct.key), true);
      const { body } = await asOwner('DELETE', `/members/${id}`, { revoke_access: true });
      assert.deepEqual((body.revoked_keys as string[]).toSorted(), [direct.id, second.id].toSorted());
      assert.deepEqual([body.revoked_key_count, body.key_count], [2, 0]);
      for (const key of [direct.key, String(second.key)]) assert.equal(await isAccepted(key), false);
      assert.equal(await isAccepted(other.key), true);
      assert.equal(((await getLastEvent()).detail as Json).revoked_key_count, 2);
    });

    /** Creates a model, a webhook, a server, and a secret with the session or key of `send`. */
    async function createResources(
      send: (method: string, path: string, body: Json) => Promise<{ status: number; body: Json }>,
      name: string,
    ) {
      const responses = [
        await send('PUT', `/models/${name}`, { kind: 'openai', url: 'https://models.example/v1', model: 'm' }),
        await send('POST', '/webhooks', { url: `https://${name}.example/told`, events: ['quota.near'] }),
        await send('POST', '/servers', buildServerAt(name, 'https://api.example')),
        await send('PUT', `/servers/${name}/secrets/KEY`, { value: 'a-secret' }),
      ];
      for (const { status, body } of responses) assert.ok(status < 300, JSON.stringify(body));
    }
    const listWebhooks = async () => (await asOwner('GET', '/webhooks')).body.webhooks as Json[];

    it('is listed with what their revoked key created, even long after its revocation', async () => {
      const { session, id } = await join();
      const { key, id: keyId } = await makeKey(session, 'deploy');
      await createResources((method, path, body) => toolhost.rest(method, path, { key, body }), 'long-ago');
      const unused = await makeKey(session, 'unused');
      for (const revoked of [keyId, unused.id]) await asOwner('DELETE', `/keys/${revoked}`);
      const { db } = toolhost.running.app.runner;
      await pruneKeys(db, Date.now() + 365 * 86_400_000);
      const { keys } = (await asOwner('GET', '/keys')).body as { keys: Json[] };
      assert.deepEqual(
        [keyId, unused.id].map((createdId) => keys.some((stored) => stored.id === createdId)),
        [true, false],
      );
      const { body } = await asOwner('DELETE', `/members/${id}`, { revoke_access: true });
      assert.deepEqual([body.servers, body.deleted_models], [['long-ago'], ['long-ago']]);
      assert.deepEqual(body.secrets, [{ server: 'long-ago', name: 'KEY' }]);
      for (const webhook of await listWebhooks()) await asOwner('DELETE', `/webhooks/${webhook.id}`);
    });

    it('is listed with everything they created, and their webhooks wait for confirmation by a member', async () => {
      const { session, id } = await join();
      const { key, id: keyId } = await makeKey(session, 'deploy', { scopes: ['manage'] });
      await createResources((method, path, body) => personRequest(toolhost, session, method, path, body), 'by-person');
      await createResources((method, path, body) => toolhost.rest(method, path, { key, body }), 'by-key');
      await asOwner('POST', '/servers', buildServerAt('of-olga', 'https://api.example'));
      const own = await asOwner('POST', '/webhooks', { url: 'https://olga.example/', events: ['quota.near'] });

      const { status, body } = await asOwner('DELETE', `/members/${id}`);
      assert.equal(status, 200, JSON.stringify(body));
      const names = ['by-key', 'by-person'];
      assert.deepEqual([body.models, body.servers, body.server_count], [names, names, 2]);
      assert.deepEqual(
        body.secrets,
        names.map((server) => ({ server, name: 'KEY' })),
      );
      const origins = ['https://by-person.example', 'https://by-key.example'];
      assert.deepEqual(
        (body.webhooks as Json[]).map(({ origin }) => origin),
        origins,
      );
      assert.partialDeepStrictEqual((await getLastEvent()).detail, {
        models: names,
        working_keys: [keyId],
      });

      const [first, second, olgas] = await listWebhooks();
      for (const webhook of [first, second]) {
        assert.deepEqual(
          [webhook?.unconfirmed, webhook?.created_by, webhook?.paused_at !== undefined],
          [true, id, true],
        );
        const resume = { paused: false };
        const refused = await toolhost.rest('PATCH', `/webhooks/${webhook?.id}`, { key, body: resume });
        assert.deepEqual([refused.status, /the key of a member/.test(refused.text)], [403, true]);
        const resumed = await asOwner('PATCH', `/webhooks/${webhook?.id}`, resume);
        assert.deepEqual(
          [resumed.status, resumed.body.paused_at, resumed.body.created_by],
          [200, undefined, getUserId(owner)],
        );
      }
      assert.deepEqual([olgas?.id, olgas?.paused_at], [own.body.id, undefined]);
      for (const webhook of await listWebhooks()) await asOwner('DELETE', `/webhooks/${webhook.id}`);
      await asOwner('DELETE', `/member-access/${id}`);
    });

    it('leaves keys that cannot create, change, delete, or test webhooks', async () => {
      const { session, id } = await join();
      const { key } = await makeKey(session, 'deploy');
      const hook = { url: 'https://olga.example/', events: ['quota.near'] };
      const { body: created } = await asOwner('POST', '/webhooks', hook);
      assert.equal((await asOwner('DELETE', `/members/${id}`)).status, 200);
      const path = `/webhooks/${created.id}`;
      const refused = [
        await toolhost.rest('POST', '/webhooks', { key, body: { ...hook, url: 'https://eds.example/' } }),
        await toolhost.rest('PATCH', path, { key, body: { url: 'https://eds.example/' } }),
        await toolhost.rest('POST', `${path}/test`, { key }),
        await toolhost.rest('DELETE', path, { key }),
      ];
      for (const { status, text } of refused) assert.match(`${status} ${text}`, /^403 .*the key of a member/);
      assert.partialDeepStrictEqual(await listWebhooks(), [{ id: created.id, origin: 'https://olga.example' }]);
      await asOwner('DELETE', path);
      await asOwner('DELETE', `/member-access/${id}`);
    });

    it('owns webhooks of others whose URL they or their key changed', async () => {
      const { session, id } = await join();
      const { key } = await makeKey(session, 'deploy');
      const events = ['quota.near'];
      const ids: unknown[] = [];
      for (const n of [1, 2])
        ids.push((await asOwner('POST', '/webhooks', { url: `https://olga-${n}.example/`, events })).body.id);
      const url = 'https://eds.example/';
      await personRequest(toolhost, session, 'PATCH', `/webhooks/${ids[0]}`, { url });
      await toolhost.rest('PATCH', `/webhooks/${ids[1]}`, { key, body: { url } });
      const { body } = await asOwner('DELETE', `/members/${id}`, { revoke_access: true });
      assert.deepEqual(body.paused_webhooks, ids);
      for (const webhook of await listWebhooks()) {
        assert.deepEqual([webhook.created_by, webhook.unconfirmed], [id, true]);
        await asOwner('DELETE', `/webhooks/${webhook.id}`);
      }
    });

    it('has webhooks that only another member can confirm, even after a return, and never a program', async () => {
      const { db } = toolhost.running.app.runner;
      const { session, id } = await join();
      const { body: created } = await personRequest(toolhost, session, 'POST', '/webhooks', {
        url: 'https://eds.example/',
        events: ['quota.near'],
      });
      const path = `/webhooks/${created.id}`;
      await asOwner('DELETE', `/members/${id}`);
      await db
        .insertInto('members')
        .values({ workspace_id: 'local', user_id: id, role: 'editor', created_at: Date.now() })
        .execute();
      const newSession = await createMemberSession(toolhost, id);
      const member = await makeKey(owner, 'of Olga');
      assert.equal((await listWebhooks())[0]?.unconfirmed, true);
      for (const { status } of [
        await personRequest(toolhost, newSession, 'PATCH', path, { paused: false }),
        await personRequest(toolhost, newSession, 'PATCH', path, { url: 'https://eds.example/other' }),
        await personRequest(toolhost, newSession, 'POST', `${path}/test`),
        await toolhost.rest('PATCH', path, { key: member.key, body: { paused: false } }),
        await toolhost.rest('POST', `${path}/test`, { key: member.key }),
      ])
        assert.equal(status, 403);
      assert.equal((await asOwner('PATCH', path, { paused: false })).body.created_by, getUserId(owner));
      await asOwner('DELETE', path);
    });

    it('remains a member with paused webhooks if an owner ends what they created', async () => {
      const { session, id } = await join();
      const hook = { url: 'https://eds.example/', events: ['quota.near'] };
      const { body: created } = await personRequest(toolhost, session, 'POST', '/webhooks', hook);
      const { status, body } = await asOwner('DELETE', `/member-access/${id}`);
      assert.deepEqual([status, body.paused_webhooks], [200, [created.id]]);
      assert.deepEqual(((await getLastEvent()).detail as Json).paused_webhooks, [created.id]);
      assert.equal((await listWebhooks())[0]?.unconfirmed, true);
      await asOwner('DELETE', `/webhooks/${created.id}`);
    });

    it('is listed with what still works after leaving on their own, until an owner ends it in one step', async () => {
      const { session, id } = await join('editor', 'Lena');
      const { key, id: keyId } = await makeKey(session, 'of Lena');
      await personRequest(toolhost, session, 'PUT', '/models/lenas', { kind: 'openai', model: 'm' });
      const left = await personRequest(toolhost, session, 'POST', '/workspace/leave');
      assert.deepEqual([left.status, left.body.models, left.body.key_count], [200, ['lenas'], 1]);
      const getRemaining = async () =>
        ((await asOwner('GET', '/member-access')).body.people as Json[]).find((person) => person.id === id);
      assert.partialDeepStrictEqual(await getRemaining(), { name: 'Lena', models: ['lenas'], key_count: 1 });
      const { status, body } = await asOwner('DELETE', `/member-access/${id}`);
      assert.deepEqual([status, body.revoked_keys, body.deleted_models], [200, [keyId], ['lenas']]);
      assert.equal((await getLastEvent()).operation, 'revokeMemberAccess');
      assert.deepEqual(
        [await isAccepted(key), (await asOwner('GET', '/models')).body.models, await getRemaining()],
        [false, [], undefined],
      );
      assert.equal((await asOwner('DELETE', `/member-access/${id}`)).status, 404);
    });

    it('loses models if the owner ends their access', async () => {
      const { session, id } = await join();
      await personRequest(toolhost, session, 'PUT', '/models/eds', { kind: 'openai', model: 'm' });
      const { body } = await asOwner('DELETE', `/members/${id}`, { revoke_access: true });
      assert.deepEqual([body.models, body.deleted_models], [[], ['eds']]);
      assert.deepEqual((await asOwner('GET', '/models')).body.models, []);
    });

    it('is listed with the invitations they sent', async () => {
      const { session, id } = await join('owner');
      await personRequest(toolhost, session, 'POST', '/invitations', { email: 'Friend@mail.example', role: 'owner' });
      const { body } = await asOwner('DELETE', `/members/${id}`);
      assert.deepEqual(body.invitations, ['friend@mail.example']);
      assert.deepEqual(((await getLastEvent()).detail as Json).invitations, ['friend@mail.example']);
      const remaining = (await asOwner('GET', '/member-access')).body.people as Json[];
      assert.deepEqual(remaining.find((person) => person.id === id)?.invitations, ['friend@mail.example']);
      const { body: ended } = await asOwner('DELETE', `/member-access/${id}`);
      assert.deepEqual(ended.revoked_invitations, ['friend@mail.example']);
      assert.deepEqual((await asOwner('GET', '/members')).body.invitations, []);
    });

    it('loses all sessions and signed-in agents, even after a return', async () => {
      const { db } = toolhost.running.app.runner;
      const { client, tokens } = await signInAgent(toolhost);
      const grant = await db
        .selectFrom('grants')
        .select('user_id')
        .where('revoked_at', 'is', null)
        .executeTakeFirstOrThrow();
      const id = grant.user_id ?? assert.fail();
      const list = () => toolhost.rpc('manage', tokens.access_token, 'tools/list');
      assert.equal((await list()).status, 200);
      const { status, body } = await asOwner('DELETE', `/members/${id}`);
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal((await list()).status, 401);
      assertOAuthError(await client.refresh(tokens.refresh_token), 400, 'invalid_grant');
      await db
        .insertInto('members')
        .values({ workspace_id: 'local', user_id: id, role: 'editor', created_at: 1 })
        .execute();
      assert.equal((await list()).status, 401);

      const { session, id: editor } = await join();
      assert.equal((await personRequest(toolhost, session, 'GET', '/session')).status, 200);
      await asOwner('DELETE', `/members/${editor}`);
      assert.equal((await personRequest(toolhost, session, 'GET', '/session')).status, 401);
    });

    it('must sign in again after getting a lower role, as must their agents, and the response lists their keys', async () => {
      const { db } = toolhost.running.app.runner;
      const { tokens } = await signInAgent(toolhost);
      const grant = await db
        .selectFrom('grants')
        .select('user_id')
        .where('revoked_at', 'is', null)
        .executeTakeFirstOrThrow();
      const agent = () => toolhost.rpc('manage', tokens.access_token, 'tools/list');
      const person = grant.user_id ?? assert.fail();
      assert.equal((await asOwner('PATCH', `/members/${person}`, { role: 'owner' })).status, 200);
      assert.equal((await agent()).status, 200, 'a higher role ends nothing');
      assert.equal((await asOwner('PATCH', `/members/${person}`, { role: 'viewer' })).status, 200);
      assert.equal((await agent()).status, 401);

      const { session, id } = await join();
      const { key, id: keyId } = await makeKey(session, 'of an editor');
      const { body } = await asOwner('PATCH', `/members/${id}`, { role: 'viewer' });
      assert.deepEqual(
        (body.keys as { id: string }[]).map((createdKey) => createdKey.id),
        [keyId],
      );
      assert.equal((await personRequest(toolhost, session, 'GET', '/session')).status, 401);
      assert.equal(await isAccepted(key), true);
      await asOwner('PATCH', `/members/${id}`, { role: 'viewer', revoke_access: true });
      assert.equal(await isAccepted(key), false);
    });

    it('keeps the current session when lowering their own role', async () => {
      const { session, id } = await join('owner');
      const { status } = await personRequest(toolhost, session, 'PATCH', `/members/${id}`, { role: 'editor' });
      assert.equal(status, 200);
      assert.equal((await personRequest(toolhost, session, 'GET', '/session')).status, 200);
    });

    it('cannot see or end anything of another workspace', async () => {
      const otherWorkspaceSession = await createPersonSession(toolhost, { name: 'Mallory', workspace: 'wsp_other' });
      const { session, id } = await join();
      const { key } = await makeKey(session, 'ours');
      const { body } = await personRequest(toolhost, otherWorkspaceSession, 'GET', `/keys?creator_id=${id}`);
      assert.deepEqual(body.keys, []);
      const { status } = await personRequest(toolhost, otherWorkspaceSession, 'DELETE', `/members/${id}`, {
        revoke_access: true,
      });
      assert.deepEqual([status, await isAccepted(key)], [404, true]);
    });
  });
}

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { pruneKeys } from '../../apps/server/src/store/pruning/prune-people.ts';
import { engines } from '../sets.ts';
import { createMemberSession, createPersonSession } from '../support/browser/dashboard.ts';
import { assertOAuthError } from '../support/oauth/oauth-client.ts';
import { signInAgent } from '../support/oauth/signed-in-agent.ts';
import { pluck } from '../support/pluck.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { createKeyClient, createPersonClient, type Send } from '../support/toolhost/rest-clients.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

for (const engine of engines) {
  describe(`[find B8] a member who leaves a workspace or gets a lower role, on ${engine}`, async () => {
    const postgres = engine === 'postgres' ? await startPostgres() : undefined;
    const toolhost = await startToolhost({ env: postgres ? { DATABASE_URL: await postgres.createDatabase() } : {} });
    after(async () => {
      await toolhost.stop();
      await postgres?.stop();
    });
    const { db } = toolhost.running.app.runner;
    const owner = await createPersonSession(toolhost, { name: 'Olga' });
    const asOwner = createPersonClient(toolhost, owner);

    const join = async (role: 'owner' | 'editor' = 'editor', name = 'Ed') => {
      const session = await createPersonSession(toolhost, { name, role });
      return { send: createPersonClient(toolhost, session), id: `usr_${session}` };
    };
    async function makeKey(send: Send, name: string, scopes = ['manage']) {
      const { status, body } = await send('POST', '/keys', { name, scopes });
      assert.equal(status, 201, JSON.stringify(body));
      const { id, key } = body as { id: string; key: string };
      return { id, key, send: createKeyClient(toolhost, key) };
    }
    const createWebhook = async (send: Send, url = 'https://eds.example/') =>
      String((await send('POST', '/webhooks', { url, events: ['quota.near'] })).body.id);
    const isAccepted = async (key: string) => (await toolhost.rest('GET', '/servers', { key })).status === 200;
    const list = async (field: string, path = `/${field}`) => (await asOwner('GET', path)).body[field] as Json[];
    const getLastEvent = async () => (await list('events', '/audit?limit=1'))[0] as { operation: string; detail: Json };
    const getListedKey = async (id: string) => (await list('keys')).find((key) => key.id === id);
    const getRemaining = async (id: string) =>
      (await list('people', '/member-access')).find((person) => person.id === id);
    const deleteWebhooks = async () => {
      for (const { id } of await list('webhooks')) await asOwner('DELETE', `/webhooks/${id}`);
    };

    it('leaves working keys, which the response, the audit log, and the key list report', async () => {
      const { send, id } = await join();
      const direct = await makeKey(send, 'deploy');
      const second = await makeKey(direct.send, 'made with it', ['manage:read']);
      const revokedKey = await makeKey(send, 'over');
      await asOwner('DELETE', `/keys/${revokedKey.id}`);
      const before = await getListedKey(direct.id);
      assert.deepEqual([before?.created_by_name, before?.creator_left], ['Ed', undefined]);
      const ids = [direct.id, second.id].toSorted();
      assert.deepEqual(pluck(await list('keys', `/keys?creator_id=${id}`), 'id').toSorted(), ids);

      const { status, body } = await asOwner('DELETE', `/members/${id}`);
      assert.equal(status, 200);
      const { keys, ...counts } = body;
      assert.deepEqual(pluck(keys, 'name').toSorted(), ['deploy', 'made with it']);
      assert.partialDeepStrictEqual(counts, { removed: id, key_count: 2, revoked_keys: [], revoked_key_count: 0 });
      const { operation, detail } = await getLastEvent();
      assert.equal(operation, 'removeMember');
      assert.deepEqual((detail.working_keys as string[]).toSorted(), ids);
      for (const created of [direct, second]) {
        assert.equal(await isAccepted(created.key), true);
        assert.equal((await getListedKey(created.id))?.creator_left, true);
      }
      assert.equal((await getListedKey(direct.id))?.created_by_name, 'Ed');
      assert.ok(!JSON.stringify([body, detail]).includes(direct.key));
    });

    it('loses models and all keys if the owner ends their access, including keys created with them', async () => {
      const { send, id } = await join();
      const direct = await makeKey(send, 'deploy');
      const second = await makeKey(direct.send, 'made with it', ['manage:read']);
      const other = await makeKey(asOwner, 'of another user');
      await send('PUT', '/models/eds', { kind: 'openai', model: 'm' });
      assert.equal(await isAccepted(direct.key), true);
      const { body } = await asOwner('DELETE', `/members/${id}`, { revoke_access: true });
      assert.deepEqual((body.revoked_keys as string[]).toSorted(), [direct.id, second.id].toSorted());
      assert.deepEqual([body.revoked_key_count, body.key_count], [2, 0]);
      const accepted = [await isAccepted(direct.key), await isAccepted(second.key), await isAccepted(other.key)];
      assert.deepEqual(accepted, [false, false, true]);
      assert.equal((await getLastEvent()).detail.revoked_key_count, 2);
      assert.deepEqual([body.models, body.deleted_models, await list('models')], [[], ['eds'], []]);
    });

    /** Creates a model, a webhook, a server, and a secret. */
    async function createResources(send: Send, name: string) {
      const responses = [
        await send('PUT', `/models/${name}`, { kind: 'openai', url: 'https://models.example/v1', model: 'm' }),
        await send('POST', '/webhooks', { url: `https://${name}.example/told`, events: ['quota.near'] }),
        await send('POST', '/servers', buildServerAt(name, 'https://api.example')),
        await send('PUT', `/servers/${name}/secrets/KEY`, { value: 'a-secret' }),
      ];
      for (const { status, body } of responses) assert.ok(status < 300, JSON.stringify(body));
    }

    it('is listed with what their revoked key created, even long after its revocation', async () => {
      const { send, id } = await join();
      const used = await makeKey(send, 'deploy');
      await createResources(used.send, 'long-ago');
      const unused = await makeKey(send, 'unused');
      for (const revoked of [used, unused]) await asOwner('DELETE', `/keys/${revoked.id}`);
      await pruneKeys(db, Date.now() + 365 * 86_400_000);
      assert.ok(await getListedKey(used.id));
      assert.equal(await getListedKey(unused.id), undefined);
      const { body } = await asOwner('DELETE', `/members/${id}`, { revoke_access: true });
      assert.deepEqual([body.servers, body.deleted_models], [['long-ago'], ['long-ago']]);
      assert.deepEqual(body.secrets, [{ server: 'long-ago', name: 'KEY' }]);
      await deleteWebhooks();
    });

    it('is listed with everything they created, and their webhooks wait for confirmation by a member', async () => {
      const { send, id } = await join();
      const key = await makeKey(send, 'deploy');
      await createResources(send, 'by-person');
      await createResources(key.send, 'by-key');
      await asOwner('POST', '/servers', buildServerAt('of-olga', 'https://api.example'));
      const own = await createWebhook(asOwner, 'https://olga.example/');

      const { status, body } = await asOwner('DELETE', `/members/${id}`);
      assert.equal(status, 200, JSON.stringify(body));
      const names = ['by-key', 'by-person'];
      assert.deepEqual([body.models, body.servers, body.server_count], [names, names, 2]);
      assert.deepEqual(pluck(body.secrets, 'server', 'name'), ['by-key', 'KEY', 'by-person', 'KEY']);
      assert.deepEqual(pluck(body.webhooks, 'origin'), ['https://by-person.example', 'https://by-key.example']);
      assert.partialDeepStrictEqual((await getLastEvent()).detail, { models: names, working_keys: [key.id] });

      const [first, second, olgas] = await list('webhooks');
      for (const webhook of [first, second]) {
        assert.ok(webhook?.unconfirmed === true && webhook.created_by === id && webhook.paused_at !== undefined);
        const refused = await key.send('PATCH', `/webhooks/${webhook.id}`, { paused: false });
        assert.match(`${refused.status} ${refused.text}`, /^403 .*the key of a member/);
        const resumed = await asOwner('PATCH', `/webhooks/${webhook.id}`, { paused: false });
        const { paused_at, created_by } = resumed.body;
        assert.deepEqual([resumed.status, paused_at, created_by], [200, undefined, `usr_${owner}`]);
      }
      assert.deepEqual([olgas?.id, olgas?.paused_at], [own, undefined]);
      await deleteWebhooks();
      await asOwner('DELETE', `/member-access/${id}`);
    });

    it('leaves keys that cannot create, change, delete, or test webhooks', async () => {
      const { send, id } = await join();
      const key = await makeKey(send, 'deploy');
      const webhook = await createWebhook(asOwner, 'https://olga.example/');
      assert.equal((await asOwner('DELETE', `/members/${id}`)).status, 200);
      const path = `/webhooks/${webhook}`;
      for (const { status, text } of [
        await key.send('POST', '/webhooks', { url: 'https://eds.example/', events: ['quota.near'] }),
        await key.send('PATCH', path, { url: 'https://eds.example/' }),
        await key.send('POST', `${path}/test`),
        await key.send('DELETE', path),
      ])
        assert.match(`${status} ${text}`, /^403 .*the key of a member/);
      assert.partialDeepStrictEqual(await list('webhooks'), [{ id: webhook, origin: 'https://olga.example' }]);
      await deleteWebhooks();
      await asOwner('DELETE', `/member-access/${id}`);
    });

    it('owns webhooks of others whose URL they or their key changed', async () => {
      const { send, id } = await join();
      const key = await makeKey(send, 'deploy');
      const ids = [
        await createWebhook(asOwner, 'https://olga-1.example/'),
        await createWebhook(asOwner, 'https://olga-2.example/'),
      ];
      await send('PATCH', `/webhooks/${ids[0]}`, { url: 'https://eds.example/' });
      await key.send('PATCH', `/webhooks/${ids[1]}`, { url: 'https://eds.example/' });
      const { body } = await asOwner('DELETE', `/members/${id}`, { revoke_access: true });
      assert.deepEqual(body.paused_webhooks, ids);
      assert.deepEqual(pluck(await list('webhooks'), 'created_by', 'unconfirmed'), [id, true, id, true]);
      await deleteWebhooks();
    });

    it('has webhooks that only another member can confirm, even after a return, and never a program', async () => {
      const { send, id } = await join();
      const path = `/webhooks/${await createWebhook(send)}`;
      await asOwner('DELETE', `/members/${id}`);
      const member = { workspace_id: 'local', user_id: id, role: 'editor', created_at: Date.now() };
      await db.insertInto('members').values(member).execute();
      const sendAgain = createPersonClient(toolhost, await createMemberSession(toolhost, id));
      const key = await makeKey(asOwner, 'of Olga');
      assert.equal((await list('webhooks'))[0]?.unconfirmed, true);
      for (const { status } of [
        await sendAgain('PATCH', path, { paused: false }),
        await sendAgain('PATCH', path, { url: 'https://eds.example/other' }),
        await sendAgain('POST', `${path}/test`),
        await key.send('PATCH', path, { paused: false }),
        await key.send('POST', `${path}/test`),
      ])
        assert.equal(status, 403);
      assert.equal((await asOwner('PATCH', path, { paused: false })).body.created_by, `usr_${owner}`);
      await deleteWebhooks();
    });

    it('remains a member with paused webhooks if an owner ends what they created', async () => {
      const { send, id } = await join();
      const webhook = await createWebhook(send);
      const { status, body } = await asOwner('DELETE', `/member-access/${id}`);
      assert.deepEqual([status, body.paused_webhooks], [200, [webhook]]);
      assert.deepEqual((await getLastEvent()).detail.paused_webhooks, [webhook]);
      assert.equal((await list('webhooks'))[0]?.unconfirmed, true);
      await deleteWebhooks();
    });

    it('is listed with what still works after leaving on their own, until an owner ends it in one step', async () => {
      const { send, id } = await join('editor', 'Lena');
      const key = await makeKey(send, 'of Lena');
      await send('PUT', '/models/lenas', { kind: 'openai', model: 'm' });
      const left = await send('POST', '/workspace/leave');
      assert.deepEqual([left.status, left.body.models, left.body.key_count], [200, ['lenas'], 1]);
      assert.partialDeepStrictEqual(await getRemaining(id), { name: 'Lena', models: ['lenas'], key_count: 1 });
      const { status, body } = await asOwner('DELETE', `/member-access/${id}`);
      assert.deepEqual([status, body.revoked_keys, body.deleted_models], [200, [key.id], ['lenas']]);
      assert.equal((await getLastEvent()).operation, 'revokeMemberAccess');
      const remaining = [await isAccepted(key.key), await list('models'), await getRemaining(id)];
      assert.deepEqual(remaining, [false, [], undefined]);
      assert.equal((await asOwner('DELETE', `/member-access/${id}`)).status, 404);
    });

    it('is listed with the invitations they sent', async () => {
      const { send, id } = await join('owner');
      await send('POST', '/invitations', { email: 'Friend@mail.example', role: 'owner' });
      const { body } = await asOwner('DELETE', `/members/${id}`);
      const sent = ['friend@mail.example'];
      assert.deepEqual(body.invitations, sent);
      assert.deepEqual((await getLastEvent()).detail.invitations, sent);
      assert.deepEqual((await getRemaining(id))?.invitations, sent);
      assert.deepEqual((await asOwner('DELETE', `/member-access/${id}`)).body.revoked_invitations, sent);
      assert.deepEqual(await list('invitations', '/members'), []);
    });

    /** Signs in an agent of a new member. `getStatus` returns the status of the agent's next request. */
    const joinWithAgent = async () => {
      const { client, tokens } = await signInAgent(toolhost);
      const grants = db.selectFrom('grants').select('user_id').where('revoked_at', 'is', null);
      const { user_id } = await grants.executeTakeFirstOrThrow();
      const getStatus = async () => (await toolhost.rpc('manage', tokens.access_token, 'tools/list')).status;
      return { client, tokens, id: user_id ?? assert.fail(), getStatus };
    };

    it('loses all sessions and signed-in agents, even after a return', async () => {
      const { client, tokens, id, getStatus } = await joinWithAgent();
      assert.equal(await getStatus(), 200);
      const { status, body } = await asOwner('DELETE', `/members/${id}`);
      assert.equal(status, 200, JSON.stringify(body));
      assert.equal(await getStatus(), 401);
      assertOAuthError(await client.refresh(tokens.refresh_token), 400, 'invalid_grant');
      const member = { workspace_id: 'local', user_id: id, role: 'editor', created_at: 1 };
      await db.insertInto('members').values(member).execute();
      assert.equal(await getStatus(), 401);

      const { send, id: editor } = await join();
      assert.equal((await send('GET', '/session')).status, 200);
      await asOwner('DELETE', `/members/${editor}`);
      assert.equal((await send('GET', '/session')).status, 401);
    });

    it('must sign in again after getting a lower role, as must their agents, and the response lists their keys', async () => {
      const agent = await joinWithAgent();
      assert.equal((await asOwner('PATCH', `/members/${agent.id}`, { role: 'owner' })).status, 200);
      assert.equal(await agent.getStatus(), 200, 'a higher role ends nothing');
      assert.equal((await asOwner('PATCH', `/members/${agent.id}`, { role: 'viewer' })).status, 200);
      assert.equal(await agent.getStatus(), 401);

      const { send, id } = await join();
      const key = await makeKey(send, 'of an editor');
      const { body } = await asOwner('PATCH', `/members/${id}`, { role: 'viewer' });
      assert.deepEqual(pluck(body.keys, 'id'), [key.id]);
      assert.equal((await send('GET', '/session')).status, 401);
      assert.equal(await isAccepted(key.key), true);
      await asOwner('PATCH', `/members/${id}`, { role: 'viewer', revoke_access: true });
      assert.equal(await isAccepted(key.key), false);
    });

    it('keeps the current session when lowering their own role', async () => {
      const { send, id } = await join('owner');
      assert.equal((await send('PATCH', `/members/${id}`, { role: 'editor' })).status, 200);
      assert.equal((await send('GET', '/session')).status, 200);
    });
  });
}

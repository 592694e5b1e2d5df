import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { maxCreated } from '../../apps/server/src/operations/people/add-workspace.ts';
import { engines } from '../sets.ts';
import { visibleText } from '../support/browser/browser.ts';
import { startProductionWorld } from '../support/oauth/production-world.ts';
import { startStores } from '../support/store/stores.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

type WorkspaceSummary = { id: string; name: string; role: string; own: boolean; chosen: boolean };
type Session = { user: { id: string }; workspace: WorkspaceSummary; workspaces: WorkspaceSummary[] };

for (const engine of engines) {
  describe(`a person's own workspace on ${engine}`, async () => {
    const stores = await startStores(engine);
    const postgres = await stores.postgres?.createDatabase();
    const people = await startProductionWorld(postgres === undefined ? {} : { DATABASE_URL: postgres });
    const createClaims = (sub: string) => ({
      sub,
      name: 'Victoria',
      email: `${sub}@corp.example`,
      email_verified: true,
    });
    const signIn = (sub: string) => people.signIn(createClaims(sub));
    const requestAs = (session: string, method: string, path: string, body?: Json) =>
      people.requestAsUser(session, method, path, body);
    const getSession = async (session: string) => (await requestAs(session, 'GET', '/session')).body as Session;
    /** Session of a person who invites others into her workspace, which has a misleading name. */
    const mallory = await signIn('mallory');
    const malloryWorkspaceId = (await getSession(mallory)).workspace.id;
    await requestAs(mallory, 'PATCH', '/workspace', { name: 'Workspace of Victoria' });
    await requestAs(mallory, 'POST', '/servers', buildServerAt('of-mallory', 'https://api.example.com'));
    after(async () => {
      await people.stop();
      await stores.stop();
    });

    const switchWorkspace = async (session: string, workspace_id: string) => {
      const { status, body } = await requestAs(session, 'POST', '/session/workspace', { workspace_id });
      assert.equal(status, 200, JSON.stringify(body));
    };
    const invite = async (sub: string, role: string) => {
      const { status } = await requestAs(mallory, 'POST', '/invitations', { email: `${sub}@corp.example`, role });
      assert.equal(status, 200);
    };
    /** Signs a person in for the first time, after an invitation by Mallory. */
    const signInInvited = async (sub: string, role: string) => {
      await invite(sub, role);
      return signIn(sub);
    };
    /** Signs an agent in. Returns the servers that it finds. */
    const getAgentServers = async (sub: string) => {
      const { token } = await people.signInAgent(createClaims(sub));
      const { status, body } = await people.requestAsAgent(token, 'GET', '/servers');
      assert.equal(status, 200, JSON.stringify(body));
      return (body.servers as Json[]).map(({ slug }) => slug);
    };

    it('[sec E1] is where an invited person starts, so no one locks them out or sees what they create', async () => {
      for (const role of ['viewer', 'editor', 'owner']) {
        const session = await signInInvited(`first-${role}`, role);
        const { workspace, workspaces } = await getSession(session);
        assert.partialDeepStrictEqual(workspace, { role: 'owner', own: true, chosen: false });
        assert.partialDeepStrictEqual(workspaces, [
          { id: workspace.id, own: true },
          { id: malloryWorkspaceId, own: false, role },
        ]);
        assert.equal(workspaces.length, 2);
        const server = buildServerAt(`made-by-${role}`, 'https://api.example.com');
        assert.equal((await requestAs(session, 'POST', '/servers', server)).status, 201);
        assert.equal((await requestAs(mallory, 'GET', `/servers/made-by-${role}`)).status, 404);
      }
    });

    it('is created once and not replaced after a later invitation', async () => {
      const { id } = (await getSession(await signIn('twice'))).workspace;
      await invite('twice', 'editor');
      const { workspace, workspaces } = await getSession(await signIn('twice'));
      assert.deepEqual(
        [workspace, ...workspaces].map((one) => one.id),
        [id, id, malloryWorkspaceId],
      );
    });

    it("[sec E6] stays a person's own workspace with a lower role, and is created again for a person without any workspace", async () => {
      const session = await signIn('lost');
      const { user, workspace: own } = await getSession(session);
      await requestAs(session, 'POST', '/invitations', { email: 'friend@corp.example', role: 'owner' });
      const friend = await signIn('friend');
      await switchWorkspace(friend, own.id);
      assert.equal((await requestAs(friend, 'PATCH', `/members/${user.id}`, { role: 'viewer' })).status, 200);
      const second = (await getSession(await signIn('lost'))).workspace;
      assert.partialDeepStrictEqual(second, { id: own.id, role: 'viewer', own: true });
      const { db } = people.toolhost.running.app.runner;
      await db.deleteFrom('members').where('user_id', '=', user.id).execute();
      const { workspaces } = await getSession(await signIn('lost'));
      assert.partialDeepStrictEqual(workspaces, [{ role: 'owner', own: true }]);
      assert.equal(workspaces.length, 1);
    });

    it('[sec E6] is created again within the daily limit for new workspaces, and not for a member of another workspace', async () => {
      const deleteOwnWorkspace = async () => {
        const session = await signIn('restless');
        const { name } = (await getSession(session)).workspace;
        assert.equal((await requestAs(session, 'POST', '/workspace/delete', { name })).status, 200);
      };
      for (let n = 0; n < maxCreated; n++) await deleteOwnWorkspace();
      await assert.rejects(signIn('restless'), /created 20 workspaces today/);
      await invite('restless', 'viewer');
      assert.equal((await getSession(await signIn('restless'))).workspace.id, malloryWorkspaceId);
    });

    it('[sec E6] counts toward the workspaces that a person created even if they are now only its editor', async () => {
      const session = await signIn('giver');
      const { user } = await getSession(session);
      const create = (n: number) => requestAs(session, 'POST', '/workspaces', { name: `Number ${n}` });
      for (let n = 1; n < maxCreated; n++) assert.equal((await create(n)).status, 201);
      const { db } = people.toolhost.running.app.runner;
      await db.updateTable('members').set({ role: 'editor' }).where('user_id', '=', user.id).execute();
      await db.deleteFrom('call_quota_use').where('kind', '=', 'workspaces').execute();
      const { status, body } = await create(maxCreated);
      assert.deepEqual([status, /created 20 workspaces that still exist/.test(String(body.detail))], [403, true]);
    });

    it('yields to the workspace that the person last switched to, as long as they are a member', async () => {
      const session = await signInInvited('chooser', 'viewer');
      const { user, workspace: own } = await getSession(session);
      await switchWorkspace(session, malloryWorkspaceId);
      const next = await signIn('chooser');
      const chosen = { id: malloryWorkspaceId, own: false, chosen: true };
      assert.partialDeepStrictEqual((await getSession(next)).workspace, chosen);
      await switchWorkspace(next, own.id);
      const back = await signIn('chooser');
      assert.equal((await getSession(back)).workspace.id, own.id);
      await switchWorkspace(back, malloryWorkspaceId);
      assert.equal((await requestAs(mallory, 'DELETE', `/members/${user.id}`)).status, 200);
      await invite('chooser', 'viewer');
      const { id } = (await getSession(await signIn('chooser'))).workspace;
      assert.equal(id, own.id, 'the choice ended with the membership');
    });

    it('[sec E1] is where agents act until the person switches to another, as the consent page states', async () => {
      await invite('agents', 'editor');
      const { consent } = await people.signInAgent(createClaims('agents'));
      assert.match(visibleText(consent), /Acts in Your own workspace, or the one that you last switched to/);
      assert.deepEqual(await getAgentServers('agents'), []);
      await switchWorkspace(await signIn('agents'), malloryWorkspaceId);
      assert.deepEqual(await getAgentServers('agents'), ['of-mallory']);
    });

    it('remains after the person leaves another workspace, in any role, and cannot be left by its only owner', async () => {
      const only = await signIn('only');
      const refused = await requestAs(only, 'POST', '/workspace/leave', {});
      assert.deepEqual([refused.status, /the only owner/.test(String(refused.body.detail))], [409, true]);
      assert.equal((await getSession(only)).workspace.own, true);
      for (const role of ['viewer', 'editor', 'owner']) {
        const session = await signInInvited(`leaver-${role}`, role);
        const { user, workspace: own } = await getSession(session);
        await switchWorkspace(session, malloryWorkspaceId);
        const { token } = await people.signInAgent(createClaims(`leaver-${role}`));
        const agent = async () => (await people.requestAsAgent(token, 'GET', '/servers')).status;
        assert.equal(await agent(), 200);
        const { status, body } = await requestAs(session, 'POST', '/workspace/leave', {});
        assert.equal(status, 200, JSON.stringify(body));
        assert.equal(body.left, malloryWorkspaceId);
        const { members } = (await requestAs(mallory, 'GET', '/members')).body as { members: Json[] };
        assert.ok(members.every(({ id }) => id !== user.id));
        const { workspace, workspaces } = await getSession(session);
        assert.deepEqual([workspace.id, workspaces.length], [own.id, 1]);
        assert.equal(await agent(), 401);
        const { events } = (await requestAs(mallory, 'GET', '/audit?limit=1')).body as { events: Json[] };
        assert.partialDeepStrictEqual(events[0], { operation: 'leaveWorkspace', actor_id: user.id });
      }
    });

    it('[sec E6] cannot be joined with an invitation of a former owner until an owner sends the invitation again', async () => {
      const former = await signInInvited('former', 'owner');
      const { user } = await getSession(former);
      await switchWorkspace(former, malloryWorkspaceId);
      const invitation = { email: 'accomplice@corp.example', role: 'owner' };
      assert.equal((await requestAs(former, 'POST', '/invitations', invitation)).status, 200);
      assert.equal((await requestAs(mallory, 'PATCH', `/members/${user.id}`, { role: 'viewer' })).status, 200);
      const joined = async () =>
        (await getSession(await signIn('accomplice'))).workspaces.some(({ id }) => id === malloryWorkspaceId);
      assert.equal(await joined(), false);
      const { invitations } = (await requestAs(mallory, 'GET', '/members')).body;
      assert.partialDeepStrictEqual(invitations, [{ ...invitation, unconfirmed: true }]);
      assert.equal((await requestAs(mallory, 'POST', '/invitations', invitation)).body.unchanged, undefined);
      assert.equal(await joined(), true);
    });
  });
}

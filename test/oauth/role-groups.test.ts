import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { sql } from 'kysely';
import { replaceRoleGroups } from '../../apps/server/src/store/people/role-groups.ts';
import { engines } from '../sets.ts';
import { eventually } from '../support/eventually.ts';
import { namespacedGroupsClaim } from '../support/oauth/honest-provider.ts';
import { startIdentityWorld } from '../support/oauth/identity-world.ts';
import { startStores } from '../support/store/stores.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

type Member = { id: string; name: string; role: string; role_group?: string };

for (const engine of engines) {
  describe(`roles by group on ${engine}`, async () => {
    const stores = await startStores(engine);
    const DATABASE_URL = await stores.postgres?.createDatabase();
    const world = await startIdentityWorld({ env: { ...(DATABASE_URL !== undefined && { DATABASE_URL }) } });
    after(async () => {
      await world.stop();
      await stores.stop();
    });
    let workspaces = 0;

    /** Creates a workspace of a new owner. */
    async function createWorkspace() {
      workspaces += 1;
      const number = workspaces;
      const ownerName = `olga-${number}`;
      const owner = await world.signIn(ownerName);
      const { workspace } = (await world.request(owner, 'GET', '/session')).body as { workspace: { id: string } };
      const asOwner = (method: string, path: string, body?: Json) => world.request(owner, method, path, body);
      return {
        id: workspace.id,
        ownerName,
        asOwner,
        setRoles: (roles: { [group: string]: string }) =>
          asOwner('PUT', '/role-groups', {
            role_groups: Object.entries(roles).map(([group, role]) => ({ group, role })),
          }),
        /** Invites a person, who signs in. Returns their name. */
        async addMember(role: string, groups?: string[]): Promise<string> {
          const name = `anna-${number}-${Math.random().toString(36).slice(2)}`;
          assert.equal((await asOwner('POST', '/invitations', { email: `${name}@people.example`, role })).status, 200);
          world.provider.setClaims(name, { groups });
          await world.signIn(name);
          return name;
        },
        /** Signs a person in with these groups. Returns a session in this workspace. */
        async signInWithGroups(name: string, groups: string[]): Promise<string> {
          world.provider.setClaims(name, { groups });
          const session = await world.signIn(name);
          await world.request(session, 'POST', '/session/workspace', { workspace_id: workspace.id });
          return session;
        },
        async findMember(name: string): Promise<Member | undefined> {
          const { members } = (await asOwner('GET', '/members')).body as { members: Member[] };
          return members.find((member) => member.name === name);
        },
      };
    }

    type TestWorkspace = Awaited<ReturnType<typeof createWorkspace>>;
    async function getRole(workspace: TestWorkspace, name: string): Promise<(string | undefined)[]> {
      const { role, role_group } = (await workspace.findMember(name)) ?? {};
      return role_group === undefined ? [role] : [role, role_group];
    }

    it('gives a member the highest role of their groups at each sign-in, and then the role that a member gave', async () => {
      const workspace = await createWorkspace();
      await workspace.setRoles({ support: 'editor', admins: 'owner', interns: 'viewer' });
      const name = await workspace.addMember('editor', ['interns']);
      assert.deepEqual(await getRole(workspace, name), ['viewer', 'interns']);
      for (const [groups, expected] of [
        [
          ['interns', 'support'],
          ['editor', 'support'],
        ],
        [
          ['support', 'admins', 'other'],
          ['owner', 'admins'],
        ],
        [['Support', 'adminsx'], ['editor']],
        [['interns'], ['viewer', 'interns']],
        [[], ['editor']],
      ] as const) {
        await workspace.signInWithGroups(name, [...groups]);
        assert.deepEqual(await getRole(workspace, name), expected, groups.join());
      }
      const { events } = (await workspace.asOwner('GET', '/audit?operation=groupRole')).body as { events: Json[] };
      assert.deepEqual(events[0]?.detail, { role: 'editor' });
      assert.deepEqual(events[1]?.detail, { role: 'viewer', group: 'interns' });
    });

    it('applies a lower role to a session that is already open', async () => {
      const workspace = await createWorkspace();
      await workspace.setRoles({ support: 'editor' });
      const name = await workspace.addMember('viewer');
      const session = await workspace.signInWithGroups(name, ['support']);
      const createKey = () => world.request(session, 'POST', '/keys', { name: 'k', scopes: ['call'] });
      assert.equal((await createKey()).status, 201);
      await workspace.signInWithGroups(name, []);
      assert.equal((await createKey()).status, 403);
    });

    it('makes no one a member, so that no workspace can drag in the people of a group', async () => {
      const workspace = await createWorkspace();
      await workspace.setRoles({ everyone: 'owner' });
      await workspace.signInWithGroups('outsider', ['everyone']);
      assert.equal(await workspace.findMember('outsider'), undefined);
    });

    it('never takes the role from the last owner of a workspace', async () => {
      const workspace = await createWorkspace();
      await workspace.setRoles({ interns: 'viewer', admins: 'owner' });
      await workspace.signInWithGroups(workspace.ownerName, ['interns']);
      assert.deepEqual(await getRole(workspace, workspace.ownerName), ['owner']);
      const second = await workspace.addMember('viewer', ['admins']);
      await workspace.signInWithGroups(workspace.ownerName, ['interns']);
      assert.deepEqual(await getRole(workspace, workspace.ownerName), ['viewer', 'interns']);
      await workspace.signInWithGroups(second, []);
      assert.deepEqual(await getRole(workspace, second), ['owner', 'admins'], 'they are the last owner now');
      await workspace.signInWithGroups(workspace.ownerName, []);
      assert.deepEqual(await getRole(workspace, workspace.ownerName), ['owner']);
      await workspace.signInWithGroups(second, []);
      assert.deepEqual(await getRole(workspace, second), ['viewer']);
    });

    it('leaves one owner if all owners lose the role in simultaneous sign-ins', async () => {
      const workspace = await createWorkspace();
      await workspace.setRoles({ interns: 'viewer' });
      const names = [workspace.ownerName, await workspace.addMember('owner'), await workspace.addMember('owner')];
      await Promise.all(names.map((name) => workspace.signInWithGroups(name, ['interns'])));
      const found = await Promise.all(names.map((name) => getRole(workspace, name)));
      assert.equal(found.filter(([role]) => role === 'owner').length, 1, JSON.stringify(found));
    });

    // SQLite runs one writing transaction at a time.
    if (engine === 'postgres')
      it('gives no role by a group that loses its role at the same time', async () => {
        const { db } = world.toolhost.running.app.runner;
        const workspace = await createWorkspace();
        await workspace.setRoles({ support: 'owner' });
        const name = await workspace.addMember('viewer');
        const signIns: Promise<string>[] = [];
        await db.transaction().execute(async (transaction) => {
          const { id } = workspace;
          await transaction.updateTable('workspaces').set({ id }).where('id', '=', id).execute();
          await replaceRoleGroups(transaction, id, []);
          signIns.push(workspace.signInWithGroups(name, ['support']));
          await eventually(async () => {
            const waiting = sql`select 1 from pg_stat_activity
              where wait_event_type = 'Lock' and query like '%workspaces%' and datname = current_database()`;
            assert.equal((await waiting.execute(db)).rows.length, 1);
          });
        });
        await Promise.all(signIns);
        assert.deepEqual(await getRole(workspace, name), ['viewer']);
      });

    it('changes roles that come from a group immediately when an owner changes the roles by group', async () => {
      const workspace = await createWorkspace();
      await workspace.setRoles({ support: 'editor' });
      const name = await workspace.addMember('viewer', ['support']);
      await workspace.setRoles({ support: 'owner' });
      assert.deepEqual(await getRole(workspace, name), ['owner', 'support']);
      await workspace.setRoles({ other: 'owner' });
      assert.deepEqual(await getRole(workspace, name), ['viewer']);
    });

    it('refuses a change of the roles by group that would leave no owner', async () => {
      const workspace = await createWorkspace();
      await workspace.setRoles({ admins: 'owner', interns: 'viewer' });
      const second = await workspace.addMember('viewer', ['admins']);
      const session = await workspace.signInWithGroups(second, ['admins']);
      await workspace.signInWithGroups(workspace.ownerName, ['interns']);
      const reply = await world.request(session, 'PUT', '/role-groups', {
        role_groups: [{ group: 'interns', role: 'viewer' }],
      });
      assert.equal(reply.status, 409, reply.text);
      assert.deepEqual(await getRole(workspace, second), ['owner', 'admins']);
    });

    it('refuses to change a role that comes from a group, which the next sign-in would restore', async () => {
      const workspace = await createWorkspace();
      await workspace.setRoles({ support: 'editor' });
      const name = await workspace.addMember('viewer', ['support']);
      const { id } = (await workspace.findMember(name)) ?? {};
      const reply = await workspace.asOwner('PATCH', `/members/${id}`, { role: 'viewer' });
      assert.equal(reply.status, 409);
      assert.match(reply.text, /group/);
      assert.equal((await workspace.asOwner('DELETE', `/members/${id}`)).status, 200);
    });

    it('lists the roles by group, and accepts each group once', async () => {
      const workspace = await createWorkspace();
      const role_groups = [
        { group: '/a.b/c', role: 'viewer' },
        { group: 'support', role: 'editor' },
      ];
      const set = (list: Json[]) => workspace.asOwner('PUT', '/role-groups', { role_groups: list });
      assert.equal((await set([...role_groups].reverse())).body.unchanged, undefined);
      assert.equal((await set(role_groups)).body.unchanged, true);
      assert.deepEqual((await workspace.asOwner('GET', '/role-groups')).body.role_groups, role_groups);
      const [first] = role_groups;
      const many = Array.from({ length: 51 }, (_, index) => ({ group: `g${index}`, role: 'viewer' }));
      for (const list of [[first, first], many, [{ group: '', role: 'viewer' }], [{ group: 'a', role: 'admin' }]])
        assert.equal((await set(list as Json[])).status, 400, JSON.stringify(list).slice(0, 80));
    });
  });
}

describe('roles by group with a claim that the operator named', async () => {
  const world = await startIdentityWorld({ env: { OIDC_GROUPS_CLAIM: namespacedGroupsClaim } });
  after(() => world.stop());

  it('ignore the default claim', async () => {
    const owner = await world.signIn('olga');
    const request = (method: string, path: string, body?: Json) => world.request(owner, method, path, body);
    await request('PUT', '/role-groups', { role_groups: [{ group: 'support', role: 'editor' }] });
    for (const name of ['anna', 'nora'])
      await request('POST', '/invitations', { email: `${name}@people.example`, role: 'viewer' });
    world.provider.setClaims('anna', { [namespacedGroupsClaim]: ['support'] });
    world.provider.setClaims('nora', { groups: ['support'] });
    await world.signIn('anna');
    await world.signIn('nora');
    const { members } = (await request('GET', '/members')).body as { members: Member[] };
    const roles = members.map(({ name, role }) => [name, role]);
    assert.deepEqual(Object.fromEntries(roles), { olga: 'owner', anna: 'editor', nora: 'viewer' });
  });
});

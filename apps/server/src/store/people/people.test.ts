import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { bothEngines } from '../../../../../test/support/store/stores.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import type { Db } from '../db.ts';
import { findWorkspace, insertWorkspace, renameWorkspace } from '../workspaces.ts';
import * as members from './members.ts';
import * as sessions from './sessions.ts';
import { findJoinedWorkspaces, findUser, saveMember, saveUser } from './users.ts';

const firstPage = { limit: 10, after: undefined };

for (const engine of bothEngines)
  describe(`the store of people on ${engine}`, () => {
    const stores = useStores(engine);
    let db: Db;
    beforeEach(async () => {
      ({ db } = await stores.open());
      for (const id of ['ours', 'theirs']) await insertWorkspace(db, { id, name: id, at: 1 });
      for (const id of ['ada', 'bob'])
        await saveUser(db, { id, issuer: 'i', subject: id, email: `${id}@b.example`, name: null, at: 1 });
    });
    const joinWorkspace = (userId: string, workspaceId = 'ours', at = 1) =>
      saveMember(db, { workspaceId, userId, role: 'editor', at });
    const session = { hash: 'h', userId: 'ada', workspaceId: 'ours', at: 1, expiresAt: 100 };

    it('finds a person by id', async () => {
      assert.deepEqual(
        { ...(await findUser(db, 'ada')) },
        { id: 'ada', issuer: 'i', subject: 'ada', email: 'ada@b.example', name: null },
      );
      assert.equal(await findUser(db, 'eve'), undefined);
    });

    it('renames one workspace without changing others', async () => {
      await renameWorkspace(db, 'ours', 'Ours');
      assert.equal((await findWorkspace(db, 'ours'))?.name, 'Ours');
      assert.equal((await findWorkspace(db, 'theirs'))?.name, 'theirs');
    });

    it('lists the members of one workspace, oldest first', async () => {
      await joinWorkspace('bob', 'ours', 1);
      await joinWorkspace('ada', 'ours', 2);
      await joinWorkspace('ada', 'theirs', 3);
      const { rows } = await members.listMembers(db, 'ours', firstPage);
      const [first, second, ...more] = rows;
      assert.deepEqual(
        { ...first },
        { userId: 'bob', email: 'bob@b.example', name: null, role: 'editor', roleGroup: null, createdAt: 1 },
      );
      assert.equal(second?.userId, 'ada');
      assert.deepEqual(more, []);
    });

    it('removes a member and the member’s sessions from one workspace, and keeps those in another', async () => {
      await joinWorkspace('ada');
      await joinWorkspace('ada', 'theirs');
      await sessions.insertSession(db, session);
      await sessions.insertSession(db, { ...session, hash: 'other', workspaceId: 'theirs' });
      assert.equal(await members.deleteMember(db, 'ours', 'bob'), false);
      assert.equal(await members.deleteMember(db, 'ours', 'ada'), true);
      assert.equal(await members.deleteMember(db, 'ours', 'ada'), false);
      assert.equal(await sessions.findSession(db, 'h', 50), undefined);
      assert.ok(await sessions.findSession(db, 'other', 50));
      assert.deepEqual(await findJoinedWorkspaces(db, 'ada', 10), [
        { id: 'theirs', name: 'theirs', role: 'editor', isOwn: false, isChosen: false },
      ]);
    });

    it('stores one invitation per address and workspace, and accepts all invitations of an address once', async () => {
      const invitation = {
        workspaceId: 'ours',
        email: 'eve@b.example',
        role: 'viewer' as const,
        invitedBy: 'ada',
        createdAt: 5,
      };
      for (const workspaceId of ['ours', 'theirs'])
        await saveMember(db, { workspaceId, userId: 'ada', role: 'owner', at: 1 });
      await members.saveInvitation(db, invitation);
      await members.saveInvitation(db, { ...invitation, role: 'editor', createdAt: 6 });
      await members.saveInvitation(db, { ...invitation, workspaceId: 'theirs' });
      await members.saveInvitation(db, { ...invitation, email: 'zoe@b.example', createdAt: 7 });
      const { rows: invitations } = await members.listInvitations(db, 'ours', firstPage);
      assert.deepEqual(
        invitations.map(({ email, role }) => [email, role]),
        [
          ['eve@b.example', 'editor'],
          ['zoe@b.example', 'viewer'],
        ],
      );
      assert.equal(await members.deleteInvitation(db, 'theirs', 'zoe@b.example'), false);
      assert.equal(await members.deleteInvitation(db, 'ours', 'zoe@b.example'), true);
      const consumed = await Promise.all([
        members.consumeInvitations(db, 'eve@b.example', 0),
        members.consumeInvitations(db, 'eve@b.example', 0),
      ]);
      assert.deepEqual(
        consumed.flat().toSorted((a, b) => a.workspaceId.localeCompare(b.workspaceId)),
        [
          { workspaceId: 'ours', role: 'editor' },
          { workspaceId: 'theirs', role: 'viewer' },
        ],
      );
      assert.deepEqual((await members.listInvitations(db, 'ours', firstPage)).rows, []);
    });

    it('keeps a session until it expires or is deleted, and moves it to another workspace', async () => {
      await sessions.insertSession(db, session);
      assert.deepEqual(await sessions.findSession(db, 'h', 99), { userId: 'ada', workspaceId: 'ours', expiresAt: 100 });
      assert.equal(await sessions.findSession(db, 'h', 100), undefined);
      assert.equal(await sessions.findSession(db, 'g', 50), undefined);
      await sessions.moveSession(db, 'h', 'theirs');
      assert.equal((await sessions.findSession(db, 'h', 50))?.workspaceId, 'theirs');
      await sessions.insertSession(db, { ...session, hash: 'later', expiresAt: 200 });
      await sessions.pruneSessions(db, 150);
      assert.equal(await sessions.findSession(db, 'h', 0), undefined);
      await sessions.deleteSession(db, 'later');
      assert.equal(await sessions.findSession(db, 'later', 0), undefined);
    });
  });

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getPersonTenantId } from '@toolhost/credentials/ids';
import { applyGroupRoles } from '../../../apps/server/src/manage/people.ts';
import { saveMember } from '../../../apps/server/src/store/people/users.ts';
import { checkPage } from '../../support/browser/check-page.ts';
import {
  alert,
  assertFieldError,
  button,
  chooseRowAction,
  createPersonSession,
  field,
  type Person,
  selectOption,
} from '../../support/browser/dashboard.ts';
import { personRequest } from '../../support/browser/person-request.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import { openPage, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';

describe('a person in the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  it('sees an error after losing a role while a page is open', async (t) => {
    const person: Person = { name: 'Demoted', role: 'editor' };
    const page = await openPage(t, dashboard, '/keys', { person });
    await button(page, 'New API key').first().click();
    await field(page.getByRole('dialog'), 'Name').fill('Too late');
    const { members } = (await page.evaluate(`fetch('/api/v1/members').then((a) => a.json())`)) as {
      members: { id: string; name: string }[];
    };
    const demoted = members.find(({ name }) => name === 'Demoted')?.id ?? assert.fail();
    const { db } = dashboard.toolhost.running.app.runner;
    await db.updateTable('members').set({ role: 'viewer' }).where('user_id', '=', demoted).execute();
    await button(page.getByRole('dialog'), 'Create key').click();
    await alert(page, 'needs the scope manage:write').waitFor();
    assert.equal(await field(page.getByRole('dialog'), 'Name').inputValue(), 'Too late');
  });

  it('is invited by an owner, joins at sign-in, and switches workspaces', async (t) => {
    const { db } = dashboard.toolhost.running.app.runner;
    const page = await openPage(t, dashboard, '/settings', { person: { name: 'Olga', workspace: 'wsp_garden' } });
    const context = page.context();
    await field(page, 'Workspace name').fill('The garden');
    await button(page, 'Rename').click();
    await waitForToast(page, 'Renamed the workspace');
    // Email address of the only person in local mode.
    await field(page, 'Invite by email').fill('you@localhost.example');
    await button(page, 'Invite').click();
    await page.getByRole('table', { name: 'Members' }).getByText('you@localhost.example').waitFor();
    await context.clearCookies();
    await page.goto('/servers');
    await button(page, 'Sign in').click();
    await page.getByRole('button', { name: /^Workspace/ }).click();
    const garden = page.getByRole('menuitem', { name: /The garden/ });
    await garden.getByText('editor').waitFor();
    const rows = await db.selectFrom('members').select('role').where('workspace_id', '=', 'wsp_garden').execute();
    assert.deepEqual(rows.map(({ role }) => role).toSorted(), ['editor', 'owner']);
    await garden.click();
    await page.getByRole('button', { name: /Workspace.*The garden/ }).waitFor();
    await page.getByRole('button', { name: /editor/ }).waitFor();
    const { body } = await dashboard.toolhost.rest('GET', '/audit');
    assert.doesNotMatch(JSON.stringify(body.events), /garden/, 'the audit contains events of another workspace');
  });

  it('sees an invitation to a workspace, opens it, and leaves it', async (t) => {
    const { toolhost } = dashboard;
    const { db } = toolhost.running.app.runner;
    const invitingWorkspace = 'wsp_inviting';
    const id = `usr_${'i'.repeat(22)}`;
    const workspace = `${getPersonTenantId(id)}_of_ines`;
    await createPersonSession(toolhost, { name: 'Olga', workspace: invitingWorkspace });
    const page = await openPage(t, dashboard, '/servers', { person: { name: 'Ines', workspace, id } });
    await page.getByRole('heading', { name: 'No servers yet' }).waitFor();
    const { user } = (await page.evaluate(`fetch('/api/v1/session').then((a) => a.json())`)) as {
      user: { id: string };
    };
    const notice = page.getByRole('alert').filter({ hasText: 'You were invited' });
    assert.equal(await notice.count(), 0);
    await saveMember(db, { workspaceId: invitingWorkspace, userId: user.id, role: 'viewer', at: Date.now() });
    await page.reload();
    await notice.getByText('Workspace wsp_inviting, as viewer').waitFor();
    await checkPage(page);
    await button(page, 'Open Workspace wsp_inviting').click();
    await page.getByRole('button', { name: /^Workspace.*wsp_inviting/ }).waitFor();
    await page.getByText('Editors and owners can create servers.').waitFor();
    await notice.waitFor({ state: 'detached' });
    await page.goto('/settings');
    await chooseRowAction(page, 'you', 'Leave');
    await button(page.getByRole('dialog'), 'Leave workspace').click();
    await page.getByRole('button', { name: /^Workspace.*_of_ines/ }).click();
    await page.getByRole('menuitem', { name: /_of_ines.*your own/ }).waitFor();
    assert.equal(await page.getByRole('menuitem', { name: /wsp_inviting/ }).count(), 0);
    await page.goto('/settings');
    await page.getByRole('table', { name: 'Members' }).waitFor();
    assert.equal(await button(page, /^Actions/).count(), 0, 'the only owner can leave');
  });

  it('gives members a role by their group, and sees in the list of members where the role comes from', async (t) => {
    const { toolhost } = dashboard;
    const { db } = toolhost.running.app.runner;
    const workspace = 'wsp_groups';
    await createPersonSession(toolhost, { name: 'Grete', role: 'viewer', workspace });
    const page = await openPage(t, dashboard, '/settings', { person: { name: 'Olga', workspace } });
    await field(page, 'Group').fill('support');
    await selectOption(page, 'Role of the group', 'Editor');
    await button(page, 'Add').click();
    await waitForToast(page, 'Members in support get the role editor when they next sign in');
    const groupTable = page.getByRole('table', { name: 'Roles by group' });
    await groupTable.getByText('Editor').waitFor();
    await field(page, 'Group').fill('support');
    await button(page, 'Add').click();
    await assertFieldError(field(page, 'Group'), /list it once/);
    const { id } = await db.selectFrom('users').select('id').where('name', '=', 'Grete').executeTakeFirstOrThrow();
    const { random, now } = toolhost.running.app.runner.deps;
    await applyGroupRoles({ userId: id, groups: ['support'] }, { db, random, now });
    await page.reload();
    const members = page.getByRole('table', { name: 'Members', exact: true });
    await members.getByText('by group support').waitFor();
    const choices = await members.getByRole('combobox', { name: 'Role of Grete' }).count();
    assert.equal(choices, 0, 'a role that comes from a group can be changed');
    await checkPage(page);
    await chooseRowAction(groupTable, 'support', 'Remove support');
    await button(page.getByRole('dialog'), 'Remove').click();
    await page.getByText('No group has a role.').waitFor();
    const choice = members.getByRole('combobox', { name: 'Role of Grete' });
    await eventually(async () => assert.equal(await choice.inputValue(), 'Viewer'));
  });

  it('[find B8] is removed with or without their keys and webhooks, which the pages then list', async (t) => {
    const { toolhost } = dashboard;
    const workspace = 'wsp_leaving';
    const session = await createPersonSession(toolhost, { name: 'Ed', role: 'editor', workspace });
    for (const name of ['deploy', 'nightly']) {
      await personRequest(toolhost, session, 'POST', '/keys', { name, scopes: ['manage:read'] });
    }
    await personRequest(toolhost, session, 'PUT', '/models/eds', { kind: 'openai', model: 'm' });
    const other = await createPersonSession(toolhost, { name: 'Ada', role: 'editor', workspace });
    await personRequest(toolhost, other, 'POST', '/keys', { name: 'of Ada', scopes: ['call'] });
    const webhook = { url: 'https://hooks.example/ada', events: ['quota.near'] };
    await personRequest(toolhost, other, 'POST', '/webhooks', webhook);
    const page = await openPage(t, dashboard, '/settings', { person: { name: 'Olga', workspace } });
    await selectOption(page, 'Role of Ada', 'Viewer');
    await waitForToast(page, 'The role is now viewer, but one API key that they created still works');
    await chooseRowAction(page, 'Ada', 'Remove Ada');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('API keys: of Ada').waitFor();
    await dialog.getByText('Webhooks: https://hooks.example').waitFor();
    await button(dialog, 'Remove member').click();
    await waitForToast(page, /^Removed the member$/);
    await chooseRowAction(page, 'Ed', 'Remove Ed');
    await dialog.getByText(/API keys: (deploy, nightly|nightly, deploy)/).waitFor();
    await dialog.getByText('Models: eds').waitFor();
    await checkPage(page);
    await page.getByRole('checkbox', { name: 'Revoke keys, delete models, withdraw invitations' }).check();
    await button(dialog, 'Remove member').click();
    await waitForToast(page, 'Removed the member, revoked 2 API keys and deleted one model');
    await page.goto('/keys');
    await page.getByText('Created by Ada, who has left the workspace.').waitFor();
    const notes = await page.getByText('who has left the workspace').count();
    assert.equal(notes, 1, 'the note also appears for a revoked key');

    await page.goto('/settings');
    const formerMembers = page.getByRole('table', { name: 'Former members' });
    await formerMembers.getByText('one API key, one webhook').waitFor();
    const rows = await formerMembers.getByRole('row').count();
    assert.equal(rows, 2, 'a removed member without remaining access is listed');
    await chooseRowAction(formerMembers, 'Ada', 'End access for Ada');
    await checkPage(page);
    await button(dialog, 'End access').click();
    await waitForToast(page, 'Revoked one API key');
    await chooseRowAction(formerMembers, 'Ada', 'Webhooks of Ada');
    await page.getByText("Its creator's access has ended. Another member can confirm it.").waitFor();
    await checkPage(page);
    await chooseRowAction(page, 'https://hooks.example', 'Confirm https://hooks.example');
    await waitForToast(page, 'Resumed the webhook to https://hooks.example');
    await page.goto('/settings');
    await button(page, 'Leave workspace')
      .or(page.getByRole('heading', { name: 'Quotas' }))
      .first()
      .waitFor();
    await formerMembers.waitFor({ state: 'detached' });
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  assertFieldError,
  button,
  type Dashboard,
  field,
  selectOption,
  startDashboard,
} from '../../support/browser/dashboard.ts';

describe('invalid input in the small forms of the dashboard', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  const create = (slug: string) => dashboard.toolhost.createServer(dashboard.config(slug));

  it('is reported at the fields of an API key', async () => {
    await dashboard.withPage('/keys', async (page) => {
      await button(page, 'New API key').first().click();
      const dialog = page.getByRole('dialog');
      const call = dialog.getByRole('checkbox', { name: 'call', exact: true });
      await call.uncheck();
      await button(dialog, 'Create key').click();
      await assertFieldError(field(dialog, 'Name'), /Enter a name/);
      await dialog.getByText('Select at least one scope.').waitFor();
      await call.check();
      await field(dialog, 'Name').fill('x'.repeat(300));
      await button(dialog, 'Create key').click();
      await assertFieldError(field(dialog, 'Name'), /at most 100/);
      assert.equal((await field(dialog, 'Name').inputValue()).length, 300);
    });
  });

  it('is reported at the fields of the workspace settings', async () => {
    await dashboard.withPage(
      '/settings',
      async (page) => {
        const address = field(page, 'Invite by email');
        await address.fill('nobody');
        await button(page, 'Invite').click();
        await assertFieldError(address, /address/i);
        assert.equal(await address.inputValue(), 'nobody');
        await address.fill('guest@mail.example');
        await button(page, 'Invite').click();
        await page.getByRole('table', { name: 'Members' }).getByText('guest@mail.example').waitFor();
        await field(page, 'Workspace name').fill('y'.repeat(400));
        await button(page, 'Rename').click();
        await assertFieldError(field(page, 'Workspace name'), /at most 100/);
        assert.equal((await field(page, 'Workspace name').inputValue()).length, 400);
        await selectOption(page, 'Role of Solo', 'Viewer');
        await assertFieldError(page.getByRole('combobox', { name: 'Role of Solo' }), /only owner/);
        assert.equal(await page.getByRole('combobox', { name: 'Role of Solo' }).inputValue(), 'Owner');
      },
      { person: { name: 'Solo', workspace: 'wsp_solo' } },
    );
  });

  it('is reported at the confirmation field, and deletes no server', async () => {
    await create('not-deleted');
    await dashboard.withPage('/servers/not-deleted/options', async (page) => {
      await button(page, 'Delete server…').click();
      const dialog = page.getByRole('dialog');
      const confirmation = field(dialog, 'Type not-deleted to confirm');
      await page.waitForFunction('document.activeElement.matches("[role=dialog] input")');
      await confirmation.fill('not-dex');
      await assertFieldError(confirmation, /Enter not-deleted/);
      await confirmation.press('Enter');
      assert.equal(await button(dialog, 'Delete server').isDisabled(), true);
      assert.equal(await confirmation.inputValue(), 'not-dex');
      assert.equal((await dashboard.toolhost.rest('GET', '/servers/not-deleted')).status, 200);
      await confirmation.fill('not-deleted');
      await button(dialog, 'Delete server').click();
      await page.waitForURL(/\/servers$/);
      assert.equal((await dashboard.toolhost.rest('GET', '/servers/not-deleted')).status, 404);
    });
  });
});

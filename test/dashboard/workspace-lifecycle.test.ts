import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkPage } from '../support/browser/check-page.ts';
import { button, type Dashboard, field, startDashboard } from '../support/browser/dashboard.ts';

describe('a workspace in the dashboard', () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  it('is created in three clicks, exported, and deleted by typing its name', async () => {
    const person = { name: 'Ada', workspace: 'wsp_home' };
    const use = async (page: Parameters<Parameters<Dashboard['withPage']>[1]>[0]) => {
      await button(page, /^Workspace/).click();
      await page.getByRole('menuitem', { name: 'New workspace' }).click();
      await field(page, 'Name').fill('Trial');
      await button(page, 'Create workspace').click();
      await button(page, 'Workspace Trial').waitFor();
      await page.goto('/settings');
      const download = page.waitForEvent('download');
      await page.getByRole('link', { name: 'Export JSON' }).click();
      assert.equal((await download).suggestedFilename(), 'workspace.json');
      await button(page, 'Delete workspace…').click();
      await checkPage(page);
      assert.equal(await button(page, 'Delete workspace').isDisabled(), true);
      await field(page, 'Type Trial to confirm').fill('Trial');
      await button(page, 'Delete workspace').click();
      await button(page, 'Workspace Workspace wsp_home').waitFor();
    };
    await dashboard.withPage('/servers', use, { person });
  });
});

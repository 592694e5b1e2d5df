import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkPage } from '../../support/browser/check-page.ts';
import { alert, button, type Dashboard, field, startDashboard } from '../../support/browser/dashboard.ts';
import { createLargeShop } from '../../support/import/large-shop.ts';

describe('an import in the dashboard', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  it('[imp 4] reports an invalid description and keeps the input', async () => {
    await dashboard.withPage('/servers/new/import', async (page) => {
      await field(page, 'Or paste text').fill('{"openapi": "3.1.0"');
      await button(page, 'Read description').click();
      await alert(page, 'Description not read').waitFor();
      assert.equal(await field(page, 'Or paste text').inputValue(), '{"openapi": "3.1.0"');
    });
  });

  it('[imp 4] works by keyboard in a narrow window and is unavailable to viewers', async () => {
    const narrow = { options: { viewport: { width: 400, height: 800 } } };
    const { upstream } = dashboard;
    await dashboard.withPage(
      '/servers/new/import',
      async (page) => {
        await field(page, 'Or paste text').fill(createLargeShop(upstream.url));
        await button(page, 'Read description').focus();
        await page.keyboard.press('Enter');
        const group = page.getByRole('button', { name: /operations in Tag 3$/ });
        await group.focus();
        await page.keyboard.press('Enter');
        const box = page.getByRole('checkbox', { name: /get_thing31\b/ });
        const before = await box.isChecked();
        await box.focus();
        await page.keyboard.press('Space');
        assert.equal(await box.isChecked(), !before);
        await checkPage(page);
      },
      narrow,
    );
    await dashboard.withPage(
      '/servers/new/import',
      async (page) => {
        await page.getByText('Only editors and owners can create servers.').waitFor();
      },
      { person: { name: 'Vera', role: 'viewer' } },
    );
  });
});

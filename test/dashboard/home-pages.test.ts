import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { checkPage } from '../support/browser/check-page.ts';
import {
  button,
  chooseRowAction,
  chooseServerAction,
  closeContext,
  createSignedInContext,
  field,
  tab,
} from '../support/browser/dashboard.ts';
import { measureLayoutShift } from '../support/browser/layout-shift.ts';
import { openPage, save, useDashboard } from '../support/browser/use-dashboard.ts';
import { eventually } from '../support/eventually.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('the home page of a workspace or server', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, upstream, config } = dashboard;
    upstream.on('GET /items', () => ({ status: 503, body: { error: 'down' } }));
    await toolhost.createServer(config('failing'));
    await toolhost.createServer(
      config('unset', {
        authentication: { type: 'Bearer', token: '{{NOT_SET}}' },
        variables: { unused: { value: 'x' } },
      }),
    );
    const key = await toolhost.createKey();
    await toolhost.callTool('failing', key, 'read', { count: 1 });
    await toolhost.callTool('failing', key, 'read', { count: 2 });
  });

  const dialog = (page: Page) => page.getByRole('dialog');

  it('shows why a call failed after one click', async (t) => {
    const page = await openPage(t, dashboard, '/');
    await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor();
    const failed = page.getByRole('table', { name: 'Failures' }).getByRole('row').filter({ hasText: 'failing' });
    await failed.getByRole('cell', { name: '2', exact: true }).waitFor();
    await failed.getByText('API returned 503').waitFor();
    await checkPage(page);
    await button(failed, /^read/).click();
    await dialog(page).getByText('Reason').waitFor();
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
    await page.getByRole('table', { name: 'Busiest servers' }).getByRole('link', { name: 'failing' }).click();
    await page.getByRole('table', { name: 'Most-called tools' }).getByRole('link', { name: 'read' }).waitFor();
    await checkPage(page);
  });

  it('lists a missing secret among the failures until it is set', async (t) => {
    const { toolhost, config } = dashboard;
    await toolhost.createServer(config('late', { authentication: { type: 'Bearer', token: '{{SET_LATER}}' } }));
    await toolhost.callTool('late', await toolhost.createKey(), 'read', { count: 1 });
    const page = await openPage(t, dashboard, '/');
    const failures = page.getByRole('table', { name: 'Failures' });
    const missing = failures.getByRole('row').filter({ hasText: 'The secret SET_LATER has no value' });
    await missing.waitFor();
    await toolhost.rest('PUT', '/servers/late/secrets/SET_LATER', { body: { value: 'the-secret' } });
    await page.reload();
    await failures.waitFor();
    assert.equal(await missing.count(), 0);
  });

  for (const [path, table] of [
    ['/', 'Busiest servers'],
    ['/servers/failing', 'Most-called tools'],
  ] as const)
    for (const width of [1440, 400])
      it(`shifts ${path} by at most 0.02 while it loads, ${width} px`, async () => {
        const { browser, toolhost } = dashboard;
        const options = { viewport: { width, height: 900 } };
        const context = await createSignedInContext(browser, toolhost, { name: 'Anna' }, options);
        try {
          const page = await context.newPage();
          const { total, shifts } = await measureLayoutShift(page, path);
          await page.getByRole('table', { name: table }).waitFor();
          assert.ok(total <= 0.02, JSON.stringify(shifts, undefined, 1));
        } finally {
          await closeContext(context);
        }
      });

  it('links each warning to the page that resolves it', async (t) => {
    const page = await openPage(t, dashboard, '/');
    await page.getByRole('listitem').filter({ hasText: 'NOT_SET has no value' }).getByRole('link').click();
    assert.equal(await field(page, 'Secret name').inputValue(), 'NOT_SET');
    await page.keyboard.press('Escape');
    await tab(page, 'Overview').click();
    const clickAction = (label: string) =>
      page.getByRole('listitem').filter({ hasText: label }).getByRole('link').click();
    await clickAction('variables.unused');
    await eventually(async () => {
      assert.match(page.url(), /\/servers\/unset\/settings/);
      assert.equal(await page.locator(':focus').getAttribute('id'), 'field-variables');
    });
    await tab(page, 'Overview').click();
    await clickAction('NOT_SET');
    assert.equal(await field(page, 'Secret name').inputValue(), 'NOT_SET');
  });

  it('keeps unsaved input in one editor tab while another tab is open', async (t) => {
    const page = await openPage(t, dashboard, '/servers/failing/settings');
    await field(page, 'Description').fill('Typed before');
    await tab(page, 'Tools').click();
    await button(page, 'read').click();
    await field(page, 'Tool description').fill('Typed after');
    await save(page);
    await button(page, 'Close').click();
    await tab(page, 'Settings').click();
    assert.equal(await field(page, 'Description').inputValue(), 'Typed before');
    const { body } = await dashboard.toolhost.rest('GET', '/servers/failing');
    assert.match(JSON.stringify(body.config), /Typed before.*Typed after/);
  });

  it('[journey] copies a server from staging to production and updates the copy', async (t) => {
    const { toolhost, config } = dashboard;
    await toolhost.createServer(config('staging', { authentication: { type: 'Bearer', token: 'of-staging-0123' } }));
    const copy = async () =>
      (await toolhost.rest('GET', '/servers/production')).body as { config: Json; secrets: Json };
    const page = await openPage(t, dashboard, '/servers/staging');
    await chooseServerAction(page, 'Duplicate to…');
    await page.getByLabel('Copy slug').and(page.locator(':focus')).waitFor();
    await page.keyboard.type('production');
    const base = field(dialog(page), 'Copy base URL');
    await base.fill('https://production.example.com');
    const token = dialog(page).getByLabel('authentication.token');
    assert.equal(await button(dialog(page), 'Create copy').isDisabled(), true);
    await token.fill('of-production-0123');
    await dialog(page).getByText('read: address changed').waitFor();
    await checkPage(page);
    await button(dialog(page), 'Create copy').click();
    await page.waitForURL('**/servers/production');
    assert.match(JSON.stringify((await copy()).config), /https:\/\/production\.example\.com\/items/);

    await toolhost.rest('PATCH', '/servers/staging/tools/read', { body: { timeout_ms: 12_345 } });
    await page.goto('/servers/staging');
    await chooseServerAction(page, 'Duplicate to…');
    await dialog(page).getByText('read: timeout changed').waitFor();
    await button(dialog(page), 'Update production').click();
    await page.waitForURL('**/servers/production');
    assert.match(JSON.stringify((await copy()).config), /12345/);
  });

  it('[journey] compares two non-adjacent versions and restores the older one', async (t) => {
    const { toolhost, config } = dashboard;
    await toolhost.createServer(config('versioned'));
    for (const timeout_ms of [1_000, 2_000, 3_000])
      await toolhost.rest('PATCH', '/servers/versioned/tools/read', { body: { timeout_ms } });
    await toolhost.rest('PATCH', '/servers/versioned', { body: { description: 'Other.' } });
    const page = await openPage(t, dashboard, '/servers/versioned/settings/versions');
    await chooseRowAction(page, 'Version 2', 'Compare version 2');
    const changes = page.getByRole('region', { name: 'Changes from version 2 to version 5' });
    await changes.getByText('read: timeout changed').waitFor();
    await changes.getByText('Description changed').waitFor();
    await checkPage(page);
    await chooseRowAction(page, 'Version 2', 'Note version 2');
    await field(dialog(page), 'Message').fill('Before the slow API');
    await button(dialog(page), 'Save message').click();
    await page.getByRole('cell', { name: 'Before the slow API' }).waitFor();
    await chooseRowAction(page, 'Version 2', 'Restore version 2');
    await button(dialog(page), 'Restore').click();
    await page.getByRole('cell', { name: 'Restores version 2' }).waitFor();
  });
});

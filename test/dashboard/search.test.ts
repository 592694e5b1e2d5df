import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { checkPage } from '../support/browser/check-page.ts';
import { button, chooseRowAction, chooseServerAction, selectOption } from '../support/browser/dashboard.ts';
import { waitForToast } from '../support/browser/toasts.ts';
import { openPage, useDashboard } from '../support/browser/use-dashboard.ts';
import { eventually } from '../support/eventually.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('search in the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, config } = dashboard;
    const [tool] = config('shop').tools as Json[];
    const tools = [tool, { ...tool, name: 'refund_order' }];
    const views = { support: { tools: ['refund_order'] } };
    await toolhost.createServer(config('shop', { tools, views }));
    await toolhost.createServer(config('mail'));
  });

  it('opens a tool or a page from the Ctrl+K palette with the keyboard', async (t) => {
    const page = await openPage(t, dashboard, '/servers');
    await page.getByRole('table', { name: 'Servers' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog', { name: 'Find anything' }).waitFor();
    await page.keyboard.type('refund');
    await button(page, /^refund_order/).waitFor();
    await checkPage(page);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/servers/shop/tools?tool=refund_order');
    // The tool opens in a drawer that takes the focus.
    await page.getByRole('dialog', { name: 'refund_order' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('textbox', { name: 'Find anything' }).fill('rest api');
    await button(page, 'REST API').click();
    await page.getByRole('heading', { level: 1, name: 'REST API' }).waitFor();
    await button(page, /^setServerTags parameters/).click();
    await page.getByRole('table', { name: 'setServerTags parameters' }).getByText('tags *').waitFor();
    await checkPage(page);
  });

  it('keeps what is typed right after the palette was opened', async (t) => {
    const page = await openPage(t, dashboard, '/servers');
    await page.getByRole('table', { name: 'Servers' }).waitFor();
    const search = page.getByRole('textbox', { name: 'Find anything' });
    // The first time, the palette has to be loaded.
    for (const words of ['refund', 'audit']) {
      await page.keyboard.press('Control+k');
      await page.keyboard.type(words);
      await search.waitFor();
      await eventually(async () => assert.equal(await search.inputValue(), words));
      await page.keyboard.press('Escape');
      await search.waitFor({ state: 'detached' });
    }
  });

  it('filters servers by a tag and sorts them by name', async (t) => {
    const page = await openPage(t, dashboard, '/servers/mail');
    await chooseServerAction(page, 'Edit tags');
    await page.getByRole('combobox', { name: 'Tags' }).fill('Office');
    await page.keyboard.press('Enter');
    await button(page, 'Save tags').click();
    await waitForToast(page, 'Saved the tags of The mail');
    await page.getByRole('link', { name: 'Office' }).click();
    await page.getByRole('link', { name: 'The mail' }).waitFor();
    await page.getByRole('link', { name: 'The shop' }).waitFor({ state: 'hidden' });
    assert.match(page.url(), /query=Office/);
    await page.getByRole('searchbox').fill('');
    await selectOption(page, 'Sort', 'Name');
    await page.getByRole('link', { name: 'The shop' }).waitFor();
    await eventually(async () => {
      const names = await page.getByRole('table', { name: 'Servers' }).getByRole('link').allTextContents();
      assert.ok(names.indexOf('The mail') < names.indexOf('The shop'), names.join());
    });
    await checkPage(page);
  });

  it('filters the audit by the changes of a key and by day', async (t) => {
    const { toolhost } = dashboard;
    const { body } = await toolhost.rest('POST', '/keys', { body: { name: 'Agent', scopes: ['manage'] } });
    await toolhost.rest('PATCH', '/servers/mail', { key: String(body.key), body: { description: 'By the agent' } });
    const page = await openPage(t, dashboard, '/keys');
    await chooseRowAction(page, 'Agent', 'Changes by Agent');
    const changes = page.getByRole('table', { name: 'Changes' });
    await changes.getByText('Changed a server').waitFor();
    assert.equal(await changes.getByRole('row').count(), 2);
    await checkPage(page);
    await page.getByLabel('To', { exact: true }).fill('2020-01-01');
    await page.getByText('No matching changes').waitFor();
    await button(page, 'Clear').click();
    await changes.getByText('Created an API key').first().waitFor();
  });

  it('[find D4] offers the views for a new key in a list', async (t) => {
    const page = await openPage(t, dashboard, '/keys');
    await button(page, 'New API key').first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name' }).fill('Finance');
    await selectOption(page, 'Views', 'shop/support');
    await page.keyboard.press('Escape');
    await button(dialog, 'Create key').click();
    await page.getByText('Copy it now').waitFor();
    const keys = (await dashboard.toolhost.rest('GET', '/keys?query=finance')).body.keys as Json[];
    assert.deepEqual(keys[0]?.views, ['shop/support']);
  });
});

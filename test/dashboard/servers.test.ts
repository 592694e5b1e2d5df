import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkPage } from '../support/browser/check-page.ts';
import {
  assertFieldError,
  button,
  chooseRowAction,
  field,
  getJsonEditor,
  selectOption,
  showView,
  tab,
} from '../support/browser/dashboard.ts';
import { waitForToast } from '../support/browser/toasts.ts';
import { openPage, openServer, save, useDashboard } from '../support/browser/use-dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { createLargeShop } from '../support/import/large-shop.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const token = 'token-of-the-api-0123456789';

describe('the servers section of the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  it('edits the same configuration in the form and as JSON, and remembers which of the two was used last', async (t) => {
    const page = await openServer(t, dashboard, 'settings', 'two-views');
    const { json, text } = getJsonEditor(page);
    await field(page, 'Description').fill('From the form');
    await showView(page, 'JSON');
    assert.match(await text(), /"description": "From the form"/);
    await json.fill((await text()).replace('From the form', 'From the JSON'));
    await showView(page, 'Form');
    assert.equal(await field(page, 'Description').inputValue(), 'From the JSON');
    await save(page, 2);
    await field(page, 'Description').fill('Another');
    await button(page, 'Discard').click();
    assert.equal(await field(page, 'Description').inputValue(), 'From the JSON');
    await showView(page, 'JSON');
    await page.reload();
    assert.match(await text(), /From the JSON/);
  });

  it('redirects the former paths of a server to the pages that replaced them, with their parameters', async (t) => {
    const page = await openServer(t, dashboard, 'secrets?name=KEY', 'moved-pages');
    for (const [former, current] of [
      ['secrets?name=KEY', 'settings/secrets?name=KEY'],
      ['logins', 'settings/logins'],
      ['import', 'settings'],
      ['versions?from=1&to=1', 'settings/versions?from=1&to=1'],
      ['options', 'settings/limits'],
      ['playground?view=reads', 'try/playground?view=reads'],
    ] as const) {
      await page.goto(`/servers/moved-pages/${former}`);
      await page.waitForURL(`${dashboard.toolhost.url}/servers/moved-pages/${current}`);
      await page.getByRole('heading', { level: 1, name: 'The moved-pages' }).waitFor();
    }
  });

  it('reaches every section of the settings from a list, and in a narrow window from a select', async (t) => {
    const page = await openServer(t, dashboard, 'settings', 'sections');
    const sections = ['Configuration', 'Secrets', 'Versions', 'Limits', 'Capture', 'Delete'];
    const menu = page.getByRole('navigation', { name: 'Settings' });
    await menu.getByRole('link', { name: 'Delete' }).waitFor();
    assert.deepEqual(await menu.getByRole('link').allTextContents(), sections);
    await menu.getByRole('link', { name: 'Capture' }).click();
    await button(page, 'Start capture').waitFor();
    await page.setViewportSize({ width: 400, height: 900 });
    assert.equal(await menu.isVisible(), false);
    for (const name of ['Overview', 'Tools', 'Try it', 'Calls', 'Connect', 'Settings']) {
      const { x, width } = (await tab(page, name).boundingBox()) ?? assert.fail(`${name} is not visible`);
      assert.ok(x >= 0 && x + width <= 400, `${name} ends at ${x + width} px`);
    }
    const select = page.getByRole('combobox', { name: 'Settings section' });
    assert.equal(await select.inputValue(), 'settings/capture');
    await select.selectOption('Delete');
    await button(page, 'Delete server…').waitFor();
    assert.equal(new URL(page.url()).pathname, '/servers/sections/settings/delete');
  });

  it('shows errors at the fields of a new server and keeps the input', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new?from=form');
    await field(page, 'Name').fill('Bad one');
    await field(page, 'Slug').fill('Not a slug!');
    await field(page, 'Tool name').fill('has spaces in it');
    await field(page, 'URL').fill('nowhere');
    await button(page, 'Create server').click();
    await assertFieldError(field(page, 'Slug'), /3 to 63 lowercase letters/);
    await assertFieldError(field(page, 'Tool name'), /letters, digits/);
    await assertFieldError(field(page, 'URL'), /not a URL/i);
    await assertFieldError(field(page, 'Tool description'), /Enter a tool description\./);
    assert.equal(await field(page, 'Slug').inputValue(), 'Not a slug!');
    assert.equal(await field(page, 'URL').inputValue(), 'nowhere');
    await button(page, 'slug').click();
    await eventually(async () => assert.equal(await page.locator(':focus').inputValue(), 'Not a slug!'));
  });

  it('[imp 4] creates a server from an API description file with 12 of 300 operations', async (t) => {
    const { toolhost, upstream } = dashboard;
    upstream.on('GET /things17/a', () => ({ body: { number: 17 } }));
    const page = await openPage(t, dashboard, '/servers/new');
    await page.getByRole('link', { name: /From an API description/ }).click();
    const file = {
      name: 'shop.json',
      mimeType: 'application/json',
      buffer: Buffer.from(createLargeShop(upstream.url)),
    };
    await page.locator('input[type=file]').setInputFiles(file);
    // The service reads 300 operations, and the page lists them.
    await page.getByRole('heading', { name: 'Operations' }).waitFor({ timeout: 60_000 });
    await checkPage(page);
    await button(page, 'Clear selection').click();
    await page.getByText('0 tools, about 0 tokens').waitFor();
    await page.getByRole('checkbox', { name: 'Tag 1', exact: true }).check();
    await page.getByRole('textbox', { name: 'Search operations' }).fill('things2');
    await page.getByRole('checkbox', { name: /get_thing25\b/ }).check();
    await page.getByRole('checkbox', { name: /get_thing27\b/ }).check();
    await page.getByText(/12 tools, about \d+/).waitFor();
    await field(page, 'Slug').fill('shop');
    await page.locator('input[type=password]').fill('the-key-of-the-shop');
    await checkPage(page);
    await button(page, 'Create server').click();
    await page.waitForURL('**/servers/shop/connect');
    await page.getByText('Your server is running').waitFor();
    const key = await toolhost.createKey();
    const result = await toolhost.callTool('shop', key, 'get_thing17', { id: 'a' });
    assert.match(result.content[0]?.text ?? '', /17/, JSON.stringify(result));
    assert.equal(upstream.take().at(-1)?.headers['x-shop-key'], 'the-key-of-the-shop');
  });

  it('shows the exact request before and after a call, and as curl, with the credential masked', async (t) => {
    const kind = { type: 'string', enum: ['big', 'small'], optional: true };
    const input_schema = { id: { type: 'string' }, kind };
    const tool = buildToolAt(`${dashboard.upstream.url}/items/:id`, { name: 'read', input_schema });
    dashboard.upstream.on('GET /items/seven', () => ({ body: { total: 1 } }));
    const authentication = { type: 'Bearer', token };
    const page = await openServer(t, dashboard, 'try', 'tried', { authentication, tools: [tool] });
    await field(page, 'id').fill('seven');
    await selectOption(page, 'kind', 'small');
    const outgoing = page.getByRole('region', { name: 'Outgoing request' });
    await outgoing.getByText('GET /items/seven?kind=small HTTP/1.1').waitFor();
    await outgoing.getByText('curl', { exact: true }).click();
    await outgoing.getByText(`${dashboard.upstream.url}/items/seven?kind=small`).waitFor();
    await button(page, 'Call tool').click();
    const result = page.getByRole('region', { name: 'Result' });
    await button(result, 'Sent request').click();
    await result.getByText('GET /items/seven?kind=small HTTP/1.1').waitFor();
    await result.getByText(/Authorization: Bearer \*{8}/).waitFor();
    const shown = (await page.getByRole('main').textContent()) ?? '';
    assert.match(shown, /\d+ ms · API \d+ ms, Toolhost \d+ ms/);
    assert.match(shown, /Sent to agentabout \d+ tokens/);
    assert.ok(!shown.includes(token));
  });

  it('deletes the secrets of a deleted server that can still be restored [find F4]', async (t) => {
    await dashboard.toolhost.createServer(dashboard.config('emptied'));
    await dashboard.toolhost.rest('PUT', '/servers/emptied/secrets/SPARE', { body: { value: 'a-value' } });
    await dashboard.toolhost.rest('DELETE', '/servers/emptied');
    const page = await openPage(t, dashboard, '/servers');
    await button(page, /^Deleted servers \(\d+\)$/).click();
    await chooseRowAction(page, 'The emptied', 'Delete secrets The emptied');
    await button(page.getByRole('dialog'), 'Delete secrets').click();
    await waitForToast(page, 'Deleted the secrets');
    await button(page.getByRole('row').filter({ hasText: 'The emptied' }), /^Actions/).click();
    await page.getByRole('menuitem', { name: 'Restore The emptied' }).waitFor();
    assert.equal(await page.getByRole('menuitem', { name: 'Delete secrets The emptied' }).count(), 0);
  });

  it('restores a deleted server in two clicks', async (t) => {
    await dashboard.toolhost.createServer(dashboard.config('undone'));
    await dashboard.toolhost.rest('DELETE', '/servers/undone');
    const page = await openPage(t, dashboard, '/servers');
    await button(page, /^Deleted servers \(\d+\)$/).click();
    await chooseRowAction(page, 'The undone', 'Restore The undone');
    await page.getByRole('link', { name: 'The undone' }).waitFor();
    await page.getByRole('table', { name: 'Deleted servers' }).getByText('The undone').waitFor({ state: 'hidden' });
  });
});

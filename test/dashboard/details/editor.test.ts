import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertMapped } from '../../support/assert-lists.ts';
import { button, field, getJsonEditor, selectOption, showView, tab } from '../../support/browser/dashboard.ts';
import { getStoredConfig, openPage, openServer, save, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

describe('the editor of a server', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  it('completes names and values in the JSON', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new?from=json');
    const { json, text } = getJsonEditor(page);
    const option = (name: string) => page.getByRole('option', { name, exact: true });
    await json.pressSequentially('{ "desc');
    await option('description').click();
    assert.equal(await text(), '{ "description": }');
    await json.pressSequentially('"x", "authentication": { "type": "Api');
    await option('ApiKey').click();
    assert.match(await text(), /"type": "ApiKey"\}\}$/);
    await json.pressSequentially('}, "tools": [{ "input_schema": { "id": { "type": "int');
    await option('integer').click();
    await json.pressSequentially(', "opt');
    await option('optional').waitFor();
  });

  it('marks errors in the JSON, folds it, and releases the focus with Tab and Escape', async (t) => {
    const page = await openServer(t, dashboard, 'settings', 'marked');
    await showView(page, 'JSON');
    const { json, text } = getJsonEditor(page);
    const marked = json.locator('.cm-lintRange-error');
    await json.fill((await text()).replace('"slug": "marked"', '"slug": "Not a slug!"'));
    await eventually(async () => assert.equal(await marked.textContent(), '"slug"'));
    await json.fill('{ "name": "a" "slug": "b" }');
    await eventually(async () => assert.equal(await marked.textContent(), '"'));
    await json.press('Tab');
    assert.equal(await json.and(page.locator(':focus')).count(), 0);
    assert.equal(await text(), '{ "name": "a" "slug": "b" }');
    await json.focus();
    await json.press('Escape');
    assert.equal(await json.and(page.locator(':focus')).count(), 0);
    await button(page, 'Discard').click();
    await page.getByTitle('Fold line').filter({ visible: true }).first().click();
    await page.getByTitle('unfold', { exact: true }).waitFor();
  });

  it('shows warnings next to their fields and allows saving with them', async (t) => {
    const page = await openServer(t, dashboard, 'settings', 'warned');
    await page.getByRole('radio', { name: 'API key' }).check();
    const warning = page.getByText(/\{\{SERVICE_KEY\}\} has no value/);
    await warning.first().waitFor();
    const section = page.getByRole('region', { name: 'Access' });
    await section.getByText(/has no value/).waitFor();
    await page.getByText(/^Unsaved changes, \d+ warning/).waitFor();
    await save(page, 2);
  });

  it('[conf 9] keeps all digits of stored and typed numbers', async (t) => {
    const [tool] = dashboard.config('digits').tools as Json[];
    const id = JSON.rawJSON('1092839482938472939');
    const input_schema = { channel: { type: 'integer', value: id }, price: { type: 'number', optional: true } };
    const tools = [{ ...tool, url: 'https://api.example.com/things', input_schema }];
    const page = await openServer(t, dashboard, 'tools', 'digits', { tools });
    await showView(page, 'JSON');
    const { json, text } = getJsonEditor(page);
    const shown = await text();
    assert.match(shown, /"value": 1092839482938472939/);
    await json.fill(shown.replace('"optional": true', '"default": 1.10'));
    await save(page);
    const stored = await dashboard.toolhost.rest('GET', '/servers/digits');
    assert.match(stored.text, /"value":1092839482938472939\}.*"default":1\.10/);
  });

  it('duplicates, deletes, and reorders tools by dragging', async (t) => {
    const [tool] = dashboard.config('many').tools as Json[];
    const tools = ['first', 'second', 'third'].map((name) => ({ ...tool, name }));
    const page = await openServer(t, dashboard, 'tools', 'many', { tools });
    await button(page, 'first').click();
    await button(page, 'Duplicate first').click();
    assert.equal(await field(page, 'Tool name').inputValue(), 'first_2');
    await button(page, 'Close').click();
    await button(page, 'second').click();
    await button(page, 'Delete second').click();
    const items = page.locator('tr.th-tool');
    await items.nth(2).locator('[draggable=true]').dragTo(items.nth(0));
    await save(page);
    const { tools: stored } = await getStoredConfig<{ tools: Json[] }>(dashboard, 'many');
    assertMapped(stored, ({ name }) => name, ['third', 'first', 'first_2']);
  });

  it('masks a stored secret and replaces it only if a new one is typed', async (t) => {
    const oauth = {
      authorization_url: 'https://id.example.com/authorize',
      token_url: 'https://id.example.com/token',
      client_id: 'toolhost',
      client_secret: 'first-secret-of-the-client',
      scopes: ['read'],
    };
    const page = await openServer(t, dashboard, 'settings', 'sealed', { oauth });
    const secret = page.locator('input[type=password]');
    await secret.waitFor();
    assert.equal(await secret.inputValue(), '');
    assert.ok(!(await page.content()).includes('first-secret'));
    await showView(page, 'JSON');
    assert.ok(!(await getJsonEditor(page).text()).includes('first-sec'));
    await showView(page, 'Form');
    const { callback_url } = (await dashboard.toolhost.rest('GET', '/servers/sealed')).body;
    await page.getByRole('region', { name: 'callback URL' }).getByText(String(callback_url)).waitFor();
    await button(page, 'Copy callback URL').waitFor();
    await tab(page, 'Tools').click();
    await button(page, 'read').click();
    await selectOption(page, 'Method', 'POST');
    await save(page, 2);
    await button(page, 'Close').click();
    await tab(page, 'Settings').click();
    await secret.fill('second-secret-of-the-client');
    await save(page, 3);
    await eventually(async () => assert.ok(!(await page.content()).includes('second-secret')));
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  assertFieldError,
  button,
  type Dashboard,
  field,
  getJsonEditor,
  startDashboard,
} from '../../support/browser/dashboard.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import { eventually } from '../../support/eventually.ts';

describe('input in the editor of a server', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  const create = (slug: string, more = {}) => dashboard.toolhost.createServer(dashboard.config(slug, more));

  it('[agent 3] starts with a response limit in a new server and in the example', async () => {
    for (const from of ['form', 'example']) {
      await dashboard.withPage(`/servers/new?from=${from}`, async (page) => {
        const { text } = getJsonEditor(page);
        await eventually(async () => assert.match(await text(), /"max_response_tokens": 20000/));
      });
    }
  });

  it('[find D4] shows no problems before the first input, for every way to start a server', async () => {
    for (const from of ['json', 'form', 'example']) {
      await dashboard.withPage(`/servers/new?from=${from}`, async (page) => {
        await page.getByText(/^Not saved yet/).waitFor();
        await page.waitForLoadState('networkidle');
        assert.equal(await page.getByText('Fix before saving').count(), 0, from);
        assert.equal(await page.locator('[aria-invalid=true]').count(), 0, from);
        assert.equal(await page.getByText(/problems? to fix/).count(), 0, from);
      });
    }
    await dashboard.withPage('/servers/new?from=json', async (page) => {
      const { json, text } = getJsonEditor(page);
      assert.equal(await text(), '');
      assert.match((await json.getAttribute('aria-placeholder')) ?? '', /Paste a configuration here/);
      await json.focus();
      await field(page, 'Name').focus();
      assert.equal(await text(), '');
      await button(page, 'Create server').click();
      await page.getByText('Fix before saving').waitFor();
    });
  });

  it('shows that a slug is taken before the form is submitted', async () => {
    await create('taken-before');
    await dashboard.withPage('/servers/new?from=json', async (page) => {
      const { json } = getJsonEditor(page);
      await json.fill(JSON.stringify(dashboard.config('taken-before'), null, 2));
      await assertFieldError(field(page, 'Slug'), /used by a server of this workspace/i);
      await field(page, 'Slug').fill('taken-by-nobody');
      await button(page, 'Create server').click();
      await page.waitForURL(/\/servers\/taken-by-nobody/);
    });
  });

  it('shows login errors at their fields', async () => {
    await dashboard.withPage('/servers/new?from=form', async (page) => {
      await page.getByRole('radio', { name: 'Login (OAuth)' }).check();
      await field(page, 'Slug').fill('with-login');
      await page.getByRole('region', { name: 'callback URL' }).getByText('/mcp/with-login/callback').waitFor();
      await field(page, 'Authorization URL').fill('ftp://id.example/authorize');
      await field(page, 'Token URL').fill('http://id.example/token');
      const scopes = page.getByRole('combobox', { name: 'Scopes', exact: true });
      await scopes.fill('two words');
      await scopes.press('Enter');
      await button(page, 'Advanced login settings').click();
      await field(page, 'Extra parameters').fill('{"state": "mine"}');
      await button(page, 'Create server').click();
      await assertFieldError(scopes, /without spaces/);
      await assertFieldError(field(page, 'Authorization URL'), /allowed: https:/);
      await assertFieldError(field(page, 'Token URL'), /https:\/\//);
      await assertFieldError(field(page, 'Client ID'), /at least 1 character/);
      await assertFieldError(page.locator('input[type=password]'), /the secret of the client/);
      await assertFieldError(field(page, 'Extra parameters'), /sets this parameter itself/);
      await field(page, 'Extra parameters').fill('{"audience": ');
      await assertFieldError(field(page, 'Extra parameters'), /invalid JSON/i);
      await button(page, 'Create server').click();
      assert.equal(await field(page, 'Extra parameters').inputValue(), '{"audience": ');
      assert.equal(await field(page, 'Token URL').inputValue(), 'http://id.example/token');
    });
  });

  it('shows errors in argument keywords and prevents saving incomplete JSON', async () => {
    await create('keywords');
    await dashboard.withPage('/servers/keywords/tools?tool=read', async (page) => {
      await button(page, 'Details of count').click();
      const others = field(page, 'Other keywords (count)');
      await others.fill('{"minimum": ');
      await assertFieldError(others, /invalid JSON/i);
      await field(page, 'Tool description').fill('Another text');
      assert.equal(await others.inputValue(), '{"minimum": ');
      await button(page, 'Save').click();
      await page.getByText('1 problem to fix').waitFor();
      await others.fill('{"minimum": 3}');
      await button(page, 'Save').click();
      await waitForToast(page, 'Saved as version 2');
    });
  });
});

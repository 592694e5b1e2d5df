import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  assertFieldError,
  button,
  field,
  getJsonEditor,
  selectOption,
  showView,
} from '../../support/browser/dashboard.ts';
import { openPage, save, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';

describe('input in the forms of the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  const create = (slug: string, more = {}) => dashboard.toolhost.createServer(dashboard.config(slug, more));

  it('[agent 3] starts with a response limit in a new server', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new?from=form');
    await showView(page, 'JSON');
    const { text } = getJsonEditor(page);
    await eventually(async () => assert.match(await text(), /"max_response_tokens": 20000/));
  });

  it('[find D4] shows no problems before the first input, for every way to start a server', async (t) => {
    for (const from of ['json', 'form']) {
      const page = await openPage(t, dashboard, `/servers/new?from=${from}`);
      await page.getByText(/^Not saved yet/).waitFor();
      await page.waitForLoadState('networkidle');
      for (const fault of [page.getByText(/Fix before saving|problems? to fix/), page.locator('[aria-invalid=true]')])
        assert.equal(await fault.count(), 0, from);
    }
    const page = await openPage(t, dashboard, '/servers/new?from=json');
    const { json, text } = getJsonEditor(page);
    assert.equal(await text(), '');
    assert.match((await json.getAttribute('aria-placeholder')) ?? '', /Paste a configuration here/);
    await json.focus();
    await button(page, 'Create server').focus();
    assert.equal(await text(), '');
    await button(page, 'Create server').click();
    await page.getByText('Fix before saving').waitFor();
  });

  it('shows that a slug is taken before the form is submitted', async (t) => {
    await create('taken-before');
    const page = await openPage(t, dashboard, '/servers/new?from=json');
    const { json } = getJsonEditor(page);
    await json.fill(JSON.stringify(dashboard.config('taken-before'), null, 2));
    await showView(page, 'Form');
    await assertFieldError(field(page, 'Slug'), /used by a server of this workspace/i);
    await field(page, 'Slug').fill('taken-by-absent');
    await button(page, 'Create server').click();
    await page.waitForURL(/\/servers\/taken-by-absent/);
    await page.goto('/servers/new?from=form');
    await field(page, 'Name').fill('Taken before');
    await field(page, 'Name').press('Tab');
    await assertFieldError(field(page, 'Slug'), /used by a server of this workspace/i);
  });

  it('shows login errors at their fields', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new?from=form');
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
    await assertFieldError(field(page, 'Token URL'), /not a public https address/);
    await assertFieldError(field(page, 'Client ID'), /Enter a client ID\./);
    await assertFieldError(page.locator('input[type=password]'), /the client secret, or no secret/);
    await assertFieldError(field(page, 'Extra parameters'), /sets this parameter itself/);
    await field(page, 'Extra parameters').fill('{"audience": ');
    await assertFieldError(field(page, 'Extra parameters'), /invalid JSON/i);
    await button(page, 'Create server').click();
    assert.equal(await field(page, 'Extra parameters').inputValue(), '{"audience": ');
    assert.equal(await field(page, 'Token URL').inputValue(), 'http://id.example/token');
  });

  it('shows errors in argument keywords and prevents saving incomplete JSON', async (t) => {
    await create('keywords');
    const page = await openPage(t, dashboard, '/servers/keywords/tools?tool=read');
    await button(page, 'Details of count').click();
    const others = field(page, 'Other keywords (count)');
    await others.fill('{"minimum": ');
    await assertFieldError(others, /invalid JSON/i);
    await field(page, 'Tool description').fill('Another text');
    assert.equal(await others.inputValue(), '{"minimum": ');
    await button(page, 'Save').click();
    await page.getByText('1 problem to fix').waitFor();
    await others.fill('{"minimum": 3}');
    await save(page, 2);
  });

  it('reports invalid input at the fields of an API key', async (t) => {
    const page = await openPage(t, dashboard, '/keys');
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

  it('reports invalid input at the fields of the workspace settings', async (t) => {
    const page = await openPage(t, dashboard, '/settings', { person: { name: 'Solo', workspace: 'wsp_solo' } });
    const address = field(page, 'Invite by email');
    await address.fill('absent');
    await button(page, 'Invite').click();
    await assertFieldError(address, /address/i);
    assert.equal(await address.inputValue(), 'absent');
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
  });

  it('deletes no server when its slug is not typed correctly to confirm', async (t) => {
    await create('not-deleted');
    const page = await openPage(t, dashboard, '/servers/not-deleted/settings/delete');
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

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { assertFieldError, button, field, getJsonEditor, showView } from '../../support/browser/dashboard.ts';
import { isFocused, pressKeyOn } from '../../support/browser/keyboard.ts';
import { getStoredConfig, openPage, openServer, save, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';

const stored = { authentication: { type: 'Bearer', token: '{{JIRA_TOKEN}}' } };
const views = { finance: { tools: ['read'] }, support: { tools: ['read'] } };

describe('the login section of the editor', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  const open = (t: Parameters<typeof openServer>[0], slug: string, more = {}) =>
    openServer(t, dashboard, 'settings', slug, { ...stored, ...more });
  const getLogin = async (slug: string) => (await getStoredConfig(dashboard, slug)).login;
  const turnOn = (page: Page) => page.getByRole('checkbox', { name: 'People log in' }).check();
  const list = (page: Page, label: string) => page.getByRole('combobox', { name: label, exact: true });
  const preview = (page: Page) => page.getByRole('region', { name: 'Preview' });

  it('lets people log in, and asks each for the credential of the server', async (t) => {
    const page = await open(t, 'brings');
    await turnOn(page);
    await button(page, 'Each person brings JIRA_TOKEN').click();
    const shown = page.getByRole('group', { name: 'Field Jira token' });
    await field(shown, 'Label').fill('Personal access token');
    await field(page, 'Help page').fill('https://example.com/tokens');
    await save(page, 2);
    assert.deepEqual(await getLogin('brings'), {
      fields: [{ name: 'JIRA_TOKEN', label: 'Personal access token', help: 'https://example.com/tokens' }],
    });
    await page.getByText('Login', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: 'Logins', exact: true }).waitFor();
  });

  it('shows the consent page and the form that people will see while they are edited', async (t) => {
    const page = await open(t, 'previewed', { login: {} });
    const shown = preview(page);
    await shown.getByText('Allow “Claude” to use The previewed?').waitFor();
    await shown.getByText('It can read with: read. It changes nothing.').waitFor();
    assert.equal(await shown.getByText(/^Your details/).count(), 0);
    await button(page, 'Add field').click();
    await field(page, 'Label').fill('Site name');
    await field(page, 'Name').last().fill('JIRA_TOKEN');
    await page.getByRole('checkbox', { name: 'Secret' }).uncheck();
    await field(page, 'Default').fill('acme');
    await shown.getByText('Your details for The previewed').waitFor();
    await shown.getByText('Site name').waitFor();
    await shown.getByText('acme').waitFor();
    const host = new URL(dashboard.upstream.url).host;
    await shown.getByText(`Sent to ${host}.`).waitFor();
    assert.equal(await shown.getByRole('button').count(), 0, 'the preview has something to press');
  });

  it('shows a host that depends on a field with the label of the field', async (t) => {
    const page = await open(t, 'hosted', {
      base_url: 'https://{{site}}.example.com',
      login: {
        fields: ['JIRA_TOKEN', 'site'].map((name) => ({ name, label: `Your ${name}`, secret: name !== 'site' })),
      },
      tools: [{ name: 'read', description: 'Reads an item.', method: 'GET', url: '/items' }],
    });
    await preview(page).getByText('Sent to ‹Your site›.example.com.').first().waitFor();
  });

  it('reports a problem below its field in the words of the service', async (t) => {
    const page = await open(t, 'checked', { login: {} });
    await list(page, 'Email domains').fill('co.uk');
    await list(page, 'Groups').focus();
    await assertFieldError(list(page, 'Email domains'), /found "co.uk", below which anyone can register a name/i);
    await button(page, 'Add field').click();
    await field(page, 'Label').fill('Token');
    const name = field(page, 'Name').last();
    await name.fill('two words');
    await field(page, 'Help page').fill('http://example.com');
    await field(page, 'Label').focus();
    await assertFieldError(name, /Found "two words"; allowed: a letter or _/);
    await name.fill('TOKEN');
    await assertFieldError(field(page, 'Help page'), /allowed: an https URL without user name/);
  });

  it('reorders and removes fields with the keyboard and keeps the focus on the moved field', async (t) => {
    const fields = ['JIRA_TOKEN', 'team', 'region'].map((name) => ({ name, label: `The ${name}`, secret: false }));
    const page = await open(t, 'ordered', { login: { fields } });
    const last = page.getByRole('group', { name: 'Field The region' });
    await pressKeyOn(page, button(page, 'Move The region up'));
    await eventually(async () => assert.equal(await last.evaluate(isFocused), true));
    await button(page, 'Remove The team').click();
    await save(page, 2);
    assert.deepEqual(await getLogin('ordered'), { fields: [fields[0], fields[2]] });
  });

  it('maps groups to views, and limits who may log in with which client', async (t) => {
    const page = await open(t, 'ruled', { views });
    await turnOn(page);
    await list(page, 'Groups').fill('support');
    await button(page, 'Add rule').click();
    await field(page, 'Group of rule 1').fill('support');
    await page.getByRole('combobox', { name: 'View of rule 1' }).click();
    await page.getByRole('option', { name: 'support' }).click();
    await button(page, 'Add rule').click();
    await button(page, 'Limit clients').click();
    await list(page, 'Clients').fill('https://claude.ai/api/mcp/auth_callback');
    await list(page, 'Groups').focus();
    await save(page, 2);
    assert.deepEqual(await getLogin('ruled'), {
      allow: { members: true, groups: ['support'] },
      views: [{ group: 'support', view: 'support' }, { view: 'finance' }],
      clients: ['https://claude.ai/api/mcp/auth_callback'],
    });
  });

  it('replaces the token of callers with one that each person enters', async (t) => {
    const page = await open(t, 'forwarding', { authentication: { type: 'Bearer' } });
    await turnOn(page);
    assert.equal(await page.getByRole('radio', { name: "Caller's token" }).isDisabled(), true);
    await save(page, 2);
    const { authentication, login } = await getStoredConfig(dashboard, 'forwarding');
    assert.deepEqual(
      [authentication, login],
      [{ type: 'Bearer', token: '{{API_TOKEN}}' }, { fields: [{ name: 'API_TOKEN', label: 'API token' }] }],
    );
  });

  it('follows changes of the JSON, and shows a viewer the login without controls', async (t) => {
    const page = await open(t, 'as-json', { login: { fields: [{ name: 'JIRA_TOKEN', label: 'Token' }] } });
    await showView(page, 'JSON');
    const { json, text } = getJsonEditor(page);
    const edited = (await text()).replace('"label": "Token"', '"label": "Access key", "optional": true');
    await json.fill(edited);
    await showView(page, 'Form');
    await page.getByRole('group', { name: 'Field Access key' }).waitFor();
    assert.equal(await page.getByRole('checkbox', { name: 'Optional' }).isChecked(), true);
    await preview(page).getByText('Access key').waitFor();
    const person = { name: 'Vera', role: 'viewer' } as const;
    const viewersPage = await openPage(t, dashboard, '/servers/as-json/settings', { person });
    await viewersPage.getByRole('group', { name: 'Field Token' }).waitFor();
    assert.equal(await viewersPage.getByRole('checkbox', { name: 'People log in' }).isDisabled(), true);
    assert.equal(await viewersPage.getByRole('button', { name: /^(Add field|Remove Token|Each person)/ }).count(), 0);
  });
});

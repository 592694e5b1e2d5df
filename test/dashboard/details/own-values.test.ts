import assert from 'node:assert/strict';
import { before, describe, it, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { localAccount } from '../../../apps/server/src/local/identity.ts';
import { createBrowser, getNextUrl } from '../../support/browser/browser.ts';
import {
  alert,
  assertFieldError,
  button,
  chooseRowAction,
  closeContext,
  createContext,
  createMemberSession,
  field,
  selectOption,
  tab,
} from '../../support/browser/dashboard.ts';
import { openPage, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import { clientWithId, post } from '../../support/oauth/oauth-client.ts';
import { toInputs } from '../../support/oauth/people-world.ts';

const fields = [
  { name: 'JIRA_TOKEN', label: 'Personal access token', help: 'https://example.com/tokens' },
  { name: 'team', label: 'Team', secret: false, optional: true, pattern: '[a-z]+' },
];
const people = {
  authentication: { type: 'Bearer', token: '{{JIRA_TOKEN}}' },
  headers: { 'X-Team': '{{team}}' },
  login: { fields },
};

describe('the values of a person in the dashboard', () => {
  const dashboard = useDashboard();
  before(async () => {
    dashboard.upstream.on('GET /items', () => ({ body: { ok: true } }));
    for (const slug of ['jira', 'wiki', 'keyed', 'revoked'])
      await dashboard.toolhost.createServer(dashboard.config(slug, people));
  });

  /** Logs the person of the local mode in, as an agent does. */
  async function logIn(slug: string, values: Record<string, string>): Promise<void> {
    const issuer = `${dashboard.toolhost.url}/mcp/${slug}`;
    const redirectUri = 'https://agent.example/callback';
    const registration = await post(`${issuer}/register`, { client_name: 'Agent', redirect_uris: [redirectUri] });
    const client = clientWithId(String(registration.body.client_id), { issuer, redirectUri });
    const { url, verifier } = client.authorization();
    const browser = createBrowser();
    const form = await browser.press(await browser.get(url), 'Allow');
    const last = await browser.press(form, 'Save and continue', { fields: toInputs(values) });
    const code = getNextUrl(last).searchParams.get('code') ?? assert.fail(last.html);
    assert.equal((await client.redeem(code, verifier)).status, 200);
  }

  /** Opens a page as the person of the local mode, whose values calls use. */
  async function openAsLocalPerson(t: TestContext, path: string): Promise<Page> {
    const { toolhost, browser } = dashboard;
    await toolhost.rest('POST', '/servers/wiki/tools/read/call', { body: { arguments: { count: 1 } } });
    const { id } = await toolhost.running.app.runner.db
      .selectFrom('users')
      .select('id')
      .where('subject', '=', localAccount.sub)
      .executeTakeFirstOrThrow();
    const context = await createContext(browser, toolhost);
    t.after(() => closeContext(context));
    const value = await createMemberSession(toolhost, id);
    await context.addCookies([{ name: 'toolhost-session', value, url: toolhost.url }]);
    const page = await context.newPage();
    await page.goto(path);
    return page;
  }

  it('are asked for where a call needs them, are sent with the call, and are never shown', async (t) => {
    const page = await openAsLocalPerson(t, '/servers/jira/try');
    const bodies: string[] = [];
    page.on('response', (response) => {
      if (response.url().includes('/api/')) void response.text().then((text) => bodies.push(text));
    });
    const missing = page.getByRole('alert', { name: 'This server needs your values' });
    await missing.getByText('Yours are missing: Personal access token.').waitFor();
    await page.getByRole('link', { name: 'Enter your values' }).click();
    await page
      .getByText(`Sent to ${new URL(dashboard.upstream.url).host}.`)
      .first()
      .waitFor();
    await field(page, 'Team (optional)').fill('UPPER');
    await page.getByLabel('Personal access token', { exact: true }).fill('of-anna');
    await button(page, 'Save values').click();
    await assertFieldError(field(page, 'Team (optional)'), /does not have the expected format/);
    await field(page, 'Team (optional)').fill('core');
    await button(page, 'Save values').click();
    const row = page
      .getByRole('table', { name: 'Servers that hold your values' })
      .getByRole('row', { name: /The jira/ });
    await row.getByText('JIRA_TOKEN, team').waitFor();
    assert.equal(await page.getByLabel('Personal access token', { exact: true }).inputValue(), '');
    await tab(page, 'Try it').click();
    await field(page, 'count').fill('3');
    await button(page, 'Call tool').click();
    await page.getByRole('region', { name: 'Result' }).waitFor();
    assert.equal(await missing.count(), 0);
    const { headers } = dashboard.upstream.requests.at(-1) ?? assert.fail('no request was sent');
    assert.deepEqual([headers.authorization, headers['x-team']], ['Bearer of-anna', 'core']);
    assert.ok(!bodies.some((text) => text.includes('of-anna')));
  });

  it('are kept if nothing is entered, are listed for all servers, and can be deleted', async (t) => {
    const page = await openPage(t, dashboard, '/servers/wiki/settings/logins', {
      person: { name: 'Vera', role: 'viewer' },
    });
    await page.getByLabel('Personal access token', { exact: true }).fill('first');
    await button(page, 'Save values').click();
    await page.getByText('Stored. Enter a new value to replace it.').waitFor();
    await field(page, 'Team (optional)').fill('core');
    await button(page, 'Save values').click();
    const table = page.getByRole('table', { name: 'Servers that hold your values' });
    await table.getByText('JIRA_TOKEN, team').waitFor();
    await page.goto('/servers/keyed/settings/logins');
    await table.getByRole('link', { name: 'The wiki' }).waitFor();
    await chooseRowAction(page, 'The wiki', 'Delete your values at The wiki');
    const dialog = page.getByRole('dialog', { name: 'Delete your values at The wiki?' });
    await button(dialog, 'Delete values').click();
    await eventually(async () => assert.equal(await table.count(), 0));
  });

  it('are listed by name for each login, and end with it', async (t) => {
    await logIn('revoked', { JIRA_TOKEN: 'of-the-local-person', team: '' });
    const page = await openPage(t, dashboard, '/servers/revoked/settings/logins');
    const row = page.getByRole('table', { name: 'Logins', exact: true }).getByRole('row', { name: /Agent/ });
    await row.getByText('JIRA_TOKEN', { exact: true }).waitFor();
    await chooseRowAction(page, 'Agent', 'Revoke login of Agent');
    const dialog = page.getByRole('dialog', { name: 'Revoke this login?' });
    await dialog.getByText('the values that they provided are deleted').waitFor();
    await button(dialog, 'Revoke login').click();
    await row.getByText('Revoked', { exact: true }).waitFor();
    await eventually(async () => assert.equal(await page.getByText('JIRA_TOKEN', { exact: true }).count(), 0));
    assert.ok(!(await page.content()).includes('of-the-local-person'));
  });

  it('let programs use the server with an API key, and other clients with a login', async (t) => {
    const page = await openPage(t, dashboard, '/servers/keyed/connect');
    await selectOption(page, 'Client', 'ChatGPT');
    const needsLogin = page.getByText('ChatGPT can only log in');
    assert.equal(await needsLogin.count(), 0);
    assert.equal(await button(page, 'Create key for this server').count(), 0);
    await page.getByRole('radio', { name: 'API key' }).check();
    await page.getByText('Your key works once you have entered your values').waitFor();
    await button(page, 'Create key for this server').waitFor();
    await needsLogin.waitFor();
    await page.getByRole('radio', { name: 'Log in' }).check();
    await needsLogin.waitFor({ state: 'detached' });
    assert.equal(await alert(page, 'went wrong').count(), 0);
  });
});

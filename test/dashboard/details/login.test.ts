import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { assertMapped, assertNone } from '../../support/assert-lists.ts';
import { button, startDashboard } from '../../support/browser/dashboard.ts';
import { openPage } from '../../support/browser/use-dashboard.ts';
import { password, startHonestProvider } from '../../support/oauth/honest-provider.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';
import { useFixtures } from '../../support/use-fixtures.ts';

/** Time limit for a page on a busy machine. */
const pageTimeoutMs = 30_000;

describe('a login test in the dashboard', { concurrency: 2 }, () => {
  const fixtures = useFixtures();
  const provider = fixtures.start(startHonestProvider);
  const dashboard = fixtures.start(() => startDashboard([provider.port]));

  async function serve(slug: string, oauth: Json = {}): Promise<void> {
    const { toolhost, upstream } = dashboard;
    await toolhost.createServer({
      name: `The ${slug}`,
      slug,
      authentication: { type: 'Bearer' },
      oauth: { ...(await provider.createOAuthConfig(`${toolhost.url}/mcp/${slug}/callback`)), ...oauth },
      tools: [{ name: 'read', description: 'Reads an item of the API.', method: 'GET', url: `${upstream.url}/items` }],
    });
  }

  /** Opens a page, and also fails the test if a tab that the page opens violates the Content Security Policy. */
  async function open(t: TestContext, path: string): Promise<Page> {
    const page = await openPage(t, dashboard, path);
    const violations: string[] = [];
    page.context().setDefaultTimeout(pageTimeoutMs);
    page.context().on('page', (tab) => {
      tab.on('console', (message) => violations.push(...(message.text().match(/.*Content Security Policy.*/i) ?? [])));
    });
    t.after(() => assert.deepEqual(violations, []));
    return page;
  }

  /** Presses the button and returns the tab that it opens, on the consent page. */
  async function startLogin(page: Page): Promise<Page> {
    const opened = page.context().waitForEvent('page');
    await button(page, 'Test login').click();
    const tab = await opened;
    await tab.getByRole('heading', { level: 1, name: /^Allow “Dashboard login check”/ }).waitFor();
    return tab;
  }

  async function logIn(tab: Page): Promise<void> {
    await button(tab, 'Allow and log in').click();
    await tab.getByLabel('Name').fill('anna');
    await tab.getByLabel('Password').fill(password);
    await button(tab, 'Log in').click();
  }

  const alertWithTitle = (page: Page, title: string) => page.getByRole('alert', { name: title });
  const getGrants = async (slug: string) =>
    (await dashboard.toolhost.rest('GET', `/grants?slug=${slug}`)).body.grants as { status: string; client: string }[];

  it('reports the scopes and lifetime of the issued token and stores nothing', async (t) => {
    await serve('works');
    const page = await open(t, '/servers/works/settings');
    const bodies: string[] = [];
    page.on('response', (response) => {
      if (response.url().includes('/api/')) void response.text().then((text) => bodies.push(text));
    });
    const tab = await startLogin(page);
    await alertWithTitle(page, 'Waiting for the login in the new tab').waitFor();
    await logIn(tab);
    await alertWithTitle(tab, 'Login works').waitFor();
    assert.equal(tab.url(), `${dashboard.toolhost.url}/login-check`, 'the code is still in the URL');
    const outcome = alertWithTitle(page, 'Login works');
    await outcome.waitFor();
    const text = (await outcome.textContent()) ?? '';
    for (const scope of ['openid', 'offline_access', 'items:read']) assert.ok(text.includes(scope), text);
    assert.match(text, /valid for 10 minutes.*came with a refresh token.*Nothing was stored/);
    const issuedToken = provider.issued.at(-1) ?? assert.fail('no token was issued');
    assert.equal(await provider.getAccount(issuedToken), 'anna', 'the token does not belong to the account');
    assertNone(bodies, (body) => body.includes(issuedToken));
    assertMapped(await getGrants('works'), ({ status, client }) => [status, client], [
      ['revoked', 'Dashboard login check'],
    ]);
    const { db } = dashboard.toolhost.running.app.runner;
    const storedRows = await db
      .selectFrom('grants')
      .leftJoin('tokens', 'tokens.grant_id', 'grants.id')
      .leftJoin('codes', 'codes.grant_id', 'grants.id')
      .select(['grants.sealed_tokens', 'tokens.hash as token', 'codes.hash as code'])
      .where('grants.slug', '=', 'works')
      .execute();
    assertMapped(storedRows, (row) => ({ ...row }), [{ sealed_tokens: '', token: null, code: null }]);
  });

  it('reports that the user canceled on the consent page or at the provider', async (t) => {
    await serve('denied');
    const page = await open(t, '/servers/denied/connect');
    const consentTab = await startLogin(page);
    await button(consentTab, 'Cancel').click();
    await alertWithTitle(page, 'Login failed').getByText('The person denied access.').waitFor();
    await page.getByText('choose “Allow and log in”').waitFor();
    await alertWithTitle(consentTab, 'Login failed').waitFor();
    const providerTab = await startLogin(page);
    await button(providerTab, 'Allow and log in').click();
    await button(providerTab, 'Cancel').click();
    await alertWithTitle(page, 'Login failed').getByText('The login was denied at the provider.').waitFor();
    await page.getByText('approve the login at the provider').waitFor();
    assert.deepEqual(await getGrants('denied'), []);
  });

  it('reports a wrong client secret and the next step', async (t) => {
    await serve('wrong-secret', { client_secret: 'not-the-one-of-the-provider' });
    const page = await open(t, '/servers/wrong-secret/settings');
    await logIn(await startLogin(page));
    const outcome = alertWithTitle(page, 'Login failed');
    await outcome.getByText("The token endpoint refused this server's client id or client secret").waitFor();
    await outcome.getByText('Enter the client ID and client secret again').waitFor();
  });

  it('shows the callback URL to register while it waits, and stops on request', async (t) => {
    await serve('mistyped', { client_id: 'absent-the-provider-knows' });
    const page = await open(t, '/servers/mistyped/settings');
    const tab = await startLogin(page);
    await button(tab, 'Allow and log in').click();
    await tab.waitForURL(`${provider.url}/**`);
    await alertWithTitle(page, 'Waiting for the login in the new tab').getByText('redirect_uri_mismatch').waitFor();
    const url = page.getByLabel('callback URL to register', { exact: true });
    assert.equal(await url.textContent(), `${dashboard.toolhost.url}/mcp/mistyped/callback`);
    await button(page, 'Stop waiting').click();
    await alertWithTitle(page, 'Waiting for the login in the new tab').waitFor({ state: 'hidden' });
    assert.equal(await button(page, 'Test login').isEnabled(), true);
  });

  it('ignores an unsolicited callback', async (t) => {
    await serve('forged');
    const page = await open(t, '/servers/forged/settings');
    const context = page.context();
    await startLogin(page);
    const forged = await context.newPage();
    await forged.goto('/login-check?code=stolen&state=guessed');
    await alertWithTitle(forged, 'This login is no longer expected').waitFor();
    await forged.goto('/login-check');
    await alertWithTitle(forged, 'This login is no longer expected').waitFor();
    assert.equal(await alertWithTitle(page, 'Waiting for the login in the new tab').isVisible(), true);
  });
});

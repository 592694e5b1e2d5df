import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchChromium } from '../../support/browser/chromium.ts';
import { button, createSignedInContext, type Person, watchPage } from '../../support/browser/dashboard.ts';
import { type HonestProvider, password, startHonestProvider } from '../../support/oauth/honest-provider.ts';
import { type Json, startToolhost, type TestToolhost } from '../../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';

/** Time limit for a page on a busy machine. */
const pageTimeoutMs = 30_000;

describe('a login test in the dashboard', { concurrency: 2 }, () => {
  let provider: HonestProvider;
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let browser: Browser;

  before(async () => {
    [provider, upstream] = await Promise.all([startHonestProvider(), startRecordingUpstream()]);
    toolhost = await startToolhost({ egressPorts: [provider.port, upstream.port] });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await Promise.all([toolhost?.stop(), upstream?.close(), provider?.close()]);
  });

  async function serve(slug: string, oauth: Json = {}): Promise<void> {
    await toolhost.createServer({
      name: `The ${slug}`,
      slug,
      authentication: { type: 'Bearer' },
      oauth: { ...(await provider.createOAuthConfig(`${toolhost.url}/mcp/${slug}/callback`)), ...oauth },
      tools: [{ name: 'read', description: 'Reads an item of the API.', method: 'GET', url: `${upstream.url}/items` }],
    });
  }

  /** Opens a page as a person. Fails if the browser reported an error. */
  async function withPage(
    path: string,
    use: (page: Page, context: BrowserContext) => Promise<void>,
    person: Person = { name: 'Anna' },
  ): Promise<void> {
    const context = await createSignedInContext(browser, toolhost, person);
    context.setDefaultTimeout(pageTimeoutMs);
    const complaints: string[] = [];
    context.on('page', (page) => {
      page.on('console', (message) => {
        if (/Content Security Policy/i.test(message.text())) complaints.push(message.text());
      });
    });
    try {
      const page = await context.newPage();
      const seen = await watchPage(page, toolhost.url);
      await page.goto(path);
      await use(page, context);
      assert.deepEqual([...complaints, ...seen.errors, ...seen.foreignRequests], []);
    } finally {
      await context.close();
    }
  }

  /** Presses the button and returns the tab that it opens, on the consent page. */
  async function startLogin(page: Page, context: BrowserContext): Promise<Page> {
    const opened = context.waitForEvent('page');
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
    (await toolhost.rest('GET', `/grants?slug=${slug}`)).body.grants as { status: string; client: string }[];

  it('reports the scopes and lifetime of the issued token and stores nothing', async () => {
    await serve('works');
    await withPage('/servers/works/settings', async (page, context) => {
      const bodies: string[] = [];
      page.on('response', (response) => {
        if (response.url().includes('/api/')) void response.text().then((text) => bodies.push(text));
      });
      const tab = await startLogin(page, context);
      await alertWithTitle(page, 'Waiting for the login in the new tab').waitFor();
      await logIn(tab);
      await alertWithTitle(tab, 'Login works').waitFor();
      assert.equal(tab.url(), `${toolhost.url}/login-check`, 'the code is still in the URL');
      const outcome = alertWithTitle(page, 'Login works');
      await outcome.waitFor();
      const text = (await outcome.textContent()) ?? '';
      for (const scope of ['openid', 'offline_access', 'items:read']) assert.ok(text.includes(scope), text);
      assert.match(text, /valid for 10 minutes.*came with a refresh token.*Nothing was stored/);
      const issuedToken = provider.issued.at(-1) ?? assert.fail('no token was issued');
      assert.equal(await provider.getAccount(issuedToken), 'anna', 'the token does not belong to the account');
      assert.deepEqual(
        bodies.filter((body) => body.includes(issuedToken)),
        [],
      );
    });
    assert.deepEqual(
      (await getGrants('works')).map(({ status, client }) => [status, client]),
      [['revoked', 'Dashboard login check']],
    );
    const { db } = toolhost.running.app.runner;
    const storedRows = await db
      .selectFrom('grants')
      .leftJoin('tokens', 'tokens.grant_id', 'grants.id')
      .leftJoin('codes', 'codes.grant_id', 'grants.id')
      .select(['grants.sealed_tokens', 'tokens.hash as token', 'codes.hash as code'])
      .where('grants.slug', '=', 'works')
      .execute();
    assert.deepEqual(
      storedRows.map((row) => ({ ...row })),
      [{ sealed_tokens: '', token: null, code: null }],
    );
  });

  it('reports that the user canceled on the consent page or at the provider', async () => {
    await serve('denied');
    await withPage('/servers/denied/connect', async (page, context) => {
      const consentTab = await startLogin(page, context);
      await button(consentTab, 'Cancel').click();
      await alertWithTitle(page, 'Login failed').getByText('The person denied access.').waitFor();
      await page.getByText('choose “Allow and log in”').waitFor();
      await alertWithTitle(consentTab, 'Login failed').waitFor();
      const providerTab = await startLogin(page, context);
      await button(providerTab, 'Allow and log in').click();
      await button(providerTab, 'Cancel').click();
      await alertWithTitle(page, 'Login failed').getByText('The login was denied at the provider.').waitFor();
      await page.getByText('approve the login at the provider').waitFor();
    });
    assert.deepEqual(await getGrants('denied'), []);
  });

  it('reports a wrong client secret and the next step', async () => {
    await serve('wrong-secret', { client_secret: 'not-the-one-of-the-provider' });
    await withPage('/servers/wrong-secret/settings', async (page, context) => {
      await logIn(await startLogin(page, context));
      const outcome = alertWithTitle(page, 'Login failed');
      await outcome.getByText("The token endpoint refused this server's client id or client secret").waitFor();
      await outcome.getByText('Enter the client ID and client secret again').waitFor();
    });
  });

  it('shows the callback URL to register while it waits, and stops on request', async () => {
    await serve('mistyped', { client_id: 'nobody-the-provider-knows' });
    await withPage('/servers/mistyped/settings', async (page, context) => {
      const tab = await startLogin(page, context);
      await button(tab, 'Allow and log in').click();
      await tab.waitForURL(`${provider.url}/**`);
      await alertWithTitle(page, 'Waiting for the login in the new tab').getByText('redirect_uri_mismatch').waitFor();
      const url = page.getByLabel('callback URL to register', { exact: true });
      assert.equal(await url.textContent(), `${toolhost.url}/mcp/mistyped/callback`);
      await button(page, 'Stop waiting').click();
      await alertWithTitle(page, 'Waiting for the login in the new tab').waitFor({ state: 'hidden' });
      assert.equal(await button(page, 'Test login').isEnabled(), true);
    });
  });

  it('ignores an unsolicited callback', async () => {
    await serve('forged');
    await withPage('/servers/forged/settings', async (page, context) => {
      await startLogin(page, context);
      const forged = await context.newPage();
      await forged.goto('/login-check?code=stolen&state=guessed');
      await alertWithTitle(forged, 'This login is no longer expected').waitFor();
      await forged.goto('/login-check');
      await alertWithTitle(forged, 'This login is no longer expected').waitFor();
      assert.equal(await alertWithTitle(page, 'Waiting for the login in the new tab').isVisible(), true);
    });
  });
});

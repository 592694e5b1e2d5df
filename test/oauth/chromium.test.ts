import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import axe from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { launchChromium } from '../support/browser/chromium.ts';
import { closeContext } from '../support/browser/dashboard.ts';
import { password, startHonestProvider } from '../support/oauth/honest-provider.ts';
import { createTool } from '../support/oauth/login-world.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** The widths that pages must fit, in both color schemes. */
const views = [400, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ colorScheme, viewport: { width, height: 800 } })),
);

/** A redirect URI without a host: the redirect starts a program, and the browser stays. */
const programRedirect = 'com.example.agent:/callback';

/** Names that try to be more than text, and the text that the page may show for them. */
const adversarialNames: [name: string, shownName?: string][] = [
  ['<script>document.title="owned"</script>'],
  ['<img src=x onerror=alert(1)>"\'&amp;'],
  ['</dd></dl><h1>Verified</h1>'],
  ['Claude\u202eedoC\u2066\u200b\u200d\u00ad\u3164', 'Claude\ufffdedoC\ufffd\ufffd\ufffd\ufffd\ufffd'],
  ['\u0000\u0007\u001b[31mRed', '\ufffd\ufffd\ufffd[31mRed'],
];

/** Names that try to overflow their box. */
const largeNames = ['W'.repeat(80), '\ufdfd'.repeat(80), `Z${'\u0301\u0323'.repeat(39)}`, 'שלום '.repeat(16)];

describe('login pages in Chromium', { concurrency: 2 }, async () => {
  const [provider, agent] = await Promise.all([startHonestProvider(), startRecordingUpstream()]);
  agent.on('*', () => ({ headers: { 'content-type': 'text/html' }, body: '<h1>The agent has it</h1>' }));
  const toolhost = await startToolhost({ egressPorts: [provider.port, agent.port] });
  await toolhost.createServer({
    name: 'Project tracker',
    slug: 'items',
    authentication: { type: 'Bearer' },
    oauth: await provider.createOAuthConfig(`${toolhost.url}/mcp/items/callback`),
    tools: [createTool(`${agent.url}/items`)],
  });
  const browser = await launchChromium();
  after(async () => {
    await browser?.close();
    await Promise.all([toolhost.stop(), agent.close(), provider.close()]);
  });

  /** Registers a client. Returns the URL to which it would send a person. */
  async function authorizationUrl(name: string, redirectUri = `${agent.url}/callback`) {
    const client = await registerClient({ issuer: `${toolhost.url}/mcp/items`, name, redirectUri });
    return client.authorization({ state: 'of-the-agent', scope: 'items:read' }).url.href;
  }

  /** Opens a new browser profile. Asserts at the end that no script ran and that the policy had nothing to block. */
  async function withPage(options: BrowserContextOptions, use: (page: Page) => Promise<void>): Promise<void> {
    const context = await browser.newContext(options);
    const blocked: string[] = [];
    try {
      const page = await context.newPage();
      page.on('console', (message) => {
        if (/Content Security Policy/i.test(message.text())) blocked.push(message.text());
      });
      page.on('dialog', () => blocked.push('a dialog opened'));
      await use(page);
    } finally {
      await closeContext(context);
    }
    assert.deepEqual(blocked, []);
  }

  /** Consents and logs in, which leads back to the client. */
  async function logIn(page: Page): Promise<void> {
    await page.getByRole('button', { name: 'Allow and log in' }).click();
    await page.getByLabel('Name').fill('Anna');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Log in' }).click();
  }

  /** Removes the automatic redirect from the page after the form, so that the page can be examined. */
  async function stayAfterConsent(page: Page): Promise<void> {
    await page.route('**/consent', async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replace(/<meta http-equiv="refresh"[^>]*>/, '');
      await route.fulfill({ response, body });
    });
  }

  /** Returns the label and the outline of the focused button. */
  async function describeFocus(page: Page): Promise<string> {
    const label = await page.locator(':focus').textContent();
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outline');
    return `${label}: ${outline}`;
  }

  /** Returns the parameters that the browser brought back to the agent. */
  async function getRedirectParams(page: Page): Promise<Record<string, string>> {
    await page.getByText('The agent has it').waitFor();
    const url = new URL(page.url());
    assert.equal(url.origin + url.pathname, `${agent.url}/callback`);
    return Object.fromEntries(url.searchParams);
  }

  it('can be used with only the keyboard, to allow and to cancel [mcp 59]', async () => {
    const url = await authorizationUrl('Claude Code');
    await withPage({}, async (page) => {
      await page.goto(url);
      await page.keyboard.press('Tab');
      assert.match(await describeFocus(page), /^Allow and log in: .*solid 2px$/);
      await page.keyboard.press('Tab');
      assert.match(await describeFocus(page), /^Cancel: .*solid 2px$/);
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Enter');
      await page.waitForURL(`${provider.url}/login/**`);
      await page.keyboard.type('Anna');
      await page.keyboard.press('Tab');
      await page.keyboard.type(password);
      await page.keyboard.press('Enter');
      const { code, ...more } = await getRedirectParams(page);
      assert.match(code ?? '', /^\w{43}$/);
      assert.deepEqual(more, { state: 'of-the-agent', iss: `${toolhost.url}/mcp/items` });

      await page.goto(url);
      await page.keyboard.press('Tab');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Space');
      const { error, state, iss } = await getRedirectParams(page);
      assert.deepEqual([error, state, iss], ['access_denied', 'of-the-agent', `${toolhost.url}/mcp/items`]);
    });
  });

  it('leaves a person whose client is a program on a page that confirms the login', async () => {
    const url = await authorizationUrl('Cursor', programRedirect);
    await withPage({}, async (page) => {
      await page.goto(url);
      const started = page.waitForEvent('request', (request) => request.url().startsWith(programRedirect));
      await logIn(page);
      const redirectParams = new URL((await started).url()).searchParams;
      assert.match(redirectParams.get('code') ?? '', /^\w{43}$/);
      assert.equal(redirectParams.get('iss'), `${toolhost.url}/mcp/items`);
      await page.getByRole('heading', { name: 'You are logged in' }).waitFor();
      const linkUrl = await page.getByRole('link', { name: 'Back to your client' }).getAttribute('href');
      assert.equal(linkUrl, (await started).url());
    });
  });

  it('shows adversarial names as plain text', async () => {
    for (const [name, shownName = name] of adversarialNames) {
      const url = await authorizationUrl(name);
      await withPage({}, async (page) => {
        await page.goto(url);
        assert.equal(await page.locator('h1').textContent(), `Allow “${shownName}” to use Project tracker?`);
        assert.equal(await page.locator('dl dd bdi').first().textContent(), shownName);
        assert.equal(await page.title(), `Allow ${shownName}?`);
        assert.equal(await page.locator('script, img, h1 ~ h1').count(), 0);
      });
    }
  });

  it('blocks every other resource with its content security policy', async () => {
    const url = await authorizationUrl('Claude Code');
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(url);
    const blocked = await page.evaluate(`new Promise((resolve) => {
      const violations = [];
      document.addEventListener('securitypolicyviolation', (event) => {
        violations.push(event.effectiveDirective);
        if (violations.length === 4) resolve(violations.sort());
      });
      const place = document.createElement('div');
      place.innerHTML = '<style>a{}</style><img src="/x.png"><iframe src="/"></iframe>';
      const script = document.createElement('script');
      script.text = 'document.title = "owned"';
      document.body.append(place, script);
    })`);
    assert.deepEqual(blocked, ['frame-src', 'img-src', 'script-src-elem', 'style-src-elem']);
    assert.notEqual(await page.title(), 'owned');
    await context.close();
  });

  /** Asserts that the page does not scroll sideways. */
  async function assertFits(page: Page): Promise<void> {
    const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
    assert.ok(overflow <= 0, `${page.url()} is ${overflow} px too wide`);
  }

  /** Asserts that axe finds nothing serious on the page with this heading. */
  async function assertAccessible(page: Page, heading: string | RegExp): Promise<void> {
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await assertFits(page);
    await page.evaluate(axe.source);
    const { violations, passes } = (await page.evaluate('axe.run()')) as axe.AxeResults;
    assert.ok(passes.some(({ id }) => id === 'color-contrast'));
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    assert.deepEqual(serious, []);
  }

  for (const options of views) {
    it(`fits and is accessible: ${options.colorScheme}, ${options.viewport.width} px`, async () => {
      await withPage(options, async (page) => {
        const url = await authorizationUrl('Claude Code');
        await stayAfterConsent(page);
        await page.goto(url);
        await assertAccessible(page, /^Allow/);
        await page.getByRole('button', { name: 'Allow and log in' }).click();
        await assertAccessible(page, /^Log in at/);
        await page.goto(url);
        await page.getByRole('button', { name: 'Cancel' }).click();
        await assertAccessible(page, 'You did not log in');
        await page.goto(url.replace('client_id=thc_', 'client_id=other_'));
        await assertAccessible(page, 'Something went wrong');
        await page.goto(`${toolhost.url}/mcp/absent/desk`);
        await assertAccessible(page, 'There is no server at this URL');
        const longUri = `https://${'long-name.'.repeat(20)}example/callback`;
        const longUrl = await authorizationUrl('Claude Code', longUri);
        await page.goto(longUrl.replace('response_type=code', 'response_type=token'));
        await assertAccessible(page, 'This login cannot start');
        for (const large of largeNames) {
          await page.goto(await authorizationUrl(large));
          await assertFits(page);
        }
      });
      await withPage(options, async (page) => {
        await page.goto(await authorizationUrl('Cursor', programRedirect));
        await logIn(page);
        await assertAccessible(page, 'You are logged in');
      });
    });
  }
});

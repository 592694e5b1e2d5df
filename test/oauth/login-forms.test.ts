import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import type { BrowserContext, Locator, Page } from 'playwright-core';
import { checkPage } from '../support/browser/check-page.ts';
import { launchChromium } from '../support/browser/chromium.ts';
import { closeContext } from '../support/browser/dashboard.ts';
import { isFocused, pressKeyOn, typeInto } from '../support/browser/keyboard.ts';
import { password, startHonestProvider } from '../support/oauth/honest-provider.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** The widths and color schemes in which the pages must work. */
const views = [400, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ colorScheme, viewport: { width, height: 900 } })),
);

const fields = [
  {
    name: 'API_TOKEN',
    label: 'Personal access token',
    help: 'https://support.example.com/tokens',
    pattern: 'key-[a-z-]+',
  },
  { name: 'team', label: 'Team', secret: false, pattern: '[a-z0-9-]+' },
  { name: 'region', label: 'Region', secret: false, optional: true },
];

describe('forms of a login in Chromium', { concurrency: 2 }, async () => {
  const [provider, upstream, port] = await Promise.all([
    startHonestProvider(),
    startRecordingUpstream(),
    findFreePort(),
  ]);
  const signIn = await provider.createSignInClient(`http://127.0.0.1:${port}`);
  const toolhost = await startToolhost({ egressPorts: [upstream.port], env: { PORT: String(port), ...signIn } });
  const createTool = (name: string, description: string, method = 'GET') => ({
    ...{ name, description, method, url: `${upstream.url}/teams/{{team}}/tickets` },
    headers: { 'x-region': '{{region}}' },
  });
  await toolhost.createServer({
    name: 'Support tickets',
    slug: 'tickets',
    authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
    login: { allow: { domains: ['people.example'] }, fields },
    tools: [createTool('list_tickets', 'Lists open tickets.'), createTool('close_tickets', 'Closes tickets.', 'POST')],
  });
  upstream.on('*', ({ headers }) => ({ status: headers.authorization?.includes('refused') ? 401 : 200, body: {} }));
  upstream.on('GET /callback', () => ({ headers: { 'content-type': 'text/html' }, body: '<h1>The agent has it</h1>' }));
  const browser = await launchChromium();
  after(async () => {
    await browser.close();
    await Promise.all([toolhost.stop(), upstream.close(), provider.close()]);
  });

  /** Opens a browser profile. */
  async function withContext(
    options: (typeof views)[number] | undefined,
    use: (context: BrowserContext) => Promise<void>,
  ): Promise<void> {
    const context = await browser.newContext(options);
    try {
      await use(context);
    } finally {
      await closeContext(context);
    }
  }

  /** Opens the consent page as a person, who signs in with the keyboard if this browser has not yet. */
  async function startLogin(
    page: Page,
    name: string,
    slug = 'tickets',
    serverName = 'Support tickets',
  ): Promise<{ redeem: () => Promise<string> }> {
    const issuer = `${toolhost.url}/mcp/${slug}`;
    const client = await registerClient({ issuer, name: 'Claude Code', redirectUri: `${upstream.url}/callback` });
    const { url, verifier } = client.authorization();
    await page.goto(url.href);
    if (page.url().startsWith(provider.url)) {
      await typeInto(page, page.getByLabel('Name'), name);
      await typeInto(page, page.getByLabel('Password'), password);
      await page.keyboard.press('Enter');
    }
    await page.getByRole('heading', { name: `Allow “Claude Code” to use ${serverName}?` }).waitFor();
    return {
      async redeem() {
        await page.getByText('The agent has it').waitFor();
        const reply = await client.redeem(new URL(page.url()).searchParams.get('code') ?? '', verifier);
        assert.equal(reply.status, 200, reply.text);
        return String(reply.body.access_token);
      },
    };
  }

  const token = (page: Page) => page.getByLabel('Personal access token');
  const team = (page: Page) => page.getByLabel('Team', { exact: true });
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

  async function allow(page: Page): Promise<void> {
    await pressKeyOn(page, button(page, 'Allow'));
    await page.getByRole('heading', { name: 'Your details for Support tickets' }).waitFor();
  }

  /** Asserts that the first invalid field has the focus, and that it and the summary state the problem. */
  async function assertProblems(page: Page, problems: [field: Locator, problem: RegExp][]): Promise<void> {
    const summary = page.getByRole('alert');
    await summary.waitFor();
    assert.equal(await page.title(), 'Error: Your details for Support tickets');
    const [first] = problems;
    assert.equal(await first?.[0].evaluate(isFocused), true, 'the first invalid field has no focus');
    assert.equal(await page.locator('[aria-invalid]').count(), problems.length);
    for (const [input, problem] of problems) {
      assert.equal(await input.getAttribute('aria-invalid'), 'true');
      assert.match(await getDescription(page, input), problem);
      assert.match((await summary.textContent()) ?? '', problem);
      await pressKeyOn(page, summary.getByRole('link', { name: await getLabel(page, input) }));
      assert.equal(await input.evaluate(isFocused), true, 'the link of the summary does not lead to the field');
    }
    await first?.[0].focus();
  }

  const getLabel = async (page: Page, input: Locator) =>
    (await page.locator(`label[for="${await input.getAttribute('id')}"]`).textContent()) ?? '';

  /** Returns the text that a screen reader reads after the label. */
  async function getDescription(page: Page, input: Locator): Promise<string> {
    const ids = (await input.getAttribute('aria-describedby'))?.split(' ') ?? [];
    const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
    return texts.join(' ');
  }

  /** Asserts that labels are above inputs, which are as wide as the form, easy to hit, and visibly focused. */
  async function assertUsable(page: Page): Promise<void> {
    const minHeight = (page.viewportSize()?.width ?? 0) > 640 ? 32 : 44;
    const form = await page.locator('form').boundingBox();
    for (const input of await page.locator('.field input').all()) {
      const box = await input.boundingBox();
      const label = await page.locator(`label[for="${await input.getAttribute('id')}"]`).boundingBox();
      assert.ok(box && label && form);
      assert.ok(box.height >= minHeight && box.width === form.width, JSON.stringify(box));
      assert.ok(label.y + label.height <= box.y, 'the label is not above the input');
    }
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outline');
    assert.match(String(outline), /solid 2px/);
  }

  for (const options of views) {
    it(`work by keyboard and are accessible: ${options.colorScheme}, ${options.viewport.width} px`, async () => {
      await withContext(options, async (context) => {
        const page = await context.newPage();
        const name = `anna-${options.viewport.width}-${options.colorScheme}`;
        const first = await startLogin(page, name);
        await page.getByText(`${name}@people.example`).waitFor();
        await page.getByText('It can change data with: close_tickets.').waitFor();
        await checkPage(page);
        await allow(page);
        assert.equal(await page.title(), 'Your details for Support tickets');
        await assertUsable(page);
        await checkPage(page);

        await page.keyboard.press('Enter');
        const missing = /Enter a value\./;
        await assertProblems(page, [
          [token(page), missing],
          [team(page), missing],
        ]);
        await assertUsable(page);
        await checkPage(page);

        await typeInto(page, token(page), 'key-refused');
        await typeInto(page, team(page), 'Not A Team');
        await page.keyboard.press('Enter');
        await assertProblems(page, [[team(page), /does not have the expected format \(\[a-z0-9-\]\+\)/]]);
        assert.equal(await team(page).inputValue(), 'Not A Team');
        assert.match(await getDescription(page, token(page)), /Enter it again; nothing has been stored yet/);
        await checkPage(page);

        await typeInto(page, token(page), 'key-refused');
        await typeInto(page, team(page), 'desk');
        await page.keyboard.press('Enter');
        const result = await toolhost.callTool('tickets', await first.redeem(), 'list_tickets');
        assert.equal(result.isError, true);

        const second = await startLogin(page, name);
        const details = page.locator('dl div').filter({ hasText: 'Your details' });
        assert.match((await details.textContent()) ?? '', /Personal access token\s*Refused by the API.*Team\s*Stored/s);
        // The owner of the server chose the labels, so they must not look like facts of the service.
        assert.equal(await page.locator('dt', { hasText: 'Personal access token' }).count(), 0);
        await checkPage(page);
        await allow(page);
        await assertProblems(page, [[token(page), /The API refused the stored value\. Enter a new one\./]]);
        assert.equal(await team(page).count(), 0);
        await checkPage(page);
        await typeInto(page, token(page), 'key-good');
        await page.keyboard.press('Enter');
        await toolhost.callTool('tickets', await second.redeem(), 'list_tickets');
        assert.equal(upstream.requests.at(-1)?.headers.authorization, 'Bearer key-good');
      });
    });
  }

  it('can be started again after the tab was closed, and store nothing until then', async () => {
    await withContext(undefined, async (context) => {
      const closed = await context.newPage();
      await startLogin(closed, 'bert');
      await allow(closed);
      await typeInto(closed, token(closed), 'key-of-closed-tab');
      await closed.close();
      const page = await context.newPage();
      const login = await startLogin(page, 'bert');
      assert.equal(await page.getByText('Stored').count(), 0);
      await allow(page);
      await typeInto(page, token(page), 'key-good');
      await typeInto(page, team(page), 'desk');
      await page.keyboard.press('Enter');
      assert.ok(await login.redeem());
    });
  });

  it('keep a stored secret whose field is left empty, and change other values', async () => {
    await withContext(undefined, async (context) => {
      const page = await context.newPage();
      const first = await startLogin(page, 'carl');
      await allow(page);
      await typeInto(page, token(page), 'key-good');
      await typeInto(page, team(page), 'desk');
      await page.keyboard.press('Enter');
      await first.redeem();
      const second = await startLogin(page, 'carl');
      await pressKeyOn(page, button(page, 'Change your details'));
      assert.match(await getDescription(page, token(page)), /Leave empty to keep the stored value/);
      assert.equal(await token(page).inputValue(), '');
      assert.equal(await team(page).inputValue(), 'desk');
      await typeInto(page, team(page), 'office');
      await page.keyboard.press('Enter');
      const access = await second.redeem();
      upstream.take();
      await toolhost.callTool('tickets', access, 'list_tickets');
      const { url, headers } = await upstream.waitForRequest();
      assert.deepEqual([url, headers.authorization], ['/teams/office/tickets', 'Bearer key-good']);
    });
  });

  it('name a host that depends on a person by the label of its field', async () => {
    const site = { name: 'site', label: 'Site', secret: false };
    await toolhost.createServer({
      name: 'Sites',
      slug: 'sites',
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      base_url: 'https://{{site}}.support.example',
      login: { allow: { domains: ['people.example'] }, fields: [{ name: 'API_TOKEN', label: 'Token' }, site] },
      tools: [{ name: 'list', description: 'Lists all items.', method: 'GET', url: '/items' }],
    });
    await withContext(undefined, async (context) => {
      const page = await context.newPage();
      await startLogin(page, 'dora', 'sites', 'Sites');
      await pressKeyOn(page, button(page, 'Allow'));
      assert.match(await getDescription(page, page.getByLabel('Token')), /Sent to ‹Site›\.support\.example\./);
    });
  });
});

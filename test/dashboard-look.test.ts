import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import axe from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { launchChromium } from './support/chromium.ts';
import { contextOf, patienceMs, watch } from './support/dashboard.ts';
import { eventually } from './support/eventually.ts';
import { type RecordingUpstream, startRecordingUpstream } from './support/recording-upstream.ts';
import { startToolhost, type TestToolhost } from './support/toolhost.ts';

const views: { name: string; options: BrowserContextOptions }[] = [400, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({
    name: `${colorScheme}, ${width} px`,
    options: { colorScheme, viewport: { width, height: 800 }, reducedMotion: 'reduce' },
  })),
);

const pages = [
  ['/servers', 'Servers'],
  ['/servers/new', 'New server'],
  ['/servers/new?from=form', 'New server'],
  ['/servers/items', 'Items'],
  ['/servers/items/try', 'Items'],
  ['/servers/items/connect', 'Items'],
  ['/servers/items/secrets', 'Items'],
  ['/servers/items/versions', 'Items'],
  ['/servers/items/options', 'Items'],
  ['/keys', 'API keys'],
  ['/calls', 'Calls'],
  ['/audit', 'Audit'],
  ['/settings', 'Settings'],
] as const;

/** JavaScript that the first page may load, compressed. */
const firstPageBytes = 350_000;

const markup = '<img src=x onerror=alert(1)></p><script>document.title="owned"</script>';
/** Turns the reading direction, has no width, or is no character. */
const hidden = '\u202e\u2066\u200b\u200d\u00ad\ufeff';

describe('the look of the dashboard', { concurrency: 2 }, () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let browser: Browser;

  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port] });
    await toolhost.createServer(serverConfig('items', 'Items', 'Reads items.'));
    await toolhost.callTool('items', await toolhost.key(), 'read');
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await Promise.all([toolhost?.stop(), upstream?.close()]);
  });

  function serverConfig(slug: string, name: string, description: string) {
    const input_schema = { q: { type: 'string', description, optional: true } };
    const tool = { name: 'read', description, method: 'GET', url: `${upstream.url}/items`, input_schema };
    return { name, slug, description, authentication: { type: 'Bearer', token: 'of-the-test' }, tools: [tool] };
  }

  /** A page of someone who is signed in; at its end nothing may have been blocked, failed or asked of other hosts. */
  async function signedIn(
    options: BrowserContextOptions,
    name: string,
    use: (page: Page) => Promise<void>,
  ): Promise<void> {
    const context = await contextOf(browser, toolhost, { name }, options);
    try {
      const page = await context.newPage();
      const seen = watch(page, toolhost.url);
      await use(page);
      assert.deepEqual(seen, { complaints: [], foreign: [] });
    } finally {
      await context.close();
    }
  }

  async function shown(page: Page, path: string, heading: string | RegExp): Promise<void> {
    await page.goto(path);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await page.waitForLoadState('networkidle');
    await eventually(async () => assert.equal(await page.getByRole('status', { name: 'Loading' }).count(), 0));
  }

  async function overflow(page: Page): Promise<number> {
    return Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  }

  /** What is too wide for the window and what axe finds serious. */
  async function faults(page: Page, path: string): Promise<string[]> {
    const found: string[] = [];
    const tooWide = await overflow(page);
    if (tooWide > 0) found.push(`${path} is ${tooWide} px too wide`);
    await page.evaluate(axe.source);
    const { violations, passes } = (await page.evaluate('axe.run()')) as axe.AxeResults;
    assert.ok(passes.some(({ id }) => id === 'color-contrast'));
    for (const { id, impact, nodes } of violations) {
      if (impact !== 'serious' && impact !== 'critical') continue;
      for (const node of nodes) found.push(`${path}: ${id}: ${node.html.slice(0, 200)}: ${node.failureSummary}`);
    }
    return found;
  }

  for (const { name, options } of views) {
    it(`fits, is accessible and asks nobody else: ${name}`, async () => {
      await signedIn(options, 'Anna', async (page) => {
        const found: string[] = [];
        for (const [path, heading] of pages) {
          await shown(page, path, heading);
          found.push(...(await faults(page, path)));
        }
        assert.deepEqual(found, []);
      });
    });

    it(`fits and is accessible for who is not signed in: ${name}`, async () => {
      const context = await browser.newContext({ baseURL: toolhost.url, ...options });
      context.setDefaultTimeout(patienceMs);
      const page = await context.newPage();
      const seen = watch(page, toolhost.url);
      await shown(page, '/', 'HTTP APIs in, MCP servers out');
      assert.deepEqual(await faults(page, 'the landing page'), []);
      assert.deepEqual(seen, { complaints: [], foreign: [] });
      await context.close();
    });
  }

  it('shows names and descriptions as the text that they are, with what is hidden made visible', async () => {
    const config = serverConfig('hostile', '<b>bold</b>', markup);
    await toolhost.createServer(config);
    const refused = await toolhost.rest('POST', '/servers', { body: { ...config, slug: 'other', name: `a${hidden}` } });
    assert.equal(refused.status, 400, 'a name has no hidden characters');
    const key = { name: '<b>key</b>', scopes: ['call'] };
    assert.equal((await toolhost.rest('POST', '/keys', { body: key })).status, 201);
    const name = `<b>Eve</b>${hidden}`;
    await signedIn({ viewport: { width: 1440, height: 900 } }, name, async (page) => {
      for (const path of [
        '/servers',
        '/servers/hostile',
        '/servers/hostile/try',
        '/servers/hostile/connect',
        '/servers/hostile/versions',
        '/servers/hostile/options',
        '/keys',
        '/audit',
        '/calls',
        '/settings',
      ]) {
        await shown(page, path, /./);
        assert.equal(await page.locator('main b, main script, main img').count(), 0, path);
        assert.doesNotMatch(await page.getByRole('main').innerText(), /\p{Cf}/u, path);
        assert.doesNotMatch(await page.title(), /owned|\p{Cf}/u, path);
        assert.ok((await overflow(page)) <= 0, path);
      }
      await page.goto('/servers/hostile');
      const heading = page.getByRole('heading', { level: 1 });
      assert.equal(await heading.textContent(), '<b>bold</b>');
      await page.goto('/keys');
      await page.getByText('<b>key</b>', { exact: true }).first().waitFor();
      await page.goto('/settings');
      await page
        .getByRole('table', { name: 'Members' })
        .getByText(`<b>Eve</b>${'\ufffd'.repeat(hidden.length)}`)
        .waitFor();
    });
  });

  it('loads little JavaScript for the first page', async () => {
    await signedIn({}, 'Anna', async (page) => {
      await shown(page, '/servers', 'Servers');
      const script = `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js'))
        .map(({ name, transferSize }) => [name, transferSize])`;
      const files = (await page.evaluate(script)) as [string, number][];
      const sum = files.reduce((total, [, size]) => total + size, 0);
      assert.ok(files.length > 0 && sum > 10_000, 'it is measured');
      assert.ok(sum < firstPageBytes, `${sum} bytes: ${JSON.stringify(files)}`);
    });
  });

  it('is used with the keyboard: the first stop leads to the page', async () => {
    await signedIn({ viewport: { width: 1440, height: 900 } }, 'Anna', async (page) => {
      await shown(page, '/servers', 'Servers');
      await page.keyboard.press('Tab');
      assert.equal(await page.locator(':focus').textContent(), 'Skip to the page');
      await page.keyboard.press('Enter');
      await eventually(async () => assert.equal(await page.locator(':focus').getAttribute('id'), 'main'));
    });
  });
});

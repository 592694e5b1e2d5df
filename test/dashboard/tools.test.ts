import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { checkPage } from '../support/browser/check-page.ts';
import { launchChromium } from '../support/browser/chromium.ts';
import { button, choose, contextOf, type Person, watch } from '../support/browser/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** A machine that does many things at once is slow. */
const patienceMs = 30_000;

describe('tools that are switched off or tried out in the dashboard', { concurrency: 2 }, () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let browser: Browser;

  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port], env: { CALL_RETENTION_DAYS: '12' } });
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await Promise.all([toolhost?.stop(), upstream?.close()]);
  });

  const serve = (slug: string, more: Json = {}) =>
    toolhost.createServer({
      name: `The ${slug}`,
      slug,
      tools: ['read', 'write'].map((name) => ({
        name,
        description: `To ${name} an item of the API.`,
        method: 'GET',
        url: `${upstream.url}/${name}`,
      })),
      ...more,
    });

  /** A page of a person; at its end nothing may have been complained about. */
  async function at(
    path: string,
    use: (page: Page) => Promise<void>,
    person: Person = { name: 'Anna' },
    options?: BrowserContextOptions,
  ): Promise<void> {
    const context = await contextOf(browser, toolhost, person, options);
    context.setDefaultTimeout(patienceMs);
    try {
      const page = await context.newPage();
      const { complaints, foreign } = await watch(page, toolhost.url);
      await page.goto(path);
      await use(page);
      assert.deepEqual([...complaints, ...foreign], []);
    } finally {
      await context.close();
    }
  }

  const enabled = (page: Page, name: string) => page.getByRole('switch', { name: `Agents get ${name}`, exact: true });
  const listed = async (slug: string) => {
    const { body } = await toolhost.rpc(slug, 'of-the-caller', 'tools/list');
    return (body.result as { tools: Json[] }).tools.map(({ name }) => name);
  };

  it('switches a tool off and on by keyboard, in the form and in the JSON', async () => {
    await serve('switched');
    await at('/servers/switched', async (page) => {
      const json = page.getByRole('textbox', { name: 'Configuration as JSON' });
      await enabled(page, 'write').focus();
      await page.keyboard.press('Space');
      assert.equal(await enabled(page, 'write').isChecked(), false);
      await page.getByText('Disabled', { exact: true }).waitFor();
      assert.match(await json.inputValue(), /"disabled": true/);
      await button(page, 'Save').click();
      await page.getByText('Everything is saved').waitFor();
      assert.deepEqual(await listed('switched'), ['read']);

      await json.fill((await json.inputValue()).replace('"disabled": true', '"disabled": false'));
      await eventually(async () => assert.equal(await enabled(page, 'write').isChecked(), true));
      await page.getByText('Disabled', { exact: true }).waitFor({ state: 'hidden' });
      await enabled(page, 'read').focus();
      await page.keyboard.press('Space');
      await button(page, 'Save').click();
      await page.getByText('Everything is saved').waitFor();
      assert.deepEqual(await listed('switched'), ['write']);
      await page.goto('/servers/switched/versions');
      await button(page, 'Changes since version 2').click();
      const changes = page.getByLabel('Changes of version 3');
      await changes.getByText('"disabled": true').first().waitFor();
    });
  });

  it('completes the field in the JSON view', async () => {
    await serve('completed');
    await at('/servers/completed', async (page) => {
      const json = page.getByRole('textbox', { name: 'Configuration as JSON' });
      await json.fill('{ "tools": [ { "disa');
      await button(page, 'disabled').click();
      assert.match(await json.inputValue(), /"tools": \[ \{ "disabled"/);
    });
  });

  it('offers only enabled tools to try, and says so where there are none', async () => {
    await serve('half');
    const { body } = await toolhost.rest('GET', '/servers/half');
    const tools = (body.config as { tools: Json[] }).tools;
    const store = (next: Json[]) => toolhost.rest('PATCH', '/servers/half', { body: { tools: next } });
    await store(tools.map((tool) => ({ ...tool, disabled: tool.name === 'read' })));
    await at('/servers/half/try?tool=read', async (page) => {
      const tool = page.getByRole('combobox', { name: 'Tool', exact: true });
      assert.equal(await tool.inputValue(), 'write');
      await tool.click();
      assert.deepEqual(await page.getByRole('option').allTextContents(), ['write']);
      await store(tools.map((one) => ({ ...one, disabled: true })));
      await page.reload();
      await page.getByText('Every tool is disabled. Enable one under Configuration first.').waitFor();
      await page.goto('/servers/half');
      await page.getByText('Every tool of the server is disabled; agents see none.').waitFor();
    });
  });

  it('shows a viewer which tools are off, and no switch', async () => {
    await serve('viewed', {
      tools: [
        { name: 'off', description: 'Is switched off.', method: 'GET', url: `${upstream.url}/off`, disabled: true },
      ],
    });
    const viewer: Person = { name: 'Vera', role: 'viewer' };
    const look = async (page: Page) => {
      await page.getByText('Disabled', { exact: true }).waitFor();
      assert.equal(await page.getByRole('switch', { name: /^Agents get/ }).count(), 0);
    };
    await at('/servers/viewed', look, viewer);
  });

  it('lists a call from the dashboard as a try-out of that person, and filters by it', async () => {
    await serve('tried');
    await toolhost.callTool('tried', 'of-the-caller', 'write');
    await at(
      '/servers/tried/try?tool=read',
      async (page) => {
        await button(page, 'Call the tool').click();
        await page.getByRole('region', { name: 'Result' }).waitFor();
        await page.goto('/calls?server=tried');
        const rows = page.getByRole('table', { name: 'Calls' }).locator('tbody tr');
        await eventually(async () => assert.equal(await rows.count(), 2));
        await choose(page, 'Caller', 'Try-out');
        await eventually(async () => assert.equal(await rows.count(), 1));
        assert.equal(new URL(page.url()).searchParams.get('caller'), 'try_out');
        assert.match((await rows.textContent()) ?? '', /read.*Try-out/);
        await rows.getByRole('button', { name: 'read' }).click();
        await page.getByRole('dialog').getByText('Try-out by Berta').waitFor();
        const csv = await page.getByRole('link', { name: 'Export as CSV' }).getAttribute('href');
        assert.match(csv ?? '', /caller_kind=try_out/);
      },
      { name: 'Berta' },
    );
  });

  it('says how long calls are kept, and who changed what by name', async () => {
    const made = await toolhost.rest('POST', '/keys', { body: { name: 'Key of the build', scopes: ['manage'] } });
    const key = String(made.body.key);
    await toolhost.rest('POST', '/servers', { key, body: { name: 'By a key', slug: 'by-a-key', tools: [] } });
    await at('/settings', async (page) => {
      await page.getByText('Calls: 12 days, without arguments and bodies.').waitFor();
      await page.goto('/audit');
      const row = page.getByRole('row').filter({ hasText: 'by-a-key' });
      await row.getByText('Key of the build').waitFor();
    });
  });

  it('is in no frame wider than the window while the text of a tooltip changes', async () => {
    await serve('growing');
    const look = async (page: Page) => {
      await enabled(page, 'write').focus();
      await page.getByRole('tooltip').waitFor();
      await page.keyboard.press('Space');
      await page.getByRole('tooltip', { name: 'Kept here, hidden from agents' }).waitFor();
    };
    await at('/servers/growing', look, { name: 'Anna' }, { viewport: { width: 400, height: 900 } });
  });

  const views = [
    ['light', 1440],
    ['dark', 400],
  ] as const;
  for (const [colorScheme, width] of views) {
    it(`fits and is accessible: ${colorScheme}, ${width} px`, async () => {
      const slug = `seen-${width}`;
      await serve(slug);
      const look = async (page: Page) => {
        await enabled(page, 'write').focus();
        await page.keyboard.press('Space');
        assert.equal(await enabled(page, 'write').isChecked(), false);
        await checkPage(page);
      };
      await at(`/servers/${slug}`, look, { name: 'Anna' }, { colorScheme, viewport: { width, height: 900 } });
    });
  }
});

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { CDPSession, Page } from 'playwright-core';
import { checkPage } from '../../support/browser/check-page.ts';
import { button, field, getJsonEditor, showView } from '../../support/browser/dashboard.ts';
import { openPage, pressOn, save, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';

describe('the editor of a server with many tools', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    // A busy machine may reject the large configuration at first.
    for (const count of [4, 40, 1000])
      await eventually(() => dashboard.toolhost.createServer(createConfig(count)), 60_000);
  });

  const createConfig = (count: number) => {
    const tools = Array.from({ length: count }, (_, index) => ({
      name: `tool_${index}`,
      description: `Reads the things of group ${index % 10}.`,
      method: index === 700 ? 'DELETE' : 'GET',
      url: `${dashboard.upstream.url}/things/${index}`,
      input_schema: {},
    }));
    // Each configuration has a warning, which is rechecked after each keystroke.
    return dashboard.config(`sized-${count}`, { tools, variables: { unused: { value: 'x' } } });
  };

  /** Measures the function calls of an interaction, as counted by V8, and the DOM nodes of the page after it. */
  async function measureCost(page: Page, use: () => Promise<void>): Promise<Cost> {
    const session: CDPSession = await page.context().newCDPSession(page);
    await session.send('Profiler.enable');
    await session.send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    await session.send('Profiler.takePreciseCoverage');
    await use();
    const { result } = await session.send('Profiler.takePreciseCoverage');
    await session.send('Profiler.stopPreciseCoverage');
    const own = result.filter(({ url }) => url.startsWith(dashboard.toolhost.url));
    const calls = own
      .flatMap(({ functions }) => functions)
      .reduce((sum, { ranges }) => sum + (ranges[0]?.count ?? 0), 0);
    return { calls, nodes: Number(await page.evaluate('document.querySelectorAll("*").length')) };
  }

  it('does the same work per keystroke with 1,000 tools as with 4', async (t) => {
    const costs: Cost[] = [];
    for (const count of [4, 40, 1000]) {
      const page = await openPage(t, dashboard, `/servers/sized-${count}/tools`);
      await button(page.getByRole('table', { name: 'Tools' }), 'tool_2').click();
      const text = field(page, 'Tool description');
      await text.press('End');
      await page.locator('td[data-figure=tokens]', { hasText: /\d/ }).first().waitFor();
      const type = async () => {
        const answer = page.waitForResponse((response) => response.url().endsWith('/api/v1/check'));
        await text.pressSequentially('!');
        await answer;
        await page.getByText(/^Unsaved changes/).waitFor();
      };
      // Waits until the work of opening the page has ended.
      await type();
      costs.push(await measureCost(page, type));
    }
    const [few, forty, many] = costs as [Cost, Cost, Cost];
    const seen = JSON.stringify(costs);
    assert.ok(few.calls > 100, seen);
    assert.ok(many.calls < few.calls * 1.2 && forty.calls < few.calls * 1.2, seen);
    // The table renders only the rows that fit in it.
    assert.ok(many.nodes < forty.nodes * 1.1 && many.nodes < few.nodes * 2, seen);
  });

  it('filters tools, opens one with the keyboard, and restores it from its URL, also after a rename', async (t) => {
    const page = await openPage(t, dashboard, '/servers/sized-1000/tools');
    const table = page.getByRole('table', { name: 'Tools' });
    await table.waitFor();
    const height = Number(await page.evaluate('document.body.scrollHeight'));
    assert.ok(height < 4000, `${height} px`);
    await page.getByRole('textbox', { name: 'Filter tools' }).fill('delete things');
    await page.getByText('1 of 1000 tools').waitFor();
    await pressOn(button(table, 'tool_700'));
    await page.getByRole('dialog', { name: 'tool_700' }).waitFor();
    await eventually(async () => assert.equal(new URL(page.url()).searchParams.get('tool'), 'tool_700'));
    await checkPage(page);
    await page.reload();
    assert.equal(await field(page, 'Tool name').inputValue(), 'tool_700');
    await field(page, 'Tool name').fill('remove_700');
    await save(page);
    await page.getByRole('dialog', { name: 'remove_700' }).waitFor();
    await eventually(() => assert.equal(new URL(page.url()).searchParams.get('tool'), 'remove_700'));
    await page.setViewportSize({ width: 400, height: 900 });
    await checkPage(page);
    await button(page, 'Close').click();
    // The column is wide enough for the name in two lines.
    const name = button(table, 'remove_700');
    await eventually(async () => assert.ok(((await name.boundingBox())?.width ?? 0) > 80));
    await page.emulateMedia({ colorScheme: 'dark' });
    await checkPage(page);
  });

  it('finds text in the JSON that is not rendered, and returns the focus', async (t) => {
    const page = await openPage(t, dashboard, '/servers/sized-1000/tools');
    await showView(page, 'JSON');
    const { json } = getJsonEditor(page);
    await json.focus();
    assert.equal(await json.getByText('"tool_900"').count(), 0);
    await page.keyboard.press('Control+f');
    await field(page, 'Find').pressSequentially('"tool_900"');
    await page.keyboard.press('Enter');
    await json.locator('.cm-searchMatch-selected', { hasText: '"tool_900"' }).waitFor();
    await checkPage(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.setViewportSize({ width: 400, height: 900 });
    await checkPage(page);
    await page.keyboard.press('Escape');
    await field(page, 'Find').waitFor({ state: 'hidden' });
    assert.equal(await json.and(page.locator(':focus')).count(), 1);
  });

  it('names the secrets that a new host needs before it is saved, and links to them afterwards', async (t) => {
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    const [tool] = dashboard.config('x').tools as object[];
    const base_url = 'https://api.example.com';
    await dashboard.toolhost.createServer(
      dashboard.config('moving', { authentication, base_url, tools: [{ ...tool, url: '/items' }] }),
    );
    await dashboard.toolhost.rest('PUT', '/servers/moving/secrets/KEY', { body: { value: 'the-key-of-the-api' } });
    const page = await openPage(t, dashboard, '/servers/moving/settings');
    await field(page, 'Base URL').fill('https://api.example.org');
    const alert = page.getByRole('alert').filter({ hasText: 'The secret KEY was set for https://api.example.com' });
    await alert.getByText('Save first, then set it under Secrets.').waitFor();
    await checkPage(page);
    await button(page, 'Save').click();
    await alert.getByRole('link', { name: 'Set KEY again' }).click();
    assert.equal(await page.getByRole('textbox', { name: 'Secret name' }).inputValue(), 'KEY');
    await page.getByLabel(/^Secret value/).fill('the-key-of-the-api');
    await button(page, 'Save secret').click();
    await page.getByText(/other hosts/).waitFor({ state: 'hidden' });
    await page.getByRole('link', { name: 'Configuration', exact: true }).click();
    await field(page, 'Base URL').waitFor();
    await alert.waitFor({ state: 'hidden' });
  });
});

type Cost = { calls: number; nodes: number };

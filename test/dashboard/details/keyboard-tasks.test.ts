import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { formatStep, startStubModel } from '../../support/agents/stub-model.ts';
import { checkPage } from '../../support/browser/check-page.ts';
import { button, field, startDashboard, tab } from '../../support/browser/dashboard.ts';
import { pressKeyOn, tabTo, typeInto } from '../../support/browser/keyboard.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import { getStoredConfig, openPage } from '../../support/browser/use-dashboard.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';
import { useFixtures } from '../../support/use-fixtures.ts';

const wide = { colorScheme: 'light', viewport: { width: 1440, height: 900 } } as const;
const narrow = { colorScheme: 'dark', viewport: { width: 400, height: 800 } } as const;

for (const view of [wide, narrow])
  describe(`a keyboard user of the dashboard, ${view.colorScheme}, ${view.viewport.width} px`, () => {
    const fixtures = useFixtures();
    const model = fixtures.start(startStubModel);
    const dashboard = fixtures.start(() => startDashboard([Number(new URL(model.url).port)]));
    const open = (t: TestContext, path: string) => openPage(t, dashboard, path, { options: view });
    const dialog = (page: Page) => page.getByRole('dialog');
    const row = (page: Page, table: string, text: string) =>
      page.getByRole('table', { name: table }).getByRole('row').filter({ hasText: text });
    const getStoredTools = async (slug: string) => (await getStoredConfig<{ tools: Json[] }>(dashboard, slug)).tools;

    it('reads from the home page why a call failed', async (t) => {
      const { toolhost, upstream, config } = dashboard;
      upstream.on('GET /items', () => ({ status: 503, body: { error: 'down' } }));
      await toolhost.createServer(config('failing'));
      await toolhost.callTool('failing', await toolhost.createKey(), 'read', { count: 1 });
      const page = await open(t, '/');
      await pressKeyOn(page, button(row(page, 'Failures', 'failing'), /^read/));
      await dialog(page).getByText('Reason').waitFor();
      await checkPage(page);
      await page.keyboard.press('Escape');
      await dialog(page).waitFor({ state: 'hidden' });
    });

    it('copies a server from staging to production', async (t) => {
      const { toolhost, config } = dashboard;
      await toolhost.createServer(config('staging', { authentication: { type: 'Bearer', token: 'of-staging-0123' } }));
      const page = await open(t, '/servers/staging');
      await pressKeyOn(page, button(page, 'Duplicate to…'));
      await dialog(page).waitFor();
      await page.keyboard.type('production');
      await typeInto(page, field(dialog(page), 'Copy base URL'), 'https://production.example.com');
      await typeInto(page, dialog(page).getByLabel('authentication.token'), 'of-production-0123');
      await dialog(page).getByText('read: address changed').waitFor();
      await checkPage(page);
      await pressKeyOn(page, button(dialog(page), 'Create copy'));
      await page.waitForURL('**/servers/production');
      assert.match(JSON.stringify(await getStoredTools('production')), /https:\/\/production\.example\.com\/items/);
    });

    it('compares two versions and restores the older one', async (t) => {
      const { toolhost, config } = dashboard;
      await toolhost.createServer(config('versioned'));
      for (const timeout_ms of [1_000, 2_000, 3_000])
        await toolhost.rest('PATCH', '/servers/versioned/tools/read', { body: { timeout_ms } });
      const page = await open(t, '/servers/versioned/versions');
      await pressKeyOn(page, button(page, 'Compare version 2'));
      const changes = page.getByRole('region', { name: 'Changes from version 2 to version 4' });
      await changes.getByText('read: timeout changed').waitFor();
      await checkPage(page);
      await pressKeyOn(page, button(page, 'Restore version 2'));
      await pressKeyOn(page, button(dialog(page), 'Restore'));
      await page.getByRole('cell', { name: /Restores version 2$/ }).waitFor();
      assert.equal((await getStoredTools('versioned'))[0]?.timeout_ms, 1_000);
    });

    it('opens the changes of an agent from its key', async (t) => {
      const { toolhost, config } = dashboard;
      await toolhost.createServer(config('changed'));
      const { body } = await toolhost.rest('POST', '/keys', { body: { name: 'Agent', scopes: ['manage'] } });
      await toolhost.rest('PATCH', '/servers/changed', { key: String(body.key), body: { description: 'Other.' } });
      const page = await open(t, '/keys');
      await pressKeyOn(page, page.getByRole('link', { name: 'Changes by Agent' }));
      await row(page, 'Changes', 'Changed a server').waitFor();
      await checkPage(page);
    });

    it('creates and tests a webhook', async (t) => {
      const { upstream } = dashboard;
      upstream.on('POST /hook', () => ({ status: 204 }));
      const page = await open(t, '/notifications');
      await pressKeyOn(page, button(page, 'New webhook'));
      await typeInto(page, field(dialog(page), 'URL'), `${upstream.url}/hook`);
      await checkPage(page);
      await pressKeyOn(page, button(dialog(page), 'Create webhook'));
      await pressKeyOn(page, button(page, 'Send test'));
      await waitForToast(page, `Delivered to ${upstream.url}`);
    });

    it('asks a model that calls three tools', async (t) => {
      const { toolhost, upstream, config } = dashboard;
      upstream.on('GET /items', () => ({ body: [{ id: 17 }] }));
      upstream.on('POST /items', () => ({ status: 201, body: { id: 18 } }));
      const [read] = config('shop').tools as Json[];
      const tools = [read, { ...read, name: 'count' }, { ...read, name: 'add', method: 'POST' }];
      await toolhost.createServer(config('shop', { tools }));
      const script = ['read', 'count', 'add'].map((name) => formatStep(name, { count: 1 })).join(' ');
      const page = await open(t, '/servers/shop');
      await pressKeyOn(page, tab(page, 'Playground'));
      await tabTo(page, page.getByRole('combobox', { name: 'API', exact: true }));
      await page.keyboard.press('ArrowDown');
      await page.getByRole('option', { name: 'OpenAI-compatible' }).waitFor();
      for (const key of ['ArrowDown', 'Enter']) await page.keyboard.press(key);
      await typeInto(page, field(page, 'Model name'), 'stub');
      await typeInto(page, field(page, 'Base URL'), `${model.url}/v1`);
      await typeInto(page, field(page, 'Question'), `Add one. ${script}`);
      await page.keyboard.press('Enter');
      await pressKeyOn(page, button(dialog(page), 'Call tool'));
      const log = page.getByRole('log', { name: 'Conversation' });
      await log.getByText('The script has ended.').waitFor();
      assert.equal(await log.getByRole('region', { name: /^Call to/ }).count(), 3);
      await checkPage(page);
    });
  });

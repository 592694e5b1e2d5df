import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page, Route } from 'playwright-core';
import { button, type Dashboard, startDashboard } from '../../support/browser/dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import { drawn } from '../../support/upstreams/held-answers.ts';

/** How much a page may jump while it loads, by the measure of browsers. */
const mostShift = 0.1;

const measureShifts = `window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({ type: 'layout-shift', buffered: true });`;

describe('the feel of the dashboard', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
    const { toolhost, config } = dashboard;
    await toolhost.createServer(config('felt'));
    const key = await toolhost.key();
    for (const args of [{ count: 1 }, { count: 2 }, {}]) await toolhost.callTool('felt', key, 'read', args);
  });
  after(() => dashboard?.stop());

  async function loaded(page: Page): Promise<void> {
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForLoadState('networkidle');
    await eventually(async () => assert.equal(await page.getByRole('status', { name: 'Loading' }).count(), 0));
  }

  /** Lets an answer through when the page has been drawn without it, so that it moves what is below. */
  const afterDrawing = (page: Page) => async (route: Route) => {
    const response = await route.fetch();
    if (!route.request().url().endsWith('/session')) {
      await page.locator('h1, [role=status]').first().waitFor();
      await drawn(page);
    }
    await route.fulfill({ response });
  };

  for (const width of [400, 1440]) {
    it(`does not jump while a page loads, however late its answers come: ${width} px`, async () => {
      await dashboard.at(
        '/servers',
        async (page) => {
          await page.addInitScript(measureShifts);
          for (const path of [
            '/servers',
            '/servers/felt',
            '/servers/felt/try',
            '/servers/felt/connect',
            '/keys',
            '/calls',
            '/audit',
            '/settings',
          ]) {
            await page.route((url) => url.pathname.startsWith('/api/v1/'), afterDrawing(page));
            await page.goto(path);
            await loaded(page);
            const shifted = Number(await page.evaluate('window.shifted'));
            assert.ok(shifted < mostShift, `${path}: ${shifted}`);
            // Pages that ask again by themselves may wait for an answer when they are left.
            await page.unrouteAll({ behavior: 'ignoreErrors' });
          }
        },
        { options: { viewport: { width, height: 900 } } },
      );
    });
  }

  it('tells times in the zone of the reader, and the exact time on hover', async () => {
    for (const timezoneId of ['Asia/Tokyo', 'America/New_York']) {
      const use = async (page: Page) => {
        const time = page.getByRole('table', { name: 'Changes' }).locator('time').first();
        await time.waitFor();
        const at = new Date((await time.getAttribute('datetime')) ?? '');
        const clock = { timeZone: timezoneId, hourCycle: 'h23', hour: '2-digit', minute: '2-digit' } as const;
        assert.ok((await time.textContent())?.includes(at.toLocaleTimeString('en', clock)), await time.innerHTML());
        const exact = at.toLocaleString('en', { timeZone: timezoneId, dateStyle: 'medium', timeStyle: 'long' });
        assert.equal(await time.getAttribute('title'), exact);
        await page.getByRole('link', { name: 'Servers', exact: true }).click();
        const ago = page.getByRole('table', { name: 'Servers' }).locator('time').first();
        assert.match((await ago.textContent()) ?? '', /ago|just now/);
        const changedAt = new Date((await ago.getAttribute('datetime')) ?? '');
        const day = changedAt.toLocaleString('en', { timeZone: timezoneId, dateStyle: 'medium' });
        assert.ok((await ago.getAttribute('title'))?.includes(day));
      };
      await dashboard.at('/audit', use, { options: { timezoneId, viewport: { width: 1440, height: 900 } } });
    }
  });

  it('has an address for what is shown, and the back button leads back', async () => {
    await dashboard.at('/calls?outcome=invalid_arguments', async (page) => {
      const rows = page.getByRole('table', { name: 'Calls' }).getByRole('row');
      await rows.filter({ hasText: 'Invalid arguments' }).waitFor();
      assert.equal(await rows.count(), 2, 'the head and one call');
      await button(page, /read/).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('Invalid arguments').waitFor();
      const shared = page.url();
      await page.goBack();
      await dialog.waitFor({ state: 'hidden' });
      assert.equal(new URL(page.url()).search, '?outcome=invalid_arguments');
      await page.goto(shared);
      await dialog.getByText('Invalid arguments').waitFor();
      await page.goto('/servers');
      await page.getByRole('link', { name: 'The felt' }).click();
      await page.getByRole('link', { name: 'Try it' }).click();
      await button(page, 'Call tool').waitFor();
      await page.reload();
      await button(page, 'Call tool').waitFor();
      await page.goBack();
      await button(page, 'Duplicate to…').waitFor();
      await page.goBack();
      await page.getByRole('table', { name: 'Servers' }).waitFor();
      await page.goForward();
      await button(page, 'Duplicate to…').waitFor();
    });
  });

  const lists = [
    ['/servers', '/servers', 'Servers'],
    ['/keys', '/keys', 'API keys'],
    ['/calls', '/calls', 'Calls'],
    ['/audit', '/audit', 'Changes'],
    ['/settings', '/members', 'Members'],
    ['/servers/felt/versions', '/servers/felt/versions', undefined],
    ['/servers/felt/secrets', '/servers/felt/secrets', undefined],
  ] as const;

  it('says of every list that it is on its way, and why it did not come, with a way to try again', async () => {
    await dashboard.at('/servers', async (page) => {
      for (const [path, source, table] of lists) {
        const held = Promise.withResolvers<void>();
        const again = Promise.withResolvers<void>();
        let isRefused = true;
        const mine = (url: URL) => url.pathname === `/api/v1${source}`;
        await page.route(mine, async (route) => {
          await held.promise;
          if (!isRefused) {
            await again.promise;
            return route.fallback();
          }
          await route.fulfill({
            status: 503,
            contentType: 'application/problem+json',
            body: '{"detail":"a short pause"}',
          });
        });
        await page.goto(path);
        await page.getByRole('status', { name: 'Loading' }).first().waitFor();
        held.resolve();
        const alert = page.getByRole('main').getByRole('alert').filter({ hasText: 'A short pause.' });
        await alert.waitFor();
        // Some lists ask again by themselves: what they get must not take the button away before it is pressed.
        isRefused = false;
        await button(alert, 'Try again').click();
        again.resolve();
        await alert.waitFor({ state: 'hidden' });
        await page.unroute(mine);
        if (table) await page.getByRole('table', { name: table, exact: true }).waitFor();
        else await page.getByRole('heading', { level: 2 }).first().waitFor();
      }
    });
  });
});

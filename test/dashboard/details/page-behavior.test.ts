import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Page, Route } from 'playwright-core';
import { button } from '../../support/browser/dashboard.ts';
import { openPage, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import { waitForRender } from '../../support/upstreams/held-responses.ts';

/** Maximum cumulative layout shift of a page while it loads. */
const maxLayoutShift = 0.03;

const measureShiftsScript = `window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({ type: 'layout-shift', buffered: true });`;

describe('a page of the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, config } = dashboard;
    await toolhost.createServer(config('felt'));
    const key = await toolhost.createKey();
    for (const args of [{ count: 1 }, { count: 2 }, {}]) await toolhost.callTool('felt', key, 'read', args);
  });

  async function waitUntilLoaded(page: Page): Promise<void> {
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForLoadState('networkidle');
    await eventually(async () => assert.equal(await page.getByRole('status', { name: 'Loading' }).count(), 0));
  }

  /** Delays a response until the page has been drawn without it, so a shift becomes visible. */
  const delayUntilDrawn = (page: Page) => async (route: Route) => {
    const response = await route.fetch();
    if (!route.request().url().endsWith('/session')) {
      await page.locator('h1, [role=status]').first().waitFor();
      await waitForRender(page);
    }
    await route.fulfill({ response });
  };

  for (const width of [400, 1440])
    it(`does not shift its layout while late responses arrive, ${width} px wide`, async (t) => {
      const page = await openPage(t, dashboard, '/servers', { options: { viewport: { width, height: 900 } } });
      await page.addInitScript(measureShiftsScript);
      const serverPaths = ['', '/try', '/connect'].map((path) => `/servers/felt${path}`);
      const ownPaths = ['/keys', '/calls', '/usage', '/audit', '/notifications', '/settings'];
      for (const path of ['/', '/servers', ...serverPaths, ...ownPaths]) {
        await page.route((url) => url.pathname.startsWith('/api/v1/'), delayUntilDrawn(page));
        await page.goto(path);
        await waitUntilLoaded(page);
        const shifted = Number(await page.evaluate('window.shifted'));
        assert.ok(shifted < maxLayoutShift, `${path}: ${shifted}`);
        // Pages that poll may still wait for a response when they are left.
        await page.unrouteAll({ behavior: 'ignoreErrors' });
      }
    });

  it('shows times in the local time zone, and the exact time on hover', async (t) => {
    for (const timezoneId of ['Asia/Tokyo', 'America/New_York']) {
      const page = await openPage(t, dashboard, '/audit', { options: { timezoneId } });
      const time = page.getByRole('table', { name: 'Changes' }).locator('time').first();
      await time.waitFor();
      const at = new Date((await time.getAttribute('datetime')) ?? '');
      const clock = { timeZone: timezoneId, hourCycle: 'h23', hour: '2-digit', minute: '2-digit' } as const;
      assert.ok((await time.textContent())?.includes(at.toLocaleTimeString('en', clock)), await time.innerHTML());
      const exact = { timeZone: timezoneId, dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23' } as const;
      assert.equal(await time.getAttribute('title'), at.toLocaleString('en', exact));
      await page.getByRole('link', { name: 'Servers', exact: true }).click();
      const relativeTime = page.getByRole('table', { name: 'Servers' }).locator('time').first();
      assert.match((await relativeTime.textContent()) ?? '', /ago|just now/);
      const changedAt = new Date((await relativeTime.getAttribute('datetime')) ?? '');
      const day = changedAt.toLocaleString('en', { timeZone: timezoneId, dateStyle: 'medium' });
      assert.ok((await relativeTime.getAttribute('title'))?.includes(day));
    }
  });

  it('has a URL for its current state, and the back button restores the previous state', async (t) => {
    const page = await openPage(t, dashboard, '/calls?outcome=invalid_arguments');
    const rows = page.getByRole('table', { name: 'Calls' }).getByRole('row');
    await rows.filter({ hasText: 'Invalid arguments' }).waitFor();
    assert.equal(await rows.count(), 2, 'expected the header row and one call');
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
    await page.getByRole('radiogroup', { name: 'Time' }).waitFor();
    await page.goBack();
    await page.getByRole('table', { name: 'Servers' }).waitFor();
    await page.goForward();
    await page.getByRole('radiogroup', { name: 'Time' }).waitFor();
  });

  const lists = [
    ['/servers', '/servers', 'Servers'],
    ['/keys', '/keys', 'API keys'],
    ['/calls', '/calls', 'Calls'],
    ['/audit', '/audit', 'Changes'],
    ['/settings', '/members', 'Members'],
    ['/servers/felt/settings/versions', '/servers/felt/versions', undefined],
    ['/servers/felt/settings/secrets', '/servers/felt/secrets', undefined],
  ] as const;

  it('shows for every list that it is loading, or why it failed, with a retry button', async (t) => {
    const page = await openPage(t, dashboard, '/servers');
    for (const [path, source, table] of lists) {
      const held = Promise.withResolvers<void>();
      const retried = Promise.withResolvers<void>();
      let isRefused = true;
      const isListRequest = (url: URL) => url.pathname === `/api/v1${source}`;
      await page.route(isListRequest, async (route) => {
        await held.promise;
        if (!isRefused) {
          await retried.promise;
          return route.fallback();
        }
        const contentType = 'application/problem+json';
        await route.fulfill({ status: 503, contentType, body: '{"detail":"a short pause"}' });
      });
      await page.goto(path);
      await page.getByRole('status', { name: 'Loading' }).first().waitFor();
      held.resolve();
      const alert = page.getByRole('main').getByRole('alert').filter({ hasText: 'A short pause.' });
      await alert.waitFor();
      // Some lists poll: their response must not remove the button before it is pressed.
      isRefused = false;
      await button(alert, 'Try again').click();
      retried.resolve();
      await alert.waitFor({ state: 'hidden' });
      await page.unroute(isListRequest);
      if (table) await page.getByRole('table', { name: table, exact: true }).waitFor();
      else await page.getByRole('heading', { level: 2 }).first().waitFor();
    }
  });
});

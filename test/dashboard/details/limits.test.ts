import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { launchChromium } from '../../support/browser/chromium.ts';
import { button, field } from '../../support/browser/dashboard.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import { openPage } from '../../support/browser/use-dashboard.ts';
import { runOperatorOperation } from '../../support/toolhost/run-operator-operation.ts';
import { startToolhost } from '../../support/toolhost/toolhost.ts';
import { buildServerAt } from '../../support/upstream-configs.ts';
import { startRecordingUpstream } from '../../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../../support/use-fixtures.ts';

describe('the limits section of the dashboard', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  const toolhost = fixtures.start(() =>
    startToolhost({
      egressPorts: [upstream.port],
      env: { CALLS_PER_SECOND: '60', CONCURRENT_CALLS: '50', CONCURRENT_CALLS_PER_KEY: '0' },
      // An open circuit stays open while the page loads.
      runtimeOptions: { clock: () => 0 },
    }),
  );
  const browser = fixtures.start(launchChromium);

  const getLimits = async (slug: string) => (await toolhost.rest('GET', `/servers/${slug}/limits`)).body;
  async function openLimits(t: TestContext, slug: string): Promise<Page> {
    await toolhost.createServer(buildServerAt(slug, upstream.url));
    const options = { viewport: { width: 400, height: 900 } };
    const page = await openPage(t, { browser, toolhost }, `/servers/${slug}/settings/limits`, { options });
    await field(page, 'Calls per second').waitFor();
    return page;
  }

  it('[find A5] shows quotas with usage and retention in the settings', async (t) => {
    const page = await openLimits(t, 'counted');
    await page.goto('/settings');
    const row = (name: string) => page.getByRole('row').filter({ hasText: name });
    await row('Servers').getByText('1,000', { exact: true }).waitFor();
    await row('Changes per minute').getByText('Unlimited', { exact: true }).waitFor();
    await page.getByText('Audit events, revoked and expired keys, and revoked logins: 365 days.').waitFor();
  });

  it('sets limits by keyboard, shows the workspace limit that caps them, and restores defaults', async (t) => {
    const page = await openLimits(t, 'limited');
    const rate = field(page, 'Calls per second');
    assert.equal(await rate.getAttribute('placeholder'), '60');
    await page.getByText('Default. Workspace limit: 300.').waitFor();
    assert.equal(await button(page, 'Save limits').isDisabled(), true);
    await rate.focus();
    await page.keyboard.type('120');
    await page.keyboard.press('Tab');
    await page.keyboard.type('9000');
    await page.keyboard.press('Enter');
    await waitForToast(page, 'Saved the limits');
    await page.getByText('The workspace limit of 250 applies.').waitFor();
    const { calls_per_second, concurrent_calls } = await getLimits('limited');
    assert.deepEqual(calls_per_second, { limit: 120, from: 'set', set: 120 });
    assert.deepEqual(concurrent_calls, { limit: 250, from: 'workspace', set: 9000 });

    await button(page, 'Use defaults').click();
    await waitForToast(page, 'Restored the default limits');
    await button(page, 'Use defaults').waitFor({ state: 'detached' });
    assert.equal(await rate.inputValue(), '');
    assert.deepEqual((await getLimits('limited')).calls_per_second, { limit: 60, from: 'default' });
  });

  it('shows current usage, and that calls to a failing API are paused', async (t) => {
    upstream.on('*', () => ({ status: 503, body: {} }));
    await runOperatorOperation(toolhost, 'setWorkspaceLimits', 'local', { calls_per_second: 1000 });
    const page = await openLimits(t, 'failing');
    await page.getByText('Healthy').waitFor();
    await Promise.all(Array.from({ length: 25 }, () => toolhost.callTool('failing', 'token-of-the-caller', 'get')));
    await page.reload();
    await page.getByText('Calls paused').waitFor();
    await page.getByText(/next attempt in \d+ s/).waitFor();
    await page.getByText('Current use: 0 running, 0 queued, 0 rejected in the last minute.').waitFor();
  });
});

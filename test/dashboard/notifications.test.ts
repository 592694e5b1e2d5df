import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { pino } from 'pino';
import { startNotifier } from '../../apps/server/src/app/leader-jobs/deliver-notifications.ts';
import { startEventDetection } from '../../apps/server/src/app/leader-jobs/detect-events.ts';
import { requireServing } from '../../apps/server/src/operations/operation.ts';
import { openDatabase } from '../../apps/server/src/store/database.ts';
import { checkPage } from '../support/browser/check-page.ts';
import { assertFieldError, button, chooseRowAction, field } from '../support/browser/dashboard.ts';
import { waitForToast } from '../support/browser/toasts.ts';
import { openPage, useDashboard } from '../support/browser/use-dashboard.ts';
import { defaultDatabaseOptions } from '../support/store/default-options.ts';

describe('the Notifications page of the dashboard', () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, config, upstream } = dashboard;
    await toolhost.createServer(config('shop'));
    upstream.on('POST /hook', () => ({ status: 204 }));
    upstream.on('GET /items', () => ({ status: 500 }));
  });

  /** Runs event detection and delivery, which the service does once a minute. */
  const detectAndNotify = async () => {
    const { deps } = dashboard.toolhost.running.app.runner;
    const file = `${dashboard.toolhost.dataDir}/toolhost.sqlite`;
    const database = await openDatabase({ ...defaultDatabaseOptions, postgres: undefined, file });
    const log = pino({ level: process.env.TEST_LOG ?? 'silent' });
    for (const start of [startEventDetection, startNotifier]) {
      const work = start(database, log, { ...deps, ...requireServing(deps) });
      await work.poll();
      await work.whenIdle();
      await work.stop();
    }
    await database.close();
  };

  it('creates and tests a webhook in four clicks, renews its secret for another host, and reports a failing API', async (t) => {
    const { toolhost, upstream } = dashboard;
    const page = await openPage(t, dashboard, '/servers');
    await page.getByRole('link', { name: 'Notifications' }).click();
    await button(page, 'New webhook').click();
    await field(page, 'URL').fill('http://10.0.0.1/hook');
    await button(page, 'Create webhook').click();
    await assertFieldError(field(page, 'URL'), /http/);
    await field(page, 'URL').fill(`${upstream.url}/hook?token=secret`);
    await button(page, 'Create webhook').click();
    await page
      .getByRole('region', { name: 'webhook secret' })
      .getByText(/^whsec_/)
      .waitFor();
    await button(page, 'Send test').click();
    await waitForToast(page, `Delivered to ${upstream.url}`);
    await button(page, 'Done').click();
    assert.equal(upstream.take().at(-1)?.url, '/hook?token=secret');
    await chooseRowAction(page, upstream.url, `Edit ${upstream.url}`);
    await field(page, 'URL').fill(`${upstream.url}/hook?changed`);
    await page.getByRole('dialog').getByRole('checkbox', { name: 'Key expiring' }).uncheck();
    await page.getByRole('switch', { name: 'Enabled' }).uncheck();
    await button(page, 'Save webhook').click();
    const webhook = page.getByRole('table', { name: 'Webhooks' }).getByRole('row').nth(1);
    await webhook.getByText('paused').waitFor();
    assert.doesNotMatch((await webhook.textContent()) ?? '', /Key expiring/);
    await chooseRowAction(page, upstream.url, `Edit ${upstream.url}`);
    await page.getByRole('switch', { name: 'Enabled' }).check();
    await button(page, 'Save webhook').click();
    await webhook.getByText('paused').waitFor({ state: 'hidden' });
    await chooseRowAction(page, upstream.url, `Test ${upstream.url}`);
    await waitForToast(page, `Delivered to ${upstream.url}`);
    assert.equal(upstream.take().at(-1)?.url, '/hook?changed');
    const elsewhere = 'https://hooks.example.com';
    await chooseRowAction(page, upstream.url, `Edit ${upstream.url}`);
    await field(page, 'URL').fill(`${elsewhere}/hook`);
    await button(page, 'Save webhook').click();
    await page
      .getByRole('region', { name: 'webhook secret' })
      .getByText(/^whsec_/)
      .waitFor();
    await button(page, 'Done').click();
    await chooseRowAction(page, elsewhere, `Edit ${elsewhere}`);
    await field(page, 'URL').fill(`${upstream.url}/hook`);
    await button(page, 'Save webhook').click();
    await button(page, 'Done').click();
    const key = await toolhost.createKey();
    for (let call = 0; call < 20; call++) await toolhost.callTool('shop', key, 'read', { count: call });
    await toolhost.rest('GET', '/calls');
    await detectAndNotify();
    await page.reload();
    const notifications = page.getByRole('table', { name: 'Recent notifications' });
    await notifications.getByText(/^The API of shop is failing: 20 of 20 calls failed/).waitFor();
    await notifications.getByText(`${upstream.url}: delivered`).waitFor();
    await checkPage(page);
    await notifications.getByRole('link', { name: 'API failing' }).click();
    await page.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
    await page.goto('/notifications');
    await chooseRowAction(page, upstream.url, `Delete ${upstream.url}`);
    await button(page, 'Delete webhook').click();
    await waitForToast(page, 'Deleted the webhook');
    await page.getByText('Email is not configured').waitFor();
  });
});

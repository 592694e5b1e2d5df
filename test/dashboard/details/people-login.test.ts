import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { launchChromium } from '../../support/browser/chromium.ts';
import { button } from '../../support/browser/dashboard.ts';
import { openPage } from '../../support/browser/use-dashboard.ts';
import { password } from '../../support/oauth/honest-provider.ts';
import { startLocalPeopleWorld } from '../../support/oauth/local-people-world.ts';
import { useFixtures } from '../../support/use-fixtures.ts';

describe('a login test in the dashboard at a server that people log in to', () => {
  const fixtures = useFixtures();
  const world = fixtures.start(startLocalPeopleWorld);
  const browser = fixtures.start(launchChromium);
  fixtures.start(async () => {
    world.provider.setClaims('otto', { email: 'otto@other.example', email_verified: true });
    await world.createServer('own', {
      authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
      login: { allow: { domains: ['people.example'] }, fields: [{ name: 'API_TOKEN', label: 'Personal token' }] },
    });
    return {};
  });

  const alertWithTitle = (page: Page, title: string) => page.getByRole('alert', { name: title });

  /** Starts the test, and signs a person in at the identity provider. */
  async function startTest(t: TestContext, name: string): Promise<{ page: Page; tab: Page }> {
    const page = await openPage(t, { browser, toolhost: world.toolhost }, '/servers/own/connect');
    const opened = page.context().waitForEvent('page');
    await button(page, 'Test login').click();
    const tab = await opened;
    await tab.getByLabel('Name').fill(name);
    await tab.getByLabel('Password').fill(password);
    await button(tab, 'Log in').click();
    return { page, tab };
  }

  it('plays identification, consent, and form, and reports who is logged in and for how long', async (t) => {
    const { page, tab } = await startTest(t, 'anna');
    await alertWithTitle(page, 'Waiting for the login in the new tab').waitFor();
    assert.equal(await page.getByText('redirect_uri_mismatch').count(), 0);
    await button(tab, 'Allow').click();
    await tab.getByLabel('Personal token').fill('key-of-anna');
    await button(tab, 'Save and continue').click();
    await alertWithTitle(tab, 'Login works').waitFor();
    const outcome = alertWithTitle(page, 'Login works');
    await outcome.waitFor();
    const text = (await outcome.textContent()) ?? '';
    assert.match(text, /signed in as anna@people\.example.*asked about people again after 10 minutes/);
  });

  it('reports why a person may not log in, and what to do', async (t) => {
    const { page, tab } = await startTest(t, 'otto');
    await tab.getByRole('link', { name: 'Back to your client' }).click();
    const outcome = alertWithTitle(page, 'Login failed');
    await outcome.getByText('You are signed in as otto@other.example, who may not use this server').waitFor();
    await outcome.getByText('change in Settings who may log in').waitFor();
  });
});

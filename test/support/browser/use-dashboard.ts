import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import type { Json } from '../toolhost/toolhost.ts';
import { useFixtures } from '../use-fixtures.ts';
import {
  button,
  closeContext,
  createSignedInContext,
  type Dashboard,
  type Person,
  startDashboard,
  watchPage,
} from './dashboard.ts';
import { waitForToast } from './toasts.ts';

type Visit = { person?: Person; options?: BrowserContextOptions };

/** Starts a dashboard for the tests of the enclosing suite. */
export const useDashboard = (fixtures = useFixtures()): Dashboard => fixtures.start(() => startDashboard());

/**
 * Opens a page as a person until the test ends. The test fails if anything on the page was blocked, failed, or was
 * requested from another origin.
 */
export async function openPage(
  t: TestContext,
  { browser, toolhost }: Pick<Dashboard, 'browser' | 'toolhost'>,
  path: string,
  { person = { name: 'Anna' }, options }: Visit = {},
): Promise<Page> {
  const context = await createSignedInContext(browser, toolhost, person, options);
  t.after(() => closeContext(context));
  const page = await context.newPage();
  const { errors, foreignRequests } = await watchPage(page, toolhost.url);
  t.after(() => assert.deepEqual({ errors, foreignRequests }, { errors: [], foreignRequests: [] }));
  await page.goto(path);
  return page;
}

/** Creates a server with this slug, and opens one of its pages. */
export async function openServer(t: TestContext, dashboard: Dashboard, tab: string, slug: string, more: Json = {}) {
  await dashboard.toolhost.createServer(dashboard.config(slug, more));
  return openPage(t, dashboard, `/servers/${slug}/${tab}`);
}

/** Saves the configuration on the page, and waits until nothing is unsaved, or for this version if given. */
export async function save(page: Page, version?: number): Promise<void> {
  await button(page, 'Save').click();
  if (version === undefined) await button(page, 'Save').waitFor({ state: 'hidden' });
  else await waitForToast(page, `Saved as version ${version}`);
}

/** Presses a key on an element, for a person who does not use a mouse. */
export async function pressOn(target: Locator, key: 'Enter' | 'Space' | 'ArrowDown' = 'Enter'): Promise<void> {
  await target.focus();
  await target.page().keyboard.press(key);
}

export async function getStoredConfig<Config = Json>({ toolhost }: Dashboard, slug: string): Promise<Config> {
  return (await toolhost.rest('GET', `/servers/${slug}`)).body.config as Config;
}

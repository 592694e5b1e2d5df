/**
 * Takes screenshots of the dashboard with the seeded workspace. `npm run screenshots` takes those of the README,
 * docs/images/*.png. `npm run screenshots -- FOLDER` takes every page in both color schemes, for review.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { exampleSlug, exampleToken } from '../apps/server/src/local/example.ts';
import { seed } from '../examples/seed/seed.ts';
import { launchChromium } from '../test/support/browser/chromium.ts';
import { startToolhost } from '../test/support/toolhost/toolhost.ts';

type Picture = { name: string; path: string; prepare?: (page: Page) => Promise<void> };

const viewport = { width: 1280, height: 800 };

const tryTool: Picture['prepare'] = async (page) => {
  const token = page.getByLabel('API token');
  if (await token.isVisible()) await token.fill(exampleToken);
  await page.getByRole('button', { name: 'Call tool' }).click();
  await page.getByRole('region', { name: 'Result' }).scrollIntoViewIfNeeded();
};

const readmePictures: readonly Picture[] = [
  { name: 'calls', path: '/calls', prepare: (page) => page.getByRole('table', { name: 'Calls' }).waitFor() },
];

const tabs = ['', 'tools', 'settings', 'calls', 'try', 'connect', 'secrets', 'logins', 'versions', 'options'];
const pages: readonly Picture[] = [
  ...readmePictures,
  { name: 'home', path: '/' },
  { name: 'servers', path: '/servers' },
  { name: 'try', path: `/servers/${exampleSlug}/try`, prepare: tryTool },
  ...['projects', 'weather', 'invoices', 'helpdesk', 'warehouse'].flatMap((slug) =>
    tabs.map((tab) => ({ name: `${slug}-${tab || 'home'}`, path: `/servers/${slug}${tab && `/${tab}`}` })),
  ),
  { name: 'call', path: '/calls?server=invoices', prepare: openCall },
  { name: 'new-server', path: '/servers/new' },
  { name: 'keys', path: '/keys' },
  { name: 'usage', path: '/usage' },
  { name: 'notifications', path: '/notifications' },
  { name: 'settings', path: '/settings' },
  { name: 'audit', path: '/audit' },
];

async function openCall(page: Page): Promise<void> {
  await page.getByRole('table', { name: 'Calls' }).getByRole('row').nth(1).click();
  await page.getByRole('dialog').waitFor();
}

async function signIn(page: Page, origin: string): Promise<void> {
  await page.goto('/login?return_to=/servers');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.waitForURL(`${origin}/servers`);
}

/** Takes a screenshot of a page. Screenshots for review show the full page. */
async function takeScreenshot(
  page: Page,
  { path, name, prepare }: Picture,
  folder: string,
  fullPage: boolean,
): Promise<void> {
  await page.goto(path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await prepare?.(page);
  await page.waitForLoadState('networkidle');
  await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled', fullPage });
}

const folder = process.argv[2];
const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-screenshots-'));
await seed({ DATA_DIR: dataDir }, { adds: false });
const toolhost = await startToolhost({ env: { DEMO: '1' }, dataDir });
const browser = await launchChromium();
try {
  for (const colorScheme of folder === undefined ? (['light'] as const) : (['light', 'dark'] as const)) {
    const context = await browser.newContext({ baseURL: toolhost.url, viewport, colorScheme });
    const page = await context.newPage();
    await signIn(page, toolhost.url);
    const target = folder === undefined ? join(import.meta.dirname, 'images') : join(folder, colorScheme);
    mkdirSync(target, { recursive: true });
    for (const picture of folder === undefined ? readmePictures : pages)
      await takeScreenshot(page, picture, target, folder !== undefined);
    await context.close();
  }
} finally {
  await browser.close();
  await toolhost.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

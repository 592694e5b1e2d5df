/**
 * Takes screenshots of the dashboard. `npm run screenshots` takes the picture of the README in both color schemes, with
 * the labels of the navigation in docs/images/pictures.json. `npm run screenshots -- FOLDER` takes every page of the
 * seeded workspace, for review.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { exampleSlug } from '../apps/server/src/example-server.ts';
import { seed } from '../examples/seed/seed.ts';
import { launchChromium, stopChromium } from '../test/support/browser/chromium.ts';
import { readNavigationLabels } from '../test/support/browser/navigation-labels.ts';
import { startToolhost, type TestToolhost } from '../test/support/toolhost/toolhost.ts';
import { dashboardSize, drawFrontPicture, showImport } from './front-picture.ts';
import { describeOrders, runOrdersSession } from './orders-session.ts';

type Picture = { name: string; path: string; prepare?: (page: Page) => Promise<void> };

const viewport = { width: 1280, height: 800 };

const tryTool: Picture['prepare'] = async (page) => {
  await page.getByRole('button', { name: 'Call tool' }).click();
  await page.getByRole('region', { name: 'Result' }).scrollIntoViewIfNeeded();
};

const tabs = ['', 'tools', 'try', 'try/playground', 'calls', 'connect', 'settings'];
const sections = ['logins', 'secrets', 'versions', 'limits', 'capture', 'delete'];
const pages: readonly Picture[] = [
  { name: 'calls', path: '/calls', prepare: (page) => page.getByRole('table', { name: 'Calls' }).waitFor() },
  { name: 'home', path: '/' },
  { name: 'servers', path: '/servers' },
  { name: 'try', path: `/servers/${exampleSlug}/try`, prepare: tryTool },
  ...['projects', 'weather', 'invoices', 'helpdesk', 'warehouse'].flatMap((slug) =>
    [...tabs, ...sections.map((section) => `settings/${section}`)].map((path) => ({
      name: `${slug}-${path.replace('/', '-') || 'overview'}`,
      path: `/servers/${slug}${path && `/${path}`}`,
    })),
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
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL(`${origin}/servers`);
}

/** Takes a screenshot of a full page. */
async function takeScreenshot(page: Page, { path, name, prepare }: Picture, folder: string): Promise<void> {
  await page.goto(path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await prepare?.(page);
  await page.waitForLoadState('networkidle');
  await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled', fullPage: true });
}

async function takeAllPages(browser: Browser, { url }: TestToolhost, folder: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({ baseURL: url, viewport, colorScheme });
    const page = await context.newPage();
    await signIn(page, url);
    mkdirSync(join(folder, colorScheme), { recursive: true });
    for (const picture of pages) await takeScreenshot(page, picture, join(folder, colorScheme));
    await context.close();
  }
}

/** Takes the picture of the README. A page shows the description as if the API were at a public URL. */
async function takeFrontPictures(browser: Browser, { url }: TestToolhost): Promise<void> {
  const session = await runOrdersSession();
  const pictures: Record<string, { path: string; navigation: string }> = {};
  for (const colorScheme of ['light', 'dark'] as const) {
    const options = { baseURL: url, viewport: dashboardSize, colorScheme, deviceScaleFactor: 2 };
    const context = await browser.newContext(options);
    const page = await context.newPage();
    await signIn(page, url);
    await showImport(page, describeOrders('https://api.example.com'));
    const dashboard = await page.screenshot({ animations: 'disabled' });
    const name = `front-${colorScheme}.png`;
    writeFileSync(join(images, name), await drawFrontPicture(browser, colorScheme, dashboard, session));
    pictures[name] = { path: new URL(page.url()).pathname, navigation: (await readNavigationLabels(page)).join(', ') };
    await context.close();
  }
  writeFileSync(join(images, 'pictures.json'), `${JSON.stringify(pictures, undefined, 2)}\n`);
}

const images = join(import.meta.dirname, 'images');
const folder = process.argv[2];
const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-screenshots-'));
if (folder !== undefined) await seed({ DATA_DIR: dataDir }, { adds: false });
const toolhost = await startToolhost({ env: { DEMO: '1' }, dataDir });
const browser = await launchChromium();
try {
  if (folder === undefined) await takeFrontPictures(browser, toolhost);
  else await takeAllPages(browser, toolhost, folder);
} finally {
  await stopChromium();
  await toolhost.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

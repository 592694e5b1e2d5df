import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { exampleSlug, exampleToken } from '../src/local/example.ts';
import { launchChromium } from '../test/support/chromium.ts';
import { startToolhost, type TestToolhost } from '../test/support/toolhost.ts';

/** Pictures of the main pages for the README, of a service in local mode with some calls made: docs/images/*.png. */

const images = join(import.meta.dirname, 'images');
const viewport = { width: 1280, height: 800 };
const calls: readonly (readonly [string, { [name: string]: unknown }])[] = [
  ['list_projects', {}],
  ['list_projects', { status: 'eq.active' }],
  ['create_project', { name: 'Spring catalogue' }],
  ['create_project', { name: 'Office move', description: 'To the second floor' }],
  ['list_projects', { status: 'eq.archived' }],
  ['create_project', {}],
  ['update_project', { id: 1, name: 'Website' }],
];

async function makeCalls(toolhost: TestToolhost): Promise<void> {
  for (let round = 0; round < 6; round++) {
    for (const [name, args] of calls) await toolhost.callTool(exampleSlug, exampleToken, name, args);
  }
}

async function signIn(page: Page, origin: string): Promise<void> {
  await page.goto('/login?return_to=/servers');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.waitForURL(`${origin}/servers`);
}

async function take(page: Page, path: string, name: string, prepare?: () => Promise<void>): Promise<void> {
  await page.goto(path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await prepare?.();
  await page.waitForLoadState('networkidle');
  await page.screenshot({ path: join(images, `${name}.png`), animations: 'disabled' });
}

const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-screenshots-'));
const toolhost = await startToolhost({ env: { DEMO: '1' }, dataDir });
const browser = await launchChromium();
try {
  await makeCalls(toolhost);
  const context = await browser.newContext({ baseURL: toolhost.url, viewport, colorScheme: 'light' });
  const page = await context.newPage();
  await signIn(page, toolhost.url);
  await take(page, '/servers', 'servers');
  await take(page, `/servers/${exampleSlug}`, 'editor');
  await take(page, `/servers/${exampleSlug}/try`, 'try', async () => {
    const token = page.getByLabel('Token of the API');
    if (await token.isVisible()) await token.fill(exampleToken);
    await page.getByRole('button', { name: 'Call the tool' }).click();
    await page.getByRole('region', { name: 'Result' }).waitFor();
  });
  await take(page, '/calls', 'calls', () => page.getByRole('table', { name: 'Calls' }).waitFor());
} finally {
  await browser.close();
  await toolhost.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

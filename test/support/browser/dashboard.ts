import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Role } from '@toolhost/credentials/credential';
import { base62, hashSecret } from '@toolhost/credentials/ids';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { localWorkspace } from '../../../apps/server/src/config.ts';
import { insertSession } from '../../../apps/server/src/store/people/sessions.ts';
import { saveMember, saveUser } from '../../../apps/server/src/store/people/users.ts';
import { insertWorkspace } from '../../../apps/server/src/store/workspaces.ts';
import { eventually } from '../eventually.ts';
import { type Json, startToolhost, type TestToolhost } from '../toolhost/toolhost.ts';
import { buildToolAt } from '../upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { launchChromium } from './chromium.ts';
import { recordToasts } from './toasts.ts';

export type Person = { name: string; role?: Role; workspace?: string; id?: string };

const sessionLifetimeMs = 3_600_000;
/** Time limit for anything to appear on a busy machine. */
export const defaultTimeoutMs = 20_000;

/** Creates a workspace member with a session and returns the session cookie. */
export async function createPersonSession(toolhost: TestToolhost, person: Person): Promise<string> {
  const { db } = toolhost.running.app.runner;
  const { name, role = 'owner', workspace = localWorkspace.id } = person;
  const at = Date.now();
  const cookie = base62(randomBytes(32), 43);
  const { id = `usr_${cookie}` } = person;
  await insertWorkspace(db, { id: workspace, name: `Workspace ${workspace}`, at });
  const user = { id, issuer: 'https://id.example', subject: id, email: `${id}@mail.example`, name };
  await saveUser(db, { ...user, at });
  await saveMember(db, { workspaceId: workspace, userId: id, role, at });
  return createMemberSession(toolhost, id, { workspace, cookie });
}

/** Creates a session of a member and returns its cookie. */
export async function createMemberSession(
  { running }: TestToolhost,
  userId: string,
  { workspace = localWorkspace.id as string, cookie = base62(randomBytes(32), 43) } = {},
): Promise<string> {
  const at = Date.now();
  const session = { hash: hashSecret(cookie), userId, workspaceId: workspace, at, expiresAt: at + sessionLifetimeMs };
  await insertSession(running.app.runner.db, session);
  return cookie;
}

/** Creates a browser context with reduced motion, so nothing moves under a click even on a slow machine. */
export async function createContext(
  browser: Browser,
  toolhost: TestToolhost,
  options: BrowserContextOptions = { viewport: { width: 1440, height: 900 } },
): Promise<BrowserContext> {
  const context = await browser.newContext({ baseURL: toolhost.url, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(defaultTimeoutMs);
  await recordToasts(context);
  return context;
}

/** Creates a reduced-motion browser context in which this person is signed in. */
export async function createSignedInContext(
  browser: Browser,
  toolhost: TestToolhost,
  person: Person,
  options?: BrowserContextOptions,
): Promise<BrowserContext> {
  const context = await createContext(browser, toolhost, options);
  const value = await createPersonSession(toolhost, person);
  await context.addCookies([{ name: 'toolhost-session', value, url: toolhost.url }]);
  return context;
}

/** Closes a browser context. Pending responses of its pages are dropped without failing the test. */
export async function closeContext(context: BrowserContext): Promise<void> {
  for (const page of context.pages()) await page.unrouteAll({ behavior: 'ignoreErrors' });
  await context.close();
}

/** Locates a form field by its exact label. */
export function field(within: Page | Locator, label: string): Locator {
  return within.getByRole('textbox', { name: label, exact: true });
}

/** Locates the JSON editor of the configuration and reads its text, of which the page renders only a part. */
export function getJsonEditor(page: Page) {
  const editor = page.getByRole('textbox', { name: 'Configuration as JSON' });
  type Drawn = { cmTile: { root: { view: { state: { doc: unknown } } } } };
  const text = () => editor.evaluate((content) => String((content as unknown as Drawn).cmTile.root.view.state.doc));
  return { json: editor, text };
}

export function button(within: Page | Locator, name: string | RegExp): Locator {
  return within.getByRole('button', { name, exact: true });
}

/** Chooses an action, such as "Revoke My agent", in the menu of the table row with this text. */
export async function chooseRowAction(within: Page | Locator, row: string, action: string | RegExp): Promise<void> {
  await button(within.getByRole('row').filter({ hasText: row }), /^Actions/)
    .first()
    .click();
  const page = 'page' in within ? within.page() : within;
  await page.getByRole('menuitem', { name: action, exact: true }).click();
}

/** Chooses an action in the menu of a server page. */
export async function chooseServerAction(page: Page, action: string): Promise<void> {
  await button(page, 'Server actions').click();
  await page.getByRole('menuitem', { name: action, exact: true }).click();
}

/** Locates a tab of a server page. */
export function tab(page: Page, name: string): Locator {
  return page.getByRole('navigation', { name: 'Server sections' }).getByRole('link', { name, exact: true });
}

/** Opens a section of a server's settings, which a narrow window shows in a select. */
export async function openSettings(page: Page, section: string): Promise<void> {
  await tab(page, 'Settings').click();
  const menu = page.getByRole('navigation', { name: 'Settings' });
  const select = page.getByRole('combobox', { name: 'Settings section' });
  await menu.or(select).filter({ visible: true }).waitFor();
  if (await select.isVisible()) await select.selectOption({ label: section });
  else await menu.getByRole('link', { name: section, exact: true }).click();
}

/** Switches the editor of a configuration between its two views. */
export async function showView(page: Page, view: 'Form' | 'JSON'): Promise<void> {
  await page.getByRole('radiogroup', { name: 'View' }).getByText(view, { exact: true }).click();
}

/** Selects an option of a combobox. */
export async function selectOption(page: Page, label: string, option: string | RegExp): Promise<void> {
  await page.getByRole('combobox', { name: label, exact: true }).click();
  await page.getByRole('option', { name: option, exact: true }).click();
}

/** Waits until a field shows an error that screen readers can also find. */
export async function assertFieldError(input: Locator, message: RegExp): Promise<void> {
  await eventually(async () => {
    assert.equal(await input.getAttribute('aria-invalid'), 'true');
    const described = (await input.getAttribute('aria-describedby')) ?? '';
    const page = input.page();
    const ids = described.split(' ').filter((id) => id !== '');
    const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
    assert.match(texts.join(' '), message);
  }, defaultTimeoutMs);
}

/** Problems of a page that the person does not see. */
export type PageProblems = {
  /** Script errors, Content-Security-Policy violations, and frames in which the page was too wide. */
  errors: string[];
  /** Responses that the console logs as errors, such as a 404. */
  failedResponses: string[];
  /** Requests to other origins, without navigations. */
  foreignRequests: string[];
};

const reportCspViolations = `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
  console.error('Content Security Policy: ' + [violatedDirective, blockedURI, sample].join(' ')))`;

/** Checks before each frame for horizontal overflow and logs the elements that cause it once. */
const reportOverflow = `
  const look = () => {
    const over = (document.scrollingElement?.scrollWidth ?? 0) - innerWidth;
    if (over <= 0) return requestAnimationFrame(look);
    const wide = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth);
    const out = wide.slice(-3).map((e) => e.tagName + ' ' + e.getAttribute('class') + ' ' + e.textContent.slice(0, 60));
    console.error(location.pathname + ' was ' + over + ' px too wide: ' + out.join(' | '));
  };
  requestAnimationFrame(look);`;

/** Collects the problems of a page. Call it before the page is opened. */
export async function watchPage(page: Page, origin: string): Promise<PageProblems> {
  const problems: PageProblems = { errors: [], failedResponses: [], foreignRequests: [] };
  await page.addInitScript(reportCspViolations);
  await page.addInitScript(reportOverflow);
  page.on('console', (message) => {
    const text = message.text();
    if (text.startsWith('Failed to load resource')) problems.failedResponses.push(text);
    else if (message.type() === 'error' || /Content Security Policy/i.test(text)) problems.errors.push(text);
  });
  page.on('pageerror', (error) => problems.errors.push(error.message));
  page.on('dialog', (dialog) => {
    if (dialog.type() !== 'beforeunload') problems.errors.push(`a dialog opened: ${dialog.message()}`);
    // Fails if the page has closed in the meantime.
    dialog.dismiss().catch((error: unknown) => page.isClosed() || problems.errors.push(String(error)));
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (request.isNavigationRequest()) return;
    if (url.origin !== origin && !['data:', 'blob:'].includes(url.protocol))
      problems.foreignRequests.push(request.url());
  });
  return problems;
}

type VisitOptions = { person?: Person; options?: BrowserContextOptions };

/** Running service with an upstream and a browser. */
export type Dashboard = {
  toolhost: TestToolhost;
  upstream: RecordingUpstream;
  browser: Browser;
  /** Returns the configuration of a server with one tool, `read`, whose argument `count` is required. */
  config(slug: string, more?: Json): Json;
  /** Opens a page as a person. Fails if anything was blocked, failed, or was requested from another origin. */
  withPage(
    path: string,
    use: (page: Page, context: BrowserContext) => Promise<void>,
    visitOptions?: VisitOptions,
  ): Promise<void>;
  stop(): Promise<void>;
};

/** @param egress local ports that the service may call in addition to that of the upstream */
export async function startDashboard(egress: readonly number[] = []): Promise<Dashboard> {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ egressPorts: [upstream.port, ...egress] });
  const browser = await launchChromium();
  return {
    toolhost,
    upstream,
    browser,
    config(slug, more = {}) {
      const input_schema = { count: { type: 'integer', description: 'How many' } };
      const read = { name: 'read', description: 'Reads an item.', input_schema };
      const tools = [buildToolAt(`${upstream.url}/items`, read)];
      return { name: `The ${slug}`, slug, description: 'Reads.', tools, ...more };
    },
    async withPage(path, use, { person = { name: 'Anna' }, options } = {}) {
      const context = await createSignedInContext(browser, toolhost, person, options);
      try {
        const page = await context.newPage();
        const { errors, foreignRequests } = await watchPage(page, toolhost.url);
        await page.goto(path);
        await use(page, context);
        assert.deepEqual({ complaints: errors, foreign: foreignRequests }, { complaints: [], foreign: [] });
      } finally {
        await closeContext(context);
      }
    },
    async stop() {
      await browser.close();
      await Promise.all([toolhost.stop(), upstream.close()]);
    },
  };
}

/** Locates an alert that contains this text. */
export function alert(page: Page, text: string): Locator {
  return page.getByRole('alert').filter({ hasText: text }).first();
}

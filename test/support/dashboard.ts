import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { localWorkspace } from '../../src/app/foundation.ts';
import type { Role } from '../../src/domain/scopes.ts';
import { sessionHash } from '../../src/manage/session-actor.ts';
import { insertSession } from '../../src/store/sessions.ts';
import { saveMember, saveUser } from '../../src/store/users.ts';
import { insertWorkspace } from '../../src/store/workspaces.ts';
import { eventually } from './eventually.ts';
import type { TestToolhost } from './toolhost.ts';

export type Person = { name: string; role?: Role; workspace?: string };

const sessionMs = 3_600_000;
/** For anything to appear. */
export const patienceMs = 6_000;

/** A member of a workspace with a live session; gives the session's cookie. */
export async function personSession(toolhost: TestToolhost, person: Person): Promise<string> {
  const { db } = toolhost.running.app.runner;
  const { name, role = 'owner', workspace = localWorkspace.id } = person;
  const at = Date.now();
  const cookie = randomBytes(24).toString('base64url');
  const id = `usr_${cookie}`;
  await insertWorkspace(db, { id: workspace, name: `Workspace ${workspace}`, at });
  await saveUser(db, { id, issuer: 'https://id.example', subject: id, email: `${id}@mail.example`, name, at });
  await saveMember(db, { workspaceId: workspace, userId: id, role, at });
  const session = { hash: sessionHash(cookie), userId: id, workspaceId: workspace, at, expiresAt: at + sessionMs };
  await insertSession(db, session);
  return cookie;
}

/** A browser profile in which this person is signed in. */
export async function contextOf(
  browser: Browser,
  toolhost: TestToolhost,
  person: Person,
  options: BrowserContextOptions = { viewport: { width: 1440, height: 900 } },
): Promise<BrowserContext> {
  const context = await browser.newContext({ baseURL: toolhost.url, ...options });
  context.setDefaultTimeout(patienceMs);
  const value = await personSession(toolhost, person);
  await context.addCookies([{ name: 'toolhost-session', value, url: toolhost.url }]);
  return context;
}

/** A field of a form by its whole label. */
export function field(within: Page | Locator, label: string): Locator {
  return within.getByRole('textbox', { name: label, exact: true });
}

export function button(within: Page | Locator, name: string | RegExp): Locator {
  return within.getByRole('button', { name, exact: true });
}

/** Chooses in a list that opens from its field. */
export async function choose(page: Page, label: string, option: string | RegExp): Promise<void> {
  await page.getByRole('combobox', { name: label, exact: true }).click();
  await page.getByRole('option', { name: option, exact: true }).click();
}

/** Waits until a field says this about its content, where screen readers find it too. */
export async function saysAtField(input: Locator, message: RegExp): Promise<void> {
  await eventually(async () => {
    assert.equal(await input.getAttribute('aria-invalid'), 'true');
    const described = (await input.getAttribute('aria-describedby')) ?? '';
    const page = input.page();
    const ids = described.split(' ').filter((id) => id !== '');
    const texts = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
    assert.match(texts.join(' '), message);
  });
}

/** What went wrong in a page without being told to the person. */
export function watch(page: Page, origin: string): { complaints: string[]; foreign: string[] } {
  const complaints: string[] = [];
  const foreign: string[] = [];
  page.on('console', (message) => {
    const isRefusal = message.text().startsWith('Failed to load resource: the server responded with a status of 401');
    if (message.type() === 'error' && !isRefusal) complaints.push(message.text());
    if (/Content Security Policy/i.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog opened: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !['data:', 'blob:'].includes(url.protocol)) foreign.push(request.url());
  });
  return { complaints, foreign };
}

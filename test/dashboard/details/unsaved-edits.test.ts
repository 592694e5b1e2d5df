import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { alert, button, field } from '../../support/browser/dashboard.ts';
import { openServer, save, useDashboard } from '../../support/browser/use-dashboard.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

const conflictTitle = 'Someone else changed this server';

describe('an unsaved edit in the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  const getStoredConfig = async (slug: string) => {
    const { body } = await dashboard.toolhost.rest('GET', `/servers/${slug}`);
    return { version: (body.server as Json).version, ...(body.config as Json) } as Json;
  };

  async function openUnsavedEdit(t: TestContext, slug: string): Promise<Page> {
    const page = await openServer(t, dashboard, 'settings', slug);
    await field(page, 'Description').fill('My long text');
    return page;
  }

  async function saveInConflict(page: Page, slug: string, otherChanges: Json): Promise<void> {
    const { status } = await dashboard.toolhost.rest('PATCH', `/servers/${slug}`, { body: otherChanges });
    assert.equal(status, 200);
    await button(page, 'Save').click();
    await alert(page, conflictTitle).waitFor();
    assert.equal(await field(page, 'Description').inputValue(), 'My long text');
  }

  it('reports a newer version and can be saved on top of it if both changed different fields', async (t) => {
    const page = await openUnsavedEdit(t, 'merged');
    await saveInConflict(page, 'merged', { name: 'Their name' });
    await page.getByRole('region', { name: 'Changes from version 1 to version 2' }).getByText('Their name').waitFor();
    await button(page, 'Keep my changes').click();
    await alert(page, conflictTitle).waitFor({ state: 'hidden' });
    assert.equal(await field(page, 'Name').inputValue(), 'Their name');
    assert.equal(await field(page, 'Description').inputValue(), 'My long text');
    await save(page);
    const { version, name, description } = await getStoredConfig('merged');
    assert.deepEqual([version, name, description], [3, 'Their name', 'My long text']);
    assert.equal(await alert(page, conflictTitle).count(), 0);
  });

  it('overrides a newer change of the same field if the user keeps it', async (t) => {
    const page = await openUnsavedEdit(t, 'same-field');
    await saveInConflict(page, 'same-field', { description: 'Their text' });
    await button(page, 'Keep my changes').click();
    await alert(page, conflictTitle).waitFor({ state: 'hidden' });
    await save(page);
    assert.equal((await getStoredConfig('same-field')).description, 'My long text');
  });

  it('can be discarded in favor of a newer version', async (t) => {
    const page = await openUnsavedEdit(t, 'given-way');
    await saveInConflict(page, 'given-way', { description: 'Their text' });
    await button(page, 'Discard my changes').click();
    await alert(page, conflictTitle).waitFor({ state: 'hidden' });
    assert.equal(await field(page, 'Description').inputValue(), 'Their text');
    assert.equal(await button(page, 'Save').count(), 0);
    assert.equal((await getStoredConfig('given-way')).version, 2);
  });

  it('survives the end of the session', async (t) => {
    const page = await openUnsavedEdit(t, 'ended');
    const context = page.context();
    await context.clearCookies();
    await button(page, 'Save').click();
    await alert(page, 'Your session has ended').waitFor();
    assert.equal(await field(page, 'Description').inputValue(), 'My long text');
    const opened = context.waitForEvent('page');
    await page.getByRole('link', { name: 'Sign in in a new tab' }).click();
    const other = await opened;
    await button(other, 'Sign in').click();
    await other.waitForURL(`${dashboard.toolhost.url}/servers`);
    await page.bringToFront();
    await button(page, 'I have signed in').click();
    await alert(page, 'Your session has ended').waitFor({ state: 'hidden' });
    assert.equal(await field(page, 'Description').inputValue(), 'My long text');
    await save(page);
    assert.equal((await getStoredConfig('ended')).description, 'My long text');
  });

  it('survives a lost connection, which is reported and recovers automatically', async (t) => {
    const page = await openUnsavedEdit(t, 'offline');
    const context = page.context();
    await context.setOffline(true);
    await button(page, 'Save').click();
    await alert(page, 'The service is unreachable').waitFor();
    await alert(page, 'Connection lost').waitFor();
    assert.equal(await field(page, 'Description').inputValue(), 'My long text');
    await context.setOffline(false);
    await alert(page, 'Connection lost').waitFor({ state: 'hidden' });
    assert.equal(await field(page, 'Description').inputValue(), 'My long text');
    await save(page);
    assert.equal((await getStoredConfig('offline')).description, 'My long text');
  });

  it('asks for confirmation before the user leaves the page in any way', async (t) => {
    const page = await openUnsavedEdit(t, 'left');
    await page.getByRole('link', { name: 'API keys', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
    await button(dialog, 'Stay').click();
    assert.equal(await field(page, 'Description').inputValue(), 'My long text');
    const leavePrompt = page.waitForEvent('dialog');
    await page.evaluate('void location.assign("/keys")');
    assert.equal((await leavePrompt).type(), 'beforeunload');
    assert.equal(await field(page, 'Description').inputValue(), 'My long text');
    await page.getByRole('link', { name: 'API keys', exact: true }).click();
    await button(dialog, 'Discard and leave').click();
    await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor();
  });
});

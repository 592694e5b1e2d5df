import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { checkPage } from '../support/browser/check-page.ts';
import {
  assertFieldError,
  button,
  chooseRowAction,
  field,
  type Person,
  selectOption,
} from '../support/browser/dashboard.ts';
import { waitForToast } from '../support/browser/toasts.ts';
import { openPage, openServer, useDashboard } from '../support/browser/use-dashboard.ts';
import { eventually } from '../support/eventually.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const viewer: Person = { name: 'Vera', role: 'viewer' };
const viewerMessage = 'You are a viewer of this workspace.';

describe('the workspace section of the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, upstream, config } = dashboard;
    const [tool] = config('busy').tools as Json[];
    const tools = [tool, { ...tool, name: 'write', method: 'POST' }];
    await toolhost.createServer(config('busy', { authentication: { type: 'Bearer', token: '{{KEY}}' }, tools }));
    await toolhost.createServer(config('idle'));
    await toolhost.rest('PUT', '/servers/busy/secrets/KEY', { body: { value: 'secret-of-the-api' } });
    await toolhost.rest('PATCH', '/servers/idle', { body: { description: 'Again.' } });
    upstream.on('POST /items', () => ({ status: 500, body: { error: 'broken' } }));
    const key = await toolhost.createKey();
    await toolhost.callTool('idle', key, 'read', { count: 4 });
    await toolhost.rest('POST', '/servers/busy/capture', { body: { hours: 1 } });
    await toolhost.callTool('busy', key, 'write', { count: 3 });
  });

  it('shows a call with its HTTP exchange if it was captured', async (t) => {
    const page = await openPage(t, dashboard, '/calls');
    const dialog = page.getByRole('dialog');
    await button(page, /^write/).click();
    await dialog.getByText('API returned 500').waitFor();
    await dialog.getByText('HTTP 500 Internal Server Error, application/json').waitFor();
    await dialog.getByRole('region', { name: 'arguments' }).getByText('"count": 3').waitFor();
    await dialog.getByText('POST /items HTTP/1.1').waitFor();
    await dialog.getByRole('region', { name: 'response body' }).getByText('broken').waitFor();
    assert.ok(!(await dialog.textContent())?.includes('secret-of-the-api'));
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('row').filter({ hasText: 'idle' }).getByRole('button').first().click();
    await dialog.getByText('was not captured').waitFor();
  });

  it('[find F2] keeps the expiry and the limits of a replaced key', async (t) => {
    const limits = { calls_per_day: 40, calls_per_second: 3 };
    const input = { name: 'Bounded', scopes: ['call'], expires_in: 40 * 86_400, ...limits };
    const { body } = await dashboard.toolhost.rest('POST', '/keys', { body: input });
    const page = await openPage(t, dashboard, '/keys');
    await chooseRowAction(page, 'Bounded', 'Replace Bounded');
    const dialog = page.getByRole('dialog', { name: 'Replace Bounded' });
    assert.match(await dialog.getByRole('combobox', { name: 'Expires' }).inputValue(), /^Unchanged: /);
    await button(dialog, 'Create new key').click();
    await page.getByRole('region', { name: 'API key', exact: true }).waitFor();
    const keys = (await dashboard.toolhost.rest('GET', '/keys')).body.keys as Json[];
    const expiryAndLimits = keys.filter(({ name }) => name === 'Bounded').map((key) => [key.expires_at, key.limits]);
    assert.deepEqual(expiryAndLimits, [
      [body.expires_at, limits],
      [body.expires_at, limits],
    ]);
  });

  it('shows the last use of a key and replaces it without downtime', async (t) => {
    const { toolhost } = dashboard;
    const { body } = await toolhost.rest('POST', '/keys', { body: { name: 'Replaced', scopes: ['call'] } });
    await toolhost.callTool('idle', String(body.key), 'read', { count: 5 });
    const page = await openPage(t, dashboard, '/keys');
    const row = page.getByRole('row').filter({ hasText: 'Replaced' });
    await chooseRowAction(page, 'Replaced', 'Replace Replaced');
    const dialog = page.getByRole('dialog', { name: 'Replace Replaced' });
    await selectOption(page, 'Expires', 'In 30 days');
    await selectOption(page, 'Servers', 'The idle');
    await page.keyboard.press('Escape');
    await button(dialog, 'Create new key').click();
    const shown = page.getByRole('dialog').getByRole('region', { name: 'API key', exact: true });
    await shown.waitFor();
    const key = (await shown.textContent()) ?? '';
    assert.equal((await toolhost.rpc('idle', String(body.key), 'ping')).status, 200, 'the old key does not work');
    assert.equal((await toolhost.rpc('idle', key, 'ping')).status, 200);
    assert.equal((await toolhost.rpc('busy', key, 'ping')).status, 403);
    await button(page, 'Revoke old key').click();
    await row.getByText(/^revoked/).waitFor();
    await row.getByText('expires in 30 days').waitFor();
    await eventually(async () => {
      const { keys } = (await toolhost.rest('GET', '/keys')).body as { keys: Json[] };
      assert.ok(keys.find(({ id }) => id === body.id)?.last_used_at);
    });
    await page.reload();
    await row
      .filter({ hasText: 'Revoked' })
      .getByRole('cell', { name: /just now|second|minute/ })
      .first()
      .waitFor();
    assert.equal((await toolhost.rpc('idle', String(body.key), 'ping')).status, 401);
  });

  it('[find C6] shows no quota per minute or day until one is set', async (t) => {
    const page = await openServer(t, dashboard, 'options', 'rationed');
    const day = field(page, 'Calls per day');
    assert.equal(await day.getAttribute('placeholder'), 'no limit');
    await day.fill('5000000000');
    await button(page, 'Save limits').click();
    await assertFieldError(day, /allowed: at most 1000000000/);
    await day.fill('20000');
    await button(page, 'Save limits').click();
    await waitForToast(page, 'Saved the limits');
    const { body } = await dashboard.toolhost.rest('GET', '/servers/rationed/limits');
    assert.deepEqual(body.calls_per_day, { limit: 20_000, from: 'set', set: 20_000 });
  });

  it('disables or hides all changes for viewers and says why', async (t) => {
    const page = await openPage(t, dashboard, '/servers', { person: viewer });
    await page.getByRole('link', { name: 'The idle' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'New server' }).count(), 0);
    for (const [path, absentButtons, disabledButtons] of [
      ['/servers/new?from=form', ['Create server'], []],
      ['/servers/idle/tools?tool=read', ['Save', 'Add tool', 'Delete read', 'Add argument'], []],
      ['/servers/idle/try', [], ['Call tool']],
      ['/servers/idle/connect', [], ['Create key for this server']],
      ['/servers/idle/settings/secrets', ['Set secret', /^Delete/], []],
      ['/servers/idle/settings/versions', [/^Restore/], []],
      ['/servers/idle/settings/limits', ['Save limits'], []],
      ['/servers/idle/settings/capture', [], ['Start capture']],
      ['/servers/idle/settings/delete', ['Delete server…'], []],
      ['/keys', ['New API key', /^Revoke/, /^Replace/], []],
    ] as const) {
      await page.goto(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      if (path !== '/servers/idle/settings/versions') await page.getByText(viewerMessage).first().waitFor();
      await page.waitForLoadState('networkidle');
      for (const name of absentButtons) assert.equal(await button(page, name).count(), 0, `${path} has ${name}`);
      for (const name of disabledButtons) assert.equal(await button(page, name).isDisabled(), true, `${path}: ${name}`);
    }
    await page.goto('/servers/idle/settings');
    await field(page, 'Name').waitFor();
    const editable =
      'main :is(input:not([readonly], [disabled], [type=radio], [type=hidden]), textarea:not([readonly]))';
    assert.deepEqual(await page.evaluate(`[...document.querySelectorAll('${editable}')].map((e) => e.outerHTML)`), []);
    await page.goto('/settings');
    await page.getByRole('table', { name: 'Members' }).waitFor();
    for (const name of ['Invite', 'Rename', /^Remove/, /^Withdraw/] as const)
      assert.equal(await button(page, name).count(), 0, `settings has ${name}`);
  });

  it('creates a workspace in three clicks, exports it, and deletes it when its name is typed', async (t) => {
    const person = { name: 'Ada', workspace: 'wsp_home' };
    const page = await openPage(t, dashboard, '/servers', { person });
    await button(page, /^Workspace/).click();
    await page.getByRole('menuitem', { name: 'New workspace' }).click();
    await field(page, 'Name').fill('Trial');
    await button(page, 'Create workspace').click();
    await button(page, 'Workspace Trial').waitFor();
    await page.goto('/settings');
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Export JSON' }).click();
    assert.equal((await download).suggestedFilename(), 'workspace.json');
    await button(page, 'Delete workspace…').click();
    await checkPage(page);
    assert.equal(await button(page, 'Delete workspace').isDisabled(), true);
    await field(page, 'Type Trial to confirm').fill('Trial');
    await button(page, 'Delete workspace').click();
    await button(page, 'Workspace Workspace wsp_home').waitFor();
  });
});

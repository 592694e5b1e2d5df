import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { button, createPersonSession, field, selectOption } from '../../support/browser/dashboard.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import { openPage, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

describe('activity in the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  let replaced: Json;
  before(async () => {
    const { toolhost, upstream, config } = dashboard;
    const [tool] = config('busy').tools as Json[];
    const tools = [tool, { ...tool, name: 'write', method: 'POST' }];
    await toolhost.createServer(config('busy', { authentication: { type: 'Bearer', token: '{{KEY}}' }, tools }));
    await toolhost.createServer(config('idle'));
    await toolhost.rest('PUT', '/servers/busy/secrets/KEY', { body: { value: 'secret-of-the-api' } });
    const { body } = await toolhost.rest('POST', '/keys', { body: { name: 'The agent', scopes: ['call'] } });
    const other = await toolhost.createKey();
    upstream.on('POST /items', () => ({ status: 500, body: { error: 'broken' } }));
    await toolhost.callTool('busy', String(body.key), 'read', { count: 1 });
    await toolhost.callTool('busy', other, 'read', { count: 2 });
    await toolhost.rest('POST', '/servers/busy/capture', { body: { hours: 1 } });
    await toolhost.callTool('busy', other, 'write', { count: 3 });
    await toolhost.callTool('idle', other, 'read', { count: 4 });
    replaced = (await toolhost.rest('POST', '/keys', { body: { name: 'Replaced', scopes: ['call'] } })).body;
    await toolhost.callTool('idle', String(replaced.key), 'read', { count: 5 });
  });

  it('is counted in the server list, next to the access and the number of tools', async (t) => {
    const page = await openPage(t, dashboard, '/servers');
    const row = page.getByRole('row').filter({ hasText: 'The busy' });
    await row.getByText('API key', { exact: true }).waitFor();
    await row.getByRole('cell', { name: '2', exact: true }).waitFor();
    await row.getByRole('img', { name: '3 calls in the last 24 hours, 1 with errors' }).waitFor();
    const other = page.getByRole('row').filter({ hasText: 'The idle' });
    await other.getByText('Open', { exact: true }).waitFor();
    await other.getByRole('img', { name: '2 calls in the last 24 hours' }).waitFor();
  });

  it('is filtered by server, tool, outcome, key, and time, and exported with the filter', async (t) => {
    const page = await openPage(t, dashboard, '/calls');
    const calls = page.getByRole('table', { name: 'Calls', exact: true }).locator('tbody').getByRole('row');
    const assertRowCount = (count: number) => eventually(async () => assert.equal(await calls.count(), count));
    const assertFilter = async (label: string, option: string | RegExp, count: number) => {
      await selectOption(page, label, option);
      await assertRowCount(count);
      await button(page, 'Clear').click();
      await assertRowCount(5);
    };
    await assertRowCount(5);
    await assertFilter('Server', 'The busy', 3);
    await assertFilter('API key', 'The agent', 1);
    await assertFilter('Outcome', 'API error', 1);
    await field(page, 'Tool').fill('write');
    await assertRowCount(1);
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Export CSV' }).click();
    const lines = readFileSync(await (await download).path(), 'utf8')
      .trim()
      .split('\r\n');
    assert.equal(lines.length, 2, 'expected a header row and one call');
    assert.match(lines[1] ?? '', /write/);
    await button(page, 'Clear').click();
    await selectOption(page, 'Time', 'Last 7 days');
    await assertRowCount(5);
    assert.equal(new URL(page.url()).searchParams.get('period'), '7d');
  });

  it('is charted over time and listed by tool with p50 and p95', async (t) => {
    const page = await openPage(t, dashboard, '/calls?server=busy');
    await page.getByRole('region', { name: 'Calls per hour: 3 total, 1 failed' }).locator('svg').first().waitFor();
    await page
      .getByRole('region', { name: /^Duration, ms/ })
      .locator('svg')
      .first()
      .waitFor();
    await button(page, 'By tool').click();
    const row = page
      .getByRole('table', { name: 'Calls by tool' })
      .getByRole('row')
      .filter({ has: page.getByRole('link', { name: 'read', exact: true }) });
    const cells = await row.getByRole('cell').allTextContents();
    assert.deepEqual(cells.slice(1, 3), ['2', '–']);
    for (const cell of cells.slice(3)) assert.match(cell, /^[\d,]+$|^–$/);
  });

  it('is listed in the audit with the person and the change', async (t) => {
    const page = await openPage(t, dashboard, '/settings', { person: { name: 'Audrey' } });
    await field(page, 'Workspace name').fill('Audited');
    await button(page, 'Rename').click();
    await waitForToast(page, 'Renamed the workspace');
    await page.goto('/audit');
    const changes = page.getByRole('table', { name: 'Changes' }).getByRole('row');
    const renamed = changes.filter({ hasText: 'Renamed the workspace' });
    await renamed.getByText('Audrey').waitFor();
    await renamed.getByText('Name: Audited').waitFor();
    await button(renamed, 'Renamed the workspace').click();
    const facts = page.getByRole('dialog', { name: 'Renamed the workspace' });
    await facts
      .getByRole('definition')
      .filter({ hasText: /^Audited$/ })
      .waitFor();
    await page.keyboard.press('Escape');
    await dashboard.toolhost.rest('PATCH', '/servers/idle/limits', { body: { calls_per_second: 5 } });
    const member = { name: 'Promoted', role: 'viewer' } as const;
    await createPersonSession(dashboard.toolhost, member);
    await page.goto('/settings');
    await selectOption(page, 'Role of Promoted', 'Editor');
    await waitForToast(page, 'The role is now editor');
    await page.goto('/audit');
    await changes.filter({ hasText: 'Changed server limits' }).getByText('idle', { exact: true }).waitFor();
    await changes.filter({ hasText: 'Changed a role' }).getByText('Promoted').waitFor();
    await changes.filter({ hasText: 'Set a secret' }).getByText('busy', { exact: true }).waitFor();
    assert.ok(!(await page.getByRole('main').textContent())?.includes('secret-of-the-api'));
  });
});

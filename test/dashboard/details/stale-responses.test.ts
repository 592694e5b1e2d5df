import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import {
  assertFieldError,
  button,
  chooseRowAction,
  field,
  openSettings,
  selectOption,
} from '../../support/browser/dashboard.ts';
import { openPage, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import { buildToolAt } from '../../support/upstream-configs.ts';
import { holdResponses, waitForRender } from '../../support/upstreams/held-responses.ts';

describe('a response that arrives after its request has changed', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, config, upstream } = dashboard;
    const input_schema = { count: { type: 'integer', description: 'How many', minimum: 1 } };
    const tool = buildToolAt(`${upstream.url}/items`, { name: 'read', input_schema });
    await toolhost.createServer(config('late'));
    await toolhost.createServer(config('tried', { authentication: { type: 'Bearer' }, tools: [tool] }));
    const key = await toolhost.createKey();
    await toolhost.callTool('late', key, 'read', { count: 7 });
    await toolhost.callTool('late', key, 'read', {});
  });

  it('[find D1] does not mark an edited argument as rejected', async (t) => {
    const page = await openPage(t, dashboard, '/servers/tried/try');
    const token = page.locator('input[type=password]');
    await field(page, 'count').fill('0');
    await button(page, 'Call tool').click();
    await assertFieldError(field(page, 'count'), /minimum 1/);
    const previews = await holdResponses(page, 'POST', '/api/v1/servers/tried/tools/read/preview');
    await field(page, 'count').fill('5');
    await previews.nextResponse();
    await assertFieldError(field(page, 'count'), /being rechecked/i);
    await previews.releaseAll();
    await field(page, 'count').fill('6');
    await eventually(async () => assert.equal(await field(page, 'count').getAttribute('aria-invalid'), null));
    await token.fill('two words');
    await button(page, 'Call tool').click();
    await assertFieldError(token, /without spaces/);
    await token.fill('one');
    await waitForRender(page);
    assert.equal(await token.getAttribute('aria-invalid'), null);
  });

  it('[find D1] is labeled as the result of other arguments', async (t) => {
    const page = await openPage(t, dashboard, '/servers/tried/try');
    const result = page.getByRole('region', { name: 'Result' });
    await page.locator('input[type=password]').fill('token-of-the-api');
    await field(page, 'count').fill('1');
    const calls = await holdResponses(page, 'POST', '/api/v1/servers/tried/tools/read/call');
    await button(page, 'Call tool').click();
    const release = await calls.nextResponse();
    await field(page, 'count').fill('2');
    await release();
    await result.getByText('which had other arguments').waitFor();
    await field(page, 'count').fill('1');
    await result.getByText('which had other arguments').waitFor({ state: 'hidden' });
  });

  it('[find D1] does not show an error for input that was replaced', async (t) => {
    const page = await openPage(t, dashboard, '/keys');
    await button(page, 'New API key').first().click();
    const dialog = page.getByRole('dialog');
    await field(dialog, 'Name').fill('x'.repeat(101));
    const made = await holdResponses(page, 'POST', '/api/v1/keys');
    await button(dialog, 'Create key').click();
    const release = await made.nextResponse();
    await field(dialog, 'Name').fill('short');
    await release();
    assert.equal(await field(dialog, 'Name').getAttribute('aria-invalid'), null);
  });

  it('[find D1] keeps a dialog open until its request has ended, so it cannot affect the next dialog', async (t) => {
    const createKey = async (name: string) => {
      const { body } = await dashboard.toolhost.rest('POST', '/keys', { body: { name, scopes: ['call'] } });
      return String(body.id);
    };
    const first = await createKey('first key');
    await createKey('second key');
    const page = await openPage(t, dashboard, '/keys');
    const revoked = await holdResponses(page, 'DELETE', `/api/v1/keys/${first}`);
    await chooseRowAction(page, 'first key', 'Revoke first key');
    const dialog = page.getByRole('dialog');
    await button(dialog, 'Revoke key').click();
    const release = await revoked.nextResponse();
    await page.keyboard.press('Escape');
    await waitForRender(page);
    assert.equal(await dialog.isVisible(), true);
    await release();
    await dialog.waitFor({ state: 'hidden' });
    await chooseRowAction(page, 'second key', 'Revoke second key');
    await dialog.getByText('Revoke second key?').waitFor();
    await button(dialog, 'Cancel').click();
  });

  it('[find D1] is discarded and fetched again if the list changed after the request', async (t) => {
    const page = await openPage(t, dashboard, '/servers');
    const lists = await holdResponses(page, 'GET', '/api/v1/keys');
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'API keys' }).click();
    const keyLists = [await lists.nextResponse()];
    await button(page, 'New API key').click();
    const dialog = page.getByRole('dialog');
    await field(dialog, 'Name').fill('made while the list came');
    await button(dialog, 'Create key').click();
    await button(dialog, 'Done').click();
    keyLists.push(await lists.nextResponse());
    await Promise.all(keyLists.map((release) => release()));
    await page.getByRole('row').filter({ hasText: 'made while the list came' }).waitFor();
    await page.goto('/servers/late/tools');
    const secrets = await holdResponses(page, 'GET', '/api/v1/servers/late/secrets');
    await openSettings(page, 'Secrets');
    const secretLists = [await secrets.nextResponse()];
    await button(page, 'Set secret').click();
    await field(page, 'Secret name').fill('MADE_MEANWHILE');
    await page.locator('input[type=password]').fill('a value');
    await button(page, 'Save secret').click();
    secretLists.push(await secrets.nextResponse());
    await Promise.all(secretLists.map((release) => release()));
    await page.getByRole('row').filter({ hasText: 'MADE_MEANWHILE' }).waitFor();
  });

  it('[find D1] is not shown if it belongs to another filter of calls and charts', async (t) => {
    const page = await openPage(t, dashboard, '/calls');
    const rows = page.getByRole('table', { name: 'Calls' });
    const charts = page.getByRole('region', { name: /^Calls per / });
    await rows.waitFor();
    await charts.waitFor();
    const lists = await holdResponses(page, 'GET', '/api/v1/calls');
    const statistics = await holdResponses(page, 'GET', '/api/v1/statistics');
    await selectOption(page, 'Server', 'The tried');
    const [releaseList, releaseChart] = [await lists.nextResponse(), await statistics.nextResponse()];
    assert.equal(await rows.getByText('late').count(), 0);
    assert.equal(await charts.count(), 0);
    await Promise.all([releaseList(), releaseChart()]);
    // The page polls: a response may belong to the previous filter, and the next one is held back too.
    await Promise.all([lists.releaseAll(), statistics.releaseAll()]);
    await charts.waitFor();
  });

  it('[find D1] leaves the focus and the input of the tool filter unchanged', async (t) => {
    const page = await openPage(t, dashboard, '/calls');
    const tool = field(page, 'Tool');
    const waitForSearch = (search: string) => page.waitForURL((url) => url.search.includes(search));
    await tool.click();
    await page.keyboard.type('re');
    await waitForSearch('tool=re');
    await page.keyboard.type('ad');
    await waitForSearch('tool=read');
    assert.equal(await tool.inputValue(), 'read');
    await page.clock.install();
    await page.keyboard.type('x');
    await button(page, 'Clear').click();
    await eventually(async () => assert.equal(await tool.inputValue(), ''));
    await page.clock.fastForward(5000);
    assert.equal(new URL(page.url()).search, '');
  });
});

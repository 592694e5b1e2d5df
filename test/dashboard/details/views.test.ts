import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertMapped } from '../../support/assert-lists.ts';
import { checkPage } from '../../support/browser/check-page.ts';
import { button, chooseRowAction, field, selectOption } from '../../support/browser/dashboard.ts';
import { openPage, save, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

const authentication = { type: 'Bearer', token: 'of-the-upstream' };

describe('a view in the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  const serve = async (slug: string, more: Json = {}) => {
    const [tool] = dashboard.config(slug).tools as Json[];
    const schema = { account: { type: 'string', optional: true } };
    const tools = ['list_orders', 'get_order', 'refund'].map((name) => ({ ...tool, name, input_schema: schema }));
    await dashboard.toolhost.createServer(dashboard.config(slug, { authentication, tools, ...more }));
  };
  const getStoredViews = async (slug: string) =>
    ((await dashboard.toolhost.rest('GET', `/servers/${slug}`)).body.config as Json).views;

  it('is created by keyboard and shows errors at its fields [agent 2]', async (t) => {
    await serve('edited');
    const page = await openPage(t, dashboard, '/servers/edited/tools');
    const section = page.getByRole('region', { name: 'Views', exact: true });
    const name = field(section, 'New view name');
    await name.fill('token');
    await name.press('Enter');
    await section.getByText(/is reserved for another page/).waitFor();
    await name.fill('support');
    await name.press('Enter');
    await button(section, 'support').waitFor();
    const tools = section.getByRole('combobox', { name: 'Tools', exact: true });
    for (const tool of ['refund', 'list_orders']) {
      await tools.fill(tool);
      await page.getByRole('option', { name: tool, exact: true }).waitFor();
      await tools.press('ArrowDown');
      await tools.press('Enter');
    }
    await tools.press('Escape');
    await field(section, 'Title').fill('Support desk');
    await button(section, 'Customize list_orders').press('Enter');
    await field(section, 'Title of list_orders').fill('Orders of Acme');
    const fixed = field(section, 'Fixed arguments of list_orders');
    await fixed.fill('{"acount": "acme"}');
    await fixed.press('Tab');
    await section
      .getByText(/the tool has no argument "acount"; did you mean `account`/)
      .first()
      .waitFor();
    await fixed.fill('{"account": "acme"}');
    await fixed.press('Tab');
    await page.setViewportSize({ width: 400, height: 900 });
    await checkPage(page);
    const link = section.getByRole('link', { name: 'Connect a client' });
    await section.getByText(/After you save, agents can reach it at .*\/mcp\/edited\/support\./).waitFor();
    assert.equal(await link.count(), 0);
    await save(page, 2);
    await button(section, 'Copy URL of support').waitFor();
    assert.equal(await link.getAttribute('href'), '/servers/edited/connect?view=support');
    await checkPage(page);
    assert.deepEqual(await getStoredViews('edited'), {
      support: {
        tools: ['refund', { name: 'list_orders', title: 'Orders of Acme', arguments: { account: 'acme' } }],
        title: 'Support desk',
      },
    });
    await button(section, 'Remove view support').click();
    await section.getByText('No views yet').waitFor();
    await save(page, 3);
    assert.equal(await getStoredViews('edited'), undefined);
  });

  it('has its own snippets with a key that can call only the view [agent 2]', async (t) => {
    await serve('chosen', { views: { desk: { tools: ['refund'] } } });
    const page = await openPage(t, dashboard, '/servers/chosen/connect');
    await selectOption(page, 'Connect to', 'View desk');
    await button(page, 'Create key for this view').click();
    const shown = page.getByRole('region', { name: 'API key', exact: true });
    await shown.waitFor();
    const key = (await shown.textContent()) ?? '';
    const command = page.getByRole('region', { name: 'snippet for Claude Code' });
    assert.ok((await command.textContent())?.includes(`chosen-desk ${dashboard.toolhost.url}/mcp/chosen/desk`));
    await page.setViewportSize({ width: 400, height: 900 });
    await checkPage(page);
    assert.equal((await dashboard.toolhost.rpc('chosen/desk', key, 'tools/list')).status, 200);
    assert.equal((await dashboard.toolhost.rpc('chosen', key, 'tools/list')).status, 403);
  });

  it('is checked at its own URL, without mixing up the results of two views [agent 2]', async (t) => {
    await serve('checked', { views: { desk: { tools: ['refund'] }, constructor: { tools: ['get_order'] } } });
    const page = await openPage(t, dashboard, '/servers/checked/connect');
    const section = page.getByRole('region', { name: 'Connection check' });
    const check = button(section, 'Check connection');
    const list = page.getByRole('combobox', { name: 'Connect to', exact: true });
    const desk = page.getByRole('option', { name: 'View desk', exact: true });
    await list.focus();
    await list.press('Enter');
    await desk.waitFor();
    // The list does not show which option it selects first, so the number of steps is unknown.
    await eventually(async () => {
      await list.press('ArrowDown');
      assert.equal(await desk.getAttribute('data-combobox-selected'), 'true');
    });
    await list.press('Enter');
    await section.getByText(/requests to the view desk/).waitFor();
    await page.waitForURL(/[?]view=desk$/);
    await check.press('Enter');
    await section.getByText(/\/mcp\/checked\/desk /).waitFor();
    await checkPage(page);
    await selectOption(page, 'Connect to', 'Server with all tools');
    await section.getByText(/requests to the server/).waitFor();
    await section.getByRole('img').first().waitFor({ state: 'detached' });
    await check.click();
    await section.getByText(/\/mcp\/checked /).waitFor();
    await selectOption(page, 'Connect to', 'View constructor');
    await section.getByText(/requests to the view constructor/).waitFor();
    await section.getByRole('img').first().waitFor({ state: 'detached' });
    await page
      .getByRole('region', { name: 'snippet for Claude Code' })
      .getByText(/YOUR_API_KEY/)
      .waitFor();
    const views = { desk: { tools: ['refund'] } };
    assert.equal((await dashboard.toolhost.rest('PATCH', '/servers/checked', { body: { views } })).status, 200);
    await check.click();
    await section.getByText(/The server has no view "constructor"; .*desk/).waitFor();
    await page.reload();
    await page.getByText('This server has no view constructor').waitFor();
    await section.getByText(/requests to the server/).waitFor();
    await checkPage(page);
  });

  it('filters the list of calls, and the charts say that they ignore this filter [agent 2]', async (t) => {
    await serve('called', { views: { desk: { tools: ['list_orders'] } } });
    await serve('plain');
    const key = await dashboard.toolhost.createKey();
    await dashboard.toolhost.callTool('called/desk', key, 'list_orders', {});
    await dashboard.toolhost.callTool('called', key, 'list_orders', {});
    const page = await openPage(t, dashboard, '/calls?server=called');
    const rows = page.getByRole('table', { name: 'Calls', exact: true }).locator('tbody').getByRole('row');
    await eventually(async () => assert.equal(await rows.count(), 2));
    await page.getByRole('combobox', { name: 'View', exact: true }).waitFor();
    await selectOption(page, 'View', 'desk');
    await rows.getByText('called/desk').waitFor();
    await eventually(async () => assert.equal(await rows.count(), 1));
    await page.getByText('The charts use only the Server, Tool, and Time filters.').waitFor();
    const exported = await page.getByRole('link', { name: 'Export CSV' }).getAttribute('href');
    assert.match(exported ?? '', /slug=called&view=desk/);
    await page.setViewportSize({ width: 400, height: 900 });
    await checkPage(page);
    await selectOption(page, 'Server', 'The plain');
    await page.getByText('No calls').waitFor();
    assert.equal(new URL(page.url()).searchParams.get('view'), null);
    assert.equal(await page.getByRole('combobox', { name: 'View', exact: true }).count(), 0);
  });

  it('can be tried without its fixed arguments and appears in the call record [agent 2]', async (t) => {
    const fixed = { desk: { tools: [{ name: 'list_orders', arguments: { account: 'acme' } }] } };
    await serve('tried', { views: fixed });
    const page = await openPage(t, dashboard, '/servers/tried/try?tool=list_orders');
    await field(page, 'account').waitFor();
    await selectOption(page, 'Endpoint', 'View desk');
    await field(page, 'account').waitFor({ state: 'detached' });
    await page
      .getByText(/account=acme/)
      .first()
      .waitFor();
    await button(page, 'Copy as MCP request or code').click();
    await page.getByText('curl', { exact: true }).last().click();
    await page.getByText(/\/mcp\/tried\/desk/).waitFor();
    await button(page, 'Call tool').click();
    await page.getByRole('region', { name: 'Result' }).waitFor();
    await checkPage(page);
    const { body } = await dashboard.toolhost.rest('GET', '/servers/tried/calls?view=desk');
    assert.equal((body.calls as Json[]).length, 1);
  });

  it('remains the limit of a replaced key [agent 2]', async (t) => {
    await serve('kept', { views: { desk: { tools: ['refund'] } } });
    const body = { name: 'Desk', scopes: ['call'], views: ['kept/desk'] };
    assert.equal((await dashboard.toolhost.rest('POST', '/keys', { body })).status, 201);
    const page = await openPage(t, dashboard, '/keys');
    await page.getByRole('row').filter({ hasText: 'Desk' }).getByText('kept/desk').waitFor();
    await chooseRowAction(page, 'Desk', 'Replace Desk');
    const dialog = page.getByRole('dialog', { name: 'Replace Desk' });
    await dialog.getByText('kept/desk').waitFor();
    await checkPage(page);
    await button(dialog, 'Create new key').click();
    await page.getByRole('region', { name: 'API key', exact: true }).waitFor();
    const command = await page.getByRole('region', { name: 'command for Claude Code' }).textContent();
    assert.ok(command?.includes('/mcp/kept/desk'));
    const keys = (await dashboard.toolhost.rest('GET', '/keys')).body.keys as Json[];
    const deskKeys = keys.filter(({ name }) => name === 'Desk');
    assertMapped(
      deskKeys,
      ({ servers, views }) => ({ servers, views }),
      Array(2).fill({ servers: undefined, views: ['kept/desk'] }),
    );
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { button, field, getJsonEditor, showView } from '../../support/browser/dashboard.ts';
import { press, waitForValidation } from '../../support/browser/pointer-press.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import { openPage, openServer, useDashboard } from '../../support/browser/use-dashboard.ts';
import { holdResponses, waitForRender } from '../../support/upstreams/held-responses.ts';

describe('the dashboard during a pointer press', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  it('[find D2] hits the button although leaving a field with two lines of input changes the layout', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new?from=form');
    await page.getByText('Not saved yet').waitFor();
    const input = page.getByRole('combobox', { name: 'Response fields', exact: true });
    await input.fill('one, two, three and a long way more, so that it needs a second line here, a.b.c');
    await waitForValidation(page);
    await press(page, button(page, 'Advanced'));
    await field(page, 'Timeout, ms').waitFor();
  });

  it('[find D2] opens the pressed row although the list grows in the meantime', async (t) => {
    const { toolhost, config, upstream } = dashboard;
    await toolhost.createServer(config('growing'));
    const key = await toolhost.createKey();
    upstream.on('GET /items', () => ({ body: { ok: true } }));
    await toolhost.callTool('growing', key, 'read', { count: 1 });
    await toolhost.callTool('growing', key, 'read', {});
    const page = await openPage(t, dashboard, '/calls?server=growing');
    const rows = page.getByRole('table', { name: 'Calls' }).locator('tbody').getByRole('row');
    const refused = rows.filter({ hasText: 'Invalid arguments' });
    await refused.waitFor();
    for (let call = 0; call < 3; call++) await toolhost.callTool('growing', key, 'read', { count: 2 });
    const lists = await holdResponses(page, 'GET', '/api/v1/calls');
    const answer = await lists.nextResponse();
    await press(page, refused.getByRole('button'), answer);
    await page.getByRole('dialog').getByText('Invalid arguments').waitFor();
    await lists.releaseAll();
  });

  it('[find D2] saves the last input of the field that a click on Save leaves', async (t) => {
    const page = await openServer(t, dashboard, 'tools?tool=read', 'kept-tags');
    await page.getByRole('combobox', { name: 'Response fields', exact: true }).fill('name');
    await waitForRender(page);
    await field(page, 'Tool description').fill('Makes it savable.');
    await page.getByRole('combobox', { name: 'Response fields', exact: true }).pressSequentially('id');
    await press(page, button(page, 'Save'));
    await waitForToast(page, 'Saved as version 2');
    const { body } = await dashboard.toolhost.rest('GET', '/servers/kept-tags');
    const [tool] = (body.config as { tools: { response_fields: string[] }[] }).tools;
    assert.deepEqual(tool?.response_fields, ['name', 'id']);
  });

  it('[find D2] reformats the JSON only after the click on Create server', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new?from=form');
    await showView(page, 'JSON');
    const { json } = getJsonEditor(page);
    await json.fill(JSON.stringify(dashboard.config('in-order')));
    await waitForValidation(page);
    await press(page, button(page, 'Create server'));
    await page.waitForURL('**/servers/in-order/connect');
  });

  it('[find D2] hits the button by touch although leaving the field changes the layout', async (t) => {
    const options = { viewport: { width: 500, height: 900 }, hasTouch: true };
    const page = await openPage(t, dashboard, '/servers/new?from=form', { options });
    await field(page, 'URL').fill('nowhere');
    await waitForValidation(page);
    await button(page, 'Add argument').tap();
    await field(page, 'Name of argument 1').waitFor();
    await page.getByText('Not a URL').first().waitFor();
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import {
  button,
  type Dashboard,
  getJsonEditor,
  selectOption,
  startDashboard,
} from '../../support/browser/dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

describe('a tool in the dashboard', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  const serve = (slug: string) => {
    const [tool] = dashboard.config(slug).tools as Json[];
    const tools = ['read', 'write'].map((name) => ({ ...tool, name, input_schema: {} }));
    return dashboard.toolhost.createServer(dashboard.config(slug, { tools }));
  };
  const getEnableSwitch = (page: Page, name: string) =>
    page.getByRole('switch', { name: `Enable ${name}`, exact: true });
  const listToolNames = async (slug: string) => {
    const { body } = await dashboard.toolhost.rpc(slug, 'of-the-caller', 'tools/list');
    return (body.result as { tools: Json[] }).tools.map(({ name }) => name);
  };

  it('is disabled and enabled by keyboard, in the form and in the JSON', async () => {
    await serve('switched');
    await dashboard.withPage('/servers/switched/tools', async (page) => {
      const { json, text } = getJsonEditor(page);
      await getEnableSwitch(page, 'write').focus();
      await page.keyboard.press('Space');
      assert.equal(await getEnableSwitch(page, 'write').isChecked(), false);
      await page.getByText('Disabled', { exact: true }).waitFor();
      assert.match(await text(), /"disabled": true/);
      await button(page, 'Save').click();
      await page.getByText('All changes saved').waitFor();
      assert.deepEqual(await listToolNames('switched'), ['read']);

      await json.fill((await text()).replace('"disabled": true', '"disabled": false'));
      await eventually(async () => assert.equal(await getEnableSwitch(page, 'write').isChecked(), true));
      await page.getByText('Disabled', { exact: true }).waitFor({ state: 'hidden' });
      await getEnableSwitch(page, 'read').focus();
      await page.keyboard.press('Space');
      await button(page, 'Save').click();
      await page.getByText('All changes saved').waitFor();
      assert.deepEqual(await listToolNames('switched'), ['write']);
      await page.goto('/servers/switched/versions');
      const changes = page.getByLabel('Changes from version 2 to version 3');
      await changes.getByText('tool read disabled').waitFor();
    });
  });

  it('is offered in Try it only if enabled, with a message if all are disabled', async () => {
    await serve('half');
    const { body } = await dashboard.toolhost.rest('GET', '/servers/half');
    const tools = (body.config as { tools: Json[] }).tools;
    const storeTools = (next: Json[]) => dashboard.toolhost.rest('PATCH', '/servers/half', { body: { tools: next } });
    await storeTools(tools.map((tool) => ({ ...tool, disabled: tool.name === 'read' })));
    await dashboard.withPage('/servers/half/try?tool=read', async (page) => {
      const tool = page.getByRole('combobox', { name: 'Tool', exact: true });
      assert.equal(await tool.inputValue(), 'write');
      await tool.click();
      assert.deepEqual(await page.getByRole('option').allTextContents(), ['write']);
      await storeTools(tools.map((one) => ({ ...one, disabled: true })));
      await page.reload();
      await page.getByText('All tools are disabled. Enable one under Tools first.').waitFor();
      await page.goto('/servers/half/tools');
      await page.getByText('Every tool of the server is disabled; agents see none.').waitFor();
    });
  });

  it('is listed in the calls as a try-out by the person, with a filter', async () => {
    await serve('tried');
    await dashboard.toolhost.callTool('tried', 'of-the-caller', 'write');
    await dashboard.withPage(
      '/servers/tried/try?tool=read',
      async (page) => {
        await button(page, 'Call tool').click();
        await page.getByRole('region', { name: 'Result' }).waitFor();
        await page.goto('/calls?server=tried');
        const rows = page.getByRole('table', { name: 'Calls' }).locator('tbody tr');
        await eventually(async () => assert.equal(await rows.count(), 2));
        await selectOption(page, 'Caller', 'Try-out');
        await eventually(async () => assert.equal(await rows.count(), 1));
        assert.equal(new URL(page.url()).searchParams.get('caller'), 'try_out');
        assert.match((await rows.textContent()) ?? '', /read.*Try-out/);
        await rows.getByRole('button', { name: 'read' }).click();
        await page.getByRole('dialog').getByText('Try-out by Berta').waitFor();
        const csv = await page.getByRole('link', { name: 'Export CSV' }).getAttribute('href');
        assert.match(csv ?? '', /caller_kind=try_out/);
      },
      { person: { name: 'Berta' } },
    );
  });
});

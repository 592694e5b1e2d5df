import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertMapped } from '../../support/assert-lists.ts';
import { checkPage } from '../../support/browser/check-page.ts';
import { button, field, getJsonEditor, selectOption, showView } from '../../support/browser/dashboard.ts';
import { getStoredConfig, openPage, pressOn, save, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';
import { buildToolAt } from '../../support/upstream-configs.ts';

describe('the tools table of a server', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  const serve = (slug: string, count: number) => {
    const tools = Array.from({ length: count }, (_, index) => {
      const more = { name: `tool_${index}`, input_schema: {}, tags: [`group-${index % 10}`] };
      return buildToolAt(`${dashboard.upstream.url}/things/${index}`, more);
    });
    return dashboard.toolhost.createServer(dashboard.config(slug, { tools }));
  };
  const getStoredTools = async (slug: string) => (await getStoredConfig<{ tools: Json[] }>(dashboard, slug)).tools;
  const getToolsTable = (page: Page) => page.getByRole('table', { name: 'Tools' });
  it('finds one tool among 300 and disables it in 4 clicks, without scrolling', async (t) => {
    await serve('three-hundred', 300);
    const page = await openPage(t, dashboard, '/servers');
    let clicks = 0;
    const click = async (target: Locator) => {
      await target.waitFor();
      const box = await target.boundingBox();
      assert.ok(box && box.y >= 0 && box.y + box.height <= 900, `${target} is not in view`);
      await target.click();
      clicks += 1;
    };
    await click(page.getByRole('link', { name: 'The three-hundred' }));
    await click(page.getByRole('link', { name: 'Tools', exact: true }));
    await getToolsTable(page).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('tool_217');
    await click(getToolsTable(page).getByRole('row').filter({ hasText: 'tool_217' }).locator('.mantine-Switch-track'));
    await page.getByText(/^Unsaved changes/).waitFor();
    // Clicks by coordinates, because `click` would scroll the sticky bar away from the end of the page.
    const save = await button(page, 'Save').boundingBox();
    assert.ok(save && save.y + save.height <= 900);
    await page.mouse.click(save.x + save.width / 2, save.y + save.height / 2);
    clicks += 1;
    await button(page, 'Save').waitFor({ state: 'hidden' });
    assert.equal(clicks, 4);
    assert.equal(Number(await page.evaluate('scrollY')), 0);
    const disabledTools = (await getStoredTools('three-hundred')).filter(({ disabled }) => disabled);
    assertMapped(disabledTools, ({ name }) => name, ['tool_217']);
  });

  it('opens a tool in a drawer with its own URL, which the back button closes', async (t) => {
    await serve('addressed', 12);
    const page = await openPage(t, dashboard, '/servers/addressed/tools');
    await button(getToolsTable(page), 'tool_3').click();
    const drawer = page.getByRole('dialog', { name: 'tool_3' });
    await field(drawer, 'Tool description').fill('Reads the things of the third group.');
    assert.equal(new URL(page.url()).search, '?tool=tool_3');
    await checkPage(page);
    await page.goBack();
    await drawer.waitFor({ state: 'hidden' });
    await page.getByText(/^Unsaved changes/).waitFor();
    await page.goForward();
    await save(page);
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'hidden' });
    assert.equal(new URL(page.url()).search, '');
    await page.goto('/servers/addressed/tools?tool=tool_7');
    await page.getByRole('dialog', { name: 'tool_7' }).waitFor();
    await button(page, 'Close').click();
    await eventually(() => assert.equal(new URL(page.url()).search, ''));
    assert.equal((await getStoredTools('addressed'))[3]?.description, 'Reads the things of the third group.');
  });

  it('disables, tags, adds to a view, and deletes the selected tools', async (t) => {
    await serve('selected', 30);
    const page = await openPage(t, dashboard, '/servers/selected/tools');
    await field(page, 'Filter tools').fill('group-4');
    await page.getByRole('checkbox', { name: 'Select all shown tools' }).click();
    const bar = page.getByRole('group', { name: 'Selected tools' });
    await bar.getByText('3 selected').waitFor();
    await button(bar, 'Disable').click();
    const submitInput = async (label: string, text: string) => {
      await button(bar, `${label}…`).click();
      await page
        .getByRole('combobox', { name: label })
        .or(page.getByRole('textbox', { name: label }))
        .fill(text);
      await page.keyboard.press('Enter');
    };
    await submitInput('Tag', 'finance');
    await submitInput('Add to view', 'books');
    await checkPage(page);
    await button(bar, 'Clear').click();
    await field(page, 'Filter tools').fill('tool_1');
    await page.getByRole('checkbox', { name: 'Select tool_1', exact: true }).click();
    await button(bar, 'Delete').click();
    await bar.waitFor({ state: 'hidden' });
    await save(page);
    const { tools, views } = await getStoredConfig<{ tools: Json[]; views: Json }>(dashboard, 'selected');
    assert.equal(tools.length, 29);
    const disabledTools = tools.filter(({ disabled }) => disabled);
    const names = ['tool_4', 'tool_14', 'tool_24'];
    assert.deepEqual(
      new Map(disabledTools.map(({ name, tags }) => [name, tags])),
      new Map(names.map((name) => [name, ['group-4', 'finance']])),
    );
    assert.deepEqual(views, { books: { tools: names } });
  });

  it('shows and sorts by the tokens, calls, and failures of each tool', async (t) => {
    await serve('called', 12);
    dashboard.upstream.on('GET /things/5', () => ({ status: 500, body: {} }));
    dashboard.upstream.on('GET /things/8', () => ({ body: {} }));
    for (const tool of ['tool_5', 'tool_8', 'tool_8'])
      await dashboard.toolhost.callTool('called', 'of-the-caller', tool);
    const page = await openPage(t, dashboard, '/servers/called/tools');
    const names = () => getToolsTable(page).locator('.th-tool-name').allTextContents();
    await button(page, 'Calls, 24 h').click();
    await eventually(async () => assert.deepEqual((await names()).slice(0, 2), ['tool_8', 'tool_5']));
    const row = getToolsTable(page).getByRole('row').filter({ hasText: 'tool_5' });
    await eventually(async () => assert.match((await row.textContent()) ?? '', /GET \/things\/5\d\d11$/));
    await button(page, 'Failed, 24 h').click();
    await eventually(async () => assert.equal((await names())[0], 'tool_5'));
    await button(page, /^Failed/).click();
    await eventually(async () => assert.equal((await names())[0], 'tool_0'));
  });

  it('stays filtered and sorted after a change is saved', async (t) => {
    await serve('stays', 30);
    dashboard.upstream.on('GET /things/15', () => ({ body: {} }));
    await dashboard.toolhost.callTool('stays', 'of-the-caller', 'tool_15');
    const page = await openPage(t, dashboard, '/servers/stays/tools');
    await button(page, 'Calls, 24 h').click();
    await field(page, 'Filter tools').fill('group-5');
    const names = () => getToolsTable(page).locator('.th-tool-name').allTextContents();
    const shown = ['tool_15', 'tool_5', 'tool_25'];
    await eventually(async () => assert.deepEqual(await names(), shown));
    await pressOn(page.getByRole('switch', { name: 'Enable tool_25', exact: true }), 'Space');
    await save(page);
    await page.getByRole('alert').filter({ hasText: 'Saved as version 2' }).waitFor();
    assert.deepEqual(await names(), shown);
    assert.equal(await field(page, 'Filter tools').inputValue(), 'group-5');
    await button(page, /^Calls/)
      .and(page.locator('[aria-sort=descending] button'))
      .waitFor();
  });

  it('shows a toast that covers no control, in a wide and in a narrow window', async (t) => {
    await serve('toasted', 12);
    const page = await openPage(t, dashboard, '/servers/toasted/settings');
    for (const [index, width] of [1440, 400].entries()) {
      await page.setViewportSize({ width, height: 900 });
      await field(page, 'Name').fill(`Toasted ${width}`);
      await save(page, index + 2);
      assert.deepEqual(await page.evaluate(findCoveredControls), []);
    }
  });

  const serveTwo = (slug: string) => {
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

  it('disables and enables a tool by keyboard, in the form and in the JSON', async (t) => {
    await serveTwo('switched');
    const page = await openPage(t, dashboard, '/servers/switched/tools');
    const { json, text } = getJsonEditor(page);
    await pressOn(getEnableSwitch(page, 'write'), 'Space');
    assert.equal(await getEnableSwitch(page, 'write').isChecked(), false);
    await page.getByText('Disabled', { exact: true }).waitFor();
    await save(page);
    assert.deepEqual(await listToolNames('switched'), ['read']);

    await showView(page, 'JSON');
    await json.fill((await text()).replace('"disabled": true', '"disabled": false'));
    await showView(page, 'Form');
    await eventually(async () => assert.equal(await getEnableSwitch(page, 'write').isChecked(), true));
    await page.getByText('Disabled', { exact: true }).waitFor({ state: 'hidden' });
    await pressOn(getEnableSwitch(page, 'read'), 'Space');
    await save(page);
    assert.deepEqual(await listToolNames('switched'), ['write']);
    await page.goto('/servers/switched/settings/versions?from=2');
    const changes = page.getByLabel('Changes from version 2 to version 3');
    await changes.getByText('tool read disabled').waitFor();
  });

  it('offers only enabled tools in Try it, and says so if all are disabled', async (t) => {
    await serveTwo('half');
    const { body } = await dashboard.toolhost.rest('GET', '/servers/half');
    const tools = (body.config as { tools: Json[] }).tools;
    const storeTools = (next: Json[]) => dashboard.toolhost.rest('PATCH', '/servers/half', { body: { tools: next } });
    await storeTools(tools.map((tool) => ({ ...tool, disabled: tool.name === 'read' })));
    const page = await openPage(t, dashboard, '/servers/half/try?tool=read');
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

  it('lists a try-out in the calls with the person who made it, and filters by it', async (t) => {
    await serveTwo('tried');
    await dashboard.toolhost.callTool('tried', 'of-the-caller', 'write');
    const page = await openPage(t, dashboard, '/servers/tried/try?tool=read', { person: { name: 'Berta' } });
    await button(page, 'Call tool').click();
    await page.getByRole('region', { name: 'Result' }).waitFor();
    await page.goto('/calls?server=tried');
    const rows = page.getByRole('table', { name: 'Calls' }).locator('tbody tr');
    await eventually(async () => assert.equal(await rows.count(), 2));
    await selectOption(page, 'Caller', 'Try it');
    await eventually(async () => assert.equal(await rows.count(), 1));
    assert.equal(new URL(page.url()).searchParams.get('caller'), 'try_out');
    assert.match((await rows.textContent()) ?? '', /read.*Try it/);
    await rows.getByRole('button', { name: 'read' }).click();
    await page.getByRole('dialog').getByText('Try it by Berta').waitFor();
    const csv = await page.getByRole('link', { name: 'Export CSV' }).getAttribute('href');
    assert.match(csv ?? '', /caller_kind=try_out/);
  });
});

/** Returns the controls that a toast covers. */
const findCoveredControls = `(() => {
  scrollTo(0, 0);
  const toast = document.querySelector('.mantine-Notification-root');
  const box = toast.getBoundingClientRect();
  return [...document.querySelectorAll('a, button, input, textarea')]
    .filter((node) => !toast.contains(node) && node.checkVisibility({ visibilityProperty: true }))
    .filter((node) => {
      const { left, right, top, bottom } = node.getBoundingClientRect();
      return left < box.right && right > box.left && top < box.bottom && bottom > box.top;
    })
    .map((node) => node.outerHTML);
})()`;

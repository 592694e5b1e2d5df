import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { checkPage } from '../../support/browser/check-page.ts';
import { button, type Dashboard, field, startDashboard } from '../../support/browser/dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

describe('the tools table of a server', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  const serve = (slug: string, count: number) => {
    const tools = Array.from({ length: count }, (_, index) => ({
      name: `tool_${index}`,
      description: `Reads the things of group ${index}.`,
      method: 'GET',
      url: `${dashboard.upstream.url}/things/${index}`,
      input_schema: {},
      tags: [`group-${index % 10}`],
    }));
    return dashboard.toolhost.createServer(dashboard.config(slug, { tools }));
  };
  const getStoredConfig = async (slug: string) =>
    (await dashboard.toolhost.rest('GET', `/servers/${slug}`)).body.config as { tools: Json[]; views?: Json };
  const getToolsTable = (page: Page) => page.getByRole('table', { name: 'Tools' });
  const save = async (page: Page) => {
    await button(page, 'Save').click();
    await page.getByText(/^All changes saved/).waitFor();
  };
  it('finds one tool among 300 and disables it in 4 clicks, without scrolling', async () => {
    await serve('three-hundred', 300);
    await dashboard.withPage('/servers', async (page) => {
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
      await click(
        getToolsTable(page).getByRole('row').filter({ hasText: 'tool_217' }).locator('.mantine-Switch-track'),
      );
      await page.getByText(/^Unsaved changes/).waitFor();
      // Clicks by coordinates, because `click` would scroll the sticky bar away from the end of the page.
      const save = await button(page, 'Save').boundingBox();
      assert.ok(save && save.y + save.height <= 900);
      await page.mouse.click(save.x + save.width / 2, save.y + save.height / 2);
      clicks += 1;
      await page.getByText(/^All changes saved/).waitFor();
      assert.equal(clicks, 4);
      assert.equal(Number(await page.evaluate('scrollY')), 0);
    });
    const { tools } = await getStoredConfig('three-hundred');
    assert.deepEqual(
      tools.filter(({ disabled }) => disabled).map(({ name }) => name),
      ['tool_217'],
    );
  });

  it('opens a tool in a drawer with its own URL, which the back button closes', async () => {
    await serve('addressed', 12);
    await dashboard.withPage('/servers/addressed/tools', async (page) => {
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
    });
    assert.equal((await getStoredConfig('addressed')).tools[3]?.description, 'Reads the things of the third group.');
  });

  it('disables, tags, adds to a view, and deletes the selected tools', async () => {
    await serve('selected', 30);
    await dashboard.withPage('/servers/selected/tools', async (page) => {
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
    });
    const { tools, views } = await getStoredConfig('selected');
    assert.equal(tools.length, 29);
    const disabledTools = tools.filter(({ disabled }) => disabled);
    assert.deepEqual(
      disabledTools.map(({ name, tags }) => [name, tags]),
      ['tool_4', 'tool_14', 'tool_24'].map((name) => [name, ['group-4', 'finance']]),
    );
    assert.deepEqual(views, { books: { tools: ['tool_4', 'tool_14', 'tool_24'] } });
  });

  it('shows and sorts by the tokens, calls, and failures of each tool', async () => {
    await serve('called', 12);
    dashboard.upstream.on('GET /things/5', () => ({ status: 500, body: {} }));
    dashboard.upstream.on('GET /things/8', () => ({ body: {} }));
    for (const tool of ['tool_5', 'tool_8', 'tool_8'])
      await dashboard.toolhost.callTool('called', 'of-the-caller', tool);
    await dashboard.withPage('/servers/called/tools', async (page) => {
      await page.getByText('Form', { exact: true }).click();
      const names = () => getToolsTable(page).locator('.th-tool-name').allTextContents();
      await button(page, 'Calls').click();
      await eventually(async () => assert.deepEqual((await names()).slice(0, 2), ['tool_8', 'tool_5']));
      const row = getToolsTable(page).getByRole('row').filter({ hasText: 'tool_5' });
      await eventually(async () => assert.match((await row.textContent()) ?? '', /GET\d\d11$/));
      await button(page, 'Failed').click();
      await eventually(async () => assert.equal((await names())[0], 'tool_5'));
      await button(page, /^Failed/).click();
      await eventually(async () => assert.equal((await names())[0], 'tool_0'));
    });
  });

  it('stays filtered and sorted after a change is saved', async () => {
    await serve('stays', 30);
    dashboard.upstream.on('GET /things/15', () => ({ body: {} }));
    await dashboard.toolhost.callTool('stays', 'of-the-caller', 'tool_15');
    await dashboard.withPage('/servers/stays/tools', async (page) => {
      await page.getByText('Form', { exact: true }).click();
      await button(page, 'Calls').click();
      await field(page, 'Filter tools').fill('group-5');
      const names = () => getToolsTable(page).locator('.th-tool-name').allTextContents();
      const shown = ['tool_15', 'tool_5', 'tool_25'];
      await eventually(async () => assert.deepEqual(await names(), shown));
      await page.getByRole('switch', { name: 'Enable tool_25', exact: true }).focus();
      await page.keyboard.press('Space');
      await save(page);
      await page.getByRole('alert').filter({ hasText: 'Saved as version 2' }).waitFor();
      assert.deepEqual(await names(), shown);
      assert.equal(await field(page, 'Filter tools').inputValue(), 'group-5');
      await button(page, /^Calls/)
        .and(page.locator('[aria-sort=descending] button'))
        .waitFor();
    });
  });

  it('shows a toast that covers no control, in a wide and in a narrow window', async () => {
    await serve('toasted', 12);
    for (const width of [1440, 400]) {
      await dashboard.withPage('/servers/toasted/settings', async (page) => {
        await page.setViewportSize({ width, height: 900 });
        await field(page, 'Name').fill(`Toasted ${width}`);
        await button(page, 'Save').click();
        const toast = page.getByRole('alert').filter({ hasText: 'Saved as version' });
        await toast.waitFor();
        assert.deepEqual(await page.evaluate(findCoveredControls), []);
      });
    }
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

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkPage } from '../support/browser/check-page.ts';
import { alert, button, type Dashboard, field, startDashboard } from '../support/browser/dashboard.ts';
import { openApi } from '../support/import/plan-of.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

/** Three hundred operations in thirty tags, with a key. */
function shop(address: string): string {
  const paths: Json = {};
  for (let index = 0; index < 300; index++) {
    paths[`/things${index}/{id}`] = {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      get: {
        operationId: `getThing${index}`,
        summary: `Get one of the things number ${index}`,
        tags: [`Tag ${Math.floor(index / 10)}`],
      },
    };
  }
  const securitySchemes = { key: { type: 'apiKey', in: 'header', name: 'X-Shop-Key' } };
  return JSON.stringify(
    openApi(paths, { servers: [{ url: address }], components: { securitySchemes }, security: [{ key: [] }] }),
  );
}

describe('importing an API, in the dashboard', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  it('[imp 4] leads from a file to a connected server with 12 of 300 operations', async () => {
    const { toolhost, upstream } = dashboard;
    upstream.on('GET /things17/a', () => ({ body: { number: 17 } }));
    await dashboard.at('/servers/new', async (page) => {
      await page.getByRole('link', { name: /From an API description/ }).click();
      const file = { name: 'shop.json', mimeType: 'application/json', buffer: Buffer.from(shop(upstream.url)) };
      await page.locator('input[type=file]').setInputFiles(file);
      await page.getByRole('heading', { name: 'Operations' }).waitFor();
      await checkPage(page);
      await button(page, 'Choose none').click();
      await page.getByText('0 tools, about 0 tokens').waitFor();
      await page.getByRole('checkbox', { name: 'Tag 1', exact: true }).check();
      await page.getByRole('textbox', { name: 'Search operations' }).fill('things2');
      await page.getByRole('checkbox', { name: /get_thing25\b/ }).check();
      await page.getByRole('checkbox', { name: /get_thing27\b/ }).check();
      await page.getByText(/12 tools, about \d+/).waitFor();
      await field(page, 'Slug').fill('shop');
      await button(page, 'Review').click();
      const region = page.getByRole('region', { name: 'Credentials and review' });
      await region.getByText(/12 tools/).waitFor();
      await region.locator('input[type=password]').fill('the-key-of-the-shop');
      await checkPage(page);
      await button(page, 'Create the server').click();
      await page.waitForURL('**/servers/shop/connect');
      await page.getByText('Your server is running').waitFor();
    });
    const key = await toolhost.key();
    const result = await toolhost.callTool('shop', key, 'get_thing17', { id: 'a' });
    assert.match(result.content[0]?.text ?? '', /17/, JSON.stringify(result));
    assert.equal(upstream.take().at(-1)?.headers['x-shop-key'], 'the-key-of-the-shop');
  });

  it('[imp 4] says what is wrong with a description, and keeps what was typed', async () => {
    await dashboard.at('/servers/new/import', async (page) => {
      await field(page, 'Or its text').fill('{"openapi": "3.1.0"');
      await button(page, 'Read the description').click();
      await alert(page, 'The description was not read').waitFor();
      assert.equal(await field(page, 'Or its text').inputValue(), '{"openapi": "3.1.0"');
    });
  });

  it('[imp 4] is used by keyboard in a narrow window, and is not for viewers', async () => {
    const narrow = { options: { viewport: { width: 400, height: 800 } } };
    const { upstream } = dashboard;
    await dashboard.at(
      '/servers/new/import',
      async (page) => {
        await field(page, 'Or its text').fill(shop(upstream.url));
        await button(page, 'Read the description').focus();
        await page.keyboard.press('Enter');
        const group = page.getByRole('button', { name: /operations of Tag 3$/ });
        await group.focus();
        await page.keyboard.press('Enter');
        const box = page.getByRole('checkbox', { name: /get_thing31\b/ });
        const before = await box.isChecked();
        await box.focus();
        await page.keyboard.press('Space');
        assert.equal(await box.isChecked(), !before);
        await checkPage(page);
      },
      narrow,
    );
    await dashboard.at(
      '/servers/new/import',
      async (page) => {
        await page.getByText('Only editors and owners make servers.').waitFor();
      },
      { person: { name: 'Vera', role: 'viewer' } },
    );
  });
});

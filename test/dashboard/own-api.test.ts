import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertSome } from '../support/assert-lists.ts';
import { checkPage } from '../support/browser/check-page.ts';
import { button, field } from '../support/browser/dashboard.ts';
import { pressKeyOn, typeInto } from '../support/browser/keyboard.ts';
import { openPage, useDashboard } from '../support/browser/use-dashboard.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

/** Tool of the operation ID that FastAPI generates. */
const listTool = 'list_orders';

/** Document of a FastAPI service with a bearer token, as FastAPI generates it: it names no servers. */
function createDocument(title: string): Json {
  const security = [{ HTTPBearer: [] }];
  const get = (operationId: string, summary: string) => ({ operationId, summary, tags: ['orders'], security });
  const orderId = { name: 'order_id', in: 'path', required: true, schema: { type: 'integer', title: 'Order Id' } };
  return {
    openapi: '3.1.0',
    info: { title, version: '0.1.0' },
    paths: {
      '/orders': { get: get('list_orders_orders_get', 'List Orders') },
      '/orders/{order_id}': {
        get: { ...get('read_order_orders__order_id__get', 'Read Order'), parameters: [orderId] },
      },
    },
    components: { securitySchemes: { HTTPBearer: { type: 'http', scheme: 'bearer' } } },
  };
}

describe('a developer with a FastAPI service', () => {
  const dashboard = useDashboard();

  /** Serves the document of an API, and returns its address. */
  function serveApi(title: string): string {
    const { upstream } = dashboard;
    upstream.on('GET /openapi.json', () => ({ body: createDocument(title) }));
    upstream.on('GET /orders', () => ({ body: [{ order_id: 7, status: 'late' }] }));
    return `${upstream.url}/openapi.json`;
  }

  /** Copies the snippet of the selected client, and returns the key in it. */
  async function getCopiedKey(page: Page): Promise<string> {
    const copied = String(await page.evaluate('navigator.clipboard.readText()'));
    return /Bearer (thk_\w+)/.exec(copied)?.[1] ?? assert.fail(copied);
  }

  /** Calls the server with the copied key, as the client would. */
  async function callWith(slug: string, key: string): Promise<void> {
    const { toolhost, upstream } = dashboard;
    const { body } = await toolhost.rpc(slug, key, 'tools/list');
    const { tools } = body.result as { tools: { name: string }[] };
    assertSome(tools, ({ name }) => name === listTool, JSON.stringify(tools));
    upstream.take();
    const result = await toolhost.callTool(slug, key, listTool);
    assert.match(result.content[0]?.text ?? '', /late/);
    assert.equal(upstream.take()[0]?.headers.authorization, 'Bearer the-token-of-the-api');
  }

  it('gets a snippet whose key lists and calls the tools, in at most 8 clicks and 2 fields', async (t) => {
    const address = serveApi('Orders');
    await dashboard.toolhost.createServer(dashboard.config('existing'));
    const page = await openPage(t, dashboard, '/');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const counts = { clicks: 0, fields: 0 };
    const click = (target: Locator) => {
      counts.clicks++;
      return target.click();
    };
    const fill = (target: Locator, text: string) => {
      counts.fields++;
      return target.fill(text);
    };
    await click(page.getByRole('link', { name: 'New server', exact: true }));
    await click(page.getByRole('link', { name: /From an API description/ }));
    await fill(field(page, 'Address or text'), address);
    await click(button(page, 'Read description'));
    await page.getByText(`The tools call ${dashboard.upstream.url}.`).waitFor();
    await checkPage(page);
    await fill(page.locator('input[type=password]'), 'the-token-of-the-api');
    await click(button(page, 'Create server'));
    await page.getByText('Your server is running').waitFor();
    await click(button(page, 'Create key for this server'));
    await page.getByRole('region', { name: 'API key', exact: true }).waitFor();
    await click(page.getByRole('combobox', { name: 'Client' }));
    await click(page.getByRole('option', { name: 'Cursor', exact: true }));
    await click(button(page, 'Copy snippet for Cursor'));
    await callWith('orders', await getCopiedKey(page));
    assert.deepEqual(counts, { clicks: 8, fields: 2 });
    await checkPage(page);
  });

  it('gets the same by keyboard alone', async (t) => {
    const address = serveApi('Late orders');
    const page = await openPage(t, dashboard, '/servers/new/import');
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await typeInto(page, field(page, 'Address or text'), address);
    await page.keyboard.press('Enter');
    await page.getByText(`The tools call ${dashboard.upstream.url}.`).waitFor();
    await typeInto(page, page.locator('input[type=password]'), 'the-token-of-the-api');
    await page.keyboard.press('Enter');
    await pressKeyOn(page, button(page, 'Create key for this server'));
    await page.getByRole('region', { name: 'API key', exact: true }).waitFor();
    await typeInto(page, page.getByRole('combobox', { name: 'Client' }), 'claude code');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await pressKeyOn(page, button(page, 'Copy snippet for Claude Code'));
    await callWith('late-orders', await getCopiedKey(page));
  });
});

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { isFullSuite } from '../sets.ts';
import { formatStep, startStubModel } from '../support/agents/stub-model.ts';
import { assertMapped } from '../support/assert-lists.ts';
import { checkPage } from '../support/browser/check-page.ts';
import { button, field, selectOption, startDashboard, tab } from '../support/browser/dashboard.ts';
import { openPage } from '../support/browser/use-dashboard.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const key = 'sk-model-0123456789';
const wide = { colorScheme: 'light', viewport: { width: 1440, height: 900 } } as const;
const narrow = { colorScheme: 'dark', viewport: { width: 400, height: 800 } } as const;

describe('the playground in the dashboard', () => {
  const fixtures = useFixtures();
  const model = fixtures.start(startStubModel);
  const dashboard = fixtures.start(() => startDashboard([Number(new URL(model.url).port)]));
  before(() => {
    const { upstream } = dashboard;
    upstream.on('GET /orders', () => ({
      body: [{ id: 17, customer: 'Ada', status: 'late', history: 'x'.repeat(200) }],
    }));
    upstream.on('GET /customers/Ada', () => ({ body: { name: 'Ada', email: 'ada@example.com' } }));
    upstream.on('POST /orders/17/notes', () => ({ status: 201, body: { id: 3 } }));
  });

  async function createServer(slug: string): Promise<void> {
    const { toolhost, upstream } = dashboard;
    const tool = (name: string, method: string, path: string, args: string[], more = {}) => ({
      name,
      description: `Does ${name.replace('_', ' ')} of the shop.`,
      method,
      url: upstream.url + path,
      input_schema: Object.fromEntries(args.map((one) => [one, { type: 'string', description: `The ${one}` }])),
      ...more,
    });
    const tools = [
      tool('list_orders', 'GET', '/orders', ['status'], { response_fields: ['id', 'customer', 'status'] }),
      tool('get_customer', 'GET', '/customers/:name', ['name']),
      tool('add_note', 'POST', '/orders/:id/notes', ['id', 'note']),
    ];
    const views = { reads: { tools: ['list_orders', 'get_customer'] } };
    await toolhost.createServer({ name: 'Shop', slug, description: 'A shop.', tools, views });
  }

  async function fillInModel(page: Page): Promise<void> {
    await selectOption(page, 'API', 'OpenAI-compatible');
    await field(page, 'Model name').fill('stub');
    await field(page, 'Base URL').fill(`${model.url}/v1`);
    await page.getByLabel('Key', { exact: true }).fill(key);
  }

  const script = [
    formatStep('list_orders', { status: 'late' }),
    formatStep('get_customer', { name: 'Ada' }),
    formatStep('add_note', { id: '17', note: 'We look into it.' }),
  ];
  const question = `Which orders are late? Leave a note. ${script.join(' ')}`;

  for (const view of isFullSuite ? [wide, narrow] : [wide])
    it(`[journey] answers a question with three tool calls, saves an example, and asks again with a view, ${view.colorScheme}, ${view.viewport.width} px`, async (t) => {
      const slug = `shop-${view.viewport.width}`;
      const { toolhost, upstream } = dashboard;
      await createServer(slug);
      const page = await openPage(t, dashboard, `/servers/${slug}/connect`, { options: view });
      await tab(page, 'Try it').click();
      await page.getByRole('radiogroup', { name: 'Mode' }).getByText('Playground').click();
      await fillInModel(page);
      await checkPage(page);
      await field(page, 'Question').fill(question);
      await field(page, 'Question').press('Enter');
      const confirmation = page.getByRole('dialog', { name: 'Allow this call?' });
      await confirmation.getByText('We look into it.').waitFor();
      assertMapped(upstream.take(), ({ method }) => method, ['GET', 'GET']);
      await button(confirmation, 'Call tool').click();
      const log = page.getByRole('log', { name: 'Conversation' });
      await log.getByText('The script has ended.').waitFor();
      assertMapped(upstream.take(), ({ method, url }) => `${method} ${url}`, ['POST /orders/17/notes']);
      const call = log.getByRole('region', { name: 'Call to list_orders' });
      await call.getByRole('button', { name: 'Response and request' }).click();
      await call.getByRole('region', { name: 'API response' }).getByText('history').waitFor();
      assert.doesNotMatch((await call.getByRole('region', { name: 'Sent to agent' }).textContent()) ?? '', /history/);
      await checkPage(page);

      await button(call, 'Save as example').click();
      await button(call, 'Saved as example').waitFor();
      const { body } = await toolhost.rest('GET', `/servers/${slug}`);
      assert.match(JSON.stringify(body.config), /"status":\{[^}]*"examples":\["late"\]/);

      await selectOption(page, 'Tools from', 'View reads');
      await selectOption(page, 'Tool delivery', 'Search for tools');
      await button(page, 'Repeat questions').click();
      await log.getByText('There is no tool list_orders.').waitFor();
      await log.getByText('View reads, with search · stub').waitFor();
      const runs = page.getByRole('table', { name: 'Conversations' });
      await runs.getByRole('button', { name: '1. Server · stub' }).click();
      await log.getByText('The script has ended.').waitFor();
      await checkPage(page);
    });

  it('skips a call that the user denies, and stops on request', async (t) => {
    const { upstream } = dashboard;
    await createServer('careful');
    const page = await openPage(t, dashboard, '/servers/careful/try/playground', { options: wide });
    await fillInModel(page);
    model.takeRequests();
    upstream.take();
    const log = page.getByRole('log', { name: 'Conversation' });
    await field(page, 'Question').fill(formatStep('add_note', { id: '17', note: 'x' }));
    await button(page, 'Ask').click();
    await button(page.getByRole('dialog'), 'Cancel').click();
    await log.getByText('The script has ended.').waitFor();
    assert.match(model.takeRequests().at(-1)?.results[0] ?? '', /did not allow/);
    upstream.on('GET /orders', () => 'hold');
    await field(page, 'Question').fill(formatStep('list_orders', { status: 'late' }));
    await button(page, 'Ask').click();
    const heldRequest = await upstream.waitForRequest();
    await button(page, 'Stop').click();
    heldRequest.release({ body: [] });
    await log.getByText('Stopped.', { exact: true }).waitFor();
    assertMapped(upstream.take(), ({ method }) => method, ['GET']);
    assert.equal(model.takeRequests().length, 1);
  });

  it('uses a model stored for the workspace without exposing its key to a page', async (t) => {
    await createServer('stored');
    const page = await openPage(t, dashboard, '/servers/stored/try/playground', { options: wide });
    await fillInModel(page);
    await button(page, 'Save for workspace').click();
    await field(page, 'Save as').fill('ours');
    await button(page, 'Save model').click();
    await page.getByText('with a stored key').waitFor();
    assert.equal((await page.evaluate<string>('JSON.stringify(sessionStorage)')).includes(key), false);
    model.takeRequests();
    await field(page, 'Question').fill('Hello');
    await button(page, 'Ask').click();
    await page.getByRole('log').getByText('The script has ended.').waitFor();
    assert.equal(model.takeRequests()[0]?.headers.authorization, `Bearer ${key}`);
  });
});

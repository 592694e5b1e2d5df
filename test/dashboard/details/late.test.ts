import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { button, choose, type Dashboard, field, saysAtField, startDashboard } from '../../support/browser/dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import { drawn, holdAnswers } from '../../support/upstreams/held-answers.ts';

/** Holds responses back until the page shows something else. */
describe('a response that arrives after its request has changed', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
    const { toolhost, config, upstream } = dashboard;
    const tool = {
      name: 'read',
      description: 'Reads an item.',
      method: 'GET',
      url: `${upstream.url}/items`,
      input_schema: { count: { type: 'integer', description: 'How many', minimum: 1 } },
    };
    await toolhost.createServer(config('late'));
    await toolhost.createServer(config('tried', { authentication: { type: 'Bearer' }, tools: [tool] }));
    const key = await toolhost.key();
    await toolhost.callTool('late', key, 'read', { count: 7 });
    await toolhost.callTool('late', key, 'read', {});
  });
  after(() => dashboard?.stop());

  it('[find D1] does not mark an edited argument as rejected', async () => {
    await dashboard.at('/servers/tried/try', async (page) => {
      const token = page.locator('input[type=password]');
      await field(page, 'count').fill('0');
      await button(page, 'Call tool').click();
      await saysAtField(field(page, 'count'), /minimum 1/);
      const previews = await holdAnswers(page, 'POST', '/api/v1/servers/tried/tools/read/preview');
      await field(page, 'count').fill('5');
      await previews.next();
      await saysAtField(field(page, 'count'), /being rechecked/i);
      await previews.stop();
      await field(page, 'count').fill('6');
      await eventually(async () => assert.equal(await field(page, 'count').getAttribute('aria-invalid'), null));
      await token.fill('two words');
      await button(page, 'Call tool').click();
      await saysAtField(token, /without spaces/);
      await token.fill('one');
      await drawn(page);
      assert.equal(await token.getAttribute('aria-invalid'), null);
    });
  });

  it('[find D1] is labeled as the result of other arguments', async () => {
    await dashboard.at('/servers/tried/try', async (page) => {
      const result = page.getByRole('region', { name: 'Result' });
      await page.locator('input[type=password]').fill('token-of-the-api');
      await field(page, 'count').fill('1');
      const calls = await holdAnswers(page, 'POST', '/api/v1/servers/tried/tools/read/call');
      await button(page, 'Call tool').click();
      const answer = await calls.next();
      await field(page, 'count').fill('2');
      await answer();
      await result.getByText('which had other arguments').waitFor();
      await field(page, 'count').fill('1');
      await result.getByText('The API response, and the result that the agent gets').waitFor();
    });
  });

  it('[find D1] does not show an error for input that was replaced', async () => {
    await dashboard.at('/keys', async (page) => {
      await button(page, 'New API key').first().click();
      const dialog = page.getByRole('dialog');
      await field(dialog, 'Name').fill('x'.repeat(101));
      const made = await holdAnswers(page, 'POST', '/api/v1/keys');
      await button(dialog, 'Create key').click();
      const answer = await made.next();
      await field(dialog, 'Name').fill('short');
      await answer();
      assert.equal(await field(dialog, 'Name').getAttribute('aria-invalid'), null);
    });
  });

  it('[find D1] keeps a dialog open until its request has ended, so it cannot affect the next dialog', async () => {
    const made = async (name: string) => {
      const { body } = await dashboard.toolhost.rest('POST', '/keys', { body: { name, scopes: ['call'] } });
      return String(body.id);
    };
    const first = await made('first key');
    await made('second key');
    await dashboard.at('/keys', async (page) => {
      const revoked = await holdAnswers(page, 'DELETE', `/api/v1/keys/${first}`);
      await button(page, 'Revoke first key').click();
      const dialog = page.getByRole('dialog');
      await button(dialog, 'Revoke key').click();
      const answer = await revoked.next();
      await page.keyboard.press('Escape');
      await drawn(page);
      assert.equal(await dialog.isVisible(), true);
      await answer();
      await dialog.waitFor({ state: 'hidden' });
      await button(page, 'Revoke second key').click();
      await dialog.getByText('Revoke second key?').waitFor();
      await button(dialog, 'Cancel').click();
    });
  });

  it('[find D1] is discarded and fetched again if the list changed after the request', async () => {
    await dashboard.at('/servers', async (page) => {
      const lists = await holdAnswers(page, 'GET', '/api/v1/keys');
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'API keys' }).click();
      const old = await lists.next();
      await button(page, 'New API key').click();
      const dialog = page.getByRole('dialog');
      await field(dialog, 'Name').fill('made while the list came');
      await button(dialog, 'Create key').click();
      await button(dialog, 'Done').click();
      const now = await lists.next();
      await Promise.all([old(), now()]);
      await page.getByRole('row').filter({ hasText: 'made while the list came' }).waitFor();
    });
    await dashboard.at('/servers/late/tools', async (page) => {
      const lists = await holdAnswers(page, 'GET', '/api/v1/servers/late/secrets');
      await page.getByRole('link', { name: 'Secrets' }).click();
      const old = await lists.next();
      await field(page, 'Secret name').fill('MADE_MEANWHILE');
      await page.locator('input[type=password]').fill('a value');
      await button(page, 'Save secret').click();
      const now = await lists.next();
      await Promise.all([old(), now()]);
      await page.getByRole('row').filter({ hasText: 'MADE_MEANWHILE' }).waitFor();
    });
  });

  it('[find D1] is not shown if it belongs to another filter of calls and charts', async () => {
    await dashboard.at('/calls', async (page) => {
      const rows = page.getByRole('table', { name: 'Calls' });
      const charts = page.getByRole('region', { name: /^Calls: / });
      await rows.waitFor();
      await charts.waitFor();
      const lists = await holdAnswers(page, 'GET', '/api/v1/calls');
      const statistics = await holdAnswers(page, 'GET', '/api/v1/statistics');
      await choose(page, 'Server', 'The tried');
      const [list, chart] = [await lists.next(), await statistics.next()];
      assert.equal(await rows.getByText('late').count(), 0);
      assert.equal(await charts.count(), 0);
      await Promise.all([list(), chart()]);
      // The page polls: a response may belong to the previous filter, and the next one is held back too.
      await Promise.all([lists.stop(), statistics.stop()]);
      await charts.waitFor();
    });
  });

  it('[find D1] leaves the focus and the input of the tool filter unchanged', async () => {
    await dashboard.at('/calls', async (page) => {
      const tool = field(page, 'Tool');
      const address = (search: string) => page.waitForURL((url) => url.search.includes(search));
      await tool.click();
      await page.keyboard.type('re');
      await address('tool=re');
      await page.keyboard.type('ad');
      await address('tool=read');
      assert.equal(await tool.inputValue(), 'read');
      await page.clock.install();
      await page.keyboard.type('x');
      await button(page, 'Clear').click();
      await eventually(async () => assert.equal(await tool.inputValue(), ''));
      await page.clock.fastForward(5000);
      assert.equal(new URL(page.url()).search, '');
    });
  });
});

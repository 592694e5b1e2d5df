import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { button, field } from '../support/browser/dashboard.ts';
import { press, waitForValidation } from '../support/browser/pointer-press.ts';
import { waitForToast } from '../support/browser/toasts.ts';
import { openPage, save, useDashboard } from '../support/browser/use-dashboard.ts';
import { holdResponses, waitForRender } from '../support/upstreams/held-responses.ts';

describe('a page that changes during an edit', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    await dashboard.toolhost.createServer(dashboard.config('typed-on'));
    await dashboard.toolhost.createServer(dashboard.config('tried'));
  });

  it('[find D1] hides a preview once the arguments have changed', async (t) => {
    const page = await openPage(t, dashboard, '/servers/tried/try');
    const outgoing = page.getByRole('region', { name: 'Outgoing request' });
    await field(page, 'count').fill('1');
    await outgoing.getByText('GET /items?count=1 HTTP/1.1').waitFor();
    const previews = await holdResponses(page, 'POST', '/api/v1/servers/tried/tools/read/preview');
    await field(page, 'count').fill('2');
    await waitForRender(page);
    assert.equal(await outgoing.getByText('count=1').isVisible(), false);
    const second = await previews.nextResponse();
    await field(page, 'count').fill('3');
    const third = await previews.nextResponse();
    await third();
    await outgoing.getByText('GET /items?count=3 HTTP/1.1').waitFor();
    await second();
    assert.equal(await outgoing.getByText('GET /items?count=3 HTTP/1.1').isVisible(), true);
  });

  it('[find D1] keeps input that was typed while the configuration was being saved', async (t) => {
    const page = await openPage(t, dashboard, '/servers/typed-on/settings');
    const saves = await holdResponses(page, 'PUT', '/api/v1/servers/typed-on');
    await field(page, 'Description').fill('First text');
    await button(page, 'Save').click();
    const release = await saves.nextResponse();
    await field(page, 'Description').fill('First text, and a second');
    await release();
    await waitForToast(page, 'Saved as version 2');
    await page.getByText('Unsaved changes').waitFor();
    assert.equal(await field(page, 'Description').inputValue(), 'First text, and a second');
    await saves.releaseAll();
    await save(page, 3);
    await button(page, 'Save').waitFor({ state: 'hidden' });
    const { body } = await dashboard.toolhost.rest('GET', '/servers/typed-on');
    assert.equal((body.config as { description: string }).description, 'First text, and a second');
  });

  it('[find D2] handles the first click after a URL was typed', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new?from=form');
    await field(page, 'Name').fill('Pressed');
    await field(page, 'Tool name').fill('read');
    await field(page, 'URL').fill('nowhere');
    await waitForValidation(page);
    await press(page, button(page, 'Add argument'));
    await field(page, 'Name of argument 1').waitFor();
    await page.getByText('Not a URL').first().waitFor();
  });

  it('[find D2] shows a response that arrives during a click only after the click', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new?from=form');
    await field(page, 'Name').fill('Meanwhile');
    await button(page, 'Create server').click();
    const checks = await holdResponses(page, 'POST', '/api/v1/check', 'far away');
    await field(page, 'Slug').fill('far away from a slug');
    const release = await checks.nextResponse();
    await press(page, button(page, 'Add argument'), release);
    await field(page, 'Name of argument 1').waitFor();
    await page
      .getByText(/found "far away/i)
      .first()
      .waitFor();
  });
});

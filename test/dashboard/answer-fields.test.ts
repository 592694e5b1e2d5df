import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { button, choose, type Dashboard, field, startDashboard } from '../support/browser/dashboard.ts';
import { toasted } from '../support/browser/toasts.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('what a tool reads of an answer, in the editor', () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  it('[conf 5] headers, redirects and a pattern are set in the form, and a problem stands at its field', async () => {
    const { toolhost } = dashboard;
    const tool = {
      name: 'run',
      description: 'Gets the file of this test.',
      method: 'GET',
      url: 'https://api.example.com/files/:id',
      input_schema: { id: { type: 'string' } },
    };
    await toolhost.createServer({ name: 'Answered', slug: 'answered', tools: [tool] });
    await dashboard.at('/servers/answered', async (page) => {
      await button(page, 'Advanced').click();
      const headers = page.getByRole('combobox', { name: 'Headers of the answer', exact: true });
      await headers.fill('Set-Cookie');
      await page.keyboard.press('Enter');
      await page
        .getByText(/agents never get this header/i)
        .first()
        .waitFor();
      await headers.press('Backspace');
      await headers.fill('ETag');
      await page.keyboard.press('Enter');
      await choose(page, 'Redirects', 'Are followed, up to 3');
      await button(page, 'More about id').click();
      await field(page, 'Pattern').fill('^[a-z]+$');
      await button(page, 'Save').click();
      await toasted(page, 'Saved as version 2');
    });
    const { body } = await toolhost.rest('GET', '/servers/answered');
    const [stored] = (body.config as Json).tools as Json[];
    assert.deepEqual(
      [stored?.response_headers, stored?.redirects, stored?.input_schema],
      [['ETag'], 'follow', { id: { type: 'string', pattern: '^[a-z]+$' } }],
    );
  });
});

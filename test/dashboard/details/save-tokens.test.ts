import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { checkPage } from '../../support/browser/check-page.ts';
import { button, type Dashboard, startDashboard } from '../../support/browser/dashboard.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

const item = (id: number) => ({
  id,
  node_id: `I_${id}`,
  title: `Issue ${id}`,
  url: `https://api.example.com/issues/${id}`,
  html_url: `https://example.com/issues/${id}`,
  user: { login: `user${id}`, avatar_url: `https://avatars.example.com/${id}`, name: `User ${id}` },
});

describe('the Save tokens section of the dashboard', () => {
  let dashboard: Dashboard;
  let key: string;
  before(async () => {
    dashboard = await startDashboard();
    const { toolhost, upstream, config } = dashboard;
    await toolhost.createServer(config('saved'));
    upstream.on('GET /items', () => ({ body: [1, 2, 3].map(item) }));
    key = await toolhost.createKey();
  });
  after(() => dashboard?.stop());

  it('[agent 3] asks for a captured response, proposes fields, and saves the selection as one version', async () => {
    const { toolhost } = dashboard;
    const getStoredFields = async () => {
      const { server, config } = (await toolhost.rest('GET', '/servers/saved')).body as { server: Json; config: Json };
      return { version: server.version, fields: (config.tools as Json[])[0]?.response_fields };
    };
    await dashboard.withPage('/servers/saved/try', async (page) => {
      const section = page.getByRole('region', { name: 'Save tokens' });
      await button(section, 'Measure captured responses').focus();
      await page.keyboard.press('Enter');
      await section.getByText('No JSON response of this tool has been captured yet').waitFor();
      await toolhost.rest('POST', '/servers/saved/capture', { body: { hours: 1 } });
      await toolhost.callTool('saved', key, 'read', { count: 1 });
      await button(section, 'Measure again').click();
      const box = (path: string) => section.getByRole('checkbox', { name: path, exact: true });
      await box('node_id').waitFor();
      assert.deepEqual(
        [await box('title').isChecked(), await box('node_id').isChecked(), await box('user.avatar_url').isChecked()],
        [true, false, false],
      );
      const estimate = section.getByRole('status').first();
      assert.match(
        (await estimate.textContent()) ?? '',
        /^One captured response of \d+ tokens would be \d+ tokens, \d+% less\.$/,
      );
      await checkPage(page);
      await box('user').focus();
      await page.keyboard.press('Space');
      assert.equal(await box('user.name').isChecked(), false);
      await box('user.login').check();
      assert.equal(await box('user.name').isChecked(), false);
      await box('url').check();
      await button(section, 'Save fields').click();
      await waitForToast(page, 'Saved the fields of read');
      assert.deepEqual(await getStoredFields(), {
        version: 2,
        fields: ['id', 'title', 'url', 'html_url', 'user.login'],
      });
      await section.getByText(/With the current fields they are \d+ tokens/).waitFor();
      await button(section, 'Keep all').click();
      await button(section, 'Save fields').click();
      await waitForToast(page, 'Saved the fields of read');
      assert.deepEqual(await getStoredFields(), { version: 3, fields: undefined });
    });
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Locator } from 'playwright-core';
import { checkPage } from '../../support/browser/check-page.ts';
import { type Dashboard, startDashboard } from '../../support/browser/dashboard.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

const secret = `KEY_${'K'.repeat(56)}`;
const slug = `long-${'a'.repeat(58)}`;
const name = 'Wm'.repeat(50);

/** Edges of an element in CSS pixels. */
async function edgesOf(element: Locator): Promise<{ left: number; right: number }> {
  const box = await element.boundingBox();
  return box ? { left: box.x, right: box.x + box.width } : assert.fail('the element is not shown');
}

/** Whether a text is cut off at its end. */
const isCut = (element: Locator) => element.evaluate((node) => node.scrollWidth > node.clientWidth);

describe('names as long as they may be, in the dashboard', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
    const { toolhost, config } = dashboard;
    const [tool] = config(slug).tools as Json[];
    const authentication = { type: 'Bearer', token: `{{${secret}}}` };
    await toolhost.createServer(config(slug, { name, authentication, tools: [{ ...tool, name: 't'.repeat(64) }] }));
    await toolhost.callTool(slug, await toolhost.key(), 't'.repeat(64), { count: 1 });
  });
  after(() => dashboard?.stop());

  it('wrap in the question before a server is deleted, and the title of the page says which part of it is shown', async () => {
    await dashboard.at(
      `/servers/${slug}/connect`,
      async (page) => {
        await page.getByRole('heading', { name: 'Client', exact: true }).waitFor();
        assert.equal(await page.title(), `Connect – ${name} – Toolhost`);
        await page.getByRole('link', { name: 'Options', exact: true }).click();
        await page.getByRole('button', { name: 'Delete server…', exact: true }).click();
        assert.equal(await page.title(), `Options – ${name} – Toolhost`);
        const dialog = page.getByRole('dialog');
        const label = dialog.getByText(`Type ${slug} to confirm`, { exact: true });
        await label.waitFor();
        const [inner, outer] = [await edgesOf(label), await edgesOf(dialog)];
        assert.ok(inner.right <= outer.right, `${inner.right} is beyond ${outer.right}`);
        assert.equal(await isCut(label), false);
        await checkPage(page);
      },
      { options: { viewport: { width: 400, height: 900 } } },
    );
  });

  it('wrap in the button of a secret that is not set yet', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await dashboard.at(
        `/servers/${slug}/secrets`,
        async (page) => {
          const button = page.getByRole('button', { name: secret, exact: true });
          const notice = page.getByRole('alert').filter({ has: button });
          const [inner, outer] = [await edgesOf(button), await edgesOf(notice)];
          assert.ok(inner.right <= outer.right, `${inner.right} is beyond ${outer.right}`);
          await checkPage(page);
        },
        { options: { viewport: { width: 400, height: 900 }, colorScheme } },
      );
    }
  });

  it('stay in the column of their cell where a table becomes a list of cards', async () => {
    await dashboard.at(
      '/calls',
      async (page) => {
        const row = page.getByRole('table', { name: 'Calls', exact: true }).locator('tbody').getByRole('row').first();
        const outcome = row.getByText('Secret missing', { exact: true });
        await outcome.waitFor();
        const [above, below] = [await edgesOf(outcome), await edgesOf(row.getByText(/^the secret/))];
        assert.ok(below.left >= above.left - 12, `${below.left} is left of ${above.left}`);
        await checkPage(page);
      },
      { options: { viewport: { width: 400, height: 900 } } },
    );
  });
});

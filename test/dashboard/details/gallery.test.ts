import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { root } from '../../files.ts';
import { button, type Dashboard, field, startDashboard } from '../../support/browser/dashboard.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

describe('the gallery in the dashboard', () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  it('[imp 7] creates a server from an example and lists the secret to set', async () => {
    await dashboard.withPage('/servers/new', async (page) => {
      await page.getByText('From an example').click();
      await page.getByRole('heading', { name: 'Start from an example' }).waitFor();
      assert.equal(await page.getByText(/^Requires /).count(), 8);
      await page.getByText('Requires STRIPE_KEY').waitFor();
      assert.equal(await page.getByText('No credential required').count(), 2);
      await page.getByText('Customers, invoices, payments').click();
      await field(page, 'Slug').fill('our-stripe');
      await button(page, 'Create server').click();
      await page.waitForURL(/\/servers\/our-stripe\/connect/);
    });
    const { body } = await dashboard.toolhost.rest('GET', '/servers/our-stripe');
    const file = parse(readFileSync(join(root, 'examples', 'gallery', 'stripe.yaml'), 'utf8')) as { tools: Json[] };
    const stored = body.config as { tools: Json[]; base_url: string; max_response_tokens: number };
    assert.deepEqual(
      stored.tools.map(({ name }) => name),
      file.tools.map(({ name }) => name),
    );
    assert.equal(stored.base_url, 'https://api.stripe.com');
    assert.equal(stored.max_response_tokens, 20_000);
    assert.match(JSON.stringify(body.warnings), /\{\{STRIPE_KEY\}\} has no value yet/);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { button, type Dashboard, field, startDashboard } from '../support/browser/dashboard.ts';
import { toasted } from '../support/browser/toasts.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const tool = {
  name: 'run',
  description: 'Runs the request of this test.',
  method: 'GET',
  url: 'https://api.example.com/x',
};

describe('credentials and what holds for all tools, in the editor', () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  const configOf = async (slug: string) =>
    (await dashboard.toolhost.rest('GET', `/servers/${slug}`)).body.config as Json;

  it('[conf 4] a second credential is added, and each has the fields of its type', async () => {
    const authentication = { type: 'ApiKey', header: 'DD-API-KEY', token: '{{API}}' };
    await dashboard.toolhost.createServer({ name: 'Two', slug: 'two-keys', tools: [tool], authentication });
    await dashboard.at('/servers/two-keys', async (page) => {
      await button(page, 'Another credential').click();
      const types = page.getByRole('combobox', { name: 'The token is sent as' });
      await types.nth(1).click();
      await page
        .getByRole('option', { name: /Client credentials/ })
        .last()
        .click();
      await field(page, 'Token endpoint').fill('https://login.example.com/token');
      await field(page, 'Id of the client').fill('my-client');
      await button(page, 'Save').click();
      await toasted(page, 'Saved as version 2');
    });
    assert.deepEqual((await configOf('two-keys')).authentication, [
      authentication,
      {
        type: 'ClientCredentials',
        token_url: 'https://login.example.com/token',
        client_id: 'my-client',
        client_secret: '{{CLIENT_SECRET}}',
      },
    ]);
  });

  it('[conf 3] a base address, a header and a variable are written once for all tools', async () => {
    await dashboard.toolhost.createServer({
      name: 'Wide',
      slug: 'wide',
      tools: [{ ...tool, url: 'https://api.example.com/v1/x' }],
    });
    await dashboard.at('/servers/wide', async (page) => {
      await button(page, 'Base address, headers and variables').click();
      await field(page, 'Base address').fill('https://{{host}}/v1');
      await button(page, 'Add a shared header').click();
      await field(page, 'Name of shared header 1').fill('Api-Version');
      await field(page, 'Value of shared header 1').fill('2026-01');
      await button(page, 'Add a variable').click();
      await field(page, 'Name of variable 1').fill('host');
      await field(page, 'Value of variable 1').fill('staging.example.com');
      await field(page, 'Description of variable 1').fill('The host of the API');
      await button(page, 'Save').click();
      await toasted(page, 'Saved as version 2');
    });
    const { base_url, headers, variables } = await configOf('wide');
    assert.deepEqual(
      { base_url, headers, variables },
      {
        base_url: 'https://{{host}}/v1',
        headers: { 'Api-Version': '2026-01' },
        variables: { host: { value: 'staging.example.com', description: 'The host of the API' } },
      },
    );
    await dashboard.at('/servers/wide/secrets', async (page) => {
      await page.getByRole('heading').first().waitFor();
      assert.equal(await page.getByText('host has no value').count(), 0);
    });
  });
});

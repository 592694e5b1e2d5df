import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { button, type Dashboard, field, selectOption, startDashboard, tab } from '../../support/browser/dashboard.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

const tool = {
  name: 'run',
  description: 'Runs the request of this test.',
  method: 'GET',
  url: 'https://api.example.com/x',
};

describe('the editor form', { concurrency: 2 }, () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await startDashboard();
  });
  after(() => dashboard?.stop());

  const getStoredConfig = async (slug: string) =>
    (await dashboard.toolhost.rest('GET', `/servers/${slug}`)).body.config as Json;

  it('[conf 4] adds a second credential with the fields of its type', async () => {
    const authentication = { type: 'ApiKey', header: 'DD-API-KEY', token: '{{API}}' };
    await dashboard.toolhost.createServer({ name: 'Two', slug: 'two-keys', tools: [tool], authentication });
    await dashboard.withPage('/servers/two-keys/settings', async (page) => {
      await button(page, 'Add credential').click();
      const types = page.getByRole('combobox', { name: 'Credential type' });
      await types.nth(1).click();
      await page
        .getByRole('option', { name: /Client credentials/ })
        .last()
        .click();
      await field(page, 'Token endpoint').fill('https://login.example.com/token');
      await field(page, 'Client ID').fill('my-client');
      await button(page, 'Save').click();
      await waitForToast(page, 'Saved as version 2');
    });
    assert.deepEqual((await getStoredConfig('two-keys')).authentication, [
      authentication,
      {
        type: 'ClientCredentials',
        token_url: 'https://login.example.com/token',
        client_id: 'my-client',
        client_secret: '{{CLIENT_SECRET}}',
      },
    ]);
  });

  it('[conf 4] assigns a named credential of the server to a tool', async () => {
    const credentials = { admin: { type: 'Bearer', token: '{{ADMIN}}' } };
    await dashboard.toolhost.createServer({ name: 'Named', slug: 'named-keys', tools: [tool], credentials });
    await dashboard.withPage('/servers/named-keys/tools?tool=run', async (page) => {
      await selectOption(page, 'Credential', 'admin');
      await button(page, 'Save').click();
      await waitForToast(page, 'Saved as version 2');
      await button(page, 'Close').click();
      await tab(page, 'Settings').click();
      await page.getByText('Credential admin, for tools that use it').waitFor();
    });
    const config = await getStoredConfig('named-keys');
    assert.deepEqual([config.credentials, (config.tools as Json[])[0]?.credential], [credentials, 'admin']);
  });

  it('[conf 3] stores a base URL, a header, and a variable once for all tools', async () => {
    await dashboard.toolhost.createServer({
      name: 'Wide',
      slug: 'wide',
      tools: [{ ...tool, url: 'https://api.example.com/v1/x' }],
    });
    await dashboard.withPage('/servers/wide/settings', async (page) => {
      await button(page, 'Base URL, headers, and variables').click();
      await field(page, 'Base URL').fill('https://{{host}}/v1');
      await button(page, 'Add shared header').click();
      await field(page, 'Name of shared header 1').fill('Api-Version');
      await field(page, 'Value of shared header 1').fill('2026-01');
      await button(page, 'Add variable').click();
      await field(page, 'Name of variable 1').fill('host');
      await field(page, 'Value of variable 1').fill('staging.example.com');
      await field(page, 'Description of variable 1').fill('The host of the API');
      await button(page, 'Save').click();
      await waitForToast(page, 'Saved as version 2');
    });
    const { base_url, headers, variables } = await getStoredConfig('wide');
    assert.deepEqual(
      { base_url, headers, variables },
      {
        base_url: 'https://{{host}}/v1',
        headers: { 'Api-Version': '2026-01' },
        variables: { host: { value: 'staging.example.com', description: 'The host of the API' } },
      },
    );
    await dashboard.withPage('/servers/wide/secrets', async (page) => {
      await page.getByRole('heading').first().waitFor();
      assert.equal(await page.getByText('host has no value').count(), 0);
    });
  });

  it('[conf 1] [conf 2] stores the request encoding of arguments, and Try it does not ask for a constant', async () => {
    const { toolhost } = dashboard;
    const input_schema = { file: { type: 'string' }, tags: { type: 'array' }, version: { type: 'string' } };
    const tool = {
      name: 'run',
      description: 'Runs the upload of this test.',
      method: 'POST',
      url: 'https://api.example.com/files',
    };
    await toolhost.createServer({ name: 'Sent', slug: 'sent', tools: [{ ...tool, input_schema, body: 'multipart' }] });
    await dashboard.withPage('/servers/sent/tools?tool=run', async (page) => {
      const open = async (name: string, nth: number) => {
        await button(page, `Details of ${name}`).click();
        await button(page, 'Request encoding').nth(nth).click();
      };
      await open('file', 0);
      await field(page, 'API name (file)').fill('upload[file]');
      await page.getByRole('checkbox', { name: 'Base64-encoded file (file)' }).check();
      await field(page, 'File name (file)').fill('scan.png');
      await field(page, 'Media type (file)').fill('image/png');
      await open('tags', 1);
      await selectOption(page, 'Serialization (tags)', 'a[0]=1, a[b][0]=1');
      await open('version', 2);
      await field(page, 'Constant (version)').fill('2026-01');
      await button(page, 'Save').click();
      await waitForToast(page, 'Saved as version 2');
    });
    const { body } = await toolhost.rest('GET', '/servers/sent');
    const [stored] = (body.config as Json).tools as Json[];
    assert.deepEqual(stored?.input_schema, {
      file: {
        type: 'string',
        wire_name: 'upload[file]',
        content: 'base64',
        file_name: 'scan.png',
        media_type: 'image/png',
      },
      tags: { type: 'array', style: 'indices' },
      version: { type: 'string', value: '2026-01' },
    });
    await dashboard.withPage('/servers/sent/try', async (page) => {
      await page.getByLabel(/^tags/).first().waitFor();
      assert.equal(await page.getByLabel(/^version/).count(), 0);
    });
  });

  it('[conf 5] stores response headers, redirects, and a pattern, and shows a problem at its field', async () => {
    const { toolhost } = dashboard;
    const tool = {
      name: 'run',
      description: 'Gets the file of this test.',
      method: 'GET',
      url: 'https://api.example.com/files/:id',
      input_schema: { id: { type: 'string' } },
    };
    await toolhost.createServer({ name: 'Answered', slug: 'answered', tools: [tool] });
    await dashboard.withPage('/servers/answered/tools?tool=run', async (page) => {
      await button(page, 'Advanced').click();
      const headers = page.getByRole('combobox', { name: 'Response headers', exact: true });
      await headers.fill('Set-Cookie');
      await page.keyboard.press('Enter');
      await page
        .getByText(/agents never receive this header/i)
        .first()
        .waitFor();
      await headers.press('Backspace');
      await headers.fill('ETag');
      await page.keyboard.press('Enter');
      await selectOption(page, 'Redirects', 'Follow up to 3');
      await button(page, 'Details of id').click();
      await field(page, 'Pattern (id)').fill('^[a-z]+$');
      await button(page, 'Save').click();
      await waitForToast(page, 'Saved as version 2');
    });
    const { body } = await toolhost.rest('GET', '/servers/answered');
    const [stored] = (body.config as Json).tools as Json[];
    assert.deepEqual(
      [stored?.response_headers, stored?.redirects, stored?.input_schema],
      [['ETag'], 'follow', { id: { type: 'string', pattern: '^[a-z]+$' } }],
    );
  });
});

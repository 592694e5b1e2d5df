import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { button, field, selectOption, tab } from '../../support/browser/dashboard.ts';
import { getStoredConfig, openPage, save, useDashboard } from '../../support/browser/use-dashboard.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';
import { buildToolAt } from '../../support/upstream-configs.ts';

const tool = buildToolAt('https://api.example.com/x', { name: 'run' });

describe('the editor form', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  it('[conf 4] adds a second credential with the fields of its type', async (t) => {
    const authentication = { type: 'ApiKey', header: 'DD-API-KEY', token: '{{API}}' };
    await dashboard.toolhost.createServer({ name: 'Two', slug: 'two-keys', tools: [tool], authentication });
    const page = await openPage(t, dashboard, '/servers/two-keys/settings');
    await button(page, 'Add credential').click();
    const types = page.getByRole('combobox', { name: 'Credential type' });
    await types.nth(1).click();
    await page
      .getByRole('option', { name: /Client credentials/ })
      .last()
      .click();
    await field(page, 'Token endpoint').fill('https://login.example.com/token');
    await field(page, 'Client ID').fill('my-client');
    await save(page, 2);
    assert.deepEqual((await getStoredConfig(dashboard, 'two-keys')).authentication, [
      authentication,
      {
        type: 'ClientCredentials',
        token_url: 'https://login.example.com/token',
        client_id: 'my-client',
        client_secret: '{{CLIENT_SECRET}}',
      },
    ]);
  });

  it('[conf 4] assigns a named credential of the server to a tool', async (t) => {
    const credentials = { admin: { type: 'Bearer', token: '{{ADMIN}}' } };
    await dashboard.toolhost.createServer({ name: 'Named', slug: 'named-keys', tools: [tool], credentials });
    const page = await openPage(t, dashboard, '/servers/named-keys/tools?tool=run');
    await selectOption(page, 'Credential', 'admin');
    await save(page, 2);
    await button(page, 'Close').click();
    await tab(page, 'Settings').click();
    await page.getByText('Credential admin, for tools that use it').waitFor();
    const config = await getStoredConfig(dashboard, 'named-keys');
    assert.deepEqual([config.credentials, (config.tools as Json[])[0]?.credential], [credentials, 'admin']);
  });

  it('[conf 3] stores a base URL, a header, and a variable once for all tools', async (t) => {
    await dashboard.toolhost.createServer({
      name: 'Wide',
      slug: 'wide',
      tools: [{ ...tool, url: 'https://api.example.com/v1/x' }],
    });
    const page = await openPage(t, dashboard, '/servers/wide/settings');
    await button(page, 'Base URL, headers, and variables').click();
    await field(page, 'Base URL').fill('https://{{host}}/v1');
    await button(page, 'Add shared header').click();
    await field(page, 'Name of shared header 1').fill('Api-Version');
    await field(page, 'Value of shared header 1').fill('2026-01');
    await button(page, 'Add variable').click();
    await field(page, 'Name of variable 1').fill('host');
    await field(page, 'Value of variable 1').fill('staging.example.com');
    await field(page, 'Description of variable 1').fill('The host of the API');
    await save(page, 2);
    const { base_url, headers, variables } = await getStoredConfig(dashboard, 'wide');
    assert.deepEqual(
      { base_url, headers, variables },
      {
        base_url: 'https://{{host}}/v1',
        headers: { 'Api-Version': '2026-01' },
        variables: { host: { value: 'staging.example.com', description: 'The host of the API' } },
      },
    );
    await page.goto('/servers/wide/settings/secrets');
    await page.getByRole('heading').first().waitFor();
    assert.equal(await page.getByText('host has no value').count(), 0);
  });

  it('[conf 1] [conf 2] stores the request encoding of arguments, and Try it does not ask for a constant', async (t) => {
    const { toolhost } = dashboard;
    const input_schema = { file: { type: 'string' }, tags: { type: 'array' }, version: { type: 'string' } };
    const tools = [{ ...tool, method: 'POST', input_schema, body: 'multipart' }];
    await toolhost.createServer({ name: 'Sent', slug: 'sent', tools });
    const page = await openPage(t, dashboard, '/servers/sent/tools?tool=run');
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
    await save(page, 2);
    const [stored] = (await getStoredConfig(dashboard, 'sent')).tools as Json[];
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
    await page.goto('/servers/sent/try');
    await page.getByLabel(/^tags/).first().waitFor();
    assert.equal(await page.getByLabel(/^version/).count(), 0);
  });

  it('[conf 5] stores response headers, redirects, and a pattern, and shows a problem at its field', async (t) => {
    const tools = [{ ...tool, url: 'https://api.example.com/files/:id', input_schema: { id: { type: 'string' } } }];
    await dashboard.toolhost.createServer({ name: 'Answered', slug: 'answered', tools });
    const page = await openPage(t, dashboard, '/servers/answered/tools?tool=run');
    await button(page, 'Advanced').click();
    const headers = page.getByRole('combobox', { name: 'Response headers', exact: true });
    await headers.fill('Set-Cookie');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
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
    await save(page, 2);
    const [stored] = (await getStoredConfig(dashboard, 'answered')).tools as Json[];
    assert.deepEqual([stored?.response_headers, stored?.redirects], [['ETag'], 'follow']);
    assert.deepEqual(stored?.input_schema, { id: { type: 'string', pattern: '^[a-z]+$' } });
  });
});

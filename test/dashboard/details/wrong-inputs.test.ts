import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertFieldError, button, field, selectOption } from '../../support/browser/dashboard.ts';
import { openPage, useDashboard } from '../../support/browser/use-dashboard.ts';
import { openApi } from '../../support/import/import-plans.ts';
import { findFreePort } from '../../support/upstreams/listener.ts';

const curl = `curl https://api.example.com/v1/notes -H 'Authorization: Bearer abc' -d '{"text": "hi"}'`;
const longName = 'x'.repeat(1000);

/** Terms of agents, API clients, and libraries, which a person in front of a form does not know. */
const foreignTerms =
  /\/api\/v1|\b(?:importApi|updateMcpServer|restoreMcpServer|createApiKey)\b|as document|mode plan|answers\.|zod|expected|invalid_|undefined|Flow map|collection must/i;

describe('wrong inputs of the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, upstream, config } = dashboard;
    upstream.on('GET /page', () => ({ headers: { 'Content-Type': 'text/html' }, body: '<!doctype html><p>Hi</p>' }));
    upstream.on('GET /closed', () => ({ status: 401, body: {} }));
    upstream.on('GET /gone', () => ({ status: 404, body: { detail: 'Not Found' } }));
    await toolhost.createServer(config('existing'));
    await toolhost.createServer(config('forwarded', { authentication: { type: 'Bearer' } }));
  });

  const source = (page: Page) => field(page, 'Address or text');

  /** Asserts that a field explains what is wrong and what to do, in terms of the page. */
  async function assertExplained(input: Locator, message: RegExp): Promise<void> {
    await assertFieldError(input, message);
    const described = (await input.getAttribute('aria-describedby')) ?? '';
    for (const id of described.split(' ').filter((part) => part !== ''))
      assert.doesNotMatch((await input.page().locator(`[id="${id}"]`).textContent()) ?? '', foreignTerms);
  }

  const sources: [title: string, text: () => string | Promise<string>, message: RegExp][] = [
    ['nothing', () => '', /Enter an address, paste a description, or choose a file\./],
    ['the address of a web page', () => `${dashboard.upstream.url}/page`, /Found a web page.*often at \/openapi\.json/],
    ['an address without a document', () => `${dashboard.upstream.url}/gone`, /answered HTTP 404\. Check it, or paste/],
    [
      'an address that requires a credential',
      () => `${dashboard.upstream.url}/closed`,
      /HTTP 401\. Enter its credential under “URL requires a credential”/,
    ],
    [
      'an address that the service may not call',
      async () => `localhost:${await findFreePort()}/openapi.json`,
      /may not call localhost:\d+, because .* EGRESS_ALLOW=localhost:\d+\. Or stop the service and run: toolhost import http:\/\/localhost:\d+\/openapi\.json --serve/,
    ],
    ['an address of another kind', () => 'ftp://files.example.com/openapi.json', /allowed: https:/],
    ['the name of a file', () => '../openapi.yaml', /a file on your computer\. Press Choose file/],
    ['a document without operations', () => '{"openapi": "3.1.0", "info": {}, "paths": {}}', /Found no operations/],
    ['an empty object', () => '{}', /This is not an API description\. Toolhost reads OpenAPI/],
    ['half of a document', () => '{"openapi": "3.1.0", "info": {', /neither complete JSON nor YAML.*copied all of it/],
    ['a PowerShell command', () => 'Invoke-RestMethod https://api.example.com', /Copy as cURL/],
  ];
  for (const [title, getText, message] of sources)
    it(`explains what to do about ${title} in place of a description`, async (t) => {
      const page = await openPage(t, dashboard, '/servers/new/import');
      await source(page).fill(await getText());
      await button(page, 'Read description').click();
      await assertExplained(source(page), message);
    });

  it('imports a curl command and an address without a scheme that are entered as the address', async (t) => {
    const { upstream } = dashboard;
    const page = await openPage(t, dashboard, '/servers/new/import');
    await source(page).fill(curl);
    await button(page, 'Read description').click();
    await page.getByText(/\(curl\) has 1 operations/).waitFor();
    const description = openApi(
      { '/items': { get: { operationId: 'list', summary: 'List.' } } },
      { servers: undefined },
    );
    upstream.on('GET /bare.json', () => ({ body: description }));
    await button(page, 'Change').click();
    await source(page).fill(`${upstream.url.replace('http://', '')}/bare.json`);
    await source(page).press('Enter');
    await page.getByText(`The tools call ${upstream.url}.`).waitFor();
    await page
      .getByRole('paragraph')
      .filter({ hasText: `${upstream.url}/bare.json` })
      .waitFor();
  });

  it('explains a header that no request can have', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new/import');
    await source(page).fill(`${dashboard.upstream.url}/closed`);
    await button(page, 'URL requires a credential').click();
    await field(page, 'Header').fill('My header:');
    await page.getByLabel('Value', { exact: true }).fill('abc');
    await button(page, 'Read description').click();
    await assertExplained(page.getByLabel('Value', { exact: true }), /My header:|header name/i);
  });

  it('explains a purpose of more than 500 characters', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new/import');
    await source(page).fill(curl);
    await field(page, 'What should agents do with it?').fill(longName);
    await button(page, 'Read description').click();
    await assertExplained(field(page, 'What should agents do with it?'), /Use at most 500 characters\./);
  });

  /** Opens the import page with a description that has been read. */
  async function openImport(t: Parameters<typeof openPage>[0], servers: { url: string }[]): Promise<Page> {
    const page = await openPage(t, dashboard, '/servers/new/import');
    const paths = { '/items': { get: { operationId: 'list', summary: 'List.', tags: ['Items'] } } };
    await source(page).fill(JSON.stringify(openApi(paths, { servers })));
    await button(page, 'Read description').click();
    await button(page, 'Create server').waitFor();
    return page;
  }

  const serverFields: [title: string, label: string, text: string, message: RegExp][] = [
    ['an empty server name', 'Server name', ' ', /Enter a name\./],
    ['a server name of 1,000 characters', 'Server name', longName, /Use at most 100 characters\./],
    ['a slug with spaces', 'Slug', 'My Items', /Use 3 to 63 lowercase letters and digits/],
    ['a slug that exists', 'Slug', 'existing', /used by a server of this workspace; choose another slug\./],
    ['a reserved slug', 'Slug', 'admin', /reserved; choose another/],
  ];
  for (const [title, label, text, message] of serverFields)
    it(`explains what to do about ${title} in an import`, async (t) => {
      const page = await openImport(t, [{ url: dashboard.upstream.url }]);
      await field(page, label).fill(text);
      await button(page, 'Create server').click();
      await assertExplained(field(page, label), message);
    });

  it('asks for the address of an API whose description has none, and explains an answer that is none', async (t) => {
    const page = await openImport(t, [{ url: '/v1' }]);
    const address = page.getByRole('textbox', { name: /^The document has only the relative address/ });
    await button(page, 'Create server').click();
    await assertExplained(address, /Answer this question\./);
    await address.fill('my api');
    await address.press('Tab');
    await assertExplained(address, /found "my api"; allowed: a URL such as https/i);
  });

  it('explains an import without an operation, and a click on the name of a group unticks nothing', async (t) => {
    const page = await openImport(t, [{ url: dashboard.upstream.url }]);
    const group = page.getByRole('checkbox', { name: 'Items', exact: true });
    assert.ok(await group.isChecked());
    await page.getByText('Items', { exact: true }).click();
    assert.ok(await group.isChecked());
    await button(page, 'Clear selection').click();
    await button(page, 'Create server').click();
    await page.getByRole('alert').getByText('Select at least one operation.').waitFor();
  });

  it('explains a token with spaces, and takes a token that is pasted with its scheme', async (t) => {
    const page = await openPage(t, dashboard, '/servers/forwarded/connect');
    const token = field(page, 'Token for snippets');
    await token.fill('my token');
    await assertExplained(token, /A token contains no spaces\. Paste only the token\./);
    await token.fill('Bearer abc');
    assert.equal(await token.inputValue(), 'abc');
  });

  it('shows how any client connects if the search finds none', async (t) => {
    const page = await openPage(t, dashboard, '/servers/forwarded/connect');
    await page.getByRole('combobox', { name: 'Client' }).fill('no such client');
    await page.getByText(/Any other client for remote MCP servers .* enter the URL above\./).waitFor();
  });

  it('says why a client cannot use the server, and what to do', async (t) => {
    const page = await openPage(t, dashboard, '/servers/forwarded/connect');
    await selectOption(page, 'Client', 'ChatGPT');
    await page.getByText(/ChatGPT can only log in, and has no field for an API key or a token\./).waitFor();
    await page.getByRole('alert').getByRole('link', { name: 'settings' }).waitFor();
    await selectOption(page, 'Client', 'OpenAI API');
    await page.getByText(/OpenAI API runs on the internet and cannot reach 127\.0\.0\.1:/).waitFor();
  });

  it('explains a key without a name, with a name of 1,000 characters, and without a scope', async (t) => {
    const page = await openPage(t, dashboard, '/keys?new');
    const dialog = page.getByRole('dialog');
    await button(dialog, 'Create key').click();
    await assertExplained(field(dialog, 'Name'), /Enter a name\./);
    await field(dialog, 'Name').fill(longName);
    await button(dialog, 'Create key').click();
    await assertExplained(field(dialog, 'Name'), /Use at most 100 characters\./);
    await dialog.getByRole('checkbox', { name: 'call', exact: true }).uncheck();
    await button(dialog, 'Create key').click();
    await dialog.getByText('Select at least one scope.').waitFor();
  });

  const emails: [title: string, text: string, message: RegExp][] = [
    ['no address', '', /Enter a value\./],
    ['a name', 'Anna Example', /Enter one email address, such as anna@example\.com\./],
    ['a list of addresses', 'anna@example.com, ben@example.com', /Enter one email address/],
  ];
  for (const [title, text, message] of emails)
    it(`explains what to do about ${title} in an invitation`, async (t) => {
      const page = await openPage(t, dashboard, '/settings');
      await field(page, 'Invite by email').fill(text);
      await button(page, 'Invite').click();
      await assertExplained(field(page, 'Invite by email'), message);
    });

  const webhooks: [title: string, url: string, message: RegExp][] = [
    ['no URL', '', /Enter a URL\./],
    ['text', 'my webhook', /Enter a complete URL, such as https:/],
    ['a URL of another kind', 'ftp://hooks.example.com/', /Enter a complete URL, such as https:/],
    ['a URL without https', 'http://hooks.example.com/', /not a public https address/],
    ['a private address', 'https://10.1.2.3/', /may not call 10\.1\.2\.3:443.*EGRESS_ALLOW=10\.1\.2\.3:443/],
  ];
  for (const [title, url, message] of webhooks)
    it(`explains what to do about ${title} for a webhook`, async (t) => {
      const page = await openPage(t, dashboard, '/notifications');
      await button(page, 'New webhook').click();
      const dialog = page.getByRole('dialog');
      await field(dialog, 'URL').fill(url);
      await button(dialog, 'Create webhook').click();
      await assertExplained(field(dialog, 'URL'), message);
    });

  it('explains a workspace name that is empty or has 1,000 characters', async (t) => {
    const page = await openPage(t, dashboard, '/settings');
    const name = field(page, 'Workspace name');
    await name.fill('');
    await button(page, 'Rename').click();
    await assertExplained(name, /Enter a (?:name|value)\./);
    await name.fill(longName);
    await button(page, 'Rename').click();
    await assertExplained(name, /Use at most 100 characters\./);
  });

  it('explains a group without a name in the roles by group', async (t) => {
    const page = await openPage(t, dashboard, '/settings');
    await button(page, 'Add').click();
    await assertExplained(field(page, 'Group'), /Enter a (?:name|value)\./);
  });
});

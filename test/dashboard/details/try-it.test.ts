import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { checkPage } from '../../support/browser/check-page.ts';
import { assertFieldError, button, field, showView } from '../../support/browser/dashboard.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import { openPage, pressOn, useDashboard } from '../../support/browser/use-dashboard.ts';
import { eventually } from '../../support/eventually.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';
import { buildToolAt } from '../../support/upstream-configs.ts';

const token = 'token-of-the-api-0123456789';

const item = (id: number) => ({
  id,
  node_id: `I_${id}`,
  title: `Issue ${id}`,
  url: `https://api.example.com/issues/${id}`,
  html_url: `https://example.com/issues/${id}`,
  user: { login: `user${id}`, avatar_url: `https://avatars.example.com/${id}`, name: `User ${id}` },
});

describe('the Try it page of the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  before(async () => {
    const { toolhost, upstream, config } = dashboard;
    const read = buildToolAt(`${upstream.url}/items/:id`, {
      name: 'read',
      input_schema: {
        id: { type: 'string', description: 'Which one', maxLength: 8 },
        count: { type: 'integer', description: 'How many', minimum: 1, optional: true },
        kind: { type: 'string', description: 'Of which kind', enum: ['big', 'small'], optional: true },
        tags: { type: 'array', items: { type: 'string' }, description: 'All of them', optional: true },
      },
    });
    await toolhost.createServer(config('tried', { authentication: { type: 'Bearer', token }, tools: [read] }));
    await toolhost.createServer(config('forwarding', { authentication: { type: 'Bearer' }, tools: [read] }));
    upstream.on('GET /items/seven', () => ({ body: { items: [{ name: 'Seventh' }], total: 1 } }));
  });

  it('sends no request on Enter in the tool search, and confirms a call of a writing tool', async (t) => {
    const { toolhost, upstream, config } = dashboard;
    const tools = Array.from({ length: 9 }, (_, index) => ({
      name: `${index === 0 ? 'read' : 'write'}_${index}`,
      description: `Does number ${index}.`,
      method: index === 0 ? 'GET' : 'POST',
      url: `${upstream.url}/careful/:id`,
      input_schema: { id: { type: 'string', default: 'seven', optional: true } },
    }));
    await toolhost.createServer(config('careful', { tools }));
    const sent: string[] = [];
    for (const route of ['POST /careful/seven', 'POST /careful/eight', 'GET /careful/seven'])
      upstream.on(route, () => ({ body: { number: sent.push(route) } }));
    const page = await openPage(t, dashboard, '/servers/careful/try?tool=write_1');
    const search = page.getByRole('combobox', { name: 'Tool', exact: true });
    await page.getByRole('region', { name: 'Outgoing request' }).getByText('POST /careful/seven').waitFor();
    await search.click();
    await search.fill('write_8');
    await search.press('Enter');
    await page.getByText('Does number 8.').waitFor();
    assert.equal(new URL(page.url()).searchParams.get('tool'), 'write_8');
    await search.press('Enter');
    await field(page, 'id').fill('eight');
    await field(page, 'id').press('Enter');
    await button(page, 'Call tool').click();
    const question = page.getByRole('dialog', { name: 'Send this call?' });
    await question.getByText(`POST ${upstream.url}/careful/eight`).waitFor();
    await checkPage(page);
    await button(question, 'Cancel').click();
    await question.waitFor({ state: 'hidden' });
    assert.deepEqual(sent, []);
    await button(page, 'Call tool').click();
    await button(question, 'Send').click();
    await page.getByRole('region', { name: 'Result' }).getByText('OK', { exact: true }).waitFor();
    assert.deepEqual(sent, ['POST /careful/eight']);
    await search.click();
    await search.fill('read');
    await search.press('Enter');
    await page.getByText('Does number 0.').waitFor();
    await field(page, 'id').press('Enter');
    await eventually(async () => assert.deepEqual(sent, ['POST /careful/eight', 'GET /careful/seven']));
  });

  it('warns before a call that a secret may not go to the new host', async (t) => {
    const { toolhost, config } = dashboard;
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    await toolhost.createServer(config('moved', { authentication }));
    await toolhost.rest('PUT', '/servers/moved/secrets/KEY', { body: { value: token } });
    const [tool] = config('moved').tools as { url: string }[];
    await toolhost.rest('PATCH', '/servers/moved', {
      body: { tools: [{ ...tool, url: 'https://api.example.com/i' }] },
    });
    const page = await openPage(t, dashboard, '/servers/moved/try');
    await field(page, 'count').fill('1');
    const outgoing = page.getByRole('region', { name: 'Outgoing request' });
    await outgoing.getByText(/^The secret KEY was set before this tool called .* set it again/).waitFor();
    await checkPage(page);
    await outgoing.getByRole('link', { name: 'Secrets' }).click();
    await button(page, 'KEY').click();
    await page.getByLabel(/^Secret value/).fill(token);
    await button(page, 'Save secret').click();
    await page.getByText(/other hosts/).waitFor({ state: 'hidden' });
  });

  it('shows errors at their arguments and keeps the input', async (t) => {
    const page = await openPage(t, dashboard, '/servers/tried/try');
    await button(page, 'Call tool').click();
    await assertFieldError(field(page, 'id'), /Enter an id\./);
    await field(page, 'id').fill('far too long');
    await field(page, 'count').fill('many');
    await button(page, 'Call tool').click();
    await assertFieldError(field(page, 'id'), /maxLength 8/);
    await assertFieldError(field(page, 'count'), /found "many"; allowed: integer/i);
    assert.equal(await field(page, 'id').inputValue(), 'far too long');
    assert.equal(await field(page, 'count').inputValue(), 'many');
    await field(page, 'id').fill('..');
    await field(page, 'count').fill('0');
    await assertFieldError(field(page, 'count'), /minimum 1/);
    await field(page, 'count').fill('2');
    await assertFieldError(field(page, 'id'), /must not be empty/i);
    await field(page, 'id').fill('seven');
    await eventually(async () => assert.equal(await field(page, 'id').getAttribute('aria-invalid'), null));
    await button(page, 'Call tool').click();
    await page.getByRole('region', { name: 'Result' }).getByText('OK', { exact: true }).waitFor();
    assert.equal(await field(page, 'count').inputValue(), '2');
  });

  it('[find D4] shows the type and size of a file in addition to the tokens of the text', async (t) => {
    const pdf = Buffer.from(`%PDF-1.7\n${'\x00x'.repeat(6000)}`);
    const zip = 'Content-Type: application/zip\r\n\r\nPK\x03\x04';
    const parts = `--cut\r\nContent-Type: text/csv\r\n\r\na,b\r\n--cut\r\n${zip}\r\n--cut--`;
    dashboard.upstream.on('GET /items/pdf', () => ({ headers: { 'content-type': 'application/pdf' }, body: pdf }));
    dashboard.upstream.on('GET /items/parts', () => ({
      headers: { 'content-type': 'multipart/mixed; boundary=cut' },
      body: Buffer.from(parts, 'latin1'),
    }));
    const page = await openPage(t, dashboard, '/servers/tried/try');
    const result = page.getByRole('region', { name: 'Result' });
    await field(page, 'id').fill('pdf');
    await button(page, 'Call tool').click();
    await result.getByText(/^about \d+ tokens and application\/pdf, 11.7 KiB$/).waitFor();
    await result.getByText('File (application/pdf, 11.7 KiB)').waitFor();
    await field(page, 'id').fill('parts');
    await button(page, 'Call tool').click();
    await result.getByText(/^about \d+ tokens and application\/zip, 4 B$/).waitFor();
    await result.getByRole('region', { name: 'Sent to agent' }).getByText('a,b').waitFor();
  });

  it('[agent 4] offers a download link for a large file in a response', async (t) => {
    const zip = Buffer.alloc(300_000, 0xfe);
    const headers = { 'content-type': 'application/zip', 'content-disposition': 'attachment; filename="all.zip"' };
    dashboard.upstream.on('GET /items/zip', () => ({ headers, body: zip }));
    const page = await openPage(t, dashboard, '/servers/tried/try');
    await field(page, 'id').fill('zip');
    await button(page, 'Call tool').click();
    const link = page.getByRole('link', { name: /^Download all\.zip, application\/zip, 29\d/ });
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    assert.equal(download.suggestedFilename(), 'all.zip');
    assert.ok(zip.equals(readFileSync(await download.path())));
  });

  it('adopts a value of the response as response_transform in an unsaved edit', async (t) => {
    const page = await openPage(t, dashboard, '/servers/tried/try');
    await field(page, 'id').fill('seven');
    await button(page, 'Call tool').click();
    await button(page, 'Pick part of the response').click();
    await button(page, 'Pick items.0.name').click();
    await button(page, 'Use in configuration').click();
    await page.getByText('Unsaved changes').waitFor();
    await showView(page, 'JSON');
    await page.getByText('"response_transform": "items.0.name"').waitFor();
    await button(page, 'Discard').click();
  });

  it('shows the result that the agent gets for a failure', async (t) => {
    dashboard.upstream.on('GET /items/broken', () => ({ status: 503, body: { error: 'down for <b>today</b>' } }));
    const page = await openPage(t, dashboard, '/servers/tried/try');
    await field(page, 'id').fill('broken');
    await button(page, 'Call tool').click();
    const result = page.getByRole('region', { name: 'Result' });
    await result.getByText('Error', { exact: true }).waitFor();
    await result.getByRole('region', { name: 'Sent to agent' }).getByText('down for <b>today</b>').waitFor();
  });

  it('requires the token for a server that forwards it and stores it nowhere', async (t) => {
    const page = await openPage(t, dashboard, '/servers/forwarding/try');
    const tokenField = page.locator('input[type=password]');
    await field(page, 'id').fill('seven');
    await button(page, 'Call tool').click();
    await assertFieldError(tokenField, /forwards the caller.s token/);
    await tokenField.fill('a token with spaces');
    await button(page, 'Call tool').click();
    await assertFieldError(tokenField, /without spaces/);
    assert.equal(await tokenField.inputValue(), 'a token with spaces');
    assert.equal(await field(page, 'id').inputValue(), 'seven');
    dashboard.upstream.take();
    await tokenField.fill(token);
    await button(page, 'Call tool').click();
    await page.getByRole('region', { name: 'Result' }).getByText('OK', { exact: true }).waitFor();
    assert.ok(dashboard.upstream.take().some(({ headers }) => headers.authorization === `Bearer ${token}`));
    assert.equal(await page.evaluate('localStorage.length + sessionStorage.length'), 0);
  });

  let key: string;
  before(async () => {
    const { toolhost, upstream, config } = dashboard;
    await toolhost.createServer(config('saved'));
    upstream.on('GET /items', () => ({ body: [1, 2, 3].map(item) }));
    key = await toolhost.createKey();
  });

  it('[agent 3] asks for a captured response, proposes fields, and saves the selection as one version', async (t) => {
    const { toolhost } = dashboard;
    const getStoredFields = async () => {
      const { server, config } = (await toolhost.rest('GET', '/servers/saved')).body as { server: Json; config: Json };
      return { version: server.version, fields: (config.tools as Json[])[0]?.response_fields };
    };
    const page = await openPage(t, dashboard, '/servers/saved/try');
    const section = page.getByRole('region', { name: 'Save tokens' });
    await pressOn(button(section, 'Measure captured responses'));
    await section.getByText('No JSON response of this tool has been captured yet').waitFor();
    await toolhost.rest('POST', '/servers/saved/capture', { body: { hours: 1 } });
    await toolhost.callTool('saved', key, 'read', { count: 1 });
    await button(section, 'Measure again').click();
    const box = (path: string) => section.getByRole('checkbox', { name: path, exact: true });
    await box('node_id').waitFor();
    for (const [path, isChecked] of [
      ['title', true],
      ['node_id', false],
      ['user.avatar_url', false],
    ] as const)
      assert.equal(await box(path).isChecked(), isChecked, path);
    const estimate = (await section.getByRole('status').first().textContent()) ?? '';
    assert.match(estimate, /^One captured response of \d+ tokens would be \d+ tokens, \d+% less\.$/);
    await checkPage(page);
    await pressOn(box('user'), 'Space');
    assert.equal(await box('user.name').isChecked(), false);
    await box('user.login').check();
    assert.equal(await box('user.name').isChecked(), false);
    await box('url').check();
    await button(section, 'Save fields').click();
    await waitForToast(page, 'Saved the fields of read');
    assert.deepEqual(await getStoredFields(), { version: 2, fields: ['id', 'title', 'url', 'html_url', 'user.login'] });
    await section.getByText(/With the current fields they are \d+ tokens/).waitFor();
    await button(section, 'Keep all').click();
    await button(section, 'Save fields').click();
    await waitForToast(page, 'Saved the fields of read');
    assert.deepEqual(await getStoredFields(), { version: 3, fields: undefined });
  });
});

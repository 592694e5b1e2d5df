import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { parse } from 'yaml';
import { root } from '../../files.ts';
import { checkPage } from '../../support/browser/check-page.ts';
import { assertFieldError, button, field, openSettings } from '../../support/browser/dashboard.ts';
import { waitForToast } from '../../support/browser/toasts.ts';
import { openPage, pressOn, useDashboard } from '../../support/browser/use-dashboard.ts';
import { openApi } from '../../support/import/import-plans.ts';
import { createLargeShop } from '../../support/import/large-shop.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';

const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } };

/** Returns an OpenAPI document with one GET operation per summary; an undefined summary omits the operation. */
function createDocument(address: string, createSummaries: readonly (string | undefined)[]): string {
  const paths: Json = {};
  for (const [index, summary] of createSummaries.entries()) {
    if (summary === undefined) continue;
    const tags = [`Tag ${Math.floor(index / 10)}`];
    paths[`/things${index}/{id}`] = { parameters: [id], get: { operationId: `getThing${index}`, summary, tags } };
  }
  return JSON.stringify(openApi(paths, { servers: [{ url: address }] }));
}

const summaries = (count: number, prefix = 'Get one of the things number') =>
  Array.from({ length: count }, (_, index) => `${prefix} ${index}`);

const toName = ({ name }: Json) => name;

describe('an import in the dashboard', { concurrency: 2 }, () => {
  const dashboard = useDashboard();

  it('[imp 4] reports an invalid description and keeps the input', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new/import');
    await field(page, 'Address or text').fill('{"openapi": "3.1.0"');
    await button(page, 'Read description').click();
    await assertFieldError(field(page, 'Address or text'), /neither complete JSON nor YAML/);
    assert.equal(await field(page, 'Address or text').inputValue(), '{"openapi": "3.1.0"');
  });

  it('[imp 3] creates a server whose credential each person brings', async (t) => {
    const securitySchemes = { key: { type: 'apiKey', in: 'header', name: 'X-Key' } };
    const document = { ...JSON.parse(createDocument(dashboard.upstream.url, summaries(3))), security: [{ key: [] }] };
    const page = await openPage(t, dashboard, '/servers/new/import');
    await field(page, 'Address or text').fill(JSON.stringify({ ...document, components: { securitySchemes } }));
    await button(page, 'Read description').click();
    await page.getByRole('combobox', { name: /^How do callers authenticate\?/ }).click();
    await page.getByRole('option', { name: /^Login with each person's own credential/ }).click();
    await field(page, 'Slug').fill('brought');
    await page.getByLabel(/^API key, sent as/).waitFor({ state: 'hidden' });
    await button(page, 'Create server').click();
    await page.getByText('Your server is running').waitFor();
    await page.getByRole('radio', { name: 'Log in' }).waitFor();
    const { body } = await dashboard.toolhost.rest('GET', '/servers/brought');
    assert.deepEqual((body.config as Json).login, { fields: [{ name: 'KEY', label: 'API key' }] });
  });

  it('proposes a free slug and another name, and rejects a taken slug when its field is left', async (t) => {
    for (const slug of ['supplies', 'warehouse']) await dashboard.toolhost.createServer(dashboard.config(slug));
    const document = { ...JSON.parse(createDocument(dashboard.upstream.url, summaries(3))) };
    const page = await openPage(t, dashboard, '/servers/new/import');
    await field(page, 'Address or text').fill(
      JSON.stringify({ ...document, info: { title: 'Supplies', version: '1' } }),
    );
    await button(page, 'Read description').click();
    await page.getByText('“supplies” is taken. “supplies-2” is free.').waitFor();
    assert.equal(await field(page, 'Slug').inputValue(), 'supplies-2');
    assert.equal(await field(page, 'Server name').inputValue(), 'Supplies 2');
    await field(page, 'Slug').fill('warehouse');
    await field(page, 'Server name').focus();
    await assertFieldError(field(page, 'Slug'), /“warehouse” is taken. “warehouse-2” is free./);
    assert.equal(await field(page, 'Server name').inputValue(), 'Supplies 2');
    await checkPage(page);
    await field(page, 'Slug').fill('supplies-3');
    await button(page, 'Create server').click();
    await page.waitForURL('**/servers/supplies-3/connect');
  });

  it('says which secret was not stored, and why, after the server was created', async (t) => {
    const securitySchemes = { key: { type: 'apiKey', in: 'header', name: 'X-Key', description: 'From your account.' } };
    const document = { ...JSON.parse(createDocument(dashboard.upstream.url, summaries(3))), security: [{ key: [] }] };
    const page = await openPage(t, dashboard, '/servers/new/import');
    await field(page, 'Address or text').fill(JSON.stringify({ ...document, components: { securitySchemes } }));
    await button(page, 'Read description').click();
    await page.getByText('From your account. Stored encrypted as KEY. Can be set later.').waitFor();
    const { host } = new URL(dashboard.upstream.url);
    await page.getByLabel(`API key, sent as header X-Key to ${host}`, { exact: true }).fill('x'.repeat(10_000));
    await field(page, 'Slug').fill('without-secret');
    await button(page, 'Create server').click();
    const alert = page
      .getByRole('alert')
      .filter({ hasText: 'The server was created, but the secret KEY was not stored' });
    await alert.getByText(/at most/).waitFor();
    await checkPage(page);
    await alert.getByRole('link', { name: 'Set it again' }).click();
    await page.waitForURL('**/servers/without-secret/settings/secrets?name=KEY');
  });

  it('[imp 4] works by keyboard in a narrow window and is unavailable to viewers', async (t) => {
    const options = { viewport: { width: 400, height: 800 } };
    const page = await openPage(t, dashboard, '/servers/new/import', { options });
    await field(page, 'Address or text').fill(createLargeShop(dashboard.upstream.url));
    await pressOn(button(page, 'Read description'));
    await pressOn(page.getByRole('button', { name: /^Tag 3\s*\d+ of \d+$/ }));
    const box = page.getByRole('checkbox', { name: /get_thing31\b/ });
    const before = await box.isChecked();
    await pressOn(box, 'Space');
    assert.equal(await box.isChecked(), !before);
    await checkPage(page);
    const viewersPage = await openPage(t, dashboard, '/servers/new/import', {
      person: { name: 'Vera', role: 'viewer' },
    });
    await viewersPage.getByText('Only editors and owners can create servers.').waitFor();
  });

  const importServer = async (slug: string, count: number, include = ['*']) => {
    const document = createDocument(dashboard.upstream.url, summaries(count));
    const body = { mode: 'create', document, slug, include };
    const reply = await dashboard.toolhost.rest('POST', '/import', { body });
    assert.equal(reply.status, 200, reply.text);
  };
  const getToolDescription = async (slug: string, tool: string) => {
    const { body } = await dashboard.toolhost.rest('GET', `/servers/${slug}`);
    const { tools } = body.config as { tools: { name: string; description: string; disabled?: boolean }[] };
    const found = tools.find(({ name }) => name === tool);
    return found?.disabled ? 'disabled' : found?.description;
  };
  const editTool = (slug: string, tool: string, fields: Json) =>
    dashboard.toolhost.rest('PATCH', `/servers/${slug}/tools/${tool}`, { body: fields });
  const readDescription = async (page: Page, document: string) => {
    await field(page, 'Address or text').fill(document);
    await button(page, 'Read description').click();
    await page.getByRole('heading', { name: 'Changes', exact: true }).waitFor();
  };

  it('[imp 5] shows the merge of a reimport, resolves conflicts both ways, adds new operations, and is undone with one click', async (t) => {
    const { upstream } = dashboard;
    await importServer('merged', 6);
    for (const n of [0, 1]) await editTool('merged', `get_thing${n}`, { description: `My own words for thing ${n}.` });
    await editTool('merged', 'get_thing2', { title: 'Third thing' });
    const changed: (string | undefined)[] = summaries(8);
    for (const n of [0, 1, 2]) changed[n] = `Another summary of thing ${n}`;
    changed[5] = undefined;
    const page = await openPage(t, dashboard, '/servers/merged');
    await openSettings(page, 'Import');
    await readDescription(page, createDocument(upstream.url, changed));
    const conflicts = page.getByRole('region', { name: '2 conflicts' });
    await conflicts.getByText('My own words for thing 0.').waitFor();
    const choice = (n: number) => conflicts.getByRole('radiogroup', { name: `get_thing${n}: description` });
    await button(page, 'Use all from description').click();
    const theirs = (n: number) => choice(n).getByRole('radio', { name: /^Description/ });
    assert.ok(await theirs(0).isChecked());
    await button(page, 'Keep all yours').click();
    assert.ok(
      await choice(1)
        .getByRole('radio', { name: /^Yours/ })
        .isChecked(),
    );
    await theirs(1).check();
    await page.getByRole('region', { name: '1 tool to disable' }).getByText('get_thing5').waitFor();
    await page.getByText('Another summary of thing 2', { exact: true }).waitFor();
    await button(page, 'Show value').click();
    await page.getByRole('region', { name: 'Kept edits' }).getByText('Third thing').waitFor();
    await page.getByRole('checkbox', { name: /get_thing7\b/ }).check();
    await page.getByText(/1 to add, about \d+/).waitFor();
    await checkPage(page);
    await button(page, 'Review').click();
    await page.getByText('Tools changed: 2, added: 1, disabled: 1.').waitFor();
    await button(page, 'Save as new version').click();
    await page.getByText('Saved as version 5').waitFor();
    assert.equal(await getToolDescription('merged', 'get_thing0'), 'My own words for thing 0.');
    assert.equal(await getToolDescription('merged', 'get_thing1'), 'Another summary of thing 1');
    assert.equal(await getToolDescription('merged', 'get_thing5'), 'disabled');
    assert.equal(await getToolDescription('merged', 'get_thing6'), undefined);
    assert.equal(await getToolDescription('merged', 'get_thing7'), 'Get one of the things number 7');
    await button(page, 'Undo: restore version 4').click();
    await waitForToast(page, 'Restored version 4 as version 6');
    assert.equal(await getToolDescription('merged', 'get_thing1'), 'My own words for thing 1.');
  });

  it('[imp 5] stays usable in a reimport with 600 operations of which 200 changed, in a narrow window and by keyboard', async (t) => {
    const { upstream } = dashboard;
    const some = Array.from({ length: 200 }, (_, index) => `getThing${index}`);
    await importServer('large', 600, some);
    await editTool('large', 'get_thing3', { description: 'My own words for thing 3.' });
    const changed = [...summaries(200, 'Now get the thing number'), ...summaries(600).slice(200)];
    const page = await openPage(t, dashboard, '/servers/large/settings/import', {
      options: { viewport: { width: 400, height: 800 } },
    });
    await readDescription(page, createDocument(upstream.url, changed));
    const count = () => page.evaluate<number>('document.querySelectorAll("main *").length');
    assert.ok((await count()) < 1500, `${await count()} elements`);
    const more = page.getByRole('button', { name: /^Show more updated tools/ });
    await pressOn(more);
    await page.getByText('Now get the thing number 40', { exact: true }).waitFor();
    const yours = page.getByRole('radio', { name: /^Yours/ });
    await pressOn(yours, 'ArrowDown');
    assert.ok(await page.getByRole('radio', { name: /^Description/ }).isChecked());
    const others = page.getByRole('button', { name: 'Show 400 other operations' });
    await pressOn(others);
    await page.getByRole('textbox', { name: 'Search other operations' }).fill('things5');
    const box = page.getByRole('checkbox', { name: /get_thing500\b/ });
    await pressOn(box, 'Space');
    assert.ok(await box.isChecked());
    assert.ok((await count()) < 5000, `${await count()} elements`);
    await checkPage(page);
    await pressOn(button(page, 'Review'));
    await page.getByText('Tools changed: 200, added: 1, disabled: 0.').waitFor();
  });

  it('[imp 5] enables daily checks, and the server list links from a changed API to the reimport', async (t) => {
    const { toolhost, upstream } = dashboard;
    const url = `${upstream.url}/api.json`;
    const serveDescription = (summaries: readonly string[]) =>
      upstream.on('GET /api.json', () => ({ body: JSON.parse(createDocument(upstream.url, summaries)) }));
    serveDescription(summaries(2));
    await toolhost.rest('POST', '/import', { body: { mode: 'create', url, slug: 'drifting', include: ['*'] } });
    const page = await openPage(t, dashboard, '/servers/drifting/settings/import');
    await page.getByRole('switch', { name: 'Check daily' }).click();
    await waitForToast(page, 'The description is now checked daily');
    serveDescription(summaries(3));
    await button(page, 'Check now').click();
    await page.getByText('Since the last import: 1 new operation.').waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'Servers', exact: true }).last().click();
    await page.getByRole('link', { name: 'API changed' }).waitFor();
    await checkPage(page);
    await page.getByRole('link', { name: 'API changed' }).click();
    await button(page, 'Read description').click();
    await page.getByRole('checkbox', { name: /get_thing2\b/ }).check();
    await button(page, 'Review').click();
    await button(page, 'Save as new version').click();
    await page.getByText('Saved as version 2').waitFor();
    assert.ok(await page.getByRole('switch', { name: 'Check daily' }).isChecked());
  });

  it('[imp 5] can be repeated only for imported servers, and not by viewers', async (t) => {
    await dashboard.toolhost.createServer(dashboard.config('by-hand'));
    await importServer('viewed', 2);
    const page = await openPage(t, dashboard, '/servers/by-hand/settings');
    await page.getByRole('link', { name: 'Versions', exact: true }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'Import', exact: true }).count(), 0);
    const viewersPage = await openPage(t, dashboard, '/servers/viewed/settings/import', {
      person: { name: 'Vera', role: 'viewer' },
    });
    await viewersPage.getByText('Only editors and owners can reimport a description.').waitFor();
  });

  it('[imp 7] creates a server from an example and lists the secret to set', async (t) => {
    const page = await openPage(t, dashboard, '/servers/new');
    await page.getByText('From an example').click();
    await page.getByRole('heading', { name: 'Start from an example' }).waitFor();
    const examples = { Open: 2, 'API key': 6, 'OAuth app': 19 };
    for (const [name, count] of Object.entries(examples))
      assert.equal(await page.getByRole('region', { name }).getByRole('link').count(), count, name);
    await page.getByText('Customers, invoices, payments').click();
    await field(page, 'Slug').fill('our-stripe');
    await button(page, 'Create server').click();
    await page.waitForURL(/\/servers\/our-stripe\/connect/);
    const { body } = await dashboard.toolhost.rest('GET', '/servers/our-stripe');
    const file = parse(readFileSync(join(root, 'examples', 'gallery', 'stripe.yaml'), 'utf8')) as { tools: Json[] };
    const stored = body.config as { tools: Json[]; base_url: string; max_response_tokens: number };
    assert.deepEqual(stored.tools.map(toName), file.tools.map(toName));
    assert.equal(stored.base_url, 'https://api.stripe.com');
    assert.equal(stored.max_response_tokens, 20_000);
    assert.match(JSON.stringify(body.warnings), /\{\{STRIPE_KEY\}\} has no value yet/);
  });
});

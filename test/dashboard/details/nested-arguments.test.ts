import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertMapped } from '../../support/assert-lists.ts';
import { checkPage } from '../../support/browser/check-page.ts';
import { button, field } from '../../support/browser/dashboard.ts';
import { getStoredConfig, openPage, save, useDashboard } from '../../support/browser/use-dashboard.ts';
import type { Json } from '../../support/toolhost/toolhost.ts';
import { buildToolAt } from '../../support/upstream-configs.ts';

/** Complete JSON Schema with an optional text in three spellings, an object, and a list of objects. */
const schema = {
  type: 'object',
  properties: {
    title: { type: 'string' },
    note: { type: ['string', 'null'], description: 'A remark.' },
    color: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    address: {
      type: 'object',
      description: 'Where it is.',
      properties: {
        city: { type: 'string' },
        floor: { type: 'integer' },
        position: { type: 'object', properties: { x: { type: 'number' } } },
      },
      required: ['city'],
    },
    size: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
  },
  required: ['title', 'note'],
  additionalProperties: false,
};

describe('nullable and nested arguments in the dashboard', () => {
  const dashboard = useDashboard();

  async function createServer(slug: string): Promise<void> {
    const tool = buildToolAt(`${dashboard.upstream.url}/things`, { name: 'add', method: 'POST', input_schema: schema });
    await dashboard.toolhost.createServer(dashboard.config(slug, { tools: [tool] }));
  }

  it('are fields of the form that calls a tool, and are sent with their types', async (t) => {
    await createServer('nested-call');
    dashboard.upstream.take();
    const page = await openPage(t, dashboard, '/servers/nested-call/try');
    await field(page, 'title').fill('Shed');
    const outgoing = page.getByRole('region', { name: 'Outgoing request' });
    await outgoing.getByText(/"note":\s*null/).waitFor();
    const address = page.getByRole('group', { name: 'address' });
    await field(address, 'floor').fill('2');
    await button(page, 'Call tool').click();
    assert.equal(await field(address, 'city').getAttribute('aria-invalid'), 'true');
    await field(address, 'city').fill('Kiel');
    await field(page.getByRole('group', { name: 'position' }), 'x').fill('1.5');
    await field(page, 'size').fill('7');
    await outgoing.getByText(/"city":\s*"Kiel"/).waitFor();
    await checkPage(page);
    await button(page, 'Call tool').click();
    await button(page.getByRole('dialog'), 'Send').click();
    await page.getByRole('region', { name: 'Result' }).getByText('OK', { exact: true }).waitFor();
    assertMapped(dashboard.upstream.take(), ({ body }) => JSON.parse(String(body)) as Json, [
      { title: 'Shed', note: null, address: { city: 'Kiel', floor: 2, position: { x: 1.5 } }, size: 7 },
    ]);
  });

  it('are rows of the tool editor, which keeps definitions that were not edited as they were written', async (t) => {
    await createServer('nested-edit');
    const page = await openPage(t, dashboard, '/servers/nested-edit/tools?tool=add');
    assert.equal(await page.getByRole('checkbox', { name: 'color is required' }).isChecked(), false);
    assert.match((await page.getByRole('textbox', { name: 'Definition of size' }).inputValue()) ?? '', /anyOf/);
    await field(page, 'Description of address.city').fill('Name of the city.');
    await page.getByRole('checkbox', { name: 'address.floor is required' }).check();
    await button(page, 'Details of note').click();
    await page.getByRole('checkbox', { name: 'Nullable' }).uncheck();
    await checkPage(page);
    await save(page);
    const [tool] = (await getStoredConfig<{ tools: Json[] }>(dashboard, 'nested-edit')).tools;
    const { address } = schema.properties;
    assert.deepEqual(tool?.input_schema, {
      ...schema,
      properties: {
        ...schema.properties,
        note: { type: 'string', description: 'A remark.' },
        address: {
          ...address,
          properties: { ...address.properties, city: { type: 'string', description: 'Name of the city.' } },
          required: ['city', 'floor'],
        },
      },
    });
  });

  it('can be added to an object as fields', async (t) => {
    await dashboard.toolhost.createServer(dashboard.config('nested-new'));
    const page = await openPage(t, dashboard, '/servers/nested-new/tools?tool=read');
    await button(page, 'Add argument').click();
    await field(page, 'Name of argument 2').fill('place');
    await page.getByRole('combobox', { name: 'Type of place' }).click();
    await page.getByRole('option', { name: 'object', exact: true }).click();
    await button(page, 'Fields of place (0)').click();
    await button(page, 'Add place field').click();
    await field(page, 'Name of place field 1').fill('city');
    await save(page);
    const [tool] = (await getStoredConfig<{ tools: Json[] }>(dashboard, 'nested-new')).tools;
    assert.deepEqual((tool?.input_schema as Json | undefined)?.place, {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
    });
  });
});

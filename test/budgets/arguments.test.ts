import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';

/** Size in bytes just below the 1 MiB limit of a request body. */
const maxBodyBytes = 1024 * 1024 - 400;

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: Math.floor(count) }, (_, i) => make(i));
const makeList = (item: string, bytes = maxBodyBytes, count = 59_000) =>
  `[${times(Math.min(count, bytes / (item.length + 1)), () => item).join(',')}]`;
const makeText = (piece: string, bytes = maxBodyBytes) =>
  `"${piece.repeat(Math.floor(bytes / Buffer.byteLength(piece)))}"`;

/** JSON values that cause as much work as the limits allow. */
const heavyValues: Record<string, string> = {
  numbers: makeList('7'),
  'numbers with preserved digits': makeList('1.10'),
  texts: makeList('"some text"'),
  'empty objects': makeList('{}'),
  rows: makeList('{"id":1,"name":"x"}', maxBodyBytes, 14_000),
  'nested lists': makeList('[[[[[[1]]]]]]', maxBodyBytes, 8000),
  names: `{${times(29_000, (i) => `"n${i.toString(36)}":1`).join(',')}}`,
  'long names': `{${times(1000, (i) => `"${'n'.repeat(1000)}${i}":1`).join(',')}}`,
  'lists in objects': `{${times(4000, (i) => `"k${i}":{"a":[1,{"b":2}]}`).join(',')}}`,
  'a text of exclamation marks': makeText('!'),
  'a text of é': makeText('é'),
  'a text of emoji': makeText('😀'),
  'a text of escapes': makeText('\\u00e9'),
  'a text of backslashes': makeText('\\\\'),
  'a text of quotes': makeText('\\"'),
  'lone surrogates': makeText('\\ud800'),
};

describe('CPU budget of tool arguments', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost();
  });
  after(() => toolhost.stop());

  let serverCount = 0;
  const createServer = async (tool: Json): Promise<string> => {
    const slug = `arguments-${++serverCount}`;
    const run = { name: 'run', description: 'Takes the arguments of this test.', method: 'POST', ...tool };
    const url = `${toolhost.upstream.url}${tool.url ?? '/things'}`;
    const created = await toolhost.rest('POST', '/servers', { name: 'Arguments', slug, tools: [{ ...run, url }] });
    assert.equal(created.status, 201, created.text);
    toolhost.upstream.on('*', () => ({ body: { ok: true } }));
    return slug;
  };
  const call = async (label: string, slug: string, args: string): Promise<ToolCallResult | undefined> => {
    const {
      status,
      body,
      text: responseText,
    } = await toolhost.assertWithinBudget(label, () => toolhost.call(slug, 'run', args));
    assert.ok(status === 200 || status === 413, responseText.slice(0, 300));
    assert.ok(responseText.length < 30_000, `${label}: a response of ${responseText.length} characters`);
    return body.result as ToolCallResult | undefined;
  };

  /** Most expensive values for the serialization of arguments. */
  const shapes = [
    'texts',
    'rows',
    'nested lists',
    'names',
    'long names',
    'lists in objects',
    'a text of exclamation marks',
  ];
  const placements: Record<string, Json> = {
    'a JSON body': {},
    'a query': { method: 'GET' },
    'a form': { body: 'form' },
    'a multipart form': { body: 'multipart' },
    'the body': { body: 'a' },
    'a path': { url: '/things/:a' },
    'a query value, 500 times': { url: `/things?x=${':a.'.repeat(500)}`, method: 'GET' },
    'a header': { in: 'header' },
    'a deep query': { method: 'GET', field: { style: 'deep' } },
    'a deep form': { body: 'form', field: { style: 'deep' } },
    'a form with indices': { body: 'form', field: { style: 'indices', wire_name: 'a long name' } },
    'a path with slashes': { url: '/things/:a', field: { type: 'string', allow_slashes: true } },
    'a file': { body: 'multipart', field: { type: 'string', content: 'base64' } },
    'parts of a template': { body_template: { all: times(20, () => ({ one: ':a', text: 'x :a :a' })) } },
  };
  for (const [placement, tool] of Object.entries(placements)) {
    it(`[find A2] sends the most expensive arguments as ${placement} within the CPU budget`, async () => {
      const { in: inField, field, ...fields } = tool;
      const properties = { a: { ...(inField !== undefined && { in: inField }), ...(field as Json | undefined) } };
      const slug = await createServer({ ...fields, input_schema: { type: 'object', properties, required: ['a'] } });
      const values = field === undefined ? Object.keys(heavyValues) : shapes;
      for (const label of values) await call(`${label} as ${placement}`, slug, `{"a":${heavyValues[label]}}`);
    });
  }

  it('[find A2] checks 59,000 numbers and 1 MB of text against 1,900 subschemas within the CPU budget', async () => {
    const makeItemsSchema = (makeSubschema: (i: number) => Json, count = 1900) => ({
      type: 'object',
      properties: { a: { items: { allOf: times(count, makeSubschema) } } },
    });
    const schemas: Record<string, Json> = {
      maximum: makeItemsSchema((i) => ({ maximum: i + 10 })),
      maxLength: makeItemsSchema(() => ({ maxLength: 700_000, minLength: 300_000 })),
      anyOf: {
        type: 'object',
        properties: { a: { items: { anyOf: times(900, () => ({ type: 'string', items: {} })) } } },
      },
      enum: makeItemsSchema(() => ({ enum: times(20, (i) => [[i]]) }), 500),
      multipleOf: makeItemsSchema(() => ({ multipleOf: 0.01 }), 100),
      minProperties: makeItemsSchema(() => ({ minProperties: 1 })),
      contains: { type: 'object', properties: { a: { allOf: times(900, () => ({ contains: { const: 5 } })) } } },
      additionalProperties: {
        type: 'object',
        properties: { a: { anyOf: times(900, () => ({ additionalProperties: { type: 'null' } })) } },
      },
      propertyNames: {
        type: 'object',
        properties: { a: { allOf: times(900, () => ({ propertyNames: { minLength: 3 } })) } },
      },
    };
    for (const [keyword, input_schema] of Object.entries(schemas)) {
      const slug = await createServer({ input_schema });
      for (const label of ['numbers', 'empty objects', 'names']) {
        await call(`${keyword} on ${label}`, slug, `{"a":${heavyValues[label]}}`);
      }
      await call(`${keyword} on a text`, slug, `{"a":[${heavyValues['a text of é']}]}`);
    }
    const result = await call(
      'refused',
      await createServer({ input_schema: schemas.maximum }),
      `{"a":${heavyValues.numbers}}`,
    );
    assert.match(
      result?.content[0]?.text ?? '',
      /^The arguments have too many values\. Checking them against input_schema/,
    );
  });

  it('[find A2] rejects up to 29,000 unknown arguments within the CPU budget when 100 long names are declared', async () => {
    const declared = Object.fromEntries(
      times(100, (i) => [`argument_${'x'.repeat(50)}${i}`, { type: 'string', optional: true }]),
    );
    const slug = await createServer({ input_schema: declared });
    for (const count of [1000, 29_000]) {
      const unknown = `{${times(count, (i) => `"argument_${'y'.repeat(20)}${i}":1`).join(',')}}`;
      const result = await call(`${count} unknown`, slug, unknown);
      if (count === 1000) assert.match(result?.content[0]?.text ?? '', /unknown argument.*; and 990 more$/);
    }
  });

  /** Returns a schema with an object argument whose properties become parameters next to `id` or under its own name. */
  const makeFilterTool = (style: string, more: Json = {}): Json => ({
    input_schema: {
      type: 'object',
      properties: { id: { type: 'string' }, filter: { type: 'object', style } },
    },
    ...more,
  });
  const filter = (name: string, items: number) =>
    `{"filter":{${JSON.stringify(name)}:${makeList('1', maxBodyBytes, items)}}}`;
  const dots = `id${'.'.repeat(290)}`;

  it('[find A2] serializes names with hundreds of dots in thousands of pairs within the CPU budget', async () => {
    const query = await createServer(makeFilterTool('repeat', { method: 'GET' }));
    await call('290 dots in a query', query, filter(dots, 218));
    const form = await createServer(makeFilterTool('repeat', { body: 'form' }));
    for (const items of [1000, 10_000]) await call(`290 dots in ${items} fields`, form, filter(dots, items));
    await call('48 ü in 10,000 fields', form, filter('ü'.repeat(48), 10_000));
  });

  it('[find A2] encodes a text in which every character is escaped within the CPU budget', async () => {
    const header = await createServer({ input_schema: { a: { type: 'string', style: 'json', in: 'header' } } });
    await call('JSON in a header', header, `{"a":${makeText('é')}}`);
    const file = await createServer({ input_schema: { a: { type: 'string', content: 'base64' } }, body: 'multipart' });
    for (const piece of ['%41', '%', '%4'])
      await call(
        `${piece} in a data URL`,
        file,
        `{"a":"data:text/plain,${makeText(piece, maxBodyBytes - 100).slice(1)}}`,
      );
    await call('%41 in Base64', file, `{"a":"data:text/plain;base64,${makeText('%41', maxBodyBytes - 100).slice(1)}}`);
  });

  it('[find A2] reports validation errors under names of 50,000 characters within the CPU budget', async () => {
    const levels = 20;
    const schema = times(levels, () => 0).reduce<Json>((inner) => ({ type: 'object', additionalProperties: inner }), {
      type: 'string',
    });
    const slug = await createServer({ input_schema: { type: 'object', properties: { a: schema } } });
    const name = `"${'k'.repeat(50_000)}"`;
    const inner = `{${times(600, (i) => `"n${i}":{}`).join(',')}}`;
    const result = await call(
      'deep faults',
      slug,
      `{"a":${`{${name}:`.repeat(levels - 1)}${inner}${'}'.repeat(levels - 1)}}`,
    );
    assert.match(result?.content[0]?.text ?? '', /a\.k+…: found .+; allowed: string/);
  });
});

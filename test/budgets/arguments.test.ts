import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeList, makeObject, repeatToFit, times } from '../support/long-values.ts';
import { getText, useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

/** Size in bytes just below the 1 MiB limit of a request body. */
const maxBodyBytes = 1024 * 1024 - 400;
const makeArray = (item: string, maxCount = 59_000) => makeList(item, maxBodyBytes, maxCount);
const makeText = (piece: string, bytes = maxBodyBytes) => `"${repeatToFit(piece, bytes)}"`;

/** JSON values that cause as much work as the limits allow. */
const heavyValues: Record<string, string> = {
  numbers: makeArray('7'),
  'numbers with preserved digits': makeArray('1.10'),
  texts: makeArray('"some text"'),
  'empty objects': makeArray('{}'),
  rows: makeArray('{"id":1,"name":"x"}', 14_000),
  'nested lists': makeArray('[[[[[[1]]]]]]', 8000),
  names: `{${times(29_000, (i) => `"n${i.toString(36)}":1`)}}`,
  'long names': `{${times(1000, (i) => `"${'n'.repeat(1000)}${i}":1`)}}`,
  'lists in objects': `{${times(4000, (i) => `"k${i}":{"a":[1,{"b":2}]}`)}}`,
  'a text of exclamation marks': makeText('!'),
  'a text of é': makeText('é'),
  'a text of emoji': makeText('😀'),
  'a text of escapes': makeText('\\u00e9'),
  'a text of backslashes': makeText('\\\\'),
  'a text of quotes': makeText('\\"'),
  'lone surrogates': makeText('\\ud800'),
};

describe('CPU budget of tool arguments', () => {
  const toolhost = useCpuBudgetToolhost();

  let serverCount = 0;
  const createServer = async (tool: Json): Promise<string> => {
    const slug = `arguments-${++serverCount}`;
    const run = { name: 'run', description: 'Takes the arguments of this test.', method: 'POST', ...tool };
    const url = `${toolhost.upstream.url}${tool.url ?? '/things'}`;
    await toolhost.createServer({ slug, tools: [{ ...run, url }] });
    toolhost.upstream.on('*', () => ({ body: { ok: true } }));
    return slug;
  };
  /** Calls the tool within the CPU budget. Returns the first text of its result, if it has one. */
  const call = async (label: string, slug: string, args: string): Promise<string> => {
    const reply = await toolhost.measure(label).call(slug, 'run', args);
    assert.ok(reply.status === 200 || reply.status === 413, reply.text.slice(0, 300));
    assert.ok(reply.text.length < 30_000, `${label}: a response of ${reply.text.length} characters`);
    return reply.body.result ? getText(reply) : '';
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
    const makeSchema = (a: Json): Json => ({ type: 'object', properties: { a } });
    const makeItemsSchema = (makeSubschema: (i: number) => Json, count = 1900) =>
      makeSchema({ items: { allOf: times(count, makeSubschema) } });
    const schemas: Record<string, Json> = {
      maximum: makeItemsSchema((i) => ({ maximum: i + 10 })),
      maxLength: makeItemsSchema(() => ({ maxLength: 700_000, minLength: 300_000 })),
      anyOf: makeSchema({ items: { anyOf: times(900, () => ({ type: 'string', items: {} })) } }),
      enum: makeItemsSchema(() => ({ enum: times(20, (i) => [[i]]) }), 500),
      multipleOf: makeItemsSchema(() => ({ multipleOf: 0.01 }), 100),
      minProperties: makeItemsSchema(() => ({ minProperties: 1 })),
      contains: makeSchema({ allOf: times(900, () => ({ contains: { const: 5 } })) }),
      additionalProperties: makeSchema({ anyOf: times(900, () => ({ additionalProperties: { type: 'null' } })) }),
      propertyNames: makeSchema({ allOf: times(900, () => ({ propertyNames: { minLength: 3 } })) }),
    };
    for (const [keyword, input_schema] of Object.entries(schemas)) {
      const slug = await createServer({ input_schema });
      for (const label of ['numbers', 'empty objects', 'names']) {
        await call(`${keyword} on ${label}`, slug, `{"a":${heavyValues[label]}}`);
      }
      await call(`${keyword} on a text`, slug, `{"a":[${heavyValues['a text of é']}]}`);
    }
    const slug = await createServer({ input_schema: schemas.maximum });
    assert.match(
      await call('refused', slug, `{"a":${heavyValues.numbers}}`),
      /^The arguments have too many values\. Checking them against input_schema/,
    );
  });

  it('[find A2] rejects up to 29,000 unknown arguments within the CPU budget when 100 long names are declared', async () => {
    const declared = makeObject(100, (i) => [`argument_${'x'.repeat(50)}${i}`, { type: 'string', optional: true }]);
    const slug = await createServer({ input_schema: declared });
    for (const count of [1000, 29_000]) {
      const unknown = `{${times(count, (i) => `"argument_${'y'.repeat(20)}${i}":1`)}}`;
      const text = await call(`${count} unknown`, slug, unknown);
      if (count === 1000) assert.match(text, /unknown argument.*; and 990 more$/);
    }
  });

  /** Returns a schema with an object argument whose properties become parameters next to `id` or under its own name. */
  const makeFilterTool = (more: Json): Json => ({
    input_schema: {
      type: 'object',
      properties: { id: { type: 'string' }, filter: { type: 'object', style: 'repeat' } },
    },
    ...more,
  });
  const filter = (name: string, items: number) => `{"filter":{${JSON.stringify(name)}:${makeArray('1', items)}}}`;
  const dots = `id${'.'.repeat(290)}`;

  it('[find A2] serializes names with hundreds of dots in thousands of pairs within the CPU budget', async () => {
    const query = await createServer(makeFilterTool({ method: 'GET' }));
    await call('290 dots in a query', query, filter(dots, 218));
    const form = await createServer(makeFilterTool({ body: 'form' }));
    for (const items of [1000, 10_000]) await call(`290 dots in ${items} fields`, form, filter(dots, items));
    await call('48 ü in 10,000 fields', form, filter('ü'.repeat(48), 10_000));
  });

  it('[find A2] encodes a text in which every character is escaped within the CPU budget', async () => {
    const header = await createServer({ input_schema: { a: { type: 'string', style: 'json', in: 'header' } } });
    await call('JSON in a header', header, `{"a":${makeText('é')}}`);
    const file = await createServer({ input_schema: { a: { type: 'string', content: 'base64' } }, body: 'multipart' });
    for (const piece of ['%41', '%', '%4'])
      await call(`${piece} in a data URL`, file, `{"a":"data:text/plain,${repeatToFit(piece, maxBodyBytes - 100)}"}`);
    await call('%41 in Base64', file, `{"a":"data:text/plain;base64,${repeatToFit('%41', maxBodyBytes - 100)}"}`);
  });

  it('[find A2] reports validation errors under names of 50,000 characters within the CPU budget', async () => {
    const levels = 20;
    let a: Json = { type: 'string' };
    for (let level = 0; level < levels; level++) a = { type: 'object', additionalProperties: a };
    const slug = await createServer({ input_schema: { type: 'object', properties: { a } } });
    const inner = `{${times(600, (i) => `"n${i}":{}`)}}`;
    const value = `${`{"${'k'.repeat(50_000)}":`.repeat(levels - 1)}${inner}${'}'.repeat(levels - 1)}`;
    assert.match(await call('deep faults', slug, `{"a":${value}}`), /a\.k+…: found .+; allowed: string/);
  });
});

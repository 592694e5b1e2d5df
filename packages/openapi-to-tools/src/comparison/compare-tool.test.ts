import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { listOutcomes, openApi, planDocument } from '../../../../test/support/import/import-plans.ts';
import { assertAlwaysSync } from '../../../../test/support/properties.ts';
import {
  boolean,
  cookie,
  header,
  inPath,
  integer,
  jsonBody,
  number,
  query,
  text,
} from '../../../../test/support/schemas.ts';
import type { Json } from '../../../../test/support/toolhost/toolhost.ts';
import { SchemaFinder } from '../document/references.ts';
import type { ImportedTool } from '../tools/tool-candidate.ts';
import { compareTool } from './compare-tool.ts';

const responses = { 200: { description: 'ok' } };

const leaf: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(boolean, text, { type: ['string', 'null'] }, number),
  fc
    .record({ pattern: fc.constantFrom('^[a-z]+$', '^\\d{3}$'), maxLength: fc.integer({ min: 1, max: 9 }) })
    .map((rules): Json => ({ type: 'string', ...rules })),
  fc
    .record({ minimum: fc.integer({ min: 1, max: 9 }), exclusiveMaximum: fc.integer({ min: 10, max: 19 }) })
    .map((rules): Json => ({ type: 'integer', ...rules })),
  fc.subarray(['open', 'done', 'late'], { minLength: 2 }).map((values): Json => ({ type: 'string', enum: values })),
);

const listOf = (items: fc.Arbitrary<Json>) =>
  fc.record({ items, minItems: fc.integer({ min: 1, max: 3 }) }).map((rules): Json => ({ type: 'array', ...rules }));

const objectOf = (property: fc.Arbitrary<Json>) =>
  fc
    .record({
      properties: fc.dictionary(fc.constantFrom('name', 'size', 'tags', 'owner'), property, { minKeys: 1, maxKeys: 3 }),
      required: fc.subarray(['name', 'size', 'tags', 'owner']),
      isClosed: fc.boolean(),
    })
    .map(({ properties, required, isClosed }): Json => {
      const declared = required.filter((name) => Object.hasOwn(properties, name));
      return {
        type: 'object',
        properties,
        ...(declared.length > 0 && { required: declared }),
        ...(isClosed && { additionalProperties: false }),
      };
    });

const inner = fc.oneof({ weight: 2, arbitrary: leaf }, { weight: 1, arbitrary: listOf(leaf) }, objectOf(leaf));
const schema = fc.oneof(
  inner,
  listOf(inner),
  objectOf(inner),
  fc.tuple(leaf, objectOf(leaf), listOf(leaf)).map(([...anyOf]): Json => ({ anyOf })),
);

const operation = fc
  .record({
    query: fc.dictionary(fc.constantFrom('page', 'kind'), fc.oneof(leaf, listOf(leaf)), { maxKeys: 2 }),
    header: fc.option(leaf, { nil: undefined }),
    isRequired: fc.boolean(),
    body: fc.oneof(objectOf(schema), listOf(inner)),
    mediaType: fc.constantFrom('application/json', 'application/vnd.things+json'),
  })
  .map(({ query, header, isRequired, body, mediaType }) => ({
    parameters: [
      inPath('id', { type: 'integer', minimum: 1 }),
      ...Object.entries(query).map(([name, one]) => ({ name, in: 'query', required: isRequired, schema: one })),
      ...(header ? [{ name: 'X-Mode', in: 'header', schema: header }] : []),
    ],
    requestBody: { required: isRequired, content: { [mediaType]: { schema: body } } },
    responses,
  }));

type Mutation = { what: string; tool: ImportedTool };

/** Schema keywords that reject values. */
const rules = ['type', 'enum', 'pattern', 'minLength', 'maxLength', 'minimum', 'exclusiveMinimum', 'exclusiveMaximum'];
const lists = ['minItems', 'additionalProperties', 'anyOf', 'items', 'required'];

/** Returns a copy of the tool for each of its parts, without that part. */
function listMutations(tool: ImportedTool): Mutation[] {
  const mutations: Mutation[] = [];
  const mutate = (what: string, path: readonly (string | number)[], change: (parent: Json, key: string) => void) => {
    const copy = structuredClone(tool);
    const parent = path.slice(0, -1).reduce<unknown>((at, step) => (at as Json)[step], copy.input_schema);
    change(parent as Json, String(path.at(-1)));
    mutations.push({ what: `${what} ${path.join('.')}`, tool: copy });
  };
  const remove = (parent: Json, key: string) => {
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
  };
  const walk = (schema: Json, path: readonly (string | number)[], isArgument: boolean) => {
    const isInUrl = isArgument && tool.url.includes(`:${path.at(-1)}`);
    if (isArgument && !isInUrl) mutate('no argument', path, remove);
    // A type is redundant next to an enum.
    for (const keyword of [...rules, ...lists])
      if (schema[keyword] !== undefined && !(keyword === 'type' && schema.enum !== undefined))
        mutate('no', [...path, keyword], remove);
    for (const keyword of ['enum', 'anyOf', 'required'])
      for (const at of ((schema[keyword] ?? []) as unknown[]).keys()) mutate('not', [...path, keyword, at], remove);
    for (const [name, property] of Object.entries((schema.properties ?? {}) as Record<string, Json>)) {
      mutate('no property', [...path, 'properties', name], remove);
      walk(property, [...path, 'properties', name], false);
    }
    if (schema.items !== undefined) walk(schema.items as Json, [...path, 'items'], false);
    for (const [at, one] of ((schema.anyOf ?? []) as Json[]).entries()) walk(one, [...path, 'anyOf', at], false);
  };
  const { input_schema: inputSchema } = tool;
  const isForm = typeof inputSchema.type === 'string';
  const args = (isForm ? inputSchema.properties : inputSchema) as Record<string, Json>;
  for (const [name, definition] of Object.entries(args)) {
    const at = isForm ? ['properties', name] : [name];
    walk(definition, at, true);
    if (!isForm && definition.optional === undefined && !tool.url.includes(`:${name}`))
      mutate('optional', [...at, 'optional'], (parent, key) => {
        parent[key] = true;
      });
  }
  for (const [at, name] of ((isForm ? inputSchema.required : []) as string[]).entries())
    if (!tool.url.includes(`:${name}`)) mutate('optional', ['required', at], remove);
  return mutations;
}

describe('comparison of a document with the finished tool', () => {
  it('[imp 3] detects every part that a tool lacks, and reports nothing when no part is missing', () => {
    assertAlwaysSync(200, [operation], (post) => {
      const document = openApi({ '/things/{id}': { post: { summary: 'Changes a thing of the shop', ...post } } });
      const [planned] = planDocument(document).all;
      assert.ok(planned?.tool);
      assert.deepEqual([planned.outcome, planned.notes], ['whole', []], JSON.stringify(planned.tool));
      const query = { folded: new Set<string>(), trie: { children: new Map() } };
      const names = { headers: new Set<string>(), cookies: new Set<string>(), listedParameters: new Set<string>() };
      const source = {
        root: document,
        finder: new SchemaFinder(document),
        credential: { ...names, query, isAws: false },
      };
      for (const { what, tool } of listMutations(planned.tool)) {
        const { outcome, notes } = compareTool(planned.operation, tool, source);
        assert.notEqual(outcome, 'whole', `${what}\n${JSON.stringify(post)}\n${JSON.stringify(planned.tool)}`);
        assert.ok(notes.length > 0);
      }
    });
  });

  it('[imp 3] names in the notes every part of an operation that its tool lacks', () => {
    const object = (more: Json) => ({ type: 'object', properties: { kind: text }, ...more });
    const bodies: [word: string, schema: Json][] = [
      ['locker', object({ if: { required: ['kind'] }, else: { properties: { locker: text } } })],
      ['voucher', object({ dependentSchemas: { kind: { properties: { voucher: text } } } })],
      ['dependentRequired', object({ dependentRequired: { kind: ['seats'] } })],
      ['seats', object({ required: ['seats'] })],
      ['seats', object({ properties: { order: object({ required: ['seats'] }) } })],
      ['straße', object({ properties: { order: object({ properties: { straße: text } }) } })],
      ['maxProperties', object({ properties: { labels: { type: 'object', maxProperties: 3 } } })],
      ['multipleOf', object({ properties: { price: { type: 'number', multipleOf: 0.05 } } })],
      ['additionalProperties', object({ additionalProperties: integer })],
    ];
    const inputs: [word: string, parameter: Json][] = [
      ['multipleOf', query('step', { type: 'integer', multipleOf: 3 })],
      ['filter', { name: 'filter', in: 'querystring', content: { 'application/json': { schema: object({}) } } }],
      ['Cookie', header('Cookie')],
      ['session', cookie('session')],
    ];
    const operations: [word: string, post: Json][] = [
      ...inputs.map(([word, parameter]): [string, Json] => [word, { parameters: [parameter] }]),
      ...bodies.map(([word, schema]): [string, Json] => [word, { requestBody: jsonBody(schema, true) }]),
    ];
    for (const [word, post] of operations) {
      const [planned] = planDocument(openApi({ '/orders': { post: { summary: 'Adds an order', ...post } } })).all;
      const notes = planned?.notes.join() ?? '';
      const isShown = JSON.stringify(planned?.tool?.input_schema).includes(`"${word}"`);
      assert.ok(isShown || notes.includes(word), `${word}: ${planned?.outcome} ${notes}`);
      assert.ok(isShown || planned?.outcome !== 'whole', word);
    }
    const states = [{ type: 'string', enum: ['packed', 'sent'] }, { enum: [''] }, { enum: [null] }];
    const parameters = [query('state', { oneOf: states })];
    const [listed] = planDocument(openApi({ '/orders': { get: { parameters, responses } } })).all;
    assert.equal(listed?.outcome === 'whole', JSON.stringify(listed?.tool?.input_schema).includes('"sent"'));
    const content = { 'application/json': { schema: object({}) }, 'text/csv': { schema: text } };
    const [withTwoBodies] = listOutcomes(openApi({ '/orders': { post: { requestBody: { content }, responses } } }));
    assert.equal(withTwoBodies, 'POST /orders: whole; sent as "application/json", not as "text/csv"');
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listOutcomes, openApi, planDocument } from '../../../../test/support/import/import-plans.ts';
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

const leaves: readonly Json[] = [
  ...[boolean, text, { type: ['string', 'null'] }, number],
  { type: 'string', pattern: '^[a-z]+$', maxLength: 3 },
  { type: 'integer', minimum: 1, exclusiveMaximum: 10 },
  { type: 'string', enum: ['open', 'done', 'late'] },
];
const toList = (items: Json): Json => ({ type: 'array', items, minItems: 2 });
const toObject = (properties: Json, more: Json = {}): Json => ({ type: 'object', properties, ...more });
const schemas = leaves.flatMap((leaf) => [
  ...[leaf, toList(leaf), toList(toList(leaf)), toObject({ name: leaf, size: text }, { required: ['name'] })],
  toObject({ tags: toList(leaf), owner: toObject({ size: leaf }) }, { additionalProperties: false }),
  { anyOf: [leaf, toObject({ name: leaf }), toList(leaf)] },
]);

/** Operations with each schema as a parameter, as a field of the body, and as an item of a list that is the body. */
const operations = schemas.flatMap((schema, index) => {
  const required = index % 2 === 0;
  const mediaType = index % 3 === 0 ? 'application/vnd.things+json' : 'application/json';
  const parameters = [query('page', schema, { required }), header('X-Mode', leaves[index % leaves.length])];
  const body = toObject({ name: schema, size: integer }, { required: ['size'], additionalProperties: false });
  return [body, toObject({ owner: schema }), toList(schema)].map((bodySchema, at) => ({
    parameters: [inPath('id', { type: 'integer', minimum: 1 }), ...(at > 0 || schema.anyOf ? [] : parameters)],
    requestBody: { required, content: { [mediaType]: { schema: bodySchema } } },
    responses,
  }));
});

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
    for (const post of operations) {
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
    }
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

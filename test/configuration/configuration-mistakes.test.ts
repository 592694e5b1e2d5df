import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { check, configWith, toolProblems, toolWith } from '../support/configurations.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const api = 'https://api.example.com';
const text = { type: 'string' };

describe('what a tool would send as it stands', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
  });
  after(() => toolhost.stop());
  const problems = (fields: Json, more?: Json) => toolProblems(toolhost, fields, more);
  const literal = (found: string, name: string, declaring = '') =>
    `tools[0].url: \`${found}\` would be sent as it stands; write \`:${name}\`${declaring} for an argument, {{${name}}} for a variable or a secret, or ${encodeURIComponent(found)} for the characters themselves`;

  it('[conf 6] braces and angles in a URL, where :id was meant', async () => {
    const input_schema = { id: text };
    assert.deepEqual(await problems({ url: `${api}/things/{id}`, input_schema }), [literal('{id}', 'id')]);
    const declaring = ' and declare id in input_schema';
    assert.deepEqual(await problems({ url: `${api}/things/{id}` }), [literal('{id}', 'id', declaring)]);
    for (const [url, found, name] of [
      ['/{id}/parts', '{id}', 'id'],
      ['/v1/{name=projects/*}', '{name=projects/*}', 'name'],
      ['/v1/{+name}', '{+name}', 'name'],
      ['/things/<id>', '<id>', 'id'],
      ['/things?id={id}', '{id}', 'id'],
      ['/things?id=eq.{id}', '{id}', 'id'],
      ['/things?a=1&ids={ids*}', '{ids*}', 'ids'],
    ] as const) {
      const [problem, ...more] = await problems({ url: api + url });
      assert.equal(problem, literal(found, name, ` and declare ${name} in input_schema`), url);
      assert.deepEqual(more, []);
    }
    for (const url of [
      `${api}/things/%7Bid%7D`,
      `${api}/posts?fields=id,posts{message,created_time}`,
      `${api}/posts?fields=posts{message}`,
      `${api}/graphql?query={viewer{login}}`,
      `${api}/things?filter={}`,
      `${api}/Products(:id)`,
    ]) {
      assert.deepEqual(await problems({ url, ...(url.includes(':id') && { input_schema }) }), [], url);
    }
  });

  it('[conf 6] braces in a host and in base_url', async () => {
    const [host] = await problems({ url: 'https://{shop}.example.com/orders' });
    assert.equal(
      host,
      'tools[0].url: `{shop}` cannot stand in a host; declare shop in variables and write {{shop}}, or write the host itself',
    );
    const base = await check(
      toolhost,
      configWith({ base_url: 'https://{shop}.example.com/v1', tools: [toolWith({ url: '/orders' })] }),
    );
    assert.equal(base.problems[0]?.replace('base_url', 'tools[0].url'), host);
  });

  it('[conf 6] arguments in a header value', async () => {
    const input_schema = { version: { type: 'string' } };
    for (const [value, found] of [
      [':version', ':version'],
      ['v=:version; q=1', ':version'],
      ['{version}', '{version}'],
    ] as const) {
      assert.deepEqual(await problems({ headers: { 'X-Version': value }, input_schema }), [
        `tools[0].headers.X-Version: \`${found}\` would be sent as it stands, because arguments fill no header values; take this header out and give the argument "in": "header" and "wire_name": "X-Version"`,
      ]);
    }
    for (const value of ['urn:version', 'a::version', ':other', '12:30', '{{version}}']) {
      assert.deepEqual(await problems({ headers: { 'X-Version': value }, input_schema }), [], value);
    }
  });

  it('[conf 6] {{NAME}} in a default, in allowed values and in a name', async () => {
    const sentence = (field: string) =>
      `tools[0].input_schema.${field}: "{{KEY}}" is not filled here and would be sent as it stands; a secret or a variable may fill a constant, "value"`;
    const flat = { a: { ...text, default: '{{KEY}}' }, b: { ...text, enum: ['x', '{{KEY}}'] } };
    assert.deepEqual(await problems({ input_schema: flat }), [sentence('a.default'), sentence('b.enum[1]')]);
    const schema = { type: 'object', properties: { a: { type: 'string', default: '{{KEY}}' } } };
    assert.deepEqual(await problems({ input_schema: schema }), [sentence('properties.a.default')]);
    assert.deepEqual(await problems({ input_schema: { a: { ...text, default: 'Dear {{name}},' } } }), []);
    assert.deepEqual(await problems({ input_schema: { a: { ...text, wire_name: 'x[{{KEY}}]' } } }), [
      'tools[0].input_schema.a.wire_name: a variable or a secret never fills a name; write it out',
    ]);
  });

  it('[conf 6] required names of no property', async () => {
    const schema = (more: Json) => problems({ input_schema: { type: 'object', ...more } });
    const advice = '; declare it in properties, or leave it out';
    const sentence = (path: string, name: string, what = advice) =>
      `tools[0].input_schema.${path}: "${name}" names no property${what}`;
    assert.deepEqual(await schema({ properties: { name: text }, required: ['name', 'nam'] }), [
      sentence('required[1]', 'nam', '; did you mean `name`?'),
    ]);
    assert.deepEqual(await schema({ required: ['id'] }), [sentence('required[0]', 'id')]);
    const closed = { type: 'object', properties: { x: text }, required: ['y'], additionalProperties: false };
    assert.deepEqual(await schema({ properties: { a: closed } }), [sentence('properties.a.required[0]', 'y')]);
    const { additionalProperties: _, ...open } = closed;
    assert.deepEqual(await schema({ properties: { a: open } }), []);
    assert.deepEqual(await schema({ properties: { a: { ...closed, allOf: [{ properties: { y: text } }] } } }), []);
    assert.deepEqual(await problems({ input_schema: { a: open } }), []);
  });

  it('[conf 6] an optional argument in the path', async () => {
    const url = `${api}/things/:id`;
    const sentence =
      'tools[0].input_schema.id: :id stands in the path, which needs it in every call; make the argument required, or give it a default';
    const properties = { id: text };
    assert.deepEqual(await problems({ url, input_schema: { id: { ...text, optional: true } } }), [sentence]);
    assert.deepEqual(await problems({ url, input_schema: { type: 'object', properties } }), [sentence]);
    assert.deepEqual(await problems({ url, input_schema: { type: 'object', properties, required: [] } }), [sentence]);
    for (const input_schema of [
      { id: text },
      { id: { ...text, optional: true, default: 'first' } },
      { id: { ...text, optional: true, value: 'constant' } },
      { type: 'object', properties, required: ['id'] },
    ]) {
      assert.deepEqual(await problems({ url, input_schema }), [], JSON.stringify(input_schema));
    }
    assert.deepEqual(
      await problems({ url: `${api}/things?id=:id`, input_schema: { id: { ...text, optional: true } } }),
      [],
    );
  });

  it('[conf 6] an object in a form, of which nothing says how it is written', async () => {
    const object = { type: 'object', properties: { city: text } };
    const sentence =
      'tools[0].input_schema.a.style: is missing; a form has no objects of its own, so say how they are written: "indices" as Stripe and PHP do, "deep", or "json" for JSON text';
    const form = (definition: Json, more: Json = {}) =>
      problems({ method: 'POST', body: 'form', input_schema: { a: definition }, ...more });
    assert.deepEqual(await form(object), [sentence]);
    assert.deepEqual(await form({ type: 'array', items: object }), [sentence]);
    for (const style of ['indices', 'brackets', 'deep', 'json']) assert.deepEqual(await form({ ...object, style }), []);
    for (const more of [{ in: 'query' }, { in: 'header' }]) assert.deepEqual(await form({ ...object, ...more }), []);
    assert.deepEqual(await form({ type: 'array', items: text }), []);
    assert.deepEqual(await form(object, { body: 'json' }), []);
  });

  it('[conf 6] Accept and User-Agent, given as a header and as an argument', async () => {
    for (const name of ['Accept', 'User-Agent', 'user_agent']) {
      const argument = { [name]: { ...text, in: 'header' } };
      assert.deepEqual(await problems({ input_schema: argument }), []);
      assert.deepEqual(await problems({ input_schema: argument, headers: { [name.replace('_', '-')]: 'x' } }), [
        `tools[0].input_schema.${name}: this header is set already by headers, authentication or another argument`,
      ]);
    }
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openApi } from '../support/import/import-plans.ts';
import { type Imported, type Imports, importCase, startImports } from '../support/import/import-service.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('schema of an imported operation', () => {
  let imports: Imports;
  before(async () => {
    imports = await startImports();
  });
  after(() => imports.stop());

  /** Imports one operation `POST /things` whose JSON body has this schema. */
  const importWithBody = (schema: Json, components: Json = {}): Promise<Imported> => {
    const content = { 'application/json': { schema } };
    const post = { operationId: 'addThing', requestBody: { required: true, content } };
    return imports.importDocument(
      JSON.stringify(openApi({ '/things': { post } }, { components: { schemas: components } })),
    );
  };
  const sendBody = async (imported: Imported, args: Json, tool = imported.names[0] as string) =>
    JSON.parse((await imported.callTool(tool, args)).body.toString()) as unknown;
  const getArguments = ({ config }: Imported): Json => {
    const schema = (config.tools[0]?.input_schema ?? {}) as Json;
    return (schema.type === 'object' ? schema.properties : schema) as Json;
  };
  const outcome = ({ report }: Imported) => [report[0]?.outcome, ...(report[0]?.notes ?? [])];

  it('[imp 2] has the fields of conditional schemas as optional fields, and is reported as loosened', async () => {
    const pay = await imports.importDocument(importCase('openapi/conditional-fields.yaml'));
    for (const args of [
      { method: 'card', number: '1' },
      { method: 'bank', iban: 'DE1' },
    ])
      assert.deepEqual(await sendBody(pay, args), args);
    assert.deepEqual(outcome(pay), ['loosened', 'if']);
    const coupon = { coupon: { properties: { code: { type: 'string' } }, required: ['code'] } };
    const properties = { kind: { type: 'string' }, coupon: { type: 'boolean' } };
    const kindIs = (kind: string) => ({ properties: { kind: { const: kind } } });
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    const branch = (kind: string, property: Json) => ({ if: kindIs(kind), then: { properties: { value: property } } });
    const several = { allOf: [branch('a', { type: 'integer' }), branch('b', { type: 'boolean' })] };
    const schema = { type: 'object', properties, dependentSchemas: coupon, ...several };
    for (const imported of [
      await importWithBody(schema),
      await importWithBody({ type: 'object', properties: { inner: schema } }),
    ]) {
      const isNested = imported.names.length > 0 && JSON.stringify(imported.config.tools[0]).includes('"inner"');
      for (const value of [
        { kind: 'a', value: 1 },
        { kind: 'b', value: true },
        { coupon: true, code: 'x' },
      ]) {
        const args = isNested ? { inner: value } : value;
        assert.deepEqual(await sendBody(imported, args), args);
      }
      assert.deepEqual(outcome(imported), ['loosened', 'dependentSchemas', 'if']);
    }
    const dependentFields = { coupon: { properties: { code: { type: 'string' } } } };
    assert.deepEqual(outcome(await importWithBody({ type: 'object', properties, dependentSchemas: dependentFields })), [
      'whole',
    ]);
  });

  it('[imp 2] has an argument of any type for a required name that is not declared as a property', async () => {
    const share = await imports.importDocument(importCase('openapi/required-without-a-property.yaml'));
    assert.deepEqual(await sendBody(share, { with: 'kim', level: 3 }), { with: 'kim', level: 3 });
    await assert.rejects(share.callTool('share', { with: 'kim' }), /level: is missing/);
    const target = { type: 'object', required: ['id'], properties: { name: { type: 'string' } } };
    const nested = await importWithBody({ type: 'object', properties: { target } });
    assert.deepEqual(await sendBody(nested, { target: { id: 5 } }), { target: { id: 5 } });
    await assert.rejects(nested.callTool('add_thing', { target: {} }), /target\.id: is missing/);
    assert.deepEqual(outcome(nested), ['whole']);
    const properties = { a: { type: 'integer' }, b: { type: 'integer' } };
    const anyOf = ['a', 'b'].map((name) => ({ type: 'object', required: [name] }));
    const content = { 'application/x-www-form-urlencoded': { schema: { type: 'object', properties, anyOf } } };
    const post = { operationId: 'a', requestBody: { content } };
    const form = await imports.importDocument(JSON.stringify(openApi({ '/a': { post } })));
    await assert.rejects(form.callTool('a', { a: 'x' }), /a: found .*; allowed: integer/);
    const body = await importWithBody({ type: 'object', properties, anyOf });
    assert.deepEqual((getArguments(body).body as Json).properties, properties);
    assert.equal((getArguments(body).body as Json).anyOf, undefined);
  });

  it('[imp 2] accepts arbitrary keys for patternProperties', async () => {
    const labels = await imports.importDocument(importCase('openapi/pattern-properties.yaml'));
    assert.deepEqual(await sendBody(labels, { body: { 'l-a': 'x', 'l-b': 'y' } }), { 'l-a': 'x', 'l-b': 'y' });
    await assert.rejects(
      labels.callTool('set_labels', { body: { 'l-a': {} } }),
      /body\.l-a: found .*; allowed: string/,
    );
    await assert.rejects(labels.callTool('set_labels', { body: { other: 'x' } }), /pattern/);
    assert.deepEqual(outcome(labels), ['whole']);
    const named = { properties: { name: { type: 'string' } }, patternProperties: { '^x-': { type: 'integer' } } };
    const mixed = await importWithBody({ type: 'object', ...named, additionalProperties: false });
    assert.deepEqual(await sendBody(mixed, { body: { name: 'a', 'x-1': 1 } }), { name: 'a', 'x-1': 1 });
    assert.deepEqual(outcome(mixed), ['loosened', 'patternProperties']);
  });

  it('[imp 2] accepts a misplaced schema of a media type or parameter, and reports a finding', async () => {
    const note = await imports.importDocument(importCase('openapi/schema-at-the-wrong-place.yaml'));
    assert.deepEqual(await sendBody(note, { text: 'hi' }), { text: 'hi' });
    assert.match(JSON.stringify(note.findings), /in the wrong place.*content\.application\/json\.schema/);
    const parameter = { name: 'page', in: 'query', type: 'integer', minimum: 1 };
    const post = { operationId: 'a', parameters: [parameter], requestBody: { schema: { type: 'array', items: {} } } };
    const imported = await imports.importDocument(JSON.stringify(openApi({ '/a': { post } })));
    assert.deepEqual(await sendBody(imported, { page: 2, body: [1] }), [1]);
    await assert.rejects(imported.callTool('a', { page: 'x' }), /page: found .*; allowed: integer/);
    assert.equal(imported.findings.length, 2);
  });

  it('[imp 2] keeps multipleOf, and checks decimals exactly', async () => {
    const price = { type: 'number', multipleOf: 0.1 };
    const prices = { type: 'array', items: price };
    const imported = await importWithBody({
      type: 'object',
      properties: { price, prices, pair: { type: 'integer', multipleOf: 2 } },
    });
    const args = { price: 0.3, prices: [1.1, 1000000.7, -0], pair: -4 };
    assert.deepEqual(await sendBody(imported, args), { ...args, prices: [1.1, 1000000.7, 0] });
    await assert.rejects(
      imported.callTool('add_thing', { price: 0.35 }),
      /price: found 0\.35; multipleOf 0\.1 is not met/,
    );
    await assert.rejects(imported.callTool('add_thing', { pair: 3 }), /pair: found 3; multipleOf 2 is not met/);
    assert.deepEqual(outcome(imported), ['whole']);
  });

  it('[imp 2] accepts null for the null alternatives of Django and Rust, and keeps the other alternatives', async () => {
    const ticket = await imports.importDocument(importCase('openapi/null-enum.yaml'));
    const { state } = getArguments(ticket);
    assert.deepEqual(state, { type: ['string', 'null'], enum: ['open', 'done', '', null] });
    assert.deepEqual(await sendBody(ticket, { state: null }), { state: null });
    assert.deepEqual(outcome(ticket), ['whole']);
    const point = { type: 'object', properties: { x: { type: 'integer' } }, required: ['x'] };
    const properties = {
      rust: { anyOf: [{ $ref: '#/components/schemas/Point' }, { nullable: true }] },
      django: { oneOf: [{ allOf: [{ $ref: '#/components/schemas/Size' }] }, { $ref: '#/components/schemas/Null' }] },
      some: { anyOf: [{ $ref: '#/components/schemas/Point' }, {}] },
      any: { nullable: true, description: 'Anything' },
    };
    const components = { Point: point, Size: { type: 'integer', enum: [1, 2] }, Null: { enum: [null] } };
    const imported = await importWithBody({ type: 'object', properties }, components);
    const shown = getArguments(imported);
    assert.deepEqual(shown.rust, { ...point, type: ['object', 'null'] });
    assert.deepEqual(shown.django, { type: ['integer', 'null'], enum: [1, 2, null] });
    assert.deepEqual(shown.some, { anyOf: [point, {}] });
    for (const args of [
      { rust: null, django: null },
      { rust: { x: 1 }, django: 2, some: 'x', any: [5] },
    ])
      assert.deepEqual(await sendBody(imported, args), args);
    await assert.rejects(imported.callTool('add_thing', { rust: {} }), /rust\.x: is missing/);
    assert.deepEqual(outcome(imported), ['whole']);
  });

  it('[imp 2] describes enum values, except when their names only repeat them', async () => {
    const lamps = await imports.importDocument(importCase('openapi/names-of-values.yaml'));
    assert.match(String((getArguments(lamps).mode as Json).description), /0 = Off, 1 = On, 2 = Auto/);
    const listed = { type: 'integer', enum: [10, 20] };
    const properties = {
      titled: {
        description: 'A mode.',
        oneOf: [
          { const: 0, title: 'Off' },
          { const: 1, title: 'Turned on' },
        ],
      },
      nswag: { ...listed, 'x-enumNames': ['Ten', 'Twenty'], default: 10 },
      map: { type: 'string', enum: ['a'], 'x-enum-descriptions': { a: 'The first' } },
      both: { ...listed, 'x-enum-varnames': ['Ten', 'Twenty'], 'x-enum-descriptions': ['Few.', 'Many.'] },
      azure: {
        ...listed,
        'x-ms-enum': {
          values: [
            { value: 10, name: 'Ten' },
            { value: 20, description: 'More' },
          ],
        },
      },
      same: { type: 'string', enum: ['very_high'], 'x-enum-varnames': ['VeryHigh'] },
    };
    const shown = getArguments(await importWithBody({ type: 'object', properties }));
    const text = (name: string) => (shown[name] as Json).description;
    assert.equal(text('titled'), 'A mode. Values: 0 = Off, 1 = Turned on');
    assert.equal(text('nswag'), 'Values: 10 = Ten, 20 = Twenty. Default: 10');
    assert.equal(text('map'), 'Values: a = The first');
    assert.equal(text('both'), 'Values: 10 = Ten: Few., 20 = Twenty: Many.');
    assert.equal(text('azure'), 'Values: 10 = Ten, 20 = More');
    assert.equal(text('same'), undefined);
  });

  it('[imp 2] rejects no value because of its format, also when the format is written in capitals', async () => {
    const slots = await imports.importDocument(importCase('openapi/local-date-time.yaml'));
    const { url } = await slots.callTool('list_slots', { from: '2026-01-31T10:00:00' });
    assert.equal(url, '/slots?from=2026-01-31T10%3A00%3A00');
    const path = [{ name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'UUID' } }];
    const get = { operationId: 'getJob', parameters: path };
    const job = await imports.importDocument(JSON.stringify(openApi({ '/jobs/{id}': { get } })));
    assert.equal((await job.callTool('get_job', { id: 'job-7' })).url, '/jobs/job-7');
    const recipients = { type: 'array', items: { type: 'string', format: 'email' } };
    const imported = await importWithBody({ type: 'object', properties: { who: recipients } });
    assert.deepEqual(await sendBody(imported, { who: ['kim'] }), { who: ['kim'] });
  });

  it('[imp 2] translates regular expressions of other languages to ECMAScript, or drops them and says so', async () => {
    const ruby = JSON.parse(importCase('openapi/ruby-pattern.json')) as { document: Json };
    const imported = await imports.importDocument(JSON.stringify(ruby.document));
    assert.equal((getArguments(imported).tag as Json).pattern, '^[a-z0-9-]+$');
    assert.equal((await imported.callTool('use_tag', { tag: 'red-1' })).url, '/tags?tag=red-1');
    assert.deepEqual(outcome(imported), ['whole']);
    const raw = String.raw;
    const translated: [pattern: string, as: string, fits: string][] = [
      [raw`^\w+\Z`, raw`^\w+$`, 'ab'],
      ['^[[:alpha:]_][[:alnum:]-]*$', '^[a-zA-Z_][a-zA-Z0-9-]*$', '_a-1'],
      ['^[[:punct:]]+$', raw`^[!-\/:-@\[-${'`'}{-~]+$`, '!]_~'],
      [raw`[a-zA-Z][a-zA-Z0-9\-\.\:]*`, raw`[a-zA-Z][a-zA-Z0-9\-\.:]*`, 'a:b'],
      [raw`^[\w-.]+\@[\w.-]+$`, raw`^[\w\-.]+@[\w.-]+$`, 'a-b@c.d'],
      [raw`^\d{3}\-{[a-z]{,2}}$`, raw`^\d{3}-\{[a-z]{0,2}\}$`, '123-{a}'],
      [raw`^(?P<word>\pL+)$`, raw`^(?<word>\p{L}+)$`, 'é'],
      [raw`^\[[^\]]*]$`, raw`^\[[^\]]*\]$`, '[a]'],
      ['^[]a]+$', raw`^[\]a]+$`, 'a]'],
    ];
    const named = (patterns: readonly string[]) =>
      Object.fromEntries(patterns.map((pattern, at) => [`p${at}`, { type: 'string', pattern }]));
    const all = await importWithBody({ type: 'object', properties: named(translated.map(([pattern]) => pattern)) });
    assert.deepEqual(
      Object.values(getArguments(all)).map((schema) => (schema as Json).pattern),
      translated.map(([, as]) => as),
    );
    for (const [, as] of translated) assert.ok(new RegExp(as, 'u'));
    const args = Object.fromEntries(translated.map(([, , sample], at) => [`p${at}`, sample]));
    assert.deepEqual(await sendBody(all, args), args);
    const unsupported = ['(?i)abc', 'a++', '^(?>a)b', '^[a-z&&[^b]]+$', '[[:^alpha:]]', raw`\h+`, '[', raw`(a)\1`];
    for (const pattern of unsupported) {
      const loose = await importWithBody({ type: 'object', properties: named([pattern]) });
      assert.equal((getArguments(loose).p0 as Json).pattern, undefined, pattern);
      assert.deepEqual(outcome(loose), ['loosened', 'pattern']);
    }
  });

  it('[imp 2] names nested properties that clients reject in the object description, and still accepts them', async () => {
    const nested = JSON.parse(importCase('openapi/nested-names.json')) as { document: Json };
    const imported = await imports.importDocument(JSON.stringify(nested.document));
    const { description, properties } = getArguments(imported).item as Json;
    assert.match(String(description), /größe \(string, required\): S, M or L/);
    assert.deepEqual(properties, { farbe: { type: 'string' } });
    const args = { item: { größe: 'S', farbe: 'red' } };
    assert.deepEqual(await sendBody(imported, args), args);
    const type = { type: 'string', description: 'Kind of entity' };
    const inner = { type: 'object', properties: { '@odata.type': type, n: {} }, additionalProperties: false };
    const list = { type: 'array', description: 'Entities', items: inner };
    const odata = await importWithBody({ type: 'object', properties: { list } });
    const items = (getArguments(odata).list as Json).items as Json;
    assert.equal(items.description, 'Also takes @odata.type (string): Kind of entity');
    assert.deepEqual(await sendBody(odata, { list: [{ '@odata.type': 'a', n: 1 }] }), {
      list: [{ '@odata.type': 'a', n: 1 }],
    });
    assert.deepEqual(outcome(odata), [
      'loosened',
      'additionalProperties',
      'fields that are only named: "list[].@odata.type"',
    ]);
  });

  it('[imp 2] has readable argument names, and shortened tool names keep their verb', async () => {
    const query = (name: string) => ({ name, in: 'query', schema: { type: 'string', description: 'A word.' } });
    const operationId = 'OrganizationsBillingAccountsDeletePaymentInstrumentsOfFormerSubscriptionOwners';
    const parameters = ['größe', '名前', '年齢', 'цена_max'].map(query);
    const imported = await imports.importDocument(
      JSON.stringify(openApi({ '/a': { get: { operationId, parameters } } })),
    );
    const shown = getArguments(imported) as Record<string, Json>;
    assert.deepEqual(Object.keys(shown), ['grosse', 'input', 'input_2', 'max']);
    assert.equal(shown.input?.description, 'Named 名前 in the API. A word.');
    assert.equal(shown.grosse?.description, 'A word.');
    const [name = ''] = imported.names as string[];
    assert.match(name, /^organizations_delete_.*_owners_[0-9a-f]{4}$/);
    assert.ok(name.length <= 48);
    const { url } = await imported.callTool(name, { grosse: 'S', input: 'a', input_2: 'b', max: '1' });
    assert.deepEqual(Object.fromEntries(new URL(url, 'http://a').searchParams), {
      größe: 'S',
      名前: 'a',
      年齢: 'b',
      цена_max: '1',
    });
  });

  it('[imp 3] is whole for a string body, and loosened for an object that is sent as text', async () => {
    const sendTextBody = async (mediaType: string, schema: Json) => {
      const requestBody = { required: true, content: { [mediaType]: { schema } } };
      const imported = await imports.importDocument(
        JSON.stringify(openApi({ '/a': { post: { operationId: 'a', requestBody } } })),
      );
      const { body, headers } = await imported.callTool('a', { body: 'a;b' });
      assert.deepEqual([body.toString(), headers['content-type']], ['a;b', mediaType]);
      return imported;
    };
    assert.deepEqual(outcome(await sendTextBody('text/plain', { type: 'string' })), ['whole']);
    const limited = await sendTextBody('text/csv', { type: 'string', description: 'Rows.', maxLength: 4 });
    assert.deepEqual(outcome(limited), ['whole']);
    assert.equal((getArguments(limited).body as Json).description, 'Rows.');
    await assert.rejects(limited.callTool('a', { body: 'a;b;c' }), /maxLength 4/);
    const fields = { type: 'object', properties: { a: { type: 'string' } } };
    assert.match(String(outcome(await sendTextBody('application/xml', fields))), /^loosened,the body as text/);
  });

  it('[imp 3] is loosened when a rule about several body fields cannot be kept', async () => {
    const properties = { a: { type: 'string' }, b: { type: 'string' } };
    const imported = await importWithBody({ type: 'object', properties, dependentRequired: { a: ['b'] } });
    assert.deepEqual(outcome(imported), ['loosened', 'dependentRequired']);
    const atLeast = (minProperties: number) => ({ type: 'object', properties, required: ['a'], minProperties });
    assert.deepEqual(outcome(await importWithBody(atLeast(1))), ['whole']);
    assert.deepEqual(outcome(await importWithBody(atLeast(2))), ['loosened', 'minProperties']);
    const nested = await importWithBody({ type: 'object', properties: { inner: atLeast(2) } });
    await assert.rejects(nested.callTool('add_thing', { inner: { a: 'x' } }), /minProperties 2/);
    assert.deepEqual(outcome(nested), ['whole']);
  });

  it('[imp 2] merges the array items of allOf, and keeps alternatives next to one that allows anything', async () => {
    const createPart = (items: Json) => ({
      properties: { list: { type: 'array', items: { type: 'object', ...items } } },
    });
    const parts = [createPart({}), createPart({ required: ['a'], properties: { a: { type: 'string' } } })];
    const imported = await importWithBody({ type: 'object', allOf: parts });
    assert.deepEqual(await sendBody(imported, { list: [{ a: 'x' }] }), { list: [{ a: 'x' }] });
    await assert.rejects(imported.callTool('add_thing', { list: [{}] }), /list\.0\.a: is missing/);
    const method = { type: 'object', required: ['method'], properties: { method: { type: 'string' } } };
    const some = await importWithBody({ oneOf: [{}, method] });
    assert.deepEqual((getArguments(some).body as Json).anyOf, [{}, method]);
    for (const body of [{ method: 'sms' }, {}]) assert.deepEqual(await sendBody(some, { body }), body);
  });
});

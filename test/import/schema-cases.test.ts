import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openApi } from '../support/import/import-plans.ts';
import { type Imported, importCase, startImports } from '../support/import/import-service.ts';
import { pluck } from '../support/pluck.ts';
import { boolean, inPath, integer, jsonBody, listOf, object, query, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` });

describe('schema of an imported operation', () => {
  const imports = useFixture(startImports);
  const importPaths = (paths: Json, schemas: Json = {}) =>
    imports.importDocument(JSON.stringify(openApi(paths, { components: { schemas } })));
  const importCaseFile = (name: string) => imports.importDocument(importCase(`openapi/${name}`));
  const importCaseDocument = (name: string) =>
    imports.importDocument(JSON.stringify((JSON.parse(importCase(`openapi/${name}`)) as { document: Json }).document));

  /** Imports one operation `POST /things` whose JSON body has this schema. */
  const importWithBody = (schema: Json, schemas?: Json) =>
    importPaths({ '/things': { post: { operationId: 'addThing', requestBody: jsonBody(schema, true) } } }, schemas);
  const call = (imported: Imported, args: Json) => imported.callTool(String(imported.names[0]), args);
  const sendBody = async (imported: Imported, args: Json) =>
    JSON.parse((await call(imported, args)).body.toString()) as unknown;
  const assertSent = async (imported: Imported, ...all: Json[]) => {
    for (const args of all) assert.deepEqual(await sendBody(imported, args), args);
  };
  const getArguments = ({ config }: Imported) => {
    const schema = (config.tools[0]?.input_schema ?? {}) as Json;
    return (schema.type === 'object' ? schema.properties : schema) as Record<string, Json>;
  };
  const assertOutcome = ({ report }: Imported, ...expected: unknown[]) =>
    assert.deepEqual([report[0]?.outcome, ...(report[0]?.notes ?? [])], expected);

  it('[imp 2] has the fields of conditional schemas as optional fields, and is reported as loosened', async () => {
    const pay = await importCaseFile('conditional-fields.yaml');
    await assertSent(pay, { method: 'card', number: '1' }, { method: 'bank', iban: 'DE1' });
    assertOutcome(pay, 'loosened', 'if');
    const properties = { kind: text, coupon: boolean };
    const kindIs = (kind: string) => ({ properties: { kind: { const: kind } } });
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    const branch = (kind: string, value: Json) => ({ if: kindIs(kind), then: { properties: { value } } });
    const coupon = { properties: { code: text } };
    const conditions = { allOf: [branch('a', integer), branch('b', boolean)] };
    const dependentSchemas = { coupon: { ...coupon, required: ['code'] } };
    const schema = { ...object(properties), dependentSchemas, ...conditions };
    const values = [
      { kind: 'a', value: 1 },
      { kind: 'b', value: true },
      { coupon: true, code: 'x' },
    ];
    const flat = await importWithBody(schema);
    await assertSent(flat, ...values);
    const nested = await importWithBody(object({ inner: schema }));
    await assertSent(nested, ...values.map((inner) => ({ inner })));
    for (const imported of [flat, nested]) assertOutcome(imported, 'loosened', 'dependentSchemas', 'if');
    assertOutcome(await importWithBody({ ...object(properties), dependentSchemas: { coupon } }), 'whole');
  });

  it('[imp 2] has an argument of any type for a required name that is not declared as a property', async () => {
    const share = await importCaseFile('required-without-a-property.yaml');
    await assertSent(share, { with: 'kim', level: 3 });
    await assert.rejects(call(share, { with: 'kim' }), /level: is missing/);
    const nested = await importWithBody(object({ target: object({ name: text }, ['id']) }));
    await assertSent(nested, { target: { id: 5 } });
    await assert.rejects(call(nested, { target: {} }), /target\.id: is missing/);
    assertOutcome(nested, 'whole');
    const properties = { a: integer, b: integer };
    const schema = { ...object(properties), anyOf: ['a', 'b'].map((name) => ({ type: 'object', required: [name] })) };
    const content = { 'application/x-www-form-urlencoded': { schema } };
    const form = await importPaths({ '/a': { post: { operationId: 'a', requestBody: { content } } } });
    await assert.rejects(call(form, { a: 'x' }), /a: found .*; allowed: integer/);
    const { body } = getArguments(await importWithBody(schema));
    assert.deepEqual([body?.properties, body?.anyOf], [properties, undefined]);
  });

  it('[imp 2] accepts arbitrary keys for patternProperties', async () => {
    const labels = await importCaseFile('pattern-properties.yaml');
    assert.deepEqual(await sendBody(labels, { body: { 'l-a': 'x', 'l-b': 'y' } }), { 'l-a': 'x', 'l-b': 'y' });
    await assert.rejects(call(labels, { body: { 'l-a': {} } }), /body\.l-a: found .*; allowed: string/);
    await assert.rejects(call(labels, { body: { other: 'x' } }), /pattern/);
    assertOutcome(labels, 'whole');
    const patternProperties = { '^x-': integer };
    const mixed = await importWithBody({ ...object({ name: text }), patternProperties, additionalProperties: false });
    assert.deepEqual(await sendBody(mixed, { body: { name: 'a', 'x-1': 1 } }), { name: 'a', 'x-1': 1 });
    assertOutcome(mixed, 'loosened', 'patternProperties');
  });

  it('[imp 2] accepts a misplaced schema of a media type or parameter, and reports a finding', async () => {
    const note = await importCaseFile('schema-at-the-wrong-place.yaml');
    await assertSent(note, { text: 'hi' });
    assert.match(JSON.stringify(note.findings), /in the wrong place.*content\.application\/json\.schema/);
    const parameter = { name: 'page', in: 'query', type: 'integer', minimum: 1 };
    const post = { operationId: 'a', parameters: [parameter], requestBody: { schema: listOf({}) } };
    const imported = await importPaths({ '/a': { post } });
    assert.deepEqual(await sendBody(imported, { page: 2, body: [1] }), [1]);
    await assert.rejects(call(imported, { page: 'x' }), /page: found .*; allowed: integer/);
    assert.equal(imported.findings.length, 2);
  });

  it('[imp 2] keeps multipleOf, and checks decimals exactly', async () => {
    const price = { type: 'number', multipleOf: 0.1 };
    const pair = { type: 'integer', multipleOf: 2 };
    const imported = await importWithBody(object({ price, prices: listOf(price), pair }));
    const args = { price: 0.3, prices: [1.1, 1000000.7, -0], pair: -4 };
    assert.deepEqual(await sendBody(imported, args), { ...args, prices: [1.1, 1000000.7, 0] });
    await assert.rejects(call(imported, { price: 0.35 }), /price: found 0\.35; multipleOf 0\.1 is not met/);
    await assert.rejects(call(imported, { pair: 3 }), /pair: found 3; multipleOf 2 is not met/);
    assertOutcome(imported, 'whole');
  });

  it('[imp 2] accepts null for the null alternatives of Django and Rust, and keeps the other alternatives', async () => {
    const ticket = await importCaseFile('null-enum.yaml');
    assert.deepEqual(getArguments(ticket).state, { type: ['string', 'null'], enum: ['open', 'done', '', null] });
    await assertSent(ticket, { state: null });
    assertOutcome(ticket, 'whole');
    const point = object({ x: integer }, ['x']);
    const properties = {
      rust: { anyOf: [reference('Point'), { nullable: true }] },
      django: { oneOf: [{ allOf: [reference('Size')] }, reference('Null')] },
      some: { anyOf: [reference('Point'), {}] },
      any: { nullable: true, description: 'Anything' },
    };
    const components = { Point: point, Size: { type: 'integer', enum: [1, 2] }, Null: { enum: [null] } };
    const imported = await importWithBody(object(properties), components);
    const { rust, django, some } = getArguments(imported);
    assert.deepEqual(rust, { ...point, type: ['object', 'null'] });
    assert.deepEqual(django, { type: ['integer', 'null'], enum: [1, 2, null] });
    assert.deepEqual(some, { anyOf: [point, {}] });
    await assertSent(imported, { rust: null, django: null }, { rust: { x: 1 }, django: 2, some: 'x', any: [5] });
    await assert.rejects(call(imported, { rust: {} }), /rust\.x: is missing/);
    assertOutcome(imported, 'whole');
  });

  it('[imp 2] describes enum values, except when their names only repeat them', async () => {
    const lamps = await importCaseFile('names-of-values.yaml');
    assert.match(String(getArguments(lamps).mode?.description), /0 = Off, 1 = On, 2 = Auto/);
    const listed = { type: 'integer', enum: [10, 20] };
    const oneOf = [
      { const: 0, title: 'Off' },
      { const: 1, title: 'Turned on' },
    ];
    const values = [
      { value: 10, name: 'Ten' },
      { value: 20, description: 'More' },
    ];
    const varnames = { 'x-enum-varnames': ['Ten', 'Twenty'] };
    const cases: [schema: Json, description: string | undefined][] = [
      [{ description: 'A mode.', oneOf }, 'A mode. Values: 0 = Off, 1 = Turned on'],
      [{ ...listed, 'x-enumNames': ['Ten', 'Twenty'], default: 10 }, 'Values: 10 = Ten, 20 = Twenty. Default: 10'],
      [{ type: 'string', enum: ['a'], 'x-enum-descriptions': { a: 'The first' } }, 'Values: a = The first'],
      [
        { ...listed, ...varnames, 'x-enum-descriptions': ['Few.', 'Many.'] },
        'Values: 10 = Ten: Few., 20 = Twenty: Many.',
      ],
      [{ ...listed, 'x-ms-enum': { values } }, 'Values: 10 = Ten, 20 = More'],
      [{ type: 'string', enum: ['very_high'], 'x-enum-varnames': ['VeryHigh'] }, undefined],
    ];
    const properties = Object.fromEntries(cases.map(([schema], at) => [`p${at}`, schema]));
    const described = Object.values(getArguments(await importWithBody(object(properties))));
    assert.deepEqual(
      pluck(described, 'description'),
      cases.map(([, description]) => description),
    );
  });

  it('[imp 2] rejects no value because of its format, also when the format is written in capitals', async () => {
    const slots = await importCaseFile('local-date-time.yaml');
    assert.equal((await call(slots, { from: '2026-01-31T10:00:00' })).url, '/slots?from=2026-01-31T10%3A00%3A00');
    const job = await importPaths({
      '/jobs/{id}': { get: { parameters: [inPath('id', { ...text, format: 'UUID' })] } },
    });
    assert.equal((await call(job, { id: 'job-7' })).url, '/jobs/job-7');
    const imported = await importWithBody(object({ who: listOf({ ...text, format: 'email' }) }));
    await assertSent(imported, { who: ['kim'] });
  });

  it('[imp 2] translates regular expressions of other languages to ECMAScript, or drops them and says so', async () => {
    const imported = await importCaseDocument('ruby-pattern.json');
    assert.equal(getArguments(imported).tag?.pattern, '^[a-z0-9-]+$');
    assert.equal((await call(imported, { tag: 'red-1' })).url, '/tags?tag=red-1');
    assertOutcome(imported, 'whole');
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
    const all = await importWithBody(object(named(translated.map(([pattern]) => pattern))));
    const patterns = translated.map(([, as]) => as);
    assert.deepEqual(pluck(Object.values(getArguments(all)), 'pattern'), patterns);
    for (const pattern of patterns) assert.ok(new RegExp(pattern, 'u'));
    await assertSent(all, Object.fromEntries(translated.map(([, , sample], at) => [`p${at}`, sample])));
    const unsupported = ['(?i)abc', 'a++', '^(?>a)b', '^[a-z&&[^b]]+$', '[[:^alpha:]]', raw`\h+`, '[', raw`(a)\1`];
    for (const pattern of unsupported) {
      const loose = await importWithBody(object(named([pattern])));
      assert.equal(getArguments(loose).p0?.pattern, undefined, pattern);
      assertOutcome(loose, 'loosened', 'pattern');
    }
  });

  it('[imp 2] names nested properties that clients reject in the object description, and still accepts them', async () => {
    const imported = await importCaseDocument('nested-names.json');
    const { description, properties } = getArguments(imported).item as Json;
    assert.match(String(description), /größe \(string, required\): S, M or L/);
    assert.deepEqual(properties, { farbe: text });
    await assertSent(imported, { item: { größe: 'S', farbe: 'red' } });
    const type = { ...text, description: 'Kind of entity' };
    const inner = { ...object({ '@odata.type': type, n: {} }), additionalProperties: false };
    const odata = await importWithBody(object({ list: { ...listOf(inner), description: 'Entities' } }));
    const items = getArguments(odata).list?.items as Json;
    assert.equal(items.description, 'Also takes @odata.type (string): Kind of entity');
    await assertSent(odata, { list: [{ '@odata.type': 'a', n: 1 }] });
    assertOutcome(odata, 'loosened', 'additionalProperties', 'fields that are only named: "list[].@odata.type"');
  });

  it('[imp 2] has readable argument names, and shortened tool names keep their verb', async () => {
    const operationId = 'OrganizationsBillingAccountsDeletePaymentInstrumentsOfFormerSubscriptionOwners';
    const wireNames = ['größe', '名前', '年齢', 'цена_max'];
    const parameters = wireNames.map((name) => query(name, { ...text, description: 'A word.' }));
    const imported = await importPaths({ '/a': { get: { operationId, parameters } } });
    const shown = getArguments(imported);
    assert.deepEqual(Object.keys(shown), ['grosse', 'input', 'input_2', 'max']);
    assert.equal(shown.input?.description, 'Named 名前 in the API. A word.');
    assert.equal(shown.grosse?.description, 'A word.');
    const [name = ''] = imported.names as string[];
    assert.match(name, /^organizations_delete_.*_owners_[0-9a-f]{4}$/);
    assert.ok(name.length <= 48);
    const { url } = await call(imported, { grosse: 'S', input: 'a', input_2: 'b', max: '1' });
    const sent = Object.fromEntries(new URL(url, 'http://a').searchParams);
    assert.deepEqual(sent, { größe: 'S', 名前: 'a', 年齢: 'b', цена_max: '1' });
  });

  it('[imp 3] is whole for a string body, and loosened for an object that is sent as text', async () => {
    const sendTextBody = async (mediaType: string, schema: Json) => {
      const requestBody = { required: true, content: { [mediaType]: { schema } } };
      const imported = await importPaths({ '/a': { post: { requestBody } } });
      const { body, headers } = await call(imported, { body: 'a;b' });
      assert.deepEqual([body.toString(), headers['content-type']], ['a;b', mediaType]);
      return imported;
    };
    assertOutcome(await sendTextBody('text/plain', text), 'whole');
    const limited = await sendTextBody('text/csv', { ...text, description: 'Rows.', maxLength: 4 });
    assertOutcome(limited, 'whole');
    assert.equal(getArguments(limited).body?.description, 'Rows.');
    await assert.rejects(call(limited, { body: 'a;b;c' }), /maxLength 4/);
    const { report } = await sendTextBody('application/xml', object({ a: text }));
    assert.deepEqual(report[0]?.outcome, 'loosened');
    assert.match(String(report[0]?.notes), /^the body as text/);
  });

  it('[imp 3] is loosened when a rule about several body fields cannot be kept', async () => {
    const properties = { a: text, b: text };
    assertOutcome(
      await importWithBody({ ...object(properties), dependentRequired: { a: ['b'] } }),
      ...['loosened', 'dependentRequired'],
    );
    const atLeast = (minProperties: number) => ({ ...object(properties, ['a']), minProperties });
    assertOutcome(await importWithBody(atLeast(1)), 'whole');
    assertOutcome(await importWithBody(atLeast(2)), 'loosened', 'minProperties');
    const nested = await importWithBody(object({ inner: atLeast(2) }));
    await assert.rejects(call(nested, { inner: { a: 'x' } }), /minProperties 2/);
    assertOutcome(nested, 'whole');
  });

  it('[imp 2] merges the array items of allOf, and keeps alternatives next to one that allows anything', async () => {
    const createPart = (items: Json) => ({ properties: { list: listOf({ type: 'object', ...items }) } });
    const parts = [createPart({}), createPart({ required: ['a'], properties: { a: text } })];
    const imported = await importWithBody({ type: 'object', allOf: parts });
    await assertSent(imported, { list: [{ a: 'x' }] });
    await assert.rejects(call(imported, { list: [{}] }), /list\.0\.a: is missing/);
    const method = object({ method: text }, ['method']);
    const some = await importWithBody({ oneOf: [{}, method] });
    assert.deepEqual(getArguments(some).body?.anyOf, [{}, method]);
    for (const body of [{ method: 'sms' }, {}]) assert.deepEqual(await sendBody(some, { body }), body);
  });
});

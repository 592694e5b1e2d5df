import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  getOnlyTool,
  getValidConfig,
  listOutcomes,
  openApi,
  planDocument,
} from '../../../test/support/import/import-plans.ts';
import { pluck } from '../../../test/support/pluck.ts';
import {
  boolean,
  header,
  inPath,
  integer,
  jsonBody,
  listOf,
  object,
  query,
  text,
} from '../../../test/support/schemas.ts';
import type { Json } from '../../../test/support/toolhost/toolhost.ts';
import { getField } from './document/lenient.ts';
import { readDescription } from './read-description.ts';

const summary = 'Does something that is described';
const get = { get: { summary } };
const Pet = object({ kind: text }, ['kind']);
const ref = { $ref: '#/components/schemas/Pet' };
const optional = { ...text, optional: true };

/** Returns a document with one operation that has these parameters. */
const withParameters = (parameters: Json[], more: Json = {}) =>
  openApi({ '/incidents': { get: { operationId: 'listIncidents', summary, parameters } } }, more);
const planConfig = (...args: Parameters<typeof planDocument>) => getValidConfig(planDocument(...args));

describe('published descriptions with unusual features', () => {
  it('[imp 2] resolves references to an anchor, also recursive ones', () => {
    const Node = { $anchor: 'node', ...object({ name: text, next: { $ref: '#node' } }) };
    const kinds = { type: 'string', enum: ['a', 'b'] };
    const post = { summary, parameters: [query('kind', { $ref: '#kind' })], requestBody: jsonBody({ $ref: '#node' }) };
    const components = { schemas: { Node, Kind: { $anchor: 'kind', ...kinds } } };
    const { input_schema } = getOnlyTool(openApi({ '/a': { post } }, { components }));
    assert.deepEqual(input_schema.kind, { ...kinds, in: 'query', optional: true });
    assert.deepEqual(input_schema.name, optional);
  });

  it('[imp 2] reads YAML dates and binary values as the strings that they look like', () => {
    const yaml = (start: string) => `${start}openapi: 3.0.0
info: {title: Dated, version: 2020-01-01}
servers: [{url: "https://api.example.com"}]
paths:
  /a:
    get:
      summary: ${summary}
      parameters:
        - {name: version, in: query, schema: {type: string, enum: [2020-01-01, 2021-02-03]}}
        - {name: day, in: query, schema: {type: string, example: !!timestamp 2020-01-01, default: !!binary aGk=}}
`;
    for (const start of ['%YAML 1.1\n---\n', '']) {
      const { input_schema } = getOnlyTool(yaml(start));
      assert.deepEqual(input_schema.version, { type: 'string', enum: ['2020-01-01', '2021-02-03'], optional: true });
      assert.deepEqual(input_schema.day, { ...optional, description: 'Default: aGk=' });
    }
  });

  it('[imp 3] names collection credentials that no tool can send, and signs AWS requests for the declared region', () => {
    const request = (type: string, values: object[] = []) => ({
      name: type,
      request: { method: 'GET', url: `https://api.example.com/${type}`, auth: { type, [type]: values } },
    });
    const unsupported = ['digest', 'oauth1', 'hawk', 'ntlm', 'edgegrid'];
    const item = [...unsupported, 'noauth'].map((type) => request(type));
    const needs = (type: string) => `GET /${type}: skipped; credentials of type "${type}"`;
    assert.deepEqual(listOutcomes({ info: { name: 'Kinds' }, item }), [
      ...unsupported.map(needs),
      'GET /noauth: whole',
    ]);
    const values = Object.entries({ region: 'eu-west-1', service: 's3', secretKey: 'never-kept' });
    const signed = request(
      'awsv4',
      values.map(([key, value]) => ({ key, value })),
    );
    const { config } = planDocument({ info: { name: 'Signed' }, item: [signed] });
    assert.deepEqual(config?.authentication, {
      type: 'AwsSigV4',
      access_key_id: '{{AWS_ACCESS_KEY_ID}}',
      secret_access_key: '{{AWS_SECRET_ACCESS_KEY}}',
      ...{ region: 'eu-west-1', service: 's3' },
    });
    assert.doesNotMatch(JSON.stringify(config), /never-kept/);
  });

  it('[imp 3] rejects a secret in the URL as an answer, and gives other variables a name that does not collide with it', () => {
    const withServer = (url: string, more: Json = {}) => openApi({ '/a': get }, { servers: [{ url, ...more }] });
    const secretInPath = withServer('https://api.example.com/{api-key}/v1');
    const { config, questions, secrets } = planDocument(secretInPath);
    assert.deepEqual([config?.base_url, config?.variables], ['https://api.example.com/{{API_KEY}}/v1', undefined]);
    assert.deepEqual([pluck(questions, 'name'), pluck(secrets, 'name')], [['credential'], ['API_KEY']]);
    for (const name of ['api-key', 'api_key']) {
      assert.throws(
        () => planDocument(secretInPath, { answers: { [name]: 'the-value' } }),
        ({ problems }: { problems: { message: string }[] }) =>
          /set the secret API_KEY after creating the server/.test(String(problems[0]?.message)) &&
          !JSON.stringify(problems).includes('the-value'),
      );
    }
    const plan = planDocument({
      ...withServer('https://{KEY}.example.com/{token}', { variables: { KEY: { default: 'eu' } } }),
      components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } } },
      security: [{ key: [] }],
    });
    assert.deepEqual(plan.config?.authentication, { type: 'ApiKey', header: 'X-Key', token: '{{KEY_2}}' });
    assert.deepEqual(pluck(plan.secrets, 'name'), ['TOKEN', 'KEY_2']);
    const [question] = planDocument(withServer('https://{token}.example.com')).questions;
    assert.match(String(question?.question), /everyone who can read the configuration sees it/);
  });

  it('[imp 2] takes the fields of all subtypes for a discriminator without oneOf', () => {
    const discriminated = (discriminator: Json) => ({
      ...Pet,
      discriminator: { propertyName: 'kind', ...discriminator },
    });
    const kind = (name: string) => ({ allOf: [ref, object({ [name]: boolean })] });
    const createDocument = (schemas: Json) =>
      openApi({ '/a': { post: { summary, requestBody: jsonBody(ref, true) } } }, { components: { schemas } });
    const all = { Pet: discriminated({}), Cat: kind('meows'), Dog: kind('barks') };
    const one = { Pet: discriminated({}), Cat: kind('meows') };
    const mapped = { ...all, Pet: discriminated({ mapping: { cat: 'Cat', pet: '#/components/schemas/Pet' } }) };
    const values = (...listed: string[]) => ({ type: 'string', enum: listed });
    const subtype = (name: string, value: string) => object({ [name]: boolean, kind: values(value) }, ['kind']);
    const cases: [schemas: Json, kind: Json, anyOf: Json[]][] = [
      [all, values('Cat', 'Dog'), [subtype('meows', 'Cat'), subtype('barks', 'Dog')]],
      [one, values('Cat'), [subtype('meows', 'Cat')]],
      [mapped, text, [subtype('meows', 'cat'), object({ kind: values('pet') })]],
    ];
    for (const [schemas, expectedKind, anyOf] of cases) {
      const { body } = getOnlyTool(createDocument(schemas)).input_schema.properties as { body: Json };
      const expected = {
        description: 'The body of the request.',
        properties: { kind: expectedKind },
        required: ['kind'],
      };
      assert.deepEqual(body, { ...expected, anyOf });
    }
    for (const schemas of [all, { Pet: discriminated({}) }])
      assert.deepEqual(listOutcomes(createDocument(schemas)), ['POST /a: whole']);
  });

  it('[imp 1] accepts body types in the spellings that people use', () => {
    const parameters = [{ in: 'body', name: 'thing', schema: object({ name: text }) }];
    for (const consumes of ['json', '*', 'application/xml, application/json', 'text/plain,JSON']) {
      const paths = { '/a': { post: { summary, consumes: [consumes], parameters } } };
      const swagger = { swagger: '2.0', info: { title: 'Odd' }, host: 'api.example.com', paths };
      const { headers, input_schema } = getOnlyTool(swagger);
      assert.deepEqual([headers, input_schema], [undefined, { name: optional }], consumes);
    }
  });

  it('[imp 2] sends an operation to its own server, or skips it when the server URL is unknown', () => {
    const post = (url: string, variables = {}) => ({ servers: [{ url, variables }], post: { summary } });
    const document = openApi({
      '/token': post('/oauth'),
      '/region': post('https://{region}.example.com'),
      '/default': post('https://{region}.example.com', { region: { default: 'eu' } }),
      '/bot': post('https://bots.example.com/bot{token}', { token: { default: 'x' } }),
    });
    const listUrls = (answers = {}) =>
      pluck(
        planConfig(document, { include: ['*'], documentUrl: 'https://docs.example.org/a.json', answers }).tools,
        'url',
      );
    assert.deepEqual(listUrls(), ['https://api.example.com/oauth/token', 'https://eu.example.com/default']);
    const inUs = listUrls({ region: 'us' }).slice(1, 3);
    assert.deepEqual(inUs, ['https://us.example.com/region', 'https://us.example.com/default']);
    const skipped = listOutcomes(document).filter((line) => line.includes('skipped'));
    assert.deepEqual(skipped, [
      'POST /region: skipped; its own address needs a value for "region"; set it in answers',
      'POST /bot: skipped; its own address, which contains a secret',
    ]);
    const item = ['{{base}}/things', '{{login}}/token'].map((raw) => ({
      name: `Ask ${raw}`,
      request: { method: 'GET', url: { raw } },
    }));
    const collection = JSON.stringify({ info: { name: 'Two' }, item });
    const { tools } = planConfig(collection, { include: ['*'], answers: { base: 'https://api.example.com' } });
    assert.deepEqual(pluck(tools, 'url'), ['/things']);
  });

  it('[imp 2] serializes path values in the styles matrix and label, and skips other styles that it cannot write', () => {
    const path = (style: string, schema: object = text, explode = false) => ({
      get: { summary, parameters: [inPath('id', schema, { style, explode })] },
    });
    const document = openApi({
      '/a/{id}': path('matrix'),
      '/b/{id}': path('label', integer),
      '/c/{id}': path('matrix', listOf(text)),
      '/e/{id}': path('simple', object({ a: text })),
      '/f/{id}': path('simple', listOf(text), true),
      '/g/{id}': path('matrix', listOf(text), true),
      '/h/{id}': path('simple', object({ a: text }), true),
      '/d': { get: { parameters: [{ name: 'q', in: 'fragment', required: true, content: {} }] } },
    });
    const { tools } = planConfig(document);
    assert.deepEqual(pluck(tools, 'url'), ['/a/;id=:id', '/b/.:id', '/c/;id=:id', '/e/:id', '/f/:id']);
    assert.equal(getField(tools[3]?.input_schema.id, 'style'), 'comma');
    assert.deepEqual(listOutcomes(document).slice(5), [
      'GET /g/{id}: skipped; "id": an exploded list or object in a path',
      'GET /h/{id}: skipped; "id": an exploded list or object in a path',
      'GET /d: skipped; an input in "fragment"',
    ]);
  });

  it('[imp 2] collects form fields and query parameters above the argument limit in one argument', () => {
    const names = Array.from({ length: 203 }, (_, index) => `field${index}`);
    const schema = object(Object.fromEntries(names.map((name) => [name, text])), ['field202']);
    const document = openApi({
      '/form': { post: { requestBody: { content: { 'application/x-www-form-urlencoded': { schema } } } } },
      '/query': { get: { parameters: names.map((name) => query(name)) } },
    });
    for (const tool of getValidConfig(planDocument(document)).tools) {
      const { fields, ...own } = tool.input_schema as Record<string, Json>;
      assert.deepEqual([fields?.type, fields?.style, fields?.optional], ['object', 'repeat', true]);
      const description = String(fields?.description);
      assert.match(description, /^Other fields of the (?:form|query) by their names\. Also takes field/);
      assert.ok(Object.keys(own).length < 100);
      assert.equal('field202' in own, tool.method === 'POST');
    }
    assert.match(
      listOutcomes(document).join(),
      /^POST \/form: loosened; fields that are not listed: "field20, [^;]*; fields that are only named[^;]*,GET \/query: loosened; fields [^;]*; fields that are only named[^;]*$/,
    );
  });

  describe('small copies of published descriptions', () => {
    it('[imp 2] sends a header for the response version with its parameters (PagerDuty)', () => {
      const type = 'application/vnd.pagerduty+json;version=2';
      const getHeaders = (required: boolean) =>
        getOnlyTool(withParameters([header('Accept', { ...text, default: type }, { required })])).headers;
      assert.deepEqual([getHeaders(true), getHeaders(false)], [{ Accept: type }, undefined]);
    });

    it('[imp 2] keeps the prefix of a key to the last character (PagerDuty)', () => {
      for (const [description, token] of [
        ['The API Key with format `Token token=<API_KEY>`', 'Token token={{KEY}}'],
        ['Format: `Token <key>`', 'Token {{KEY}}'],
      ]) {
        const key = { type: 'apiKey', name: 'Authorization', in: 'header', description };
        const document = withParameters([], { components: { securitySchemes: { key } }, security: [{ key: [] }] });
        assert.deepEqual(planConfig(document).authentication, { type: 'ApiKey', token });
      }
    });

    it('[imp 2] takes a list for a query parameter with brackets, also when its schema has a single value (PagerDuty)', () => {
      const getArgument = (document: Json) =>
        Object.values(getOnlyTool(document).input_schema as Record<string, Json>)[0];
      const listed = getArgument(withParameters([query('statuses[]', { ...text, enum: ['triggered', 'resolved'] })]));
      assert.deepEqual([listed?.type, listed?.wire_name], ['array', 'statuses[]']);
      const parameters = [{ name: 'ids[]', in: 'query', ...text }];
      const paths = { '/incidents': { get: { summary, parameters } } };
      const single = getArgument({ swagger: '2.0', host: 'api.example.com', paths });
      assert.deepEqual([single?.type, single?.style], ['array', undefined]);
    });

    it('[imp 2] does not request raw text when the response has another type (GitHub)', () => {
      const content = { 'application/vnd.github.raw+json': {}, 'application/vnd.github.html+json': {} };
      const { headers } = getOnlyTool(openApi({ '/readme': { get: { summary, responses: { 200: { content } } } } }));
      assert.deepEqual(headers, { Accept: 'application/vnd.github.html+json' });
    });

    it('[imp 2] creates a short slug without generic words, so that tool names fit into clients', () => {
      const slugs: [string, string][] = [
        ["Netlify's API documentation", 'netlify'],
        ['API Reference', 'example'],
        ['Twilio SendGrid Marketing Campaigns Designs', 'twilio-sendgrid'],
        ['The Example REST API v2', 'example'],
        ['Öffentliche Dienste', 'offentliche-dienste'],
        ['API', 'example'],
        ['X', 'x-api'],
      ];
      for (const [title, slug] of slugs)
        assert.equal(planConfig(withParameters([], { info: { title, version: '1' } })).slug, slug, title);
    });

    it('[imp 1] names operations in other files, and suggests how to bundle them (DigitalOcean)', () => {
      const document = openApi({ '/v2/droplets': { get: { $ref: 'resources/droplets/list.yml' } } });
      assert.throws(() => readDescription(JSON.stringify(document)), /resources\/droplets\/list\.yml.*bundle/);
      const partly = openApi({ '/v2/droplets': { get: { $ref: 'list.yml' } }, '/v2/keys': get });
      assert.match(JSON.stringify(planDocument(partly).findings), /refers to .*list\.yml.*not fetched/);
    });

    it('[imp 1] reads a script with its variables, and turns the idempotency key of one request into an argument (Stripe)', () => {
      const script = `#!/usr/bin/env bash
set -e
export ADDR="https://api.example.com"
TOKEN="eyJhbGciOiJI"
curl -v -X POST -H "Content-Type: application/json" -H "Authorization: Bearer \${TOKEN}" \\
  --data "{\\"body\\":\\"\${BODY}\\",\\"n\\":$N}" "\${ADDR:-x}/v1/secret/$ID?q=$Q"
curl $ADDR/v1/charges -u sk_test_4eC39: -d 'amount=$2000' -H "Idempotency-Key: KG5LxwFBepaKHyUD"`;
      const answers = { ADDR: 'https://api.example.com', credential: 'none' };
      const plan = planDocument(script, { include: ['*'], answers });
      const operations = plan.all.map(({ operation }) => [
        ...[operation.method, operation.path, ...pluck(operation.inputs, 'name')],
      ]);
      assert.deepEqual(operations, [
        ['POST', '/v1/secret/{ID}', 'ID', 'q'],
        ['POST', '/v1/charges', 'Idempotency-Key'],
      ]);
      assert.doesNotMatch(JSON.stringify(plan), /eyJhbGciOiJI|sk_test|KG5LxwFB/);
      assert.match(JSON.stringify(plan.all[1]?.operation.body), /\$2000/, 'single quotes keep their content');
      const named = planConfig('curl "$ADDR/v1/charges"', { include: ['*'], answers: { ADDR: 'api.example.com' } });
      assert.equal(named.base_url, 'https://api.example.com');
      const host = planConfig('curl https://api.stripe.com/v1/charges -d amount=1', { include: ['*'] });
      assert.equal(host.slug, 'stripe');
    });

    it('[imp 1] reads a collection whose URLs are split into parts, and shares no idempotency key between requests (Lob)', () => {
      const pairs = (values: Json) => Object.entries(values).map(([key, value]) => ({ key, value }));
      const address = {
        host: ['{{baseUrl}}'],
        path: ['addresses', ':adr_id'],
        query: [
          { key: 'limit', value: '10' },
          { key: 'before', value: '<string>', disabled: true },
        ],
        variable: pairs({ adr_id: '' }),
      };
      const sent = pairs({ 'Idempotency-Key': '<string>', 'X-Region': '<string>' });
      const health = { protocol: 'https', host: ['api', 'lob', 'com'], port: '8443', path: 'health' };
      const item = [
        { name: 'Create an address', request: { method: 'POST', header: sent, url: address } },
        { name: 'Health', request: { url: health } },
      ];
      const variable = pairs({ baseUrl: 'https://api.lob.com/v1' });
      const { tools, base_url, authentication } = planConfig({ info: { name: 'Lob' }, variable, item });
      assert.deepEqual([base_url, authentication], ['https://api.lob.com', undefined]);
      assert.deepEqual(
        tools.map(({ method, url, headers }) => [method, url, headers]),
        [
          ['POST', '/v1/addresses/:adr_id', undefined],
          ['GET', 'https://api.lob.com:8443/health', undefined],
        ],
      );
      const names = Object.keys(tools[0]?.input_schema ?? {}).sort();
      assert.deepEqual(names, ['Idempotency-Key', 'X-Region', 'adr_id', 'before', 'limit']);
    });
  });
});

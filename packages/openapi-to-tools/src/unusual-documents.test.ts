import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  getOnlyTool,
  getValidConfig,
  listOutcomes,
  openApi,
  planDocument,
} from '../../../test/support/import/import-plans.ts';
import type { Json } from '../../../test/support/toolhost/toolhost.ts';
import { getField } from './document/lenient.ts';
import { readDescription } from './read-description.ts';

const summary = 'Does something that is described';
const text = { type: 'string' };

/** Returns a document with one operation that has these parameters. */
const withParameters = (parameters: Json[], more: Json = {}) =>
  openApi({ '/incidents': { get: { operationId: 'listIncidents', summary: 'List all incidents', parameters } } }, more);

describe('published descriptions with unusual features', () => {
  it('[imp 2] resolves references to an anchor, also recursive ones', () => {
    const node = {
      $anchor: 'node',
      type: 'object',
      properties: { name: { type: 'string' }, next: { $ref: '#node' } },
    };
    const parameters = [{ name: 'kind', in: 'query', schema: { $ref: '#kind' } }];
    const content = { 'application/json': { schema: { $ref: '#node' } } };
    const tool = getOnlyTool(
      openApi(
        { '/a': { post: { summary, parameters, requestBody: { content } } } },
        { components: { schemas: { Node: node, Kind: { $anchor: 'kind', type: 'string', enum: ['a', 'b'] } } } },
      ),
    );
    assert.deepEqual(tool.input_schema.kind, { type: 'string', enum: ['a', 'b'], in: 'query', optional: true });
    assert.deepEqual(tool.input_schema.name, { type: 'string', optional: true });
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
      assert.deepEqual(input_schema.day, { type: 'string', description: 'Default: aGk=', optional: true });
    }
  });

  it('[imp 3] names collection credentials that no tool can send, and signs AWS requests for the declared region', () => {
    const request = (type: string, values: object[] = []) => ({
      name: type,
      request: { method: 'GET', url: `https://api.example.com/${type}`, auth: { type, [type]: values } },
    });
    const kinds = ['digest', 'oauth1', 'hawk', 'ntlm', 'edgegrid', 'noauth'].map((type) => request(type));
    const collection = { info: { name: 'Kinds' }, item: kinds };
    const needs = (type: string) => `GET /${type}: skipped; credentials of type "${type}"`;
    assert.deepEqual(listOutcomes(collection), [
      ...['digest', 'oauth1', 'hawk', 'ntlm', 'edgegrid'].map(needs),
      'GET /noauth: whole',
    ]);
    const signed = request('awsv4', [
      { key: 'region', value: 'eu-west-1' },
      { key: 'service', value: 's3' },
      { key: 'secretKey', value: 'never-kept' },
    ]);
    const { config } = planDocument({ info: { name: 'Signed' }, item: [signed] });
    assert.deepEqual(config?.authentication, {
      type: 'AwsSigV4',
      access_key_id: '{{AWS_ACCESS_KEY_ID}}',
      secret_access_key: '{{AWS_SECRET_ACCESS_KEY}}',
      region: 'eu-west-1',
      service: 's3',
    });
    assert.doesNotMatch(JSON.stringify(config), /never-kept/);
  });

  it('[imp 3] rejects a secret in the URL as an answer, and gives other variables a name that does not collide with it', () => {
    const paths = { '/a': { get: { summary } } };
    const secretInPath = openApi(paths, { servers: [{ url: 'https://api.example.com/{api-key}/v1' }] });
    const { config, questions, secrets } = planDocument(secretInPath);
    assert.deepEqual([config?.base_url, config?.variables], ['https://api.example.com/{{API_KEY}}/v1', undefined]);
    assert.deepEqual(
      [questions.map(({ name }) => name), secrets.map(({ name }) => name)],
      [['credential'], ['API_KEY']],
    );
    for (const name of ['api-key', 'api_key']) {
      assert.throws(
        () => planDocument(secretInPath, { answers: { [name]: 'the-value' } }),
        ({ problems }: { problems: { message: string }[] }) =>
          /set the secret API_KEY after creating the server/.test(String(problems[0]?.message)) &&
          !JSON.stringify(problems).includes('the-value'),
      );
    }
    const secretInHost = openApi(paths, {
      servers: [{ url: 'https://{KEY}.example.com/{token}', variables: { KEY: { default: 'eu' } } }],
      components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } } },
      security: [{ key: [] }],
    });
    const plan = planDocument(secretInHost);
    assert.deepEqual(plan.config?.authentication, { type: 'ApiKey', header: 'X-Key', token: '{{KEY_2}}' });
    assert.deepEqual(
      plan.secrets.map(({ name }) => name),
      ['TOKEN', 'KEY_2'],
    );
    const [question] = planDocument(openApi(paths, { servers: [{ url: 'https://{token}.example.com' }] })).questions;
    assert.match(String(question?.question), /everyone who can read the configuration sees it/);
  });

  it('[imp 2] takes the fields of all subtypes for a discriminator without oneOf', () => {
    const Pet = {
      type: 'object',
      required: ['kind'],
      discriminator: { propertyName: 'kind' },
      properties: { kind: { type: 'string' } },
    };
    const kind = (name: string) => ({
      allOf: [{ $ref: '#/components/schemas/Pet' }, { type: 'object', properties: { [name]: { type: 'boolean' } } }],
    });
    const post = (schemas: object) => {
      const content = { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } };
      return openApi(
        { '/a': { post: { summary, requestBody: { required: true, content } } } },
        { components: { schemas } },
      );
    };
    const getBodySchema = (schemas: object) =>
      (getOnlyTool(post(schemas)).input_schema.properties as { body: object }).body;
    const values = (...listed: string[]) => ({ type: 'string', enum: listed });
    const createSubtypeSchema = (name: string, value: string) => ({
      type: 'object',
      properties: { [name]: { type: 'boolean' }, kind: values(value) },
      required: ['kind'],
    });
    const createBodySchema = (kind: object) => ({
      description: 'The body of the request.',
      properties: { kind },
      required: ['kind'],
    });
    const allSchemas = { Pet, Cat: kind('meows'), Dog: kind('barks') };
    assert.deepEqual(getBodySchema(allSchemas), {
      ...createBodySchema(values('Cat', 'Dog')),
      anyOf: [createSubtypeSchema('meows', 'Cat'), createSubtypeSchema('barks', 'Dog')],
    });
    assert.deepEqual(getBodySchema({ Pet, Cat: kind('meows') }), {
      ...createBodySchema(values('Cat')),
      anyOf: [createSubtypeSchema('meows', 'Cat')],
    });
    const mapping = { cat: 'Cat', pet: '#/components/schemas/Pet' };
    const mapped = { ...allSchemas, Pet: { ...Pet, discriminator: { propertyName: 'kind', mapping } } };
    assert.deepEqual(getBodySchema(mapped), {
      ...createBodySchema({ type: 'string' }),
      anyOf: [createSubtypeSchema('meows', 'cat'), { type: 'object', properties: { kind: values('pet') } }],
    });
    assert.deepEqual(listOutcomes(post(allSchemas)), ['POST /a: whole']);
    assert.deepEqual(listOutcomes(post({ Pet })), ['POST /a: whole']);
  });

  it('[imp 1] accepts body types in the spellings that people use', () => {
    const schema = { type: 'object', properties: { name: { type: 'string' } } };
    for (const consumes of ['json', '*', 'application/xml, application/json', 'text/plain,JSON']) {
      const parameters = [{ in: 'body', name: 'thing', schema }];
      const swagger = { swagger: '2.0', info: { title: 'Odd' }, host: 'api.example.com' };
      const { headers, input_schema } = getOnlyTool({
        ...swagger,
        paths: { '/a': { post: { summary, consumes: [consumes], parameters } } },
      });
      assert.deepEqual([headers, input_schema], [undefined, { name: { type: 'string', optional: true } }], consumes);
    }
  });

  it('[imp 2] sends an operation to its own server, or skips it when the server URL is unknown', () => {
    const post = (url: string, variables = {}) => ({
      servers: [{ url, variables }],
      post: { summary: 'Makes a thing of some kind' },
    });
    const document = openApi({
      '/token': post('/oauth'),
      '/region': post('https://{region}.example.com'),
      '/default': post('https://{region}.example.com', { region: { default: 'eu' } }),
      '/bot': post('https://bots.example.com/bot{token}', { token: { default: 'x' } }),
    });
    const urls = (answers = {}) =>
      getValidConfig(
        planDocument(document, { include: ['*'], documentUrl: 'https://docs.example.org/a.json', answers }),
      ).tools.map(({ url }) => url);
    assert.deepEqual(urls(), ['https://api.example.com/oauth/token', 'https://eu.example.com/default']);
    assert.deepEqual(urls({ region: 'us' }).slice(1, 3), [
      'https://us.example.com/region',
      'https://us.example.com/default',
    ]);
    assert.deepEqual(
      listOutcomes(document).filter((line) => line.includes('skipped')),
      [
        'POST /region: skipped; its own address needs a value for "region"; set it in answers',
        'POST /bot: skipped; its own address, which contains a secret',
      ],
    );
    const item = (url: string) => ({ name: `Ask ${url}`, request: { method: 'GET', url: { raw: url } } });
    const collection = { info: { name: 'Two' }, item: [item('{{base}}/things'), item('{{login}}/token')] };
    const plan = planDocument(JSON.stringify(collection), {
      include: ['*'],
      answers: { base: 'https://api.example.com' },
    });
    assert.deepEqual(
      getValidConfig(plan).tools.map(({ url }) => url),
      ['/things'],
    );
  });

  it('[imp 2] serializes path values in the styles matrix and label, and skips other styles that it cannot write', () => {
    const path = (style: string, schema: object = { type: 'string' }, explode = false) => ({
      get: {
        summary: 'Gets one thing',
        parameters: [{ name: 'id', in: 'path', required: true, style, explode, schema }],
      },
    });
    const array = { type: 'array', items: { type: 'string' } };
    const object = { type: 'object', properties: { a: { type: 'string' } } };
    const document = openApi({
      '/a/{id}': path('matrix'),
      '/b/{id}': path('label', { type: 'integer' }),
      '/c/{id}': path('matrix', array),
      '/e/{id}': path('simple', object),
      '/f/{id}': path('simple', array, true),
      '/g/{id}': path('matrix', array, true),
      '/h/{id}': path('simple', object, true),
      '/d': { get: { parameters: [{ name: 'q', in: 'fragment', required: true, content: {} }] } },
    });
    const { tools } = getValidConfig(planDocument(document));
    assert.deepEqual(
      tools.map(({ url }) => url),
      ['/a/;id=:id', '/b/.:id', '/c/;id=:id', '/e/:id', '/f/:id'],
    );
    assert.equal(getField(tools[3]?.input_schema.id, 'style'), 'comma');
    assert.deepEqual(listOutcomes(document).slice(5), [
      'GET /g/{id}: skipped; "id": an exploded list or object in a path',
      'GET /h/{id}: skipped; "id": an exploded list or object in a path',
      'GET /d: skipped; an input in "fragment"',
    ]);
  });

  it('[imp 2] collects form fields and query parameters above the argument limit in one argument', () => {
    const names = Array.from({ length: 203 }, (_, index) => `field${index}`);
    const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
    const schema = { type: 'object', properties, required: ['field202'] };
    const parameters = names.map((name) => ({ name, in: 'query', schema: { type: 'string' } }));
    const document = openApi({
      '/form': { post: { requestBody: { content: { 'application/x-www-form-urlencoded': { schema } } } } },
      '/query': { get: { parameters } },
    });
    for (const tool of getValidConfig(planDocument(document)).tools) {
      const { fields, ...own } = tool.input_schema as Record<string, Json>;
      assert.deepEqual([fields?.type, fields?.style, fields?.optional], ['object', 'repeat', true]);
      assert.match(
        String(fields?.description),
        /^Other fields of the (?:form|query) by their names\. Also takes field/,
      );
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
      const accept = {
        name: 'Accept',
        in: 'header',
        required: true,
        schema: { ...text, default: 'application/vnd.pagerduty+json;version=2' },
      };
      assert.deepEqual(getOnlyTool(withParameters([accept])).headers, {
        Accept: 'application/vnd.pagerduty+json;version=2',
      });
      const unsure = { ...accept, required: false };
      assert.equal(getOnlyTool(withParameters([unsure])).headers, undefined);
    });

    it('[imp 2] keeps the prefix of a key to the last character (PagerDuty)', () => {
      for (const [description, token] of [
        ['The API Key with format `Token token=<API_KEY>`', 'Token token={{KEY}}'],
        ['Format: `Token <key>`', 'Token {{KEY}}'],
      ]) {
        const key = { type: 'apiKey', name: 'Authorization', in: 'header', description };
        const document = withParameters([], { components: { securitySchemes: { key } }, security: [{ key: [] }] });
        assert.deepEqual(getValidConfig(planDocument(document)).authentication, { type: 'ApiKey', token });
      }
    });

    it('[imp 2] takes a list for a query parameter with brackets, also when its schema has a single value (PagerDuty)', () => {
      const statuses = { name: 'statuses[]', in: 'query', schema: { ...text, enum: ['triggered', 'resolved'] } };
      const fields = getOnlyTool(withParameters([statuses])).input_schema as { statuses: Json };
      assert.deepEqual([fields.statuses.type, fields.statuses.wire_name], ['array', 'statuses[]']);
      const document = {
        swagger: '2.0',
        host: 'api.example.com',
        paths: {
          '/incidents': {
            get: { summary: 'List all incidents', parameters: [{ name: 'ids[]', in: 'query', type: 'string' }] },
          },
        },
      };
      const swagger = getOnlyTool(document).input_schema as { ids: Json };
      assert.deepEqual([swagger.ids.type, swagger.ids.style], ['array', undefined]);
    });

    it('[imp 2] does not request raw text when the response has another type (GitHub)', () => {
      const content = { 'application/vnd.github.raw+json': {}, 'application/vnd.github.html+json': {} };
      const get = { summary: 'Get the readme of a repository', responses: { 200: { content } } };
      assert.deepEqual(getOnlyTool(openApi({ '/readme': { get } })).headers, {
        Accept: 'application/vnd.github.html+json',
      });
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
      for (const [title, slug] of slugs) {
        const document = withParameters([], { info: { title, version: '1' } });
        assert.equal(getValidConfig(planDocument(document)).slug, slug, title);
      }
    });

    it('[imp 1] names operations in other files, and suggests how to bundle them (DigitalOcean)', () => {
      const document = openApi({ '/v2/droplets': { get: { $ref: 'resources/droplets/list.yml' } } });
      assert.throws(() => readDescription(JSON.stringify(document)), /resources\/droplets\/list\.yml.*bundle/);
      const partly = {
        '/v2/droplets': { get: { $ref: 'list.yml' } },
        '/v2/keys': { get: { summary: 'List all keys' } },
      };
      assert.match(JSON.stringify(planDocument(openApi(partly)).findings), /refers to .*list\.yml.*not fetched/);
    });

    it('[imp 1] reads a script with its variables, and turns the idempotency key of one request into an argument (Stripe)', () => {
      const script = `#!/usr/bin/env bash
set -e
export ADDR="https://api.example.com"
TOKEN="eyJhbGciOiJI"
curl -v -X POST -H "Content-Type: application/json" -H "Authorization: Bearer \${TOKEN}" \\
  --data "{\\"body\\":\\"\${BODY}\\",\\"n\\":$N}" "\${ADDR:-x}/v1/secret/$ID?q=$Q"
curl $ADDR/v1/charges -u sk_test_4eC39: -d 'amount=$2000' -H "Idempotency-Key: KG5LxwFBepaKHyUD"`;
      const plan = planDocument(script, {
        include: ['*'],
        answers: { ADDR: 'https://api.example.com', credential: 'none' },
      });
      assert.deepEqual(
        plan.all.map(({ operation }) => [operation.method, operation.path, operation.inputs.map(({ name }) => name)]),
        [
          ['POST', '/v1/secret/{ID}', ['ID', 'q']],
          ['POST', '/v1/charges', ['Idempotency-Key']],
        ],
      );
      assert.doesNotMatch(JSON.stringify(plan), /eyJhbGciOiJI|sk_test|KG5LxwFB/);
      assert.match(JSON.stringify(plan.all[1]?.operation.body), /\$2000/, 'single quotes keep their content');
      const scriptWithHostVariable = planDocument('curl "$ADDR/v1/charges"', {
        include: ['*'],
        answers: { ADDR: 'api.example.com' },
      });
      assert.equal(getValidConfig(scriptWithHostVariable).base_url, 'https://api.example.com');
      const host = planDocument('curl https://api.stripe.com/v1/charges -d amount=1', { include: ['*'] });
      assert.equal(getValidConfig(host).slug, 'stripe');
    });

    it('[imp 1] reads a collection whose URLs are split into parts, and shares no idempotency key between requests (Lob)', () => {
      const collection = {
        info: { name: 'Lob' },
        variable: [{ key: 'baseUrl', value: 'https://api.lob.com/v1' }],
        item: [
          {
            name: 'Create an address',
            request: {
              method: 'POST',
              header: [
                { key: 'Idempotency-Key', value: '<string>' },
                { key: 'X-Region', value: '<string>' },
              ],
              url: {
                host: ['{{baseUrl}}'],
                path: ['addresses', ':adr_id'],
                query: [
                  { key: 'limit', value: '10' },
                  { key: 'before', value: '<string>', disabled: true },
                ],
                variable: [{ key: 'adr_id', value: '' }],
              },
            },
          },
          {
            name: 'Health',
            request: { url: { protocol: 'https', host: ['api', 'lob', 'com'], port: '8443', path: 'health' } },
          },
        ],
      };
      const { tools, base_url, authentication } = getValidConfig(planDocument(collection));
      assert.deepEqual([base_url, authentication], ['https://api.lob.com', undefined]);
      assert.deepEqual(
        tools.map(({ method, url, headers }) => [method, url, headers]),
        [
          ['POST', '/v1/addresses/:adr_id', undefined],
          ['GET', 'https://api.lob.com:8443/health', undefined],
        ],
      );
      const [first] = tools;
      assert.deepEqual(
        Object.keys(first?.input_schema ?? {}).sort(),
        ['Idempotency-Key', 'X-Region', 'adr_id', 'before', 'limit'].sort(),
      );
    });
  });
});

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { onlyTool, openApi, outcomesOf, planOf } from '../support/import/plan-of.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const summary = 'Does something that is described';

describe('unusual documents', () => {
  it('[imp 2] references to an anchor are followed, also where it refers to itself', () => {
    const node = {
      $anchor: 'node',
      type: 'object',
      properties: { name: { type: 'string' }, next: { $ref: '#node' } },
    };
    const parameters = [{ name: 'kind', in: 'query', schema: { $ref: '#kind' } }];
    const content = { 'application/json': { schema: { $ref: '#node' } } };
    const tool = onlyTool(
      openApi(
        { '/a': { post: { summary, parameters, requestBody: { content } } } },
        { components: { schemas: { Node: node, Kind: { $anchor: 'kind', type: 'string', enum: ['a', 'b'] } } } },
      ),
    );
    assert.deepEqual(tool.input_schema.kind, { type: 'string', enum: ['a', 'b'], in: 'query', optional: true });
    assert.deepEqual(tool.input_schema.name, { type: 'string', optional: true });
  });

  it('[imp 2] dates and bytes of YAML are the texts that they look like', () => {
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
      const { input_schema } = onlyTool(yaml(start));
      assert.deepEqual(input_schema.version, { type: 'string', enum: ['2020-01-01', '2021-02-03'], optional: true });
      assert.deepEqual(input_schema.day, { type: 'string', description: 'Default: aGk=', optional: true });
    }
  });

  it('[imp 3] credentials of a collection that no tool can send are named, and AWS signs for its region', () => {
    const request = (type: string, values: object[] = []) => ({
      name: type,
      request: { method: 'GET', url: `https://api.example.com/${type}`, auth: { type, [type]: values } },
    });
    const kinds = ['digest', 'oauth1', 'hawk', 'ntlm', 'edgegrid', 'noauth'].map((type) => request(type));
    const collection = { info: { name: 'Kinds' }, item: kinds };
    const needs = (type: string) => `GET /${type}: skipped; credentials of type "${type}"`;
    assert.deepEqual(outcomesOf(collection), [
      ...['digest', 'oauth1', 'hawk', 'ntlm', 'edgegrid'].map(needs),
      'GET /noauth: whole',
    ]);
    const signed = request('awsv4', [
      { key: 'region', value: 'eu-west-1' },
      { key: 'service', value: 's3' },
      { key: 'secretKey', value: 'never-kept' },
    ]);
    const { config } = planOf({ info: { name: 'Signed' }, item: [signed] });
    assert.deepEqual(config?.authentication, {
      type: 'AwsSigV4',
      access_key_id: '{{AWS_ACCESS_KEY_ID}}',
      secret_access_key: '{{AWS_SECRET_ACCESS_KEY}}',
      region: 'eu-west-1',
      service: 's3',
    });
    assert.doesNotMatch(JSON.stringify(config), /never-kept/);
  });

  it('[imp 3] a secret in the address is no answer, and a variable beside it takes none of its names', () => {
    const paths = { '/a': { get: { summary } } };
    const inPath = openApi(paths, { servers: [{ url: 'https://api.example.com/{api-key}/v1' }] });
    const { config, questions, secrets } = planOf(inPath);
    assert.deepEqual([config?.base_url, config?.variables], ['https://api.example.com/{{API_KEY}}/v1', undefined]);
    assert.deepEqual(
      [questions.map(({ name }) => name), secrets.map(({ name }) => name)],
      [['credential'], ['API_KEY']],
    );
    for (const name of ['api-key', 'api_key']) {
      assert.throws(
        () => planOf(inPath, { answers: { [name]: 'the-value' } }),
        ({ problems }: { problems: { message: string }[] }) =>
          /set the secret API_KEY of the server/.test(String(problems[0]?.message)) &&
          !JSON.stringify(problems).includes('the-value'),
      );
    }
    const inHost = openApi(paths, {
      servers: [{ url: 'https://{KEY}.example.com/{token}', variables: { KEY: { default: 'eu' } } }],
      components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } } },
      security: [{ key: [] }],
    });
    const plan = planOf(inHost);
    assert.deepEqual(plan.config?.authentication, { type: 'ApiKey', header: 'X-Key', token: '{{KEY_2}}' });
    assert.deepEqual(
      plan.secrets.map(({ name }) => name),
      ['TOKEN', 'KEY_2'],
    );
    const [asked] = planOf(openApi(paths, { servers: [{ url: 'https://{token}.example.com' }] })).questions;
    assert.match(String(asked?.question), /everybody who may read the configuration sees it/);
  });

  it('[imp 2] a schema with a discriminator takes the fields of its kinds, where no oneOf names them', () => {
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
    const bodyOf = (schemas: object) => (onlyTool(post(schemas)).input_schema.properties as { body: object }).body;
    const of = (name: string) => ({ type: 'object', properties: { [name]: { type: 'boolean' } } });
    const own = {
      description: 'The body of the request.',
      properties: { kind: { type: 'string' } },
      required: ['kind'],
    };
    const both = { Pet, Cat: kind('meows'), Dog: kind('barks') };
    assert.deepEqual(bodyOf(both), { ...own, anyOf: [of('meows'), of('barks')] });
    assert.deepEqual(bodyOf({ Pet, Cat: kind('meows') }), { ...own, anyOf: [of('meows')] });
    const mapping = { cat: 'Cat', pet: '#/components/schemas/Pet' };
    const mapped = { ...both, Pet: { ...Pet, discriminator: { propertyName: 'kind', mapping } } };
    assert.deepEqual(bodyOf(mapped), { ...own, anyOf: [of('meows'), { type: 'object' }] });
    assert.deepEqual(outcomesOf(post(both)), ['POST /a: whole']);
    assert.deepEqual(outcomesOf(post({ Pet })), ['POST /a: whole']);
  });

  it('[imp 1] types of a body are read as people write them', () => {
    const schema = { type: 'object', properties: { name: { type: 'string' } } };
    for (const consumes of ['json', '*', 'application/xml, application/json', 'text/plain,JSON']) {
      const parameters = [{ in: 'body', name: 'thing', schema }];
      const swagger = { swagger: '2.0', info: { title: 'Odd' }, host: 'api.example.com' };
      const { headers, input_schema } = onlyTool({
        ...swagger,
        paths: { '/a': { post: { summary, consumes: [consumes], parameters } } },
      });
      assert.deepEqual([headers, input_schema], [undefined, { name: { type: 'string', optional: true } }], consumes);
    }
  });

  describe('of an address', () => {
    let toolhost: TestToolhost;
    const document = JSON.stringify(openApi({ '/é': { get: { summary } } }));
    const little = Buffer.from(document, 'utf16le');
    const answers = new Map([
      ['/le', Buffer.concat([Buffer.from([0xff, 0xfe]), little])],
      ['/be', Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(little).swap16()])],
      ['/bare', little],
    ]);
    const server = createServer((request, response) => void response.end(answers.get(String(request.url))));
    before(async () => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      toolhost = await startToolhost({ egress: [(server.address() as AddressInfo).port] });
    });
    after(async () => {
      await toolhost.stop();
      server.close();
    });

    it('[imp 1] UTF-16 is read, as Windows writes it', async () => {
      const { port } = server.address() as AddressInfo;
      for (const path of answers.keys()) {
        const body = { url: `http://127.0.0.1:${port}${path}`, report: 'all' };
        const reply = await toolhost.rest('POST', '/import', { body });
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(
          (reply.body.report as { operation: string }[]).map(({ operation }) => operation),
          ['GET /é'],
        );
      }
    });
  });
});

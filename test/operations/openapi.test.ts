import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { operations } from '@toolhost/server/operations';
import { startToolhost } from '../support/toolhost/toolhost.ts';

type Schema = { $ref?: string; type?: string; properties?: Record<string, Schema>; items?: Schema };
type Content = Record<string, { schema: Schema }>;
type Response = { $ref?: string; headers?: Record<string, unknown>; content?: Content };
type Operation = {
  operationId: string;
  tags: string[];
  security?: Record<string, string[]>[];
  parameters: { name: string; in: string }[];
  requestBody?: { content: Content };
  responses: Record<string, Response>;
};
type Document = {
  security: Record<string, string[]>[];
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, Response>; securitySchemes: object };
};

describe('OpenAPI document', async () => {
  const toolhost = await startToolhost();
  const text = await (await fetch(`${toolhost.url}/api/v1/openapi.json`)).text();
  const document = JSON.parse(text) as Document;
  const all = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  after(() => toolhost.stop());

  const getOperation = (name: string) => all.find((op) => op.operationId === name) ?? assert.fail(name);
  const getResponseSchema = (name: string, status = '200', type = 'application/json') =>
    getOperation(name).responses[status]?.content?.[type]?.schema ?? assert.fail(name);
  const schemaRef = (name: string) => `#/components/schemas/${name}`;

  it('[rest 1] defines each API noun once, and resolves every reference', () => {
    assert.equal(getResponseSchema('getMcpServer').properties?.server?.$ref, schemaRef('Server'));
    assert.equal(getResponseSchema('listMcpServers').properties?.servers?.items?.$ref, schemaRef('Server'));
    assert.equal(getResponseSchema('createMcpServer', '201').$ref, schemaRef('StoredServer'));
    for (const [operation, field, name] of [
      ['listCalls', 'calls', 'Call'],
      ['listApiKeys', 'keys', 'Key'],
      ['listSecrets', 'secrets', 'Secret'],
      ['listWebhooks', 'webhooks', 'Webhook'],
      ['listMembers', 'members', 'Member'],
    ] as const)
      assert.equal(getResponseSchema(operation).properties?.[field]?.items?.$ref, schemaRef(name));
    const config = getOperation('createMcpServer').requestBody?.content['application/json']?.schema;
    assert.equal(config?.$ref, schemaRef('ServerConfig'));
    const { ServerConfig, View } = document.components.schemas;
    assert.deepEqual([ServerConfig?.properties?.tools?.items?.$ref, View?.type], [schemaRef('Tool'), 'object']);
    for (const [reference, path] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const target = String(path)
        .split('/')
        .reduce<unknown>((at, name) => Object(at)[name], document);
      assert.ok(target, reference);
    }
    assert.doesNotMatch(text, /\$defs/);
  });

  it('[rest 1] gives each operation one declared tag', () => {
    const declared = document.tags.map(({ name }) => name);
    for (const { operationId, tags } of all) {
      assert.equal(tags.length, 1, operationId);
      assert.ok(declared.includes(String(tags[0])), operationId);
    }
  });

  it('[rest 1] gives each operation every error as a problem with its headers', () => {
    for (const { operationId, responses } of all) {
      for (const status of ['400', '401', '403', '404', '405', '409', '413', '415', '429', '500', '503', 'default']) {
        const name = responses[status]?.$ref?.split('/').at(-1);
        const { content, headers = {} } = document.components.responses[String(name)] ?? {};
        const reference = content?.['application/problem+json']?.schema.$ref;
        assert.equal(reference, schemaRef('Problem'), `${operationId} ${status}`);
        assert.ok('X-Request-Id' in headers);
        assert.equal('Retry-After' in headers, status === '429' || status === '503', `${operationId} ${status}`);
      }
    }
  });

  it('[rest 1] declares which operations return an ETag and accept If-Match', () => {
    for (const [name, ...expected] of [
      ['updateMcpServer', true, true],
      ['updateTool', true, true],
      ['getMcpServer', false, true],
      ['listCalls', false, false],
    ] as const) {
      const { parameters, responses } = getOperation(name);
      const acceptsIfMatch = parameters.some((one) => one.name === 'If-Match');
      assert.deepEqual([acceptsIfMatch, 'ETag' in (responses['200']?.headers ?? {})], expected, name);
    }
  });

  it('[rest 1] requires a session for operations that refuse keys, and any credential for the others', () => {
    for (const op of Object.values(operations)) {
      const { security } = getOperation(op.name);
      assert.deepEqual(security, op.dashboardRole ? [{ session: [] }] : undefined, op.name);
    }
    const schemes = Object.keys(document.components.securitySchemes);
    assert.deepEqual(document.security.flatMap(Object.keys).toSorted(), schemes.toSorted());
  });

  it('[rest 1] lets any web page read the file schemas, which allow $schema', async () => {
    for (const path of ['/schema/server.json', '/schema/file.json']) {
      const response = await fetch(toolhost.url + path, { headers: { origin: 'https://editor.example' } });
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('access-control-allow-origin'), '*');
      const { properties } = (await response.json()) as Schema;
      assert.equal(properties?.$schema?.type, 'string');
    }
  });

  it('[rest 1] gives exported files their media types', () => {
    assert.equal(getResponseSchema('exportWorkspace').type, 'object');
    for (const name of ['exportCalls', 'exportUsage'])
      assert.equal(getResponseSchema(name, '200', 'text/csv; charset=utf-8').type, 'string');
  });
});

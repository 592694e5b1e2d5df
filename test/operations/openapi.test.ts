import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { operations } from '@toolhost/server/operations';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

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
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, Response>;
    securitySchemes: Record<string, { type: string }>;
  };
};

describe('OpenAPI document', () => {
  let toolhost: TestToolhost;
  let document: Document;
  let text: string;
  let byId: Map<string, Operation>;
  before(async () => {
    toolhost = await startToolhost();
    text = await (await fetch(`${toolhost.url}/api/v1/openapi.json`)).text();
    document = JSON.parse(text) as Document;
    const all = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    byId = new Map(all.map((op) => [op.operationId, op]));
  });
  after(() => toolhost.stop());

  const getOperation = (name: string) => {
    const op = byId.get(name);
    assert.ok(op, name);
    return op;
  };
  const getResponseSchema = (name: string, status = '200', type = 'application/json') => {
    const schema = getOperation(name).responses[status]?.content?.[type]?.schema;
    assert.ok(schema, name);
    return schema;
  };
  const schemaRef = (name: string) => `#/components/schemas/${name}`;

  it('[rest 1] defines each API noun once, and resolves every reference', () => {
    assert.equal(getResponseSchema('getMcpServer').properties?.server?.$ref, schemaRef('Server'));
    assert.equal(getResponseSchema('listMcpServers').properties?.servers?.items?.$ref, schemaRef('Server'));
    assert.equal(getResponseSchema('createMcpServer', '201').$ref, schemaRef('StoredServer'));
    assert.equal(getResponseSchema('listCalls').properties?.calls?.items?.$ref, schemaRef('Call'));
    assert.equal(getResponseSchema('listApiKeys').properties?.keys?.items?.$ref, schemaRef('Key'));
    assert.equal(getResponseSchema('listSecrets').properties?.secrets?.items?.$ref, schemaRef('Secret'));
    assert.equal(getResponseSchema('listWebhooks').properties?.webhooks?.items?.$ref, schemaRef('Webhook'));
    assert.equal(getResponseSchema('listMembers').properties?.members?.items?.$ref, schemaRef('Member'));
    const config = getOperation('createMcpServer').requestBody?.content['application/json']?.schema;
    assert.equal(config?.$ref, schemaRef('ServerConfig'));
    const { ServerConfig, View } = document.components.schemas;
    assert.deepEqual([ServerConfig?.properties?.tools?.items?.$ref, View?.type], [schemaRef('Tool'), 'object']);
    for (const [reference, path] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      const names = String(path).split('/');
      assert.ok(
        names.reduce<unknown>((at, name) => Object(at)[name], document),
        reference,
      );
    }
    assert.doesNotMatch(text, /\$defs/);
  });

  it('[rest 1] gives each operation one declared tag', () => {
    const declared = document.tags.map(({ name }) => name);
    for (const { operationId, tags } of byId.values()) {
      assert.equal(tags.length, 1, operationId);
      assert.ok(declared.includes(String(tags[0])), operationId);
    }
  });

  it('[rest 1] gives each operation every error as a problem with its headers', () => {
    for (const { operationId, responses } of byId.values()) {
      for (const status of ['400', '401', '403', '404', '405', '409', '413', '415', '429', '500', '503', 'default']) {
        const name = responses[status]?.$ref?.split('/').at(-1);
        const { content, headers = {} } = document.components.responses[String(name)] ?? {};
        assert.equal(
          content?.['application/problem+json']?.schema.$ref,
          schemaRef('Problem'),
          `${operationId} ${status}`,
        );
        assert.ok('X-Request-Id' in headers);
        assert.equal('Retry-After' in headers, status === '429' || status === '503', `${operationId} ${status}`);
      }
    }
  });

  it('[rest 1] declares which operations return an ETag and accept If-Match', () => {
    const acceptsIfMatch = (name: string) => getOperation(name).parameters.some((one) => one.name === 'If-Match');
    const returnsEtag = (name: string) => 'ETag' in (getOperation(name).responses['200']?.headers ?? {});
    assert.deepEqual(['updateMcpServer', 'updateTool', 'getMcpServer', 'listCalls'].map(acceptsIfMatch), [
      true,
      true,
      false,
      false,
    ]);
    assert.deepEqual(['updateMcpServer', 'updateTool', 'getMcpServer', 'listCalls'].map(returnsEtag), [
      true,
      true,
      true,
      false,
    ]);
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

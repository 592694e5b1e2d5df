import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkServerConfig } from '@toolhost/tool-config/server-config';
import { parse } from 'yaml';
import { isFullSuite } from '../../../test/sets.ts';
import { listOutcomes, openApi } from '../../../test/support/import/import-plans.ts';
import { cookie, header, inPath, jsonBody, listOf, object, query, text } from '../../../test/support/schemas.ts';
import type { Json } from '../../../test/support/toolhost/toolhost.ts';
import { planImport } from './plan/plan-import.ts';
import { readDescription } from './read-description.ts';

/** Allows only public https URLs, like a deployment. */
function urlProblem({ protocol, hostname }: URL): string | undefined {
  if (protocol !== 'https:') return 'allowed: https';
  return /^localhost$|^10\.|^\[/.test(hostname) ? 'is not public' : undefined;
}

/** A description that uses every feature whose replacement by something else must not prevent the import. */
const odd = `
info: { title: Odd, description: Odd }
tags: [{ name: odd }]
servers: [{ url: https://api.example.com/v1 }]
paths:
  /odd/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
    post:
      operationId: sendOdd
      summary: Sends something odd
      tags: [odd]
      parameters:
        - { name: filter, in: query, style: deepObject, explode: true, schema: { $ref: '#/components/schemas/Odd' } }
        - { name: 'ids[]', in: query, style: pipeDelimited, description: Ids, schema: { type: array, items: {} } }
        - { name: X-Mode, in: header, allowReserved: true, example: a, type: string, collectionFormat: tsv }
        - { $ref: '#/components/parameters/None' }
      requestBody:
        required: true
        content:
          application/json: { schema: { $ref: '#/components/schemas/Odd' } }
          multipart/form-data: { schema: { $ref: '#node' }, encoding: { a: { contentType: image/png, style: form } } }
      consumes: [application/json]
      responses: { '200': { description: ok, headers: { ETag: {} }, content: { text/csv: { schema: {} } } } }
      security: [{ key: [], login: [read] }]
      servers: [{ url: 'https://{tenant}.example.com', variables: { tenant: { default: a, enum: [a] } } }]
components:
  schemas:
    Odd:
      $anchor: node
      type: object
      required: [a]
      properties: { a: { type: string, pattern: ^a$, enum: [a], format: date, default: a }, next: { $ref: '#node' } }
      additionalProperties: { type: array, items: { anyOf: [{}], not: { type: 'null' } }, maxItems: 2, readOnly: true }
      allOf: [{ $ref: '#/components/schemas/Odd' }]
      oneOf: [{ type: integer, minimum: 0, exclusiveMaximum: 9, nullable: true }, { const: a }]
      discriminator: { propertyName: a, mapping: { a: '#/components/schemas/Odd' } }
  securitySchemes:
    key: { type: apiKey, in: header, name: X-Key, description: A key }
    login: { type: oauth2, flows: { clientCredentials: { tokenUrl: https://a.example/t, scopes: { read: r } } } }
    basic: { type: http, scheme: basic }
`;

/** Valid operation that every description contains next to the malformed one. */
const good = {
  get: { summary: 'A thing that is described as it should be', parameters: [inPath('id')], security: [] },
};

/** Checks that the valid operation is imported from a document, or that a question asks for its address. */
function assertImported({ paths, ...document }: Json): void {
  const all = { ...(paths as Json), '/good/{id}': good };
  const label = JSON.stringify({ ...document, paths });
  const plan = planImport(readDescription(JSON.stringify({ ...document, paths: all })), { include: ['*'] }, urlProblem);
  const isAnswered = !plan.questions.some(({ required }) => required);
  assert.equal(plan.config !== undefined, isAnswered, label);
  if (!plan.config) return;
  const { problems } = checkServerConfig(plan.config, { managementSlug: 'manage', urlProblem, acceptsFormPost: true });
  assert.deepEqual(problems, [], label);
  assert.ok(
    plan.config.tools.some((tool) => tool.imported_from === 'GET /good/{id}'),
    label,
  );
  for (const { tool, outcome, notes } of plan.all) {
    assert.equal(tool === undefined, outcome === 'skipped', label);
    if (outcome !== 'whole') assert.ok(notes.length > 0, label);
  }
}

/** Yields copies of a value, each with one of its parts replaced by each of these values. */
function* replaceParts(value: unknown, replacements: readonly unknown[]): Generator<unknown> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, part] of Object.entries(value)) {
    const withPart = (changed: unknown) =>
      Array.isArray(value) ? value.with(Number(key), changed) : { ...value, [key]: changed };
    for (const replacement of replacements) yield withPart(replacement);
    for (const changed of replaceParts(part, replacements)) yield withPart(changed);
  }
}

describe('import of a partly malformed description', () => {
  const replacements = [null, 7, '', 'a\u0000\r\nb: {{A}}', 'https://[', [], {}];
  it('[imp 1] imports the valid operations, or asks for the address, whatever another part of the document is', () => {
    const variants = [...replaceParts(parse(odd), replacements)] as Json[];
    for (const [index, variant] of variants.entries()) {
      const isObject = typeof variant.paths === 'object' && variant.paths !== null && !Array.isArray(variant.paths);
      if (!isObject || (!isFullSuite && index % 10 > 0)) continue;
      const swagger = { swagger: '2.0', host: 'api.example.com', securityDefinitions: variant.components };
      for (const version of [{ openapi: '3.1.0' }, swagger]) assertImported({ ...version, ...variant });
    }
  });

  it('[imp 1] imports the valid operations, or asks for the address, whatever names, types, and addresses are', () => {
    const names = [
      ...'filter[x] a.b A X_Y $top @id __proto__ constructor 1 . .. [ a]b a=b a&b a#b é 名前 %41 % {{A}} :a {a} *'.split(
        ' ',
      ),
      ...'" \\ type properties $ref in value body json file read_more Accept Authorization Content-Type'.split(' '),
      ...'Cookie Host User-Agent Content-Length Mcp-Session-Id X-Forwarded-For traceparent X-Api-Key'.split(' '),
      ...['', ' ', '\ud800', '\u0000', 'a\r\nb: c', '\u202eb', 'x'.repeat(65), 'é'.repeat(150)],
    ];
    for (const name of names) {
      const parameters = [query(name), header(name), cookie(name), query(`${name}[a]`), query(name, listOf(text))];
      const body = (type: string) => ({ content: { [type]: { schema: object({ [name]: {}, a: text }, [name]) } } });
      const post = {
        summary: name,
        operationId: name,
        tags: [name],
        parameters,
        requestBody: body('application/json'),
      };
      const put = { ...post, parameters: [inPath(name)], requestBody: body('multipart/form-data') };
      const paths = { '/a': { post }, [`/b/{${name}}`]: { put }, [`/${name}`]: { put }, [`/c?${name}={a}`]: { post } };
      const securitySchemes = { [name]: { type: 'apiKey', in: 'query', name }, key: { type: 'http', scheme: name } };
      const security = [{ [name]: [] }, { key: [] }];
      assertImported(openApi(paths, { components: { securitySchemes }, security, info: { title: name } }));
    }
    const mediaTypes = [
      ...['JSON', 'application/json\r\nX-Evil: 1', 'text/plain\n', 'text/é', '', '*/*', 'text/*', '/', ';', 'image/*'],
      ...['multipart/mixed', 'multipart/form-data; boundary=x', `a/${'b'.repeat(5000)}`, 'application/json;a=:a'],
    ];
    for (const type of mediaTypes) {
      const content = { [type]: { schema: object({ a: {} }), encoding: { a: { contentType: type } } } };
      assertImported(openApi({ '/a': { post: { requestBody: { content }, responses: { 200: { content } } } } }));
    }
    const addresses = [
      ...[
        '/relative',
        'http://localhost:3000',
        'https://{apiKey}.example.com',
        'not a url',
        'ftp://a.example',
        'https://',
      ],
      ...['https://a.example?x=1#y', 'https://a.example/{{A}}', 'https://u:p@a.example', 'https://a.example:99999'],
      ...['https://10.0.0.1', `https://a.example/${'x'.repeat(3000)}`, 'https://é.example/a:b'],
    ];
    for (const url of addresses)
      for (const fields of [{ servers: [{ url }] }, {}])
        assertImported(openApi({ '/a': { get: { summary: 'Gets a', servers: [{ url }] } } }, fields));
    for (const path of ['', 'a', ...'/ // //evil.example/x /./a /{a}b /{a /a} /a#b /{+a*} /%zz'.split(' ')])
      assertImported(openApi({ [path]: { get: { summary: 'Gets a' } } }));
  });

  it('[imp 3] reports which part was left out, and why', () => {
    const summary = 'Does something that is described';
    const deep = query('filter', { type: 'object' }, { style: 'deepObject' });
    const body = (type: string) => ({ content: { [type]: { schema: text } } });
    const called = object({ properties: { type: 'object', additionalProperties: text } }, ['properties']);
    const document = openApi(
      {
        '/clash': { get: { summary, parameters: [deep, query('filter[x]')] } },
        '/needed': { get: { summary, parameters: [deep, query('filter[x]', text, { required: true })] } },
        '/type': { post: { summary, requestBody: body('text/plain\r\nX-Evil: 1') } },
        '/needed-type': { post: { summary, requestBody: { ...body('text/plain\r\nX-Evil: 1'), required: true } } },
        '/name': { get: { summary, parameters: [query('{{TOKEN}}')] } },
        '/dots/../up': { get: { summary } },
        '/host': { get: { summary, security: [{ host: [] }] } },
        '/more': { get: { summary, operationId: 'readMore' } },
        '/called-properties': {
          post: {
            summary,
            parameters: [query('id', { ...text, enum: ['{{A}}', 'b'] })],
            requestBody: jsonBody(called),
          },
        },
      },
      { components: { securitySchemes: { host: { type: 'apiKey', in: 'header', name: 'Host' } } } },
    );
    assert.deepEqual(listOutcomes(document), [
      'GET /clash: partial; the query parameter "filter[x]": "filter[x]" is also the name of a possible property of the argument filter; merge both into one argument',
      'GET /needed: skipped; input_schema.filter_x.wire_name: "filter[x]" is also the name of a possible property of the argument filter; merge both into one argument',
      'POST /type: partial; the body of type "text/plain\\r\\nX-Evil: 1"',
      'POST /needed-type: skipped; the body of type "text/plain\\r\\nX-Evil: 1"',
      'GET /name: partial; the query parameter "{{TOKEN}}": variables and secrets are not interpolated in names; write the name out',
      'GET /dots/../up: skipped; a path with . or .. segments',
      'GET /host: skipped; the credential "host" cannot be sent: authentication.header: this header is set by the service or by HTTP itself; remove it',
      'GET /more: whole',
      'POST /called-properties: partial; the query parameter "id": "{{A}}" is not interpolated here and would be sent literally; use a secret or a variable in a constant, "value"',
    ]);
  });
});

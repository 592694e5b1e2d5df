import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openApi, planDocument } from '../support/import/import-plans.ts';
import { importCase, startImports } from '../support/import/import-service.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand as command } from '../support/toolhost/toolhost-command.ts';
import { useFixture } from '../support/use-fixtures.ts';

const paths = { '/a': { get: { operationId: 'getA', summary: 'Returns the only thing', responses: {} } } };
const document = JSON.stringify(openApi(paths));

/** Documentation pages by the way in which they reference a description, with the other files of their site. */
const pages: Record<string, Record<string, string>> = {
  'Swagger UI of FastAPI': {
    '/docs': `<!DOCTYPE html><html><head><link rel="stylesheet" href="https://cdn.example.com/swagger-ui.css"></head><body>
<script>const ui = SwaggerUIBundle({ url: '/openapi.json', "dom_id": "#swagger-ui",
oauth2RedirectUrl: window.location.origin + '/docs/oauth2-redirect', })</script></body></html>`,
    '/openapi.json': document,
  },
  'Swagger UI of springdoc, with a script and a configuration': {
    '/swagger-ui/index.html': `<!-- HTML for static distribution bundle build -->
<!DOCTYPE html><html><body><script src="./swagger-ui-bundle.js"></script><script src="./swagger-initializer.js"></script></body></html>`,
    '/swagger-ui/swagger-initializer.js': `window.onload = function() { window.ui = SwaggerUIBundle({
      url: "https://petstore.swagger.io/v2/swagger.json", configUrl: "/v3/api-docs/swagger-config", validatorUrl: "" }); };`,
    '/v3/api-docs/swagger-config': JSON.stringify({
      configUrl: '/v3/api-docs/swagger-config',
      oauth2RedirectUrl: 'https://a.example.com/swagger-ui/oauth2-redirect.html',
      url: '/v3/api-docs',
      validatorUrl: '',
    }),
    '/v3/api-docs': JSON.stringify(Buffer.from(document).toString('base64')),
  },
  'Swagger UI of Swashbuckle': {
    '/swagger/index.html': `<html><script>var configObject = JSON.parse('{"urls":[{"url":"v1/swagger.json","name":"V1"}],"validatorUrl":null}'); SwaggerUIBundle(configObject)</script></html>`,
    '/swagger/v1/swagger.json': document,
  },
  'Swagger UI of Express, with the description in its script': {
    '/docs/': `<html><script src="./swagger-ui-init.js"></script></html>`,
    '/docs/swagger-ui-init.js': `var options = { "swaggerDoc": ${document}, "customOptions": {} }; SwaggerUIBundle(options)`,
  },
  Redoc: {
    '/redoc': `<!DOCTYPE html><html><body><redoc spec-url="/spec/openapi.json"></redoc><script src="https://cdn.example.com/redoc.standalone.js"></script></body></html>`,
    '/spec/openapi.json': document,
  },
  'Redoc with the description in it': {
    '/redoc.html': `<!DOCTYPE html><html><body><div id="redoc"></div><script>const __redoc_state = {"menu":{},"spec":{"data":${document}}};</script></body></html>`,
  },
  Scalar: {
    '/reference': `<!doctype html><html><body><script id="api-reference" data-url="/openapi.json"></script></body></html>`,
    '/openapi.json': document,
  },
  'Scalar with a configuration': {
    '/scalar': `<!doctype html><html><body><script id="api-reference" data-configuration="{&quot;spec&quot;:{&quot;url&quot;:&quot;/o.json&quot;}}"></script></body></html>`,
    '/o.json': document,
  },
  'Scalar with the description in it': {
    '/embedded': `<!doctype html><html><body><script id="api-reference" type="application/json">${document}</script></body></html>`,
  },
};

describe('import of a wrapped or referenced document', () => {
  const imports = useFixture(startImports);

  it('[imp 1] finds the description behind a documentation page, over the API and the command line', async () => {
    const assertFound = async (site: Record<string, string>) => {
      const [first = ''] = Object.keys(site);
      const responses = Object.fromEntries(Object.entries(site).map(([path, body]) => [path, { body }]));
      const plan = await imports.planFrom(first, responses);
      assert.equal((plan.body.operations as Json | undefined)?.operations, 1, `${first}: ${plan.text}`);
    };
    for (const [name, site] of Object.entries(pages)) {
      await assertFound(site);
      const printed = await command(['import', imports.upstream.url + Object.keys(site)[0], '--plan']);
      assert.match(printed.stdout, /1 operations: 1 whole/, `${name}: ${printed.stderr}`);
    }
    await assertFound({ '/ui': importCase('documents/swagger-ui.txt'), '/v3/api-docs': document });
  });

  it('[imp 1] resolves the documentation page again when the server is re-imported', async () => {
    const { upstream, toolhost } = imports;
    let current = openApi(paths);
    upstream.on('GET /again', () => ({ body: '<html><redoc spec-url="/again.json"></redoc></html>' }));
    upstream.on('GET /again.json', () => ({ body: current, headers: { etag: `"${JSON.stringify(current).length}"` } }));
    const body = { mode: 'create', url: `${upstream.url}/again`, include: ['*'], slug: 'behind-a-page' };
    const created = await toolhost.rest('POST', '/import', { body });
    assert.equal(created.status, 200, created.text);
    const compare = async () => {
      const reply = await toolhost.rest('POST', '/servers/behind-a-page/import/compare', { body: {} });
      const { changed, error } = (reply.body.imported ?? {}) as Json;
      assert.equal(error, undefined, reply.text);
      return changed;
    };
    assert.notEqual(await compare(), true);
    current = openApi({ ...paths, '/b': { get: { ...paths['/a'].get, operationId: 'getB' } } });
    assert.equal(await compare(), true);
  });

  it('[imp 3] rejects a page with several descriptions or none, and says what to do', async () => {
    const urls = JSON.stringify([{ url: '/one.json' }, { url: '/two.json' }]);
    const cases: [body: string, message: RegExp][] = [
      [
        `<html><script>SwaggerUIBundle({ urls: ${urls} })</script></html>`,
        /2 API descriptions\. Import one of them by its address: http:\S+\/one\.json, http:\S+\/two\.json/,
      ],
      [
        '<!doctype html><html><body>Hello</body></html>',
        /a web page without an API description\. Import .*\/openapi\.json/,
      ],
    ];
    for (const [body, message] of cases) {
      const { status, text } = await imports.planFrom('/page', { '/page': { body } });
      assert.equal(status, 400);
      assert.match(text, message);
    }
    const pasted = await imports.getRejection(importCase('documents/swagger-ui.txt'));
    assert.match(pasted, /shows the API description at .*\/v3\/api-docs.*Import that address/);
  });

  it('[imp 1] reads a document in Base64, in a JSON string, after comments, and in fenced code blocks', () => {
    const fenced = (language: string, text: string) => `\`\`\`${language}\n${text}\n\`\`\`\n`;
    const listOperations = (text: string) =>
      planDocument(text).all.map(({ operation }) => `${operation.method} ${operation.path}`);
    const curl = (path: string) => fenced('sh', `curl https://a.example.com/${path}`);
    for (const text of [
      importCase('documents/base64.json'),
      importCase('documents/comment-first.txt'),
      Buffer.from(document).toString('base64'),
      JSON.stringify(document),
      `/* made by\n a program */\n\n# and this\n${document}`,
      document.replace('{', '{ // the document\n').replace(/\}$/, ',}'),
      fenced('json', document),
      fenced('', importCase('documents/base64.json')),
      fenced('yaml', 'openapi: 3.1.0\nservers: [{url: https://a.example.com}]\npaths: {/a: {get: {summary: It}}}'),
      curl('a'),
    ])
      assert.deepEqual(listOperations(text), ['GET /a'], text.slice(0, 60));
    assert.deepEqual(listOperations(`${curl('a')}\nand\n${curl('b')}`), ['GET /a', 'GET /b']);
  });

  it('[imp 1] uses the document URL as base URL when servers are missing, unless its host only stores files', () => {
    const { servers: _, ...bare } = openApi(paths);
    const from = (documentUrl?: string) =>
      planDocument(bare, { include: ['*'], documentUrl, answers: { credential: 'none' } });
    const named = from('https://api.example.com/v1/openapi.json');
    assert.deepEqual([named.config?.base_url, named.questions], ['https://api.example.com', []]);
    const question = "The document has no address. What is the API's address, such as https://api.example.com?";
    for (const url of [undefined, 'https://raw.githubusercontent.com/a/b/main/openapi.json']) {
      const questions = from(url).questions.map((one) => [one.name, one.required, one.question]);
      assert.deepEqual(questions, [['server', true, question]]);
    }
  });
});

describe('import of an unsupported format', () => {
  const xml = '<?xml version="1.0"?>\n';
  const edmx = `${xml}<edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx"/>`;
  const blueprint = 'FORMAT: 1A\nHOST: https://a.example.com\n\n# Things [/things]\n## List [GET]\n+ Response 200';
  const graphql = 'type Query {\n  things(first: Int!): [Thing]\n}\ntype Thing { id: ID! }';
  const session = '$session = New-Object Microsoft.PowerShell.Commands.WebRequestSession';
  const formats: [document: string | object, name: RegExp, way: RegExp][] = [
    [`${xml}<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" name="A"/>`, /WSDL/, /curl commands/],
    [`${xml}<application xmlns="http://wadl.dev.java.net/2009/02"/>`, /WADL/, /OpenAPI document/],
    [edmx, /OData/, /odata-openapi3/],
    ['#%RAML 1.0\ntitle: A\n/a:\n  get:', /RAML/, /Convert it to OpenAPI/],
    [blueprint, /API Blueprint/, /apib2swagger/],
    ['syntax = "proto3";\npackage a;\nservice A { rpc Get (B) returns (C); }', /gRPC/, /protoc-gen-openapiv2/],
    [graphql, /GraphQL schema/, /Each becomes a tool/],
    ['import "@typespec/http";\nnamespace A;', /TypeSpec/, /tsp compile/],
    [`${session}\nInvoke-WebRequest -Uri "https://a.example.com"`, /PowerShell/, /Copy as cURL/],
    ['Invoke-RestMethod -Uri https://a.example.com -Method Post -Body $body', /PowerShell/, /Copy as cURL/],
    ['http POST api.example.com/things name=kim Authorization:"Bearer x"', /HTTPie/, /--offline/],
    ['https api.example.com/things q==a', /HTTPie/, /--offline/],
    ['wget --header="A: b" https://a.example.com/x', /wget/, /curl commands/],
    ['import requests\nrequests.get("https://a.example.com")', /program/, /curl commands/],
    ['https://api.example.com/openapi.json', /an address/, /as the address/],
    [{ asyncapi: '3.0.0', info: {}, channels: {} }, /AsyncAPI/, /OpenAPI document/],
    ['asyncapi: 2.6.0\nchannels: {}', /AsyncAPI/, /OpenAPI document/],
    [{ data: { __schema: { types: [] } } }, /GraphQL schema/, /Each becomes a tool/],
    [{ openrpc: '1.2.6', methods: [] }, /OpenRPC/, /becomes a tool/],
    [{ kind: 'discovery#restDescription', resources: {} }, /Google API discovery/, /Convert it/],
    [{ smithy: '2.0', shapes: {} }, /Smithy/, /Convert it/],
    [{ name: 'Dev', values: [], _postman_variable_scope: 'environment' }, /Postman environment/, /v2\.1/],
    [{ id: 'x', name: 'Old', order: [], requests: [] }, /format 1/, /v2\.1/],
    [{ version: '1', name: 'A', type: 'collection' }, /Bruno/, /cat \*\.bru/],
    [{ client: 'Thunder Client', requests: [] }, /Thunder Client/, /Export it/],
    [[{ v: 1, name: 'A', folders: [], requests: [] }], /Hoppscotch/, /Export it/],
    [{ $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' }, /JSON Schema/, /OpenAPI/],
    [{ arazzo: '1.0.0', sourceDescriptions: [] }, /Arazzo/, /sourceDescriptions/],
    ['%PDF-1.7 …', /PDF/, /curl commands/],
  ];

  it('[imp 3] names the format in the error, and the way to a supported one', () => {
    for (const [document, name, remedy] of formats) {
      const text = typeof document === 'string' ? document : JSON.stringify(document);
      const hasBoth = ({ problems: [{ message }] }: { problems: [{ message: string }] }) =>
        name.test(message) && remedy.test(message);
      assert.throws(() => planDocument(text), hasBoth, text.slice(0, 60));
    }
  });
});

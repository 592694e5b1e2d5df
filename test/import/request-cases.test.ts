import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openApi, listOutcomes as skippedOf } from '../support/import/import-plans.ts';
import { type Imported, type Imports, importCase, startImports } from '../support/import/import-service.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { type MultipartPart, parseMultipartBody } from '../support/upstreams/multipart.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';

const bytes = Buffer.from('%PNG \u0000é', 'latin1');
const base64 = bytes.toString('base64');
const png = `data:image/png;base64,${base64}`;
const binary = { type: 'string', format: 'binary' };

/** Returns a document with one operation `run` at `/run` that takes this body. */
function withBody(content: Json, method = 'post'): string {
  const operation = { operationId: 'run', requestBody: { required: true, content }, responses: {} };
  return JSON.stringify(openApi({ '/run': { [method]: operation } }));
}

const getContentType = ({ headers }: RecordedRequest) => headers['content-type'] ?? '';

describe('imported operation', () => {
  let imports: Imports;
  before(async () => {
    imports = await startImports();
  });
  after(() => imports.stop());

  const listReportOutcomes = ({ report }: Imported) => report.map(({ outcome }) => outcome);

  async function sendParts(content: Json, args: Json): Promise<Record<string, MultipartPart>> {
    const imported = await imports.importDocument(withBody(content));
    const sent = await imported.callTool('run', args);
    return Object.fromEntries(parseMultipartBody(getContentType(sent), sent.body).map((part) => [part.name, part]));
  }

  it('[imp 2] sends an optional file as bytes with a file name, however the document declares it optional', async () => {
    const imported = await imports.importDocument(importCase('openapi/optional-file.yaml'));
    assert.deepEqual(listReportOutcomes(imported), ['whole']);
    const sent = await imported.callTool('add_scan', { scan: png, scan_name: 'a.png' });
    const [scan] = parseMultipartBody(getContentType(sent), sent.body);
    assert.deepEqual([scan?.name, scan?.fileName, scan?.type], ['scan', 'a.png', 'image/png']);
    assert.ok(scan?.content.equals(bytes));
    const files: Json = {
      oneOf: [{ type: 'null' }, { type: 'array', items: binary }],
    };
    const unnamed = { type: ['string', 'null'], contentMediaType: 'application/octet-stream' };
    const schema = {
      type: 'object',
      properties: { files, upload: unnamed, picture: { contentMediaType: 'image/png' } },
    };
    const parts = await sendParts(
      { 'multipart/form-data': { schema } },
      { files: [base64], files_name: 'f', upload: base64, upload_name: 'u', picture: base64, picture_name: 'p' },
    );
    for (const name of ['files', 'upload', 'picture']) assert.ok(parts[name]?.content.equals(bytes), name);
    assert.equal(parts.picture?.type, 'image/png');
  });

  it('[imp 2] sends the content types that the document declares for parts', async () => {
    const imported = await imports.importDocument(importCase('openapi/part-with-a-type.yaml'));
    const sent = await imported.callTool('add_letter', { about: '{"a":1}', page: base64, page_name: 'p' });
    const [about] = parseMultipartBody(getContentType(sent), sent.body);
    assert.deepEqual([about?.type, about?.content.toString()], ['application/json', '{"a":1}']);
    const properties = {
      note: { type: 'string' },
      tags: { type: 'array', items: { type: 'string' } },
      meta: { anyOf: [{ type: 'object', properties: { a: { type: 'string' } } }, { type: 'null' }] },
      order: { type: 'object', properties: { a: { type: 'string' } } },
      picture: binary,
    };
    const encoding = {
      note: { contentType: 'text/markdown' },
      tags: { contentType: 'text/x-tag' },
      order: { contentType: 'application/xml' },
      picture: { contentType: 'image/png, image/jpeg' },
    };
    const content = { 'multipart/form-data': { schema: { type: 'object', properties }, encoding } };
    const args = { note: '# a', tags: ['x'], meta: { a: 'b' }, order: '<a/>', picture: base64, picture_name: 'p' };
    const parts = await sendParts(content, args);
    assert.deepEqual(
      Object.values(parts).map(({ name, type, content: text }) => [name, type, name === 'picture' || text.toString()]),
      [
        ['note', 'text/markdown', '# a'],
        ['tags', 'text/x-tag', 'x'],
        ['meta', 'application/json', '{"a":"b"}'],
        ['order', 'application/xml', '<a/>'],
        ['picture', 'image/png', true],
      ],
    );
    const jpeg = await sendParts(content, { picture: png.replace('png', 'jpeg'), picture_name: 'p' });
    assert.equal(jpeg.picture?.type, 'image/jpeg');
  });

  it('[imp 2] sends multipart bodies other than form-data as described', async () => {
    const imported = await imports.importDocument(importCase('openapi/multipart-related.yaml'));
    assert.deepEqual(listReportOutcomes(imported), ['whole']);
    const sent = await imported.callTool('add_document', { metadata: { title: 'T' }, media: png, media_name: 'm.png' });
    assert.match(getContentType(sent), /^multipart\/related; type="application\/json"; boundary=[\w-]+$/);
    const parts = parseMultipartBody(getContentType(sent), sent.body);
    assert.deepEqual(
      parts.map(({ type }) => type),
      ['application/json', 'image/png'],
    );
    const properties = { media: binary, note: { type: 'string' } };
    const mixed = await imports.importDocument(
      withBody({ 'multipart/mixed': { schema: { type: 'object', properties } } }),
    );
    const mixedRequest = await mixed.callTool('run', { note: 'n', media: base64, media_name: 'm' });
    assert.match(getContentType(mixedRequest), /^multipart\/mixed; boundary=/);
    assert.deepEqual(
      parseMultipartBody(getContentType(mixedRequest), mixedRequest.body).map(({ type }) => type),
      ['application/octet-stream', 'text/plain; charset=utf-8'],
    );
    const [unnamed] = skippedOf(withBody({ 'multipart/mixed': { schema: { type: 'string' } } }));
    assert.match(unnamed ?? '', /skipped; the body of type "multipart\/mixed", whose parts have no names$/);
  });

  it('[imp 2] sends bytes of any type with the type of their data URL', async () => {
    const avatar = await imports.importDocument(importCase('openapi/image-of-any-type.yaml'));
    const image = await avatar.callTool('set_avatar', { file: png });
    assert.deepEqual([getContentType(image), image.body], ['image/png', bytes]);
    const blob = await imports.importDocument(importCase('openapi/bytes-of-any-type.yaml'));
    const plain = await blob.callTool('set_blob', { file: base64 });
    assert.deepEqual([getContentType(plain), plain.body], ['application/octet-stream', bytes]);
    const two = await imports.importDocument(
      withBody({ 'image/png': { schema: binary }, 'image/jpeg': { schema: binary } }),
    );
    assert.equal(getContentType(await two.callTool('run', { file: base64 })), 'image/png');
    assert.equal(getContentType(await two.callTool('run', { file: png.replace('png', 'jpeg') })), 'image/jpeg');
    const empty = await imports.importDocument(withBody({ '*/*': {} }));
    assert.equal(getContentType(await empty.callTool('run', { file: png })), 'image/png');
    const object = { type: 'object', properties: { a: { type: 'string' } } };
    const json = await imports.importDocument(withBody({ '*/*': { schema: object } }));
    assert.equal((await json.callTool('run', { a: 'b' })).body.toString(), '{"a":"b"}');
  });

  it('[imp 2] never replaces the declared content type of a body or its parameters', async () => {
    const json = { schema: { type: 'object', properties: { a: { type: 'string' } } } };
    const type = 'application/json; odata=verbose';
    const imported = await imports.importDocument(withBody({ [type]: json }));
    const sent = await imported.callTool('run', { a: 'b' });
    assert.deepEqual([getContentType(sent), sent.body.toString()], [type, '{"a":"b"}']);
    for (const lines of [
      'application/x-ndjson',
      'application/jsonl',
      'application/json-seq',
      'application/json-lines',
    ]) {
      const stream = await imports.importDocument(withBody({ [lines]: { schema: { type: 'string' } } }));
      const text = '{"a":1}\n{"b":2}\n';
      const request = await stream.callTool('run', { body: text });
      assert.deepEqual([getContentType(request), request.body.toString()], [lines, text]);
    }
  });

  it('[imp 2] sends the fields of an object as separate parts when its style requires it', async () => {
    const properties = { metadata: { type: 'object', properties: { comment: { type: 'string' } } } };
    const encoding = { metadata: { style: 'form' } };
    const parts = await sendParts(
      { 'multipart/form-data': { schema: { type: 'object', properties }, encoding } },
      { metadata: { comment: 'c' } },
    );
    assert.equal(parts.comment?.content.toString(), 'c');
  });

  it('[imp 2] sends the file of a DELETE request exactly once', async () => {
    const schema = { type: 'object', properties: { file: binary } };
    const imported = await imports.importDocument(withBody({ 'multipart/form-data': { schema } }, 'delete'));
    const sent = await imported.callTool('run', { file: base64, file_name: 'f' });
    assert.deepEqual(
      parseMultipartBody(getContentType(sent), sent.body).map(({ name, fileName }) => [name, fileName]),
      [['file', 'f']],
    );
  });

  /** Calls each tool of a document with one path with these arguments, and returns the URLs of the requests. */
  async function listRequestUrls(path: string, parameters: Json[], args: Json, choices: Json = {}): Promise<string[]> {
    const operation = { operationId: 'run', parameters, responses: {} };
    const imported = await imports.importDocument(JSON.stringify(openApi({ [path]: { get: operation } })), choices);
    assert.deepEqual(
      listReportOutcomes(imported),
      imported.names.map(() => 'whole'),
      path,
    );
    const urls: string[] = [];
    for (const tool of imported.config.tools) {
      const names = Object.keys(tool.input_schema as Json);
      const ownArguments = Object.fromEntries(Object.entries(args).filter(([name]) => names.includes(name)));
      urls.push((await imported.callTool(String(tool.name), ownArguments)).url);
    }
    return urls;
  }
  const createPathParameter = (name: string, fields: Json = {}): Json => ({
    ...{ name, in: 'path', required: true, schema: { type: 'string' } },
    ...fields,
  });

  it('[imp 2] has an argument for a path parameter in any spelling', async () => {
    const users = await imports.importDocument(importCase('openapi/colon-path.yaml'));
    assert.equal((await users.callTool('list_posts', { userId: 'v' })).url, '/users/v/posts');
    for (const spelling of [
      ...[
        '{id}',
        ':id',
        '<id>',
        '<int:id>',
        '{{id}}',
        '%7Bid%7D',
        '{id:int}',
        '{id:[0-9]{2,3}}',
        ':id(\\d+)',
        '{id=*}',
      ],
    ]) {
      for (const parameters of [[createPathParameter('id')], []])
        assert.deepEqual(
          await listRequestUrls(`/things/${spelling}/all`, parameters, { id: 'a/b' }),
          ['/things/a%2Fb/all'],
          spelling,
        );
    }
    assert.deepEqual(await listRequestUrls('/a:id/v:cancel', [createPathParameter('id')], { id: 'x' }), [
      '/ax/v:cancel',
    ]);
    const [skipped] = skippedOf(openApi({ '/things/{id': { get: { responses: {} } } }));
    assert.match(skipped ?? '', /skipped; the path segment "\{id", whose brackets contain no parameter name$/);
  });

  it('[imp 2] keeps the slashes of a parameter that matches the remainder of the path', async () => {
    const files = await imports.importDocument(importCase('openapi/rest-of-the-path.yaml'));
    assert.equal((await files.callTool('get_file', { path: 'a/b.txt' })).url, '/files/a/b.txt');
    const spellings = [
      '{rest*}',
      '{+rest}',
      '{*rest}',
      '{**rest}',
      '{rest...}',
      '{rest:.*}',
      '{rest+}',
      '<path:rest>',
      ':rest*',
    ];
    for (const spelling of [...spellings, '{rest=shelves/*/books/*}'])
      for (const parameters of [[createPathParameter('rest')], []])
        assert.deepEqual(
          await listRequestUrls(`/f/${spelling}`, parameters, { rest: 'a/b c' }),
          ['/f/a/b%20c'],
          spelling,
        );
    assert.deepEqual(await listRequestUrls('/f{/rest*}', [createPathParameter('rest')], { rest: 'a/b' }), ['/f/a/b']);
    const marked = createPathParameter('rest', { 'x-multi-segment': true });
    assert.deepEqual(await listRequestUrls('/f/{rest}', [marked], { rest: 'a/b' }), ['/f/a/b']);
  });

  it('[imp 2] creates a tool with and a tool without an optional segment', async () => {
    const boxes = await imports.importDocument(importCase('openapi/optional-segment.yaml'));
    assert.deepEqual(boxes.names, ['empty_box', 'empty_box_without_label']);
    assert.deepEqual(listReportOutcomes(boxes), ['whole', 'whole']);
    const sent = await boxes.callTool('empty_box', { id: 'v', label: 'w' });
    assert.deepEqual([sent.method, sent.url], ['DELETE', '/boxes/v/w']);
    assert.equal((await boxes.callTool('empty_box_without_label', { id: 'v' })).url, '/boxes/v');
    for (const path of ['/a/:x?', '/a/{x:int?}', '/a[/{x}]', '/a(/:x)', '/a{/x}'])
      assert.deepEqual(await listRequestUrls(path, [], { x: '1' }), ['/a/1', '/a'], path);
    assert.deepEqual(await listRequestUrls('/a/{x?}/{y?}', [], { x: '1', y: '2' }), ['/a/1/2', '/a/1', '/a']);
  });

  it('[imp 2] sends a query that is part of the path once, with the values of its parameters', async () => {
    const near = await imports.importDocument(importCase('openapi/query-in-the-path.yaml'));
    assert.equal((await near.callTool('list_near', { zip: 'v' })).url, '/near?zip=v');
    const query = (name: string) => ({ name, in: 'query', schema: { type: 'string' } });
    assert.deepEqual(await listRequestUrls('/near?z={zip}', [createPathParameter('zip')], { z: 'v' }), ['/near?z=v']);
    assert.deepEqual(await listRequestUrls('/list?view=status', [query('view')], {}), ['/list?view=status']);
    assert.deepEqual(await listRequestUrls('/list?view=', [query('view')], { view: 'a' }), ['/list?view=a']);
    assert.deepEqual(await listRequestUrls('/list{?q,r}', [query('q')], { q: 'a', r: 'b' }), ['/list?q=a&r=b']);
    assert.deepEqual(await listRequestUrls('/list{?q,r}', [], { r: 'b' }), ['/list?r=b']);
  });

  it('[imp 2] sends a querystring parameter as the whole query', async () => {
    const rows = await imports.importDocument(importCase('openapi/querystring.yaml'));
    assert.deepEqual(listReportOutcomes(rows), ['whole']);
    const { url } = await rows.callTool('list_rows', { query: { area: 'a b', years: [1, 2] } });
    assert.equal(url, '/rows?area=a%20b&years=1&years=2');
    const createQuerystring = (type: string, schema: Json) => ({
      name: 'q',
      in: 'querystring',
      content: { [type]: { schema } },
    });
    const object = { type: 'object', properties: { a: { type: 'integer' } } };
    assert.deepEqual(await listRequestUrls('/rows', [createQuerystring('application/json', object)], { q: { a: 1 } }), [
      '/rows?%7B%22a%22%3A1%7D',
    ]);
    assert.deepEqual(
      await listRequestUrls('/rows', [createQuerystring('text/plain', { type: 'string' })], { q: '$.a&b=c' }),
      ['/rows?%24.a%26b%3Dc'],
    );
    const key = { components: { securitySchemes: { key: { type: 'apiKey', in: 'query', name: 'key' } } } };
    const paths = {
      '/rows': { get: { parameters: [createQuerystring('text/plain', { type: 'string' })], responses: {} } },
    };
    const [skipped] = skippedOf(openApi(paths, { ...key, security: [{ key: [] }] }));
    assert.match(skipped ?? '', /partial; the input in "querystring" "q": makes this argument the whole query/);
  });

  it('[imp 2] keeps reserved characters where the document allows them, and encodes JSON in a path', async () => {
    const reserved = { name: 'p', in: 'query', allowReserved: true, schema: { type: 'string' } };
    assert.deepEqual(await listRequestUrls('/a', [reserved], { p: "/x:y@z!$'()*,;?&=+#" }), [
      "/a?p=/x:y@z!$'()*,;?%26%3D%2B%23",
    ]);
    const json = {
      ...createPathParameter('id'),
      schema: undefined,
      content: { 'application/json': { schema: { type: 'string' } } },
    };
    assert.deepEqual(await listRequestUrls('/a/{id}', [json], { id: 'two words' }), ['/a/%22two%20words%22']);
  });

  it('[imp 2] returns every declared response header that does not belong to HTTP itself', async () => {
    const analyses = await imports.importDocument(importCase('openapi/operation-location.yaml'));
    assert.deepEqual(analyses.config.tools[0]?.response_headers, ['Operation-Location', 'Retry-After']);
    const named = ['X-Page', 'Content-Type', 'Cache-Control', 'X-RateLimit-Limit', 'Set-Cookie', 'x-page', 'ETag'];
    const headers = Object.fromEntries(named.map((name) => [name, { schema: { type: 'string' } }]));
    const responses = { 200: { description: 'ok', headers } };
    const imported = await imports.importDocument(
      JSON.stringify(openApi({ '/a': { get: { operationId: 'a', responses } } })),
    );
    assert.deepEqual(imported.config.tools[0]?.response_headers, ['x-page', 'X-RateLimit-Limit', 'ETag']);
  });

  it('[imp 2] lets an agent choose one of several response types', async () => {
    const report = await imports.importDocument(importCase('openapi/accept-without-json.yaml'));
    assert.equal(
      (await report.callTool('get_report', { Accept: 'application/pdf' })).headers.accept,
      'application/pdf',
    );
    assert.equal((await report.callTool('get_report')).headers.accept, 'text/csv');
    const accept = { name: 'accept', in: 'header', schema: { enum: ['text/html', 'application/json'] } };
    const paths = { '/a': { get: { operationId: 'a', parameters: [accept], responses: {} } } };
    const optional = await imports.importDocument(JSON.stringify(openApi(paths)));
    assert.equal((await optional.callTool('a')).headers.accept, 'application/json');
    assert.equal((await optional.callTool('a', { Accept: 'text/html' })).headers.accept, 'text/html');
  });

  it('[imp 2] sends cookie parameters together with the credential, and never sends the credential cookie twice', async () => {
    const cookie = (name: string, schema: Json) => ({ name, in: 'cookie', explode: false, schema });
    const parameters = [
      cookie('theme', { type: 'string' }),
      cookie('tags', { type: 'array', items: { type: 'string' } }),
      cookie('sid', { type: 'string' }),
    ];
    const paths = { '/a': { get: { operationId: 'a', parameters, responses: {} } } };
    const components = { securitySchemes: { login: { type: 'apiKey', in: 'cookie', name: 'sid' } } };
    const imported = await imports.importDocument(
      JSON.stringify(openApi(paths, { components, security: [{ login: [] }] })),
    );
    assert.deepEqual(listReportOutcomes(imported), ['whole']);
    const { rawHeaders } = await imported.callTool('a', { theme: 'dark; é', tags: ['x', 'y,z'] });
    const cookieHeaders = rawHeaders.filter((_, index) => /^cookie$/i.test(rawHeaders[index - 1] ?? ''));
    assert.deepEqual(cookieHeaders, ['theme=dark%3B%20%C3%A9; tags=x,y%2Cz; sid=the-secret']);
  });

  it('[imp 2] sends the methods of OpenAPI 3.2 and of WebDAV', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    const requestBody = { required: true, content: { 'application/json': { schema } } };
    const operation = (operationId: string, fields: Json = {}) => ({ operationId, responses: {}, ...fields });
    const destination = { name: 'Destination', in: 'header', required: true, schema: { type: 'string' } };
    const paths = {
      '/a': {
        query: operation('ask', { requestBody }),
        additionalOperations: {
          COPY: operation('copy', { parameters: [destination] }),
          PURGE: operation('purge', { requestBody }),
          CONNECT: operation('connect'),
        },
      },
    };
    const imported = await imports.importDocument(JSON.stringify(openApi(paths, { openapi: '3.2.0' })));
    assert.deepEqual(listReportOutcomes(imported), ['whole', 'whole', 'whole', 'skipped']);
    for (const [tool, method, args] of [
      ['ask', 'QUERY', { a: 'b' }],
      ['purge', 'PURGE', { a: 'b' }],
      ['copy', 'COPY', { Destination: '/b' }],
    ] as const) {
      const sent = await imported.callTool(tool, args);
      assert.deepEqual([sent.method, sent.body.toString()], [method, tool === 'copy' ? '' : '{"a":"b"}']);
    }
  });
});

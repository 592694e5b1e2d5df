import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listOutcomes, openApi } from '../support/import/import-plans.ts';
import { type Imported, importCase, startImports } from '../support/import/import-service.ts';
import { pluck } from '../support/pluck.ts';
import { cookie, header, inPath, integer, jsonBody, listOf, object, query, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { parseMultipartBody } from '../support/upstreams/multipart.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

const bytes = Buffer.from('%PNG \u0000é', 'latin1');
const base64 = bytes.toString('base64');
const png = `data:image/png;base64,${base64}`;
const binary = { type: 'string', format: 'binary' };

const word = object({ a: text });

/** Returns a document with one operation `run` at `/run` that takes this body. */
const withBody = (content: Json, method = 'post') =>
  JSON.stringify(openApi({ '/run': { [method]: { operationId: 'run', requestBody: { required: true, content } } } }));

const getContentType = ({ headers }: RecordedRequest) => headers['content-type'] ?? '';
const parseParts = (request: RecordedRequest) => parseMultipartBody(getContentType(request), request.body);
const listReportOutcomes = ({ report }: Imported) => pluck(report, 'outcome');

describe('imported operation', () => {
  const imports = useFixture(startImports);
  const importCaseFile = (name: string) => imports.importDocument(importCase(`openapi/${name}`));
  const importGet = (fields: Json, more: Json = {}) =>
    imports.importDocument(JSON.stringify(openApi({ '/a': { get: { operationId: 'a', ...fields } } }, more)));
  const sendBody = async (content: Json, args: Json, method?: string) =>
    (await imports.importDocument(withBody(content, method))).callTool('run', args);
  const sendParts = async (content: Json, args: Json) =>
    Object.fromEntries(parseParts(await sendBody(content, args)).map((part) => [part.name, part]));

  it('[imp 2] sends an optional file as bytes with a file name, however the document declares it optional', async () => {
    const imported = await importCaseFile('optional-file.yaml');
    assert.deepEqual(listReportOutcomes(imported), ['whole']);
    const sent = await imported.callTool('add_scan', { scan: png, scan_name: 'a.png' });
    const [scan] = parseParts(sent);
    assert.deepEqual([scan?.name, scan?.fileName, scan?.type], ['scan', 'a.png', 'image/png']);
    assert.ok(scan?.content.equals(bytes));
    const files: Json = { oneOf: [{ type: 'null' }, listOf(binary)] };
    const unnamed = { type: ['string', 'null'], contentMediaType: 'application/octet-stream' };
    const schema = object({ files, upload: unnamed, picture: { contentMediaType: 'image/png' } });
    const parts = await sendParts(
      { 'multipart/form-data': { schema } },
      { files: [base64], files_name: 'f', upload: base64, upload_name: 'u', picture: base64, picture_name: 'p' },
    );
    for (const name of ['files', 'upload', 'picture']) assert.ok(parts[name]?.content.equals(bytes), name);
    assert.equal(parts.picture?.type, 'image/png');
  });

  it('[imp 2] sends the content types that the document declares for parts', async () => {
    const imported = await importCaseFile('part-with-a-type.yaml');
    const sent = await imported.callTool('add_letter', { about: '{"a":1}', page: base64, page_name: 'p' });
    const [about] = parseParts(sent);
    assert.deepEqual([about?.type, about?.content.toString()], ['application/json', '{"a":1}']);
    const properties = {
      note: text,
      tags: listOf(text),
      meta: { anyOf: [word, { type: 'null' }] },
      order: word,
      picture: binary,
    };
    const encoding = {
      note: { contentType: 'text/markdown' },
      tags: { contentType: 'text/x-tag' },
      order: { contentType: 'application/xml' },
      picture: { contentType: 'image/png, image/jpeg' },
    };
    const content = { 'multipart/form-data': { schema: object(properties), encoding } };
    const args = { note: '# a', tags: ['x'], meta: { a: 'b' }, order: '<a/>', picture: base64, picture_name: 'p' };
    const parts = Object.values(await sendParts(content, args)).map((part) => [part.name, part.type, part.content]);
    assert.deepEqual(parts, [
      ['note', 'text/markdown', Buffer.from('# a')],
      ['tags', 'text/x-tag', Buffer.from('x')],
      ['meta', 'application/json', Buffer.from('{"a":"b"}')],
      ['order', 'application/xml', Buffer.from('<a/>')],
      ['picture', 'image/png', bytes],
    ]);
    const jpeg = await sendParts(content, { picture: png.replace('png', 'jpeg'), picture_name: 'p' });
    assert.equal(jpeg.picture?.type, 'image/jpeg');
  });

  it('[imp 2] sends multipart bodies other than form-data as described', async () => {
    const imported = await importCaseFile('multipart-related.yaml');
    assert.deepEqual(listReportOutcomes(imported), ['whole']);
    const sent = await imported.callTool('add_document', { metadata: { title: 'T' }, media: png, media_name: 'm.png' });
    assert.match(getContentType(sent), /^multipart\/related; type="application\/json"; boundary=[\w-]+$/);
    assert.deepEqual(pluck(parseParts(sent), 'type'), ['application/json', 'image/png']);
    const schema = object({ media: binary, note: text });
    const mixed = await sendBody({ 'multipart/mixed': { schema } }, { note: 'n', media: base64, media_name: 'm' });
    assert.match(getContentType(mixed), /^multipart\/mixed; boundary=/);
    const types = pluck(parseParts(mixed), 'type');
    assert.deepEqual(types, ['application/octet-stream', 'text/plain; charset=utf-8']);
    const [unnamed = ''] = listOutcomes(withBody({ 'multipart/mixed': { schema: text } }));
    assert.match(unnamed, /skipped; the body of type "multipart\/mixed", whose parts have no names$/);
  });

  it('[imp 2] sends bytes of any type with the type of their data URL', async () => {
    const image = await (await importCaseFile('image-of-any-type.yaml')).callTool('set_avatar', { file: png });
    assert.deepEqual([getContentType(image), image.body], ['image/png', bytes]);
    const plain = await (await importCaseFile('bytes-of-any-type.yaml')).callTool('set_blob', { file: base64 });
    assert.deepEqual([getContentType(plain), plain.body], ['application/octet-stream', bytes]);
    const two = { 'image/png': { schema: binary }, 'image/jpeg': { schema: binary } };
    assert.equal(getContentType(await sendBody(two, { file: base64 })), 'image/png');
    assert.equal(getContentType(await sendBody(two, { file: png.replace('png', 'jpeg') })), 'image/jpeg');
    assert.equal(getContentType(await sendBody({ '*/*': {} }, { file: png })), 'image/png');
    assert.equal((await sendBody({ '*/*': { schema: word } }, { a: 'b' })).body.toString(), '{"a":"b"}');
  });

  it('[imp 2] never replaces the declared content type of a body or its parameters', async () => {
    const lines = '{"a":1}\n{"b":2}\n';
    for (const [type, schema, args, sent] of [
      ['application/json; odata=verbose', word, { a: 'b' }, '{"a":"b"}'],
      ...['x-ndjson', 'jsonl', 'json-seq', 'json-lines'].map(
        (subtype) => [`application/${subtype}`, text, { body: lines }, lines] as const,
      ),
    ] as const) {
      const request = await sendBody({ [type]: { schema } }, args);
      assert.deepEqual([getContentType(request), request.body.toString()], [type, sent]);
    }
  });

  it('[imp 2] sends the fields of an object as separate parts when its style requires it', async () => {
    const schema = object({ metadata: object({ comment: text }) });
    const content = { 'multipart/form-data': { schema, encoding: { metadata: { style: 'form' } } } };
    const parts = await sendParts(content, { metadata: { comment: 'c' } });
    assert.equal(parts.comment?.content.toString(), 'c');
  });

  it('[imp 2] sends the file of a DELETE request exactly once', async () => {
    const content = { 'multipart/form-data': { schema: object({ file: binary }) } };
    const sent = await sendBody(content, { file: base64, file_name: 'f' }, 'delete');
    const parts = parseParts(sent).map(({ name, fileName }) => [name, fileName]);
    assert.deepEqual(parts, [['file', 'f']]);
  });

  /** Calls each tool of a document with one path with these arguments, and checks the URLs of the requests. */
  async function assertUrls(path: string, parameters: Json[], args: Json, ...expected: string[]): Promise<void> {
    const imported = await imports.importDocument(JSON.stringify(openApi({ [path]: { get: { parameters } } })));
    assert.deepEqual(new Set(listReportOutcomes(imported)), new Set(['whole']), path);
    const urls: string[] = [];
    for (const tool of imported.config.tools) {
      const names = Object.keys(tool.input_schema as Json);
      const ownArguments = Object.fromEntries(Object.entries(args).filter(([name]) => names.includes(name)));
      urls.push((await imported.callTool(String(tool.name), ownArguments)).url);
    }
    assert.deepEqual(urls, expected, path);
  }

  it('[imp 2] has an argument for a path parameter in any spelling', async () => {
    const users = await importCaseFile('colon-path.yaml');
    assert.equal((await users.callTool('list_posts', { userId: 'v' })).url, '/users/v/posts');
    const spellings = '{id} :id <id> <int:id> {{id}} %7Bid%7D {id:int} {id:[0-9]{2,3}} :id(\\d+) {id=*}'.split(' ');
    for (const spelling of spellings)
      for (const parameters of [[inPath('id')], []])
        await assertUrls(`/things/${spelling}/all`, parameters, { id: 'a/b' }, '/things/a%2Fb/all');
    await assertUrls('/a:id/v:cancel', [inPath('id')], { id: 'x' }, '/ax/v:cancel');
    const [skipped = ''] = listOutcomes(openApi({ '/things/{id': { get: { responses: {} } } }));
    assert.match(skipped, /skipped; the path segment "\{id", whose brackets contain no parameter name$/);
  });

  it('[imp 2] keeps the slashes of a parameter that matches the remainder of the path', async () => {
    const files = await importCaseFile('rest-of-the-path.yaml');
    assert.equal((await files.callTool('get_file', { path: 'a/b.txt' })).url, '/files/a/b.txt');
    const spellings =
      '{rest*} {+rest} {*rest} {**rest} {rest...} {rest:.*} {rest+} <path:rest> :rest* {rest=shelves/*/books/*}';
    for (const spelling of spellings.split(' '))
      for (const parameters of [[inPath('rest')], []])
        await assertUrls(`/f/${spelling}`, parameters, { rest: 'a/b c' }, '/f/a/b%20c');
    await assertUrls('/f{/rest*}', [inPath('rest')], { rest: 'a/b' }, '/f/a/b');
    await assertUrls('/f/{rest}', [inPath('rest', text, { 'x-multi-segment': true })], { rest: 'a/b' }, '/f/a/b');
  });

  it('[imp 2] creates a tool with and a tool without an optional segment', async () => {
    const boxes = await importCaseFile('optional-segment.yaml');
    assert.deepEqual(boxes.names, ['empty_box', 'empty_box_without_label']);
    assert.deepEqual(listReportOutcomes(boxes), ['whole', 'whole']);
    const sent = await boxes.callTool('empty_box', { id: 'v', label: 'w' });
    assert.deepEqual([sent.method, sent.url], ['DELETE', '/boxes/v/w']);
    assert.equal((await boxes.callTool('empty_box_without_label', { id: 'v' })).url, '/boxes/v');
    for (const path of ['/a/:x?', '/a/{x:int?}', '/a[/{x}]', '/a(/:x)', '/a{/x}'])
      await assertUrls(path, [], { x: '1' }, '/a/1', '/a');
    await assertUrls('/a/{x?}/{y?}', [], { x: '1', y: '2' }, '/a/1/2', '/a/1', '/a');
  });

  it('[imp 2] sends a query that is part of the path once, with the values of its parameters', async () => {
    const near = await importCaseFile('query-in-the-path.yaml');
    assert.equal((await near.callTool('list_near', { zip: 'v' })).url, '/near?zip=v');
    await assertUrls('/near?z={zip}', [inPath('zip')], { z: 'v' }, '/near?z=v');
    await assertUrls('/list?view=status', [query('view')], {}, '/list?view=status');
    await assertUrls('/list?view=', [query('view')], { view: 'a' }, '/list?view=a');
    await assertUrls('/list{?q,r}', [query('q')], { q: 'a', r: 'b' }, '/list?q=a&r=b');
    await assertUrls('/list{?q,r}', [], { r: 'b' }, '/list?r=b');
  });

  it('[imp 2] sends a querystring parameter as the whole query', async () => {
    const rows = await importCaseFile('querystring.yaml');
    assert.deepEqual(listReportOutcomes(rows), ['whole']);
    const { url } = await rows.callTool('list_rows', { query: { area: 'a b', years: [1, 2] } });
    assert.equal(url, '/rows?area=a%20b&years=1&years=2');
    const asJson = { name: 'q', in: 'querystring', ...jsonBody(object({ a: integer })) };
    await assertUrls('/rows', [asJson], { q: { a: 1 } }, '/rows?%7B%22a%22%3A1%7D');
    const asText = { name: 'q', in: 'querystring', content: { 'text/plain': { schema: text } } };
    await assertUrls('/rows', [asText], { q: '$.a&b=c' }, '/rows?%24.a%26b%3Dc');
    const components = { securitySchemes: { key: { type: 'apiKey', in: 'query', name: 'key' } } };
    const withKey = openApi({ '/rows': { get: { parameters: [asText] } } }, { components, security: [{ key: [] }] });
    const [skipped = ''] = listOutcomes(withKey);
    assert.match(skipped, /partial; the input in "querystring" "q": makes this argument the whole query/);
  });

  it('[imp 2] keeps reserved characters where the document allows them, and encodes JSON in a path', async () => {
    const reserved = query('p', text, { allowReserved: true });
    await assertUrls('/a', [reserved], { p: "/x:y@z!$'()*,;?&=+#" }, "/a?p=/x:y@z!$'()*,;?%26%3D%2B%23");
    const json = { ...inPath('id', undefined, jsonBody(text)), schema: undefined };
    await assertUrls('/a/{id}', [json], { id: 'two words' }, '/a/%22two%20words%22');
  });

  it('[imp 2] returns every declared response header that does not belong to HTTP itself', async () => {
    const analyses = await importCaseFile('operation-location.yaml');
    assert.deepEqual(analyses.config.tools[0]?.response_headers, ['Operation-Location', 'Retry-After']);
    const named = ['X-Page', 'Content-Type', 'Cache-Control', 'X-RateLimit-Limit', 'Set-Cookie', 'x-page', 'ETag'];
    const headers = Object.fromEntries(named.map((name) => [name, { schema: text }]));
    const imported = await importGet({ responses: { 200: { description: 'ok', headers } } });
    assert.deepEqual(imported.config.tools[0]?.response_headers, ['x-page', 'X-RateLimit-Limit', 'ETag']);
  });

  it('[imp 2] lets an agent choose one of several response types', async () => {
    const report = await importCaseFile('accept-without-json.yaml');
    const accepted = async (imported: Imported, tool: string, args?: Json) =>
      (await imported.callTool(tool, args)).headers.accept;
    assert.equal(await accepted(report, 'get_report', { Accept: 'application/pdf' }), 'application/pdf');
    assert.equal(await accepted(report, 'get_report'), 'text/csv');
    const optional = await importGet({ parameters: [header('accept', { enum: ['text/html', 'application/json'] })] });
    assert.equal(await accepted(optional, 'a'), 'application/json');
    assert.equal(await accepted(optional, 'a', { Accept: 'text/html' }), 'text/html');
  });

  it('[imp 2] sends cookie parameters together with the credential, and never sends the credential cookie twice', async () => {
    const parameters = [cookie('theme'), cookie('tags', listOf(text), { explode: false }), cookie('sid')];
    const components = { securitySchemes: { login: { type: 'apiKey', in: 'cookie', name: 'sid' } } };
    const imported = await importGet({ parameters }, { components, security: [{ login: [] }] });
    assert.deepEqual(listReportOutcomes(imported), ['whole']);
    const { rawHeaders } = await imported.callTool('a', { theme: 'dark; é', tags: ['x', 'y,z'] });
    const cookieHeaders = rawHeaders.filter((_, index) => /^cookie$/i.test(rawHeaders[index - 1] ?? ''));
    assert.deepEqual(cookieHeaders, ['theme=dark%3B%20%C3%A9; tags=x,y%2Cz; sid=the-secret']);
  });

  it('[imp 2] sends the methods of OpenAPI 3.2 and of WebDAV', async () => {
    const requestBody = jsonBody(word, true);
    const operation = (operationId: string, fields: Json = {}) => ({ operationId, ...fields });
    const destination = header('Destination', text, { required: true });
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

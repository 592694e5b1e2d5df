import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, getResultText } from '../support/one-tool.ts';
import { integer, listOf, text } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';
import { useOneTool } from '../support/use-one-tool.ts';

const optional = { type: 'string', optional: true };
const file = { type: 'string', content: 'base64' };
const bytes = Buffer.from([0, 1, 2, 0xff, 13, 10, 10, 0xfe, 45, 45]);
const base64 = bytes.toString('base64');
const array = { type: 'array' };
const object = { type: 'object' };
const withType = (type: string) => ({ headers: { 'Content-Type': type } });

/** Returns the parts of a multipart body: the name, then the text or the file. */
async function parseParts({ headers, body }: RecordedRequest) {
  const type = String(headers['content-type']);
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  const parse = async (value: string | File) =>
    typeof value === 'string'
      ? value
      : { name: value.name, type: value.type, bytes: Buffer.from(await value.arrayBuffer()).toString('base64') };
  return Promise.all([...form].map(async ([name, value]) => [name, await parse(value)]));
}

describe('bodies and files', () => {
  const oneTool = useOneTool({ method: 'POST' });
  const { send, getRefusal, getProblems } = oneTool;
  const sendJson = async (tool: Json, args?: Json) => JSON.parse((await send(tool, args)).body.toString());

  it('[conf 2] sends a file as a part of a multipart body with its name and media type', async () => {
    const input_schema = {
      purpose: text,
      file: { ...file, file_name: 'data.bin', media_type: 'application/x-thing; v=1' },
    };
    const request = await send({ body: 'multipart', input_schema }, { purpose: 'a\nb', file: base64 });
    assert.deepEqual(await parseParts(request), [
      ['purpose', 'a\r\nb'],
      ['file', { name: 'data.bin', type: 'application/x-thing; v=1', bytes: base64 }],
    ]);
  });

  it('[conf 2] takes file name and media type from arguments, which are then not sent themselves', async () => {
    const input_schema = {
      file: { ...file, wire_name: 'upload[file]', file_name: { argument: 'name' }, media_type: { argument: 'type' } },
      name: optional,
      type: optional,
    };
    const tool = { body: 'multipart', input_schema };
    const assertFile = async (args: Json, name: string, type: string) =>
      assert.deepEqual(await parseParts(await send(tool, args)), [['upload[file]', { name, type, bytes: base64 }]]);
    await assertFile({ file: base64, name: 'a "b" é.png', type: 'image/png' }, 'a "b" é.png', 'image/png');
    await assertFile({ file: base64 }, 'file', 'application/octet-stream');
    await assertFile({ file: `data:image/gif;base64,${base64}` }, 'file', 'image/gif');
    assert.match(await getRefusal(tool, { file: base64, type: 'image/png\r\nX-Y: z' }), /^type: is not a media type/);
    assert.match(await getRefusal(tool, { file: base64, name: 'a\0b' }), /^name: a file name must not contain control/);
    const both = { ...tool, input_schema: { ...input_schema, name: { ...optional, in: 'body' } } };
    assert.deepEqual((await parseParts(await send(both, { file: base64, name: 'n.png' })))[1], ['name', 'n.png']);
  });

  it('[conf 2] sends a part as JSON, as a text file, or as one of several files', async () => {
    const input_schema = {
      meta: { type: 'object', media_type: 'application/json' },
      csv: { type: 'string', media_type: 'text/csv', file_name: 'rows.csv' },
      images: { ...listOf(text), content: 'base64', media_type: 'image/png', file_name: 'i.png' },
    };
    const args = { meta: { a: [1, 'é'] }, csv: 'a,b\n1,2\n', images: [base64, base64] };
    const request = await send({ body: 'multipart', array_format: 'brackets', input_schema }, args);
    const image = { name: 'i.png', type: 'image/png', bytes: base64 };
    assert.deepEqual(await parseParts(request), [
      ['meta', '{"a":[1,"é"]}'],
      ['csv', { name: 'rows.csv', type: 'text/csv', bytes: Buffer.from(args.csv).toString('base64') }],
      ['images[]', image],
      ['images[]', image],
    ]);
    assert.match(request.body.toString('latin1'), /name="meta"\r\nContent-Type: application\/json\r\n\r\n\{"a"/);
  });

  it('[conf 2] sends bytes as the whole body, with the media type of the tool, an argument, or the data URL', async () => {
    const tool = { method: 'PUT', body: 'file', input_schema: { file } };
    const png = `data:image/png;base64,${base64}`;
    for (const [more, encoded, type] of [
      [{}, base64, 'application/octet-stream'],
      [{}, png, 'image/png'],
      [withType('image/jpeg'), png, 'image/jpeg'],
      [{ input_schema: { file: { ...file, media_type: 'audio/ogg' } } }, base64, 'audio/ogg'],
    ] as const) {
      const { headers, body } = await send({ ...tool, ...more }, { file: encoded });
      assert.deepEqual([body.toString('base64'), headers['content-type']], [base64, type]);
    }
  });

  it('[conf 2] accepts Base64 in either alphabet and with line breaks, and rejects anything else', async () => {
    const tool = { body: 'file', input_schema: { file } };
    const decode = async (encoded: string) => (await send(tool, { file: encoded })).body.toString('latin1');
    const odd = Buffer.from([0xfb, 0xff, 0xfe, 1]).toString('latin1');
    for (const encoded of [
      ...['+//+AQ==', '-__-AQ', '+//+\r\n AQ==\n', 'DATA:;base64,%2B//%2BAQ==', 'data:x/y;a=b;base64,+//+AQ=='],
    ])
      assert.equal(await decode(encoded), odd, encoded);
    assert.equal(await decode('data:text/plain,a%20b%FF'), 'a b\u00ff');
    assert.equal(await decode(''), '');
    const refusal = /^file: is not Base64; allowed: Base64 of the bytes, a data URL such as /;
    const long = `data:${'x'.repeat(400)},a`;
    for (const encoded of ['not base64!', 'abcde', 'ab=c', '====', 'YQ=', 'data:image/png', 'ü', long])
      assert.match(await getRefusal(tool, { file: encoded }), refusal, encoded);
  });

  it('[conf 2] describes to agents that a field accepts Base64', async () => {
    const described = (description: string) => ({ ...file, description });
    const input_schema = { file: described('The picture'), other: described('As base64.') };
    const slug = await oneTool.createToolServer({ method: 'POST', body: 'multipart', input_schema });
    const { body } = await oneTool.toolhost.rpc(slug, callerToken, 'tools/list');
    const [tool] = (body.result as { tools: { inputSchema: { properties: Json } }[] }).tools;
    assert.deepEqual(tool?.inputSchema.properties, {
      file: {
        type: 'string',
        description: 'The picture. Base64 of the bytes, a data URL, or the URL of a file that a tool returned.',
      },
      other: { type: 'string', description: 'As base64. The URL of a file that a tool returned is accepted too.' },
    });
  });

  it('[conf 2] sends a body with GET and DELETE where `in` or `body` requires it', async () => {
    const input_schema = { q: optional, query: { type: 'object', in: 'body', optional: true } };
    for (const method of ['GET', 'DELETE']) {
      const got = await send({ method, url: '/s', input_schema }, { q: 'a', query: { match: 1 } });
      assert.deepEqual([got.method, got.url, got.body.toString()], [method, '/s?q=a', '{"query":{"match":1}}']);
      assert.equal(got.headers['content-type'], 'application/json');
      const bare = await send({ method, url: '/s', input_schema }, { q: 'a' });
      assert.deepEqual([bare.body.toString(), bare.headers['content-type']], ['', undefined]);
      const whole = { method, url: '/s', input_schema: { q: text, query: object }, body: 'query' };
      const wholeBody = await send(whole, { q: 'a', query: { x: 1 } });
      assert.deepEqual([wholeBody.url, wholeBody.body.toString()], ['/s?q=a', '{"x":1}']);
    }
  });

  it('[conf 2] sends HEAD arguments in the query and no body', async () => {
    oneTool.upstream.on('HEAD /h', () => ({ headers: { 'content-length': String(50 * 1024 * 1024), etag: '"1"' } }));
    const slug = await oneTool.createToolServer({ method: 'HEAD', url: '/h', input_schema: { q: text } });
    for (let round = 0; round < 3; round++) {
      const got = await oneTool.captureRequest(slug, { q: 'a' });
      assert.deepEqual([got.method, got.url, got.body.length], ['HEAD', '/h?q=a', 0]);
    }
    assert.match(getResultText(await oneTool.call(slug, { q: 'a' })), /^200 OK/);
    assert.deepEqual(await getProblems({ method: 'HEAD', input_schema: { a: { ...text, in: 'body' } } }), [
      'tools[0].input_schema.a.in: a HEAD request has no body; allowed: path, query, header, cookie',
    ]);
    const template = await getProblems({ method: 'HEAD', body_template: {} });
    assert.deepEqual(template, ['tools[0].body_template: a HEAD request has no body; leave it out']);
  });

  it('[conf 2] sends OPTIONS arguments in the query, or in the body where they require it', async () => {
    oneTool.upstream.on('OPTIONS /o', () => ({ body: '{}' }));
    const input_schema = { q: text, size: { ...integer, in: 'body' } };
    const got = await send({ method: 'OPTIONS', url: '/o', input_schema }, { q: 'a', size: 5 });
    assert.deepEqual([got.method, got.url, got.body.toString()], ['OPTIONS', '/o?q=a', '{"size":5}']);
  });

  it('[conf 2] fills a body template with arguments, as values and inside texts', async () => {
    const tool = {
      url: '/graphql?p=:page',
      input_schema: {
        title: text,
        labels: { ...array, optional: true },
        count: { ...integer, optional: true },
        page: { ...integer, optional: true },
        team: { ...text, value: 'T1' },
        trace: { ...optional, in: 'header' },
      },
      body_template: {
        query: 'mutation { a(at: "10:30") { b:c } }',
        variables: {
          input: { title: ':title', labelIds: ':labels', note: 'Made for :title (:count)', teamId: ':team' },
        },
        list: [':labels', ':count', { keep: null }],
        only: 'n=:count',
        ':title': true,
        page: ':page',
      },
    };
    const allArguments = { title: 'A "b"', labels: [1, { x: 'y' }], count: 2, page: 3, trace: 't' };
    const got = await send(tool, allArguments);
    assert.equal(got.url, '/graphql?p=3');
    assert.equal(got.headers.trace, 't');
    assert.equal(got.headers['content-type'], 'application/json');
    assert.deepEqual(JSON.parse(got.body.toString()), {
      query: 'mutation { a(at: "10:30") { b:c } }',
      variables: { input: { title: 'A "b"', labelIds: [1, { x: 'y' }], note: 'Made for A "b" (2)', teamId: 'T1' } },
      list: [[1, { x: 'y' }], 2, { keep: null }],
      only: 'n=2',
      ':title': true,
      page: 3,
    });
    const { title, labels, count } = tool.input_schema;
    const some = { input_schema: { title, labels, count } };
    const body_template = { only: 'n=:count', list: [':labels'], labels: ':labels' };
    const note = { ...some, body_template: { note: ':title (:count)', ...body_template } };
    assert.match(await getRefusal(note, { title: 'x' }), /^count: is missing; a text in the body needs it$/);
    const few = await sendJson({ ...some, body_template: { t: ':title', ...body_template } }, { title: ':count' });
    assert.deepEqual(few, { t: ':count', list: [] });
    assert.deepEqual(await sendJson({ input_schema: { all: array }, body_template: ':all' }, { all: [1] }), [1]);
    const type = 'application/vnd.api+json';
    const data = { input_schema: { id: text }, body_template: { data: { id: ':id' } } };
    const { method, headers, body } = await send({ method: 'GET', ...withType(type), ...data }, { id: '1' });
    assert.deepEqual([method, headers['content-type'], body.toString()], ['GET', type, '{"data":{"id":"1"}}']);
  });

  it('[conf 2] [sec C7] rejects copies of an argument in a template that would make a huge body', async () => {
    const tool = { input_schema: { a: text }, body_template: Array(100).fill([':a', 'x:a']) };
    const refusal = await getRefusal(tool, { a: 'x'.repeat(100_000) });
    assert.match(refusal, /^a: is sent 200 times in one body, which is then too long; send a shorter value$/);
    assert.equal((await sendJson(tool, { a: 'y' })).length, 100);
  });

  it('[conf 2] [sec C7] applies the limits of one form to all arguments of a multipart body', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const toFields = (value: unknown) => Object.fromEntries(names.map((name) => [name, value]));
    const input_schema = toFields({ ...object, style: 'indices' });
    const args = toFields({ ['k'.repeat(3000)]: Array(20).fill(1) });
    for (const body of ['multipart', 'form']) {
      const refusal = await getRefusal({ body, input_schema }, args);
      assert.match(refusal, /^e: produces names of more than 262144 bytes in total/);
    }
  });

  it('[conf 2] reports configurations that cannot work as problems', async () => {
    const inMultipart = (a: Json, more: Json = {}) => ({ body: 'multipart', input_schema: { a, ...more } });
    const inBody = (a: Json, more: Json = {}) => ({ body: 'a', input_schema: { a, ...more } });
    const withTemplate = (token: string, input_schema: Json) => ({ body_template: { a: token }, input_schema });
    const bodyText = { ...text, in: 'body' };
    const form = 'application/x-www-form-urlencoded';
    const xml = withType('text/xml');
    const expected: [tool: Json, problem: RegExp][] = [
      [
        { input_schema: { a: file } },
        /a\.content: is for a multipart body part or for the argument that is the body; else/,
      ],
      [inMultipart({ ...integer, content: 'base64' }), /a\.content: needs an argument of type string or array/],
      [inBody({ ...file, file_name: 'x' }), /a\.file_name: is for a multipart body part/],
      [
        inMultipart({ ...file, file_name: { argument: 'nam' } }, { name: text }),
        /a\.file_name\.argument: found "nam"; allowed: the name of another argument; did you mean `name`\?/,
      ],
      [inMultipart({ ...file, media_type: 'png' }), /a\.media_type: found "png"; allowed: a media type/],
      [
        { ...inBody({ ...file, media_type: 'image/png' }), ...withType('image/png') },
        /a\.media_type: headers already contains Content-Type/,
      ],
      [inBody(text, { b: bodyText }), /b\.in: the argument a is the body/],
      [
        { ...xml, input_schema: { a: text } },
        /headers\.Content-Type: found "text\/xml", but the arguments are sent as JSON; name the one/,
      ],
      [{ ...xml, ...inBody(object) }, /headers\.Content-Type: found "text\/xml", but the argument a is sent as JSON/],
      [
        { ...withType(form), body_template: {} },
        /headers\.Content-Type: found .*, but body_template produces a JSON body/,
      ],
      [
        { method: 'GET', body: 'form', input_schema: { a: text } },
        /body: no argument is in the body of this GET request; set/,
      ],
      [inMultipart({ ...file, file_name: 'a\nb' }), /a\.file_name/],
      [inMultipart({ ...file, media_type: 'image/png;\u2003a=b' }), /a\.media_type: found/],
      [{ body: 'form', body_template: {} }, /tools\[0\]\.body: cannot be combined with body_template/],
      [withTemplate(':b', {}), /body_template: ":b" looks like a token, but input_schema has no such argument/],
      [withTemplate(':a', { a: text, b: text }), /input_schema\.b: is in neither url nor body_template/],
      [withTemplate(':a', { a: text, b: bodyText }), /b\.in: "body" needs the token :b in body_template/],
    ];
    for (const [tool, problem] of expected) {
      const found = await getProblems(tool);
      assert.equal(found.length, 1, JSON.stringify([tool, found]));
      assert.match(found.join(), problem);
    }
    const validTools = [
      { ...withType('application/merge-patch+json'), method: 'PATCH', input_schema: { a: text } },
      { ...xml, ...inBody(text) },
      { ...withType('text/plain'), url: 'https://api.example.com/:a', input_schema: { a: text } },
    ];
    for (const tool of validTools) assert.deepEqual(await getProblems(tool), []);
  });

  it('[conf 2] previews files by name, type, and size, and masks secrets in constants and templates', async () => {
    const preview = async (tool: Json, args: Json) => {
      const slug = await oneTool.createToolServer({ method: 'POST', ...tool });
      const path = `/servers/${slug}/tools/run/preview`;
      const { body, status } = await oneTool.toolhost.rest('POST', path, { body: { arguments: args } });
      assert.equal(status, 200, JSON.stringify(body));
      const { request, curl } = body as { request: { body?: string }; curl: string };
      return { body: request.body, curl: curl.replaceAll(oneTool.upstream.url, '') };
    };
    const input_schema = { note: text, file: { ...file, file_name: 'a "b".png', media_type: 'image/png' } };
    const form = await preview({ body: 'multipart', input_schema }, { note: 'n', file: base64 });
    assert.equal(form.body, 'note=n\nfile (a "b".png, image/png)=(10 bytes)');
    assert.ok(form.curl.includes(`--form-string 'note=n' -F 'file=@"a \\"b\\".png";type=image/png'`), form.curl);
    const bytesOnly = await preview({ body: 'file', input_schema: { file } }, { file: base64 });
    assert.equal(bytesOnly.body, '(10 bytes)');
    assert.match(bytesOnly.curl, /--data-binary @body$/);
    const head = await preview({ method: 'HEAD' }, {});
    assert.match(head.curl, /^curl --head /);
    const secret = { a: { type: 'string', value: 'x {{KEY}}' } };
    assert.equal((await preview({ input_schema: secret }, {})).body, '{"a":"x ********"}');
    assert.equal((await preview({ body_template: { deep: ['{{KEY}}', 1] } }, {})).body, '{"deep":["********",1]}');
  });

  it('[conf 2] [sec C7] sends a secret in a constant or a template for callers with a key, and never shows it', async () => {
    const { toolhost, upstream } = oneTool;
    const value = 'the-"secret"-of-this-test';
    const key = await toolhost.createKey({ scopes: ['call'] });
    const headers = { 'content-type': 'text/plain' };
    upstream.on('POST /v1/things', ({ body }) => ({ body: `echo ${body}`, headers, status: 400 }));
    const constant = { input_schema: { secret: { ...text, value: '{{KEY}}' } } };
    for (const tool of [constant, { body_template: { secret: '{{KEY}}' } }]) {
      const slug = await oneTool.createToolServer({ method: 'POST', ...tool });
      assert.match(JSON.stringify(await toolhost.rest('GET', `/servers/${slug}`)), /"access":"api_key"/);
      assert.equal((await toolhost.rest('PUT', `/servers/${slug}/secrets/KEY`, { body: { value } })).status, 200);
      upstream.take();
      const result = await toolhost.callTool(slug, key, 'run', {});
      const [request] = upstream.take();
      assert.deepEqual(JSON.parse(String(request?.body)), { secret: value });
      assert.ok(!JSON.stringify(result).includes('of-this-test'), JSON.stringify(result));
    }
    upstream.on('POST /v1/things', () => ({ body: {} }));
  });
});

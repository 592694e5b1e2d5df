import assert from 'node:assert/strict';
import { before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { callerToken, getErrorText, startOneTool } from '../support/one-tool.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { oauthConfig } from '../support/valid-configs.ts';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } };
const oauth = { ...oauthConfig, token_mode: 'passthrough' };
const apikey = { type: 'ApiKey', header: 'apikey' };

const neverSentError = /never sent to an upstream/;
const nonexistentKey = `thk_${'A'.repeat(12)}_${'B'.repeat(49)}`;
const base64 = (text: string) => Buffer.from(text).toString('base64');
const percent = (text: string) => [...text].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('');

/** Returns changed forms of a key. A whole key is also detected without its prefix, by its checksum. */
const changeKey = (key: string) => [key, key.toUpperCase(), key.toLowerCase(), `T${key.slice(1)}`, key.slice(4)];
const base64Url = (text: string) => Buffer.from(text).toString('base64url');
const toHex = (text: string) => Buffer.from(text).toString('hex');

/** Texts that contain a key, without a space. */
const wrappers: ((key: string) => string)[] = [
  (key) => `"${key}"`,
  (key) => `token=${key};version=1`,
  (key) => `a,${key}`,
  (key) => `user:${key}`,
  (key) => `abc${key}def`,
  base64,
  base64Url,
  (key) => base64(`user:${key}`),
  (key) => base64(`${key}:x-oauth-basic`),
  (key) => encodeURIComponent(base64(`user??:${key}`)),
  (key) => `Basic_${base64(key)}/x`,
  (key) => encodeURIComponent(`"${key}"`),
  percent,
  (key) => `x.${base64(JSON.stringify({ key }))}.y`,
];

describe('a credential of this service, plain or in one layer of encoding', () => {
  const { toolhost, upstream } = useToolhostWithUpstream({ env: { REFUSALS_PER_MINUTE: '0' } });
  let key: string;
  const forwardingServers: string[] = [];
  before(async () => {
    key = await toolhost.createKey();
    const schemes: Json[] = [
      ...['Bearer', 'Basic', 'QueryParam'].map((type) => ({ authentication: { type } })),
      { authentication: apikey },
      { authentication: apikey, oauth },
    ];
    for (const [index, overrides] of schemes.entries()) {
      await toolhost.createServer(buildServerAt(`own-${index}`, upstream.url, overrides));
      forwardingServers.push(`own-${index}`);
    }
  });
  beforeEach(() => void upstream.take());

  const assertRejected = async (slug: string, headers: Record<string, string>) => {
    const { status, text, headers: received } = await toolhost.post(slug, call, { headers });
    assert.equal(status, 401, `${JSON.stringify(headers)} ${text}`);
    assert.match(received.get('www-authenticate') ?? '', /^Bearer .*error="invalid_token"/);
    assert.deepEqual(upstream.take(), []);
    return text;
  };
  const assertRejectedEverywhere = async (wrapped: string) => {
    for (const slug of forwardingServers) {
      const reason = slug === 'own-4' ? /tokens of its own OAuth provider/ : /never sent there/;
      assert.match(await assertRejected(slug, { authorization: `Bearer ${wrapped}` }), reason);
    }
    for (const slug of ['own-3', 'own-4'])
      for (const scheme of ['', 'Bearer ', 'Basic ']) await assertRejected(slug, { apikey: scheme + wrapped });
  };

  it('[find B3] is sent to no upstream as a wrapped API key, and the 401 explains why', async () => {
    await assertRejectedEverywhere(key);
    // The Base64 form of a key depends on the text before it.
    const surrounded = ['', 'a', 'ab', '~"?.'].map((text) => `${text}${key}${text}`);
    for (const text of [...changeKey(key), ...wrappers.flatMap((wrap) => surrounded.map(wrap))])
      await assertRejected('own-0', { authorization: `Bearer ${text}` });
    assert.match(await assertRejected('own-0', { authorization: `Bearer "${key}"` }), /never sent there/);
  });

  it('[find B3] is detected as a login token like an API key', async () => {
    for (const prefix of ['tha', 'thr']) {
      const token = `${prefix}_${'aB3'.repeat(14)}z`;
      await assertRejectedEverywhere(token);
      for (const wrap of wrappers.filter((wrap) => !wrap('').includes('abc')))
        await assertRejected('own-0', { authorization: `Bearer ${wrap(token)}` });
    }
  });

  const assertForwarded = async (token: string) => {
    const { status, text } = await toolhost.post('own-0', call, { token });
    assert.equal(status, 200, text);
    assert.equal(upstream.take()[0]?.headers.authorization, `Bearer ${token}`);
  };

  it('[sec A1] is sent to no upstream if it only has the prefix, valid or not', async () => {
    const foreignKey = await toolhost.createKey({ workspace: 'strangers' });
    for (const token of [foreignKey, nonexistentKey, 'thk_x', 'THK_x', 'tha_x', 'thr_x', 'thc_x'])
      await assertRejectedEverywhere(token);
    for (const prefix of ['thk', 'tha', 'thr', 'thp', 'thc'])
      for (const writtenPrefix of [prefix, prefix.toUpperCase(), `T${prefix.slice(1)}`])
        for (const rest of ['', 'x', 'A'.repeat(40)])
          await assertRejected('own-0', { authorization: `Bearer ${writtenPrefix}_${rest}` });
  });

  it('[find B3] is not detected in a value that only resembles an API key', async () => {
    const other = key.endsWith('x') ? 'y' : 'x';
    const [, id = '', secret = ''] = key.split('_');
    const jwtParts = fc.sample(fc.uint8Array({ minLength: 400, maxLength: 400 }), 3);
    for (const token of [
      `pat_${id}_${secret.slice(0, -1)}${other}`,
      `${secret}_${id}`,
      `with-the_${'token'.repeat(8)}`,
      ...['tHD', 'thx', 'tHk'].map((prefix) => `${prefix}_${'A'.repeat(40)}`),
      base64(toHex(`thing_${secret.slice(1)}`)),
      jwtParts.map((part) => Buffer.from(part).toString('base64url')).join('.'),
    ])
      await assertForwarded(token);
  });

  it('[find B3] is not stored as a secret, a static header, a URL, or a literal credential', async () => {
    for (const value of [key, `Bearer ${key}`, base64(`user:${key}`), key.slice(4)]) {
      const secret = await toolhost.rest('PUT', '/servers/own-0/secrets/KEY', { body: { value } });
      assert.equal(secret.status, 400, secret.text);
      assert.match(secret.text, neverSentError);
      const configs: [string, Json][] = [
        ['tools[0].headers.X-Key', { tools: [buildToolAt(`${upstream.url}/thing`, { headers: { 'X-Key': value } })] }],
        ['tools[0].url', { tools: [buildToolAt(`${upstream.url}/thing?k=${encodeURIComponent(value)}`)] }],
        ['authentication.token', { authentication: { type: 'Bearer', token: value } }],
        ['oauth.client_secret', { oauth: { ...oauth, client_secret: value } }],
      ];
      for (const [path, overrides] of configs) {
        const body = buildServerAt('own-stored', upstream.url, overrides);
        const reply = await toolhost.rest('POST', '/servers', { body });
        const paths = (reply.body.problems as { path: string }[]).map((problem) => problem.path);
        assert.deepEqual([reply.status, paths], [400, [path]]);
        assert.equal(reply.text.includes(value), false);
      }
    }
  });

  it('[find B3] is stored in no other text and no key of a configuration', async () => {
    const url = `${upstream.url}/thing`;
    const clientCredentials = {
      type: 'ClientCredentials',
      token_url: url,
      client_id: 'c',
      client_secret: '{{SECRET}}',
    };
    const withTool = (more: Json) => ({ tools: [buildToolAt(url, more)] });
    const withArgument = (schema: Json) => withTool({ input_schema: { q: { type: 'string', ...schema } } });
    for (const put of [key, base64(key), `tha_${'aB3'.repeat(14)}z`])
      for (const overrides of [
        { description: put },
        { base_url: `${upstream.url}/${put}` },
        { headers: { 'X-Key': put } },
        { variables: { REGION: { value: put } } },
        { variables: { REGION: { value: 'eu', enum: ['eu', put] } } },
        { authentication: { ...clientCredentials, client_id: put } },
        { authentication: { ...clientCredentials, extra_params: { tenant: put } } },
        { authentication: { ...clientCredentials, token_url: `${url}?k=${put}` } },
        { oauth: { ...oauth, scopes: [put] } },
        { oauth: { ...oauth, extra_params: { [put]: 'consent' } } },
        { views: { desk: { description: put, tools: ['get'] } } },
        withTool({ title: put }),
        withTool({ method: 'POST', body_template: { q: [put] } }),
        withArgument({ description: put }),
        withArgument({ default: put, optional: true }),
        withArgument({ examples: [put] }),
        withArgument({ enum: ['a', put] }),
        withArgument({ wire_name: put }),
      ]) {
        const body = buildServerAt('own-stored', upstream.url, overrides);
        const reply = await toolhost.rest('POST', '/servers', { body });
        assert.deepEqual([reply.status, neverSentError.test(reply.text)], [400, true], JSON.stringify(overrides));
      }
  });

  it('[find B3] is detected as a plain API key after hundreds of other texts of a configuration', async () => {
    const tools = Array.from({ length: 301 }, (_, n) => {
      const query = { 'X-Query': `{ things(first: ${n}) }`.padEnd(1200, ';a') };
      const headers = n < 300 ? query : { 'X-Key': `Token ${key}` };
      return buildToolAt(`${upstream.url}/thing`, { name: `get_${n}`, headers });
    });
    const body = { name: 'Many', slug: 'many', tools };
    const { status, text } = await toolhost.rest('POST', '/servers', { key, body });
    assert.equal(status, 400);
    assert.match(text, /tools\[300\]\.headers\.X-Key/);
  });

  it('[find B3] is not sent as an argument or as the token of a trial call', async () => {
    const input_schema = {
      q: { type: 'string', optional: true },
      h: { type: 'string', in: 'header', optional: true },
      list: { type: 'array', items: { type: 'string' }, optional: true },
    };
    for (const [index, method] of ['GET', 'POST'].entries()) {
      const slug = `own-arguments-${index}`;
      const tools = [buildToolAt(`${upstream.url}/thing`, { method, input_schema })];
      await toolhost.createServer(buildServerAt(slug, upstream.url, { tools }));
      for (const args of [{ q: `see ${key}` }, { h: key }, { list: ['a', key] }])
        assert.match(getErrorText(await toolhost.callTool(slug, 'anyone', 'get', args)), neverSentError);
      assert.notEqual((await toolhost.callTool(slug, 'anyone', 'get', { q: 'thk_is_our_prefix' })).isError, true);
      assert.equal(upstream.take().length, 1);
    }
    for (const token of [key, nonexistentKey, `"${key}"`, base64(key), key.slice(4)]) {
      for (const slug of ['own-0', 'own-3']) {
        const { status, text } = await toolhost.rest('POST', `/servers/${slug}/tools/get/call`, { body: { token } });
        assert.deepEqual([status, neverSentError.test(text), text.includes(token)], [400, true, false]);
      }
    }
    assert.deepEqual(upstream.take(), []);
  });
});

const text = { type: 'string' };
const object = { type: 'object', style: 'repeat', additionalProperties: true };
const file = { type: 'string', content: 'base64' };

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const get = (url: string, input_schema: Json): Json => ({ url, input_schema });
const post = (input_schema: Json, more: Json = {}): Json => ({ method: 'POST', url: '/up', input_schema, ...more });
const multipart = (input_schema: Json) => post(input_schema, { body: 'multipart' });
const flat = (fields: Json): Json => ({ type: 'object', properties: fields, required: Object.keys(fields) });
const typedFile = { ...file, media_type: { argument: 'q' } };
const asArgument = (q: string) => ({ q });
const asName = (q: string) => ({ o: { [q]: 1 } });

/** Tool with the arguments and headers that put a text into one part of its request. */
type RequestPart = [tool: Json, args: (text: string) => Json, headers?: (text: string) => Record<string, string>];

/** Every part of a request that a caller can set. */
const requestParts: Record<string, RequestPart> = {
  'a segment of the path': [get('/up/:q', { q: text }), asArgument],
  'a part of a segment': [get('/up/a-:q', { q: text }), (q) => ({ q: `b ${q}` })],
  'a pair of the URL': [get('/up?id=eq.:q', { q: text }), asArgument],
  'a value of the query': [get('/up', { q: text }), asArgument],
  'a name of the query': [get('/up', flat({ o: object })), asName],
  'a header': [get('/up', { q: { ...text, in: 'header' } }), asArgument],
  'a value in JSON': [post({ q: text }), asArgument],
  'a name in JSON': [post(flat({ o: { type: 'object' } })), (q) => ({ o: { a: [{ [q]: 1 }] } })],
  'a value of a form': [post({ q: text }, { body: 'form' }), asArgument],
  'a name of a form': [post(flat({ o: object }), { body: 'form' }), asName],
  'a value of a part': [multipart({ q: text }), asArgument],
  'a name of a part': [multipart(flat({ o: object })), asName],
  'a file': [multipart({ f: file }), (q) => ({ f: base64(`a\n${q}\nb`) })],
  'the name of a file': [
    multipart({ f: { ...file, file_name: { argument: 'q' } }, q: text }),
    (q) => ({ f: 'YQ==', q }),
  ],
  'the type of a file': [multipart({ f: typedFile, q: text }), (q) => ({ f: 'YQ==', q: `image/${q}` })],
  'a parameter of the type of a file': [
    multipart({ f: typedFile, q: text }),
    (q) => ({ f: 'YQ==', q: `image/png; a="${q}"` }),
  ],
  'the type in a data URL': [multipart({ f: file }), (q) => ({ f: `data:image/${q};base64,YQ==` })],
  'a text that is the body': [post({ b: text }, { body: 'b' }), (b) => ({ b: `see ${b}` })],
  'bytes that are the body': [post({ b: file }, { body: 'b' }), (b) => ({ b: base64(b) })],
  'the type of the body': [post({ b: typedFile, q: text }, { body: 'b' }), (q) => ({ b: 'YQ==', q: `image/${q}` })],
  'a template of the body': [post({ q: text }, { body_template: { query: 'a :q b' } }), asArgument],
  'the trace context': [get('/up', {}), () => ({}), (q) => ({ traceparent, tracestate: `v=${q}` })],
};

describe('a credential of this service in an upstream request', () => {
  const fixture = useFixture(startOneTool);
  let key: string;
  let credentials: string[];
  let lookalikes: string[];
  before(async () => {
    key = await fixture.toolhost.createKey();
    const secret = 'aB3'.repeat(14);
    credentials = [key, `x${key.slice(1)}`, `tha_${secret}z`, `thr_${secret}z`];
    lookalikes = [`${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`, `tha_${secret}zz`, `thx_${secret}z`];
  });

  const serve = (tool: Json) => fixture.createToolServer(tool, { authentication: { type: 'Bearer' } });
  const run = async (slug: string, [, args, headers]: RequestPart, credential: string) => {
    const params = { name: 'run', arguments: args(credential) };
    const { body } = await fixture.toolhost.rpc(slug, callerToken, 'tools/call', params, headers?.(credential));
    return body.result as ToolCallResult;
  };

  it('[find B3] is rejected in every part of a request, as an API key or a login token', async () => {
    for (const [partName, requestPart] of Object.entries(requestParts)) {
      const slug = await serve(requestPart[0]);
      fixture.upstream.take();
      for (const credential of credentials) {
        const message = getErrorText(await run(slug, requestPart, credential));
        assert.match(message, neverSentError, partName);
        assert.equal(message.includes(credential), false, partName);
      }
      assert.deepEqual(fixture.upstream.take(), [], partName);
      for (const lookalike of lookalikes) {
        const result = await run(slug, requestPart, lookalike);
        assert.notEqual(result.isError, true, `${partName}: ${JSON.stringify(result)}`);
      }
      assert.equal(fixture.upstream.take().length, lookalikes.length, partName);
    }
  });

  it('[find B3] is detected at any offset of a long body, also across chunk boundaries of the search', async () => {
    const slug = await serve(post({ q: text }));
    const length = 900_000;
    fixture.upstream.take();
    for (const at of [0, 1, 262_000, 262_040, 262_090, 262_130, 262_144, 524_250, length]) {
      const q = `${'-'.repeat(at)}${key}${'-'.repeat(length - at)}`;
      assert.match(getErrorText(await fixture.call(slug, { q })), neverSentError, String(at));
    }
    assert.deepEqual(fixture.upstream.take(), []);
    assert.notEqual((await fixture.call(slug, { q: '-'.repeat(length) })).isError, true);
  });

  it('[find B3] stops a redirect to a URL that contains it', async () => {
    const slug = await serve({ url: '/up', input_schema: {}, redirects: 'follow' });
    fixture.upstream.on('GET /up', () => ({ status: 302, headers: { location: `/other?k=${key}` } }));
    fixture.upstream.take();
    assert.match(getErrorText(await fixture.call(slug)), neverSentError);
    const [first, ...more] = fixture.upstream.take();
    assert.deepEqual([first?.url, more], ['/up', []]);
  });

  it('[find B3] stops the import of a document from a URL that contains it, also after a redirect', async () => {
    fixture.upstream.on('GET /openapi.json', () => ({ status: 302, headers: { location: `/other.json?k=${key}` } }));
    const importFrom = async (path: string) => {
      fixture.upstream.take();
      const body = { url: `${fixture.upstream.url}${path}` };
      const { status, text: message } = await fixture.toolhost.rest('POST', '/import', { key, body });
      assert.deepEqual([status, neverSentError.test(message), message.includes(key)], [400, true, false], message);
      return fixture.upstream.take().map(({ url }) => url);
    };
    const encoded = key.replaceAll('_', '%5F');
    for (const put of [...credentials, encoded]) assert.deepEqual(await importFrom(`/a.json?k=${put}`), []);
    assert.deepEqual(await importFrom('/openapi.json'), ['/openapi.json']);
  });

  it('[find B3] does not include tokens of other services in the URL of an imported document', async () => {
    const secret = 'aB3'.repeat(14);
    fixture.upstream.on('GET /things.json', () => ({ status: 404, body: '' }));
    for (const token of [`pha_${secret}z`, `phr_${secret}z`, `sha_${secret}z`, `thb_${secret}z`]) {
      fixture.upstream.take();
      const body = { url: `${fixture.upstream.url}/things.json?token=${token}` };
      const { text: message } = await fixture.toolhost.rest('POST', '/import', { key, body });
      assert.match(message, /HTTP 404/, token);
      assert.equal(fixture.upstream.take().length, 1, token);
    }
  });
});

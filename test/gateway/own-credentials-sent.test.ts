import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { configWith } from '../support/configurations.ts';
import { callerToken, errorOf, type OneTool, startOneTool } from '../support/one-tool.ts';
import type { Json, ToolReply } from '../support/toolhost/toolhost.ts';

const never = /never sent to an upstream/;
const base64 = (text: string) => Buffer.from(text).toString('base64');

const text = { type: 'string' };
const object = { type: 'object', style: 'repeat', additionalProperties: true };
const file = { type: 'string', content: 'base64' };

/** A tool, and the arguments and headers by which a text gets to one place of its request. */
type Place = { tool: Json; args: (text: string) => Json; headers?: (text: string) => Record<string, string> };

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const post = (input_schema: Json, more: Json = {}): Json => ({ method: 'POST', url: '/up', input_schema, ...more });
const flat = (fields: Json): Json => ({ type: 'object', properties: fields, required: Object.keys(fields) });

/** Every place of a request that a caller can write to. */
const places: Record<string, Place> = {
  'a segment of the path': { tool: { url: '/up/:q', input_schema: { q: text } }, args: (q) => ({ q }) },
  'a part of a segment': { tool: { url: '/up/a-:q', input_schema: { q: text } }, args: (q) => ({ q: `b ${q}` }) },
  'a pair of the URL': { tool: { url: '/up?id=eq.:q', input_schema: { q: text } }, args: (q) => ({ q }) },
  'a value of the query': { tool: { url: '/up', input_schema: { q: text } }, args: (q) => ({ q }) },
  'a name of the query': { tool: { url: '/up', input_schema: flat({ o: object }) }, args: (q) => ({ o: { [q]: 1 } }) },
  'a header': { tool: { url: '/up', input_schema: { q: { ...text, in: 'header' } } }, args: (q) => ({ q }) },
  'a value in JSON': { tool: post({ q: text }), args: (q) => ({ q }) },
  'a name in JSON': { tool: post(flat({ o: { type: 'object' } })), args: (q) => ({ o: { a: [{ [q]: 1 }] } }) },
  'a value of a form': { tool: post({ q: text }, { body: 'form' }), args: (q) => ({ q }) },
  'a name of a form': { tool: post(flat({ o: object }), { body: 'form' }), args: (q) => ({ o: { [q]: 1 } }) },
  'a value of a part': { tool: post({ q: text }, { body: 'multipart' }), args: (q) => ({ q }) },
  'a name of a part': { tool: post(flat({ o: object }), { body: 'multipart' }), args: (q) => ({ o: { [q]: 1 } }) },
  'a file': { tool: post({ f: file }, { body: 'multipart' }), args: (q) => ({ f: base64(`a\n${q}\nb`) }) },
  'the name of a file': {
    tool: post({ f: { ...file, file_name: { argument: 'q' } }, q: text }, { body: 'multipart' }),
    args: (q) => ({ f: 'YQ==', q }),
  },
  'the type of a file': {
    tool: post({ f: { ...file, media_type: { argument: 'q' } }, q: text }, { body: 'multipart' }),
    args: (q) => ({ f: 'YQ==', q: `image/${q}` }),
  },
  'a parameter of the type of a file': {
    tool: post({ f: { ...file, media_type: { argument: 'q' } }, q: text }, { body: 'multipart' }),
    args: (q) => ({ f: 'YQ==', q: `image/png; a="${q}"` }),
  },
  'the type in a data URL': {
    tool: post({ f: file }, { body: 'multipart' }),
    args: (q) => ({ f: `data:image/${q};base64,YQ==` }),
  },
  'a text that is the body': { tool: post({ b: text }, { body: 'b' }), args: (b) => ({ b: `see ${b}` }) },
  'bytes that are the body': { tool: post({ b: file }, { body: 'b' }), args: (b) => ({ b: base64(b) }) },
  'the type of the body': {
    tool: post({ b: { ...file, media_type: { argument: 'q' } }, q: text }, { body: 'b' }),
    args: (q) => ({ b: 'YQ==', q: `image/${q}` }),
  },
  'a template of the body': {
    tool: post({ q: text }, { body_template: { query: 'a :q b' } }),
    args: (q) => ({ q }),
  },
  'the trace context': {
    tool: { url: '/up', input_schema: {} },
    args: () => ({}),
    headers: (q) => ({ traceparent, tracestate: `v=${q}` }),
  },
};

/** A configuration in which nearly every field has a value. */
const rich = configWith({
  description: 'Things of an API',
  authentication: {
    type: 'ClientCredentials',
    token_url: 'https://login.example.com/token',
    client_id: 'client',
    client_secret: '{{SECRET}}',
    scopes: ['read'],
    audience: 'https://api.example.com',
    resource: 'https://api.example.com',
    extra_params: { tenant: 'a' },
  },
  base_url: 'https://api.example.com/v1',
  headers: { 'X-Version': '1' },
  variables: { REGION: { value: 'eu', description: 'Where', enum: ['eu', 'us'] } },
  imported: { id: 'imp_1', document: 'https://api.example.com/openapi.json' },
  tools: [
    {
      name: 'find',
      title: 'Find',
      description: 'Finds things of an owner.',
      method: 'GET',
      url: '/things/:id?kind=a',
      headers: { 'X-Tool': 'a' },
      input_schema: {
        id: { type: 'string', description: 'Id', examples: ['a'] },
        kinds: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, wire_name: 'k', style: 'repeat' },
        state: { type: 'string', default: 'open', optional: true },
        fixed: { type: 'object', value: { a: ['b'] } },
      },
      response_fields: ['a.b'],
      response_headers: ['Link'],
      tags: ['things'],
    },
    {
      name: 'upload',
      description: 'Uploads a file of an owner.',
      method: 'POST',
      url: '/files',
      body: 'multipart',
      input_schema: { f: { type: 'string', content: 'base64', file_name: 'a.png', media_type: 'image/png' } },
    },
    {
      name: 'create',
      description: 'Creates a thing of an owner.',
      method: 'POST',
      url: '/things',
      input_schema: { type: 'object', properties: { o: { type: 'object', properties: { p: { const: 'c' } } } } },
    },
    { name: 'ask', description: 'Asks for things.', method: 'POST', url: '/ask', body_template: { q: ['{ a }'] } },
  ],
  views: { support: { description: 'For the desk', tools: [{ name: 'find', arguments: { state: 'closed' } }] } },
});
const withLogin = configWith({
  authentication: [
    { type: 'QueryParam', query_key: 'token' },
    { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' },
  ],
  oauth: {
    authorization_url: 'https://login.example.com/authorize?tenant=a',
    token_url: 'https://login.example.com/token',
    client_id: 'client',
    client_secret: 'the-client-secret',
    scopes: ['read'],
    extra_params: { prompt: 'consent' },
  },
});

/** The value with another text at one place after the other: in place of each text and each name, and at its end. */
function* changed(value: unknown, put: (old: string) => string): Generator<unknown> {
  if (typeof value === 'string') yield put(value);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    const entries = Object.entries(value);
    const with_ = (one: [string, unknown]) =>
      Array.isArray(value)
        ? value.map((old, index) => (String(index) === name ? one[1] : old))
        : Object.fromEntries(entries.map((entry) => (entry[0] === name ? one : entry)));
    if (!Array.isArray(value)) yield with_([put(name), inner]);
    for (const other of changed(inner, put)) yield with_([name, other]);
  }
}

describe('our own credentials, at every place of a request and a configuration', () => {
  let one: OneTool;
  let key: string;
  let credentials: string[];
  let lookalikes: string[];
  before(async () => {
    one = await startOneTool();
    key = await one.toolhost.key();
    const secret = 'aB3'.repeat(14);
    credentials = [key, `x${key.slice(1)}`, `tha_${secret}z`, `thr_${secret}z`];
    lookalikes = [`${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`, `tha_${secret}zz`, `thx_${secret}z`];
  });
  after(() => one.stop());

  const serve = (tool: Json) => one.serve(tool, { authentication: { type: 'Bearer' } });
  const run = async (slug: string, { args, headers }: Place, put: string) => {
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run', arguments: args(put) } };
    const { body } = await one.toolhost.post(slug, call, { token: callerToken, headers: headers?.(put) ?? {} });
    return body.result as ToolReply;
  };

  it('[find B3] no place of a request takes a key, or a token of the login', async () => {
    for (const [what, place] of Object.entries(places)) {
      const slug = await serve(place.tool);
      one.upstream.take();
      for (const credential of credentials) {
        const said = errorOf(await run(slug, place, credential));
        assert.match(said, never, what);
        assert.equal(said.includes(credential), false, what);
      }
      assert.deepEqual(one.upstream.take(), [], what);
      for (const lookalike of lookalikes) {
        const result = await run(slug, place, lookalike);
        assert.notEqual(result.isError, true, `${what}: ${JSON.stringify(result)}`);
      }
      assert.equal(one.upstream.take().length, lookalikes.length, what);
    }
  });

  it('[find B3] a key is found at any place of a long body, also where it is searched in pieces', async () => {
    const slug = await serve(post({ q: text }));
    const length = 900_000;
    one.upstream.take();
    for (const at of [0, 1, 262_000, 262_040, 262_090, 262_130, 262_144, 524_250, length]) {
      const q = `${'-'.repeat(at)}${key}${'-'.repeat(length - at)}`;
      assert.match(errorOf(await one.call(slug, { q })), never, String(at));
    }
    assert.deepEqual(one.upstream.take(), []);
    assert.notEqual((await one.call(slug, { q: '-'.repeat(length) })).isError, true);
  });

  it('[find B3] no redirect is followed to an address with a key in it', async () => {
    const slug = await serve({ url: '/up', input_schema: {}, redirects: 'follow' });
    one.upstream.on('GET /up', () => ({ status: 302, headers: { location: `/other?k=${key}` } }));
    one.upstream.take();
    assert.match(errorOf(await one.call(slug)), never);
    assert.deepEqual(
      one.upstream.take().map(({ url }) => url),
      ['/up'],
    );
  });

  it('[find B3] no text and no name of a configuration may hold a key or a token (property)', async () => {
    const shapes: ((put: string) => (old: string) => string)[] = [
      (put) => () => put,
      (put) => (old) => `${old} ${put}`,
      (put) => (old) => `${old}/${put}`,
      (put) => (old) => `${old}${old.includes('?') ? '&' : '?'}k=${put}`,
    ];
    const problemsOf = async (body: unknown) =>
      (await one.toolhost.rest('POST', '/check', { key, body })).body.problems;
    // A text as long and of the same letters tells which places take such a one at all.
    const pairs = [
      { credential: credentials[2] as string, harmless: lookalikes[1] as string },
      { credential: base64(key), harmless: base64('x'.repeat(key.length)) },
    ];
    let taken = 0;
    for (const config of [rich, withLogin]) {
      assert.deepEqual(await problemsOf(config), []);
      for (const shape of shapes)
        for (const { credential, harmless } of pairs) {
          const holding = [...changed(config, shape(credential))];
          for (const [index, other] of [...changed(config, shape(harmless))].entries()) {
            if (((await problemsOf(other)) as unknown[]).length > 0) continue;
            taken++;
            const found = (await problemsOf(holding[index])) as { path: string; message: string }[];
            assert.match(found[0]?.message ?? '', never, JSON.stringify(holding[index]));
            assert.equal(found[0]?.path.includes(credential), false);
          }
        }
    }
    assert.ok(taken > 200, `${taken} places`);
  });

  it('[find B3] no description is fetched from an address with a key in it, nor after a redirect to one', async () => {
    one.upstream.on('GET /openapi.json', () => ({
      status: 302,
      headers: { location: `/other.json?k=${key}` },
    }));
    const imported = async (path: string) => {
      one.upstream.take();
      const { status, text: said } = await one.toolhost.rest('POST', '/import', {
        key,
        body: { url: `${one.upstream.url}${path}` },
      });
      assert.deepEqual([status, never.test(said), said.includes(key)], [400, true, false], said);
      return one.upstream.take().map(({ url }) => url);
    };
    const encoded = key.replaceAll('_', '%5F');
    for (const put of [...credentials, encoded]) assert.deepEqual(await imported(`/a.json?k=${put}`), []);
    assert.deepEqual(await imported('/openapi.json'), ['/openapi.json']);
  });

  it('[find B3] a description is fetched from an address with a token of another service', async () => {
    const secret = 'aB3'.repeat(14);
    const path = '/things.json';
    one.upstream.on(`GET ${path}`, () => ({ status: 404, body: '' }));
    for (const token of [`pha_${secret}z`, `phr_${secret}z`, `sha_${secret}z`, `thb_${secret}z`]) {
      one.upstream.take();
      const body = { url: `${one.upstream.url}${path}?token=${token}` };
      const { text: said } = await one.toolhost.rest('POST', '/import', { key, body });
      assert.match(said, /HTTP 404/, token);
      assert.equal(one.upstream.take().length, 1, token);
    }
  });

  it('[find B3] no token is asked for with a key, where a configuration was stored before that was refused', async () => {
    const authentication = {
      type: 'ClientCredentials',
      token_url: `${one.upstream.url}/token`,
      client_id: 'client',
      client_secret: 'a-secret-of-the-client',
      scopes: ['zz_scope'],
    };
    const { db } = one.toolhost.running.app.runner;
    // The id of the client is sent in Base64, which the search of the finished request does not read.
    for (const [place, held] of [
      ['zz_scope', key],
      ['"client_id":"client"', `"client_id":"${key}"`],
    ] as const) {
      const slug = await one.serve({ url: '/up' }, { authentication });
      const { config } = await db
        .selectFrom('servers')
        .select('config')
        .where('slug', '=', slug)
        .executeTakeFirstOrThrow();
      const older = config.replace(place, held);
      assert.notEqual(older, config, place);
      await db.updateTable('servers').set({ config: older }).where('slug', '=', slug).execute();
      one.upstream.take();
      const { text: said } = await one.toolhost.rest('POST', `/servers/${slug}/tools/run/call`, { key, body: {} });
      assert.match(said, never, place);
      assert.equal(said.includes(key), false, place);
      assert.deepEqual(one.upstream.take(), [], place);
    }
  });
});

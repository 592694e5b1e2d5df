import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { formatApiKey } from '../../src/domain/credentials/api-key.ts';
import { serverAt, toolAt } from '../support/configs.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } };
const oauth = {
  authorization_url: 'https://id.example/authorize',
  token_url: 'https://id.example/token',
  client_id: 'c',
  client_secret: 's',
  token_mode: 'passthrough',
};
const apikey = { type: 'ApiKey', header: 'apikey' };

const base64 = (text: string) => Buffer.from(text).toString('base64');
const percent = (text: string) => [...text].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('');
const alphanumeric = [...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'];

/** One character of the prefix changed, left out, doubled or swapped with the next. */
const damages = (key: string) =>
  [0, 1, 2].flatMap((at) => [
    ...['x', '-', 'T'].map((other) => key.slice(0, at) + other + key.slice(at + 1)),
    key.slice(0, at) + key.slice(at + 1),
    key.slice(0, at) + key[at] + key.slice(at),
    key.slice(0, at) + key[at + 1] + key[at] + key.slice(at + 2),
  ]);

const cases: ((key: string) => string)[] = [
  (key) => key,
  (key) => key.toUpperCase(),
  (key) => key.toLowerCase(),
  (key) => `T${key.slice(1)}`,
  (key) => key.replace('thk', 'THK'),
];

/** Wrappings of a key; none adds a space. */
const wrappings: ((key: string) => string)[] = [
  (key) => `"${key}"`,
  (key) => `'${key}'`,
  (key) => `<${key}>`,
  (key) => `=${key}`,
  (key) => `key=${key}`,
  (key) => `token=${key};version=1`,
  (key) => `a,${key}`,
  (key) => `${key},b`,
  (key) => `a;${key}`,
  (key) => `user:${key}`,
  (key) => `${key}:`,
  (key) => `abc${key}def`,
  (key) => `Bearer:${key}`,
  (key) => base64(key),
  (key) => Buffer.from(key).toString('base64url'),
  (key) => base64(`user:${key}`),
  (key) => base64(`${key}:x-oauth-basic`),
  (key) => Buffer.from(key, 'utf16le').toString('base64'),
  (key) => Buffer.from(key).toString('hex'),
  (key) => encodeURIComponent(`"${key}"`),
  percent,
  (key) => `x.${base64(JSON.stringify({ key }))}.y`,
];

const base32 = (text: string) => {
  const bits = [...Buffer.from(text)].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[Number.parseInt(five.padEnd(5, '0'), 2)])
    .join('');
};

/** Encodings that hide the form of a key, and keep all of it. */
const hidings: ((key: string) => string)[] = [
  (key) => key.replaceAll('_', ''),
  (key) => key.replaceAll('_', '-'),
  (key) => key.replaceAll('_', '.'),
  (key) => key.slice(4),
  (key) => key.slice(4).replace('_', ''),
  (key) => `x${key.slice(4).replace('_', '')}y`,
  (key) => [...key].join('.'),
  (key) => key.replaceAll(/.{7}/g, '$&-'),
  (key) => [...key].reverse().join(''),
  (key) => [...key.replaceAll('_', '')].reverse().join(''),
];

/** Encodings, each of which may be used on what another one gives. */
const encodings: ((text: string) => string)[] = [
  base64,
  (text) => Buffer.from(text).toString('base64url'),
  (text) => Buffer.from(text).toString('hex'),
  (text) => (Buffer.from(text).toString('hex').match(/../g) ?? []).join(':'),
  base32,
  (text) => base32(text).toLowerCase(),
  percent,
  (text) => text.replaceAll('%', '%25'),
  (text) => [...text].map((c) => `&#${c.charCodeAt(0)};`).join(''),
  (text) => [...text].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join(''),
  (text) => [...text].map((c) => `=${c.charCodeAt(0).toString(16)}`).join(''),
  (text) => base64(text).replaceAll(/.{20}/g, '$&.'),
  (text) => `x.${base64(JSON.stringify({ text }))}.y`,
];

/** What is taken for a credential of ours by its shape alone. */
const resemblesOurs = [
  /^(?:[Tt]h[akrpc]|TH[AKRPC])_/,
  /(?:th[a-z]|.ha|.hr|t.a|t.r)_[0-9a-z]{43}(?![0-9a-z])/i,
  /(?:hk|t.?k|th.?|tk|th.k|thk.)_[0-9a-z]{12}_[0-9a-z]{43}/i,
];

const anyWrapping = fc.array(fc.constantFrom(...wrappings), { maxLength: 3 });

describe('our own credentials, in any disguise', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  let key: string;
  const forwarding: string[] = [];
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port], env: { REFUSALS_PER_MINUTE: '0' } });
    key = await toolhost.key();
    const schemes: Json[] = [
      { authentication: { type: 'Bearer' } },
      { authentication: { type: 'Basic' } },
      { authentication: { type: 'QueryParam' } },
      { authentication: apikey },
      { authentication: apikey, oauth },
    ];
    for (const [index, more] of schemes.entries()) {
      await toolhost.createServer(serverAt(`own-${index}`, upstream.url, more));
      forwarding.push(`own-${index}`);
    }
  });
  beforeEach(() => void upstream.take());
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  it('[sec D] a key is found in its plain form behind however many other texts of a configuration', async () => {
    const headers = (index: number) =>
      index < 300 ? { 'X-Query': `{ things(first: ${index}) }`.padEnd(1200, ';a') } : {};
    const tools = Array.from({ length: 301 }, (_, index) => ({
      ...toolAt(`${upstream.url}/thing`, { headers: headers(index) }),
      name: `get_${index}`,
    }));
    Object.assign(tools[300] ?? {}, { headers: { 'X-Key': `Token ${key}` } });
    const { status, text } = await toolhost.rest('POST', '/servers', {
      key,
      body: { name: 'Many', slug: 'many', tools },
    });
    assert.equal(status, 400);
    assert.match(text, /tools\[300\]\.headers\.X-Key/);
  });

  const refused = async (slug: string, headers: Record<string, string>) => {
    const { status, text } = await toolhost.post(slug, call, { headers });
    assert.equal(status, 401, `${JSON.stringify(headers)} ${text}`);
    assert.deepEqual(upstream.take(), []);
    return text;
  };
  const refusedEverywhere = async (disguised: string) => {
    for (const slug of forwarding) await refused(slug, { authorization: `Bearer ${disguised}` });
    for (const slug of ['own-3', 'own-4']) {
      for (const scheme of ['', 'Bearer ', 'Basic ']) await refused(slug, { apikey: scheme + disguised });
    }
  };

  it('[find B3] a damaged or wrapped key is sent to no upstream, and the 401 explains why', async () => {
    for (const damaged of damages(key)) await refusedEverywhere(damaged);
    for (const changed of cases) await refusedEverywhere(changed(key));
    for (const wrap of wrappings) await refusedEverywhere(wrap(key));
    assert.match(await refused('own-0', { authorization: `Bearer "${key}"` }), /never sent there/);
  });

  it('[find B3] tokens of the login are found like keys', async () => {
    for (const prefix of ['tha', 'thr', 'THA', 'xha', 'txr']) {
      const token = `${prefix}_${'aB3'.repeat(14)}z`;
      for (const wrap of [(text: string) => text, ...wrappings.filter((wrap) => !wrap('').includes('abc'))])
        await refusedEverywhere(wrap(token));
    }
  });

  it('[find B3] no disguise of a key reaches an upstream (property)', async () => {
    const disguises = fc
      .tuple(
        fc.uint8Array({ minLength: 9, maxLength: 9 }),
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.nat({ max: 11 }),
        fc.constantFrom(...cases),
        anyWrapping,
        fc.string({ unit: fc.constantFrom(...alphanumeric), maxLength: 5 }),
      )
      .map(([id, secret, damage, change, wrap, text]) => {
        const made = formatApiKey(id, secret).key;
        const damaged = [made, ...damages(made)][damage] as string;
        return wrap.reduce((inner, next) => next(inner), change(damaged) + (text && `.${text}`));
      })
      .filter((disguised) => disguised.length < 8000);
    await fc.assert(
      fc.asyncProperty(disguises, fc.constantFrom(...forwarding), async (disguised, slug) => {
        await refused(slug, { authorization: `Bearer ${disguised}` });
      }),
      { numRuns: 300 },
    );
  });

  it('[find B3] a key without its form goes to no upstream, in however many layers of encoding (property)', async () => {
    for (const hide of hidings) await refusedEverywhere(hide(key));
    for (const encode of encodings)
      for (const hide of [(text: string) => text, ...hidings])
        await refused('own-0', { authorization: `Bearer ${encode(hide(key))}` });
    const disguises = fc
      .tuple(
        fc.uint8Array({ minLength: 9, maxLength: 9 }),
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.constantFrom((text: string) => text, ...hidings),
        fc.array(fc.constantFrom(...encodings), { maxLength: 9 }),
      )
      .map(([id, secret, hide, encode]) => {
        let text = hide(formatApiKey(id, secret).key);
        for (const next of encode) if (next(text).length < 8000) text = next(text);
        return text;
      });
    await fc.assert(
      fc.asyncProperty(disguises, fc.constantFrom(...forwarding), async (disguised, slug) => {
        await refused(slug, { authorization: `Bearer ${disguised}` });
      }),
      { numRuns: 400 },
    );
  });

  it('[find B3] tokens of others are sent up whatever they hold, nested ones too (property)', async () => {
    const tokens = fc
      .tuple(
        fc.uint8Array({ minLength: 30, maxLength: 1500 }),
        fc.constantFrom('base64url' as const, 'hex' as const, 'base64' as const),
        fc.array(fc.constantFrom(...encodings), { maxLength: 2 }),
      )
      .map(([bytes, form, encode]) => {
        let text = Buffer.from(bytes).toString(form);
        // One in a million, and refused in any encoding.
        if (resemblesOurs.some((pattern) => pattern.test(text))) text = `x${text.replaceAll('_', '-')}`;
        for (const next of encode) if (next(text).length < 6000) text = next(text);
        return text;
      });
    await fc.assert(
      fc.asyncProperty(tokens, async (token) => {
        const { status, text } = await toolhost.post('own-0', call, { token });
        assert.equal(status, 200, text);
        assert.equal(upstream.take()[0]?.headers.authorization, `Bearer ${token}`);
      }),
      { numRuns: 200, examples: [[`tHD_${'A'.repeat(40)}`], [`thx_${'A'.repeat(40)}`], [`tHk_${'A'.repeat(40)}`]] },
    );
  });

  it('[sec A1] whatever begins like one of ours is sent to no upstream, valid or not', async () => {
    for (const prefix of ['thk', 'tha', 'thr', 'thp', 'thc'])
      for (const written of [prefix, prefix.toUpperCase(), `T${prefix.slice(1)}`])
        for (const rest of ['', 'x', 'A'.repeat(40)]) await refusedEverywhere(`${written}_${rest}`);
  });

  it('[find B3] a value that only resembles a key is sent up', async () => {
    const other = key.endsWith('x') ? 'y' : 'x';
    const [, id = '', secret = ''] = key.split('_');
    const jwt = [1, 2, 3].map(() =>
      Buffer.from(fc.sample(fc.uint8Array({ minLength: 400, maxLength: 400 }), 1)[0] ?? []),
    );
    const harmless = [
      `pat_${id}_${secret.slice(0, -1)}${other}`,
      `${secret}_${id}`,
      `the_${'token'.repeat(8)}`.replace('the', 'with-the'),
      jwt.map((part) => part.toString('base64url')).join('.'),
    ];
    for (const token of harmless) {
      const { status, text } = await toolhost.post('own-0', call, { token });
      assert.equal(status, 200, text);
      assert.equal(upstream.take()[0]?.headers.authorization, `Bearer ${token}`);
    }
  });

  it('[find B3] is not stored as a secret, a static header, a URL or a literal credential', async () => {
    for (const value of [key, `Bearer ${key}`, base64(`user:${key}`), key.toUpperCase()]) {
      const secret = await toolhost.rest('PUT', '/servers/own-0/secrets/KEY', { body: { value } });
      assert.equal(secret.status, 400, secret.text);
      assert.match(secret.text, /never sent to an upstream/);
      const configs: [string, Json][] = [
        ['tools[0].headers.X-Key', { tools: [toolAt(`${upstream.url}/thing`, { headers: { 'X-Key': value } })] }],
        ['tools[0].url', { tools: [toolAt(`${upstream.url}/thing?k=${encodeURIComponent(value)}`)] }],
        ['authentication.token', { authentication: { type: 'Bearer', token: value } }],
        ['oauth.client_secret', { oauth: { ...oauth, client_secret: value } }],
      ];
      for (const [path, more] of configs) {
        const reply = await toolhost.rest('POST', '/servers', { body: serverAt('own-stored', upstream.url, more) });
        assert.equal(reply.status, 400, path);
        const problems = reply.body.problems as { path: string }[];
        assert.deepEqual(
          problems.map((problem) => problem.path),
          [path],
        );
        assert.equal(reply.text.includes(value), false);
      }
    }
  });

  it('[find B3] is not sent as an argument, nor as a token that is tried out', async () => {
    const input_schema = {
      q: { type: 'string' },
      h: { type: 'string', in: 'header' },
      list: { type: 'array', items: { type: 'string' } },
    };
    for (const [index, method] of ['GET', 'POST'].entries()) {
      const slug = `own-arguments-${index}`;
      const optional = Object.fromEntries(
        Object.entries(input_schema).map(([name, field]) => [name, { ...field, optional: true }]),
      );
      const tools = [toolAt(`${upstream.url}/thing`, { method, input_schema: optional })];
      await toolhost.createServer(serverAt(slug, upstream.url, { tools }));
      for (const args of [{ q: `see ${key}` }, { h: key }, { list: ['a', key] }]) {
        const result = await toolhost.callTool(slug, 'anyone', 'get', args);
        assert.equal(result.isError, true);
        assert.match(String(result.content[0]?.text), /never sent to an upstream/);
      }
      assert.notEqual((await toolhost.callTool(slug, 'anyone', 'get', { q: 'thk_is_our_prefix' })).isError, true);
      assert.equal(upstream.take().length, 1);
    }
    for (const token of [`"${key}"`, base64(key), `x${key.slice(1)}`]) {
      const { status, text } = await toolhost.rest('POST', '/servers/own-0/tools/get/call', { body: { token } });
      assert.deepEqual([status, /never sent to an upstream/.test(text)], [400, true]);
    }
    assert.deepEqual(upstream.take(), []);
  });
});

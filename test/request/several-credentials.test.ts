import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { errorOf, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';

const mask = '********';

describe('stored credentials of several kinds', () => {
  let one: OneTool;
  let key: string;
  before(async () => {
    one = await startOneTool();
    key = await one.toolhost.key();
  });
  after(() => one.stop());

  const secret = async (slug: string, name: string, value: string) => {
    const reply = await one.toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
    assert.equal(reply.status, 200, reply.text);
  };
  const serve = async (authentication: unknown, more: Json = {}, secrets: Record<string, string> = {}) => {
    const slug = await one.serve(more, { authentication });
    for (const [name, value] of Object.entries(secrets)) await secret(slug, name, value);
    return slug;
  };
  const sent = async (slug: string, args: Json = {}): Promise<RecordedRequest> => {
    one.upstream.take();
    const result = await one.toolhost.callTool(slug, key, 'run', args);
    assert.notEqual(result.isError, true, textOf(result));
    return one.upstream.take()[0] ?? assert.fail('nothing was sent');
  };
  const refused = async (slug: string) => {
    one.upstream.take();
    const text = errorOf(await one.toolhost.callTool(slug, key, 'run'));
    assert.deepEqual(one.upstream.take(), []);
    return text;
  };
  const problemsOf = async (authentication: unknown, more: Json = {}) => {
    const tools = [{ name: 'run', description: 'Runs.', method: 'GET', url: 'https://api.example.com/x' }];
    const body = { name: 'x', slug: 'refused-here', authentication, tools, ...more };
    const reply = await one.toolhost.rest('POST', '/servers', { body });
    assert.equal(reply.status, 400, reply.text);
    return (reply.body.problems as { path: string; message: string }[]).map(
      ({ path, message }) => `${path}: ${message}`,
    );
  };
  const configOf = async (slug: string) => (await one.toolhost.rest('GET', `/servers/${slug}`)).body.config as Json;

  it('[conf 4] a list sends each credential to its own header, query parameter or cookie', async () => {
    const slug = await serve(
      [
        { type: 'ApiKey', header: 'DD-API-KEY', token: '{{API}}' },
        { type: 'ApiKey', header: 'DD-APPLICATION-KEY', token: '{{APP}}' },
        { type: 'QueryParam', query_key: 'k', token: 'literal&=' },
        { type: 'Cookie', cookie: 'sid', token: 'abc="def'.replaceAll('"', '') },
      ],
      {},
      { API: 'api-key-1', APP: 'app-key-2' },
    );
    const { headers, url } = await sent(slug);
    assert.deepEqual(
      [headers['dd-api-key'], headers['dd-application-key'], headers.cookie, url],
      ['api-key-1', 'app-key-2', 'sid=abc=def', '/v1/things?k=literal%26%3D'],
    );
    const two = await serve([
      { type: 'Cookie', cookie: 'a', token: '1' },
      { type: 'Cookie', cookie: 'b', token: '2' },
    ]);
    const { rawHeaders } = await sent(two);
    assert.deepEqual(
      rawHeaders.filter((_, index) => /^cookie$/i.test(rawHeaders[index - 1] ?? '')),
      ['a=1; b=2'],
    );
    assert.equal(((await one.toolhost.rest('GET', `/servers/${slug}`)).body.server as Json).access, 'api_key');
  });

  it('[conf 4] Basic is made of a user and a password, in UTF-8', async () => {
    const slug = await serve({ type: 'Basic', user: '{{USER}}', password: 'pä$$:w→rd' }, {}, { USER: 'jürg' });
    assert.equal(
      (await sent(slug)).headers.authorization,
      `Basic ${Buffer.from('jürg:pä$$:w→rd', 'utf8').toString('base64')}`,
    );
    assert.deepEqual((await configOf(slug)).authentication, { type: 'Basic', user: '{{USER}}', password: mask });
    await secret(slug, 'USER', 'a:b');
    assert.match(await refused(slug), /the user name of authentication holds a colon/);
    const shown = await one.toolhost.rest('POST', `/servers/${slug}/tools/run/preview`, { body: {} });
    assert.match(shown.text, /\["Authorization","Basic \*{8}"\]/);
  });

  it('[conf 4] a credential that a cookie cannot hold is refused before anything is sent', async () => {
    const slug = await serve({ type: 'Cookie', cookie: 'sid', token: '{{SID}}' }, {}, { SID: 'a; admin=1' });
    assert.match(await refused(slug), /the header Cookie has characters that a cookie cannot hold/);
    await secret(slug, 'SID', 'good');
    assert.equal((await sent(slug)).headers.cookie, 'sid=good');
  });

  it('[conf 4] literal secrets of a list are sealed, masked, and kept in any order', async () => {
    const list = [
      { type: 'ApiKey', header: 'X-One', token: 'one-literal' },
      { type: 'Basic', user: 'u', password: 'two-literal' },
    ];
    const slug = await serve(list);
    const masked = (await configOf(slug)).authentication as Json[];
    assert.deepEqual(masked, [
      { ...list[0], token: mask },
      { ...list[1], password: mask },
    ]);
    const change = (authentication: unknown) =>
      one.toolhost.rest('PATCH', `/servers/${slug}`, { body: { authentication } });
    assert.equal((await change(masked.toReversed())).status, 200);
    const { headers } = await sent(slug);
    assert.deepEqual(
      [headers['x-one'], headers.authorization],
      ['one-literal', `Basic ${Buffer.from('u:two-literal').toString('base64')}`],
    );
    const elsewhere = await change([{ ...masked[0], header: 'X-Other' }, masked[1]]);
    assert.equal(elsewhere.status, 400);
    assert.match(elsewhere.text, /authentication\[0\]\.token: .*none is stored; send the value itself/);
  });

  it('[conf 4] a stored credential goes only to the hosts that it was set for', async () => {
    const slug = await serve([{ type: 'Basic', user: 'u', password: 'two-literal' }]);
    const tools = ((await configOf(slug)).tools as Json[]).map((tool) => ({ ...tool, url: 'https://evil.example/x' }));
    const { body } = await one.toolhost.rest('PATCH', `/servers/${slug}`, { body: { tools } });
    assert.match(
      JSON.stringify(body.warnings),
      /the secret authentication\[header:authorization\]\.password was set for/,
    );
    assert.match(await refused(slug), /was set before this tool called https:\/\/evil\.example/);
  });

  it('[conf 4] a login may be combined with stored credentials', async () => {
    const oauth = {
      authorization_url: 'https://id.example/a',
      token_url: 'https://id.example/t',
      client_id: 'c',
      client_secret: 's',
    };
    const list = [{ type: 'Bearer' }, { type: 'ApiKey', header: 'developer-token', token: '{{DEV}}' }];
    const slug = await one.serve({}, { oauth: { ...oauth, token_mode: 'passthrough' }, authentication: list });
    await secret(slug, 'DEV', 'dev-1');
    const result = await one.toolhost.callTool(slug, 'token-of-a-person', 'run');
    assert.notEqual(result.isError, true, textOf(result));
    const { headers } = one.upstream.take().at(-1) ?? assert.fail('nothing was sent');
    assert.deepEqual([headers.authorization, headers['developer-token']], ['Bearer token-of-a-person', 'dev-1']);
  });

  it('[conf 4] each mistake in authentication is a problem with its fix', async () => {
    const key = (more: Json) => ({ type: 'ApiKey', header: 'X-Key', token: '{{K}}', ...more });
    const oauth = {
      authorization_url: 'https://id.example/a',
      token_url: 'https://id.example/t',
      client_id: 'c',
      client_secret: 's',
    };
    const cases: [unknown, RegExp, Json?][] = [
      [[], /^authentication: found an array of 0; allowed: at least 1 entry/],
      [[1, 2, 3, 4, 5].map((n) => key({ header: `X-${n}` })), /^authentication: .*allowed: at most 4 entries/],
      [7, /^authentication: found 7; allowed: an object or an array/],
      [[key({ hedaer: 'x' })], /^authentication\[0\]\.hedaer: unknown field; did you mean `header`\?/],
      [[key({}), key({ header: 'x_key' })], /^authentication\[1\]: goes to the same header as entry 0/],
      [
        [
          { type: 'QueryParam', token: 'a' },
          { type: 'QueryParam', query_key: 'API.KEY', token: 'b' },
        ],
        /^authentication\[1\]: goes to the same query parameter as entry 0/,
      ],
      [
        [
          { type: 'Cookie', cookie: 'a', token: 'a' },
          { type: 'Cookie', cookie: 'a', token: 'b' },
        ],
        /^authentication\[1\]: goes to the same cookie as entry 0/,
      ],
      ...['a_b', 'A.B'].map((cookie): [unknown, RegExp] => [
        [
          { type: 'Cookie', cookie: 'a.b', token: 'a' },
          { type: 'Cookie', cookie, token: 'b' },
        ],
        /^authentication\[1\]: goes to the same cookie as entry 0/,
      ]),
      [
        [{ type: 'Bearer' }, { type: 'ApiKey', header: 'X-Key' }],
        /^authentication\[1\]\.token: is missing; entry 0 sends the token of the caller already/,
      ],
      [
        [{ type: 'Bearer' }, key({})],
        /^authentication\[0\]\.token: is missing; beside stored credentials callers bring an API key/,
      ],
      [[key({})], /^authentication: no entry sends the token of the login/, { oauth }],
      [{ type: 'Basic', user: 'a', password: 'b' }, /^authentication\.type: not together with oauth/, { oauth }],
      [{ type: 'Basic', user: 'a:b', password: 'c' }, /^authentication\.user: holds a colon/],
      [{ type: 'Basic', user: 'a' }, /^authentication\.password: is missing beside user/],
      [{ type: 'Basic', password: 'a' }, /^authentication\.user: is missing beside password/],
      [
        { type: 'Basic', user: 'a', password: 'b', token: 'c' },
        /^authentication\.token: not together with user and password/,
      ],
      [{ type: 'Basic', user: 'a', password: 'b\n' }, /^authentication\.password: allowed: one line of visible text/],
      [{ type: 'Bearer', user: 'a', password: 'b' }, /^authentication\.user: only together with type Basic/],
      [{ type: 'Cookie', token: 'a' }, /^authentication\.cookie: is missing; type Cookie needs it/],
      [{ type: 'Cookie', cookie: 'a b', token: 'a' }, /^authentication\.cookie: found "a b"; allowed: /],
      [[key({ header: 'Host' })], /^authentication\[0\]\.header: this header is set by the service/],
      [[key({ header: 'Accept' })], /^authentication\[0\]\.header: the service sets this header itself/],
    ];
    for (const [authentication, expected, more] of cases) {
      const problems = await problemsOf(authentication, more);
      assert.match(problems.join('\n'), expected);
    }
  });

  it('[sec A1] no credential of a list may be a key of this service', async () => {
    for (const authentication of [
      [{ type: 'Cookie', cookie: 'a', token: key }],
      { type: 'Basic', user: 'a', password: key },
      { type: 'Basic', user: key, password: 'x' },
      [{ type: 'ApiKey', token: Buffer.from(key).toString('base64') }],
    ])
      assert.match((await problemsOf(authentication)).join('\n'), /holds an API key or a token of this service/);
  });
});

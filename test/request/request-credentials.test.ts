import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callerToken, errorOf, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';

const mask = '********';

describe('headers and credentials of the upstream request', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool();
  });
  after(() => one.stop());

  /** Returns the sent headers with lower-case names, without those of the connection itself. */
  const headerLines = (rawHeaders: readonly string[]) => {
    const lines: string[] = [];
    for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]?.toLowerCase()}: ${rawHeaders[i + 1]}`);
    return lines.filter((line) => !/^(host|connection|content-length):/.test(line)).sort();
  };
  const userAgent = () => `user-agent: Toolhost/0.1.0 (+${one.toolhost.url})`;
  const usual = () => ['accept: application/json', 'toolhost-hop: 1', userAgent()];
  const linesOf = async (authentication: Json | undefined, tool: Json = {}) => {
    const slug = await one.serve(tool, authentication && { authentication });
    return headerLines((await one.sent(slug)).rawHeaders);
  };
  const urlOf = async (authentication: Json, tool: Json, args: Json = {}) => {
    const slug = await one.serve(tool, { authentication });
    return (await one.sent(slug, args)).url;
  };

  it('[spec 2.2] forwards the token as Bearer, ApiKey, and Basic, by default in Authorization', async () => {
    const values = { Bearer: `Bearer ${callerToken}`, ApiKey: callerToken, Basic: `Basic ${callerToken}` };
    for (const [type, value] of Object.entries(values)) {
      assert.deepEqual(await linesOf({ type }), [...usual(), `authorization: ${value}`].sort());
      assert.deepEqual(await linesOf({ type, header: 'X-Api-Key' }), [...usual(), `x-api-key: ${value}`].sort());
    }
    assert.deepEqual(await linesOf(undefined), usual().sort());
  });

  it('[spec 2.2] appends the token to the URL for QueryParam, as api_key unless query_key names another parameter', async () => {
    const input_schema = { q: { type: 'string', optional: true } };
    assert.equal(await urlOf({ type: 'QueryParam' }, {}), `/v1/things?api_key=${callerToken}`);
    const named = { type: 'QueryParam', query_key: 'k.e-y' };
    assert.equal(await urlOf(named, { url: '/a?b=c', input_schema }, { q: 'x' }), `/a?b=c&q=x&k.e-y=${callerToken}`);
    assert.deepEqual(await linesOf({ type: 'QueryParam' }), usual().sort());
    const slug = await one.serve({}, { authentication: { type: 'QueryParam' } });
    one.upstream.take();
    await one.toolhost.callTool(slug, 'a+b/c==', 'run');
    assert.equal(one.upstream.take()[0]?.url, '/v1/things?api_key=a%2Bb%2Fc%3D%3D');
  });

  it('[behaviour request 9] replaces an argument of the same name in the query by the credential', async () => {
    const input_schema = { api_key: { type: 'string', optional: true }, q: { type: 'string', optional: true } };
    const args = { api_key: 'mine', q: 'x' };
    assert.equal(await urlOf({ type: 'QueryParam' }, { input_schema }, args), `/v1/things?q=x&api_key=${callerToken}`);
    const listed = { input_schema: { api_key: { type: 'array', optional: true } }, array_format: 'repeat' };
    assert.equal(
      await urlOf({ type: 'QueryParam' }, listed, { api_key: ['a', 'b'] }),
      `/v1/things?api_key=${callerToken}`,
    );
    const slug = await one.serve({ method: 'POST', input_schema }, { authentication: { type: 'QueryParam' } });
    const { url, body } = await one.sent(slug, args);
    assert.deepEqual([url, body.toString()], [`/v1/things?api_key=${callerToken}`, '{"api_key":"mine","q":"x"}']);
  });

  it("[spec 4.3.7] [spec 5.3] sends the caller's token, which may also arrive in the credential's header", async () => {
    const slug = await one.serve({}, { authentication: { type: 'ApiKey', header: 'apikey' } });
    one.upstream.take();
    const params = { name: 'run', arguments: {} };
    await one.toolhost.rpc(slug, undefined, 'tools/call', params, { apikey: 'from-the-header' });
    const both = await one.toolhost.rpc(slug, 'one', 'tools/call', params, { apikey: 'another' });
    assert.equal(both.status, 401);
    assert.deepEqual(
      one.upstream.take().map(({ headers }) => headers.apikey),
      ['from-the-header'],
    );
  });

  it('[behaviour request 8] interpolates {{NAME}} from the stored secrets once, and sends nothing while one is missing', async () => {
    const headers = { 'X-Key': 'a {{ONE}}-{{TWO}} z', Accept: 'text/csv', 'user-agent': 'Mine' };
    const slug = await one.serve({ headers });
    const key = await one.toolhost.key();
    const call = () => one.toolhost.callTool(slug, key, 'run');
    const set = (name: string, value: string) =>
      one.toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
    one.upstream.take();
    await set('ONE', '{{TWO}}');
    assert.match(errorOf(await call()), /^the secret TWO has no value/);
    assert.deepEqual(one.upstream.take(), []);
    await set('TWO', '2');
    await call();
    const [request] = one.upstream.take();
    assert.deepEqual(headerLines(request?.rawHeaders ?? []), [
      'accept: text/csv',
      'toolhost-hop: 1',
      'user-agent: Mine',
      'x-key: a {{TWO}}-2 z',
    ]);
  });

  it('[behaviour request 10] sends the stored credential of authentication.token as configured in authentication', async () => {
    const authentication = { type: 'Bearer', header: 'X-Auth', token: 'literal-credential' };
    const slug = await one.serve({}, { authentication });
    one.upstream.take();
    await one.toolhost.callTool(slug, await one.toolhost.key(), 'run');
    const [request] = one.upstream.take();
    assert.deepEqual(headerLines(request?.rawHeaders ?? []), [...usual(), 'x-auth: Bearer literal-credential'].sort());
  });

  it('[sec A9] forwards nothing else that the caller sent: exactly one credential is in the request', async () => {
    const slug = await one.serve({}, { authentication: { type: 'Bearer' } });
    const extra = {
      cookie: 'session=1',
      'x-anything': 'x',
      'proxy-authorization': 'Basic cHJveHk=',
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-host': 'other.example.com',
      forwarded: 'for=10.0.0.1',
      'mcp-session-id': 'abc',
      'x-api-key': 'y',
      'accept-language': 'de',
      'user-agent': 'curl',
      traceparent: 'not-a-trace',
      tracestate: 'a=b',
    };
    one.upstream.take();
    const { status } = await one.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} }, extra);
    assert.equal(status, 200);
    const [request] = one.upstream.take();
    assert.deepEqual(
      headerLines(request?.rawHeaders ?? []),
      [...usual(), `authorization: Bearer ${callerToken}`].sort(),
    );
  });

  describe('with stored credentials of several kinds', () => {
    let key: string;
    before(async () => {
      key = await one.toolhost.key();
    });

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

    it('[conf 4] sends each credential of a list to its own header, query parameter, or cookie', async () => {
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

    it('[conf 4] sends an empty Basic password or user where the configuration has one', async () => {
      const pairs: [Json, string][] = [
        [{ user: '{{KEY}}', password: '' }, 'the-key:'],
        [{ user: '', password: '{{KEY}}' }, ':the-key'],
        [{ user: '', password: 'literal' }, ':literal'],
      ];
      for (const [pair, sentPair] of pairs) {
        const slug = await serve({ type: 'Basic', ...pair }, {}, { KEY: 'the-key' });
        const answer = await sent(slug);
        assert.equal(answer.headers.authorization, `Basic ${Buffer.from(sentPair).toString('base64')}`);
        const literal = pair.password === 'literal' && { password: mask };
        assert.deepEqual((await configOf(slug)).authentication, { type: 'Basic', ...pair, ...literal });
        const stored = (await one.toolhost.rest('GET', `/servers/${slug}`)).body.server as Json;
        assert.equal(stored.access, 'api_key');
      }
    });

    it('[conf 4] encodes a Basic user and password in UTF-8', async () => {
      const slug = await serve({ type: 'Basic', user: '{{USER}}', password: 'pä$$:w→rd' }, {}, { USER: 'jürg' });
      assert.equal(
        (await sent(slug)).headers.authorization,
        `Basic ${Buffer.from('jürg:pä$$:w→rd', 'utf8').toString('base64')}`,
      );
      assert.deepEqual((await configOf(slug)).authentication, { type: 'Basic', user: '{{USER}}', password: mask });
      await secret(slug, 'USER', 'a:b');
      assert.match(await refused(slug), /the user name of the credential contains a colon/);
      const shown = await one.toolhost.rest('POST', `/servers/${slug}/tools/run/preview`, { body: {} });
      assert.match(shown.text, /\["Authorization","Basic \*{8}"\]/);
    });

    it('[conf 4] rejects a credential that is not allowed in a cookie before anything is sent', async () => {
      const slug = await serve({ type: 'Cookie', cookie: 'sid', token: '{{SID}}' }, {}, { SID: 'a; admin=1' });
      assert.match(await refused(slug), /the header Cookie contains characters that are not allowed in a cookie/);
      await secret(slug, 'SID', 'good');
      assert.equal((await sent(slug)).headers.cookie, 'sid=good');
    });

    it('[conf 4] encrypts and masks literal secrets of a list, and keeps them in any order', async () => {
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

    it('[conf 4] sends a stored credential only to the hosts that it was set for', async () => {
      const slug = await serve([{ type: 'Basic', user: 'u', password: 'two-literal' }]);
      const tools = ((await configOf(slug)).tools as Json[]).map((tool) => ({
        ...tool,
        url: 'https://evil.example/x',
      }));
      const { body } = await one.toolhost.rest('PATCH', `/servers/${slug}`, { body: { tools } });
      assert.match(
        JSON.stringify(body.warnings),
        /the secret authentication\[header:authorization\]\.password was set for/,
      );
      assert.match(await refused(slug), /was set before this tool called https:\/\/evil\.example/);
    });

    it('[conf 4] combines a login with stored credentials', async () => {
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

    it('[conf 4] reports each mistake in authentication as a problem with its fix', async () => {
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
          /^authentication\[1\]\.token: is missing; entry 0 already sends the caller token/,
        ],
        [
          [{ type: 'Bearer' }, key({})],
          /^authentication\[0\]\.token: is missing; with stored credentials, callers send an API key/,
        ],
        [[key({})], /^authentication: no entry sends the login token/, { oauth }],
        [
          { type: 'Basic', user: 'a', password: 'b' },
          /^authentication\.type: cannot be combined with oauth/,
          { oauth },
        ],
        [{ type: 'Basic', user: 'a:b', password: 'c' }, /^authentication\.user: contains a colon/],
        [{ type: 'Basic', user: '', password: '' }, /^authentication\.password: is empty, and so is user/],
        [{ type: 'Basic', user: 'a' }, /^authentication\.password: is missing, but user is set/],
        [{ type: 'Basic', password: 'a' }, /^authentication\.user: is missing, but password is set/],
        [
          { type: 'Basic', user: 'a', password: 'b', token: 'c' },
          /^authentication\.token: cannot be combined with user and password/,
        ],
        [{ type: 'Basic', user: 'a', password: 'b\n' }, /^authentication\.password: allowed: one line of visible text/],
        [{ type: 'Bearer', user: 'a', password: 'b' }, /^authentication\.user: requires type Basic/],
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

    it('[sec A1] rejects a key of this service as a credential in a list', async () => {
      for (const authentication of [
        [{ type: 'Cookie', cookie: 'a', token: key }],
        { type: 'Basic', user: 'a', password: key },
        { type: 'Basic', user: key, password: 'x' },
        [{ type: 'ApiKey', token: Buffer.from(key).toString('base64') }],
      ])
        assert.match((await problemsOf(authentication)).join('\n'), /holds an API key or a token of this service/);
    });
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callerToken, getErrorText, getResultText, type OneToolFixture, startOneTool } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';

const mask = '********';

describe('headers and credentials of the upstream request', () => {
  let oneTool: OneToolFixture;
  before(async () => {
    oneTool = await startOneTool();
  });
  after(() => oneTool.stop());

  /** Returns the sent headers with lower-case names, without those of the connection itself. */
  const toHeaderLines = (rawHeaders: readonly string[]) => {
    const lines: string[] = [];
    for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]?.toLowerCase()}: ${rawHeaders[i + 1]}`);
    return lines.filter((line) => !/^(host|connection|content-length):/.test(line)).sort();
  };
  const getUserAgentLine = () => `user-agent: Toolhost/0.1.0 (+${oneTool.toolhost.url})`;
  const getDefaultLines = () => ['accept: application/json', 'toolhost-hop: 1', getUserAgentLine()];
  const sendAndGetLines = async (authentication: Json | undefined, tool: Json = {}) => {
    const slug = await oneTool.createToolServer(tool, authentication && { authentication });
    return toHeaderLines((await oneTool.captureRequest(slug)).rawHeaders);
  };
  const sendAndGetUrl = async (authentication: Json, tool: Json, args: Json = {}) => {
    const slug = await oneTool.createToolServer(tool, { authentication });
    return (await oneTool.captureRequest(slug, args)).url;
  };

  it('[spec 2.2] forwards the token as Bearer, ApiKey, and Basic, by default in Authorization', async () => {
    const values = { Bearer: `Bearer ${callerToken}`, ApiKey: callerToken, Basic: `Basic ${callerToken}` };
    for (const [type, value] of Object.entries(values)) {
      assert.deepEqual(await sendAndGetLines({ type }), [...getDefaultLines(), `authorization: ${value}`].sort());
      assert.deepEqual(
        await sendAndGetLines({ type, header: 'X-Api-Key' }),
        [...getDefaultLines(), `x-api-key: ${value}`].sort(),
      );
    }
    assert.deepEqual(await sendAndGetLines(undefined), getDefaultLines().sort());
  });

  it('[spec 2.2] appends the token to the URL for QueryParam, as api_key unless query_key names another parameter', async () => {
    const input_schema = { q: { type: 'string', optional: true } };
    assert.equal(await sendAndGetUrl({ type: 'QueryParam' }, {}), `/v1/things?api_key=${callerToken}`);
    const named = { type: 'QueryParam', query_key: 'k.e-y' };
    assert.equal(
      await sendAndGetUrl(named, { url: '/a?b=c', input_schema }, { q: 'x' }),
      `/a?b=c&q=x&k.e-y=${callerToken}`,
    );
    assert.deepEqual(await sendAndGetLines({ type: 'QueryParam' }), getDefaultLines().sort());
    const slug = await oneTool.createToolServer({}, { authentication: { type: 'QueryParam' } });
    oneTool.upstream.take();
    await oneTool.toolhost.callTool(slug, 'a+b/c==', 'run');
    assert.equal(oneTool.upstream.take()[0]?.url, '/v1/things?api_key=a%2Bb%2Fc%3D%3D');
  });

  it('[behaviour request 9] replaces an argument of the same name in the query by the credential', async () => {
    const input_schema = { api_key: { type: 'string', optional: true }, q: { type: 'string', optional: true } };
    const args = { api_key: 'mine', q: 'x' };
    assert.equal(
      await sendAndGetUrl({ type: 'QueryParam' }, { input_schema }, args),
      `/v1/things?q=x&api_key=${callerToken}`,
    );
    const listed = { input_schema: { api_key: { type: 'array', optional: true } }, array_format: 'repeat' };
    assert.equal(
      await sendAndGetUrl({ type: 'QueryParam' }, listed, { api_key: ['a', 'b'] }),
      `/v1/things?api_key=${callerToken}`,
    );
    const slug = await oneTool.createToolServer(
      { method: 'POST', input_schema },
      { authentication: { type: 'QueryParam' } },
    );
    const { url, body } = await oneTool.captureRequest(slug, args);
    assert.deepEqual([url, body.toString()], [`/v1/things?api_key=${callerToken}`, '{"api_key":"mine","q":"x"}']);
  });

  it("[spec 4.3.7] [spec 5.3] sends the caller's token, which may also arrive in the credential's header", async () => {
    const slug = await oneTool.createToolServer({}, { authentication: { type: 'ApiKey', header: 'apikey' } });
    oneTool.upstream.take();
    const params = { name: 'run', arguments: {} };
    await oneTool.toolhost.rpc(slug, undefined, 'tools/call', params, { apikey: 'from-the-header' });
    const both = await oneTool.toolhost.rpc(slug, 'one', 'tools/call', params, { apikey: 'another' });
    assert.equal(both.status, 401);
    assert.deepEqual(
      oneTool.upstream.take().map(({ headers }) => headers.apikey),
      ['from-the-header'],
    );
  });

  it('[behaviour request 8] interpolates {{NAME}} from the stored secrets once, and sends nothing while one is missing', async () => {
    const headers = { 'X-Key': 'a {{ONE}}-{{TWO}} z', Accept: 'text/csv', 'user-agent': 'Mine' };
    const slug = await oneTool.createToolServer({ headers });
    const key = await oneTool.toolhost.createKey();
    const call = () => oneTool.toolhost.callTool(slug, key, 'run');
    const set = (name: string, value: string) =>
      oneTool.toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
    oneTool.upstream.take();
    await set('ONE', '{{TWO}}');
    assert.match(getErrorText(await call()), /^the secret TWO has no value/);
    assert.deepEqual(oneTool.upstream.take(), []);
    await set('TWO', '2');
    await call();
    const [request] = oneTool.upstream.take();
    assert.deepEqual(toHeaderLines(request?.rawHeaders ?? []), [
      'accept: text/csv',
      'toolhost-hop: 1',
      'user-agent: Mine',
      'x-key: a {{TWO}}-2 z',
    ]);
  });

  it('[behaviour request 10] sends the stored credential of authentication.token as configured in authentication', async () => {
    const authentication = { type: 'Bearer', header: 'X-Auth', token: 'literal-credential' };
    const slug = await oneTool.createToolServer({}, { authentication });
    oneTool.upstream.take();
    await oneTool.toolhost.callTool(slug, await oneTool.toolhost.createKey(), 'run');
    const [request] = oneTool.upstream.take();
    assert.deepEqual(
      toHeaderLines(request?.rawHeaders ?? []),
      [...getDefaultLines(), 'x-auth: Bearer literal-credential'].sort(),
    );
  });

  it('[sec A9] forwards nothing else that the caller sent: exactly one credential is in the request', async () => {
    const slug = await oneTool.createToolServer({}, { authentication: { type: 'Bearer' } });
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
    oneTool.upstream.take();
    const { status } = await oneTool.toolhost.rpc(
      slug,
      callerToken,
      'tools/call',
      { name: 'run', arguments: {} },
      extra,
    );
    assert.equal(status, 200);
    const [request] = oneTool.upstream.take();
    assert.deepEqual(
      toHeaderLines(request?.rawHeaders ?? []),
      [...getDefaultLines(), `authorization: Bearer ${callerToken}`].sort(),
    );
  });

  describe('with stored credentials of several kinds', () => {
    let key: string;
    before(async () => {
      key = await oneTool.toolhost.createKey();
    });

    const storeSecret = async (slug: string, name: string, value: string) => {
      const reply = await oneTool.toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
      assert.equal(reply.status, 200, reply.text);
    };
    const serveWithCredential = async (
      authentication: unknown,
      more: Json = {},
      secrets: Record<string, string> = {},
    ) => {
      const slug = await oneTool.createToolServer(more, { authentication });
      for (const [name, value] of Object.entries(secrets)) await storeSecret(slug, name, value);
      return slug;
    };
    const send = async (slug: string, args: Json = {}): Promise<RecordedRequest> => {
      oneTool.upstream.take();
      const result = await oneTool.toolhost.callTool(slug, key, 'run', args);
      assert.notEqual(result.isError, true, getResultText(result));
      return oneTool.upstream.take()[0] ?? assert.fail('nothing was sent');
    };
    const getRefusal = async (slug: string) => {
      oneTool.upstream.take();
      const text = getErrorText(await oneTool.toolhost.callTool(slug, key, 'run'));
      assert.deepEqual(oneTool.upstream.take(), []);
      return text;
    };
    const getProblems = async (authentication: unknown, more: Json = {}) => {
      const tools = [{ name: 'run', description: 'Runs.', method: 'GET', url: 'https://api.example.com/x' }];
      const body = { name: 'x', slug: 'refused-here', authentication, tools, ...more };
      const reply = await oneTool.toolhost.rest('POST', '/servers', { body });
      assert.equal(reply.status, 400, reply.text);
      return (reply.body.problems as { path: string; message: string }[]).map(
        ({ path, message }) => `${path}: ${message}`,
      );
    };
    const getConfig = async (slug: string) =>
      (await oneTool.toolhost.rest('GET', `/servers/${slug}`)).body.config as Json;

    it('[conf 4] sends each credential of a list to its own header, query parameter, or cookie', async () => {
      const slug = await serveWithCredential(
        [
          { type: 'ApiKey', header: 'DD-API-KEY', token: '{{API}}' },
          { type: 'ApiKey', header: 'DD-APPLICATION-KEY', token: '{{APP}}' },
          { type: 'QueryParam', query_key: 'k', token: 'literal&=' },
          { type: 'Cookie', cookie: 'sid', token: 'abc="def'.replaceAll('"', '') },
        ],
        {},
        { API: 'api-key-1', APP: 'app-key-2' },
      );
      const { headers, url } = await send(slug);
      assert.deepEqual(
        [headers['dd-api-key'], headers['dd-application-key'], headers.cookie, url],
        ['api-key-1', 'app-key-2', 'sid=abc=def', '/v1/things?k=literal%26%3D'],
      );
      const two = await serveWithCredential([
        { type: 'Cookie', cookie: 'a', token: '1' },
        { type: 'Cookie', cookie: 'b', token: '2' },
      ]);
      const { rawHeaders } = await send(two);
      assert.deepEqual(
        rawHeaders.filter((_, index) => /^cookie$/i.test(rawHeaders[index - 1] ?? '')),
        ['a=1; b=2'],
      );
      assert.equal(((await oneTool.toolhost.rest('GET', `/servers/${slug}`)).body.server as Json).access, 'api_key');
    });

    it('[conf 4] sends an empty Basic password or user where the configuration has one', async () => {
      const pairs: [Json, string][] = [
        [{ user: '{{KEY}}', password: '' }, 'the-key:'],
        [{ user: '', password: '{{KEY}}' }, ':the-key'],
        [{ user: '', password: 'literal' }, ':literal'],
      ];
      for (const [pair, sentPair] of pairs) {
        const slug = await serveWithCredential({ type: 'Basic', ...pair }, {}, { KEY: 'the-key' });
        const request = await send(slug);
        assert.equal(request.headers.authorization, `Basic ${Buffer.from(sentPair).toString('base64')}`);
        const literal = pair.password === 'literal' && { password: mask };
        assert.deepEqual((await getConfig(slug)).authentication, { type: 'Basic', ...pair, ...literal });
        const stored = (await oneTool.toolhost.rest('GET', `/servers/${slug}`)).body.server as Json;
        assert.equal(stored.access, 'api_key');
      }
    });

    it('[conf 4] encodes a Basic user and password in UTF-8', async () => {
      const slug = await serveWithCredential(
        { type: 'Basic', user: '{{USER}}', password: 'pä$$:w→rd' },
        {},
        { USER: 'jürg' },
      );
      assert.equal(
        (await send(slug)).headers.authorization,
        `Basic ${Buffer.from('jürg:pä$$:w→rd', 'utf8').toString('base64')}`,
      );
      assert.deepEqual((await getConfig(slug)).authentication, { type: 'Basic', user: '{{USER}}', password: mask });
      await storeSecret(slug, 'USER', 'a:b');
      assert.match(await getRefusal(slug), /the user name of the credential contains a colon/);
      const shown = await oneTool.toolhost.rest('POST', `/servers/${slug}/tools/run/preview`, { body: {} });
      assert.match(shown.text, /\["Authorization","Basic \*{8}"\]/);
    });

    it('[conf 4] rejects a credential that is not allowed in a cookie before anything is sent', async () => {
      const slug = await serveWithCredential(
        { type: 'Cookie', cookie: 'sid', token: '{{SID}}' },
        {},
        { SID: 'a; admin=1' },
      );
      assert.match(await getRefusal(slug), /the header Cookie contains characters that are not allowed in a cookie/);
      await storeSecret(slug, 'SID', 'good');
      assert.equal((await send(slug)).headers.cookie, 'sid=good');
    });

    it('[conf 4] encrypts and masks literal secrets of a list, and keeps them in any order', async () => {
      const list = [
        { type: 'ApiKey', header: 'X-One', token: 'one-literal' },
        { type: 'Basic', user: 'u', password: 'two-literal' },
      ];
      const slug = await serveWithCredential(list);
      const masked = (await getConfig(slug)).authentication as Json[];
      assert.deepEqual(masked, [
        { ...list[0], token: mask },
        { ...list[1], password: mask },
      ]);
      const change = (authentication: unknown) =>
        oneTool.toolhost.rest('PATCH', `/servers/${slug}`, { body: { authentication } });
      assert.equal((await change(masked.toReversed())).status, 200);
      const { headers } = await send(slug);
      assert.deepEqual(
        [headers['x-one'], headers.authorization],
        ['one-literal', `Basic ${Buffer.from('u:two-literal').toString('base64')}`],
      );
      const otherHeader = await change([{ ...masked[0], header: 'X-Other' }, masked[1]]);
      assert.equal(otherHeader.status, 400);
      assert.match(otherHeader.text, /authentication\[0\]\.token: .*none is stored; send the value itself/);
    });

    it('[conf 4] sends a stored credential only to the hosts that it was set for', async () => {
      const slug = await serveWithCredential([{ type: 'Basic', user: 'u', password: 'two-literal' }]);
      const tools = ((await getConfig(slug)).tools as Json[]).map((tool) => ({
        ...tool,
        url: 'https://evil.example/x',
      }));
      const { body } = await oneTool.toolhost.rest('PATCH', `/servers/${slug}`, { body: { tools } });
      assert.match(
        JSON.stringify(body.warnings),
        /the secret authentication\[header:authorization\]\.password was set for/,
      );
      assert.match(await getRefusal(slug), /was set before this tool called https:\/\/evil\.example/);
    });

    it('[conf 4] combines a login with stored credentials', async () => {
      const oauth = {
        authorization_url: 'https://id.example/a',
        token_url: 'https://id.example/t',
        client_id: 'c',
        client_secret: 's',
      };
      const list = [{ type: 'Bearer' }, { type: 'ApiKey', header: 'developer-token', token: '{{DEV}}' }];
      const slug = await oneTool.createToolServer(
        {},
        { oauth: { ...oauth, token_mode: 'passthrough' }, authentication: list },
      );
      await storeSecret(slug, 'DEV', 'dev-1');
      const result = await oneTool.toolhost.callTool(slug, 'token-of-a-person', 'run');
      assert.notEqual(result.isError, true, getResultText(result));
      const { headers } = oneTool.upstream.take().at(-1) ?? assert.fail('nothing was sent');
      assert.deepEqual([headers.authorization, headers['developer-token']], ['Bearer token-of-a-person', 'dev-1']);
    });

    it('[conf 4] reports each mistake in authentication as a problem with its fix', async () => {
      const withKey = (more: Json) => ({ type: 'ApiKey', header: 'X-Key', token: '{{K}}', ...more });
      const oauth = {
        authorization_url: 'https://id.example/a',
        token_url: 'https://id.example/t',
        client_id: 'c',
        client_secret: 's',
      };
      const cases: [unknown, RegExp, Json?][] = [
        [[], /^authentication: found an array of 0; allowed: at least 1 entry/],
        [[1, 2, 3, 4, 5].map((n) => withKey({ header: `X-${n}` })), /^authentication: .*allowed: at most 4 entries/],
        [7, /^authentication: found 7; allowed: an object or an array/],
        [[withKey({ hedaer: 'x' })], /^authentication\[0\]\.hedaer: unknown field; did you mean `header`\?/],
        [[withKey({}), withKey({ header: 'x_key' })], /^authentication\[1\]: goes to the same header as entry 0/],
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
          [{ type: 'Bearer' }, withKey({})],
          /^authentication\[0\]\.token: is missing; with stored credentials, callers send an API key/,
        ],
        [[withKey({})], /^authentication: no entry sends the login token/, { oauth }],
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
        [[withKey({ header: 'Host' })], /^authentication\[0\]\.header: this header is set by the service/],
        [[withKey({ header: 'Accept' })], /^authentication\[0\]\.header: the service sets this header itself/],
      ];
      for (const [authentication, expected, more] of cases) {
        const problems = await getProblems(authentication, more);
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
        assert.match((await getProblems(authentication)).join('\n'), /holds an API key or a token of this service/);
    });
  });
});

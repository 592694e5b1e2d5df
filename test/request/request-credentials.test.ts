import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { callerToken, getErrorText, getResultText } from '../support/one-tool.ts';
import { pluck } from '../support/pluck.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useOneTool } from '../support/use-one-tool.ts';

const mask = '********';
const encode = (text: string) => `Basic ${Buffer.from(text, 'utf8').toString('base64')}`;
const optional = { type: 'string', optional: true };
const queryParam = { authentication: { type: 'QueryParam' } };
const oauth = {
  authorization_url: 'https://id.example/a',
  token_url: 'https://id.example/t',
  ...{ client_id: 'c', client_secret: 's' },
};

/** Returns the sent headers with lowercase names, without those of the connection itself. */
function toHeaderLines(rawHeaders: readonly string[] = []): string[] {
  const lines = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name.toLowerCase()}: ${rawHeaders[i + 1]}`] : []));
  return lines.filter((line) => !/^(host|connection|content-length):/.test(line)).sort();
}

describe('headers and credentials of the upstream request', () => {
  const oneTool = useOneTool();
  const { send } = oneTool;
  const storeSecret = async (slug: string, name: string, value: string) => {
    const reply = await oneTool.toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
    assert.equal(reply.status, 200, reply.text);
  };
  const takeLines = () => toHeaderLines(oneTool.upstream.take()[0]?.rawHeaders);
  /** Checks the headers of a request: those of every request, and these. */
  const assertLines = (lines: string[], ...more: string[]) => {
    const userAgent = `user-agent: Toolhost/0.1.0 (+${oneTool.toolhost.url})`;
    assert.deepEqual(lines, ['accept: application/json', 'toolhost-hop: 1', userAgent, ...more].sort());
  };
  const sendAndGetLines = async (server: Json) => toHeaderLines((await send({}, {}, server)).rawHeaders);

  it('[spec 2.2] forwards the token as Bearer, ApiKey, and Basic, by default in Authorization', async () => {
    const values = { Bearer: `Bearer ${callerToken}`, ApiKey: callerToken, Basic: `Basic ${callerToken}` };
    for (const [type, value] of Object.entries(values)) {
      assertLines(await sendAndGetLines({ authentication: { type } }), `authorization: ${value}`);
      assertLines(await sendAndGetLines({ authentication: { type, header: 'X-Api-Key' } }), `x-api-key: ${value}`);
    }
    assertLines(await sendAndGetLines({}));
  });

  it('[spec 2.2] appends the token to the URL for QueryParam, as api_key unless query_key names another parameter', async () => {
    assert.equal((await send({}, {}, queryParam)).url, `/v1/things?api_key=${callerToken}`);
    const named = { authentication: { type: 'QueryParam', query_key: 'k.e-y' } };
    const { url } = await send({ url: '/a?b=c', input_schema: { q: optional } }, { q: 'x' }, named);
    assert.equal(url, `/a?b=c&q=x&k.e-y=${callerToken}`);
    assertLines(await sendAndGetLines(queryParam));
    const slug = await oneTool.createToolServer({}, queryParam);
    oneTool.upstream.take();
    await oneTool.toolhost.callTool(slug, 'a+b/c==', 'run');
    assert.equal(oneTool.upstream.take()[0]?.url, '/v1/things?api_key=a%2Bb%2Fc%3D%3D');
  });

  it('[behaviour request 9] replaces an argument of the same name in the query by the credential', async () => {
    const input_schema = { api_key: optional, q: optional };
    const args = { api_key: 'mine', q: 'x' };
    const replaced = await send({ input_schema }, args, queryParam);
    assert.equal(replaced.url, `/v1/things?q=x&api_key=${callerToken}`);
    const listed = { input_schema: { api_key: { type: 'array', optional: true } }, array_format: 'repeat' };
    const { url: listUrl } = await send(listed, { api_key: ['a', 'b'] }, queryParam);
    assert.equal(listUrl, `/v1/things?api_key=${callerToken}`);
    const { url, body } = await send({ method: 'POST', input_schema }, args, queryParam);
    assert.deepEqual([url, body.toString()], [`/v1/things?api_key=${callerToken}`, '{"api_key":"mine","q":"x"}']);
  });

  it("[spec 4.3.7] [spec 5.3] sends the caller's token, which may also arrive in the credential's header", async () => {
    const slug = await oneTool.createToolServer({}, { authentication: { type: 'ApiKey', header: 'apikey' } });
    oneTool.upstream.take();
    const params = { name: 'run', arguments: {} };
    await oneTool.toolhost.rpc(slug, undefined, 'tools/call', params, { apikey: 'from-the-header' });
    const both = await oneTool.toolhost.rpc(slug, 'one', 'tools/call', params, { apikey: 'another' });
    assert.equal(both.status, 401);
    const [headers, ...others] = pluck(oneTool.upstream.take(), 'headers');
    assert.deepEqual([headers?.apikey, others], ['from-the-header', []]);
  });

  it('[behaviour request 8] interpolates {{NAME}} from the stored secrets once, and sends nothing while one is missing', async () => {
    const headers = { 'X-Key': 'a {{ONE}}-{{TWO}} z', Accept: 'text/csv', 'user-agent': 'Mine' };
    const slug = await oneTool.createToolServer({ headers });
    const key = await oneTool.toolhost.createKey();
    const call = () => oneTool.toolhost.callTool(slug, key, 'run');
    oneTool.upstream.take();
    await storeSecret(slug, 'ONE', '{{TWO}}');
    assert.match(getErrorText(await call()), /^the secret TWO has no value/);
    assert.deepEqual(oneTool.upstream.take(), []);
    await storeSecret(slug, 'TWO', '2');
    await call();
    const expected = ['accept: text/csv', 'toolhost-hop: 1', 'user-agent: Mine', 'x-key: a {{TWO}}-2 z'];
    assert.deepEqual(takeLines(), expected);
  });

  it('[behaviour request 10] sends the stored credential of authentication.token as configured in authentication', async () => {
    const authentication = { type: 'Bearer', header: 'X-Auth', token: 'literal-credential' };
    const slug = await oneTool.createToolServer({}, { authentication });
    oneTool.upstream.take();
    await oneTool.toolhost.callTool(slug, await oneTool.toolhost.createKey(), 'run');
    assertLines(takeLines(), 'x-auth: Bearer literal-credential');
  });

  it('[sec A9] forwards nothing else that the caller sent: exactly one credential is in the request', async () => {
    const slug = await oneTool.createToolServer({}, { authentication: { type: 'Bearer' } });
    const extra = {
      ...{ cookie: 'session=1', 'x-anything': 'x', 'proxy-authorization': 'Basic cHJveHk=', 'x-api-key': 'y' },
      ...{ 'x-forwarded-for': '10.0.0.1', 'x-forwarded-host': 'other.example.com', forwarded: 'for=10.0.0.1' },
      ...{ 'mcp-session-id': 'abc', 'accept-language': 'de', 'user-agent': 'curl' },
      ...{ traceparent: 'not-a-trace', tracestate: 'a=b' },
    };
    oneTool.upstream.take();
    const params = { name: 'run', arguments: {} };
    const { status } = await oneTool.toolhost.rpc(slug, callerToken, 'tools/call', params, extra);
    assert.equal(status, 200);
    assertLines(takeLines(), `authorization: Bearer ${callerToken}`);
  });

  describe('with stored credentials of several kinds', () => {
    let key: string;
    before(async () => {
      key = await oneTool.toolhost.createKey();
    });

    const serveWithCredential = async (authentication: unknown, secrets: Record<string, string> = {}) => {
      const slug = await oneTool.createToolServer({}, { authentication });
      for (const [name, value] of Object.entries(secrets)) await storeSecret(slug, name, value);
      return slug;
    };
    const callWithKey = async (slug: string) => {
      oneTool.upstream.take();
      const result = await oneTool.toolhost.callTool(slug, key, 'run');
      assert.notEqual(result.isError, true, getResultText(result));
      return oneTool.upstream.take()[0] ?? assert.fail('nothing was sent');
    };
    const getRefusal = async (slug: string) => {
      oneTool.upstream.take();
      const text = getErrorText(await oneTool.toolhost.callTool(slug, key, 'run'));
      assert.deepEqual(oneTool.upstream.take(), []);
      return text;
    };
    const getProblems = async (authentication: unknown, more: Json = {}) =>
      (await oneTool.getProblems({}, { authentication, ...more })).join('\n');
    const getServer = async (slug: string) => {
      const { body } = await oneTool.toolhost.rest('GET', `/servers/${slug}`);
      return body as { config: Json; server: Json };
    };

    it('[conf 4] sends each credential of a list to its own header, query parameter, or cookie', async () => {
      const list = [
        { type: 'ApiKey', header: 'DD-API-KEY', token: '{{API}}' },
        { type: 'ApiKey', header: 'DD-APPLICATION-KEY', token: '{{APP}}' },
        { type: 'QueryParam', query_key: 'k', token: 'literal&=' },
        { type: 'Cookie', cookie: 'sid', token: 'abc=def' },
      ];
      const slug = await serveWithCredential(list, { API: 'api-key-1', APP: 'app-key-2' });
      const { headers, url } = await callWithKey(slug);
      assert.deepEqual(
        [headers['dd-api-key'], headers['dd-application-key'], headers.cookie, url],
        ['api-key-1', 'app-key-2', 'sid=abc=def', '/v1/things?k=literal%26%3D'],
      );
      const cookies = ['a=1', 'b=2'].map((pair) => ({ type: 'Cookie', cookie: pair[0], token: pair[2] }));
      const { rawHeaders } = await callWithKey(await serveWithCredential(cookies));
      const sent = rawHeaders.filter((_, index) => /^cookie$/i.test(rawHeaders[index - 1] ?? ''));
      assert.deepEqual(sent, ['a=1; b=2']);
      assert.equal((await getServer(slug)).server.access, 'api_key');
    });

    it('[conf 4] sends an empty Basic password or user where the configuration has one', async () => {
      const pairs: [Json, string][] = [
        [{ user: '{{KEY}}', password: '' }, 'the-key:'],
        [{ user: '', password: '{{KEY}}' }, ':the-key'],
        [{ user: '', password: 'literal' }, ':literal'],
      ];
      for (const [pair, sentPair] of pairs) {
        const slug = await serveWithCredential({ type: 'Basic', ...pair }, { KEY: 'the-key' });
        assert.equal((await callWithKey(slug)).headers.authorization, encode(sentPair));
        const { config, server } = await getServer(slug);
        const literal = pair.password === 'literal' && { password: mask };
        assert.deepEqual(config.authentication, { type: 'Basic', ...pair, ...literal });
        assert.equal(server.access, 'api_key');
      }
    });

    it('[conf 4] encodes a Basic user and password in UTF-8', async () => {
      const basic = { type: 'Basic', user: '{{USER}}', password: 'pä$$:w→rd' };
      const slug = await serveWithCredential(basic, { USER: 'jürg' });
      assert.equal((await callWithKey(slug)).headers.authorization, encode('jürg:pä$$:w→rd'));
      assert.deepEqual((await getServer(slug)).config.authentication, { ...basic, password: mask });
      await storeSecret(slug, 'USER', 'a:b');
      assert.match(await getRefusal(slug), /the user name of the credential contains a colon/);
      const shown = await oneTool.toolhost.rest('POST', `/servers/${slug}/tools/run/preview`, { body: {} });
      assert.match(shown.text, /\["Authorization","Basic \*{8}"\]/);
    });

    it('[conf 4] rejects a credential that is not allowed in a cookie before anything is sent', async () => {
      const cookie = { type: 'Cookie', cookie: 'sid', token: '{{SID}}' };
      const slug = await serveWithCredential(cookie, { SID: 'a; admin=1' });
      assert.match(await getRefusal(slug), /the header Cookie contains characters that are not allowed in a cookie/);
      await storeSecret(slug, 'SID', 'good');
      assert.equal((await callWithKey(slug)).headers.cookie, 'sid=good');
    });

    it('[conf 4] encrypts and masks literal secrets of a list, and keeps them in any order', async () => {
      const list = [
        { type: 'ApiKey', header: 'X-One', token: 'one-literal' },
        { type: 'Basic', user: 'u', password: 'two-literal' },
      ];
      const slug = await serveWithCredential(list);
      const masked = (await getServer(slug)).config.authentication as Json[];
      const [one, two] = list;
      assert.deepEqual(masked, [
        { ...one, token: mask },
        { ...two, password: mask },
      ]);
      const change = (authentication: unknown) =>
        oneTool.toolhost.rest('PATCH', `/servers/${slug}`, { body: { authentication } });
      assert.equal((await change(masked.toReversed())).status, 200);
      const { headers } = await callWithKey(slug);
      assert.deepEqual([headers['x-one'], headers.authorization], ['one-literal', encode('u:two-literal')]);
      const otherHeader = await change([{ ...masked[0], header: 'X-Other' }, masked[1]]);
      assert.equal(otherHeader.status, 400);
      assert.match(otherHeader.text, /authentication\[0\]\.token: .*none is stored; send the value itself/);
    });

    it('[conf 4] sends a stored credential only to the hosts that it was set for', async () => {
      const slug = await serveWithCredential([{ type: 'Basic', user: 'u', password: 'two-literal' }]);
      const { tools } = (await getServer(slug)).config as { tools: Json[] };
      const moved = { tools: tools.map((tool) => ({ ...tool, url: 'https://evil.example/x' })) };
      const { body } = await oneTool.toolhost.rest('PATCH', `/servers/${slug}`, { body: moved });
      const warning = /the secret authentication\[header:authorization\]\.password was set for/;
      assert.match(JSON.stringify(body.warnings), warning);
      assert.match(await getRefusal(slug), /was set before this tool called https:\/\/evil\.example/);
    });

    it('[conf 4] combines a login with stored credentials', async () => {
      const authentication = [{ type: 'Bearer' }, { type: 'ApiKey', header: 'developer-token', token: '{{DEV}}' }];
      const login = { oauth: { ...oauth, token_mode: 'passthrough' }, authentication };
      const slug = await oneTool.createToolServer({}, login);
      await storeSecret(slug, 'DEV', 'dev-1');
      const result = await oneTool.toolhost.callTool(slug, 'token-of-a-person', 'run');
      assert.notEqual(result.isError, true, getResultText(result));
      const { headers } = oneTool.upstream.take().at(-1) ?? assert.fail('nothing was sent');
      assert.deepEqual([headers.authorization, headers['developer-token']], ['Bearer token-of-a-person', 'dev-1']);
    });

    it('[conf 4] reports each mistake in authentication as a problem with its fix', async () => {
      const withKey = (more: Json) => ({ type: 'ApiKey', header: 'X-Key', token: '{{K}}', ...more });
      const cookie = (name: string) => ({ type: 'Cookie', cookie: name, token: 'a' });
      const basic = (fields: Json) => ({ type: 'Basic', ...fields });
      const bearer = { type: 'Bearer' };
      const sameCookie = /^authentication\[1\]: goes to the same cookie as entry 0/;
      const cases: [unknown, RegExp, Json?][] = [
        [[], /^authentication: found an array of 0; allowed: at least 1 entry/],
        [[1, 2, 3, 4, 5].map((n) => withKey({ header: `X-${n}` })), /^authentication: .*allowed: at most 4 entries/],
        [7, /^authentication: found 7; allowed: an object or an array/],
        [[withKey({ hedaer: 'x' })], /^authentication\[0\]\.hedaer: unknown field; did you mean `header`\?/],
        [[withKey({}), withKey({ header: 'x_key' })], /^authentication\[1\]: goes to the same header as entry 0/],
        [
          ['api_key', 'API.KEY'].map((query_key) => ({ type: 'QueryParam', query_key, token: 'a' })),
          /^authentication\[1\]: goes to the same query parameter as entry 0/,
        ],
        [[cookie('a'), cookie('a')], sameCookie],
        [[cookie('a.b'), cookie('a_b')], sameCookie],
        [[cookie('a.b'), cookie('A.B')], sameCookie],
        [
          [bearer, { type: 'ApiKey', header: 'X-Key' }],
          /^authentication\[1\]\.token: is missing; entry 0 already sends the caller token/,
        ],
        [
          [bearer, withKey({})],
          /^authentication\[0\]\.token: is missing; with stored credentials, callers send an API key/,
        ],
        [[withKey({})], /^authentication: no entry sends the login token/, { oauth }],
        [basic({ user: 'a', password: 'b' }), /^authentication\.type: cannot be combined with oauth/, { oauth }],
        [basic({ user: 'a:b', password: 'c' }), /^authentication\.user: contains a colon/],
        [basic({ user: '', password: '' }), /^authentication\.password: is empty, and so is user/],
        [basic({ user: 'a' }), /^authentication\.password: is missing, but user is set/],
        [basic({ password: 'a' }), /^authentication\.user: is missing, but password is set/],
        [
          basic({ user: 'a', password: 'b', token: 'c' }),
          /^authentication\.token: cannot be combined with user and password/,
        ],
        [basic({ user: 'a', password: 'b\n' }), /^authentication\.password: allowed: one line of visible text/],
        [{ ...bearer, user: 'a', password: 'b' }, /^authentication\.user: requires type Basic/],
        [{ type: 'Cookie', token: 'a' }, /^authentication\.cookie: is missing; type Cookie needs it/],
        [{ type: 'Cookie', cookie: 'a b', token: 'a' }, /^authentication\.cookie: found "a b"; allowed: /],
        [[withKey({ header: 'Host' })], /^authentication\[0\]\.header: this header is set by the service/],
        [[withKey({ header: 'Accept' })], /^authentication\[0\]\.header: the service sets this header itself/],
      ];
      for (const [authentication, expected, more] of cases)
        assert.match(await getProblems(authentication, more), expected);
    });

    it('[sec A1] rejects a key of this service as a credential in a list', async () => {
      for (const authentication of [
        [{ type: 'Cookie', cookie: 'a', token: key }],
        { type: 'Basic', user: 'a', password: key },
        { type: 'Basic', user: key, password: 'x' },
        [{ type: 'ApiKey', token: Buffer.from(key).toString('base64') }],
      ])
        assert.match(await getProblems(authentication), /holds an API key or a token of this service/);
    });
  });
});

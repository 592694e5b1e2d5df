import assert from 'node:assert/strict';
import { before, beforeEach, describe, it } from 'node:test';
import { useToolhostWithUpstream } from '../support/suite-fixtures.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } };

describe('access to a hosted server and its upstream credentials', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();
  let key: string;
  before(async () => {
    key = await toolhost.createKey();
  });
  beforeEach(() => void upstream.take());

  let count = 0;
  const create = async (overrides: Json = {}) => {
    const slug = `access-${++count}`;
    await toolhost.createServer(buildServerAt(slug, upstream.url, overrides));
    return slug;
  };
  const getAccess = async (slug: string) =>
    ((await toolhost.rest('GET', `/servers/${slug}`)).body.server as Json).access;
  const send = (slug: string, headers: Record<string, string>) => toolhost.post(slug, call, { headers });
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  /** Returns the only request that the upstream received for a successful call. */
  const getUpstreamRequest = async (reply: Promise<Reply>) => {
    assert.equal((await reply).status, 200);
    const [request, ...otherRequests] = upstream.take();
    assert.ok(request);
    assert.deepEqual(otherRequests, []);
    return request;
  };
  const assertRejected = async (reply: Promise<Reply>, status = 401) => {
    const { headers, body, ...response } = await reply;
    assert.equal(response.status, status, response.text);
    assert.match(headers.get('www-authenticate') ?? '', /^Bearer/);
    assert.equal(body.id, 1);
    assert.deepEqual(upstream.take(), []);
    const challenge = headers.get('www-authenticate') ?? '';
    // Some clients show the user nothing else (RFC 6750, 3).
    const message = String((body.error as Json).message).replaceAll(/["\\]/g, "'");
    assert.equal(
      /error_description="([ !#-[\]-~]+)"$/.exec(challenge)?.[1],
      /error=/.test(challenge) ? message : undefined,
    );
    return { text: response.text, challenge };
  };

  it("caller_token: sends only the caller's own token, in the scheme of the server", async () => {
    const schemes: [Json, string, string][] = [
      [{ type: 'Bearer' }, 'authorization', 'Bearer their-token'],
      [{ type: 'Basic' }, 'authorization', 'Basic their-token'],
      [{ type: 'ApiKey' }, 'authorization', 'their-token'],
      [{ type: 'ApiKey', header: 'apikey' }, 'apikey', 'their-token'],
      [{ type: 'Bearer', header: 'X-Token' }, 'x-token', 'Bearer their-token'],
    ];
    for (const [authentication, header, value] of schemes) {
      const slug = await create({ authentication });
      assert.equal(await getAccess(slug), 'caller_token');
      const request = await getUpstreamRequest(send(slug, bearer('their-token')));
      assert.equal(request.headers[header], value);
      assert.equal(request.rawHeaders.filter((text) => text.includes('their-token')).length, 1);
    }
    const query = await create({ authentication: { type: 'QueryParam' } });
    const request = await getUpstreamRequest(send(query, bearer('their+token/1')));
    assert.equal(request.url, '/thing?api_key=their%2Btoken%2F1');
    assert.equal(request.headers.authorization, undefined);
  });

  it('caller_token: sends nothing without authentication, and an API key identifies its caller', async () => {
    const slug = await create();
    for (const token of ['anything', key]) {
      const request = await getUpstreamRequest(send(slug, bearer(token)));
      assert.equal(request.rawHeaders.join(' ').includes(token), false);
    }
    await assertRejected(send(slug, bearer(await toolhost.createKey({ workspace: 'strangers' }))));
  });

  it('[sec A1] never sends API keys of this service to an upstream, valid or not', async () => {
    const nonexistentKey = `thk_${'A'.repeat(12)}_${'B'.repeat(49)}`;
    for (const authentication of [{ type: 'Bearer' }, { type: 'ApiKey', header: 'apikey' }, { type: 'QueryParam' }]) {
      const slug = await create({ authentication });
      for (const token of [
        key,
        await toolhost.createKey({ workspace: 'strangers' }),
        nonexistentKey,
        'thk_x',
        'THK_x',
        'tha_x',
        'thr_x',
        'thc_x',
      ]) {
        const { text, challenge } = await assertRejected(send(slug, bearer(token)));
        assert.match(text, /never sent there/);
        assert.match(challenge, /error="invalid_token"/);
      }
    }
    const slug = await create({ authentication: { type: 'ApiKey', header: 'apikey' } });
    await assertRejected(send(slug, { apikey: key }));
    await assertRejected(send(slug, { apikey: `Bearer ${key}` }));
    for (const token of [key, nonexistentKey]) {
      const { status, text } = await toolhost.rest('POST', `/servers/${slug}/tools/get/call`, { body: { token } });
      assert.equal(status, 400);
      assert.match(text, /never sent to an upstream/);
      assert.equal(text.includes(token), false);
    }
    assert.deepEqual(upstream.take(), []);
  });

  it('api_key: sends the stored credential to the upstream, and not the API key', async () => {
    const stored: [Json, string][] = [
      [{ authentication: { type: 'Bearer', token: 'stored-literal' } }, 'authorization'],
      [{ authentication: { type: 'ApiKey', header: 'apikey', token: '{{KEY}}' } }, 'apikey'],
      [
        { tools: [buildToolAt(`${upstream.url}/thing`, { headers: { 'X-Service': 'pre {{KEY}} post' } })] },
        'x-service',
      ],
    ];
    for (const [overrides, header] of stored) {
      const slug = await create(overrides);
      assert.equal(await getAccess(slug), 'api_key');
      await toolhost.rest('PUT', `/servers/${slug}/secrets/KEY`, { body: { value: 'stored-secret' } });
      const request = await getUpstreamRequest(send(slug, bearer(key)));
      assert.match(String(request.headers[header]), /stored-(literal|secret)/);
      assert.equal(request.rawHeaders.join(' ').includes(key), false);
      await assertRejected(send(slug, bearer('their-token')));
      await assertRejected(send(slug, {}));
    }
  });

  it('api_key: rejects every unknown key with the same response', async () => {
    const slug = await create({ authentication: { type: 'Bearer', token: 'stored' } });
    const changedCharacter = key.at(-1) === 'x' ? 'y' : 'x';
    const responses = new Set<string>();
    for (const token of [
      await toolhost.createKey({ workspace: 'strangers' }),
      key.slice(0, -1) + changedCharacter,
      key.slice(0, -1),
      `${key}x`,
      key.toLowerCase(),
    ]) {
      responses.add((await assertRejected(send(slug, bearer(token)))).text);
    }
    assert.equal(responses.size, 1);
  });

  it('api_key: explains why a key without the scope call, or limited to other servers, is rejected', async () => {
    const slug = await create({ authentication: { type: 'Bearer', token: 'stored' } });
    for (const token of [
      await toolhost.createKey({ scopes: ['manage'] }),
      await toolhost.createKey({ servers: ['elsewhere', 'access-1'] }),
    ]) {
      const { challenge } = await assertRejected(send(slug, bearer(token)), 403);
      assert.match(challenge, /error="insufficient_scope"/);
    }
    await getUpstreamRequest(send(slug, bearer(await toolhost.createKey({ scopes: ['call'], servers: [slug] }))));
  });

  it('passthrough: sends only tokens of the provider, and returns 401 with discovery hints if the upstream rejects one', async () => {
    const oauth = {
      authorization_url: 'https://id.example/authorize',
      token_url: 'https://id.example/token',
      client_id: 'c',
      client_secret: 's',
      scopes: ['read'],
      token_mode: 'passthrough',
    };
    const slug = await create({ authentication: { type: 'Bearer' }, oauth });
    assert.equal(await getAccess(slug), 'passthrough');
    assert.equal(
      (await getUpstreamRequest(send(slug, bearer('token-of-the-provider')))).headers.authorization,
      'Bearer token-of-the-provider',
    );
    for (const token of [key, 'thk_x', 'tha_x']) await assertRejected(send(slug, bearer(token)));
    assert.match(
      (await assertRejected(send(slug, {}))).challenge,
      /resource_metadata="[^"]*access-\d+", scope="read"$/,
    );
    upstream.on('GET /thing', () => ({ status: 401, body: { error: 'expired' } }));
    const reply = await send(slug, bearer('expired-token'));
    assert.equal(reply.status, 401);
    assert.match(reply.headers.get('www-authenticate') ?? '', /resource_metadata=.*error="invalid_token"/);
    // In a trial call the person is signed in to this service, even if the upstream rejects the token they entered.
    const callArguments = { slug, tool: 'get', token: 'expired-token' };
    assert.match(
      JSON.stringify((await toolhost.callTool('manage', key, 'callTool', callArguments)).content),
      /log in again/,
    );
    assert.equal(
      (await toolhost.rest('POST', `/servers/${slug}/tools/get/call`, { body: { token: 'expired-token' } })).status,
      400,
    );
    upstream.on('GET /thing', () => ({ body: {} }));
    upstream.take();
  });

  it('[sec A3] oauth: accepts only tokens of this service, without fallback to other credentials', async () => {
    const oauth = {
      authorization_url: 'https://id.example/authorize',
      token_url: 'https://id.example/token',
      client_id: 'c',
      client_secret: 's',
    };
    const slug = await create({ authentication: { type: 'Bearer' }, oauth });
    assert.equal(await getAccess(slug), 'oauth');
    for (const token of ['raw-provider-token', key, 'tha_madeup']) {
      assert.match(
        (await assertRejected(send(slug, bearer(token)))).challenge,
        /resource_metadata="[^"]*".*error="invalid_token"/,
      );
    }
  });

  it('accepts a credential in the header that the server configures, but not together with a different one', async () => {
    const slug = await create({ authentication: { type: 'ApiKey', header: 'apikey' } });
    assert.equal((await getUpstreamRequest(send(slug, { apikey: 'their-token' }))).headers.apikey, 'their-token');
    assert.equal(
      (await getUpstreamRequest(send(slug, { apikey: 'Bearer their-token' }))).headers.apikey,
      'their-token',
    );
    await getUpstreamRequest(send(slug, { apikey: 'their-token', ...bearer('their-token') }));
    assert.match(
      (await assertRejected(send(slug, { apikey: 'one', ...bearer('two') }))).text,
      /two different credentials/,
    );
    await assertRejected(send(slug, { apikey: 'two words' }));
    await assertRejected(send(slug, { 'x-api-key': 'their-token' }));
    for (const authorization of ['their-token', 'Basic their-token', 'Bearer', 'Bearer two words']) {
      await assertRejected(send(slug, { authorization }));
    }
  });

  it('accepts an API key as X-API-Key wherever it accepts one as bearer token, and nowhere else', async () => {
    const apiKeyHeader = { 'x-api-key': key };
    const storedServer = await create({ authentication: { type: 'Bearer', token: 'stored' } });
    const openServer = await create();
    for (const slug of [storedServer, openServer]) {
      for (const headers of [apiKeyHeader, { 'X-Api-Key': `Bearer ${key}` }, { ...apiKeyHeader, ...bearer(key) }]) {
        const request = await getUpstreamRequest(send(slug, headers));
        assert.equal(request.rawHeaders.join(' ').includes(key), false);
        assert.equal(request.headers['x-api-key'], undefined);
      }
      const other = await toolhost.createKey();
      for (const headers of [
        { ...apiKeyHeader, ...bearer(other) },
        { ...bearer(key), 'x-api-key': 'stray' },
      ])
        assert.match((await assertRejected(send(slug, headers))).text, /two different credentials/);
      await assertRejected(send(slug, { 'x-api-key': await toolhost.createKey({ workspace: 'strangers' }) }));
      await assertRejected(send(slug, { 'x-api-key': 'two words' }));
    }
    await assertRejected(send(storedServer, { 'x-api-key': 'their-token' }));
    await assertRejected(send(storedServer, { 'x-api-key': await toolhost.createKey({ scopes: ['manage'] }) }), 403);

    // On other servers the header is not a credential.
    const forwardingServer = await create({ authentication: { type: 'Bearer' } });
    await assertRejected(send(forwardingServer, apiKeyHeader));
    const request = await getUpstreamRequest(send(forwardingServer, { ...apiKeyHeader, ...bearer('their-token') }));
    assert.equal(request.rawHeaders.join(' ').includes(key), false);
    const customHeaderServer = await create({ authentication: { type: 'ApiKey', header: 'X-API-Key' } });
    assert.equal(
      (await getUpstreamRequest(send(customHeaderServer, { 'x-api-key': 'their-token' }))).headers['x-api-key'],
      'their-token',
    );
    assert.match((await assertRejected(send(customHeaderServer, apiKeyHeader))).text, /never sent there/);
    const provider = 'https://id.example';
    const login = { authorization_url: provider, token_url: provider, client_id: 'c', client_secret: 's' };
    await assertRejected(send(await create({ authentication: { type: 'Bearer' }, oauth: login }), apiKeyHeader));
  });

  it('accepts an API key as X-API-Key on the management server and the REST API', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const other = await toolhost.createKey();
    const cases: [Record<string, string>, number][] = [
      [{ 'x-api-key': key }, 200],
      [{ 'x-api-key': key, ...bearer(key) }, 200],
      [{ 'x-api-key': key, ...bearer(other) }, 401],
      [{ 'x-api-key': 'thk_x' }, 401],
      [{}, 401],
    ];
    for (const [headers, status] of cases) {
      assert.equal((await toolhost.post('manage', list, { headers })).status, status);
      const rest = await fetch(`${toolhost.url}/api/v1/servers`, { headers });
      assert.equal(rest.status, status);
    }
  });

  it('[mcp 39] ignores a token in the query', async () => {
    const slug = await create({ authentication: { type: 'Bearer' } });
    for (const query of [
      'access_token=their-token',
      'token=their-token',
      'authorization=Bearer%20their-token',
      `api_key=${key}`,
    ]) {
      await assertRejected(toolhost.post(`${slug}?${query}`, call));
    }
  });

  it('[sec A9] sends only the credential and the trace context of a request to the upstream', async () => {
    const slug = await create({ authentication: { type: 'Bearer' } });
    const unrelatedHeaders = {
      cookie: 'session=stray',
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-host': 'stray.example',
      forwarded: 'for=203.0.113.9',
      'proxy-authorization': 'Basic stray',
      'x-anything': 'stray',
      'x-api-key': 'stray',
      'mcp-session-id': 'stray',
      'user-agent': 'stray/1',
      'accept-language': 'xx',
      'x-http-method-override': 'DELETE',
      referer: 'https://stray.example/',
    };
    const request = await getUpstreamRequest(send(slug, { ...bearer('their-token'), ...unrelatedHeaders }));
    assert.doesNotMatch(request.rawHeaders.join('\n'), /stray|203\.0\.113\.9|xx/);
    const names = Object.keys(request.headers).toSorted();
    assert.deepEqual(names, ['accept', 'authorization', 'connection', 'host', 'toolhost-hop', 'user-agent']);
    assert.equal(request.headers.host, `127.0.0.1:${upstream.port}`);
  });
});

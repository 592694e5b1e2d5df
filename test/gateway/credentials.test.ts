import assert from 'node:assert/strict';
import { before, beforeEach, describe, it } from 'node:test';
import { setSecret } from '../support/server-requests.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { oauthConfig } from '../support/valid-configs.ts';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } };
const forwarded = { authentication: { type: 'Bearer' } };
const storedToken = { authentication: { type: 'Bearer', token: 'stored' } };
const customHeader = { authentication: { type: 'ApiKey', header: 'apikey' } };

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
  const assertAccess = async (slug: string, access: string) =>
    assert.equal(((await toolhost.rest('GET', `/servers/${slug}`)).body.server as Json).access, access);
  const tryOut = (slug: string, token: string) =>
    toolhost.rest('POST', `/servers/${slug}/tools/get/call`, { body: { token } });
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
    const description = /error_description="([ !#-[\]-~]+)"$/.exec(challenge)?.[1];
    assert.equal(description, /error=/.test(challenge) ? message : undefined);
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
      await assertAccess(slug, 'caller_token');
      const request = await getUpstreamRequest(send(slug, bearer('their-token')));
      assert.equal(request.headers[header], value);
      assert.equal(request.rawHeaders.filter((text) => text.includes('their-token')).length, 1);
    }
    const query = await create({ authentication: { type: 'QueryParam' } });
    const { url, headers } = await getUpstreamRequest(send(query, bearer('their+token/1')));
    assert.deepEqual([url, headers.authorization], ['/thing?api_key=their%2Btoken%2F1', undefined]);
  });

  it('caller_token: sends nothing without authentication, and an API key identifies its caller', async () => {
    const slug = await create();
    for (const token of ['anything', key]) {
      const request = await getUpstreamRequest(send(slug, bearer(token)));
      assert.equal(request.rawHeaders.join(' ').includes(token), false);
    }
    await assertRejected(send(slug, bearer(await toolhost.createKey({ workspace: 'strangers' }))));
  });

  it('api_key: sends the stored credential to the upstream, and not the API key', async () => {
    const headers = { 'X-Service': 'pre {{KEY}} post' };
    const stored: [Json, string][] = [
      [{ authentication: { type: 'Bearer', token: 'stored-literal' } }, 'authorization'],
      [{ authentication: { type: 'ApiKey', header: 'apikey', token: '{{KEY}}' } }, 'apikey'],
      [{ tools: [buildToolAt(`${upstream.url}/thing`, { headers })] }, 'x-service'],
    ];
    for (const [overrides, header] of stored) {
      const slug = await create(overrides);
      await assertAccess(slug, 'api_key');
      await setSecret(toolhost, slug, 'KEY', 'stored-secret');
      const request = await getUpstreamRequest(send(slug, bearer(key)));
      assert.match(String(request.headers[header]), /stored-(literal|secret)/);
      assert.equal(request.rawHeaders.join(' ').includes(key), false);
      await assertRejected(send(slug, bearer('their-token')));
      await assertRejected(send(slug, {}));
    }
  });

  it('api_key: rejects every unknown key with the same response', async () => {
    const slug = await create(storedToken);
    const changedCharacter = key.at(-1) === 'x' ? 'y' : 'x';
    const responses = new Set<string>();
    for (const token of [
      await toolhost.createKey({ workspace: 'strangers' }),
      key.slice(0, -1) + changedCharacter,
      key.slice(0, -1),
      `${key}x`,
      key.toLowerCase(),
    ])
      responses.add((await assertRejected(send(slug, bearer(token)))).text);
    assert.equal(responses.size, 1);
  });

  it('api_key: explains why a key without the scope call, or limited to other servers, is rejected', async () => {
    const slug = await create(storedToken);
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
    const slug = await create({ ...forwarded, oauth: { ...oauthConfig, scopes: ['read'], token_mode: 'passthrough' } });
    await assertAccess(slug, 'passthrough');
    const { headers } = await getUpstreamRequest(send(slug, bearer('token-of-the-provider')));
    assert.equal(headers.authorization, 'Bearer token-of-the-provider');
    for (const token of [key, 'thk_x', 'tha_x']) await assertRejected(send(slug, bearer(token)));
    const { challenge } = await assertRejected(send(slug, {}));
    assert.match(challenge, /resource_metadata="[^"]*access-\d+", scope="read"$/);
    upstream.on('GET /thing', () => ({ status: 401, body: { error: 'expired' } }));
    const reply = await send(slug, bearer('expired-token'));
    assert.equal(reply.status, 401);
    assert.match(reply.headers.get('www-authenticate') ?? '', /resource_metadata=.*error="invalid_token"/);
    // In a trial call the person is signed in to this service, even if the upstream rejects the token they entered.
    const callArguments = { slug, tool: 'get', token: 'expired-token' };
    const { content } = await toolhost.callTool('manage', key, 'callTool', callArguments);
    assert.match(JSON.stringify(content), /log in again/);
    assert.equal((await tryOut(slug, 'expired-token')).status, 400);
    upstream.on('GET /thing', () => ({ body: {} }));
    upstream.take();
  });

  it('[sec A3] oauth: accepts only tokens of this service, without fallback to other credentials', async () => {
    const slug = await create({ ...forwarded, oauth: oauthConfig });
    await assertAccess(slug, 'oauth');
    for (const token of ['raw-provider-token', key, 'tha_madeup']) {
      const { challenge } = await assertRejected(send(slug, bearer(token)));
      assert.match(challenge, /resource_metadata="[^"]*".*error="invalid_token"/);
    }
  });

  it('accepts a credential in the header that the server configures, but not together with a different one', async () => {
    const slug = await create(customHeader);
    for (const apikey of ['their-token', 'Bearer their-token'])
      assert.equal((await getUpstreamRequest(send(slug, { apikey }))).headers.apikey, 'their-token');
    await getUpstreamRequest(send(slug, { apikey: 'their-token', ...bearer('their-token') }));
    const { text } = await assertRejected(send(slug, { apikey: 'one', ...bearer('two') }));
    assert.match(text, /two different credentials/);
    for (const headers of [{ apikey: 'two words' }, { 'x-api-key': 'their-token' }])
      await assertRejected(send(slug, headers));
    for (const authorization of ['their-token', 'Basic their-token', 'Bearer', 'Bearer two words'])
      await assertRejected(send(slug, { authorization }));
  });

  it('accepts an API key as X-API-Key wherever it accepts one as bearer token, and nowhere else', async () => {
    const apiKeyHeader = { 'x-api-key': key };
    const storedServer = await create(storedToken);
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
      for (const header of [await toolhost.createKey({ workspace: 'strangers' }), 'two words'])
        await assertRejected(send(slug, { 'x-api-key': header }));
    }
    await assertRejected(send(storedServer, { 'x-api-key': 'their-token' }));
    await assertRejected(send(storedServer, { 'x-api-key': await toolhost.createKey({ scopes: ['manage'] }) }), 403);

    // On other servers the header is not a credential.
    const forwardingServer = await create(forwarded);
    await assertRejected(send(forwardingServer, apiKeyHeader));
    const request = await getUpstreamRequest(send(forwardingServer, { ...apiKeyHeader, ...bearer('their-token') }));
    assert.equal(request.rawHeaders.join(' ').includes(key), false);
    const customHeaderServer = await create({ authentication: { type: 'ApiKey', header: 'X-API-Key' } });
    const own = await getUpstreamRequest(send(customHeaderServer, { 'x-api-key': 'their-token' }));
    assert.equal(own.headers['x-api-key'], 'their-token');
    assert.match((await assertRejected(send(customHeaderServer, apiKeyHeader))).text, /never sent there/);
    await assertRejected(send(await create({ ...forwarded, oauth: oauthConfig }), apiKeyHeader));
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
      assert.equal((await fetch(`${toolhost.url}/api/v1/servers`, { headers })).status, status);
    }
  });

  it('[mcp 39] ignores a token in the query', async () => {
    const slug = await create(forwarded);
    const authorization = 'authorization=Bearer%20their-token';
    for (const query of ['access_token=their-token', 'token=their-token', authorization, `api_key=${key}`])
      await assertRejected(toolhost.post(`${slug}?${query}`, call));
  });

  it('[sec A9] sends only the credential and the trace context of a request to the upstream', async () => {
    const slug = await create(forwarded);
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

import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { loginRequestsPerMinute } from '../../apps/server/src/app/web.ts';
import { getRedirectTarget, visibleText } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, clientWithId, post } from '../support/oauth/oauth-client.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';

describe('client registration', async () => {
  let addressCount = 0;
  // A fixed clock, so that the minute in which registrations are counted does not end during a test.
  const world = await startLoginWorld({ runtimeOptions: { clock: () => 0 } });
  const slug = await world.createServer();
  const issuer = world.issuer(slug);
  after(() => world.stop());

  const register = (metadata: Json, address = `192.0.2.${++addressCount}`) =>
    post(`${issuer}/register`, metadata, { 'x-forwarded-for': address });
  const metadata = { redirect_uris: ['https://agent.example/cb'] };
  /** Registers clients in batches, because hundreds of new connections may exceed the time limit of a request. */
  const registerMany = async (count: number, getAddress: (n: number) => string) => {
    const addresses = Array.from({ length: count }, (_, n) => getAddress(n));
    const replies: Reply[] = [];
    for (let at = 0; at < count; at += 50)
      replies.push(...(await Promise.all(addresses.slice(at, at + 50).map((address) => register(metadata, address)))));
    return replies;
  };

  async function openConsentPage(clientId: string, redirectUri: string) {
    const client = clientWithId(clientId, { issuer, redirectUri });
    return world.newBrowser().get(client.authorization().url);
  }

  it('[mcp 54] returns 201 with a client ID, its metadata, and an explicit authentication method', async () => {
    const redirect_uris = ['https://agent.example/cb', 'http://127.0.0.1:4711/cb'];
    const metadata = { client_name: 'Agent', redirect_uris, application_type: 'native', scope: 'read' };
    const before = Math.floor(Date.now() / 1000);
    const reply = await register({ ...metadata, token_endpoint_auth_method: 'private_key_jwt', unknown: [{}] });
    assert.equal(reply.status, 201);
    assert.equal(reply.headers.get('cache-control'), 'no-store');
    const { client_id, client_id_issued_at, ...rest } = reply.body;
    assert.match(String(client_id), /^thc_[\w-]+\.[\w-]+$/);
    assert.ok(Number(client_id_issued_at) >= before && Number(client_id_issued_at) <= Date.now() / 1000);
    const fixed = { grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] };
    assert.deepEqual(rest, { ...metadata, ...fixed, token_endpoint_auth_method: 'none' });
  });

  const refused = [
    ...['http://agent.example/cb', 'http://127.0.0.2/cb', 'http://localhost.evil.example/cb', 'http://192.168.0.1/cb'],
    ...['javascript:alert(1)', 'JavaScript:alert(1)', ' javascript:alert(1)', 'data:text/html,x', 'vbscript:x'],
    ...['file:///etc/passwd', 'blob:https://agent.example/x', 'ms-msdt:/id', 'https://agent.example/cb#fragment'],
    ...['https://user@agent.example/cb', 'https://agent.example\\@evil.example/cb', 'https://agent.example/c b'],
    ...['https://agent.example/"><script>', 'https://bücher.example/cb', '/cb', ''],
    `https://agent.example/${'a'.repeat(2000)}`,
  ];

  it('[sec D5] [mcp 54] rejects a redirect URI that is unsafe, malformed, or too long', async () => {
    for (const uri of refused) {
      const reply = await register({ redirect_uris: ['https://agent.example/cb', uri] }, '192.0.2.250');
      assertOAuthError(reply, 400, 'invalid_redirect_uri');
      assert.match(String(reply.body.error_description), /^redirect_uris\[1\] (is|must|has|leads)/);
    }
  });

  it('[sec D5] [mcp 43] shows an error page without a redirect if the client is unknown', async () => {
    const { id } = await world.registerClient(slug);
    const elsewhere = await world.registerClient(await world.createServer());
    const [payload = '', mac = ''] = id.split('.');
    const forged = Buffer.from('{"s":"x","n":"x","r":["https://agent.example/callback"],"t":1}').toString('base64url');
    const unknown = ['x', elsewhere.id, `thc_${forged}.${mac}`, `${payload}.${mac.slice(0, -2)}`, `${id}x`, payload];
    for (const clientId of unknown) {
      const page = await openConsentPage(clientId, 'https://agent.example/callback');
      assert.deepEqual([page.status, getRedirectTarget(page)], [400, undefined], clientId);
      assert.match(page.html, /invalid_client/);
    }
  });

  it('[sec D6] [mcp 44] accepts another port in a loopback redirect URI, and no other difference from the registered URI', async () => {
    const accepted = [
      ['http://127.0.0.1/cb', 'http://127.0.0.1:54321/cb'],
      ['http://127.0.0.1:1/cb', 'http://127.0.0.1:2/cb'],
      ['http://127.0.0.1:1/cb', 'http://127.0.0.1/cb'],
      ['http://localhost/callback', 'http://localhost:3118/callback'],
      ['http://[::1]/cb', 'http://[::1]:8080/cb'],
      ['http://127.0.0.1/cb?a=1', 'http://127.0.0.1:5/cb?a=1'],
    ] as const;
    const loopbacks = [
      ...['http://127.0.0.1:5/cb/', 'http://127.0.0.1:5/other', 'http://127.0.0.1:5/x/../cb'],
      ...['http://127.0.0.1:5/cb?a=1', 'http://localhost:5/cb', 'https://127.0.0.1/cb'],
      ...['http://127.0.0.1:5@evil.example/cb', 'http://127.0.0.1.evil.example/cb'],
    ];
    const webUris = ['https://agent.example:444/cb', 'https://agent.example/cb?x=1', 'https://AGENT.example/cb'];
    const rejected = [
      ...loopbacks.map((requested) => ['http://127.0.0.1/cb', requested] as const),
      ...[...webUris, 'https://agent.example/CB'].map((requested) => ['https://agent.example/cb', requested] as const),
      ['cursor://one/cb', 'cursor://two/cb'] as const,
    ];
    for (const [status, pairs] of [
      [200, accepted],
      [400, rejected],
    ] as const) {
      for (const [registered, requested] of pairs) {
        const { id } = await world.registerClient(slug, { redirectUri: registered });
        const page = await openConsentPage(id, requested);
        assert.deepEqual([page.status, getRedirectTarget(page)], [status, undefined], `${registered} ${requested}`);
      }
    }
  });

  it('treats null as an omitted member, for every member', async () => {
    const redirect_uris = ['https://client.example/callback'];
    assert.equal((await register({ redirect_uris, client_uri: null, scope: null })).status, 201);
    const names = ['client_name', 'application_type', 'token_endpoint_auth_method', 'grant_types', 'response_types'];
    const others = ['logo_uri', 'contacts', 'jwks', 'software_id'];
    const nulls = Object.fromEntries([...names, ...others].map((name) => [name, null]));
    const { status, body } = await register({ redirect_uris, ...nulls });
    assert.equal(status, 201);
    assert.equal(body.client_name, 'An unnamed client');
    assert.deepEqual(['application_type' in body, 'scope' in body], [false, false]);
    assertOAuthError(await register({ redirect_uris: null }), 400, 'invalid_redirect_uri');
  });

  it('[mcp 62] rejects invalid metadata with the matching error code and a message that states what is allowed', async () => {
    const longUris = Array(20).fill(`https://agent.example/${'a'.repeat(400)}`);
    const [uriError, metadataError] = ['invalid_redirect_uri', 'invalid_client_metadata'];
    const listMessage = 'redirect_uris must be a list of at most 20 texts';
    const wrong: [unknown, string, string][] = [
      [{}, uriError, listMessage],
      [{ redirect_uris: [] }, uriError, 'redirect_uris must have at least one URI'],
      [{ redirect_uris: Array(21).fill(metadata.redirect_uris[0]) }, uriError, listMessage],
      [{ redirect_uris: 'https://agent.example/cb' }, uriError, listMessage],
      [{ redirect_uris: [5] }, uriError, listMessage],
      [{ redirect_uris: longUris }, uriError, 'the redirect URIs are too long in total'],
      [{ ...metadata, client_name: {} }, metadataError, 'client_name must be a text of at most 20000 characters'],
      [{ ...metadata, scope: 'x'.repeat(4001) }, metadataError, 'scope must be a text of at most 4000 characters'],
      [{ ...metadata, grant_types: 'x' }, metadataError, 'grant_types must be a list of at most 10 texts'],
      [[], metadataError, 'the client metadata must be a JSON object'],
      [null, metadataError, 'the client metadata must be a JSON object'],
    ];
    for (const [raw, code, message] of wrong) {
      const reply = await register(raw as Json, '192.0.2.251');
      assertOAuthError(reply, 400, code);
      assert.equal(reply.body.error_description, message);
    }
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': '192.0.2.251' };
    const garbage = await fetch(`${issuer}/register`, { method: 'POST', headers, body: '{"redirect_uris":' });
    assert.equal(garbage.status, 400);
    const large = await register({ redirect_uris: ['https://agent.example/cb'], client_uri: 'x'.repeat(70_000) });
    assertOAuthError(large, 413, 'invalid_request');
  });

  it('[sec D20] escapes markup in client names, replaces invisible characters, and shortens long names', async () => {
    const names: [string, string][] = [
      ['<script>alert(1)</script>', '<script>alert(1)</script>'],
      ['"><img src=x onerror=alert(1)>', '"><img src=x onerror=alert(1)>'],
      ['Claude\u202egnp.exe', 'Claude\ufffdgnp.exe'],
      ['Cla\u200bude\u0000\u001b[2J', 'Cla\ufffdude\ufffd\ufffd[2J'],
      ['line\r\nbreak\u2028next', 'line break next'],
      ['x'.repeat(10_000), 'x'.repeat(80)],
      [' \n ', 'An unnamed client'],
      ['😀'.repeat(100), '😀'.repeat(80)],
    ];
    for (const [name, shown] of names) {
      const { id, redirectUri } = await world.registerClient(slug, { name });
      const page = await openConsentPage(id, redirectUri);
      assert.equal(page.status, 200);
      assert.ok(visibleText(page).includes(`Allow “${shown}” to use`), visibleText(page));
      assert.doesNotMatch(page.html, /<script|<img|[\u202e\u200b\u2028]/);
      const policy = page.headers.get('content-security-policy')?.replaceAll(/sha256-[\w+/=]+/g, '*');
      const inherited = "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
      assert.equal(policy, `default-src 'none'; style-src '*' '*'; font-src 'self'; ${inherited}`);
    }
  });

  it('[sec D19] limits a flood of registrations with 429, stores nothing, and continues to serve others', async () => {
    const { dataDir } = world.toolhost;
    const sizes = () => readdirSync(dataDir).reduce((sum, name) => sum + statSync(join(dataDir, name)).size, 0);
    const before = sizes();
    const replies = await registerMany(loginRequestsPerMinute + 50, () => '192.0.2.252');
    const refusals = replies.filter((reply) => reply.status === 429);
    assert.deepEqual(
      [replies.filter((reply) => reply.status === 201).length, refusals.length],
      [loginRequestsPerMinute, 50],
    );
    assert.equal(refusals[0]?.headers.get('retry-after'), '60');
    // Each stored client would add a 4 KB page to the database's log. Other writes, such as last uses, continue in the
    // meantime.
    assert.ok(sizes() - before < 16 * 4096, `${sizes() - before} bytes more`);
    assert.equal((await register(metadata, '192.0.2.253')).status, 201);
  });

  it('[sec D19] limits all addresses of an IPv6 network together', async () => {
    const replies = await registerMany(loginRequestsPerMinute + 10, (host) => `2001:db8:1:2::${host.toString(16)}`);
    assert.equal(replies.filter((reply) => reply.status === 429).length, 10);
    assert.equal((await register(metadata, '2001:db8:1:3::1')).status, 201);
  });
});

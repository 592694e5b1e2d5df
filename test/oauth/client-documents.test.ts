import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { getRedirectTarget, visibleText } from '../support/browser/browser.ts';
import { createTool, startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, clientWithId, expectTokens, type OAuthClient } from '../support/oauth/oauth-client.ts';
import { runDoctor } from '../support/toolhost/doctor-command.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { startClientDocuments } from '../support/upstreams/client-documents.ts';
import { startWebPortListener } from '../support/upstreams/listener.ts';

const redirectUri = 'http://localhost:3118/callback';

describe('clients with a metadata document', async () => {
  const site = await startClientDocuments();
  const world = await startLoginWorld({ runtimeOptions: site.runtimeOptions });
  const slug = await world.createServer();
  beforeEach(() => {
    site.take();
  });
  after(() => Promise.all([world.stop(), site.close()]));

  const createClient = (id: string, redirect = redirectUri): OAuthClient =>
    clientWithId(id, { issuer: world.issuer(slug), redirectUri: redirect });
  const openConsentPage = (client: OAuthClient) => world.newBrowser().get(client.authorization().url);

  async function assertRefused(id: string): Promise<void> {
    const page = await openConsentPage(createClient(id));
    assert.deepEqual([page.status, getRedirectTarget(page)], [400, undefined], id);
    assert.match(visibleText(page), /invalid_client/);
    assertOAuthError(await createClient(id).redeem('code', 'v'.repeat(43)), 401, 'invalid_client');
  }

  it('[mcp 55] logs a client with a metadata document in, which is fetched without anything of the caller, at its redirect URI', async () => {
    const methods = ['none', 'private_key_jwt'];
    const method = { token_endpoint_auth_method: methods[1], token_endpoint_auth_methods_supported: methods };
    const client = createClient(site.publish('/agent.json', method));
    const page = await openConsentPage(client);
    assert.equal(page.status, 200);
    const names = Object.keys(site.requests.at(-1)?.headers ?? {}).sort();
    assert.deepEqual(names, ['accept', 'connection', 'host', 'toolhost-hop', 'user-agent']);
    const text = visibleText(page);
    const origin = /Described by a document at agents\.example\.com:\d+/;
    for (const part of [/“Documented agent”/, origin, /localhost:3118/, /a program on this device/])
      assert.match(text, part);
    const { access_token } = await world.getTokens(client);
    assert.equal((await world.listTools(slug, access_token)).status, 200);
    const others = ['http://localhost:3118/other', 'http://127.0.0.1:3118/callback'];
    for (const other of [...others, 'https://agents.example.com/callback'])
      assert.equal((await openConsentPage(createClient(client.id, other))).status, 400, other);
  });

  it('[sec D19] rejects a document that does not match its URL', async () => {
    const origin = site.publish('/x').slice(0, -'/x'.length);
    const keyOnly = ['private_key_jwt'];
    const wrong = [
      site.publish('/other-id', { client_id: `${origin}/elsewhere` }),
      site.publish('/slash', { client_id: `${origin}/slash/` }),
      site.publish('/no-name', { client_name: undefined }),
      site.publish('/no-uris', { redirect_uris: [] }),
      site.publish('/text-uris', { redirect_uris: redirectUri }),
      site.publish('/bad-uri', { redirect_uris: [redirectUri, 'javascript:alert(1)'] }),
      site.publish('/secret', { token_endpoint_auth_method: 'client_secret_post' }),
      site.publish('/key', { token_endpoint_auth_method: keyOnly[0], token_endpoint_auth_methods_supported: keyOnly }),
      site.publish('/large', { padding: 'x'.repeat(5 * 1024) }),
      site.publish('/html', {}, { 'content-type': 'text/html' }),
      site.serve('/missing', { status: 404 }),
      site.serve('/created', {
        status: 201,
        body: { client_id: `${origin}/created`, client_name: 'x', redirect_uris: [redirectUri] },
      }),
      site.serve('/array', { body: [] }),
      site.serve('/null', { body: 'null' }),
      site.serve('/garbage', { body: '{"client_id":' }),
    ];
    for (const id of wrong) await assertRefused(id);
  });

  const claudeCode = 'https://claude.ai/oauth/claude-code-client-metadata';
  const knownIds = [claudeCode, 'https://chatgpt.com/oauth/codex/client.json'];

  it('[mcp 60] logs known clients in with a built-in copy of their document when it cannot be fetched, at its redirect URIs', async () => {
    for (const id of knownIds) {
      const client = createClient(id);
      const { access_token, refresh_token } = await world.getTokens(client);
      assert.equal((await world.listTools(slug, access_token)).status, 200);
      assert.equal((await client.refresh(refresh_token)).status, 200);
      const others = ['http://localhost:3118/other', 'https://claude.ai/callback', 'https://evil.example/callback'];
      for (const other of others) assert.equal((await openConsentPage(createClient(id, other))).status, 400, other);
    }
    await assertRefused(`${claudeCode}?x`);
    await assertRefused('https://claude.ai/oauth/another-client-metadata');
  });

  it('[mcp 60] explains the failure and the remedy on the page, without revealing which hostnames resolve', async (t) => {
    const getPageText = async (id: string) => visibleText(await openConsentPage(createClient(id)));
    const missing = await getPageText(site.serve('/none', { status: 404 }));
    assert.match(missing, /, cannot be used: its host returned status 404/);
    assert.match(await getPageText(site.publish('/html-page', {}, { 'content-type': 'text/html' })), /it is not JSON/);
    assert.match(await getPageText(site.publish('/no-id', { client_id: undefined })), /client_id must be a text/);
    const listener = await startWebPortListener();
    t.after(listener.close);
    // The first name has no server at this port, and the second does not resolve.
    for (const name of ['agents.example.com', 'absent.example.com', '127.0.0.1']) {
      const id = `https://${name}:${listener.port}/x`;
      const { host } = new URL(id);
      const expected = `could not fetch the client's metadata document from ${host}: there is no connection to that host. The operator can allow connections to that host, or set CLIENT_METADATA_DOCUMENTS=off`;
      assert.ok((await getPageText(id)).includes(expected), await getPageText(id));
    }
  });

  it('[mcp 60] fetches nothing with CLIENT_METADATA_DOCUMENTS=known, and neither announces nor accepts documents when it is off', async (t) => {
    const getOutcome = async (CLIENT_METADATA_DOCUMENTS: string) => {
      const { runtimeOptions } = site;
      const ownWorld = await startLoginWorld({ env: { CLIENT_METADATA_DOCUMENTS }, runtimeOptions });
      t.after(ownWorld.stop);
      const server = await ownWorld.createServer();
      const issuer = ownWorld.issuer(server);
      const path = new URL(issuer).pathname;
      const metadata = await fetch(`${ownWorld.toolhost.url}/.well-known/oauth-authorization-server${path}`);
      const { client_id_metadata_document_supported: isAnnounced } = (await metadata.json()) as Json;
      const pageFor = (id: string) =>
        ownWorld.newBrowser().get(clientWithId(id, { issuer, redirectUri }).authorization().url);
      const [known, other] = [await pageFor(claudeCode), await pageFor(site.publish('/other.json'))];
      const { checks } = await runDoctor(issuer);
      const found = checks.find(({ id }) => id === 'client_documents')?.status;
      return { isAnnounced, found, statuses: [known.status, other.status], text: visibleText(other) };
    };
    const { connections } = site;
    const known = await getOutcome('known');
    assert.deepEqual([known.isAnnounced, known.found, known.statuses], [true, 'ok', [200, 400]]);
    assert.match(known.text, /accepts metadata documents from only known clients/);
    const off = await getOutcome('off');
    assert.deepEqual([off.isAnnounced, off.found, off.statuses], [undefined, undefined, [400, 400]]);
    assert.match(off.text, /register the client instead, or ask the operator to change CLIENT_METADATA_DOCUMENTS/);
    assert.equal(site.connections, connections);
  });

  it('[sec D19] follows no redirect of a document', async () => {
    const target = site.publish('/target');
    for (const status of [301, 302, 303, 307, 308])
      await assertRefused(site.serve(`/moved-${status}`, { status, headers: { location: target } }));
    assert.ok(!site.take().includes('/target'));
  });

  it('[sec D19] does not cache a failure, and caches a document for as long as it says', async () => {
    const id = site.serve('/late', { status: 503 });
    await assertRefused(id);
    site.publish('/late', {}, { 'cache-control': 'max-age=60' });
    assert.equal((await openConsentPage(createClient(id))).status, 200);
    const unstored = site.publish('/unstored', {}, { 'cache-control': 'no-store' });
    for (const client of [id, id, unstored, unstored])
      assert.equal((await openConsentPage(createClient(client))).status, 200);
    assert.deepEqual(site.take(), ['/late', '/late', '/late', '/unstored', '/unstored']);
  });

  it('[mcp 55] [sec B3] reaches no private address, by any name or number', async (t) => {
    const listener = await startWebPortListener();
    t.after(listener.close);
    const { port } = listener;
    const ids = ['127.0.0.1', 'agents.example.com', 'localhost', '[::ffff:7f00:1]', '[::1]', '169.254.169.254'];
    for (const host of ids) await assertRefused(`https://${host}:${port}/agent.json`);
    assert.equal(listener.connections, 0);
    // Neither an IP address nor a single-label name counts as public, nor does a port of another protocol.
    const { connections } = site;
    for (const host of [`127.0.0.1:${site.port}`, `localhost:${site.port}`, 'agents.example.com:22', 'intranet:8443'])
      await assertRefused(`https://${host}/agent.json`);
    assert.equal(site.connections, connections);
  });

  it('rejects a URL that can be written in two ways, and a URL without a path', async () => {
    const id = site.publish('/agent.json');
    const wrong = ['/./agent.json', '/%61/../agent.json', '', '/', '/agent.json#x', '/agent.json?', '/x/../agent.json'];
    for (const path of wrong) await assertRefused(id.replace('/agent.json', path));
    for (const start of ['https://user@', 'HTTPS://', 'http://']) await assertRefused(id.replace('https://', start));
    assert.ok(site.take().every((path) => path === '/agent.json' || path === '/agent.json?'));
  });

  it("keeps a client's login working while its document cannot be fetched", async () => {
    const id = site.publish('/gone', {}, { 'cache-control': 'no-store' });
    const client = createClient(id);
    const tokens = await world.getTokens(client);
    site.serve('/gone', { status: 500 });
    const refreshed = expectTokens(await client.refresh(tokens.refresh_token));
    assert.equal((await client.revoke(refreshed.access_token)).status, 200);
    assert.equal((await world.listTools(slug, refreshed.access_token)).status, 401);
    const otherClient = createClient(site.serve('/stranger', { status: 500 }));
    assertOAuthError(await otherClient.refresh(refreshed.refresh_token), 401, 'invalid_client');
  });

  it('[sec D11] issues separate tokens at each server to a client with the same client ID', async () => {
    const passing = { token_mode: 'passthrough' };
    const id = site.publish('/everywhere');
    const createClientAt = (server: string) => clientWithId(id, { issuer: world.issuer(server), redirectUri });
    const [first, second] = [createClientAt(slug), createClientAt(await world.createServer())];
    const third = createClientAt(await world.createServer({}, passing));
    const fourth = createClientAt(await world.createServer({}, passing));
    await world.getTokens(second);
    const { code, verifier } = await world.logIn(first);
    for (const other of [second, third]) assertOAuthError(await other.redeem(code, verifier), 400, 'invalid_grant');
    const { access_token, refresh_token } = expectTokens(await first.redeem(code, verifier));
    assertOAuthError(await second.refresh(refresh_token), 400, 'invalid_grant');
    assert.equal((await second.revoke(access_token)).status, 200);
    assert.equal((await world.listTools(slug, access_token)).status, 200);
    const passed = await world.getTokens(third);
    for (const other of [first, fourth])
      assertOAuthError(await other.refresh(passed.refresh_token), 400, 'invalid_grant');
  });

  it('[find B7] does not reach an address of EGRESS_ALLOW, which tools and token endpoints do reach', async (t) => {
    const { resolve } = site.runtimeOptions;
    const ownWorld = await startLoginWorld({ egressPorts: [site.port], runtimeOptions: { resolve } });
    t.after(ownWorld.stop);
    const id = site.publish('/excepted.json');
    const token_url = site.serve('/token', { body: { access_token: 'a-token', token_type: 'bearer', expires_in: 60 } });
    const tools = [createTool(site.serve('/things', { body: {} }))];
    const ownSlug = await ownWorld.createServer({ tools }, { token_url });
    const before = site.connections;
    const otherClient = clientWithId(id, { issuer: ownWorld.issuer(ownSlug), redirectUri });
    const page = await ownWorld.newBrowser().get(otherClient.authorization().url);
    assert.deepEqual([page.status, getRedirectTarget(page)], [400, undefined]);
    assertOAuthError(await otherClient.redeem('code', 'v'.repeat(43)), 401, 'invalid_client');
    assert.equal(site.connections, before);
    const { access_token } = await ownWorld.getTokens(await ownWorld.registerClient(ownSlug));
    assert.notEqual((await ownWorld.callTool(ownSlug, access_token)).isError, true);
    assert.deepEqual(site.take().slice(-2), ['/token', '/things']);
  });
});

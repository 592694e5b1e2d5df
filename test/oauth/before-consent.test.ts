import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { wellKnownVendors } from '@toolhost/mcp-clients/redirect-schemes';
import { type Changes, getRedirectTarget, type Page, visibleText } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { assertOAuthError, clientWithId, type OAuthClient, post } from '../support/oauth/oauth-client.ts';
import { startClientDocuments } from '../support/upstreams/client-documents.ts';

/** Requests with one invalid parameter; the error can be sent to the client's redirect URI. */
const redirectedErrors: [what: string, changes: Changes, error: string][] = [
  ['a hybrid response_type', { response_type: 'code id_token' }, 'unsupported_response_type'],
  ['response_mode web_message', { response_mode: 'web_message' }, 'invalid_request'],
  ['no challenge', { code_challenge: undefined }, 'invalid_request'],
  ['another resource', { resource: 'https://evil.example/mcp/x' }, 'invalid_target'],
  ['a resource that is no URL', { resource: 'javascript:alert(1)' }, 'invalid_target'],
];

/** Requests whose error can be sent to no one, because the client is not known. */
const unredirectedErrors: [what: string, change: (url: URL, client: OAuthClient) => void][] = [
  ['no client_id', (url) => url.searchParams.delete('client_id')],
  ['an unknown client_id', (url) => url.searchParams.set('client_id', 'thc_e30.x')],
  ['a second client_id', (url, { id }) => url.searchParams.append('client_id', id)],
  ['no redirect_uri', (url) => url.searchParams.delete('redirect_uri')],
  ['another redirect_uri', (url) => url.searchParams.set('redirect_uri', 'https://other.example/cb')],
  ['a second redirect_uri', (url, { redirectUri }) => url.searchParams.append('redirect_uri', redirectUri)],
  ['a second state', (url) => url.searchParams.append('state', 'x')],
  ['a second response_type', (url) => url.searchParams.append('response_type', 'code')],
];

/** Redirect URIs that anyone can register, and those that an error may be redirected to automatically. */
const unverifiedRedirectUris = [
  ...['https://evil.example/cb', 'https://evil.example/cb?a=1', 'com.evil.agent:/cb', 'com.evil.agent://host/cb'],
  ...['cursor://evil.extension/cb', 'vscode://file/x'],
];
const verifiedRedirectUris = [
  ...['http://127.0.0.1:9/cb', 'http://localhost/cb', 'http://[::1]:9/cb'],
  ...['https://claude.ai/api/mcp/auth_callback', 'cursor://anysphere.cursor-mcp/oauth/callback'],
];

describe('authorization before consent', async () => {
  const site = await startClientDocuments();
  const world = await startLoginWorld({ runtimeOptions: site.runtimeOptions });
  const slugs = [await world.createServer(), await world.createServer({}, { token_mode: 'passthrough' }), 'manage'];
  after(() => Promise.all([world.stop(), site.close()]));

  /** Creates a client that registered itself, and one that a document describes, with the same redirect URI. */
  async function createClients(slug: string, redirectUri: string): Promise<OAuthClient[]> {
    const path = `/${Buffer.from(redirectUri).toString('hex')}.json`;
    const id = site.publish(path, { redirect_uris: [redirectUri] }, { 'cache-control': 'max-age=600' });
    return [
      await world.registerClient(slug, { redirectUri }),
      clientWithId(id, { issuer: world.issuer(slug), redirectUri }),
    ];
  }

  /** Asserts that the page is one of this service that runs nothing and leads nowhere automatically. */
  function assertNoRedirect(page: Page, what: string): void {
    assert.deepEqual([page.status, getRedirectTarget(page)], [400, undefined], what);
    assert.equal(page.headers.get('refresh'), null);
    assert.deepEqual(page.headers.getSetCookie(), []);
    assert.doesNotMatch(page.html, /<script|http-equiv|<form|<iframe|<img/i);
    assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'; style-src 'sha256-/);
    assert.equal(page.headers.get('cache-control'), 'no-store');
  }

  /** Visits the authorization URLs of both kinds of clients with each redirect URI, at each kind of server. */
  async function forEachClient(redirectUris: string[], visit: (client: OAuthClient, slug: string) => Promise<void>) {
    for (const slug of slugs)
      for (const redirectUri of redirectUris)
        for (const client of await createClients(slug, redirectUri)) await visit(client, slug);
  }
  const getLink = (page: Page) => /<a class="button" href="([^"]*)">/.exec(page.html)?.[1]?.replaceAll('&amp;', '&');

  it('[find B4] shows an error of an unverified client on a page with its redirect URI, without redirecting', async () => {
    await forEachClient(unverifiedRedirectUris, async (client, slug) => {
      for (const [what, changes, error] of redirectedErrors) {
        const { url, state } = client.authorization(changes);
        const page = await world.newBrowser().get(url);
        assertNoRedirect(page, `${slug} ${client.redirectUri} ${what}`);
        const { href, searchParams } = new URL(getLink(page) ?? assert.fail(page.html));
        assert.ok(href.startsWith(client.redirectUri), href);
        const reported = ['error', 'state', 'iss'].map((name) => searchParams.get(name));
        assert.deepEqual(reported, [error, state, world.issuer(slug)]);
        const { protocol, host } = new URL(client.redirectUri);
        const target = host === '' ? protocol : `${protocol}//${host}`;
        assert.ok(visibleText(page).includes(`Would redirect to ${target} `), visibleText(page));
        assert.ok(visibleText(page).includes(`Go to ${target}`), visibleText(page));
      }
    });
  });

  it('[find B4] redirects an error automatically to a program on this device and to the URL of a verified client', async () => {
    await forEachClient(verifiedRedirectUris, async (client, slug) => {
      for (const [what, changes, error] of redirectedErrors) {
        const target = getRedirectTarget(await world.newBrowser().get(client.authorization(changes).url));
        assert.ok(target?.href.startsWith(client.redirectUri), `${slug} ${client.redirectUri} ${what}`);
        assert.equal(target?.searchParams.get('error'), error);
      }
    });
  });

  it('[find B4] shows a page without a link when the request identifies no client', async () => {
    await forEachClient([...unverifiedRedirectUris, ...verifiedRedirectUris], async (client, slug) => {
      for (const [what, change] of unredirectedErrors) {
        const { url } = client.authorization();
        change(url, client);
        const page = await world.newBrowser().get(url);
        assertNoRedirect(page, `${slug} ${client.redirectUri} ${what}`);
        assert.doesNotMatch(page.html, /<a /);
      }
    });
  });

  it("[find B4] renders the client's name as text on an error page", async () => {
    const [slug = ''] = slugs;
    const name = '</dd><script>alert(1)</script><a href="https://evil.example">';
    const client = await world.registerClient(slug, { name, redirectUri: "https://evil.example/cb?x=%22'" });
    const { url } = client.authorization({ response_type: 'token', state: '"><script>' });
    const page = await world.newBrowser().get(url);
    assertNoRedirect(page, 'markup');
    assert.equal(page.html.match(/<a /g)?.length, 1);
  });

  const refusedSchemes = [
    ...['javascript', 'data', 'vbscript', 'file', 'blob', 'about', 'view-source', 'filesystem', 'intent', 'jar'],
    ...['search-ms', 'ms-msdt', 'ms-settings', 'ms-word', 'mailto', 'ssh', 'ftp', 'smb', 'ldap', 'ws', 'git', 'urn'],
    ...['slack', 'zoommtg', 'facetime', 'shortcuts', 'x-apple.systempreferences', 'microsoft.windows.camera'],
    ...['com.microsoft.teams', 'teams.microsoft.com', 'com.apple.news', 'com.google.chrome.ios', 'com.slack'],
    ...['com.googleusercontent.apps.123-abc', 'us.zoom.videomeetings', 'org.mozilla.firefox'],
    'org.telegram.messenger',
    ...['cursor-x', 'xcursor', 'vscodex', 'http+unix', 'a..b', '1.b', 'a.', 'x.y', 'windows.x'],
    ...wellKnownVendors.flatMap((maker) => [`com.${maker}`, `io.${maker}.app1`]),
  ];
  const forms = [':x', ':/cb', ':///cb', ':%2F%2Fx', '://host/cb', '://127.0.0.1/cb', '://claude.ai/cb'];
  it('[find B4] rejects redirect schemes other than https, loopback http, reversed domains, and those of known clients', async () => {
    const [slug = ''] = slugs;
    const honest = await world.registerClient(slug);
    for (const [index, scheme] of refusedSchemes.entries()) {
      const uri = (index % 5 === 0 ? scheme.toUpperCase() : scheme) + forms[index % forms.length];
      const metadata = { redirect_uris: [uri] };
      const address = { 'x-forwarded-for': `198.51.100.${index % 250}` };
      const reply = await post(`${world.issuer(slug)}/register`, metadata, address);
      assertOAuthError(reply, 400, 'invalid_redirect_uri');
      assertNoRedirect(await world.newBrowser().get(honest.authorization({ redirect_uri: uri }).url), uri);
      const id = site.publish('/scheme.json', metadata, { 'cache-control': 'no-store' });
      const documented = clientWithId(id, { issuer: world.issuer(slug), redirectUri: uri });
      assertNoRedirect(await world.newBrowser().get(documented.authorization().url), uri);
    }
  });

  it('[find B4] registers reversed domains and the schemes of known clients', async () => {
    const [slug = ''] = slugs;
    const known = ['cursor', 'vscode', 'vscode-insiders', 'windsurf', 'claude', 'zed', 'warp', 'kiro', 'mcpjam'];
    for (const scheme of [...known, 'com.example.agent', 'dev.ab1', 'org.a.b2.c3'])
      for (const form of [':/cb', '://cb', '://host/oauth/cb']) {
        const client = await world.registerClient(slug, { redirectUri: scheme + form });
        assert.equal((await world.newBrowser().get(client.authorization().url)).status, 200, scheme + form);
      }
  });
});

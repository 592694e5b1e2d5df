import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startForgedTokenProvider } from '../support/oauth/forged-token-provider.ts';
import { buildProductionEnv } from '../support/toolhost/production-env.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';
import { useFixture } from '../support/use-fixtures.ts';

const baseUrl = 'https://tools.example.com';

describe('the dashboard behind https', () => {
  const provider = useFixture(startForgedTokenProvider);
  let port: number;
  useFixture(async () => {
    port = await findFreePort();
    const env = { SERVER_HOSTS: '*.mcp.example.com', PORT: String(port), OIDC_ISSUER: provider.url };
    return startToolhost({ env: buildProductionEnv({ BASE_URL: baseUrl, OIDC_CLIENT_ID: provider.clientId, ...env }) });
  });
  const session = { cookie: '__Host-toolhost-session=username' };

  const get = (path: string, headers: Record<string, string> = {}) =>
    sendRawRequest(`http://127.0.0.1:${port}${path}`, { headers: { host: new URL(baseUrl).host, ...headers } });

  const directives = (policy: string) =>
    Object.fromEntries(policy.split('; ').map((part) => [part.split(' ')[0], part.split(' ').slice(1).join(' ')]));

  it('[sec M10] allows only its own scripts and styles, no frames, and no other site', async () => {
    for (const path of ['/', '/servers', '/servers/x/connect', '/keys', '/calls', '/audit', '/settings']) {
      const { status, headers, text } = await get(path, session);
      assert.equal(status, 200, path);
      const { 'style-src': styles = '', ...others } = directives(String(headers['content-security-policy']));
      assert.deepEqual(others, {
        ...{ 'default-src': "'none'", 'base-uri': "'none'", 'frame-ancestors': "'none'" },
        ...{ 'script-src': "'self'", 'connect-src': "'self'", 'font-src': "'self'", 'form-action': "'self'" },
        'img-src': "'self' data:",
      });
      const nonce = /^'self' 'nonce-([\w+/=-]{16,})'$/.exec(styles)?.[1];
      assert.ok(nonce, styles);
      assert.ok(text.includes(`<meta name="style-nonce" content="${nonce}"`), 'the page contains the nonce');
      assert.match(String(headers['referrer-policy']), /^(no-referrer|same-origin)$/);
      assert.match(String(headers['strict-transport-security']), /^max-age=31536000/);
      assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['cache-control'], 'no-store');
      assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|\son\w+=|<style/, 'an inline script, handler, or style');
      assert.doesNotMatch(text, /(?:src|href)="(?:https?:)?\/\//, 'the page loads nothing from other sites');
    }
  });

  it('[sec M10] requires https (HSTS) at every URL', async () => {
    const paths = ['/mcp/projects', '/files/x', '/livez', '/authorize', '/api/v1/servers', '/a//b'];
    const responses = await Promise.all(paths.map((path) => get(path)));
    responses.push(await get('/mcp', { host: 'absent.mcp.example.com' }));
    for (const { headers, text } of responses)
      assert.equal(headers['strict-transport-security'], 'max-age=31536000; includeSubDomains', text);
  });

  it('[sec M10] accepts a Host with the default port and returns 421 for every other port', async () => {
    const { host } = new URL(baseUrl);
    // RFC 9110, 4.2.3: a URL with the default port is the same URL.
    assert.equal((await get('/api/v1/openapi.json', { host: `${host.toUpperCase()}:443` })).status, 200);
    assert.equal((await get('/mcp', { host: 'absent.mcp.example.com:443' })).status, 404);
    for (const other of [`${host}:80`, `${host}:8443`, `${host}:`, `${host}:443:443`, 'x.mcp.example.com:80'])
      assert.equal((await get('/api/v1/openapi.json', { host: other })).status, 421, other);
  });

  it('[sec M10] sends a new style nonce for each page view', async () => {
    const getNonce = async () => /nonce" content="([^"]+)"/.exec((await get('/', session)).text)?.[1];
    assert.notEqual(await getNonce(), await getNonce());
  });

  it('[sec M10] binds the sign-in and session cookies to the exact host, out of reach of scripts', async () => {
    const loginRedirect = await get('/login');
    assert.equal(loginRedirect.status, 302);
    const [cookie] = loginRedirect.headers['set-cookie'] ?? [];
    const flags = ['Path=/', 'HttpOnly', 'Secure', 'SameSite=Lax'];
    assert.match(cookie ?? '', /^__Host-toolhost-sign-in-[0-9a-f]{16}=[^;]+; /);
    for (const flag of flags) assert.ok(cookie?.split('; ').includes(flag), `${cookie}`);
    const { searchParams: sent } = new URL(String(loginRedirect.headers.location));
    assert.equal(sent.get('redirect_uri'), `${baseUrl}/login/callback`);
    provider.setIdToken(sent.get('nonce') ?? '');
    const query = new URLSearchParams({ code: 'x', state: sent.get('state') ?? '', iss: provider.url });
    const back = await get(`/login/callback?${query}`, { cookie: cookie?.split(';')[0] ?? '' });
    assert.equal(back.status, 302, back.text);
    const sessionCookie = back.headers['set-cookie']?.find((line) => line.startsWith('__Host-toolhost-session='));
    assert.ok(sessionCookie, String(back.headers['set-cookie']));
    for (const flag of flags) assert.ok(sessionCookie.split('; ').includes(flag), sessionCookie);
    assert.doesNotMatch(sessionCookie, /Domain=/i);
  });
});

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import {
  type Browser,
  createBrowser,
  getNextUrl,
  getRedirectTarget,
  type Page,
  visibleText,
} from '../support/browser/browser.ts';
import { getCallbackUrl, startForgedSignIn } from '../support/oauth/forged-sign-in.ts';
import { assertOAuthError, expectTokens, type OAuthClient, registerClient } from '../support/oauth/oauth-client.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const hourMs = 60 * 60_000;
const loopbackUri = 'http://127.0.0.1:9/callback';
const redirectUris = [loopbackUri, 'https://agent.example/callback'];

describe('login at a server while its identity provider fails', async () => {
  let offsetMs = 0;
  const upstream = await startRecordingUpstream();
  const { provider, toolhost, stop } = await startForgedSignIn({
    egressPorts: [upstream.port],
    runtimeOptions: { now: () => Date.now() + offsetMs },
  });
  after(() => Promise.all([stop(), upstream.close()]));
  const issuer = `${toolhost.url}/mcp/shop`;
  await toolhost.createServer({
    name: 'Shop',
    slug: 'shop',
    authentication: { type: 'Bearer', token: 'stored-key' },
    login: { allow: { domains: ['people.example'] } },
    tools: [{ name: 'read', description: 'Reads an item.', method: 'GET', url: `${upstream.url}/items` }],
  });

  type Departure = { client: OAuthClient; verifier: string; state: string; browser: Browser; departure: URL };

  /** Starts a login until the person is at the identity provider. */
  async function depart(redirectUri = loopbackUri): Promise<Departure> {
    const client = await registerClient({ issuer, redirectUri });
    const { url, verifier, state } = client.authorization();
    const browser = createBrowser();
    return { client, verifier, state, browser, departure: getNextUrl(await browser.get(url)) };
  }

  /** Returns to the service without a code. */
  function returnWithError({ departure, browser }: Departure, error: string): Promise<Page> {
    const url = getCallbackUrl(provider, departure, { changed: { error } });
    url.searchParams.delete('code');
    return browser.get(url);
  }

  const returnWithCode = ({ departure, browser }: Departure) => {
    const claims = { email: 'anna@people.example', email_verified: true };
    return browser.get(getCallbackUrl(provider, departure, { forgery: { claims } }));
  };

  async function logIn() {
    const login = await depart();
    const page = await login.browser.press(await returnWithCode(login), 'Allow');
    const code = getNextUrl(page).searchParams.get('code') ?? assert.fail(page.html);
    return { client: login.client, tokens: expectTokens(await login.client.redeem(code, login.verifier)) };
  }

  /** Returns the redirect to the client, which an unknown redirect URI gets only after a click. */
  function getResult(page: Page, redirectUri: string): URLSearchParams {
    const link = /<a class="button" href="([^"]*)">/.exec(page.html)?.[1]?.replaceAll('&amp;', '&');
    const target = redirectUri === loopbackUri ? getNextUrl(page).href : (link ?? assert.fail(page.html));
    if (redirectUri !== loopbackUri) assert.equal(getRedirectTarget(page), undefined);
    assert.ok(target.startsWith(redirectUri), target);
    return new URL(target).searchParams;
  }

  function assertReported(page: Page, { state, client }: Departure, error: string, sentence: RegExp): void {
    assert.match(visibleText(page), sentence);
    assert.doesNotMatch(visibleText(page), /invalid request/);
    const result = getResult(page, client.redirectUri);
    assert.deepEqual(
      ['error', 'state', 'iss', 'code'].map((name) => result.get(name)),
      [error, state, issuer, null],
    );
  }

  const listGrants = async () => (await toolhost.rest('GET', '/grants?slug=shop')).body.grants as Json[];

  it('says so before the person leaves, and tells the client', async () => {
    provider.setResponse('/.well-known/openid-configuration', '{}', 503);
    for (const redirectUri of redirectUris) {
      const client = await registerClient({ issuer, redirectUri });
      const { url, state } = client.authorization();
      const page = await createBrowser().get(url);
      assert.match(visibleText(page), redirectUri === loopbackUri ? /^/ : /The identity provider does not respond/);
      const result = getResult(page, redirectUri);
      assert.deepEqual([result.get('error'), result.get('state')], ['temporarily_unavailable', state]);
    }
    provider.setResponse('/.well-known/openid-configuration');
  });

  it('reports a canceled sign-in and every other error to the client, and a second return to no one', async () => {
    for (const redirectUri of redirectUris)
      for (const [error, expected, sentence] of [
        ['access_denied', 'access_denied', /sign-in was canceled or denied at the identity provider/],
        ['temporarily_unavailable', 'temporarily_unavailable', /identity provider does not respond; retry/],
        ['server_error', 'temporarily_unavailable', /identity provider does not respond; retry/],
        ['login_required', 'server_error', /sign-in failed; start again/],
      ] as const) {
        const login = await depart(redirectUri);
        assertReported(await returnWithError(login, error), login, expected, sentence);
        const replayed = await returnWithError(login, error);
        assert.deepEqual([replayed.status, getRedirectTarget(replayed)], [403, undefined]);
      }
    const { events } = (await toolhost.rest('GET', '/audit?limit=50')).body as { events: Json[] };
    assert.equal(events.filter(({ operation }) => operation === 'loginFailed').length, 8);
  });

  it('tells the person and the client that the provider is down at the return, stores no login, and lets a later login in', async () => {
    for (const redirectUri of redirectUris) {
      const login = await depart(redirectUri);
      provider.setResponse('/token', '{}', 503);
      const page = await returnWithCode(login);
      assertReported(page, login, 'temporarily_unavailable', /identity provider does not respond; retry/);
      provider.setResponse('/token');
      assert.equal((await returnWithCode(login)).status, 403);
    }
    assert.deepEqual(await listGrants(), []);
    const { tokens } = await logIn();
    assert.equal((await toolhost.rpc('shop', tokens.access_token, 'tools/list')).status, 200);
  });

  it('ends a login after 12 hours if the provider gives no refresh token, and leads the client to the next one', async () => {
    const { tokens } = await logIn();
    assert.ok(tokens.expires_in > 43_190 && tokens.expires_in <= 43_200, String(tokens.expires_in));
    assert.equal(tokens.refresh_token, undefined);
    offsetMs += 12 * hourMs - 60_000;
    assert.equal((await toolhost.callTool('shop', tokens.access_token, 'read')).isError ?? false, false);
    offsetMs += 60_000;
    upstream.take();
    const ended = await toolhost.rpc('shop', tokens.access_token, 'tools/call', { name: 'read', arguments: {} });
    assert.deepEqual([ended.status, upstream.take()], [401, []]);
    assert.match(ended.headers.get('www-authenticate') ?? '', /resource_metadata=".*error="invalid_token"/);
    const again = await logIn();
    assert.equal((await toolhost.rpc('shop', again.tokens.access_token, 'tools/list')).status, 200);
  });

  it('keeps a refresh token that the provider renewed before it failed to say more about the person', async () => {
    provider.setRefreshToken('first');
    const { client, tokens } = await logIn();
    provider.setResponse('/token', '{"access_token":"a","token_type":"bearer","refresh_token":"second"}');
    provider.setResponse('/userinfo', '{}', 503);
    offsetMs += hourMs;
    assert.equal((await toolhost.rpc('shop', tokens.access_token, 'tools/list')).status, 401);
    assertOAuthError(await client.refresh(tokens.refresh_token), 503, 'temporarily_unavailable');
    const person = { sub: 'person', email: 'anna@people.example', email_verified: true };
    provider.setResponse('/userinfo', JSON.stringify(person));
    const renewed = expectTokens(await client.refresh(tokens.refresh_token));
    assert.equal((await toolhost.rpc('shop', renewed.access_token, 'tools/list')).status, 200);
    assert.deepEqual(provider.refreshTokens, ['first', 'second']);
  });
});

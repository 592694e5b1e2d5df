import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { getCallbackUrl, startForgedSignIn } from '../support/oauth/forged-sign-in.ts';
import type { ForgedTokenProvider } from '../support/oauth/forged-token-provider.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import type { TestToolhost } from '../support/toolhost/toolhost.ts';

describe('callbacks with made-up codes', () => {
  let provider: ForgedTokenProvider;
  let toolhost: TestToolhost;
  let stop: () => Promise<unknown>;
  beforeEach(async () => {
    const options = { env: { TRUSTED_PROXIES: '1' }, runtimeOptions: { clock: () => 0 } };
    ({ provider, toolhost, stop } = await startForgedSignIn(options));
    provider.setResponse('/token', '{"error":"invalid_grant"}', 400);
  });
  afterEach(() => stop());

  /** Returns the statuses of several callbacks from an address, all with the cookie of one sign-in. */
  async function sendCallbacks(address: string, times: number, changed?: Record<string, string>): Promise<number[]> {
    const browser = createBrowser(address);
    const departure = getNextUrl(await browser.get(`${toolhost.url}/login`));
    const url = getCallbackUrl(provider, departure, { changed });
    const cookie = [...browser.cookies('127.0.0.1')].map((pair) => pair.join('=')).join('; ');
    const headers = { cookie, 'x-forwarded-for': address };
    const statuses: number[] = [];
    for (let n = 0; n < times; n++) statuses.push((await fetch(url, { headers, redirect: 'manual' })).status);
    return statuses;
  }
  const countTokenRequests = () => provider.requestCount('/token');

  it('[find A3] sends codes of one address to the identity provider at most 100 times per minute', async () => {
    const statuses = await sendCallbacks('198.51.100.1', 105);
    assert.deepEqual([statuses.indexOf(429), countTokenRequests()], [100, 100]);
    const client = await registerClient({ issuer: `${toolhost.url}/mcp/manage` });
    const browser = createBrowser('198.51.100.1');
    const departure = await browser.press(await browser.get(client.authorization().url), 'Allow and log in');
    const page = await browser.get(getCallbackUrl(provider, getNextUrl(departure)));
    assert.deepEqual([page.status, countTokenRequests()], [429, 100], page.html);
    assert.match(page.html, /too many sign-ins from this address have failed; wait a minute/i);
    assert.deepEqual(await sendCallbacks('198.51.100.2', 1), [401]);
  });

  it('[find A3] sends one code per address once many addresses sent 300 in a minute, so that people can still sign in', async () => {
    for (const address of ['198.51.100.1', '198.51.100.2', '198.51.100.3']) await sendCallbacks(address, 100);
    assert.equal(countTokenRequests(), 300);
    assert.deepEqual(await sendCallbacks('198.51.100.4', 2), [401, 429]);
    provider.setResponse('/token');
    assert.deepEqual(await sendCallbacks('198.51.100.5', 1), [302]);
  });

  /** Asserts that enough callbacks to reach the limit do not count, because the next one is accepted. */
  async function assertNotCounted(status: number, changed?: Record<string, string>): Promise<void> {
    const statuses = await sendCallbacks('198.51.100.6', 101, changed);
    assert.deepEqual([...new Set(statuses)], [status]);
    provider.setResponse('/token');
    assert.deepEqual(await sendCallbacks('198.51.100.6', 1), [302]);
  }

  it('[find A3] does not count callbacks without a sign-in of their browser toward the shared limit', async () => {
    const statuses = new Set<number>();
    for (const address of ['198.51.100.7', '198.51.100.8', '198.51.100.9'])
      for (let n = 0; n < 401; n++) {
        const headers = { 'x-forwarded-for': address };
        statuses.add((await fetch(`${toolhost.url}/login/callback?code=x&state=x`, { headers })).status);
      }
    assert.deepEqual([...statuses], [403, 429]);
    assert.deepEqual(await sendCallbacks('198.51.100.4', 2), [401, 401]);
  });

  it('[find A3] does not count callbacks after the person cancels at the provider', () =>
    assertNotCounted(401, { error: 'access_denied' }));

  it('[find A3] does not count callbacks while the provider is down', async () => {
    provider.setResponse('/token', 'down', 503);
    await assertNotCounted(503);
  });

  it('[find A3] limits the sign-outs of one address to 300 database queries per minute', async () => {
    const headers = { origin: toolhost.url, cookie: 'toolhost-session=made-up', 'x-forwarded-for': '198.51.100.9' };
    const post = async () =>
      (await fetch(`${toolhost.url}/logout`, { method: 'POST', headers, redirect: 'manual' })).status;
    for (let n = 0; n < 300; n++) assert.equal(await post(), 303);
    assert.equal(await post(), 429);
  });
});

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { eventually } from '../support/eventually.ts';
import { getCallbackUrl, startForgedSignIn } from '../support/oauth/forged-sign-in.ts';

const discovery = '/.well-known/openid-configuration';
/**
 * The service waits at most ten seconds for a response of the identity provider. Without the limit, this one would
 * never end.
 */
const deadline = { fromMs: 9000, toMs: 60_000 };

describe('identity provider whose responses never end', async () => {
  const { provider, toolhost, stop } = await startForgedSignIn();
  after(stop);

  it('delays sign-ins by at most ten seconds when the discovery document never ends, and requests it once', async () => {
    provider.sendEndlessResponse(discovery);
    const requestCount = provider.requestCount(discovery);
    const startSignIn = (browser = createBrowser()) => browser.get(`${toolhost.url}/login`);
    const started = performance.now();
    const waiting = Promise.all([startSignIn(), startSignIn()]);
    await eventually(() => assert.equal(provider.requestCount(discovery), requestCount + 1));
    assert.equal((await toolhost.rest('GET', '/servers')).status, 200, 'other requests are not delayed');
    const statuses = (await waiting).map(({ status }) => status);
    const tookMs = performance.now() - started;
    assert.ok(tookMs > deadline.fromMs && tookMs < deadline.toMs, String(tookMs));
    assert.deepEqual(statuses, [503, 503]);
    assert.equal(provider.requestCount(discovery), requestCount + 1);
    const browser = createBrowser();
    const callback = getCallbackUrl(provider, getNextUrl(await startSignIn(browser)));
    assert.equal((await browser.get(callback)).status, 302, 'the next sign-in requests the document again');
  });
});

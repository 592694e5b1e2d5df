import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createBrowser, getNextUrl, type Page } from '../support/browser/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type ForgedTokenProvider, startForgedTokenProvider } from '../support/oauth/forged-token-provider.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

type World = {
  provider: ForgedTokenProvider;
  toolhost: TestToolhost;
  /** Starts a sign-in, up to the redirect to the provider. */
  startSignIn(browser?: ReturnType<typeof createBrowser>): Promise<Page>;
  /** Completes a sign-in. Returns the last page. */
  signIn(): Promise<Page>;
};

const discovery = '/.well-known/openid-configuration';
/**
 * The service waits at most ten seconds for a response of the identity provider. Without the limit, this one would
 * never end.
 */
const deadline = { fromMs: 9000, toMs: 60_000 };

/** Starts a provider and a service that people sign in to with it. */
async function startWorld(): Promise<World> {
  const provider = await startForgedTokenProvider();
  const env = { OIDC_ISSUER: provider.url, OIDC_CLIENT_ID: provider.clientId, OIDC_CLIENT_SECRET: 'of-the-client' };
  const toolhost = await startToolhost({ env });
  const startSignIn = (browser = createBrowser()) => browser.get(`${toolhost.url}/login`);
  return {
    provider,
    toolhost,
    startSignIn,
    async signIn() {
      const browser = createBrowser();
      const { searchParams: sent } = getNextUrl(await startSignIn(browser));
      provider.setIdToken(sent.get('nonce') ?? '');
      const query = new URLSearchParams({ code: 'x', state: sent.get('state') ?? '', iss: provider.url });
      return browser.get(`${toolhost.url}/login/callback?${query}`);
    },
  };
}

// Runs the tests concurrently, because each waits for a deadline of ten seconds.
describe('identity provider whose responses never end', { concurrency: true }, () => {
  const worlds: World[] = [];
  const start = async () => {
    const world = await startWorld();
    worlds.push(world);
    return world;
  };
  after(() => Promise.all(worlds.flatMap(({ toolhost, provider }) => [toolhost.stop(), provider.close()])));

  async function assertDeadline<Result>(work: Promise<Result>): Promise<Result> {
    const started = performance.now();
    const result = await work;
    const tookMs = performance.now() - started;
    assert.ok(tookMs > deadline.fromMs && tookMs < deadline.toMs, String(tookMs));
    return result;
  }

  it('delays sign-ins by at most ten seconds when the discovery document never ends, and requests it once', async () => {
    const { provider, toolhost, startSignIn, signIn } = await start();
    provider.sendEndlessResponse(discovery);
    const requestCount = provider.requestCount(discovery);
    const waiting = assertDeadline(Promise.all([startSignIn(), startSignIn()]));
    await eventually(() => assert.equal(provider.requestCount(discovery), requestCount + 1));
    assert.equal((await toolhost.rest('GET', '/servers')).status, 200, 'other requests are not delayed');
    assert.deepEqual(
      (await waiting).map(({ status }) => status),
      [503, 503],
    );
    assert.equal(provider.requestCount(discovery), requestCount + 1);
    assert.equal((await signIn()).status, 302, 'the next sign-in requests the document again');
  });
});

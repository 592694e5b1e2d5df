import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createBrowser, next, type Page } from '../support/browser/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type ForgingProvider, startForgingProvider } from '../support/oauth/forging-provider.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

type World = {
  provider: ForgingProvider;
  toolhost: TestToolhost;
  /** Goes to the provider. */
  begin(browser?: ReturnType<typeof createBrowser>): Promise<Page>;
  /** A whole sign-in: the last page. */
  signIn(): Promise<Page>;
};

const discovery = '/.well-known/openid-configuration';
/** The deadline for an answer of the identity provider is ten seconds; without one it would drip for ever. */
const deadline = { fromMs: 9000, toMs: 60_000 };

/** A provider of its own, and the service that people sign in to with it. */
async function startWorld(): Promise<World> {
  const provider = await startForgingProvider();
  const env = { OIDC_ISSUER: provider.url, OIDC_CLIENT_ID: provider.clientId, OIDC_CLIENT_SECRET: 'of-the-client' };
  const toolhost = await startToolhost({ env });
  const begin = (browser = createBrowser()) => browser.get(`${toolhost.url}/login`);
  return {
    provider,
    toolhost,
    begin,
    async signIn() {
      const browser = createBrowser();
      const { searchParams: sent } = next(await begin(browser));
      provider.issue(sent.get('nonce') ?? '');
      const query = new URLSearchParams({ code: 'x', state: sent.get('state') ?? '', iss: provider.url });
      return browser.get(`${toolhost.url}/login/callback?${query}`);
    },
  };
}

// Each waits for a deadline of ten seconds, so they wait together.
describe('an identity provider whose answers drip', { concurrency: true }, () => {
  const worlds: World[] = [];
  const start = async () => {
    const world = await startWorld();
    worlds.push(world);
    return world;
  };
  after(() => Promise.all(worlds.flatMap(({ toolhost, provider }) => [toolhost.stop(), provider.close()])));

  async function timed<Result>(work: Promise<Result>): Promise<Result> {
    const started = performance.now();
    const result = await work;
    const tookMs = performance.now() - started;
    assert.ok(tookMs > deadline.fromMs && tookMs < deadline.toMs, String(tookMs));
    return result;
  }

  it('cannot hold sign-ins longer than ten seconds with its discovery document, and is asked once', async () => {
    const { provider, toolhost, begin, signIn } = await start();
    provider.drip(discovery);
    const asked = provider.asked(discovery);
    const waiting = timed(Promise.all([begin(), begin()]));
    await eventually(() => assert.equal(provider.asked(discovery), asked + 1));
    assert.equal((await toolhost.rest('GET', '/servers')).status, 200, 'others are served meanwhile');
    assert.deepEqual(
      (await waiting).map(({ status }) => status),
      [503, 503],
    );
    assert.equal(provider.asked(discovery), asked + 1);
    assert.equal((await signIn()).status, 302, 'the next one asks again');
  });
});

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { getNextUrl, getRedirectTarget } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { clientWithId, expectTokens } from '../support/oauth/oauth-client.ts';
import { startClientDocuments } from '../support/upstreams/client-documents.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

const minuteMs = 60_000;

// Runs the tests concurrently, because each waits for a deadline of ten seconds.
describe('hosts that never respond', { concurrency: true }, async () => {
  const site = await startClientDocuments();
  const world = await startLoginWorld({ runtimeOptions: site.runtimeOptions });
  world.provider.onToken(() => 'hold');
  after(() => Promise.all([world.stop(), site.close()]));

  /** Asserts that the work takes as long as the deadline, plus a tolerance for a busy machine. */
  async function assertDeadline<Result>(work: Promise<Result>): Promise<Result> {
    const started = performance.now();
    const result = await assertWithinDeadline(14_500, () => work);
    const tookMs = performance.now() - started;
    assert.ok(tookMs > 9500, String(tookMs));
    return result;
  }

  it("[sec D14] returns an error with the client's state and this service's issuer when the token endpoint never responds", async () => {
    const slug = await world.createServer();
    const authorization = (await world.registerClient(slug)).authorization();
    const browser = world.newBrowser();
    const departure = await browser.press(await browser.get(authorization.url), 'Allow and log in');
    const returned = getNextUrl(await browser.get(getNextUrl(departure)));
    const { searchParams } = getNextUrl(await assertDeadline(browser.get(returned)));
    const reported = ['error', 'state', 'iss'].map((name) => searchParams.get(name));
    assert.deepEqual(reported, ['temporarily_unavailable', authorization.state, world.issuer(slug)]);
  });

  it('[sec D19] rejects a client whose metadata document never arrives, and does not cache the failure', async () => {
    const slug = await world.createServer();
    const id = site.serve('/slow', 'hang');
    const client = clientWithId(id, { issuer: world.issuer(slug) });
    const page = await assertDeadline(world.newBrowser().get(client.authorization().url));
    assert.deepEqual([page.status, getRedirectTarget(page)], [400, undefined]);
    assert.match(page.html, /invalid_client/);
    site.publish('/slow', { redirect_uris: [client.redirectUri] });
    assert.equal((await world.newBrowser().get(client.authorization().url)).status, 200);
  });

  it('returns Retry-After to all calls that wait for a renewal, and sends one request to the provider', async (t) => {
    // A separate world, because the test moves the clock.
    const ownWorld = await startLoginWorld();
    t.after(() => ownWorld.stop());
    const { slug, client } = await ownWorld.createClient();
    const { refresh_token } = await ownWorld.getTokens(client);
    ownWorld.advanceClock(55 * minuteMs);
    const { access_token } = expectTokens(await client.refresh(refresh_token));
    ownWorld.advanceClock(6 * minuteMs);
    ownWorld.provider.takeTokenRequests();
    ownWorld.provider.onToken(() => 'hold');
    const calls = [1, 2].map(() => ownWorld.listTools(slug, access_token));
    for (const { status, headers } of await assertDeadline(Promise.all(calls)))
      assert.deepEqual([status, headers.get('retry-after')], [503, '5']);
    assert.equal(ownWorld.provider.takeTokenRequests().length, 1);
  });
});

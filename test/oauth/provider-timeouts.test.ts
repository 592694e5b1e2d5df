import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { getNextUrl, getRedirectTarget } from '../support/browser/browser.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { clientWithId, expectTokens } from '../support/oauth/oauth-client.ts';
import { type ClientDocumentSite, startClientDocuments } from '../support/upstreams/client-documents.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

const minuteMs = 60_000;

// Runs the tests concurrently, because each waits for a deadline of ten seconds.
describe('hosts that never respond', { concurrency: true }, () => {
  let site: ClientDocumentSite;
  let world: LoginWorld;

  before(async () => {
    site = await startClientDocuments();
    world = await startLoginWorld({ runtimeOptions: site.runtimeOptions });
    world.provider.onToken(() => 'hold');
  });
  after(async () => {
    await world.stop();
    await site.close();
  });

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
    assert.deepEqual(
      [searchParams.get('error'), searchParams.get('state'), searchParams.get('iss')],
      ['temporarily_unavailable', authorization.state, world.issuer(slug)],
    );
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
    const slug = await ownWorld.createServer();
    const client = await ownWorld.registerClient(slug);
    const { refresh_token } = await ownWorld.getTokens(client);
    ownWorld.advanceClock(55 * minuteMs);
    const { access_token } = expectTokens(await client.refresh(refresh_token));
    ownWorld.advanceClock(6 * minuteMs);
    ownWorld.provider.takeTokenRequests();
    ownWorld.provider.onToken(() => 'hold');
    const [first, second] = await assertDeadline(
      Promise.all([ownWorld.listTools(slug, access_token), ownWorld.listTools(slug, access_token)]),
    );
    assert.deepEqual([first?.status, second?.status, first?.headers.get('retry-after')], [503, 503, '5']);
    assert.equal(ownWorld.provider.takeTokenRequests().length, 1);
  });
});

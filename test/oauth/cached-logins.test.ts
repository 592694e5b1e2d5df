import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { expectTokens, type OAuthClient } from '../support/oauth/oauth-client.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';

/** Maximum number of characters in cached logins. */
const maxCharacters = 30_000_000;
const maxLength = 16_384;

describe('logins that a process caches', async () => {
  const world = await startLoginWorld({ env: { REFUSALS_PER_MINUTE: '0', QUOTAS: 'writes=0,daily_writes=0' } });
  const slug = await world.createServer();
  after(() => world.stop());

  /**
   * Logs in at a provider whose tokens have the maximum length, and makes a call with each of `count` access tokens.
   */
  async function callWithTokens(client: OAuthClient, count: number) {
    const [access_token, refresh_token, scope] = ['a', 'r', 's'].map((letter) => letter.repeat(maxLength));
    const body = { access_token, refresh_token, scope, token_type: 'bearer', expires_in: 86_400 };
    world.provider.onToken(() => ({ body }));
    let tokens = await world.getTokens(client);
    for (let issuedCount = 1; ; issuedCount++) {
      assert.equal((await world.listTools(slug, tokens.access_token)).status, 200);
      if (issuedCount === count) return;
      tokens = expectTokens(await client.refresh(tokens.refresh_token));
    }
  }

  it('[find A5] are limited by their size', async () => {
    const clients = await Promise.all(Array.from({ length: 8 }, () => world.registerClient(slug)));
    const fittingCount = maxCharacters / (3 * maxLength);
    await Promise.all(clients.map((client) => callWithTokens(client, Math.ceil((fittingCount + 100) / 8))));
    const cached = (await scrapeMetrics(world.toolhost.url)).value('toolhost_cache_entries', { cache: 'logins' });
    assert.ok(cached > fittingCount / 2 && cached <= fittingCount, `${cached} are cached, ${fittingCount} fit`);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { type OAuthClient, tokensOf } from '../support/oauth/oauth-client.ts';
import { scrape } from '../support/toolhost/scrape.ts';

/** Maximum number of characters in cached logins. */
const mostCharacters = 30_000_000;
const longest = 16_384;

describe('logins that a process caches', () => {
  let world: LoginWorld;
  let slug: string;
  before(async () => {
    world = await startLoginWorld({ env: { REFUSALS_PER_MINUTE: '0', QUOTAS: 'writes=0,dailywrites=0' } });
    slug = await world.serve();
  });
  after(() => world.stop());

  /**
   * Logs in at a provider whose tokens have the maximum length, and makes a call with each of `count` access tokens.
   */
  async function callWithTokens(client: OAuthClient, count: number) {
    world.provider.onToken(() => ({
      body: {
        access_token: 'a'.repeat(longest),
        refresh_token: 'r'.repeat(longest),
        scope: 's'.repeat(longest),
        token_type: 'bearer',
        expires_in: 86_400,
      },
    }));
    let tokens = await world.tokens(client);
    for (let made = 1; ; made++) {
      assert.equal((await world.list(slug, tokens.access_token)).status, 200);
      if (made === count) return;
      tokens = tokensOf(await client.refresh(tokens.refresh_token));
    }
  }

  async function remembered(): Promise<number> {
    return (await scrape(world.toolhost.url)).value('toolhost_cache_entries', { cache: 'logins' });
  }

  it('[find A5] are limited by their size', async () => {
    const clients = await Promise.all(Array.from({ length: 8 }, () => world.client(slug)));
    const fitting = mostCharacters / (3 * longest);
    await Promise.all(clients.map((client) => callWithTokens(client, Math.ceil((fitting + 100) / 8))));
    const kept = await remembered();
    assert.ok(kept > fitting / 2 && kept <= fitting, `${kept} are cached, ${fitting} fit`);
  });
});

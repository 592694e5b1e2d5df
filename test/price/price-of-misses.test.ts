import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';

/** So many that the cache does not hold all of them. */
const mostServers = 12;

describe('the cost of large servers that are not in the cache', () => {
  let priced: PricedToolhost;
  const slugs = Array.from({ length: mostServers }, (_, n) => `large-${n}`);
  before(async () => {
    priced = await startPricedToolhost({ REFUSALS_PER_MINUTE: '0', QUOTAS: 'writes=0,megabytes=0,tools=0' });
    const description = 'Words about it, which agents read. '.repeat(20);
    const toolAt = (n: number) => ({
      name: `get_thing_${n}`,
      description,
      method: 'GET',
      url: `${priced.upstream.url}/t${n}`,
      input_schema: Object.fromEntries(
        Array.from({ length: 10 }, (_, i) => [`argument_${i}`, { type: 'integer', optional: true, description }]),
      ),
    });
    const tools = Array.from({ length: 480 }, (_, n) => toolAt(n));
    for (const slug of slugs) {
      const { status, text } = await priced.rest('POST', '/servers', { name: slug, slug, tools });
      assert.equal(status, 201, text.slice(0, 300));
    }
  });
  after(() => priced.stop());

  /** A stranger's request to each server, all at once. Returns the statuses and the texts. */
  const askAll = () =>
    Promise.all(
      slugs.map(async (slug) => {
        const response = await fetch(`${priced.url}/mcp/${slug}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
        });
        return { status: response.status, text: await response.text() };
      }),
    );

  /** On a busy machine some are not begun within five seconds. */
  function assertRefused({ status, text }: { status: number; text: string }): void {
    if (status === 429)
      assert.match(text, /was not begun within 5 s; large servers of a workspace are read one at a time/);
    else assert.equal(status, 401, text);
  }

  it('is little also for all of them at once [find A2]', async () => {
    for (const refused of await priced.costsLittle('all at once', askAll)) assertRefused(refused);
  });

  it('leaves the others their turns while a workspace calls them again and again [find A2]', async () => {
    const tools = [{ name: 'get', description: 'Gets a thing.', method: 'GET', url: `${priced.upstream.url}/thing` }];
    assert.equal((await priced.rest('POST', '/servers', { name: 'Small', slug: 'small', tools })).status, 201);
    await priced.costsLittle('again and again', async () => {
      for (let round = 0; round < 4; round++) {
        const all = askAll();
        assert.equal((await priced.rpc('small', 'ping', {})).status, 200);
        for (const refused of await all) assertRefused(refused);
      }
    });
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { toolAt } from '../support/configs.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));

/** V8 reads names with an escape wrongly, so our own reader reads them, which takes ten times as long. */
describe('the cost of configurations whose names have escapes', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ REFUSALS_PER_MINUTE: '0' });
  });
  after(() => priced.stop());

  const names = (count: number): Json => Object.fromEntries(times(count, (k) => [`"${k}`, '\n'.repeat(15)]));
  const configOf = (slug: string, objects: number, description: string): Json => ({
    name: 'Escaped',
    slug,
    description,
    tools: [
      toolAt('https://api.example.com/things', {
        method: 'POST',
        input_schema: { type: 'object', properties: { a: { enum: times(objects, (n) => ({ ...names(490), n })) } } },
      }),
    ],
  });

  for (const [what, objects] of [
    ['345 KB', 18],
    ['3.7 MB', 190],
  ] as const) {
    it(`[find A1] every operation that reads one of ${what}`, async () => {
      const slug = `escaped-${objects}`;
      assert.equal((await priced.rest('POST', '/servers', configOf(slug, objects, 'first'))).status, 201);
      let count = 0;
      const ask = async (method: string, path: string, body?: () => Json) => {
        const what = `${method} ${path}`;
        const reply = await priced.costsLittle(what, () => priced.rest(method, path, body?.()));
        assert.ok(reply.status < 300, `${what}: ${reply.status} ${reply.text.slice(0, 300)}`);
      };
      const at = `/servers/${slug}`;
      for (const path of [at, `${at}/limits`, `${at}/versions`, `/activity?slug=${slug}`, '/servers'])
        await ask('GET', path);
      await ask('PATCH', at, () => ({ description: `change ${count++}` }));
      await ask('PUT', `${at}/secrets/S`, () => ({ value: `secret value ${count++}` }));
      await ask('POST', `${at}/versions/1/restore`);
      await ask('POST', `${at}/connection-check`, () => ({}));
      const first = await priced.costsLittle('first call', async () => {
        await priced.rest('PATCH', at, { description: `change ${count++}` });
        return priced.call(slug, 'get', '{}');
      });
      assert.equal(first.status, 200, first.text);
    });
  }
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { toolAt } from '../support/configs.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

/** Part of a unit that reading so many placeholders may add to that of a large configuration. */
const most = 1;

describe('the cost of what variables fill', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ QUOTAS: 'writes=0', REFUSALS_PER_MINUTE: '0' });
  });
  after(() => priced.stop());

  const configOf = (slug: string, placeholders: number, value: string, more: Json = {}) => ({
    name: 'Filled',
    slug,
    variables: { V: { value }, W: { value } },
    tools: Array.from({ length: 800 }, (_, n) => ({
      ...toolAt(`${priced.upstream.url}/thing`, {
        method: 'POST',
        input_schema: { a: { type: 'string', value: '{{V}}{{W}}'.repeat(placeholders / 2) } },
      }),
      name: `tool_${n}`,
      description: `Takes it. ${'It is long. '.repeat(placeholders > 100 ? 1 : 300)}`,
    })),
    ...more,
  });

  it('[find A1] is little where a configuration has as many placeholders as it may have, and no secret', async () => {
    const costs = async (what: string, method: string, path: string, body?: Json) => {
      const { status, text } = await priced.costsLittle(what, () => priced.rest(method, path, body), most);
      assert.ok(status < 300, `${what}: ${status} ${text.slice(0, 300)}`);
    };
    let made = 0;
    const create = () => priced.rest('POST', '/servers', configOf(`filled-${++made}`, 62, 'vvvvv'));
    const { status, text } = await priced.costsLittle('create', create, most);
    assert.equal(status, 201, text.slice(0, 300));
    const path = `/servers/filled-${made}`;
    await costs('get', 'GET', path);
    await costs('change', 'PATCH', path, { name: 'Other' });
    await costs('connection', 'POST', `${path}/connection-check`, {});
    await costs('change a tool', 'PATCH', `${path}/tools/tool_7`, { title: 'Seven' });
    const { text: said } = await priced.costsLittle('call', () => priced.call(`filled-${made}`, 'tool_3', '{}'), most);
    assert.ok(said.includes('"result"') && !said.includes('"isError":true'), said.slice(0, 300));
  });

  it('[find A1] is little where it has more, or fills more, and so is refused', async () => {
    const headers = { 'x-0': '{{V}}'.repeat(490), 'x-1': '{{V}}'.repeat(490) };
    const configs: [Json, RegExp][] = [
      [configOf('refused', 990, 'v'), /has 792000 placeholders \{\{NAME\}\} in all fields together; allowed: 50000/],
      [configOf('refused', 990, 'v'.repeat(500)), /variables fill 495000 characters of it; allowed: 65536/],
      [configOf('refused', 2, '', { headers, variables: { V: { value: 'v'.repeat(500) } } }), /headers\.x-0/],
    ];
    for (const [config, expected] of configs) {
      const body = JSON.stringify(config);
      const { status, text } = await priced.costsLittle(
        String(expected),
        () => priced.rest('POST', '/servers', body),
        most,
      );
      assert.deepEqual([status, expected.test(text)], [400, true], text.slice(0, 500));
    }
  });
});

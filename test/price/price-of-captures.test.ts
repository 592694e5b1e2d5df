import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
const list = (item: string, count: number) => `[${times(count, () => item).join(',')}]`;

describe('CPU budget of captures and secrets', () => {
  let priced: PricedToolhost;
  const runTool = (): Json => ({
    name: 'run',
    description: 'Takes what this test sends.',
    method: 'POST',
    url: `${priced.upstream.url}/run`,
    input_schema: { type: 'object', properties: { a: {} } },
  });
  before(async () => {
    priced = await startPricedToolhost();
    const run = runTool();
    const headers = (i: number) =>
      Object.fromEntries(times(70, (j) => [`X-${j}`, `{{S${j}}}{{A${i}_${j}}}{{B${i}_${j}}}`]));
    const servers: Json[] = [
      { slug: 'few', tools: [run, { ...run, name: 'form', body: 'form' }] },
      { slug: 'many', tools: [run, { ...run, name: 'form', body: 'form' }] },
      { slug: 'wide', tools: times(190, (i) => ({ ...run, name: `t${i}`, headers: headers(i) })) },
    ];
    for (const server of servers) {
      const made = await priced.rest('POST', '/servers', { name: 'Captured', ...server });
      assert.equal(made.status, 201, made.text);
      await priced.rest('POST', `/servers/${server.slug}/capture`, { hours: 1 });
    }
    const secret = async (slug: string, name: string, value: string) => {
      const { status, text } = await priced.rest('PUT', `/servers/${slug}/secrets/${name}`, { value });
      assert.equal(status, 200, text);
    };
    await secret('few', 'S0', 'a-secret-value');
    for (const i of times(60, (n) => n)) {
      await secret('many', `S${i}`, `aaaa${i}`.padEnd(4000, 'ab"%'));
      await secret('wide', `S${i}`, `aaaa${i}`);
    }
  });
  after(() => priced.stop());

  const argumentsOf: Record<string, string> = {
    'many short texts': list('"aaaa"', 4500),
    'many empty texts': list('""', 10_000),
    'a repeated secret': list('"a-secret-value"', 1800),
    'numbers with preserved digits': list('1.10', 59_000),
    'a long text': `"${'a\\"'.repeat(300_000)}"`,
  };
  const items: Record<string, (i: number) => string> = {
    'small objects': () => '{"a":1}',
    'names that are all different': (i) => `{"k${i}":{"b":null}}`,
    'nested objects': () => `${'{"a":'.repeat(14)}1${'}'.repeat(14)}`,
    'escaped names': (i) => `{"\\u00e9${i % 300}":"https://x"}`,
  };
  it('[agent 3] measures captured responses and proposes response_fields within the CPU budget', async () => {
    let calls = 0;
    for (const [what, item] of Object.entries(items)) {
      for (const length of [15_000, 3_000_000]) {
        const count = Math.floor(length / (item(0).length + 3));
        const body = `[${times(count, item).join(',')}]`;
        const headers = { 'content-type': 'application/json' };
        priced.upstream.on('POST /run', () => ({ headers, body }));
        const called = await priced.costsLittle(`a response of ${length} bytes of ${what}`, () => {
          calls++;
          return priced.call('few', 'run', '{"a":1}');
        });
        assert.ok(called.body.result, what);
      }
    }
    const { status, text, body } = await priced.costsLittle('the proposal', () =>
      priced.rest('POST', '/servers/few/tools/run/response-fields', {}),
    );
    assert.equal(status, 200, text);
    assert.equal(body.answers, calls);
  });

  for (const slug of ['few', 'many']) {
    it(`[find A2] captures a call within the CPU budget on a server with ${slug} secrets`, async () => {
      for (const [what, value] of Object.entries(argumentsOf)) {
        for (const tool of ['run', 'form']) {
          priced.upstream.on('POST /run', () => ({ body: { text: `a-secret-value ${'aaaa'.repeat(20_000)}` } }));
          const { body } = await priced.costsLittle(`${what} in ${tool}`, () =>
            priced.call(slug, tool, `{"a":${value}}`),
          );
          assert.ok(body.result, what);
        }
      }
      const { body } = await priced.rest('GET', `/calls?slug=${slug}&limit=10`);
      const [newest] = (body.calls as Json[]).filter(({ tool }) => tool === 'run');
      const { text } = await priced.costsLittle('the capture', () => priced.rest('GET', `/calls/${newest?.id}`));
      assert.match(text, /"capture":/);
      if (slug === 'few')
        assert.ok(!text.includes('a-secret-value') && text.includes('[redacted]'), text.slice(0, 300));
    });
  }

  let changes = 0;
  const changed = async (slug: string, tool: string) => {
    await priced.rest('PATCH', `/servers/${slug}`, { description: `Changed ${++changes} times.` });
    return priced.call(slug, tool, '{}');
  };

  it('[find A1] lists and stores secrets within the CPU budget for 13,300 headers with three placeholders each', async () => {
    const { body } = await priced.costsLittle('the list', () => priced.rest('GET', '/servers/wide/secrets'));
    const [first] = body.secrets as { name: string; used_by: string[] }[];
    assert.deepEqual([first?.name, first?.used_by.length, first?.used_by[0]], ['S0', 100, 't0: X-0']);
    await priced.costsLittle('a new value', () =>
      priced.rest('PUT', '/servers/wide/secrets/S0', { value: 'new-value' }),
    );
    await priced.costsLittle('a change and a call', () => changed('wide', 't1'));
    await priced.costsLittle('the tools', () => priced.rpc('wide', 'tools/list', {}));
    await priced.costsLittle('the server', () => priced.rest('GET', '/servers/wide'));
    await priced.costsLittle('the versions', () => priced.call('manage', 'listVersions', '{"slug":"wide"}'));
    await priced.costsLittle('its limits', () => priced.rest('GET', '/servers/wide/limits'));
    await priced.costsLittle('its connection', () => priced.call('manage', 'checkConnection', '{"slug":"wide"}'));
  });
});

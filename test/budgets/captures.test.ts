import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
const makeList = (item: string, count: number) => `[${times(count, () => item).join(',')}]`;

describe('CPU budget of captures and secrets', () => {
  let toolhost: CpuBudgetToolhost;
  const runTool = (): Json => ({
    name: 'run',
    description: 'Takes what this test sends.',
    method: 'POST',
    url: `${toolhost.upstream.url}/run`,
    input_schema: { type: 'object', properties: { a: {} } },
  });
  before(async () => {
    toolhost = await startCpuBudgetToolhost();
    const run = runTool();
    const headers = (i: number) =>
      Object.fromEntries(times(70, (j) => [`X-${j}`, `{{S${j}}}{{A${i}_${j}}}{{B${i}_${j}}}`]));
    const servers: Json[] = [
      { slug: 'few', tools: [run, { ...run, name: 'form', body: 'form' }] },
      { slug: 'many', tools: [run, { ...run, name: 'form', body: 'form' }] },
      { slug: 'wide', tools: times(190, (i) => ({ ...run, name: `t${i}`, headers: headers(i) })) },
    ];
    for (const server of servers) {
      const created = await toolhost.rest('POST', '/servers', { name: 'Captured', ...server });
      assert.equal(created.status, 201, created.text);
      await toolhost.rest('POST', `/servers/${server.slug}/capture`, { hours: 1 });
    }
    const secret = async (slug: string, name: string, value: string) => {
      const { status, text } = await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { value });
      assert.equal(status, 200, text);
    };
    await secret('few', 'S0', 'a-secret-value');
    for (const i of times(60, (n) => n)) {
      await secret('many', `S${i}`, `aaaa${i}`.padEnd(4000, 'ab"%'));
      await secret('wide', `S${i}`, `aaaa${i}`);
    }
  });
  after(() => toolhost.stop());

  const argumentValues: Record<string, string> = {
    'many short texts': makeList('"aaaa"', 4500),
    'many empty texts': makeList('""', 10_000),
    'a repeated secret': makeList('"a-secret-value"', 1800),
    'numbers with preserved digits': makeList('1.10', 59_000),
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
    for (const [label, item] of Object.entries(items)) {
      for (const length of [15_000, 3_000_000]) {
        const count = Math.floor(length / (item(0).length + 3));
        const body = `[${times(count, item).join(',')}]`;
        const headers = { 'content-type': 'application/json' };
        toolhost.upstream.on('POST /run', () => ({ headers, body }));
        const called = await toolhost.assertWithinBudget(`a response of ${length} bytes of ${label}`, () => {
          calls++;
          return toolhost.call('few', 'run', '{"a":1}');
        });
        assert.ok(called.body.result, label);
      }
    }
    const { status, text, body } = await toolhost.assertWithinBudget('the proposal', () =>
      toolhost.rest('POST', '/servers/few/tools/run/response-fields', {}),
    );
    assert.equal(status, 200, text);
    assert.equal(body.answers, calls);
  });

  for (const slug of ['few', 'many']) {
    it(`[find A2] captures a call within the CPU budget on a server with ${slug} secrets`, async () => {
      for (const [label, value] of Object.entries(argumentValues)) {
        for (const tool of ['run', 'form']) {
          toolhost.upstream.on('POST /run', () => ({ body: { text: `a-secret-value ${'aaaa'.repeat(20_000)}` } }));
          const { body } = await toolhost.assertWithinBudget(`${label} in ${tool}`, () =>
            toolhost.call(slug, tool, `{"a":${value}}`),
          );
          assert.ok(body.result, label);
        }
      }
      const { body } = await toolhost.rest('GET', `/calls?slug=${slug}&limit=10`);
      const [newest] = (body.calls as Json[]).filter(({ tool }) => tool === 'run');
      const { text } = await toolhost.assertWithinBudget('the capture', () =>
        toolhost.rest('GET', `/calls/${newest?.id}`),
      );
      assert.match(text, /"capture":/);
      if (slug === 'few')
        assert.ok(!text.includes('a-secret-value') && text.includes('[redacted]'), text.slice(0, 300));
    });
  }

  let changes = 0;
  const changeAndCall = async (slug: string, tool: string) => {
    await toolhost.rest('PATCH', `/servers/${slug}`, { description: `Changed ${++changes} times.` });
    return toolhost.call(slug, tool, '{}');
  };

  it('[find A1] lists and stores secrets within the CPU budget for 13,300 headers with three placeholders each', async () => {
    const { body } = await toolhost.assertWithinBudget('the list', () => toolhost.rest('GET', '/servers/wide/secrets'));
    const [first] = body.secrets as { name: string; used_by: string[] }[];
    assert.deepEqual([first?.name, first?.used_by.length, first?.used_by[0]], ['S0', 100, 't0: X-0']);
    await toolhost.assertWithinBudget('a new value', () =>
      toolhost.rest('PUT', '/servers/wide/secrets/S0', { value: 'new-value' }),
    );
    await toolhost.assertWithinBudget('a change and a call', () => changeAndCall('wide', 't1'));
    await toolhost.assertWithinBudget('the tools', () => toolhost.rpc('wide', 'tools/list', {}));
    await toolhost.assertWithinBudget('the server', () => toolhost.rest('GET', '/servers/wide'));
    await toolhost.assertWithinBudget('the versions', () => toolhost.call('manage', 'listVersions', '{"slug":"wide"}'));
    await toolhost.assertWithinBudget('its limits', () => toolhost.rest('GET', '/servers/wide/limits'));
    await toolhost.assertWithinBudget('its connection', () =>
      toolhost.call('manage', 'checkConnection', '{"slug":"wide"}'),
    );
  });
});

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { makeList, makeObject, times } from '../support/long-values.ts';
import { useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

describe('CPU budget of captures and secrets', () => {
  const toolhost = useCpuBudgetToolhost();
  before(async () => {
    const input_schema = { type: 'object', properties: { a: {} } };
    const run = buildToolAt(`${toolhost.upstream.url}/run`, { name: 'run', method: 'POST', input_schema });
    const headers = (i: number) => makeObject(70, (j) => [`X-${j}`, `{{S${j}}}{{A${i}_${j}}}{{B${i}_${j}}}`]);
    const tools = [run, { ...run, name: 'form', body: 'form' }];
    const servers: Json[] = [
      { slug: 'few', tools },
      { slug: 'many', tools },
      { slug: 'wide', tools: times(190, (i) => ({ ...run, name: `t${i}`, headers: headers(i) })) },
    ];
    for (const server of servers) {
      await toolhost.createServer(server);
      await toolhost.rest('POST', `/servers/${server.slug}/capture`, { hours: 1 });
    }
    const secret = async (slug: string, name: string, value: string) => {
      const { status, text } = await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { value });
      assert.equal(status, 200, text);
    };
    await secret('few', 'S0', 'a-secret-value');
    for (let i = 0; i < 60; i++) {
      await secret('many', `S${i}`, `aaaa${i}`.padEnd(4000, 'ab"%'));
      await secret('wide', `S${i}`, `aaaa${i}`);
    }
  });

  const argumentValues: Record<string, string> = {
    'many short texts': makeList('"aaaa"', Infinity, 4500),
    'many empty texts': makeList('""', Infinity, 10_000),
    'a repeated secret': makeList('"a-secret-value"', Infinity, 1800),
    'numbers with preserved digits': makeList('1.10', Infinity, 59_000),
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
        const headers = { 'content-type': 'application/json' };
        const body = `[${times(count, item)}]`;
        toolhost.upstream.on('POST /run', () => ({ headers, body }));
        const called = await toolhost.assertWithinBudget(`a response of ${length} bytes of ${label}`, () => {
          calls++;
          return toolhost.call('few', 'run', '{"a":1}');
        });
        assert.ok(called.body.result, label);
      }
    }
    const path = '/servers/few/tools/run/response-fields';
    const { status, text, body } = await toolhost.measure('the proposal').rest('POST', path, {});
    assert.equal(status, 200, text);
    assert.equal(body.answers, calls);
  });

  for (const slug of ['few', 'many']) {
    it(`[find A2] captures a call within the CPU budget on a server with ${slug} secrets`, async () => {
      for (const [label, value] of Object.entries(argumentValues)) {
        for (const tool of ['run', 'form']) {
          toolhost.upstream.on('POST /run', () => ({ body: { text: `a-secret-value ${'aaaa'.repeat(20_000)}` } }));
          const { body } = await toolhost.measure(`${label} in ${tool}`).call(slug, tool, `{"a":${value}}`);
          assert.ok(body.result, label);
        }
      }
      const { body } = await toolhost.rest('GET', `/calls?slug=${slug}&limit=10`);
      const [newest] = (body.calls as Json[]).filter(({ tool }) => tool === 'run');
      const { text } = await toolhost.measure('the capture').rest('GET', `/calls/${newest?.id}`);
      assert.match(text, /"capture":/);
      if (slug === 'few')
        assert.ok(!text.includes('a-secret-value') && text.includes('[redacted]'), text.slice(0, 300));
    });
  }

  it('[find A1] lists and stores secrets within the CPU budget for 13,300 headers with three placeholders each', async () => {
    const { body } = await toolhost.measure('the list').rest('GET', '/servers/wide/secrets');
    const [first] = body.secrets as { name: string; used_by: string[] }[];
    assert.deepEqual([first?.name, first?.used_by.length, first?.used_by[0]], ['S0', 100, 't0: X-0']);
    await toolhost.measure('a new value').rest('PUT', '/servers/wide/secrets/S0', { value: 'new-value' });
    let changes = 0;
    await toolhost.assertWithinBudget('a change and a call', async () => {
      await toolhost.rest('PATCH', '/servers/wide', { description: `Changed ${++changes} times.` });
      await toolhost.call('wide', 't1');
    });
    await toolhost.measure('the tools').rpc('wide', 'tools/list', {});
    await toolhost.measure('the server').rest('GET', '/servers/wide');
    await toolhost.measure('the versions').call('manage', 'listVersions', '{"slug":"wide"}');
    await toolhost.measure('its limits').rest('GET', '/servers/wide/limits');
    await toolhost.measure('its connection').call('manage', 'checkConnection', '{"slug":"wide"}');
  });
});

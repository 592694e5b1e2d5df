import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { times } from '../support/long-values.ts';
import { type HttpReply, useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

/** Returns an object with almost the maximum number of names in a body. */
const makeWideObject = (name: string, value: string) =>
  `{${times(28_000, (n) => `"${name}${n.toString(36)}":${value}`)}}`;

/** Bodies of almost a megabyte that are slow to parse. */
const longBodies: Record<string, string> = {
  'exact numbers': makeWideObject('n', '1E-400'),
  'names with escapes': makeWideObject('\\n', '1'),
  elements: `[${times(29_000, () => '{}')}]`,
};

const nonMatchingText = `"${'a'.repeat(9000)}!"`;
/** Values of a few kilobytes that are slow to validate. */
const slowValues: Record<string, string> = {
  'a text that matches no pattern': nonMatchingText,
  'texts that match no pattern': `[${times(6, () => nonMatchingText)}]`,
  'escaped quotes': `"${'\\"'.repeat(25_000)}"`,
  numbers: `[${times(1400, () => '5')}]`,
};

describe('CPU budget of simultaneous requests', () => {
  const toolhost = useCpuBudgetToolhost({
    REFUSALS_PER_MINUTE: '0',
    // On a busy machine, slow first calls must not cause the service to reject the others.
    CONCURRENT_CALLS: '0',
    CONCURRENT_CALLS_PER_KEY: '0',
  });
  before(async () => {
    const run = buildToolAt(`${toolhost.upstream.url}/run`, { name: 'run', method: 'POST' });
    const a = { type: 'object', properties: { a: {} } };
    const anyOf = ['(a+)+$', '(a?){500}a{500}', '([ab]|\\p{L}|.){1,400}é'].map((pattern) => ({ pattern }));
    const items = { anyOf: [...anyOf, { allOf: times(900, (i) => ({ maximum: i })) }] };
    const checked = { type: 'object', properties: { a: { anyOf, items } } };
    const tools = [
      { ...run, input_schema: a },
      { ...run, name: 'form', body: 'form', input_schema: a },
      { ...run, name: 'check', input_schema: checked },
      { ...run, name: 'check_answer', output_schema: checked },
      { ...run, name: 'cut', response_fields: ['a', 'b.c'] },
    ];
    await toolhost.createServer({ slug: 'anything', tools });
  });

  /** Asserts that all requests succeed, and that no other request waits for more than one of them. */
  const assertAllWithinBudget = async (
    label: string,
    send: () => Promise<HttpReply>,
    expected: readonly number[] = [200],
    count = 10,
  ) => {
    toolhost.upstream.on('*', () => ({ body: { ok: true } }));
    const responses = await toolhost.assertWithinBudget(label, () => Promise.all(times(count, send)));
    for (const { status, text } of responses)
      assert.ok(expected.includes(status), `${label}: ${status} ${text.slice(0, 300)}`);
  };

  for (const [label, value] of Object.entries(longBodies)) {
    const args = `{"a":${value}}`;
    it(`handles simultaneous calls with many ${label} within the CPU budget`, async () => {
      await assertAllWithinBudget(`calls with ${label}`, () => toolhost.call('anything', 'run', args));
      await assertAllWithinBudget(`forms with ${label}`, () => toolhost.call('anything', 'form', args));
      await assertAllWithinBudget(`messages that are ${label}`, () => toolhost.post('/mcp/anything', value), [400]);
    });
    it(`handles simultaneous management operations with many ${label} within the CPU budget`, async () => {
      const preview = `{"slug":"anything","tool":"run","arguments":${args}}`;
      // The service does not check this many long configurations of one workspace simultaneously.
      const refused = [400, 429];
      await assertAllWithinBudget(`previews with ${label}`, () => toolhost.call('manage', 'previewToolCall', preview));
      const create = () => toolhost.call('manage', 'createMcpServer', args);
      await assertAllWithinBudget(`new servers over MCP with ${label}`, create);
      await assertAllWithinBudget(`new servers with ${label}`, () => toolhost.rest('POST', '/servers', args), refused);
      const tryOut = () => toolhost.rest('POST', '/servers/anything/tools/run/call', `{"arguments":${args}}`);
      await assertAllWithinBudget(`try-outs with ${label}`, tryOut, [200, 429]);
    });
  }

  it('lists 900 tools in 60 simultaneous requests within the CPU budget, also in batches', async () => {
    const description = 'x'.repeat(1900);
    const tools = times(900, (n) => buildToolAt('https://api.example.com/x', { name: `get_${n}`, description }));
    await toolhost.createServer({ slug: 'large', tools });
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    await assertAllWithinBudget('lists', () => toolhost.post('/mcp/large', list), [200], 60);
    await assertAllWithinBudget('batches', () => toolhost.post('/mcp/large', `[${list}]`), [200], 60);
  });

  it('accepts a hundred simultaneous long calls and runs them sequentially', async () => {
    toolhost.upstream.on('*', () => ({ body: { ok: true } }));
    const args = `{"a":${longBodies['exact numbers']}}`;
    const responses = await Promise.all(times(100, () => toolhost.call('anything', 'run', args)));
    assert.deepEqual([...new Set(responses.map(({ status }) => status))], [200]);
  });

  it('validates slow arguments of simultaneous calls within the CPU budget', async () => {
    for (const [label, value] of Object.entries(slowValues)) {
      const send = () => toolhost.call('anything', 'check', `{"a":${value}}`);
      await assertAllWithinBudget(`arguments with ${label}`, send);
    }
  });

  it('parses simultaneous upstream responses within the CPU budget', async () => {
    for (const [label, value] of Object.entries({ ...slowValues, ...longBodies })) {
      const body = `{"a":${value}}`;
      for (const tool of ['check_answer', 'cut', 'run']) {
        const send = () => {
          toolhost.upstream.on('*', () => ({ headers: { 'content-type': 'application/json' }, body }));
          return toolhost.call('anything', tool);
        };
        await assertAllWithinBudget(`responses to ${tool} with ${label}`, send);
      }
    }
  });

  it('checks short configurations in simultaneous requests within the CPU budget', async () => {
    const patterns = times(55, () => `{"pattern":"${'(?:(?:(?:a?)+)*)'.repeat(60)}"}`).join(',');
    const schema = `{"type":"object","properties":{"a":{"anyOf":[${patterns}]}}}`;
    const tool = `{"name":"t","description":"Takes it.","method":"POST","url":"https://api.example.com/x","input_schema":${schema}}`;
    const config = `{"name":"x","slug":"made-here","tools":[${tool}]}`;
    await assertAllWithinBudget('checks', () => toolhost.rest('POST', '/check', config));
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Answered, type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';

/** Number of simultaneous requests. */
const together = 10;

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));

/** Returns an object with almost the maximum number of names in a body. */
const wide = (name: string, value: string) =>
  `{${times(28_000, (n) => `"${name}${n.toString(36)}":${value}`).join(',')}}`;

/** Bodies of almost a megabyte that are slow to parse. */
const long: Record<string, string> = {
  'exact numbers': wide('n', '1E-400'),
  'names with escapes': wide('\\n', '1'),
  elements: `[${times(29_000, () => '{}').join(',')}]`,
};

const unfit = `"${'a'.repeat(9000)}!"`;
/** Values of a few kilobytes that are slow to validate. */
const short: Record<string, string> = {
  'a text that matches no pattern': unfit,
  'texts that match no pattern': `[${times(6, () => unfit)}]`,
  'escaped quotes': `"${'\\"'.repeat(25_000)}"`,
  numbers: `[${times(1400, () => '5')}]`,
};

describe('CPU budget of simultaneous requests', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({
      REFUSALS_PER_MINUTE: '0',
      // On a busy machine, slow first calls must not cause the service to reject the others.
      CONCURRENT_CALLS: '0',
      CONCURRENT_CALLS_PER_KEY: '0',
    });
    const run = { name: 'run', description: 'Takes anything.', method: 'POST', url: `${priced.upstream.url}/run` };
    const a = { type: 'object', properties: { a: {} } };
    const anyOf = ['(a+)+$', '(a?){500}a{500}', '([ab]|\\p{L}|.){1,400}é'].map((pattern) => ({ pattern }));
    const checked = {
      type: 'object',
      properties: { a: { anyOf, items: { anyOf: [...anyOf, { allOf: times(900, (i) => ({ maximum: i })) }] } } },
    };
    const tools = [
      { ...run, input_schema: a },
      { ...run, name: 'form', body: 'form', input_schema: a },
      { ...run, name: 'check', input_schema: checked },
      { ...run, name: 'check_answer', output_schema: checked },
      { ...run, name: 'cut', response_fields: ['a', 'b.c'] },
    ];
    const { status, text } = await priced.rest('POST', '/servers', { name: 'Any', slug: 'anything', tools });
    assert.equal(status, 201, text);
  });
  after(() => priced.stop());

  /** Asserts that all requests succeed, and that no other request waits for more than one of them. */
  const all = async (
    what: string,
    ask: () => Promise<Answered>,
    expected: readonly number[] = [200],
    count = together,
  ) => {
    priced.upstream.on('*', () => ({ body: { ok: true } }));
    const answers = await priced.costsLittle(what, () => Promise.all(times(count, ask)));
    for (const { status, text } of answers)
      assert.ok(expected.includes(status), `${what}: ${status} ${text.slice(0, 300)}`);
  };

  for (const [what, value] of Object.entries(long)) {
    const args = `{"a":${value}}`;
    it(`handles simultaneous calls with many ${what} within the CPU budget`, async () => {
      await all(`calls with ${what}`, () => priced.call('anything', 'run', args));
      await all(`forms with ${what}`, () => priced.call('anything', 'form', args));
      await all(`messages that are ${what}`, () => priced.post('/mcp/anything', value), [400]);
    });
    it(`handles simultaneous management operations with many ${what} within the CPU budget`, async () => {
      const preview = `{"slug":"anything","tool":"run","arguments":${args}}`;
      // The service does not check this many long configurations of one workspace simultaneously.
      const refused = [400, 429];
      await all(`previews with ${what}`, () => priced.call('manage', 'previewToolCall', preview));
      await all(`new servers over MCP with ${what}`, () => priced.call('manage', 'createMcpServer', args));
      await all(`new servers with ${what}`, () => priced.rest('POST', '/servers', args), refused);
      const tryOut = () => priced.rest('POST', '/servers/anything/tools/run/call', `{"arguments":${args}}`);
      await all(`try-outs with ${what}`, tryOut, [200, 429]);
    });
  }

  it('lists 900 tools in 60 simultaneous requests within the CPU budget, also in batches', async () => {
    const tool = { description: 'x'.repeat(1900), method: 'GET', url: 'https://api.example.com/x' };
    const tools = times(900, (n) => ({ ...tool, name: `get_${n}` }));
    assert.equal((await priced.rest('POST', '/servers', { name: 'Large', slug: 'large', tools })).status, 201);
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    await all('lists', () => priced.post('/mcp/large', list), [200], 60);
    await all('batches', () => priced.post('/mcp/large', `[${list}]`), [200], 60);
  });

  it('accepts a hundred simultaneous long calls and runs them sequentially', async () => {
    priced.upstream.on('*', () => ({ body: { ok: true } }));
    const args = `{"a":${long['exact numbers']}}`;
    const answers = await Promise.all(times(100, () => priced.call('anything', 'run', args)));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  });

  it('validates slow arguments of simultaneous calls within the CPU budget', async () => {
    for (const [what, value] of Object.entries(short))
      await all(`arguments with ${what}`, () => priced.call('anything', 'check', `{"a":${value}}`));
  });

  it('parses simultaneous upstream responses within the CPU budget', async () => {
    for (const [what, value] of Object.entries({ ...short, ...long })) {
      const body = `{"a":${value}}`;
      for (const tool of ['check_answer', 'cut', 'run']) {
        const ask = () => {
          priced.upstream.on('*', () => ({ headers: { 'content-type': 'application/json' }, body }));
          return priced.call('anything', tool, '{}');
        };
        await all(`responses to ${tool} with ${what}`, ask);
      }
    }
  });

  it('checks short configurations in simultaneous requests within the CPU budget', async () => {
    const patterns = times(55, () => `{"pattern":"${'(?:(?:(?:a?)+)*)'.repeat(60)}"}`).join(',');
    const schema = `{"type":"object","properties":{"a":{"anyOf":[${patterns}]}}}`;
    const tool = `{"name":"t","description":"Takes it.","method":"POST","url":"https://api.example.com/x","input_schema":${schema}}`;
    const config = `{"name":"x","slug":"made-here","tools":[${tool}]}`;
    await all('checks', () => priced.rest('POST', '/check', config));
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { nastyConfigs } from '../../bench/soak-hostile.ts';
import { maxParsedOnLoop } from '../../src/domain/json/body-limits.ts';
import { isLargerThan } from '../../src/domain/json/json.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';

/** CPU budget, in units, of a large configuration on the event loop, which does not parse it. */
const most = 0.25;
/** CPU budget, in units, of the largest valid configuration that the event loop parses. */
const mostOfNames = 1;

describe('CPU budget of large invalid configurations', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ REFUSALS_PER_MINUTE: '0' });
    const tool = { name: 'run', description: 'Runs.', method: 'POST', url: 'https://api.example.com/run' };
    const { status, text } = await priced.rest('POST', '/servers', { name: 'Small', slug: 'small', tools: [tool] });
    assert.equal(status, 201, text);
  });
  after(() => priced.stop());

  type Config = { tools: object[] };
  const unknown = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`field${n}`, n]));
  const [references, , ofTool] = nastyConfigs('https://api.example.com/nasty') as Config[];
  const configs = [references, ofTool, { tools: [{ name: 'run' }], ...unknown }] as Config[];

  it('[find A1] rejects an invalid configuration within the CPU budget in every REST operation', async () => {
    for (const [index, config] of configs.entries()) {
      const sent: [method: string, path: string, body: object][] = [
        ['POST', '/check', config],
        ['POST', '/servers', config],
        ['PATCH', '/servers/small', { tools: config.tools }],
        ['PUT', '/servers/small', { ...config, slug: 'small' }],
        ['POST', '/servers/small/tools', config.tools[0] as object],
        ['PATCH', '/servers/small/tools/run', config.tools[0] as object],
        ['POST', '/servers/small/plan', { config }],
        ['POST', '/servers/small/apply', { config }],
      ];
      for (const [method, path, body] of sent) {
        const text = JSON.stringify(body);
        const what = `${method} ${path} of configuration ${index}`;
        const reply = await priced.costsLittle(what, () => priced.rest(method, path, text), most);
        assert.ok([200, 400].includes(reply.status), `${what}: ${reply.status} ${reply.text.slice(0, 300)}`);
      }
    }
  });

  it('[find A1] rejects oversized secrets within the CPU budget', async () => {
    const path = '/servers/small/secrets/A';
    const sent = { value: unknown };
    const refused = await priced.costsLittle('secret', () => priced.rest('PUT', path, JSON.stringify(sent)), most);
    assert.deepEqual([refused.status, refused.body.detail], [413, 'the body is larger than 60000 bytes']);
    const many = JSON.stringify({ value: Array.from({ length: 1501 }, () => ({})) });
    assert.match((await priced.rest('PUT', path, many)).text, /more than 1500 elements/);
    for (const args of [sent, { value: Array.from({ length: 1501 }, () => ({})) }]) {
      const params = { name: 'setSecret', arguments: { slug: 'small', name: 'A', ...args } };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      const reply = await priced.costsLittle('setSecret', () => priced.post('/mcp/manage', body), most);
      assert.match(reply.text, /the arguments are larger than 60000 bytes or 1500 elements/);
    }
  });

  it('[find A1] rejects an invalid configuration within the CPU budget over MCP, also in a batch', async () => {
    for (const [index, config] of configs.entries()) {
      const calls = {
        checkMcpServer: config,
        createMcpServer: config,
        updateMcpServer: { slug: 'small', tools: config.tools },
        addTool: { ...config.tools[0], slug: 'small' },
        updateTool: { ...config.tools[0], slug: 'small', tool: 'run' },
      };
      for (const [name, args] of Object.entries(calls)) {
        const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
        for (const body of [message, [message]]) {
          const what = `${name} of configuration ${index}${Array.isArray(body) ? ' in a batch' : ''}`;
          const reply = await priced.costsLittle(what, () => priced.post('/mcp/manage', JSON.stringify(body)), most);
          assert.ok(reply.status === 200 && reply.text.includes('"result"'), `${what}: ${reply.text.slice(0, 300)}`);
        }
      }
    }
  });
});

/** Doubly escaped invisible character, six times, which is expensive to decode. */
const invisible = '%25E2%2580%258B'.repeat(6);
const mostArguments = 100;

describe('CPU budget of parameter names that receivers could confuse', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ QUOTAS: 'writes=0', REFUSALS_PER_MINUTE: '0' });
  });
  after(() => priced.stop());

  const numbers = Array.from({ length: mostArguments }, (_, n) => n);
  const toolAt = (at: number, wireName: (n: number) => string, more: object = {}) => ({
    name: `run_${at}`,
    description: 'Runs it for the owner of the thing.',
    method: 'GET',
    url: `https://api.example.com/v${at}`,
    input_schema: Object.fromEntries(numbers.map((n) => [`f${n}`, { type: 'string', wire_name: wireName(n) }])),
    ...more,
  });
  const toolsOf = (count: number, wireName: (n: number) => string, more: (at: number) => object = () => ({})) =>
    Array.from({ length: count }, (_, at) => toolAt(at, wireName, more(at)));
  /** Returns a URL with the argument names in reverse order, so that a linear search finds each one last. */
  const withPairs = (at: number) => ({
    url: `https://api.example.com/v${at}?${numbers.map((n) => `a${mostArguments - 1 - n}%5Bb%5D=1`).join('&')}`,
  });
  const halves = (n: number) => `a${n >> 1}${n % 2 === 0 ? invisible : ''}`;
  const fixed = Object.fromEntries(numbers.filter((n) => n % 12 === 0).map((n) => [`f${n}`, 'a']));
  const views = Object.fromEntries(
    numbers.slice(0, 12).map((n) => [`v${n}`, { tools: [{ name: `run_${n % 3}`, arguments: fixed }] }]),
  );
  const form = { method: 'POST', body: 'json' };
  const configs = {
    'URL parameters, encoded twice': { tools: toolsOf(3, (n) => `a${n}[b]${invisible}`, withPairs) },
    'URL parameters, with dots': { tools: toolsOf(4, (n) => `a${n}.b`, withPairs) },
    'arguments that views fix': { tools: toolsOf(3, halves), views },
    'arguments that views fix in JSON': { tools: toolsOf(3, halves, () => form), views },
  };

  it('[find A1] checks each name once within the CPU budget, however many other names exist', async () => {
    for (const [what, config] of Object.entries(configs)) {
      const sent = { name: 'Names', slug: 'names', authentication: { type: 'Bearer' }, ...config };
      const text = JSON.stringify(sent);
      assert.equal(isLargerThan(sent, maxParsedOnLoop), false, `${what} is small enough to parse on the event loop`);
      const { body } = await priced.costsLittle(what, () => priced.rest('POST', '/check', text), mostOfNames);
      assert.deepEqual(body.problems, [], what);
      assert.ok((body.warnings as unknown[]).length > 0, what);
    }
  });
});

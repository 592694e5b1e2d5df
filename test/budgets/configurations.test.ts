import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { maxParsedOnLoop } from '@toolhost/json/body-limits';
import { isLargerThan } from '@toolhost/json/json';
import { expensiveConfigs } from '../../bench/soak-attacks.ts';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';

/** CPU budget, in units, of a large configuration on the event loop, which does not parse it. */
const maxUnits = 0.25;
/** CPU budget, in units, of the largest valid configuration that the event loop parses. */
const maxUnitsForNames = 1;

describe('CPU budget of large invalid configurations', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
    const tool = { name: 'run', description: 'Runs.', method: 'POST', url: 'https://api.example.com/run' };
    const { status, text } = await toolhost.rest('POST', '/servers', { name: 'Small', slug: 'small', tools: [tool] });
    assert.equal(status, 201, text);
  });
  after(() => toolhost.stop());

  type Config = { tools: object[] };
  const unknown = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`field${n}`, n]));
  const [references, , toolConfig] = expensiveConfigs('https://api.example.com/nasty') as Config[];
  const configs = [references, toolConfig, { tools: [{ name: 'run' }], ...unknown }] as Config[];

  it('[find A1] rejects an invalid configuration within the CPU budget in every REST operation', async () => {
    for (const [index, config] of configs.entries()) {
      const requests: [method: string, path: string, body: object][] = [
        ['POST', '/check', config],
        ['POST', '/servers', config],
        ['PATCH', '/servers/small', { tools: config.tools }],
        ['PUT', '/servers/small', { ...config, slug: 'small' }],
        ['POST', '/servers/small/tools', config.tools[0] as object],
        ['PATCH', '/servers/small/tools/run', config.tools[0] as object],
        ['POST', '/servers/small/plan', { config }],
        ['POST', '/servers/small/apply', { config }],
      ];
      for (const [method, path, body] of requests) {
        const text = JSON.stringify(body);
        const label = `${method} ${path} of configuration ${index}`;
        const reply = await toolhost.assertWithinBudget(label, () => toolhost.rest(method, path, text), maxUnits);
        assert.ok([200, 400].includes(reply.status), `${label}: ${reply.status} ${reply.text.slice(0, 300)}`);
      }
    }
  });

  it('[find A1] rejects oversized secrets within the CPU budget', async () => {
    const path = '/servers/small/secrets/A';
    const oversized = { value: unknown };
    const refused = await toolhost.assertWithinBudget(
      'secret',
      () => toolhost.rest('PUT', path, JSON.stringify(oversized)),
      maxUnits,
    );
    assert.deepEqual([refused.status, refused.body.detail], [413, 'the body is larger than 60000 bytes']);
    const largeBody = JSON.stringify({ value: Array.from({ length: 1501 }, () => ({})) });
    assert.match((await toolhost.rest('PUT', path, largeBody)).text, /more than 1500 elements/);
    for (const args of [oversized, { value: Array.from({ length: 1501 }, () => ({})) }]) {
      const params = { name: 'setSecret', arguments: { slug: 'small', name: 'A', ...args } };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      const reply = await toolhost.assertWithinBudget('setSecret', () => toolhost.post('/mcp/manage', body), maxUnits);
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
          const label = `${name} of configuration ${index}${Array.isArray(body) ? ' in a batch' : ''}`;
          const reply = await toolhost.assertWithinBudget(
            label,
            () => toolhost.post('/mcp/manage', JSON.stringify(body)),
            maxUnits,
          );
          assert.ok(reply.status === 200 && reply.text.includes('"result"'), `${label}: ${reply.text.slice(0, 300)}`);
        }
      }
    }
  });
});

/** Doubly escaped invisible character, six times, which is expensive to decode. */
const invisible = '%25E2%2580%258B'.repeat(6);
const maxArguments = 100;

describe('CPU budget of parameter names that receivers could confuse', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost({ QUOTAS: 'writes=0', REFUSALS_PER_MINUTE: '0' });
  });
  after(() => toolhost.stop());

  const numbers = Array.from({ length: maxArguments }, (_, n) => n);
  const toolAt = (at: number, wireName: (n: number) => string, extra: object = {}) => ({
    name: `run_${at}`,
    description: 'Runs it for the owner of the thing.',
    method: 'GET',
    url: `https://api.example.com/v${at}`,
    input_schema: Object.fromEntries(numbers.map((n) => [`f${n}`, { type: 'string', wire_name: wireName(n) }])),
    ...extra,
  });
  const makeTools = (count: number, wireName: (n: number) => string, extra: (at: number) => object = () => ({})) =>
    Array.from({ length: count }, (_, at) => toolAt(at, wireName, extra(at)));
  /** Returns a URL with the argument names in reverse order, so that a linear search finds each one last. */
  const withPairs = (at: number) => ({
    url: `https://api.example.com/v${at}?${numbers.map((n) => `a${maxArguments - 1 - n}%5Bb%5D=1`).join('&')}`,
  });
  const makeWireName = (n: number) => `a${n >> 1}${n % 2 === 0 ? invisible : ''}`;
  const fixed = Object.fromEntries(numbers.filter((n) => n % 12 === 0).map((n) => [`f${n}`, 'a']));
  const views = Object.fromEntries(
    numbers.slice(0, 12).map((n) => [`v${n}`, { tools: [{ name: `run_${n % 3}`, arguments: fixed }] }]),
  );
  const form = { method: 'POST', body: 'json' };
  const configs = {
    'URL parameters, encoded twice': { tools: makeTools(3, (n) => `a${n}[b]${invisible}`, withPairs) },
    'URL parameters, with dots': { tools: makeTools(4, (n) => `a${n}.b`, withPairs) },
    'arguments that views fix': { tools: makeTools(3, makeWireName), views },
    'arguments that views fix in JSON': { tools: makeTools(3, makeWireName, () => form), views },
  };

  it('[find A1] checks each name once within the CPU budget, however many other names exist', async () => {
    for (const [label, config] of Object.entries(configs)) {
      const fullConfig = { name: 'Names', slug: 'names', authentication: { type: 'Bearer' }, ...config };
      const text = JSON.stringify(fullConfig);
      assert.equal(
        isLargerThan(fullConfig, maxParsedOnLoop),
        false,
        `${label} is small enough to parse on the event loop`,
      );
      const { body } = await toolhost.assertWithinBudget(
        label,
        () => toolhost.rest('POST', '/check', text),
        maxUnitsForNames,
      );
      assert.deepEqual(body.problems, [], label);
      assert.ok((body.warnings as unknown[]).length > 0, label);
    }
  });
});

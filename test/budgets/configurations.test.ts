import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { maxParsedOnLoop } from '@toolhost/json/body-limits';
import { isLargerThan } from '@toolhost/json/json';
import { expensiveConfigs } from '../../bench/soak-attacks.ts';
import { makeObject, times } from '../support/long-values.ts';
import { useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

/** CPU budget of a large configuration, in units. It is low because a thread parses the configuration. */
const maxUnits = 0.25;

describe('CPU budget of large invalid configurations', () => {
  const toolhost = useCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
  before(async () => {
    const tools = [buildToolAt('https://api.example.com/run', { name: 'run', method: 'POST' })];
    await toolhost.createServer({ slug: 'small', tools });
  });

  type Config = { tools: object[] };
  const unknown = makeObject(20_000, (n) => [`field${n}`, n]);
  const [references, , toolConfig] = expensiveConfigs('https://api.example.com/slow') as Config[];
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
        const label = `${method} ${path} of configuration ${index}`;
        const reply = await toolhost.measure(label, maxUnits).rest(method, path, body);
        // Checks and plans list the problems with status 200.
        assert.ok([200, 400].includes(reply.status), `${label}: ${reply.status} ${reply.text.slice(0, 300)}`);
      }
    }
  });

  it('[find A1] rejects oversized secrets within the CPU budget', async () => {
    const path = '/servers/small/secrets/A';
    const oversized = { value: unknown };
    const refused = await toolhost.measure('secret', maxUnits).rest('PUT', path, oversized);
    assert.deepEqual([refused.status, refused.body.detail], [413, 'the body is larger than 60000 bytes']);
    const manyElements = { value: times(1501, () => ({})) };
    assert.match((await toolhost.rest('PUT', path, manyElements)).text, /more than 1500 elements/);
    for (const args of [oversized, manyElements]) {
      const allArguments = JSON.stringify({ slug: 'small', name: 'A', ...args });
      const reply = await toolhost.measure('setSecret', maxUnits).call('manage', 'setSecret', allArguments);
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
          const reply = await toolhost.measure(label, maxUnits).post('/mcp/manage', JSON.stringify(body));
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
  const toolhost = useCpuBudgetToolhost({ QUOTAS: 'writes=0', REFUSALS_PER_MINUTE: '0' });

  const makeTools = (count: number, wireName: (n: number) => string, extra: (at: number) => Json = () => ({})) =>
    times(count, (at) =>
      buildToolAt(`https://api.example.com/v${at}`, {
        name: `run_${at}`,
        input_schema: makeObject(maxArguments, (n) => [`f${n}`, { type: 'string', wire_name: wireName(n) }]),
        ...extra(at),
      }),
    );
  /** Returns a URL with the argument names in reverse order, so that a linear search finds each one last. */
  const withPairs = (at: number) => ({
    url: `https://api.example.com/v${at}?${times(maxArguments, (n) => `a${maxArguments - 1 - n}%5Bb%5D=1`).join('&')}`,
  });
  const makeWireName = (n: number) => `a${n >> 1}${n % 2 === 0 ? invisible : ''}`;
  const fixed = makeObject(9, (n) => [`f${12 * n}`, 'a']);
  const views = makeObject(12, (n) => [`v${n}`, { tools: [{ name: `run_${n % 3}`, arguments: fixed }] }]);
  const form = { method: 'POST', body: 'json' };
  const configs = {
    'URL parameters, encoded twice': { tools: makeTools(3, (n) => `a${n}[b]${invisible}`, withPairs) },
    'URL parameters, with dots': { tools: makeTools(4, (n) => `a${n}.b`, withPairs) },
    'arguments that views fix': { tools: makeTools(3, makeWireName), views },
    'arguments that views fix in JSON': { tools: makeTools(3, makeWireName, () => form), views },
  };

  it('[find A1] checks each parameter name once within the CPU budget, however many other names exist', async () => {
    for (const [label, more] of Object.entries(configs)) {
      const config = { name: 'Names', slug: 'names', authentication: { type: 'Bearer' }, ...more };
      assert.equal(isLargerThan(config, maxParsedOnLoop), false, `${label} is small enough to parse on the event loop`);
      const { body } = await toolhost.measure(label).rest('POST', '/check', config);
      assert.deepEqual(body.problems, [], label);
      assert.ok((body.warnings as unknown[]).length > 0, label);
    }
  });
});

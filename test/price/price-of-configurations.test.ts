import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { nastyConfigs } from '../../bench/soak-hostile.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';

/** Part of a unit that a large configuration may take on the event loop, where it is not parsed. */
const most = 0.25;

describe('the cost of a large configuration that is not valid', () => {
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

  it('[find A1] is little over REST, whichever operation it is sent to', async () => {
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

  it('[find A1] is little where no operation takes so much', async () => {
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

  it('[find A1] is little over MCP, also in a batch', async () => {
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

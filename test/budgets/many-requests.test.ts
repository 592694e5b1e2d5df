import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { maxPipelined } from '../../apps/server/src/edge/client-connections.ts';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));

/** Maximum number of messages in a batch. */
const maxMessages = 100;

describe('[find A2] CPU budget of batches', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0', QUOTAS: 'tools=0' });
    const run = { name: 'run', description: 'Takes anything.', method: 'POST', url: `${toolhost.upstream.url}/run` };
    const maximum = {
      type: 'object',
      properties: { a: { items: { allOf: times(900, (i) => ({ maximum: i + 10 })) } } },
    };
    const anyOf = {
      type: 'object',
      properties: { a: { items: { anyOf: times(900, () => ({ type: 'string', items: {} })) } } },
    };
    const tools = [
      { ...run, input_schema: maximum },
      { ...run, name: 'any', input_schema: anyOf },
      { ...run, name: 'patterns', input_schema: { a: { type: 'string', pattern: '(a+)+$' } } },
    ];
    const searchableTools = times(2000, (i) => ({
      ...run,
      name: `thing_${i}_of_a_long_name`,
      description: `Lists the things of kind ${i}. ${'Words about it. '.repeat(5)}`,
      tags: times(5, (n) => `tag ${i} ${n}`),
      input_schema: { a: { type: 'integer' } },
    }));
    for (const server of [
      { slug: 'checked', tools },
      { slug: 'many', tools: searchableTools },
      { slug: 'searched', tools: searchableTools, tool_mode: 'search' },
    ]) {
      const { status, text } = await toolhost.rest('POST', '/servers', { name: 'Many', ...server });
      assert.equal(status, 201, text);
    }
    toolhost.upstream.on('*', () => ({ body: { ok: true } }));
  });
  after(() => toolhost.stop());

  const sendBatch = async (label: string, slug: string, params: (i: number) => Json) => {
    const messages = times(maxMessages, (id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: params(id) }));
    const { status, text } = await toolhost.assertWithinBudget(label, () =>
      toolhost.post(`/mcp/${slug}`, JSON.stringify(messages)),
    );
    assert.equal(status, 200, text.slice(0, 300));
    const responses = JSON.parse(text) as Json[];
    assert.equal(responses.length, maxMessages);
    return text;
  };

  it('checks slow arguments in a batch of 100 calls within the CPU budget', async () => {
    const numbers = times(20, (i) => i);
    await sendBatch('numbers that are too large', 'checked', () => ({ name: 'run', arguments: { a: numbers } }));
    await sendBatch('numbers that are not strings', 'checked', () => ({ name: 'any', arguments: { a: numbers } }));
    const a = `${'a'.repeat(9000)}!`;
    await sendBatch('a text that matches no pattern', 'checked', () => ({ name: 'patterns', arguments: { a } }));
  });

  it('rejects a batch of 100 calls of unknown tools within the CPU budget', async () => {
    await sendBatch('unknown tools', 'many', (i) => ({ name: `thing_${i}_of_a_lnog_nmae_x` }));
    await sendBatch('unknown tools of a search', 'searched', (i) => ({
      name: 'call_tool',
      arguments: { name: `thing_${i}_of_a_lnog_nmae_x` },
    }));
  });

  it('runs a batch of 100 tool searches within the CPU budget', async () => {
    const words = 'list create update delete things kind long name words about ';
    const query = words.repeat(9).slice(0, 500);
    await sendBatch('searches', 'searched', (i) => ({
      name: 'search_tools',
      arguments: { query: `${i} ${query}`.slice(0, 500) },
    }));
    await sendBatch('tags', 'searched', (i) => ({ name: 'search_tools', arguments: { tag: `tag ${i} 9` } }));
    await sendBatch('descriptions', 'searched', (i) => ({
      name: 'describe_tool',
      arguments: { names: times(10, (n) => `thing_${i}_of_a_lnog_nmae_${n}`) },
    }));
  });
});

describe('[find A3] CPU budget of pipelined requests', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
    const run = { name: 'run', description: 'Takes anything.', method: 'POST', url: `${toolhost.upstream.url}/run` };
    const login = { authentication: { type: 'Bearer' } };
    for (const server of [{ slug: 'stored' }, { slug: 'brought', ...login }]) {
      const { status, text } = await toolhost.rest('POST', '/servers', { name: 'Many', tools: [run], ...server });
      assert.equal(status, 201, text);
    }
  });
  after(() => toolhost.stop());

  /** Writes all requests in one chunk and waits until the connection closes. Returns the response statuses. */
  const pipeline = async (requests: readonly string[]): Promise<number[]> => {
    const { hostname, port } = new URL(toolhost.url);
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    // The service closes the connection of a client that pipelines too many requests.
    socket.on('error', () => undefined);
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.on('close', () => resolve());
    socket.write(requests.join(''));
    await promise;
    return [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
  };
  const host = () => new URL(toolhost.url).host;
  const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost:${host()}\r\n${headers}\r\n`;
  const post = (path: string, body: string, headers = '') =>
    `POST ${path} HTTP/1.1\r\nHost:${host()}\r\nContent-Type:application/json\r\n${headers}Content-Length:${body.length}\r\n\r\n${body}`;
  const message = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
  const kinds: Record<string, () => string> = {
    probes: () => get('/livez'),
    'the edge': () => 'GET / HTTP/1.1\r\nHost:a\r\n\r\n',
    'slugs that do not exist': () => get('/mcp/a'),
    'messages with a made-up credential': () => post('/mcp/brought', message, 'Authorization:Bearer x\r\n'),
    'messages with a key': () => post('/mcp/stored', message, `Authorization:Bearer ${toolhost.key}\r\n`),
    'login pages': () => get('/mcp/brought/authorize?client_id=x'),
    'server lists': () => get('/api/v1/servers', `Authorization:Bearer ${toolhost.key}\r\n`),
  };
  for (const [label, request] of Object.entries(kinds)) {
    it(`limits pipelined requests and stays within the CPU budget: ${label}`, async () => {
      const last = get('/livez', 'Connection:close\r\n');
      const allowed = await toolhost.assertWithinBudget(label, () =>
        pipeline([...times(maxPipelined - 1, request), last]),
      );
      assert.ok(allowed.length === maxPipelined || allowed[0] === 421, `${allowed.length} responses`);
      const count = Math.floor((128 * 1024) / request().length);
      const excessive = await toolhost.assertWithinBudget(`many ${label}`, () =>
        pipeline([...times(count, request), last]),
      );
      assert.ok(excessive.length <= maxPipelined + 1, `${excessive.length} responses`);
    });
  }
});

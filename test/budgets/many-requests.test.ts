import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { before, describe, it } from 'node:test';
import { maxBatchLength } from '@toolhost/mcp-protocol/legacy';
import { maxPipelined } from '../../apps/server/src/edge/client-connections.ts';
import { times } from '../support/long-values.ts';
import { useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

/** Maximum number of messages in a batch. */
const maxMessages = 100;

describe('[find A2] CPU budget of batches', () => {
  const toolhost = useCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0', QUOTAS: 'tools=0' });
  before(async () => {
    const makeTool = (name: string, input_schema: Json, more: Json = {}) =>
      buildToolAt(`${toolhost.upstream.url}/run`, { name, method: 'POST', input_schema, ...more });
    const makeItemsSchema = (items: Json) => ({ type: 'object', properties: { a: { items } } });
    const tools = [
      makeTool('run', makeItemsSchema({ allOf: times(900, (i) => ({ maximum: i + 10 })) })),
      makeTool('any', makeItemsSchema({ anyOf: times(900, () => ({ type: 'string', items: {} })) })),
      makeTool('patterns', { a: { type: 'string', pattern: '(a+)+$' } }),
    ];
    const searchableTools = times(2000, (i) =>
      makeTool(
        `thing_${i}_of_a_long_name`,
        { a: { type: 'integer' } },
        {
          description: `Lists the things of kind ${i}. ${'Words about it. '.repeat(5)}`,
          tags: times(5, (n) => `tag ${i} ${n}`),
        },
      ),
    );
    await toolhost.createServer({ slug: 'checked', tools });
    await toolhost.createServer({ slug: 'many', tools: searchableTools });
    await toolhost.createServer({ slug: 'searched', tools: searchableTools, tool_mode: 'search' });
    const description = 'A tool whose description is long. '.repeat(50);
    await toolhost.createServer({ slug: 'long', tools: times(200, (n) => makeTool(`tool_${n}`, {}, { description })) });
    toolhost.upstream.on('*', () => ({ body: { ok: true } }));
  });

  const sendBatch = async (slug: string, name: string, makeArguments: (i: number) => Json) => {
    const method = 'tools/call';
    const messages = times(maxMessages, (id) => {
      const params = { name: name.replace('*', String(id)), arguments: makeArguments(id) };
      return { jsonrpc: '2.0', id, method, params };
    });
    const { status, text } = await toolhost.measure(`${slug} ${name}`).post(`/mcp/${slug}`, JSON.stringify(messages));
    assert.equal(status, 200, text.slice(0, 300));
    assert.equal((JSON.parse(text) as Json[]).length, maxMessages);
  };

  it('checks slow arguments in a batch of 100 calls within the CPU budget', async () => {
    const numbers = times(20, (i) => i);
    await sendBatch('checked', 'run', () => ({ a: numbers }));
    await sendBatch('checked', 'any', () => ({ a: numbers }));
    const nonMatchingText = `${'a'.repeat(9000)}!`;
    await sendBatch('checked', 'patterns', () => ({ a: nonMatchingText }));
  });

  it('rejects a batch of 100 calls of misspelled tools within the CPU budget', async () => {
    await sendBatch('many', 'thing_*_of_a_lnog_nmae_x', () => ({}));
    await sendBatch('searched', 'call_tool', (i) => ({ name: `thing_${i}_of_a_lnog_nmae_x` }));
  });

  it('runs batches of 100 tool searches and descriptions within the CPU budget', async () => {
    const words = 'list create update delete things kind long name words about '.repeat(9);
    await sendBatch('searched', 'search_tools', (i) => ({ query: `${i} ${words}`.slice(0, 500) }));
    await sendBatch('searched', 'search_tools', (i) => ({ tag: `tag ${i} 9` }));
    await sendBatch('searched', 'describe_tool', (i) => ({
      names: times(10, (n) => `thing_${i}_of_a_lnog_nmae_${n}`),
    }));
  });

  const post = async (messages: readonly object[]) => {
    toolhost.upstream.take();
    const { status, text } = await toolhost.post('/mcp/long', JSON.stringify(messages));
    assert.equal(status, 200);
    return { text, responses: JSON.parse(text) as Json[] };
  };
  const list = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/list' });
  const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'tool_1' } });

  it('stops a batch at the response size limit and returns an error for each message it did not process', async () => {
    const single = (await post([list(1)])).text.length;
    const { text, responses } = await post([...times(99, list), call(99)]);
    assert.ok(text.length < maxBatchLength + 2 * single, `${text.length} characters`);
    assert.equal(responses.length, 100);
    assert.ok(responses[0]?.result);
    assert.match(JSON.stringify(responses.at(-1)?.error), /not processed: .* send this message in its own request/);
    assert.equal(toolhost.upstream.requests.length, 0, 'sends no upstream request for a message it did not process');
  });

  it('responds to every message of a small batch', async () => {
    const { responses } = await post([list(1), call(2), list(3)]);
    assert.deepEqual(
      responses.map(({ id, error }) => [id, error]),
      [1, 2, 3].map((id) => [id, undefined]),
    );
  });
});

describe('[find A3] CPU budget of pipelined requests', () => {
  const toolhost = useCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
  before(async () => {
    const tools = [buildToolAt(`${toolhost.upstream.url}/run`, { method: 'POST' })];
    await toolhost.createServer({ slug: 'stored', tools });
    await toolhost.createServer({ slug: 'forwarding', tools, authentication: { type: 'Bearer' } });
  });

  /** Writes all requests in one chunk, within the CPU budget. Returns the response statuses when the connection closes. */
  const pipeline = (label: string, requests: readonly string[]) =>
    toolhost.assertWithinBudget(label, async () => {
      const { hostname, port } = new URL(toolhost.url);
      const socket = connect(Number(port), hostname);
      let text = '';
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        text += chunk;
      });
      // The service closes the connection of a client that pipelines too many requests.
      socket.on('error', () => undefined);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.write(requests.join(''));
      await closed;
      return [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
    });
  const host = () => new URL(toolhost.url).host;
  const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost:${host()}\r\n${headers}\r\n`;
  const post = (path: string, body: string, headers = '') =>
    `POST ${path} HTTP/1.1\r\nHost:${host()}\r\nContent-Type:application/json\r\n${headers}Content-Length:${body.length}\r\n\r\n${body}`;
  const message = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
  const kinds: Record<string, () => string> = {
    probes: () => get('/livez'),
    'the edge': () => 'GET / HTTP/1.1\r\nHost:a\r\n\r\n',
    'slugs that do not exist': () => get('/mcp/a'),
    'messages with a made-up credential': () => post('/mcp/forwarding', message, 'Authorization:Bearer x\r\n'),
    'messages with a key': () => post('/mcp/stored', message, `Authorization:Bearer ${toolhost.key}\r\n`),
    'login pages': () => get('/mcp/forwarding/authorize?client_id=x'),
    'server lists': () => get('/api/v1/servers', `Authorization:Bearer ${toolhost.key}\r\n`),
  };
  for (const [label, request] of Object.entries(kinds)) {
    it(`limits pipelined requests and stays within the CPU budget: ${label}`, async () => {
      const last = get('/livez', 'Connection:close\r\n');
      const allowed = await pipeline(label, [...times(maxPipelined - 1, request), last]);
      // 421 refuses a host that is not the service's.
      assert.ok(allowed.length === maxPipelined || allowed[0] === 421, `${allowed.length} responses`);
      const count = Math.floor((128 * 1024) / request().length);
      const excessive = await pipeline(`many ${label}`, [...times(count, request), last]);
      assert.ok(excessive.length <= maxPipelined + 1, `${excessive.length} responses`);
    });
  }
});

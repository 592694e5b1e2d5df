import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const description = 'A tool whose description is long. '.repeat(50);

describe('[find A2] JSON-RPC batches', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egressPorts: [upstream.port] });
    const tools = Array.from({ length: 200 }, (_, n) => ({
      name: `tool_${n}`,
      description,
      method: 'GET',
      url: `${upstream.url}/items/${n}`,
    }));
    await toolhost.createServer({ name: 'Long list', slug: 'long-list', tools });
  });
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  const post = (messages: readonly object[]) => toolhost.post('long-list', messages, { token: 'any-token' });
  const list = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/list' });
  const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'tool_1' } });

  it('stops a batch at the response size limit and returns an error for each message it did not process', async () => {
    const single = (await post([list(1)])).text.length;
    const { status, text, body } = await post([...Array.from({ length: 99 }, (_, n) => list(n)), call(99)]);
    assert.equal(status, 200);
    assert.ok(text.length < 2 * 1024 * 1024 + 2 * single, `${text.length} characters`);
    const responses = body as unknown as Json[];
    assert.equal(responses.length, 100);
    assert.ok(responses[0]?.result);
    assert.match(JSON.stringify(responses.at(-1)?.error), /not processed: .* send this message in its own request/);
    assert.equal(upstream.requests.length, 0, 'sends no upstream request for a message it did not process');
  });

  it('responds to every message of a small batch', async () => {
    const responses = (await post([list(1), call(2), list(3)])).body as unknown as Json[];
    assert.deepEqual(
      responses.map(({ id, error }) => [id, error]),
      [1, 2, 3].map((id) => [id, undefined]),
    );
  });
});

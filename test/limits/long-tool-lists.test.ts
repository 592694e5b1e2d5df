import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { buildStatelessMessage, mirrorHeaders } from '../support/mcp.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

const refusalsPerMinute = 40;
const chargedBytes = 64 * 1024;

describe('a long tool list', () => {
  let toolhost: TestToolhost;
  let key: string;
  before(async () => {
    toolhost = await startToolhost({ env: { REFUSALS_PER_MINUTE: String(refusalsPerMinute) } });
    const [tool] = buildServerAt('wide', 'https://api.example').tools as object[];
    const tools = Array.from({ length: 300 }, (_, n) => ({
      ...tool,
      name: `get-${n}`,
      description: `é${'x'.repeat(900)}`,
    }));
    await toolhost.createServer({ name: 'wide', slug: 'wide', tools });
    key = await toolhost.createKey();
  });
  after(() => toolhost.stop());

  /** `fetch` requests gzip and decompresses it. `sendRawRequest` requests no encoding. */
  const buildRequest = (headers: Record<string, string>, message: object) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer made-up', ...headers },
    body: JSON.stringify({ ...message, id: 'é1' }),
  });
  const statefulMessage = { jsonrpc: '2.0', method: 'tools/list', params: {} };
  const listTools = (headers: Record<string, string> = {}, message: object = statefulMessage) => {
    const { body, ...options } = buildRequest(headers, message);
    return sendRawRequest(`${toolhost.url}/mcp/wide`, options, body);
  };

  it('[sec F5] is sent as gzip to a client that accepts it, with the same content', async () => {
    const statelessRequest = [mirrorHeaders('tools/list'), buildStatelessMessage('tools/list')] as const;
    for (const [headers, message] of [[{}, statefulMessage] as const, statelessRequest]) {
      const plain = await listTools(headers, message);
      assert.equal(plain.headers['content-encoding'], undefined);
      const compressed = await fetch(`${toolhost.url}/mcp/wide`, buildRequest(headers, message));
      assert.equal(compressed.headers.get('content-encoding'), 'gzip');
      assert.ok(Number(compressed.headers.get('content-length')) < plain.text.length / 5);
      assert.equal(await compressed.text(), plain.text);
      assert.equal((await listTools({ ...headers, 'accept-encoding': 'gzip;q=0, br' }, message)).text, plain.text);
    }
  });

  it('[sec F5] is charged to the address of a caller without an API key, but not to a caller with one', async () => {
    let bytes = 0;
    let status = 200;
    for (let requestCount = 0; requestCount < refusalsPerMinute && status === 200; requestCount++) {
      const response = await listTools();
      ({ status } = response);
      bytes += response.text.length;
      if (status !== 200) {
        assert.match(response.text, /too much data was sent to clients without an API key/);
        assert.ok(Number(response.headers['retry-after']) > 0);
      }
    }
    assert.equal(status, 429);
    assert.ok(bytes < 2 * refusalsPerMinute * chargedBytes, `${bytes} bytes`);
    assert.equal((await listTools({ authorization: `Bearer ${key}` })).status, 200);
  });
});

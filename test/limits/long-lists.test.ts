import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serverAt } from '../support/configs.ts';
import { mirrors, modernMessage } from '../support/mcp.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { wire } from '../support/upstreams/wire.ts';

const refusalsPerMinute = 40;
const chargedBytes = 64 * 1024;

describe('a long tool list', () => {
  let toolhost: TestToolhost;
  let key: string;
  before(async () => {
    toolhost = await startToolhost({ env: { REFUSALS_PER_MINUTE: String(refusalsPerMinute) } });
    const [tool] = serverAt('wide', 'https://api.example').tools as object[];
    const tools = Array.from({ length: 300 }, (_, n) => ({
      ...tool,
      name: `get-${n}`,
      description: `é${'x'.repeat(900)}`,
    }));
    await toolhost.createServer({ name: 'wide', slug: 'wide', tools });
    key = await toolhost.key();
  });
  after(() => toolhost.stop());

  /** `fetch` requests gzip and decompresses it. `wire` requests no encoding. */
  const sent = (headers: Record<string, string>, message: object) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer made-up', ...headers },
    body: JSON.stringify({ ...message, id: 'é1' }),
  });
  const ofLegacy = { jsonrpc: '2.0', method: 'tools/list', params: {} };
  const list = (headers: Record<string, string> = {}, message: object = ofLegacy) => {
    const { body, ...options } = sent(headers, message);
    return wire(`${toolhost.url}/mcp/wide`, options, body);
  };

  it('[sec F5] is sent as gzip to a client that accepts it, with the same content', async () => {
    const ofModern = [mirrors('tools/list'), modernMessage('tools/list')] as const;
    for (const [headers, message] of [[{}, ofLegacy] as const, ofModern]) {
      const plain = await list(headers, message);
      assert.equal(plain.headers['content-encoding'], undefined);
      const packed = await fetch(`${toolhost.url}/mcp/wide`, sent(headers, message));
      assert.equal(packed.headers.get('content-encoding'), 'gzip');
      assert.ok(Number(packed.headers.get('content-length')) < plain.text.length / 5);
      assert.equal(await packed.text(), plain.text);
      assert.equal((await list({ ...headers, 'accept-encoding': 'gzip;q=0, br' }, message)).text, plain.text);
    }
  });

  it('[sec F5] is charged to the address of a caller without an API key, but not to a caller with one', async () => {
    let bytes = 0;
    let status = 200;
    for (let asked = 0; asked < refusalsPerMinute && status === 200; asked++) {
      const answer = await list();
      ({ status } = answer);
      bytes += answer.text.length;
      if (status !== 200) {
        assert.match(answer.text, /too much data was sent to clients without an API key/);
        assert.ok(Number(answer.headers['retry-after']) > 0);
      }
    }
    assert.equal(status, 429);
    assert.ok(bytes < 2 * refusalsPerMinute * chargedBytes, `${bytes} bytes`);
    assert.equal((await list({ authorization: `Bearer ${key}` })).status, 200);
  });
});

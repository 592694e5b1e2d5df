import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { ToolReply } from '../support/toolhost/toolhost.ts';

const megabytes = 1024 * 1024;

describe('the cost of large files', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost();
  });
  after(() => priced.stop());

  it('holds the event loop no longer than any request: stored, downloaded and uploaded, 10 MB each [agent 4]', async () => {
    const bytes = randomBytes(10 * megabytes - 1).fill('thk_', 0, 5 * megabytes);
    priced.upstream.on('GET /file', () => ({ headers: { 'content-type': 'application/zip' }, body: bytes }));
    priced.upstream.on('POST /file', () => ({ body: { taken: true } }));
    const tool = { name: 'run', description: 'A tool of this test.', url: `${priced.upstream.url}/file` };
    const file = { type: 'string', content: 'base64' };
    const get = { ...tool, method: 'GET' };
    const send = { ...tool, method: 'POST', body: 'multipart', input_schema: { file } };
    for (const [slug, one] of Object.entries({ get, send }))
      assert.equal((await priced.rest('POST', '/servers', { name: slug, slug, tools: [one] })).status, 201);
    const kept = await priced.costsLittle('a stored file', () => priced.call('get', 'run', '{}'));
    const { content } = kept.body.result as ToolReply;
    const address = /https?:\S+/.exec(content.map(({ text }) => text).join())?.[0] ?? '';
    const got = await priced.costsLittle('a download', async () =>
      Buffer.from(await (await fetch(address)).arrayBuffer()),
    );
    assert.ok(got.equals(bytes));
    const sent = await priced.costsLittle('an upload', () =>
      priced.call('send', 'run', JSON.stringify({ file: address })),
    );
    assert.notEqual((sent.body.result as ToolReply).isError, true, sent.text.slice(0, 300));
  });
});

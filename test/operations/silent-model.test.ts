import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('a model host that never responds', () => {
  it('[play 1] fails the question after three minutes with an error that names the limit', async () => {
    const upstream = await startRecordingUpstream();
    upstream.on('*', () => 'hold');
    const toolhost = await startToolhost({ egressPorts: [upstream.port] });
    const tools = [buildToolAt(`${upstream.url}/x`, { name: 'read' })];
    await toolhost.createServer({ name: 'Shop', slug: 'shop', tools });
    const model = { kind: 'gemini', url: upstream.url, model: 'stub' };
    const { status, body, text } = await toolhost.rest('POST', '/servers/shop/playground', {
      body: { model, messages: [{ role: 'user', text: 'Hello' }] },
    });
    assert.equal(status, 503, text);
    assert.equal(body.detail, "The model's host did not finish its response within 180 s.");
    await Promise.all([toolhost.stop(), upstream.close()]);
  });
});

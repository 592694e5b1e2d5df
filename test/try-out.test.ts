import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serverAt, toolAt } from './support/configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from './support/recording-upstream.ts';
import { type Json, startToolhost, type TestToolhost } from './support/toolhost.ts';

const secret = 'sk-live-0123456789';

describe('trying a tool out', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egress: [upstream.port] });
    const tool = toolAt(`${upstream.url}/things`, {
      method: 'POST',
      input_schema: { name: { type: 'string' } },
      headers: { 'X-Service': 'Key {{KEY}}' },
    });
    await toolhost.createServer({ ...serverAt('tried', upstream.url), tools: [tool] });
    await toolhost.rest('PUT', '/servers/tried/secrets/KEY', { body: { value: secret } });
  });
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  const post = async (path: string, args: Json, key?: string) => {
    const { status, body, text } = await toolhost.rest('POST', `/servers/tried/tools/get/${path}`, {
      body: { arguments: args },
      ...(key !== undefined && { key }),
    });
    assert.equal(status, 200, text);
    return body;
  };
  const recordOf = async (id: unknown) => (await toolhost.rest('GET', `/calls/${id}`)).body;

  it('says what was sent, what it took and what it costs', async () => {
    upstream.on('POST /things', () => ({ body: { text: 'x'.repeat(100) }, delayMs: 20 }));
    const body = await post('call', { name: 'Ada' });
    const timing = body.timing as { total_ms: number; upstream_ms: number };
    assert.ok(timing.upstream_ms >= 19 && timing.total_ms >= timing.upstream_ms, JSON.stringify(timing));
    assert.equal(body.estimated_tokens, Math.ceil(JSON.stringify({ text: 'x'.repeat(100) }).length / 4));
    assert.deepEqual({ request: body.request, curl: body.curl }, await post('preview', { name: 'Ada' }));
    assert.match(String(body.curl), /X-Service: Key \*{8}/);
    assert.equal(JSON.stringify(body).includes(secret), false);
  });

  it('names the record of the call, and what was captured of it', async () => {
    const { call_id, timing } = await post('call', { name: 'Ada' });
    const { call, capture } = (await recordOf(call_id)) as { call: Json; capture?: Json };
    assert.deepEqual({ total_ms: call.duration_ms, upstream_ms: call.upstream_ms }, timing);
    assert.equal(capture, undefined);
    await toolhost.rest('POST', '/servers/tried/capture', { body: { hours: 1 } });
    const again = await post('call', { name: 'Ada' });
    const captured = (await recordOf(again.call_id)).capture as Json;
    assert.deepEqual([captured.request, captured.curl], [again.request, again.curl]);
  });

  it('shows no request where the arguments become none', async () => {
    const { is_error, request, curl, timing } = await post('call', { name: 7 });
    assert.deepEqual([is_error, request, curl], [true, undefined, undefined]);
    assert.deepEqual(Object.keys(timing as Json), ['total_ms']);
  });

  it('shows a key for calling alone what the tool answers, but not where it asks', async () => {
    const calling = await toolhost.key({ scopes: ['call'] });
    const { is_error, request, curl } = await post('call', { name: 'Ada' }, calling);
    assert.deepEqual([is_error, request, curl], [false, undefined, undefined]);
  });
});

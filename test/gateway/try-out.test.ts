import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { listCalls, setSecret } from '../support/server-requests.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const secret = 'sk-live-0123456789';

describe('a trial call of a tool', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();
  before(async () => {
    const headers = { 'X-Service': 'Key {{KEY}}' };
    await serve('tried', { input_schema: { name: { type: 'string' } }, headers });
    await setSecret(toolhost, 'tried', 'KEY', secret);
  });

  const serve = (slug: string, tool: Json) => {
    const tools = [buildToolAt(`${upstream.url}/things`, { method: 'POST', ...tool })];
    return toolhost.createServer(buildServerAt(slug, upstream.url, { tools }));
  };
  const send = (path: string, args: Json, key?: string) =>
    toolhost.rest('POST', `/servers/tried/tools/get/${path}`, { body: { arguments: args }, ...(key && { key }) });
  const post = async (path: string, args: Json, key?: string) => {
    const { status, body, text } = await send(path, args, key);
    assert.equal(status, 200, text);
    return body;
  };
  const getCallRecord = async (id: unknown) => (await toolhost.rest('GET', `/calls/${id}`)).body;

  it('reports the request, its duration, and its size', async () => {
    upstream.on('POST /things', () => ({ body: { text: 'x'.repeat(100) }, delayMs: 20 }));
    const body = await post('call', { name: 'Ada' });
    const timing = body.timing as { total_ms: number; upstream_ms: number };
    assert.ok(timing.upstream_ms >= 19 && timing.total_ms >= timing.upstream_ms, JSON.stringify(timing));
    assert.equal(body.estimated_tokens, Math.ceil(JSON.stringify({ text: 'x'.repeat(100) }).length / 4));
    assert.deepEqual({ request: body.request, curl: body.curl }, await post('preview', { name: 'Ada' }));
    assert.match(String(body.curl), /X-Service: Key \*{8}/);
    assert.equal(JSON.stringify(body).includes(secret), false);
  });

  it('returns the id of its call record, which has the capture', async () => {
    const { call_id, timing } = await post('call', { name: 'Ada' });
    const { call, capture } = (await getCallRecord(call_id)) as { call: Json; capture?: Json };
    assert.deepEqual({ total_ms: call.duration_ms, upstream_ms: call.upstream_ms }, timing);
    assert.equal(capture, undefined);
    await toolhost.rest('POST', '/servers/tried/capture', { body: { hours: 1 } });
    const secondCall = await post('call', { name: 'Ada' });
    const storedCapture = (await getCallRecord(secondCall.call_id)).capture as Json;
    assert.deepEqual([storedCapture.request, storedCapture.curl], [secondCall.request, secondCall.curl]);
  });

  it('is recorded with caller_kind try_out and its API key or person, and can be filtered by it', async () => {
    const key = await toolhost.createKey();
    const { call_id } = await post('call', { name: 'Ada' }, key);
    const { call } = (await getCallRecord(call_id)) as { call: Json };
    assert.deepEqual([call.caller_kind, call.key_id], ['try_out', `key_${key.split('_')[1]}`]);

    const session = await createPersonSession(toolhost, { name: 'Anna', role: 'editor' });
    const path = '/servers/tried/tools/get/call';
    const personCall = await personRequest(toolhost, session, 'POST', path, { arguments: { name: 'Ada' } });
    const byPerson = (await getCallRecord(personCall.body.call_id)).call as Json;
    assert.deepEqual([byPerson.caller_kind, byPerson.key_id], ['try_out', `usr_${session}`]);

    await toolhost.callTool('tried', key, 'get', { name: 'Ada' });
    for (const kind of ['try_out', 'api_key']) {
      const calls = await listCalls(toolhost, 'tried', `?limit=200&caller_kind=${kind}`);
      assert.deepEqual(new Set(calls.map(({ caller_kind }) => caller_kind)), new Set([kind]));
    }
    assert.match((await toolhost.rest('GET', '/calls.csv?slug=tried&caller_kind=try_out')).text, /,ok,try_out,usr_/);
    assert.equal((await toolhost.rest('GET', '/calls?caller_kind=dashboard')).status, 400);
  });

  it('leaves no record if its required token is missing', async () => {
    await toolhost.createServer(buildServerAt('forwards', upstream.url, { authentication: { type: 'Bearer' } }));
    const call = (body: Json) => toolhost.rest('POST', '/servers/forwards/tools/get/call', { body });
    const rejected = await call({});
    const message = "this server forwards the caller's token; provide one to try the tool";
    assert.deepEqual([rejected.status, rejected.body.problems], [400, [{ path: 'token', message }]]);
    assert.deepEqual(await listCalls(toolhost, 'forwards'), []);
    assert.equal((await call({ token: 'of-the-caller' })).status, 200);
    assert.equal((await listCalls(toolhost, 'forwards')).length, 1);
  });

  it('shows no request for invalid arguments', async () => {
    const { is_error, request, curl, timing } = await post('call', { name: [7] });
    assert.deepEqual([is_error, request, curl], [true, undefined, undefined]);
    assert.deepEqual(Object.keys(timing as Json), ['total_ms']);
  });

  it('names each invalid argument if a request cannot be previewed', async () => {
    for (const [args, message] of [
      [{ name: [7] }, 'found an array of 1; allowed: string'],
      [{}, 'is missing'],
    ] as const) {
      const { status, body } = await send('preview', args);
      assert.deepEqual([status, body.problems], [400, [{ path: 'arguments.name', message }]]);
    }
  });

  it('shows only the result and not the upstream request to a key with only the scope call', async () => {
    const callOnlyKey = await toolhost.createKey({ scopes: ['call'] });
    const { is_error, request, curl, response } = await post('call', { name: 'Ada' }, callOnlyKey);
    assert.deepEqual([is_error, request, curl, response], [false, undefined, undefined, undefined]);
  });

  it('[agent 5] shows the upstream response next to the agent result, without credentials', async () => {
    const upstreamBody = { text: `Key ${secret}`, token: secret, more: 'x'.repeat(20_000) };
    const headers = { 'x-echo': `Key ${secret}`, 'set-cookie': 'id=1' };
    upstream.on('POST /things', () => ({ status: 201, headers, body: upstreamBody }));
    await serve('sides', { response_fields: ['text'], headers: { K: '{{KEY}}' } });
    await setSecret(toolhost, 'sides', 'KEY', secret);
    const { body, text } = await toolhost.rest('POST', '/servers/sides/tools/get/call', { body: {} });
    assert.ok(!text.includes('set-cookie'));
    const response = body.response as { status: number; headers: [string, string][]; body: string; body_bytes: number };
    assert.equal(response.status, 201);
    assert.deepEqual(response.headers.find(([name]) => name === 'x-echo')?.[1], 'Key [redacted]');
    assert.ok(response.body.startsWith('{"text":"Key [redacted]","token":"[redacted]","more":"xxx'), response.body);
    assert.equal(Buffer.byteLength(response.body), 8192);
    const responseBytes = JSON.stringify(upstreamBody).length;
    assert.equal(response.body_bytes, responseBytes);
    assert.equal((response as Json).estimated_tokens, Math.ceil(responseBytes / 4));
    assert.equal(body.estimated_tokens, Math.ceil(JSON.stringify({ text: upstreamBody.text }).length / 4));
    const { capture } = await getCallRecord(body.call_id);
    assert.equal(capture, undefined, 'nothing is stored for a server without capture');
  });

  it('[agent 5] shows status and size of a response that is too long to be parsed on the event loop', async () => {
    const items = Array.from({ length: 30_000 }, (_, id) => ({ id, text: 'x'.repeat(20) }));
    upstream.on('POST /things', () => ({ body: items }));
    const { body } = await toolhost.rest('POST', '/servers/sides/tools/get/call', { body: {} });
    const response = body.response as { body: string; body_bytes: number };
    assert.equal(response.body_bytes, JSON.stringify(items).length);
    assert.ok(response.body.startsWith('[{"id":0,"text":"xxx'));
    upstream.on('POST /things', () => ({ status: 500, body: 'broken' }));
    const failed = await toolhost.rest('POST', '/servers/sides/tools/get/call', { body: {} });
    assert.deepEqual((failed.body.response as Json).status, 500);
  });
});

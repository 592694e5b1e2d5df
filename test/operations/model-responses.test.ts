import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { pluck } from '../support/pluck.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const key = 'sk-model-0123456789';
const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: Json, finish_reason: string | null = null) =>
  event({ choices: [{ index: 0, delta, finish_reason }] });
const eventStreamHeaders = { 'content-type': 'text/event-stream' };
type Respond = (response: ServerResponse) => void | Promise<void>;
/** Responds with events that end here. */
const sendEvents =
  (text: string | Buffer, status = 200, headers: Record<string, string> = eventStreamHeaders): Respond =>
  (response) =>
    void response.writeHead(status, headers).end(text);
/** Responds with events that never end. */
const repeatEvents =
  (text: string): Respond =>
  (response) =>
    repeat(response.writeHead(200, eventStreamHeaders), text);

/** Writes a text repeatedly until the client disconnects. */
async function repeat(response: ServerResponse, text: string): Promise<void> {
  const disconnected = new AbortController();
  response.once('close', () => disconnected.abort());
  while (!disconnected.signal.aborted)
    if (!response.write(text)) await once(response, 'drain', { signal: disconnected.signal }).catch(() => undefined);
}

describe('model host responses', async () => {
  const responders = new Map<string, Respond>();
  const host = createServer((request, response) => {
    request.resume().on('end', () => void responders.get(request.url?.split('/')[1] ?? '')?.(response));
  });
  await once(host.listen(0, '127.0.0.1'), 'listening');
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ egressPorts: [upstream.port, (host.address() as AddressInfo).port] });
  const tools = [buildToolAt(`${upstream.url}/x`, { name: 'read' })];
  await toolhost.createServer({ name: 'Shop', slug: 'shop', tools });
  after(() => Promise.all([toolhost.stop(), upstream.close(), host[Symbol.asyncDispose]()]));

  const hostUrl = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
  let caseCount = 0;
  const createModel = (respond: Respond, kind = 'openai') => {
    const path = `case${++caseCount}`;
    responders.set(path, respond);
    return { kind, url: `${hostUrl}/${path}`, model: 'stub', key };
  };
  const askModel = (model: Json, keyOfCaller?: string) =>
    toolhost.rest('POST', '/servers/shop/playground', {
      body: { model, messages: [{ role: 'user', text: 'Hello' }] },
      ...(keyOfCaller !== undefined && { key: keyOfCaller }),
    });
  const askHost = (respond: Respond, kind?: string) => askModel(createModel(respond, kind));

  const toolCalls = Array.from({ length: 20_000 }, (_, index) => ({ index }));
  const toolCallEvents = Array.from(
    { length: 100_000 },
    (_, index) => `data: {"choices":[{"delta":{"tool_calls":[{"index":${index}}]}}]}\n\n`,
  );
  const words = chunk({ content: 'word '.repeat(200) });
  const longText = chunk({ content: 'x'.repeat(4_000_000) });
  const longId = chunk({ tool_calls: [{ index: 0, id: 'a'.repeat(201), function: { name: 'read' } }] });
  const tooMany = /sent more than 100 texts and tool calls in one response/;
  const gzipHeaders = { ...eventStreamHeaders, 'content-encoding': 'gzip' };
  const callWithoutName = chunk({ tool_calls: [{ index: 0, id: 'a' }] }, 'tool_calls');
  const limits: { [what: string]: [detail: RegExp, respond: Respond] } = {
    'endless text': [/sent a response of more than 500000 characters/, repeatEvents(words)],
    'endless comments': [/sent a response of more than 4 MiB/, repeatEvents(`: ${'x'.repeat(2000)}\n`)],
    'an event of 4 MiB': [/sent an event of more than 524288 characters/, sendEvents(longText)],
    '100,000 tool calls': [tooMany, sendEvents(toolCallEvents.join(''))],
    '20,000 tool calls in one event': [tooMany, sendEvents(chunk({ tool_calls: toolCalls }))],
    'invalid UTF-8': [/sent a response that is not valid UTF-8/, sendEvents(Buffer.from('643afffe0a0a', 'hex'))],
    'an incorrect content coding': [
      /cannot be decompressed/,
      sendEvents(chunk({ content: 'plain' }), 200, gzipHeaders),
    ],
    'events that are not JSON': [/sent an event that is not JSON/, sendEvents('data: {"choices":[\n\n')],
    'an empty response': [/sent nothing that belongs to its API/, sendEvents('')],
    'a tool call without a name': [/sent a tool call without a tool name/, sendEvents(callWithoutName)],
    'a tool call with a long id': [/name or id has more than 200 characters/, sendEvents(longId)],
    'endless one-byte chunks': [
      /has too many chunks|more than 4 MiB/,
      async (response) => {
        response.socket?.setNoDelay();
        await repeatEvents('\n')(response);
      },
    ],
  };
  for (const [label, [detail, respond]] of Object.entries(limits)) {
    it(`[play 1] fails with an error that names the limit if the host sends ${label}`, async () => {
      const { status, body, text } = await askHost(respond);
      assert.equal(status, 503, text);
      assert.match(String(body.detail), /^The model's host /);
      assert.match(String(body.detail), detail);
      assert.doesNotMatch(text, /127\.0\.0\.1|case\d/);
    });
  }

  it('[play 1] are parsed in one-byte chunks, in a content coding, and with carriage returns', async () => {
    const fullResponse = `${chunk({ reasoning_content: 'Thinking é' })}: note\n${chunk({ content: 'Wört' })}${chunk({ content: 'er.' }, 'stop')}`;
    const bytes = Buffer.from(fullResponse);
    const variants: Respond[] = [
      async (response) => {
        response.writeHead(200, eventStreamHeaders);
        for (const byte of bytes) if (!response.write(Buffer.of(byte))) await once(response, 'drain');
        response.end();
      },
      sendEvents(gzipSync(bytes), 200, gzipHeaders),
      sendEvents(fullResponse.replaceAll('\n', '\r\n')),
      sendEvents(fullResponse.replaceAll('\n', '\r').trimEnd()),
      sendEvents(fullResponse.replaceAll('data: {', 'event: message\ndata:{')),
    ];
    const parts = [
      { type: 'thought', text: 'Thinking é' },
      { type: 'text', text: 'Wörter.' },
    ];
    for (const variant of variants) {
      const { status, body, text } = await askHost(variant);
      assert.equal(status, 200, text);
      assert.deepEqual([body.parts, body.finish], [parts, 'stop']);
    }
  });

  it('have tool call chunks joined for every API, with the digits of their arguments preserved', async () => {
    const args = '{"id":9007199254740993}';
    const openai = [
      chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'read', arguments: args.slice(0, 5) } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: args.slice(5) } }] }),
      chunk({ tool_calls: [{ index: 0, id: 'b', function: { name: 'read', arguments: '' } }] }, 'tool_calls'),
    ];
    const start = (index: number, content_block: Json) => event({ type: 'content_block_start', index, content_block });
    const delta = (partial_json: string) =>
      event({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json } });
    const anthropic = [
      start(0, { type: 'tool_use', id: 'a', name: 'read', input: {} }),
      delta(args.slice(0, 5)),
      delta(args.slice(5)),
      event({ type: 'content_block_stop', index: 0 }),
      start(1, { type: 'tool_use', id: 'b', name: 'read', input: {} }),
      event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 3 } }),
    ];
    const functionCalls = `{"functionCall":{"id":"a","name":"read","args":${args}}},{"functionCall":{"id":"b","name":"read"}}`;
    const gemini = [`data: {"candidates":[{"content":{"parts":[${functionCalls}]},"finishReason":"STOP"}]}\n\n`];
    for (const [kind, events] of Object.entries({ openai, anthropic, gemini })) {
      const { status, body, text } = await askHost(sendEvents(events.join('')), kind);
      assert.equal(status, 200, text);
      const calls = pluck(body.parts, 'id', 'tool', 'arguments');
      assert.deepEqual([calls, body.finish], [['a', 'read', args, 'b', 'read', '{}'], 'tool-calls'], kind);
    }
  });

  it('[play 2] are available to a call-only key for stored models, without any address in an error', async () => {
    const caller = await toolhost.createKey({ scopes: ['call'] });
    const error = '{"error":{"code":"model_not_found","message":"secret-of-a-neighbor"}}';
    const model = createModel(sendEvents(error, 404, { 'content-type': 'application/json' }));
    const refused = await askModel(model, caller);
    assert.match(`${refused.status} ${refused.text}`, /^403 .*needs the scope manage:write/);
    assert.equal((await askModel({ kind: 'openai', model: 'gpt', key }, caller)).status, 403);
    const withQuery = await askModel({ ...model, url: `${model.url}?to=elsewhere` });
    assert.match(withQuery.text, /found a query or a fragment/);
    const save = async (body: Json) => (await toolhost.rest('PUT', '/models/mine', { body })).status;
    assert.deepEqual([await save({ ...model, url: `${model.url}#x` }), await save(model)], [400, 200]);
    const failed = await askModel({ saved: 'mine' }, caller);
    assert.equal(failed.body.detail, 'The model "mine" responded with HTTP status 404 (model_not_found).');
    assert.doesNotMatch(failed.text, /neighbor|127\.0\.0\.1/);
  });

  it('[sec M8] show no form of the key that a host returns as its error code', async () => {
    const hex = `x${Buffer.from(key).toString('hex')}`;
    for (const code of [key, hex, key.toUpperCase(), key.slice(0, 8), 'private.path', 'see-127.0.0.1'])
      for (const status of [200, 401]) {
        const { text } = await askHost(sendEvents(event({ error: { code } }), status));
        assert.equal(text.toLowerCase().includes(code.toLowerCase()), false, text);
      }
  });

  it('[play 2] do not reveal host and port to a caller if a stored model is unreachable', async () => {
    const caller = await toolhost.createKey({ scopes: ['call'] });
    const port = new URL(hostUrl).port;
    const model = { kind: 'openai', url: `https://127.0.0.1:${port}/tls`, model: 'stub', key };
    assert.equal((await toolhost.rest('PUT', '/models/far', { body: model })).status, 200);
    const { status, text, body } = await askModel({ saved: 'far' }, caller);
    assert.match(`${status} ${body.detail}`, /^503 The model "far" /);
    assert.doesNotMatch(text, new RegExp(`127\\.0\\.0\\.1|${port}`));
  });

  it('[play 1] may have the name of an inherited property as finish reason', async () => {
    for (const finish of ['constructor', '__proto__', 'toString']) {
      const { body, text } = await askHost(sendEvents(chunk({ content: 'Hi' }, finish)));
      assert.equal(body.finish, 'other', text);
    }
  });

  it('[play 3] count against call limits and leave a record with their tokens', async () => {
    const usage = { prompt_tokens: 12, completion_tokens: 5 };
    const model = createModel(sendEvents(chunk({ content: 'Hi.' }, 'stop') + event({ choices: [], usage })));
    const limitedKey = { name: 'few', scopes: ['call', 'manage'], calls_per_day: 2 };
    const limited = await toolhost.rest('POST', '/keys', { body: limitedKey });
    assert.equal(limited.status, 201, limited.text);
    const askLimited = () => askModel(model, String(limited.body.key));
    const first = await askLimited();
    assert.equal(first.status, 200, first.text);
    const id = first.headers.get('x-request-id');
    const { body } = await toolhost.rest('GET', `/calls/call_${id}`);
    const call = body.call as Json;
    assert.partialDeepStrictEqual(call, {
      ...{ caller_kind: 'playground', key_id: limited.body.id, server: 'shop', tool: 'ask_model', model: 'stub' },
      ...{ input_tokens: 12, output_tokens: 5, outcome: 'ok' },
    });
    assert.equal(typeof call.duration_ms, 'number');
    assert.equal((await askLimited()).status, 200);
    const third = await askLimited();
    assert.deepEqual([third.status, third.headers.has('retry-after')], [429, true], third.text);
    const refused = await toolhost.rest('GET', '/calls?caller_kind=playground&outcome=limited');
    assert.equal((refused.body.calls as Json[]).length, 1, refused.text);
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const key = 'sk-model-0123456789';
const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: Json, finish_reason: string | null = null) =>
  event({ choices: [{ index: 0, delta, finish_reason }] });
const eventStreamHeaders = { 'content-type': 'text/event-stream' };
type Respond = (response: ServerResponse) => void | Promise<void>;

/** Writes a text repeatedly until the client disconnects. */
async function repeat(response: ServerResponse, text: string): Promise<void> {
  const disconnected = new AbortController();
  response.once('close', () => disconnected.abort());
  while (!disconnected.signal.aborted)
    if (!response.write(text)) await once(response, 'drain', { signal: disconnected.signal }).catch(() => undefined);
}

describe('model host responses', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  const responders = new Map<string, Respond>();
  const host = createServer((request, response) => {
    request.resume().on('end', () => void responders.get(request.url?.split('/')[1] ?? '')?.(response));
  });
  before(async () => {
    await once(host.listen(0, '127.0.0.1'), 'listening');
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({ egressPorts: [upstream.port, (host.address() as AddressInfo).port] });
    await toolhost.createServer({
      name: 'Shop',
      slug: 'shop',
      tools: [buildToolAt(`${upstream.url}/x`, { name: 'read' })],
    });
  });
  after(() => Promise.all([toolhost.stop(), upstream.close(), host[Symbol.asyncDispose]()]));

  let caseCount = 0;
  const createModel = (respond: Respond, kind: string) => {
    const path = `case${++caseCount}`;
    responders.set(path, respond);
    return { kind, url: `http://127.0.0.1:${(host.address() as AddressInfo).port}/${path}`, model: 'stub', key };
  };
  const askModel = (respond: Respond, kind = 'openai', headers: Record<string, string> = {}) =>
    toolhost.rest('POST', '/servers/shop/playground', {
      body: { model: createModel(respond, kind), messages: [{ role: 'user', text: 'Hello' }] },
      headers,
    });

  const limits: [what: string, detail: RegExp, respond: Respond][] = [
    [
      'endless text',
      /sent a response of more than 500000 characters/,
      (r) => repeat(r.writeHead(200, eventStreamHeaders), chunk({ content: 'word '.repeat(200) })),
    ],
    [
      'endless comments',
      /sent a response of more than 4 MiB/,
      (r) => repeat(r.writeHead(200, eventStreamHeaders), `: ${'x'.repeat(2000)}\n`),
    ],
    [
      'an event of 4 MiB',
      /sent an event of more than 524288 characters/,
      (r) => void r.writeHead(200, eventStreamHeaders).end(chunk({ content: 'x'.repeat(4_000_000) })),
    ],
    [
      '100,000 tool calls',
      /sent more than 100 texts and tool calls in one response/,
      (r) =>
        void r
          .writeHead(200, eventStreamHeaders)
          .end(
            Array.from(
              { length: 100_000 },
              (_, index) => `data: {"choices":[{"delta":{"tool_calls":[{"index":${index}}]}}]}\n\n`,
            ).join(''),
          ),
    ],
    [
      '100,000 tool calls in one event',
      /sent more than 100 texts and tool calls in one response/,
      (r) =>
        void r
          .writeHead(200, eventStreamHeaders)
          .end(chunk({ tool_calls: Array.from({ length: 20_000 }, (_, index) => ({ index })) })),
    ],
    [
      'invalid UTF-8',
      /sent a response that is not valid UTF-8/,
      (r) => void r.writeHead(200, eventStreamHeaders).end(Buffer.from([0x64, 0x3a, 0xff, 0xfe, 0x0a, 0x0a])),
    ],
    [
      'an incorrect content coding',
      /cannot be decompressed/,
      (r) =>
        void r.writeHead(200, { ...eventStreamHeaders, 'content-encoding': 'gzip' }).end(chunk({ content: 'plain' })),
    ],
    [
      'events that are not JSON',
      /sent an event that is not JSON/,
      (r) => void r.writeHead(200, eventStreamHeaders).end('data: {"choices":[\n\n'),
    ],
    [
      'an empty response',
      /sent nothing that belongs to its API/,
      (r) => void r.writeHead(200, eventStreamHeaders).end(),
    ],
    [
      'a tool call without a name',
      /sent a tool call without a tool name/,
      (r) =>
        void r.writeHead(200, eventStreamHeaders).end(chunk({ tool_calls: [{ index: 0, id: 'a' }] }, 'tool_calls')),
    ],
    [
      'a tool call with a long id',
      /name or id has more than 200 characters/,
      (r) =>
        void r
          .writeHead(200, eventStreamHeaders)
          .end(chunk({ tool_calls: [{ index: 0, id: 'a'.repeat(201), function: { name: 'read' } }] })),
    ],
    [
      'endless one-byte chunks',
      /has too many chunks|more than 4 MiB/,
      async (r) => {
        r.socket?.setNoDelay();
        await repeat(r.writeHead(200, eventStreamHeaders), '\n');
      },
    ],
  ];
  for (const [label, detail, respond] of limits) {
    it(`[play 1] fails with an error that names the limit if the host sends ${label}`, async () => {
      const { status, body, text } = await askModel(respond);
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
      async (r) => {
        r.writeHead(200, eventStreamHeaders);
        for (const byte of bytes) if (!r.write(Buffer.of(byte))) await once(r, 'drain');
        r.end();
      },
      (r) => void r.writeHead(200, { ...eventStreamHeaders, 'content-encoding': 'gzip' }).end(gzipSync(bytes)),
      (r) => void r.writeHead(200, eventStreamHeaders).end(fullResponse.replaceAll('\n', '\r\n')),
      (r) => void r.writeHead(200, eventStreamHeaders).end(fullResponse.replaceAll('\n', '\r').trimEnd()),
      (r) =>
        void r.writeHead(200, eventStreamHeaders).end(fullResponse.replaceAll('data: {', 'event: message\ndata:{')),
    ];
    for (const variant of variants) {
      const { status, body, text } = await askModel(variant);
      assert.equal(status, 200, text);
      const parts = [
        { type: 'thought', text: 'Thinking é' },
        { type: 'text', text: 'Wörter.' },
      ];
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
    const gemini = [
      `data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"a","name":"read","args":${args}}},{"functionCall":{"id":"b","name":"read"}}]},"finishReason":"STOP"}]}\n\n`,
    ];
    for (const [kind, events] of Object.entries({ openai, anthropic, gemini })) {
      const { status, body, text } = await askModel(
        (r) => void r.writeHead(200, eventStreamHeaders).end(events.join('')),
        kind,
      );
      assert.equal(status, 200, text);
      const calls = (body.parts as Json[]).map(({ id, tool, arguments: json }) => [id, tool, json]);
      assert.deepEqual(
        [calls, body.finish],
        [
          [
            ['a', 'read', args],
            ['b', 'read', '{}'],
          ],
          'tool-calls',
        ],
        kind,
      );
    }
  });

  it('[play 2] are available to a call-only key for stored models, without any address in an error', async () => {
    const caller = await toolhost.createKey({ scopes: ['call'] });
    const model = createModel(
      (r) =>
        void r
          .writeHead(404, { 'content-type': 'application/json' })
          .end('{"error":{"code":"model_not_found","message":"secret-of-a-neighbor"}}'),
      'openai',
    );
    const askModelAs = (of: Json, as?: string) =>
      toolhost.rest('POST', '/servers/shop/playground', {
        body: { model: of, messages: [{ role: 'user', text: 'Hello' }] },
        ...(as !== undefined && { key: as }),
      });
    const refused = await askModelAs(model, caller);
    assert.deepEqual([refused.status, /needs the scope manage:write/.test(refused.text)], [403, true], refused.text);
    assert.equal((await askModelAs({ kind: 'openai', model: 'gpt', key }, caller)).status, 403);
    const withQuery = await askModelAs({ ...model, url: `${model.url}?to=elsewhere` });
    assert.match(withQuery.text, /found a query or a fragment/);
    assert.equal(
      (await toolhost.rest('PUT', '/models/mine', { body: { ...model, url: `${model.url}#x` } })).status,
      400,
    );
    assert.equal((await toolhost.rest('PUT', '/models/mine', { body: model })).status, 200);
    const failed = await askModelAs({ saved: 'mine' }, caller);
    assert.equal(failed.body.detail, 'The model "mine" responded with HTTP status 404 (model_not_found).');
    assert.doesNotMatch(failed.text, /neighbor|127\.0\.0\.1/);
  });

  it('[sec M8] show no form of the key that a host returns as its error code', async () => {
    const hex = `x${Buffer.from(key).toString('hex')}`;
    for (const code of [key, hex, key.toUpperCase(), key.slice(0, 8), 'private.path', 'see-127.0.0.1'])
      for (const status of [200, 401]) {
        const { text } = await askModel(
          (r) => void r.writeHead(status, eventStreamHeaders).end(event({ error: { code } })),
        );
        assert.equal(text.toLowerCase().includes(code.toLowerCase()), false, text);
      }
  });

  it('[play 2] do not reveal host and port to a caller if a stored model is unreachable', async () => {
    const caller = await toolhost.createKey({ scopes: ['call'] });
    const port = (host.address() as AddressInfo).port;
    const url = `https://127.0.0.1:${port}/tls`;
    assert.equal(
      (await toolhost.rest('PUT', '/models/far', { body: { kind: 'openai', url, model: 'stub', key } })).status,
      200,
    );
    const { status, text, body } = await toolhost.rest('POST', '/servers/shop/playground', {
      body: { model: { saved: 'far' }, messages: [{ role: 'user', text: 'Hello' }] },
      key: caller,
    });
    assert.deepEqual([status, /^The model "far" /.test(String(body.detail))], [503, true], text);
    assert.doesNotMatch(text, new RegExp(`127\\.0\\.0\\.1|${port}`));
  });

  it('[play 1] may have the name of an inherited property as finish reason', async () => {
    for (const finish of ['constructor', '__proto__', 'toString']) {
      const { body, text } = await askModel(
        (r) => void r.writeHead(200, eventStreamHeaders).end(chunk({ content: 'Hi' }, finish)),
      );
      assert.equal(body.finish, 'other', text);
    }
  });

  it('[play 3] count against call limits and leave a record with their tokens', async () => {
    const usage = { prompt_tokens: 12, completion_tokens: 5 };
    const respond: Respond = (r) =>
      void r.writeHead(200, eventStreamHeaders).end(chunk({ content: 'Hi.' }, 'stop') + event({ choices: [], usage }));
    const limited = await toolhost.rest('POST', '/keys', {
      body: { name: 'few', scopes: ['call', 'manage'], calls_per_day: 2 },
    });
    assert.equal(limited.status, 201, limited.text);
    const model = createModel(respond, 'openai');
    const askLimited = () =>
      toolhost.rest('POST', '/servers/shop/playground', {
        body: { model, messages: [{ role: 'user', text: 'Hello' }] },
        key: String(limited.body.key),
      });
    const first = await askLimited();
    assert.equal(first.status, 200, first.text);
    const id = first.headers.get('x-request-id');
    const { body } = await toolhost.rest('GET', `/calls/call_${id}`);
    const call = body.call as Json;
    assert.deepEqual(
      [
        call.caller_kind,
        call.key_id,
        call.server,
        call.tool,
        call.model,
        call.input_tokens,
        call.output_tokens,
        call.outcome,
      ],
      ['playground', limited.body.id, 'shop', 'ask_model', 'stub', 12, 5, 'ok'],
    );
    assert.equal(typeof call.duration_ms, 'number');
    assert.equal((await askLimited()).status, 200);
    const third = await askLimited();
    assert.deepEqual([third.status, third.headers.has('retry-after')], [429, true], third.text);
    const refused = await toolhost.rest('GET', '/calls?caller_kind=playground&outcome=limited');
    assert.equal((refused.body.calls as Json[]).length, 1, refused.text);
  });
});

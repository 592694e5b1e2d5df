import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { times } from '../support/long-values.ts';
import { useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

/** Just below the maximum size of a response, 4 MiB. */
const maxResponseBytes = 4 * 1024 * 1024 - 64;
const repeatTo = (text: string, bytes = maxResponseBytes) => text.repeat(Math.floor(bytes / text.length));
const chunk = (delta: unknown) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;
/** Returns an event just below the size limit, filled with a repeated text. */
const event = (before: string, text: string, after: string) => `data: ${before}${repeatTo(text, 520_000)}${after}\n\n`;

/** Responses of up to 4 MiB in every shape that has been slow somewhere. */
const shapes: Readonly<Record<string, string>> = {
  'one text in small pieces': repeatTo(chunk({ content: 'ab' })),
  'one text in pieces of 4 KiB': repeatTo(chunk({ content: 'x'.repeat(4096) })),
  'arguments of one call in small pieces': repeatTo(
    chunk({ tool_calls: [{ index: 0, function: { arguments: '[' } }] }),
  ),
  'tool calls by the thousand': repeatTo(
    chunk({ tool_calls: [{ id: 'a', function: { name: 'read', arguments: '{}' } }] }),
  ),
  'alternating text and thoughts': repeatTo(chunk({ content: 'a' }) + chunk({ reasoning_content: 'b' })),
  'empty events': repeatTo('data: {}\n\n'),
  'events of other types': repeatTo('data: {"type":"ping"}\n\n'),
  'events that are a number': repeatTo('data: 1\n\n'),
  'lines of data without an event': repeatTo('data:\n'),
  'empty lines': repeatTo('\n'),
  'carriage returns': repeatTo('\r'),
  comments: repeatTo(':\n'),
  'one line without end': repeatTo('x'),
  'an event of brackets': event('', '[', ''),
  'an event of empty lists': event('{"choices":[', '[],', '[]]}'),
  'an event of many members': `data: {${times(45_000, (i) => `"a${i}":0`)}}\n\n`,
  'an event of escapes': event('{"choices":[{"delta":{"content":"', '\\u00e9', '"}}]}'),
  'events of escapes': repeatTo(chunk({ content: '' }).replace('""', `"${'\\u0001'.repeat(2000)}"`)),
  'events of digits': repeatTo(event('{"usage":{"prompt_tokens":', '9', '}}')),
  'events of many parts': repeatTo(event('{"candidates":[{"content":{"parts":[', '{},', '{}]}}]}')),
  'one event of many lines': event('', '\ndata:', ''),
};

describe('CPU budget of model responses', () => {
  const toolhost = useCpuBudgetToolhost();
  before(async () => {
    const tools = [buildToolAt(`${toolhost.upstream.url}/x`, { name: 'read' })];
    await toolhost.createServer({ slug: 'shop', tools });
  });

  /** Sends a question and these messages within the CPU budget. The model's response may be rejected. */
  const chat = async (label: string, model: object, messages: object[]) => {
    const request = { model, messages: [{ role: 'user', text: 'Hello' }, ...messages] };
    const { status, text } = await toolhost.measure(label).rest('POST', '/servers/shop/playground', request);
    const isRejected = status === 503 && text.includes("The model's host sent ");
    assert.ok(status === 200 || isRejected, `${label}: ${status} ${text.slice(0, 300)}`);
  };
  let requestCount = 0;
  const sendMessage = async (label: string, kind: string, headers: Record<string, string>, body: string | Buffer) => {
    const url = `${toolhost.upstream.url}/m${++requestCount}`;
    toolhost.upstream.on('*', () => ({ headers: { 'content-type': 'text/event-stream', ...headers }, body }));
    await chat(label, { kind, url, model: 'stub' }, []);
  };

  for (const kind of ['openai', 'anthropic', 'gemini'])
    it(`[play 1] parses any 4 MiB response of the ${kind} API within the CPU budget`, async () => {
      for (const [label, body] of Object.entries(shapes)) await sendMessage(`${kind}, ${label}`, kind, {}, body);
    });

  it('[play 1] parses a response in any shape and content coding within the CPU budget', async () => {
    const codings = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync };
    for (const [coding, encode] of Object.entries(codings))
      for (const [label, body] of Object.entries(shapes))
        await sendMessage(`${coding}, ${label}`, 'openai', { 'content-encoding': coding }, encode(Buffer.from(body)));
  });

  it('[play 1] sends a conversation with tool call arguments of any shape within the CPU budget', async () => {
    const headers = { 'content-type': 'text/event-stream' };
    toolhost.upstream.on('*', () => ({ headers, body: chunk({ content: 'Hi' }) }));
    const argumentShapes = {
      'numbers with exponents': `{"a":[${Array(115_000).fill('1e1')}]}`,
      'nested lists': `{"a":${'['.repeat(200_000)}1e1${']'.repeat(200_000)}}`,
      'empty objects': `{"a":[${Array(150_000).fill('{}')}]}`,
    };
    for (const kind of ['openai', 'anthropic', 'gemini'])
      for (const [label, json] of Object.entries(argumentShapes)) {
        const call = { type: 'call', id: 'c', tool: 'read', arguments: json, meta: '{"a":[1e1]}' };
        const model = { kind, url: `${toolhost.upstream.url}/v1`, model: 'stub' };
        await chat(`${kind}, ${label}`, model, [{ role: 'model', parts: [call, call] }]);
      }
  });

  it('[play 1] parses long arguments and a long text within the CPU budget', async () => {
    const args = `{"a":[${Array(120_000).fill('{}')}]}`;
    const calls = times(4, (index) => {
      const call = { name: 'read', arguments: index === 0 ? args : '{}' };
      return chunk({ tool_calls: [{ index, id: `c${index}`, function: call }] });
    });
    await sendMessage('long arguments', 'openai', {}, calls.join(''));
    await sendMessage('a long text', 'openai', {}, repeatTo(chunk({ content: '"\\\u0001é' }), 3_000_000));
  });
});

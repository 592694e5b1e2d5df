import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { toolAt } from '../support/configs.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';

const mebibytes4 = 4 * 1024 * 1024 - 64;
const fill = (text: string, bytes = mebibytes4) => text.repeat(Math.floor(bytes / text.length));
const chunk = (delta: unknown) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;
/** Returns an event just below the size limit, filled with a repeated text. */
const event = (before: string, text: string, after: string) => `data: ${before}${fill(text, 520_000)}${after}\n\n`;

/** Responses of up to 4 MiB in every shape that has been slow somewhere. */
const shapes: Readonly<Record<string, string>> = {
  'one text in small pieces': fill(chunk({ content: 'ab' })),
  'one text in pieces of 4 KiB': fill(chunk({ content: 'x'.repeat(4096) })),
  'arguments of one call in small pieces': fill(chunk({ tool_calls: [{ index: 0, function: { arguments: '[' } }] })),
  'tool calls by the thousand': fill(chunk({ tool_calls: [{ id: 'a', function: { name: 'read', arguments: '{}' } }] })),
  'alternating text and thoughts': fill(chunk({ content: 'a' }) + chunk({ reasoning_content: 'b' })),
  'empty events': fill('data: {}\n\n'),
  'events of other types': fill('data: {"type":"ping"}\n\n'),
  'events that are a number': fill('data: 1\n\n'),
  'lines of data without an event': fill('data:\n'),
  'empty lines': fill('\n'),
  'carriage returns': fill('\r'),
  comments: fill(':\n'),
  'one line without end': fill('x'),
  'an event of brackets': event('', '[', ''),
  'an event of empty lists': event('{"choices":[', '[],', '[]]}'),
  'an event of many members': `data: {${Array.from({ length: 45_000 }, (_, i) => `"a${i}":0`).join(',')}}\n\n`,
  'an event of escapes': event('{"choices":[{"delta":{"content":"', '\\u00e9', '"}}]}'),
  'events of escapes': fill(chunk({ content: '' }).replace('""', `"${'\\u0001'.repeat(2000)}"`)),
  'events of digits': fill(event('{"usage":{"prompt_tokens":', '9', '}}')),
  'events of many parts': fill(event('{"candidates":[{"content":{"parts":[', '{},', '{}]}}]}')),
  'one event of many lines': event('', '\ndata:', ''),
};

describe('CPU budget of model responses', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost();
    const tools = [toolAt(`${priced.upstream.url}/x`, { name: 'read' })];
    const made = await priced.rest('POST', '/servers', { name: 'Shop', slug: 'shop', tools });
    assert.equal(made.status, 201, made.text);
  });
  after(() => priced.stop());

  let asked = 0;
  const ask = async (what: string, kind: string, headers: Record<string, string>, body: string | Buffer) => {
    const url = `${priced.upstream.url}/m${++asked}`;
    priced.upstream.on('*', () => ({ headers: { 'content-type': 'text/event-stream', ...headers }, body }));
    const question = { model: { kind, url, model: 'stub' }, messages: [{ role: 'user', text: 'Hello' }] };
    const { status, text } = await priced.costsLittle(what, () =>
      priced.rest('POST', '/servers/shop/playground', question),
    );
    assert.ok(
      status === 200 || (status === 503 && text.includes("The model's host sent ")),
      `${what}: ${status} ${text.slice(0, 300)}`,
    );
  };

  for (const kind of ['openai', 'anthropic', 'gemini'])
    it(`[play 1] parses any 4 MiB response of the ${kind} API within the CPU budget`, async () => {
      for (const [what, body] of Object.entries(shapes)) await ask(`${kind}, ${what}`, kind, {}, body);
    });

  it('[play 1] parses a response in any shape and content coding within the CPU budget', async () => {
    const codings = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync };
    for (const [coding, encode] of Object.entries(codings))
      for (const [what, body] of Object.entries(shapes))
        await ask(`${coding}, ${what}`, 'openai', { 'content-encoding': coding }, encode(Buffer.from(body)));
  });

  it('[play 1] sends a conversation with tool call arguments of any shape within the CPU budget', async () => {
    priced.upstream.on('*', () => ({
      headers: { 'content-type': 'text/event-stream' },
      body: chunk({ content: 'Hi' }),
    }));
    const shapesOfArguments = {
      'numbers with exponents': `{"a":[${Array(115_000).fill('1e1').join(',')}]}`,
      'nested lists': `{"a":${'['.repeat(200_000)}1e1${']'.repeat(200_000)}}`,
      'empty objects': `{"a":[${Array(150_000).fill('{}').join(',')}]}`,
    };
    for (const kind of ['openai', 'anthropic', 'gemini'])
      for (const [what, json] of Object.entries(shapesOfArguments)) {
        const call = { type: 'call', id: 'c', tool: 'read', arguments: json, meta: '{"a":[1e1]}' };
        const messages = [
          { role: 'user', text: 'Hello' },
          { role: 'model', parts: [call, call] },
        ];
        const question = { model: { kind, url: `${priced.upstream.url}/v1`, model: 'stub' }, messages };
        const { status, text } = await priced.costsLittle(`${kind}, ${what}`, () =>
          priced.rest('POST', '/servers/shop/playground', question),
        );
        assert.ok(
          status === 200 || text.includes("The model's host sent "),
          `${what}: ${status} ${text.slice(0, 200)}`,
        );
      }
  });

  it('[play 1] accepts a response of the maximum length within the CPU budget', async () => {
    const args = `{"a":[${Array(120_000).fill('{}').join(',')}]}`;
    const calls = Array.from({ length: 4 }, (_, index) =>
      chunk({
        tool_calls: [{ index, id: `c${index}`, function: { name: 'read', arguments: index === 0 ? args : '{}' } }],
      }),
    );
    await ask('long arguments', 'openai', {}, calls.join(''));
    await ask('a long text', 'openai', {}, fill(chunk({ content: '"\\\u0001é' }), 3_000_000));
  });
});

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { getErrorText } from '../support/one-tool.ts';
import { getTexts, getToolNames, getTools, listCalls } from '../support/server-requests.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { PNG } from '../support/upstreams/content-upstream.ts';
import { buildServerConfig, buildToolConfig, findToolProblems } from '../support/valid-configs.ts';

const token = 'of-the-caller';
const getCursor = (note: string) => /cursor "([^"]+)"/.exec(note)?.[1];

describe('a result with max_response_tokens', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();
  let upstreamResponse: { body: unknown; headers?: Record<string, string>; status?: number };

  const serve = (slug: string, server: Json = {}, tool: Json = {}) => {
    const tools = [buildToolConfig({ name: 'read', url: `${upstream.url}/read`, ...tool })];
    return toolhost.createServer(buildServerConfig({ slug, tools, ...server }));
  };
  const call = (slug: string, name = 'read', args: Json = {}, bearer = token) =>
    toolhost.callTool(slug, bearer, name, args);
  const callForCursor = async (slug: string) => String(getCursor(getTexts(await call(slug))[1] ?? ''));
  const respondWith = (body: string | Buffer, type = 'application/json') => {
    upstreamResponse = { body, headers: { 'content-type': type } };
  };
  const numbers = Array.from({ length: 400 }, (_, n) => n + 1000);

  before(async () => {
    upstream.on('*', () => upstreamResponse);
    for (const tokens of [200, 500, 20_000])
      await serve(`most-${tokens}`, { max_response_tokens: tokens, authentication: { type: 'Bearer' } });
  });
  /** Reads all chunks of a result, checks each against the limit, and returns each with the position from its note. */
  async function readChunks(tokens = 200): Promise<{ text: string; position: string }[]> {
    const slug = `most-${tokens}`;
    const chunks = [];
    for (let reply = await call(slug); ; ) {
      const texts = getTexts(reply);
      assert.ok(texts.join('').length <= tokens * 4, `${texts.join('').length} characters`);
      for (const text of texts) assert.ok(text.isWellFormed());
      const [text = '', note = ''] = texts;
      const position =
        /^\[(?:Truncated: this|This) is (.*?)(?:, of about \d+ tokens in total)?\. /.exec(note)?.[1] ?? 'whole';
      chunks.push({ text, position });
      const cursor = getCursor(note);
      if (cursor === undefined) return chunks;
      // A client may show structured content instead of the texts, so it contains both.
      const { result, more } = (reply.structuredContent ?? {}) as { result?: unknown; more?: string[] };
      assert.equal(result !== undefined, isNonObjectJson(text), text.slice(0, 200));
      if (result !== undefined) {
        assert.ok([text, JSON.parse(text)].some((value) => isDeepStrictEqual(value, result)));
        assert.deepEqual(more, texts.length > 1 ? [note] : undefined);
      }
      reply = await call(slug, 'read_more', { cursor });
      assert.notEqual(reply.isError, true);
    }
  }

  /** Returns true if a text is JSON other than an object, which Gemini CLI rejects without structured content. */
  function isNonObjectJson(text: string): boolean {
    try {
      const value: unknown = JSON.parse(text);
      return typeof value !== 'object' || value === null || Array.isArray(value);
    } catch {
      return false;
    }
  }

  /** Joins JSON chunks as their notes describe. */
  function joinChunks(chunks: { text: string; position: string }[]): unknown {
    const [first, ...others] = chunks;
    assert.ok(first);
    const joinedText = chunks.map(({ text }) => text).join('');
    if (/^part 1 of \d+ of the JSON text$/.test(first.position)) return JSON.parse(joinedText);
    const value = JSON.parse(first.text);
    const path = /the list "(.*)"$/.exec(first.position)?.[1];
    const list = (path?.split('.') ?? []).reduce((inner, name) => inner[name], value);
    let parts = '';
    for (const { text, position } of others) {
      const part = /^part (\d+) of (\d+) of item/.exec(position);
      if (!part) list.push(...JSON.parse(text));
      else parts += text;
      if (part && part[1] === part[2]) {
        list.push(JSON.parse(parts));
        parts = '';
      }
    }
    return value;
  }

  it('is returned whole if it fits [agent 3]', async () => {
    for (const [slug, text] of Object.entries({ 'most-200': 'x'.repeat(700), 'most-500': '"\n'.repeat(250) })) {
      upstreamResponse = { body: { text } };
      assert.deepEqual(getTexts(await call(slug)), [JSON.stringify({ text })]);
    }
  });

  it('is split between items of the largest list, with a note on how to continue [agent 3]', async () => {
    const items = Array.from({ length: 100 }, (_, id) => ({ id, name: `name ${id}` }));
    upstreamResponse = { body: { total: 100, tags: ['a', 'b'], data: { items }, more: false } };
    const [first = '', note = ''] = getTexts(await call('most-200'));
    const shown = JSON.parse(first) as { total: number; tags: string[]; data: { items: unknown[] } };
    assert.deepEqual([shown.total, shown.tags], [100, ['a', 'b']]);
    const count = shown.data.items.length;
    assert.ok(count > 3);
    assert.deepEqual(shown.data.items, items.slice(0, count));
    const start = `[Truncated: this is items 1 to ${count} of 100 of the list "data.items", of about `;
    assert.equal(note.slice(0, start.length), start);
    assert.deepEqual(joinChunks(await readChunks()), upstreamResponse.body);
  });

  it('is split at line ends, and within a line only if it is too long [agent 3]', async () => {
    const lines = Array.from({ length: 300 }, (_, n) => `line ${n} ${'é'.repeat(n % 40)}\n`);
    const body = `${lines.join('')}${'👩‍👩‍👧'.repeat(2000)}`;
    respondWith(body, 'text/plain; charset=utf-8');
    const chunks = await readChunks();
    assert.equal(chunks.map(({ text }) => text).join(''), body);
    for (const { text } of chunks.slice(0, 3)) assert.ok(text.endsWith('\n'));
    for (const { text } of chunks) assert.ok(!text.startsWith('\u200d') && !text.endsWith('\u200d'));
  });

  it('contains the whole JSON when all chunks are joined [agent 3]', async () => {
    const long = ['"\\'.repeat(900), '😀'.repeat(800), '\u0000\n'.repeat(300), 'ü'.repeat(3000)];
    const numbers = Array.from({ length: 400 }, (_, n) => n / 7);
    for (const value of [
      ...[...long, long, numbers, 5, true, null, [], {}, [[]], Array(1000).fill([])],
      { a: long, b: { c: numbers, a: { '': long.slice(1), d: [numbers, { a: long }] } } },
      [...long.map((text, n) => ({ [`${n}`]: text, list: [text, n] })), [[numbers], [long]]],
      Object.fromEntries(numbers.map((number) => [`key ${number}`, [number, { number }]])),
    ]) {
      respondWith(JSON.stringify(value));
      assert.equal(JSON.stringify(joinChunks(await readChunks())), JSON.stringify(value));
    }
  });

  for (const [name, value] of [
    ['objects', { items: Array.from({ length: 17_000 }, (_, n) => ({ n, text: `ö${'x'.repeat(60)}` })) }],
    ['one text in one line', { text: 'a"b\\c😀'.repeat(150_000) }],
  ] as const) {
    it(`is split and can be read completely with more than 1 MB: ${name} [agent 3]`, async () => {
      const text = JSON.stringify(value);
      assert.ok(text.length > 1_000_000);
      respondWith(text);
      const chunks = await readChunks(20_000);
      assert.ok(chunks.length > 12);
      assert.equal(JSON.stringify(joinChunks(chunks)), text);
    });
  }

  it('is also split if it is an error [agent 3]', async () => {
    upstreamResponse = { status: 500, body: 'x'.repeat(7000), headers: { 'content-type': 'text/plain' } };
    assert.equal((await call('most-200')).isError, true);
    const text = (await readChunks()).map((chunk) => chunk.text).join('');
    assert.match(text, /^HTTP 500 Internal Server Error\nx{7000}$/);
  });

  it('keeps its images and files, which do not count as tokens [agent 3]', async () => {
    respondWith(Buffer.concat([PNG, Buffer.alloc(5000)]), 'image/png');
    const getContentTypes = ({ content }: ToolCallResult) => content.map(({ type }) => type);
    assert.deepEqual(getContentTypes(await call('most-200')), ['text', 'image']);
    const long = `--b\r\n\r\n${'words '.repeat(500)}\r\n--b\r\nContent-Type: image/png\r\n\r\n`;
    respondWith(Buffer.concat([Buffer.from(long), PNG, Buffer.from('\r\n--b--')]), 'multipart/mixed; boundary=b');
    const truncated = await call('most-200');
    assert.deepEqual(getContentTypes(truncated), ['text', 'image', 'text', 'text']);
    assert.match(String(truncated.content[0]?.text), /^The response is a file: image\/png, /);
  });

  it('continues only for the same caller and server, and not with an invalid cursor [agent 3]', async () => {
    upstreamResponse = { body: numbers };
    const cursor = await callForCursor('most-200');
    for (const [slug, bearer, invalidCursor] of [
      ['most-200', 'another-caller', cursor],
      ['most-500', token, cursor],
      ['most-200', token, cursor.replace(/\.1$/, '.99')],
      ['most-200', token, 'ans_0000000000000000000000.1.1'],
      ['most-200', token, "' or 1=1"],
    ] as const)
      assert.match(getErrorText(await call(slug, 'read_more', { cursor: invalidCursor }, bearer)), /cursor: not valid/);
    assert.equal((await call('most-200', 'read_more', {})).isError, true);
    assert.notEqual((await call('most-200', 'read_more', { cursor })).isError, true);
  });

  it('continues only at the URL of the view that returned it [agent 2]', async () => {
    await serve('viewed', { max_response_tokens: 200, views: { one: { tools: ['read'] }, two: { tools: ['read'] } } });
    upstreamResponse = { body: numbers };
    const cursor = await callForCursor('viewed/one');
    for (const address of ['viewed', 'viewed/two', 'most-200'])
      assert.equal((await call(address, 'read_more', { cursor })).isError, true, address);
    assert.notEqual((await call('viewed/one', 'read_more', { cursor })).isError, true);
  });

  it('may have a limit per tool, and read_more is listed if any limit is set [agent 3]', async () => {
    const list = (slug: string) => toolhost.rpc(slug, token, 'tools/list');
    const listSchemas = async (slug: string) =>
      getTools(await list(slug)).map(({ name, outputSchema }) => `${name} ${outputSchema !== undefined}`);
    const output_schema = { type: 'object', properties: { text: { type: 'string' } } };
    await serve('no-limit', {}, { output_schema });
    await serve('tool-limit', { max_response_tokens: 20_000 }, { max_response_tokens: 200, output_schema });
    await serve('search-limit', { max_response_tokens: 200, tool_mode: 'search' });
    assert.deepEqual(await listSchemas('no-limit'), ['read true']);
    // A truncated result has no structured content, so no schema may promise it.
    assert.deepEqual(await listSchemas('tool-limit'), ['read false', 'read_more false']);
    const searchNames = ['search_tools', 'describe_tool', 'call_tool', 'read_more'];
    assert.deepEqual(getToolNames(await list('search-limit')), searchNames);
    upstreamResponse = { body: { text: 'y'.repeat(2000) } };
    assert.match(getTexts(await call('tool-limit'))[1] ?? '', /^\[Truncated/);
    assert.equal((await call('no-limit')).content.length, 1);
    const [, note = ''] = getTexts(await call('search-limit', 'call_tool', { name: 'read' }));
    const next = await call('search-limit', 'call_tool', { name: 'read_more', arguments: { cursor: getCursor(note) } });
    assert.notEqual(next.isError, true);
  });

  it('has its estimated tokens in the call record [agent 3]', async () => {
    await serve('counted', { max_response_tokens: 200 });
    upstreamResponse = { body: { text: 'y'.repeat(400) } };
    await call('counted');
    upstreamResponse = { body: { text: 'y'.repeat(4000) } };
    await call('counted', 'read_more', { cursor: await callForCursor('counted') });
    const calls = (await listCalls(toolhost, 'counted')).toReversed();
    assert.equal(calls.map(({ tool }) => tool).join(), 'read,read,read_more');
    const [first, ...truncated] = calls.map(({ estimated_tokens }) => Number(estimated_tokens));
    assert.equal(first, Math.ceil(JSON.stringify({ text: 'y'.repeat(400) }).length / 4));
    for (const tokens of truncated) assert.ok(tokens > 100 && tokens <= 200, String(tokens));
  });

  it('can also be continued in a trial call [agent 3]', async () => {
    upstreamResponse = { body: { text: 'y'.repeat(4000) } };
    const trialCall = (tool: string, args: Json) =>
      toolhost.rest('POST', `/servers/most-200/tools/${tool}/call`, { body: { arguments: args, token } });
    const { body } = await trialCall('read', {});
    const cursor = getCursor(JSON.stringify(body.content).replaceAll('\\"', '"'));
    assert.match((await trialCall('read_more', { cursor })).text, /This is part 2 of/);
  });

  it('has a validated limit and reserves the tool name read_more [agent 3]', async () => {
    for (const [server, tool, expected] of [
      [{ max_response_tokens: 100 }, {}, /max_response_tokens: found 100; allowed: at least 200/],
      [{}, { max_response_tokens: 1e6 }, /at most 100000/],
      [{ max_response_tokens: 500 }, { name: 'read_more' }, /tools\[0\]\.name: "read_more"/],
    ] as const)
      assert.match((await findToolProblems(toolhost, tool, server)).join(), expected);
    assert.deepEqual(await findToolProblems(toolhost, { name: 'read_more' }), []);
  });
});

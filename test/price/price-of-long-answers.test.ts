import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { ToolReply } from '../support/toolhost/toolhost.ts';

const megabytes = 1024 * 1024;

describe('the cost of cutting an answer and reading on', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost();
  });
  after(() => priced.stop());

  const listOf = (item: string, bytes: number) => `[${Array(Math.floor(bytes / (item.length + 1))).fill(item)}]`;
  const textsOf = ({ content }: ToolReply) => content.map(({ text }) => text ?? '');
  let served = 0;

  for (const [what, body, tokens] of [
    ['small items just below the bytes of a thread', listOf('1', 255 * 1024), 200],
    ['objects of a megabyte', listOf('{"id":12345,"name":"name"}', megabytes), 200],
    ['objects of 8 MB', listOf('{"id":12345,"name":"name"}', 8 * megabytes), 100_000],
    ['numbers of 8 MB', listOf('1', 8 * megabytes), 200],
    ['one text of 8 MB', JSON.stringify({ text: '"\\é'.repeat(megabytes) }), 5000],
    ['backslashes', JSON.stringify('\\'.repeat(4 * megabytes)), 100_000],
    ['nested lists', `${'['.repeat(900)}${listOf('1', megabytes).slice(1, -1)}${']'.repeat(900)}`, 200],
  ] as const) {
    it(`holds the event loop no longer than any request: ${what} [agent 3]`, async () => {
      const slug = `cut-${++served}`;
      const headers = { 'content-type': 'application/json' };
      priced.upstream.on(`GET /${slug}`, () => ({ headers, body }));
      const url = `${priced.upstream.url}/${slug}`;
      const run = { name: 'run', description: 'Gets an answer of this test.', method: 'GET', url };
      const config = { name: 'Cut', slug, max_answer_tokens: tokens, tools: [run] };
      assert.equal((await priced.rest('POST', '/servers', config)).status, 201);
      const reply = await priced.costsLittle(`cut ${what}`, () => priced.call(slug, 'run', '{}'));
      const texts = textsOf(reply.body.result as ToolReply);
      assert.ok(texts.join('').length <= tokens * 4);
      const cursor = /cursor "(.+?)"/.exec(texts.at(-1) ?? '')?.[1];
      assert.ok(cursor, texts.join().slice(-300));
      const more = await priced.costsLittle(`read on: ${what}`, () =>
        priced.call(slug, 'read_more', JSON.stringify({ cursor })),
      );
      assert.notEqual((more.body.result as ToolReply).isError, true, more.text.slice(0, 300));
    });
  }
});

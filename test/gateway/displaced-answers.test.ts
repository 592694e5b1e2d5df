import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type OneTool, startOneTool } from '../support/one-tool.ts';
import type { ToolReply } from '../support/toolhost/toolhost.ts';

describe('the storage of result remainders', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool({ env: { TRUSTED_PROXIES: '1' } });
  });
  after(() => one.stop());

  const tool = async (slug: string, from: string, token: string, name: string, args: object = {}) => {
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
    const { body, text } = await one.toolhost.post(slug, message, { token, headers: { 'x-forwarded-for': from } });
    assert.ok(body.result, text.slice(0, 300));
    return body.result as ToolReply;
  };
  const cursorOf = ({ content }: ToolReply) => /cursor "([^"]+)"/.exec(content.at(-1)?.text ?? '')?.[1] ?? '';

  it('never evicts remainders of other IP addresses and verified callers for unverified callers at one address [find A3]', async () => {
    let size = 100_000;
    one.upstream.on('*', () => ({
      body: { rows: Array.from({ length: size / 20 }, (_, n) => `row ${n} of many, x`) },
    }));
    const slug = await one.serve({}, { max_answer_tokens: 500 });
    const key = await one.toolhost.key();
    const modest = [
      ['203.0.113.9', key],
      ['203.0.113.2', 'another-token'],
    ] as const;
    const cursors: string[] = [];
    for (const [from, token] of modest) cursors.push(cursorOf(await tool(slug, from, token, 'run')));
    size = 7_500_000;
    for (let n = 0; n < 9; n++) await tool(slug, '203.0.113.1', `made-up-${n}`, 'run');
    for (const [index, [from, token]] of modest.entries()) {
      const { isError, content } = await tool(slug, from, token, 'read_more', { cursor: cursors[index] });
      assert.notEqual(isError, true, `${from}: ${content[0]?.text}`);
    }
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startOneTool } from '../support/one-tool.ts';
import type { ToolCallResult } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('the storage of result remainders', () => {
  const fixture = useFixture(() => startOneTool({ env: { TRUSTED_PROXIES: '1' } }));

  const callTool = async (slug: string, clientIp: string, token: string, name: string, args: object = {}) => {
    const headers = { 'x-forwarded-for': clientIp };
    const { toolhost } = fixture;
    const { body, text } = await toolhost.rpc(slug, token, 'tools/call', { name, arguments: args }, headers);
    assert.ok(body.result, text.slice(0, 300));
    return body.result as ToolCallResult;
  };
  const getCursor = ({ content }: ToolCallResult) => /cursor "([^"]+)"/.exec(content.at(-1)?.text ?? '')?.[1] ?? '';

  it('never evicts remainders of other IP addresses and verified callers for unverified callers at one address [find A3]', async () => {
    let size = 100_000;
    const createRows = () => Array.from({ length: size / 20 }, (_, n) => `row ${n} of many, x`);
    fixture.upstream.on('*', () => ({ body: { rows: createRows() } }));
    const slug = await fixture.createToolServer({}, { max_response_tokens: 500 });
    const key = await fixture.toolhost.createKey();
    const modestCallers = [
      ['203.0.113.9', key],
      ['203.0.113.2', 'another-token'],
    ] as const;
    const cursors: string[] = [];
    for (const [clientIp, token] of modestCallers)
      cursors.push(getCursor(await callTool(slug, clientIp, token, 'run')));
    size = 7_500_000;
    for (let n = 0; n < 9; n++) await callTool(slug, '203.0.113.1', `made-up-${n}`, 'run');
    for (const [index, [clientIp, token]] of modestCallers.entries()) {
      const { isError, content } = await callTool(slug, clientIp, token, 'read_more', { cursor: cursors[index] });
      assert.notEqual(isError, true, `${clientIp}: ${content[0]?.text}`);
    }
  });
});

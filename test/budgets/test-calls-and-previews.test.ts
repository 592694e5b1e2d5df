import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { makeList, repeatToFit } from '../support/long-values.ts';
import { getOutput } from '../support/oauth/management-agent.ts';
import { getResult, useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const megabytes = 1024 * 1024;

type ToolResult = {
  content: { type: string; text?: string; size?: number; resource?: Json }[];
  structured_content?: unknown;
  left_out?: string;
  estimated_tokens: number;
};

describe('CPU budget of test calls and previews', () => {
  const toolhost = useCpuBudgetToolhost();
  before(async () => {
    const input_schema = { type: 'object', properties: { a: {} } };
    const run = buildToolAt(`${toolhost.upstream.url}/run`, { name: 'run', method: 'POST', input_schema });
    const tools = [run, ...['form', 'multipart'].map((body) => ({ ...run, name: body, body }))];
    await toolhost.createServer({ slug: 'tried', tools });
  });

  const setUpstreamResponse = (type: string, body: string | Buffer) =>
    toolhost.upstream.on('POST /run', () => ({ headers: { 'content-type': type }, body }));
  /** Calls the tool over REST and through the management server within the CPU budget. Asserts equal results. */
  const testCall = async (label: string): Promise<ToolResult> => {
    const path = '/servers/tried/tools/run/call';
    const { status, body, text } = await toolhost.measure(`${label} by REST`).rest('POST', path, {});
    assert.equal(status, 200, text.slice(0, 500));
    const args = '{"slug":"tried","tool":"run"}';
    const mcpResponse = await toolhost.measure(`${label} by an agent`).call('manage', 'callTool', args);
    const mcpResult = getOutput(getResult(mcpResponse)) as ToolResult;
    // Each call stores its own file, so file IDs differ.
    const withoutIds = (content: unknown) => JSON.stringify(content).replaceAll(/file_\w{22}/g, 'file');
    assert.equal(withoutIds(mcpResult.content), withoutIds(body.content));
    return body as ToolResult;
  };
  const getText = ({ content }: ToolResult) => content[0]?.text ?? '';

  it('[find A2] returns the beginning and the length of a 10 MB response within the CPU budget', async () => {
    const bodies: Record<string, [type: string, body: string]> = {
      numbers: ['application/json', makeList('1.10', 9.9 * megabytes)],
      objects: ['application/json', makeList('{"a":1}', 9.9 * megabytes)],
      text: ['text/plain', '"Zeile"\n'.repeat(1_200_000)],
      signs: ['text/plain', '\u0001'.repeat(9 * megabytes)],
      characters: ['text/plain', `x${'😀'.repeat(2_400_000)}`],
    };
    for (const [label, [type, body]] of Object.entries(bodies)) {
      setUpstreamResponse(type, body);
      const result = await testCall(label);
      assert.ok(body.startsWith(getText(result)) && getText(result).length >= 262_143, label);
      assert.equal(result.structured_content, undefined);
      // JSON escapes count, as in a call record.
      assert.ok(result.estimated_tokens >= body.length / 4, label);
      assert.match(result.left_out ?? '', /^The result is \d+ bytes long\. Only the first 262144 characters/);
    }
  });

  it('[find A2] previews a 1 MB request within the CPU budget, with a curl command that reads the body from a file', async () => {
    const texts = ["'", '\\"', 'é', '\\u0001'];
    for (const tool of ['run', 'form', 'multipart']) {
      for (const piece of texts) {
        const args = `{"a":"${repeatToFit(piece, 1_000_000)}"}`;
        const label = `${piece} in ${tool}`;
        const path = `/servers/tried/tools/${tool}/preview`;
        const reply = await toolhost.measure(`${label} by REST`).rest('POST', path, `{"arguments":${args}}`);
        assert.equal(reply.status, 200, reply.text.slice(0, 300));
        const { request, curl } = reply.body as { request: { body: string }; curl: string };
        assert.match(request.body.slice(-40), /… \(\d+ (characters|fields) in total\)$/);
        assert.match(curl, /--data-binary @body$|--config fields$/);
        const previewArguments = `{"slug":"tried","tool":"${tool}","arguments":${args}}`;
        await toolhost.measure(`${label} by an agent`).call('manage', 'previewToolCall', previewArguments);
      }
    }
  });
});

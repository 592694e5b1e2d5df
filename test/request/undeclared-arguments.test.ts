import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, getResultText, startOneTool } from '../support/one-tool.ts';
import { pluck } from '../support/pluck.ts';
import { object, text } from '../support/schemas.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const optional = { ...text, optional: true };
const rows = {
  url: '/rows',
  input_schema: { q: text, limit: { type: 'integer', optional: true }, customer_id: optional },
};
const formatIgnored = (names: string) => `Ignored arguments: ${names} (not declared by the tool).`;
const getLastText = ({ content }: ToolCallResult) => content.at(-1)?.text;

describe('arguments that clients add or write as text', () => {
  const oneTool = useFixture(startOneTool);

  /** Returns the upstream requests of one call, and its result. */
  const callTool = async (slug: string, params: Json, name = 'run') => {
    oneTool.upstream.take();
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, ...params } };
    const { body } = await oneTool.toolhost.post(slug, message, { token: callerToken });
    const sent = oneTool.upstream.take().map((request) => `${request.method} ${request.url} ${request.body}`.trim());
    return { sent, result: body.result as ToolCallResult, error: body.error as { code: number } | undefined };
  };
  const callManagement = async (name: string, args: Json) =>
    oneTool.toolhost.callTool('manage', await oneTool.toolhost.createKey(), name, args);

  it('[behaviour request 4] omits an argument that clients are known to add from any call, and the result reports it', async () => {
    const names = ['wait_for_previous', 'sessionId', 'action', 'chatInput', 'tool', 'toolCallId', 'random_string'];
    for (const method of ['GET', 'POST', 'DELETE']) {
      const slug = await oneTool.createToolServer({ ...rows, method });
      const plain = await callTool(slug, { arguments: { q: 'late' } });
      for (const name of names) {
        const { sent, result } = await callTool(slug, { arguments: { q: 'late', [name]: true } });
        assert.deepEqual(sent, plain.sent, `${method} ${name}`);
        assert.deepEqual(result.content, [...plain.result.content, { type: 'text', text: formatIgnored(name) }]);
      }
    }
    const ping = await oneTool.createToolServer({ url: '/ping', input_schema: {} });
    assert.deepEqual((await callTool(ping, { arguments: { random_string: 'x' } })).sent, ['GET /ping']);
    const declared = await oneTool.createToolServer({ url: '/rows', input_schema: { action: text } });
    assert.deepEqual((await callTool(declared, { arguments: { action: 'x' } })).sent, ['GET /rows?action=x']);
  });

  it('[behaviour request 4] omits an undeclared argument from a read-only call, unless its name is a near miss', async () => {
    const readingSlug = await oneTool.createToolServer(rows);
    const { sent, result } = await callTool(readingSlug, { arguments: { q: 'late', reason: 'asked' } });
    assert.deepEqual([sent, getLastText(result)], [['GET /rows?q=late'], formatIgnored('reason')]);
    for (const nearMiss of ['Q', 'limits', 'Limit', 'customerId', 'custmer_ids', 'customer-id'])
      assert.match(
        await oneTool.captureRefusal(readingSlug, { q: 'late', [nearMiss]: 1 }),
        new RegExp(`${nearMiss}: unknown argument`),
      );
    const writingSlug = await oneTool.createToolServer({ ...rows, method: 'DELETE' });
    assert.match(await oneTool.captureRefusal(writingSlug, { q: 'late', reason: 'asked' }), /reason: unknown argument/);
    oneTool.upstream.on('GET /failing', () => ({ status: 400, body: 'no' }));
    const failingSlug = await oneTool.createToolServer({ ...rows, url: '/failing' });
    const failing = await callTool(failingSlug, { arguments: { q: 'a', reason: 1 } });
    assert.equal(failing.result.isError, true);
    assert.deepEqual(pluck(failing.result.content, 'text'), ['HTTP 400 Bad Request\nno', formatIgnored('reason')]);
  });

  it('[behaviour request 4] omits such arguments at the management server too', async () => {
    const slug = await oneTool.createToolServer(rows);
    const result = await callManagement('getMcpServer', { slug, toolCallId: 'x', reason: 1 });
    assert.equal(getLastText(result), formatIgnored('toolCallId, reason'), getResultText(result));
    const deleted = await callManagement('deleteMcpServer', { slug, reason: 1 });
    assert.match(getResultText(deleted), /reason: unknown field/);
    const called = await callManagement('callTool', { slug, tool: 'run', arguments: '{"q":"a"}', token: callerToken });
    assert.notEqual(called.isError, true, getResultText(called));
    const created = await callManagement('createMcpServer', {
      name: 'By text',
      slug: 'by-text',
      tools: JSON.stringify([
        { name: 'get', description: 'Gets all the rows.', method: 'GET', url: 'https://api.example.com/' },
      ]),
    });
    assert.notEqual(created.isError, true, getResultText(created));
  });

  it('[agent 1] accepts added arguments and arguments as text in the tools of a server in search mode', async () => {
    const slug = await oneTool.createToolServer(rows, { tool_mode: 'search' });
    const searchResult = await callTool(slug, { arguments: { query: 'run', wait_for_previous: true } }, 'search_tools');
    assert.equal(getLastText(searchResult.result), formatIgnored('wait_for_previous'));
    const inner = { name: 'run', arguments: '{"q":"late","reason":1}', toolCallId: 'x' };
    const { sent, result } = await callTool(slug, { arguments: inner }, 'call_tool');
    assert.deepEqual(sent, ['GET /rows?q=late']);
    const reports = pluck(result.content.slice(-2), 'text');
    assert.deepEqual(reports, [formatIgnored('reason'), formatIgnored('toolCallId')]);
  });

  it('[mcp 16] parses arguments given as JSON text, and treats an empty list as an empty object', async () => {
    const slug = await oneTool.createToolServer(rows);
    assert.deepEqual((await callTool(slug, { arguments: '{"q":"late"}' })).sent, ['GET /rows?q=late']);
    for (const wrong of ['late', '[1]', '{', [1], 7])
      assert.equal((await callTool(slug, { arguments: wrong })).error?.code, -32602, JSON.stringify(wrong));
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list', params: [] };
    const { body } = await oneTool.toolhost.post(slug, list, { token: callerToken });
    assert.equal((body.result as { tools: Json[] }).tools.length, 1);
    const ping = await oneTool.createToolServer({ url: '/ping', input_schema: {} });
    assert.deepEqual((await callTool(ping, { arguments: [] })).sent, ['GET /ping']);
  });

  it('[behaviour The tool result] converts a number or a boolean to text where the schema accepts only text', async () => {
    const path = await oneTool.createToolServer({ url: '/rows/:id', input_schema: { id: text } });
    for (const digits of ['4711', '12345678901234567890', '1.10', 'true'])
      assert.notEqual((await oneTool.callText(path, `{"id":${digits}}`)).isError, true, digits);
    assert.deepEqual(pluck(oneTool.upstream.take(), 'url'), [
      '/rows/4711',
      '/rows/12345678901234567890',
      '/rows/1.10',
      '/rows/true',
    ]);
    const body = await oneTool.createToolServer({
      method: 'POST',
      input_schema: { id: text, either: { type: 'object', optional: true } },
    });
    assert.deepEqual((await callTool(body, { arguments: { id: 12345, either: [] } })).sent, [
      'POST /v1/things {"id":"12345","either":{}}',
    ]);
  });

  it('[behaviour request 5] sends null where a field is nullable, and otherwise reports that it was omitted', async () => {
    const createTask = (nullable: boolean) => ({
      method: 'PATCH',
      url: '/tasks/:id',
      input_schema: {
        id: text,
        assignee: { type: 'string', enum: ['ann', 'bob'], optional: true, nullable },
        dates: { type: 'object', optional: true, properties: { due: { type: 'string', nullable } } },
      },
    });
    const args = { id: '1', assignee: null, dates: { due: null } };
    const nullable = await oneTool.createToolServer(createTask(true));
    assert.deepEqual((await callTool(nullable, { arguments: args })).sent, [
      'PATCH /tasks/1 {"assignee":null,"dates":{"due":null}}',
    ]);
    const { body } = await oneTool.toolhost.rpc(nullable, callerToken, 'tools/list');
    const [tool] = (body.result as { tools: { inputSchema: { properties: Json } }[] }).tools;
    assert.deepEqual(tool?.inputSchema.properties, {
      id: text,
      assignee: { type: ['string', 'null'], enum: ['ann', 'bob', null] },
      dates: object({ due: { type: ['string', 'null'] } }),
    });
    const plain = await callTool(await oneTool.createToolServer(createTask(false)), { arguments: args });
    assert.deepEqual(plain.sent, ['PATCH /tasks/1 {"dates":{}}']);
    assert.equal(
      getLastText(plain.result),
      'Ignored arguments: assignee, dates.due (null is not allowed by the schema).',
    );
  });
});

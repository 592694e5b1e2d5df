import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { startManagementAgent } from '../support/oauth/management-agent.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('using an existing server through the management server', async () => {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ egressPorts: [upstream.port] });
  const manager = await startManagementAgent(toolhost, await toolhost.createKey());
  const tools = [buildToolAt(`${upstream.url}/thing`, { headers: { 'X-Key': '{{KEY}}' } })];
  await toolhost.createServer(buildServerAt('first-server', upstream.url, { tools }));
  after(() => Promise.all([toolhost.stop(), upstream.close()]));
  const done = (name: string, args?: Json) => manager.expectSuccess(name, args);
  const refused = (name: string, args: Json, why: RegExp) => manager.expectError(name, args, why);

  it('never shows a value in setSecret, listSecrets, and deleteSecret', async () => {
    const { output } = await done('setSecret', { slug: 'first-server', name: 'KEY', value: 'hidden-value' });
    assert.deepEqual([output.name, output.origins, output.used_by], ['KEY', [upstream.url], ['get: X-Key']]);
    const listed = await done('listSecrets', { slug: 'first-server' });
    assert.deepEqual(listed.output.secrets, [output]);
    assert.doesNotMatch(listed.text, /hidden-value/);
    assert.deepEqual((await done('getMcpServer', { slug: 'first-server' })).output.secrets, ['KEY']);
    await done('setSecret', { slug: 'first-server', name: 'SPARE', value: 'x' });
    const spare = { slug: 'first-server', name: 'SPARE' };
    assert.deepEqual((await done('deleteSecret', spare)).output, { deleted: 'SPARE' });
    await refused('deleteSecret', spare, /has no secret SPARE/);
  });

  it('previews the exact request with masked credentials in previewToolCall, and sends nothing', async () => {
    upstream.take();
    const input_schema = { id: { type: 'string' }, note: { type: 'string' } };
    const more = { method: 'PATCH', input_schema, headers: { 'X-Key': '{{KEY}}' } };
    const tools = [buildToolAt(`${upstream.url}/things/:id`, more)];
    const authentication = { type: 'QueryParam', token: '{{KEY}}' };
    await done('updateMcpServer', { slug: 'first-server', tools, authentication });
    const call = { slug: 'first-server', tool: 'get' };
    const { output, text } = await done('previewToolCall', { ...call, arguments: { id: 'a/b', note: "it's" } });
    const request = output.request as { method: string; url: string; headers: [string, string][]; body: string };
    assert.deepEqual([request.method, request.body], ['PATCH', '{"note":"it\'s"}']);
    assert.equal(request.url, `${upstream.url}/things/a%2Fb?api_key=********`);
    assert.ok(request.headers.some(([name, value]) => name === 'X-Key' && value === '********'));
    assert.match(String(output.curl), /^curl -X PATCH 'http:.*' -H .*--data-raw '\{"note":"it'\\''s"\}'$/);
    assert.doesNotMatch(text, /hidden-value/);
    const invalid =
      /^The arguments are invalid\n- arguments.note: is missing\n- arguments.id: found an array of 1; allowed: string$/;
    await refused('previewToolCall', { ...call, arguments: { id: [1] } }, invalid);
    await refused('previewToolCall', { slug: 'first-server', tool: 'none' }, /the server has no tool "none"/);
    assert.deepEqual(upstream.take(), []);
  });

  it('makes a real call in callTool, and shows what the agent would see', async () => {
    upstream.on('PATCH /things/7', () => ({ body: { id: 7 } }));
    const { output } = await done('callTool', { slug: 'first-server', tool: 'get', arguments: { id: '7', note: 'x' } });
    assert.equal(output.is_error, false);
    assert.deepEqual(output.content, [{ type: 'text', text: '{"id":7}' }]);
    assert.equal(output.structured_content, undefined);
    const [sent] = upstream.take();
    assert.deepEqual([sent?.url, sent?.headers['x-key']], ['/things/7?api_key=hidden-value', 'hidden-value']);
    assert.equal((await done('callTool', { slug: 'first-server', tool: 'get' })).output.is_error, true);
    await done('createMcpServer', buildServerAt('forwarding', upstream.url, { authentication: { type: 'Bearer' } }));
    const missingToken = /^token: this server forwards the caller's token; provide one/;
    await refused('callTool', { slug: 'forwarding', tool: 'get' }, missingToken);
    await done('callTool', { slug: 'forwarding', tool: 'get', token: 'given-token' });
    assert.equal(upstream.take()[0]?.headers.authorization, 'Bearer given-token');
  });
});

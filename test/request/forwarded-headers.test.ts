import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, getResultText, startOneTool } from '../support/one-tool.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { buildServerConfig, buildToolConfig, checkConfiguration } from '../support/valid-configs.ts';

describe('[conf 10] client headers that a server forwards', () => {
  const oneTool = useFixture(startOneTool);

  const callWithHeaders = async (slug: string, headers: Record<string, string>): Promise<ToolCallResult> => {
    const reply = await oneTool.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} }, headers);
    return reply.body.result as ToolCallResult;
  };

  it('reach the upstream unchanged if they are named and present', async () => {
    const slug = await oneTool.createToolServer(
      {},
      { forward_headers: ['X-Request-Id', 'X-Tenant', 'Accept-Language'] },
    );
    oneTool.upstream.take();
    const sent = { 'x-tenant': 'Säo', 'accept-language': 'fa, en;q=0.5', 'x-other': 'secret' };
    assert.notEqual((await callWithHeaders(slug, sent)).isError, true);
    const headers = oneTool.upstream.take()[0]?.headers ?? {};
    assert.deepEqual(
      [headers['x-tenant'], headers['accept-language'], headers['x-other'], headers['x-request-id']],
      ['Säo', 'fa, en;q=0.5', undefined, undefined],
    );
    await callWithHeaders(slug, { 'x-tenant': 'other' });
    assert.equal(oneTool.upstream.take()[0]?.headers['x-tenant'], 'other');
  });

  it('are rejected when they contain a key of this service or are too long', async () => {
    const slug = await oneTool.createToolServer({}, { forward_headers: ['X-Tenant'] });
    oneTool.upstream.take();
    const key = await oneTool.toolhost.createKey();
    for (const value of [key, `tenant ${encodeURIComponent(`"${key}"`)}`, 'x'.repeat(4097)]) {
      const result = await callWithHeaders(slug, { 'x-tenant': value });
      assert.match(getResultText(result), /^the request header X-Tenant cannot be forwarded; allowed: /);
      assert.ok(!getResultText(result).includes(key));
    }
    assert.deepEqual(oneTool.upstream.take(), []);
  });

  it('must not carry credentials, control the request, or be set in another way', async () => {
    const getProblems = async (forward_headers: unknown, more: Json = {}): Promise<string[]> =>
      (await checkConfiguration(oneTool.toolhost, buildServerConfig({ forward_headers, ...more }))).problems;
    const refused = [
      ...['Authorization', 'X-API-Key', 'x_api_key', 'Cookie', 'X-Auth-Token', 'Proxy-Authorization', 'Mcp-Session-Id'],
      ...['Host', 'Content-Type', 'Content-Length', 'Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'Connection', 'TE'],
      ...['Accept', 'User-Agent', 'X-HTTP-Method-Override', 'X-Original-URL', 'traceparent', 'toolhost-hop', 'a b'],
    ];
    for (const name of refused) {
      const [problem, ...more] = await getProblems([name]);
      assert.match(problem ?? name, /^forward_headers\[0\]: (this header is|found "a b")/);
      assert.deepEqual(more, []);
    }
    for (const name of ['X-Request-Id', 'Idempotency-Key', 'X-Tenant', 'X-Author', 'Accept-Language', 'Prefer'])
      assert.deepEqual(await getProblems([name]), []);
    assert.match(String(await getProblems(['X-A', 'x_a'])), /^forward_headers\[1\]: this header is already in/);
    assert.match(String(await getProblems(['X-A'], { headers: { 'x-a': '1' } })), /^forward_headers\[0\]: .* already/);
    const authentication = { type: 'ApiKey', header: 'X-Service' };
    assert.match(String(await getProblems(['x-service'], { authentication })), /^forward_headers\[0\]: .* already/);
    assert.match(
      String(await getProblems(['X-A'], { tools: [buildToolConfig({ headers: { 'X-a': '1' } })] })),
      /^tools\[0\]\.headers\.X-a: forward_headers already forwards this header/,
    );
    const input_schema = { a: { type: 'string', in: 'header', wire_name: 'X-A' } };
    assert.match(
      String(await getProblems(['X-A'], { tools: [buildToolConfig({ input_schema })] })),
      /^tools\[0\]\.input_schema\.a: forward_headers already forwards this header/,
    );
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { check, configWith, toolWith } from '../support/configurations.ts';
import { callerToken, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json, ToolReply } from '../support/toolhost/toolhost.ts';

describe('[conf 10] client headers that a server forwards', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool();
  });
  after(() => one.stop());

  const called = async (slug: string, headers: Record<string, string>): Promise<ToolReply> => {
    const reply = await one.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} }, headers);
    return reply.body.result as ToolReply;
  };

  it('reach the upstream unchanged if they are named and present', async () => {
    const slug = await one.serve({}, { forward_headers: ['X-Request-Id', 'X-Tenant', 'Accept-Language'] });
    one.upstream.take();
    const sent = { 'x-tenant': 'Säo', 'accept-language': 'fa, en;q=0.5', 'x-other': 'secret' };
    assert.notEqual((await called(slug, sent)).isError, true);
    const headers = one.upstream.take()[0]?.headers ?? {};
    assert.deepEqual(
      [headers['x-tenant'], headers['accept-language'], headers['x-other'], headers['x-request-id']],
      ['Säo', 'fa, en;q=0.5', undefined, undefined],
    );
    await called(slug, { 'x-tenant': 'other' });
    assert.equal(one.upstream.take()[0]?.headers['x-tenant'], 'other');
  });

  it('are rejected when they contain a key of this service or are too long', async () => {
    const slug = await one.serve({}, { forward_headers: ['X-Tenant'] });
    one.upstream.take();
    const key = await one.toolhost.key();
    for (const value of [key, `tenant ${encodeURIComponent(`"${key}"`)}`, 'x'.repeat(4097)]) {
      const result = await called(slug, { 'x-tenant': value });
      assert.match(textOf(result), /^the request header X-Tenant cannot be forwarded; allowed: /);
      assert.ok(!textOf(result).includes(key));
    }
    assert.deepEqual(one.upstream.take(), []);
  });

  it('must not carry credentials, control the request, or be set in another way', async () => {
    const problemsOf = async (forward_headers: unknown, more: Json = {}): Promise<string[]> =>
      (await check(one.toolhost, configWith({ forward_headers, ...more }))).problems;
    const refused = [
      ...['Authorization', 'X-API-Key', 'x_api_key', 'Cookie', 'X-Auth-Token', 'Proxy-Authorization', 'Mcp-Session-Id'],
      ...['Host', 'Content-Type', 'Content-Length', 'Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'Connection', 'TE'],
      ...['Accept', 'User-Agent', 'X-HTTP-Method-Override', 'X-Original-URL', 'traceparent', 'toolhost-hop', 'a b'],
    ];
    for (const name of refused) {
      const [problem, ...more] = await problemsOf([name]);
      assert.match(problem ?? name, /^forward_headers\[0\]: (this header is|found "a b")/);
      assert.deepEqual(more, []);
    }
    for (const name of ['X-Request-Id', 'Idempotency-Key', 'X-Tenant', 'X-Author', 'Accept-Language', 'Prefer'])
      assert.deepEqual(await problemsOf([name]), []);
    assert.match(String(await problemsOf(['X-A', 'x_a'])), /^forward_headers\[1\]: this header is already in/);
    assert.match(String(await problemsOf(['X-A'], { headers: { 'x-a': '1' } })), /^forward_headers\[0\]: .* already/);
    const authentication = { type: 'ApiKey', header: 'X-Service' };
    assert.match(String(await problemsOf(['x-service'], { authentication })), /^forward_headers\[0\]: .* already/);
    assert.match(
      String(await problemsOf(['X-A'], { tools: [toolWith({ headers: { 'X-a': '1' } })] })),
      /^tools\[0\]\.headers\.X-a: forward_headers already forwards this header/,
    );
    const input_schema = { a: { type: 'string', in: 'header', wire_name: 'X-A' } };
    assert.match(
      String(await problemsOf(['X-A'], { tools: [toolWith({ input_schema })] })),
      /^tools\[0\]\.input_schema\.a: forward_headers already forwards this header/,
    );
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { callerToken, errorOf, type OneTool, startOneTool } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('building the upstream request: headers and credentials', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool();
  });
  after(() => one.stop());

  /** The headers of a request as they went over the wire, lower-case names, without those of the connection itself. */
  const headerLines = (rawHeaders: readonly string[]) => {
    const lines: string[] = [];
    for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]?.toLowerCase()}: ${rawHeaders[i + 1]}`);
    return lines.filter((line) => !/^(host|connection|content-length):/.test(line)).sort();
  };
  const userAgent = () => `user-agent: Toolhost/0.1.0 (+${one.toolhost.url})`;
  const usual = () => ['accept: application/json', 'toolhost-hop: 1', userAgent()];
  const linesOf = async (authentication: Json | undefined, tool: Json = {}) => {
    const slug = await one.serve(tool, authentication && { authentication });
    return headerLines((await one.sent(slug)).rawHeaders);
  };
  const urlOf = async (authentication: Json, tool: Json, args: Json = {}) => {
    const slug = await one.serve(tool, { authentication });
    return (await one.sent(slug, args)).url;
  };

  it('[spec 2.2] forwards the token as Bearer, ApiKey and Basic, by default in Authorization', async () => {
    const values = { Bearer: `Bearer ${callerToken}`, ApiKey: callerToken, Basic: `Basic ${callerToken}` };
    for (const [type, value] of Object.entries(values)) {
      assert.deepEqual(await linesOf({ type }), [...usual(), `authorization: ${value}`].sort());
      assert.deepEqual(await linesOf({ type, header: 'X-Api-Key' }), [...usual(), `x-api-key: ${value}`].sort());
    }
    assert.deepEqual(await linesOf(undefined), usual().sort());
  });

  it('[spec 2.2] appends the token to the URL for QueryParam, named api_key unless query_key says otherwise', async () => {
    const input_schema = { q: { type: 'string', optional: true } };
    assert.equal(await urlOf({ type: 'QueryParam' }, {}), `/v1/things?api_key=${callerToken}`);
    const named = { type: 'QueryParam', query_key: 'k.e-y' };
    assert.equal(await urlOf(named, { url: '/a?b=c', input_schema }, { q: 'x' }), `/a?b=c&q=x&k.e-y=${callerToken}`);
    assert.deepEqual(await linesOf({ type: 'QueryParam' }), usual().sort());
    const slug = await one.serve({}, { authentication: { type: 'QueryParam' } });
    one.upstream.take();
    await one.toolhost.callTool(slug, 'a+b/c==', 'run');
    assert.equal(one.upstream.take()[0]?.url, '/v1/things?api_key=a%2Bb%2Fc%3D%3D');
  });

  it('[behaviour request 9] lets the credential replace an argument of its name in the query', async () => {
    const input_schema = { api_key: { type: 'string', optional: true }, q: { type: 'string', optional: true } };
    const args = { api_key: 'mine', q: 'x' };
    assert.equal(await urlOf({ type: 'QueryParam' }, { input_schema }, args), `/v1/things?q=x&api_key=${callerToken}`);
    const listed = { input_schema: { api_key: { type: 'array', optional: true } }, array_format: 'repeat' };
    assert.equal(
      await urlOf({ type: 'QueryParam' }, listed, { api_key: ['a', 'b'] }),
      `/v1/things?api_key=${callerToken}`,
    );
    const slug = await one.serve({ method: 'POST', input_schema }, { authentication: { type: 'QueryParam' } });
    const { url, body } = await one.sent(slug, args);
    assert.deepEqual([url, body.toString()], [`/v1/things?api_key=${callerToken}`, '{"api_key":"mine","q":"x"}']);
  });

  it('[spec 4.3.7] [spec 5.3] sends the token of the caller, which may also come in the header of the credential', async () => {
    const slug = await one.serve({}, { authentication: { type: 'ApiKey', header: 'apikey' } });
    one.upstream.take();
    const params = { name: 'run', arguments: {} };
    await one.toolhost.rpc(slug, undefined, 'tools/call', params, { apikey: 'from-the-header' });
    const both = await one.toolhost.rpc(slug, 'one', 'tools/call', params, { apikey: 'another' });
    assert.equal(both.status, 401);
    assert.deepEqual(
      one.upstream.take().map(({ headers }) => headers.apikey),
      ['from-the-header'],
    );
  });

  it('[behaviour request 8] fills {{NAME}} from the stored secrets, once, and sends nothing while one is missing', async () => {
    const headers = { 'X-Key': 'a {{ONE}}-{{TWO}} z', Accept: 'text/csv', 'user-agent': 'Mine' };
    const slug = await one.serve({ headers });
    const key = await one.toolhost.key();
    const call = () => one.toolhost.callTool(slug, key, 'run');
    const set = (name: string, value: string) =>
      one.toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
    one.upstream.take();
    await set('ONE', '{{TWO}}');
    assert.match(errorOf(await call()), /^the secret TWO has no value/);
    assert.deepEqual(one.upstream.take(), []);
    await set('TWO', '2');
    await call();
    const [request] = one.upstream.take();
    assert.deepEqual(headerLines(request?.rawHeaders ?? []), [
      'accept: text/csv',
      'toolhost-hop: 1',
      'user-agent: Mine',
      'x-key: a {{TWO}}-2 z',
    ]);
  });

  it('[behaviour request 10] sends the stored credential of authentication.token, by authentication', async () => {
    const authentication = { type: 'Bearer', header: 'X-Auth', token: 'literal-credential' };
    const slug = await one.serve({}, { authentication });
    one.upstream.take();
    await one.toolhost.callTool(slug, await one.toolhost.key(), 'run');
    const [request] = one.upstream.take();
    assert.deepEqual(headerLines(request?.rawHeaders ?? []), [...usual(), 'x-auth: Bearer literal-credential'].sort());
  });

  it('[sec A9] forwards nothing else of what the caller sent: exactly one credential is on the wire', async () => {
    const slug = await one.serve({}, { authentication: { type: 'Bearer' } });
    const extra = {
      cookie: 'session=1',
      'x-anything': 'x',
      'proxy-authorization': 'Basic cHJveHk=',
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-host': 'other.example.com',
      forwarded: 'for=10.0.0.1',
      'mcp-session-id': 'abc',
      'x-api-key': 'y',
      'accept-language': 'de',
      'user-agent': 'curl',
      traceparent: 'not-a-trace',
      tracestate: 'a=b',
    };
    one.upstream.take();
    const { status } = await one.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} }, extra);
    assert.equal(status, 200);
    const [request] = one.upstream.take();
    assert.deepEqual(
      headerLines(request?.rawHeaders ?? []),
      [...usual(), `authorization: Bearer ${callerToken}`].sort(),
    );
  });

  it('[behaviour request 8] [mcp 35] forwards a valid traceparent with its tracestate, and drops others', async () => {
    const slug = await one.serve({});
    const traced = async (headers: Record<string, string>, _meta?: Json) => {
      one.upstream.take();
      const params = { name: 'run', arguments: {}, ...(_meta && { _meta }) };
      await one.toolhost.rpc(slug, callerToken, 'tools/call', params, headers);
      const [request] = one.upstream.take();
      return [request?.headers.traceparent, request?.headers.tracestate];
    };
    assert.deepEqual(await traced({ traceparent, tracestate: 'v=1,w=2' }), [traceparent, 'v=1,w=2']);
    assert.deepEqual(await traced({}, { traceparent, tracestate: 'v=3' }), [traceparent, 'v=3']);
    assert.deepEqual(await traced({ traceparent }), [traceparent, undefined]);
    assert.deepEqual(await traced({ tracestate: 'v=1' }), [undefined, undefined]);
    const bad = [
      '00-abc',
      traceparent.replace('0af7', 'XXXX'),
      `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
      `${traceparent}-x`,
    ];
    for (const value of bad)
      assert.deepEqual(await traced({ traceparent: value, tracestate: 'v=1' }), [undefined, undefined]);
    assert.deepEqual(await traced({}, { traceparent: `${traceparent}\r\nX-Evil: 1` }), [undefined, undefined]);
  });
});

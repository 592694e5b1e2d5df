import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import {
  assertRefused,
  buildEchoConfig,
  buildStatelessMessage,
  getRpcError,
  getRpcResult,
  mirrorHeaders,
} from '../support/mcp.ts';
import { type Json, type Reply, statelessMeta } from '../support/toolhost/toolhost.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

const token = 'caller-token';
const base64 = (text: string | Buffer) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

/** Creates a tool that mirrors one argument of each type, one of them nested. */
function createMirroringTool(upstream: string): Json {
  const mirrored = (type: string, header: string) => ({ type, 'x-mcp-header': header });
  const properties = {
    region: mirrored('string', 'Region'),
    count: mirrored('integer', 'Count'),
    dry: mirrored('boolean', 'Dry-Run'),
    place: { type: 'object', properties: { city: mirrored('string', 'City') } },
  };
  const description = 'Has arguments that clients mirror in headers.';
  const input_schema = { type: 'object', properties };
  return { name: 'regional', description, method: 'GET', url: `${upstream}/regional`, input_schema };
}

describe('the validation of headers that mirror the body', async () => {
  const { upstream, toolhost, stop } = await startToolhostWithUpstream();
  const config = buildEchoConfig(upstream.url);
  await toolhost.createServer({ ...config, tools: [...(config.tools as Json[]), createMirroringTool(upstream.url)] });
  beforeEach(() => void upstream.take());
  after(stop);

  /** Sends a stateless request with exactly these mirrored headers. */
  const send = (method: string, params: Json, headers: Record<string, string>) =>
    toolhost.post('echo', buildStatelessMessage(method, params), { token, headers });
  const callOfEcho = JSON.stringify(buildStatelessMessage('tools/call', { name: 'echo' }));
  const assertMismatch = (reply: Reply) => {
    const message = assertRefused(reply, 400, -32020);
    assert.equal(upstream.requests.length, 0);
    return message;
  };

  for (const version of ['2025-11-25', '2099-01-01', '2026-07-28 x', 'garbage']) {
    it(`[mcp 7] [sec F2] returns 400 -32020 for the version header ${version} that differs from _meta`, async () => {
      const headers = { ...mirrorHeaders('tools/list'), 'mcp-protocol-version': version };
      assert.match(assertMismatch(await send('tools/list', {}, headers)), /MCP-Protocol-Version header differs/);
    });
  }

  for (const method of ['tools/call', 'Tools/List', 'tools/list/', 'x']) {
    it(`[mcp 8] [sec F2] returns 400 -32020 for Mcp-Method ${method} on tools/list`, async () => {
      const reply = await send('tools/list', {}, mirrorHeaders(method));
      assert.match(assertMismatch(reply), /Mcp-Method header differs/);
    });
  }

  for (const name of ['note', 'Echo', 'ech', base64('note'), '=?base64?ZWNobw==', 'ZWNobw==', '=?BASE64?ZWNobw==?=']) {
    it(`[mcp 9] [sec F2] returns 400 -32020 for Mcp-Name ${name} on a call of echo`, async () => {
      const reply = await send('tools/call', { name: 'echo' }, mirrorHeaders('tools/call', name));
      assert.match(assertMismatch(reply), /Mcp-Name header differs/);
    });
  }

  for (const encoded of ['ZWNobw', 'ZWNobw=', 'ZWNobx==', 'ZWNo bw==', 'ZWNobw==?', '*', 'ZWNo_w==', '=']) {
    it(`[mcp 9] returns 400 -32020 for Mcp-Name with the invalid Base64 ${encoded}`, async () => {
      const reply = await send('tools/call', { name: 'echo' }, mirrorHeaders('tools/call', `=?base64?${encoded}?=`));
      assert.match(assertMismatch(reply), /not valid base64/);
    });
  }

  for (const [id, header, title] of [
    ['mcp 7', 'mcp-protocol-version', 'MCP-Protocol-Version'],
    ['mcp 8', 'mcp-method', 'Mcp-Method'],
    ['mcp 9', 'mcp-name', 'Mcp-Name'],
  ] as const) {
    it(`[${id}] returns 400 -32020 without ${title}`, async () => {
      const { [header]: _, ...others } = mirrorHeaders('tools/call', 'echo');
      const message = assertMismatch(await send('tools/call', { name: 'echo' }, others));
      assert.match(message, RegExp(`${title} header is missing`));
    });
  }

  it('[mcp 9] ignores white space around a value and accepts its Base64 form', async () => {
    const headers = {
      ...{ 'Content-Type': 'application/json', AUTHORIZATION: `Bearer ${token}`, 'Mcp-Name': '   echo   ' },
      ...{ 'MCP-PROTOCOL-VERSION': ' \t2026-07-28 ', 'mCP-mETHOD': '  tools/call\t' },
    };
    const spaced = await sendRawRequest(`${toolhost.url}/mcp/echo`, { method: 'POST', headers }, callOfEcho);
    assert.equal(spaced.status, 200, spaced.text);
    const encoded = await send('tools/call', { name: 'echo' }, mirrorHeaders('tools/call', base64('echo')));
    assert.equal(getRpcResult(encoded).isError, undefined);
    assert.equal(upstream.requests.length, 2);
  });

  it('[mcp 8] [mcp 9] returns 400 -32020 for a mirrored header that is sent twice', async () => {
    for (const name of ['mcp-protocol-version', 'mcp-method', 'mcp-name']) {
      const once = mirrorHeaders('tools/call', 'echo');
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...once };
      const twice = { ...headers, [name]: [once[name] ?? '', once[name] ?? ''] };
      const reply = await sendRawRequest(`${toolhost.url}/mcp/echo`, { method: 'POST', headers: twice }, callOfEcho);
      assert.equal(reply.status, 400, name);
      assert.equal((JSON.parse(reply.text) as { error: { code: number } }).error.code, -32020, name);
    }
  });

  const callRegional = (args: Json | string, params: Record<string, string>) => {
    const message = buildStatelessMessage('tools/call', {
      name: 'regional',
      arguments: typeof args === 'string' ? 'ARGS' : args,
    });
    const body = typeof args === 'string' ? JSON.stringify(message).replace('"ARGS"', args) : message;
    return toolhost.post('echo', body, { token, headers: { ...mirrorHeaders('tools/call', 'regional'), ...params } });
  };

  const matchingCases: [string, Json | string, Record<string, string>][] = [
    ['a string', { region: 'eu-west' }, { 'mcp-param-region': 'eu-west' }],
    ['a string in Base64', { region: 'Zürich 😀' }, { 'Mcp-Param-Region': base64('Zürich 😀') }],
    ['an empty string', { region: '' }, { 'mcp-param-region': base64('') }],
    ['an integer', { count: 42 }, { 'mcp-param-count': '42' }],
    ['an integer written with a fraction', { count: 42 }, { 'mcp-param-count': '42.0' }],
    ['an integer that the body writes with a fraction', '{"count":42.0}', { 'mcp-param-count': '42' }],
    ['a negative integer', { count: -3 }, { 'mcp-param-count': '-3' }],
    ['an integer beyond 2^53', '{"count":9007199254740993}', { 'mcp-param-count': '9007199254740993' }],
    ['a boolean', { dry: false }, { 'mcp-param-dry-run': 'false' }],
    ['a nested argument', { place: { city: 'Bern' } }, { 'mcp-param-city': 'Bern' }],
    ['no argument and a header', {}, { 'mcp-param-region': 'eu-west' }],
    ['null and a header', { region: null }, { 'mcp-param-region': 'eu-west' }],
  ];
  for (const [description, args, headers] of matchingCases) {
    it(`[mcp 10] accepts the header for ${description}`, async () => {
      const reply = await callRegional(args, headers);
      assert.equal(reply.status, 200, reply.text);
      assert.equal(getRpcResult(reply).resultType, 'complete');
    });
  }

  const mismatchingCases: [string, Json | string, Record<string, string>][] = [
    ['a missing header', { region: 'eu-west' }, {}],
    ['another string', { region: 'eu-west' }, { 'mcp-param-region': 'us-east' }],
    ['another case', { region: 'eu-west' }, { 'mcp-param-region': 'EU-WEST' }],
    ['invalid Base64', { region: 'eu-west' }, { 'mcp-param-region': '=?base64?ZXUtd2VzdA?=' }],
    ['Base64 of invalid UTF-8', { region: '\ufffd' }, { 'mcp-param-region': base64(Buffer.from([0xff])) }],
    ['another integer', { count: 42 }, { 'mcp-param-count': '43' }],
    ['another spelling of an integer', { count: 42 }, { 'mcp-param-count': '0x2a' }],
    ['a fraction', { count: 42 }, { 'mcp-param-count': '42.5' }],
    ['an empty header', { count: 0 }, { 'mcp-param-count': '' }],
    ['the same double', '{"count":9007199254740993}', { 'mcp-param-count': '9007199254740992' }],
    ['another boolean', { dry: false }, { 'mcp-param-dry-run': 'true' }],
    ['a missing header of a nested argument', { place: { city: 'Bern' } }, {}],
    ['one missing header of two', { region: 'eu', dry: true }, { 'mcp-param-region': 'eu' }],
  ];
  for (const [description, args, headers] of mismatchingCases) {
    it(`[mcp 10] returns 400 -32020 for ${description}`, async () => {
      assertMismatch(await callRegional(args, headers));
    });
  }

  it('[mcp 10] requires no mirrored headers in stateful requests', async () => {
    const reply = await toolhost.callTool('echo', token, 'regional', { region: 'eu-west' });
    assert.notEqual(reply.isError, true);
    assert.equal(upstream.requests[0]?.url, '/regional?region=eu-west');
  });

  for (const requested of ['2099-01-01', '2024-11-05', '']) {
    it(`[mcp 11] returns 400 -32022 with the supported versions for version ${JSON.stringify(requested)} in header and body`, async () => {
      const _meta = { ...statelessMeta, 'io.modelcontextprotocol/protocolVersion': requested };
      const headers = { ...mirrorHeaders('tools/list'), 'mcp-protocol-version': requested };
      const reply = await send('tools/list', { _meta }, headers);
      assertRefused(reply, 400, -32022);
      const data = getRpcError(reply).data as { supported: string[]; requested: string };
      assert.equal(data.requested, requested);
      const discovered = getRpcResult(await toolhost.statelessRpc('echo', token, 'server/discover'));
      assert.deepEqual(data.supported, discovered.supportedVersions);
    });
  }

  it('[mcp 7] [mcp 8] reports a different header before a missing one, and both before an unknown method', async () => {
    const unknownVersionMeta = { ...statelessMeta, 'io.modelcontextprotocol/protocolVersion': '2099-01-01' };
    assertRefused(await send('foo/bar', { _meta: unknownVersionMeta }, {}), 400, -32022);
    assertRefused(await send('foo/bar', { _meta: unknownVersionMeta }, { 'mcp-method': 'tools/list' }), 400, -32020);
    assertRefused(await send('foo/bar', {}, { 'mcp-protocol-version': '2026-07-28' }), 400, -32020);
    assertRefused(await send('foo/bar', {}, mirrorHeaders('foo/bar')), 404, -32601);
  });
});

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { formatApiKey } from '@toolhost/credentials/ids';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { startToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { type RawReply, sendRawRequest } from '../support/upstreams/raw-request.ts';

const perMinute = 8;
const json = { 'content-type': 'application/json' };
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
function formatUnknownKey(n: number): string {
  const secret = Uint8Array.from({ length: 32 }, (_, at) => (n * 7 + at * 13) % 256);
  return formatApiKey(new Uint8Array(9).fill(n), secret).key;
}

/** Requests to every entry point that are rejected before the caller is identified. */
const refusedRequests: [method: string, path: string, headers: Record<string, string>, status: number][] = [
  ['POST', '/mcp/absent', json, 404],
  ['POST', '/mcp/keyed', json, 401],
  ['POST', '/mcp/keyed', { ...json, authorization: 'Bearer made-up' }, 401],
  ['POST', '/mcp/keyed', { 'content-type': 'text/plain' }, 415],
  ['GET', '/mcp/keyed', {}, 401],
  ['POST', '/mcp/manage', { ...json, authorization: `Bearer ${formatUnknownKey(1)}` }, 401],
  ['GET', '/api/v1/servers', {}, 401],
  ['GET', '/api/v1/servers', { cookie: `toolhost-session=${'x'.repeat(43)}` }, 401],
  ['GET', '/nowhere', {}, 404],
  ['GET', '/mcp/absent/authorize', {}, 404],
  ['GET', '/.well-known/oauth-protected-resource/mcp/absent', {}, 404],
  ['GET', '/login/callback', {}, 403],
  ['POST', '/mcp/keyed', { ...json, origin: 'https://elsewhere.example' }, 403],
  ['GET', '/mcp//keyed', {}, 400],
];

describe('the limit of rejected requests per address', async () => {
  let clockMs = 1_000_000;
  const { upstream, toolhost, stop } = await startToolhostWithUpstream({
    env: { REFUSALS_PER_MINUTE: String(perMinute), TRUSTED_PROXIES: '1' },
    runtimeOptions: { clock: () => clockMs },
  });
  const key = await toolhost.createKey();
  const stored = { authentication: { type: 'Bearer', token: 'stored' } };
  await toolhost.createServer(buildServerAt('keyed', upstream.url, stored));
  await toolhost.createServer(buildServerAt('forwarding', upstream.url, { authentication: { type: 'Bearer' } }));
  after(stop);

  let addresses = 0;
  const newAddress = () => `198.51.100.${++addresses}`;
  const send = (from: string, method: string, path: string, headers: Record<string, string>, body?: string) =>
    sendRawRequest(toolhost.url + path, { method, headers: { ...headers, 'x-forwarded-for': from } }, body);
  const sendRejected = (from: string) => send(from, 'POST', '/mcp/absent', json, ping);
  const exhaustLimit = async (from: string) => {
    for (let n = 0; n < perMinute; n++) assert.equal((await sendRejected(from)).status, 404);
    assert.equal((await sendRejected(from)).status, 429);
  };
  const getRetryStatus = ({ status, headers }: RawReply) => [status, /^[1-9]\d*$/.test(String(headers['retry-after']))];

  for (const [method, path, headers, status] of refusedRequests) {
    it(`[find A3] counts ${method} ${path} (${status}) and responds with 429 above the limit`, async () => {
      const from = newAddress();
      const body = method === 'POST' ? ping : undefined;
      for (let n = 0; n < perMinute; n++) assert.equal((await send(from, method, path, headers, body)).status, status);
      assert.deepEqual(getRetryStatus(await send(from, method, path, headers, body)), [429, true]);
      assert.deepEqual(getRetryStatus(await sendRejected(from)), [429, true]);
      assert.equal((await sendRejected(newAddress())).status, 404);
    });
  }

  it('[sec A1] charges an unconfirmed bearer token by its length, although its request succeeds', async () => {
    let from = newAddress();
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    const listTools = (bearer: string) =>
      send(from, 'POST', '/mcp/forwarding', { ...json, authorization: `Bearer ${bearer}` }, list);
    for (let n = 0; n < 2 * perMinute; n++) assert.equal((await listTools(`short-${n}`)).status, 200);
    assert.deepEqual(getRetryStatus(await sendRejected(from)), [429, true]);
    from = newAddress();
    for (let n = 0; n < perMinute / 2; n++) assert.equal((await listTools(`${n}`.repeat(8192))).status, 200);
    assert.deepEqual(getRetryStatus(await listTools('long'.repeat(2048))), [429, true]);
    assert.deepEqual(getRetryStatus(await sendRejected(from)), [429, true]);
    assert.equal((await listTools('short')).status, 200);
  });

  it('[find A3] returns the 429 in the error format of each entry point, with the message ID', async () => {
    const from = newAddress();
    await exhaustLimit(from);
    const { text } = await sendRejected(from);
    const { id, error } = JSON.parse(text) as { id: number; error: { code: number; message: string } };
    assert.deepEqual([id, error.code], [1, 429]);
    assert.match(error.message, /too many requests from this address were rejected/);
    const restResponse = await send(from, 'GET', '/api/v1/servers', {});
    assert.match(String(restResponse.headers['content-type']), /^application\/problem\+json/);
    assert.equal((await scrapeMetrics(toolhost.url)).value('toolhost_address_limit_refusals_total') > 0, true);
  });

  it('[find A3] ends with the minute that Retry-After announces', async () => {
    const from = newAddress();
    await exhaustLimit(from);
    clockMs += 59_000;
    const { status, headers } = await sendRejected(from);
    assert.deepEqual([status, headers['retry-after']], [429, '1']);
    clockMs += 1000;
    await exhaustLimit(from);
  });

  it('[find A3] serves valid credentials, even unused ones, from an address over the limit', async () => {
    const from = newAddress();
    await exhaustLimit(from);
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get","arguments":{}}}';
    const fresh = await toolhost.createKey();
    for (const bearer of [key, fresh]) {
      const headers = { ...json, authorization: `Bearer ${bearer}` };
      assert.equal((await send(from, 'POST', '/mcp/keyed', headers, call)).status, 200);
      assert.equal((await send(from, 'GET', '/api/v1/servers', headers)).status, 200);
      assert.equal((await send(from, 'POST', '/mcp/manage', headers, ping)).status, 200);
    }
    const callerTokenHeaders = { ...json, authorization: 'Bearer token-of-the-upstream' };
    assert.equal((await send(from, 'POST', '/mcp/forwarding', callerTokenHeaders, call)).status, 200);
    for (const path of ['/livez', '/readyz', '/schema/server.json', '/api/v1/openapi.json'])
      assert.equal((await send(from, 'GET', path, {})).status, 200, path);
    assert.equal((await sendRejected(from)).status, 429);
  });

  it('[find A3] counts a /64 of IPv6 addresses as one address', async () => {
    await exhaustLimit('2001:db8:1:2::1');
    assert.equal((await sendRejected('2001:db8:1:2:ffff::9')).status, 429);
    assert.equal((await sendRejected('2001:db8:1:3::1')).status, 404);
    await exhaustLimit('203.0.113.9');
    assert.equal((await sendRejected('10.1.2.3, 203.0.113.9')).status, 429);
    assert.equal((await sendRejected('::ffff:203.0.113.9')).status, 429);
  });

  it('[find A3] limits the /56 and the /48 around a /64 to four and sixteen times as many requests', async () => {
    clockMs += 60_000;
    let sent = 0;
    /** Returns how many of these requests, each from its own /64, are within the limit, as a multiple of `perMinute`. */
    const countWithinLimit = async (getNetwork: (n: number) => string, requests: number) => {
      const replies = Array.from({ length: requests }, () => sendRejected(`2001:db8:${getNetwork(++sent)}::1`));
      return (await Promise.all(replies)).filter(({ status }) => status === 404).length / perMinute;
    };
    assert.equal(await countWithinLimit((n) => `77:${(n & 255).toString(16)}`, 5 * perMinute), 4);
    assert.equal(await countWithinLimit((n) => `77:${(256 + n).toString(16)}`, perMinute), 1);
    assert.equal(await countWithinLimit((n) => `77:${((n & 255) << 8).toString(16)}`, 16 * perMinute), 11);
    assert.equal(await countWithinLimit((n) => `78:${n.toString(16)}`, perMinute), 1);
    clockMs += 60_000;
    assert.equal((await sendRejected('2001:db8:77:1::1')).status, 404);
  });

  it('[find A3] recognizes an address in every form that proxies write', async () => {
    await exhaustLimit('203.0.113.20:51000');
    const v4 = [
      ...['203.0.113.20', '203.0.113.20:51001', '"203.0.113.20:51002"', '203.0.113.20:_hidden', '[203.0.113.20]:1'],
      ...['::ffff:203.0.113.20', '::ffff:cb00:7114', '[::ffff:203.0.113.20]:51003', '::ffff:203.0.113.20:51004'],
      '10.1.2.3:1, 198.51.100.200 ,\t203.0.113.20:51005 ',
    ];
    for (const form of v4) assert.equal((await sendRejected(form)).status, 429, form);
    await exhaustLimit('[2001:db8:1:4::1]:51000');
    const v6 = [
      ...['2001:db8:1:4::2', '[2001:DB8:1:4::3]', '[2001:0db8:0001:0004:0:0:0:4]:51001', '"[2001:db8:1:4::5]:51002"'],
      ...['2001:db8:1:4::6%eth0', '[2001:db8:1:4::7%25eth0.1]:51003', '2001:db8:1:4:1:2:3:4:51004'],
    ];
    for (const form of v6) assert.equal((await sendRejected(form)).status, 429, form);
    for (const other of ['203.0.113.21:51000', '[2001:db8:1:5::1]:51000'])
      assert.equal((await sendRejected(other)).status, 404, other);
  });

  it('[find A3] charges invalid forwarded addresses to the proxy that wrote them, not to a new address each', async () => {
    const invalidForms = (n: number) => [
      ...['unknown', `_hidden${n}`, `unknown:${n}`, `"`, `[]:${n}`, `${n}`, `0x${n}.1`, `203.0.113.${300 + n}`],
      ...[`203.0.113.9.${n}:1`, `2001:db8:::::${n}`, `[2001:db8::${n}`, `client-${n}.example:80`, `%${n}`],
      `1.2.3.4,${n}`,
      ...[`203.0.113.${n} 203.0.113.9`, `for=203.0.113.${n}`, `${'9'.repeat(8000)}${n}`, `10.1.2.3, `],
    ];
    const allForms = Array.from({ length: 4 }, (_, n) => invalidForms(n)).flat();
    for (const text of allForms.slice(0, perMinute)) assert.equal((await sendRejected(text)).status, 404, text);
    for (const text of allForms) assert.equal((await sendRejected(text)).status, 429, text);
    const direct = await sendRawRequest(`${toolhost.url}/mcp/absent`, { method: 'POST', headers: json }, ping);
    assert.equal(direct.status, 429);
    assert.equal((await sendRejected(newAddress())).status, 404);
    clockMs += 60_000;
  });

  it('[find A3] does not count errors of an authenticated caller', async () => {
    const from = newAddress();
    const headers = { ...json, authorization: `Bearer ${key}` };
    for (let n = 0; n < 2 * perMinute; n++) {
      assert.equal((await send(from, 'POST', '/mcp/keyed', headers, 'no json')).status, 400);
      assert.equal((await send(from, 'GET', '/api/v1/servers/absent', headers)).status, 404);
    }
    assert.equal((await sendRejected(from)).status, 404);
  });
});

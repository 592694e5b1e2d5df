import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { after, before, describe, it } from 'node:test';
import type { Resolve } from '../../src/outbound/connector.ts';
import { callerToken, errorOf, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { freePort } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Resolver of these tests. */
const resolve: Resolve = (hostname, callback) => {
  if (hostname === 'private.example.com') callback(null, [{ address: '10.0.0.1', family: 4 }]);
  else callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
};

describe('the tool result of an upstream failure', () => {
  let one: OneTool;
  let other: RecordingUpstream;
  let closedPort: number;
  before(async () => {
    other = await startRecordingUpstream();
    closedPort = await freePort();
    one = await startOneTool({ egress: [other.port, closedPort], surroundings: { resolve } });
  });
  after(async () => {
    await one.stop();
    await other.close();
  });

  const message = async (tool: Json, args: Json = {}) => errorOf(await one.call(await one.serve(tool), args));
  /** Calls a tool whose upstream responds with this status and body, and returns the error message. */
  const saidAt = async (status: number, body: unknown, headers: Record<string, string> = {}, server: Json = {}) => {
    one.upstream.on('GET /fails', () => ({ status, body, headers }));
    return errorOf(await one.call(await one.serve({ url: '/fails' }, server)));
  };

  it('[behaviour The tool result] contains the status, reason phrase, and body of a 4xx or 5xx response', async () => {
    assert.equal(await saidAt(404, { error: 'no such row' }), 'HTTP 404 Not Found\n{"error":"no such row"}');
    assert.equal(await saidAt(400, 'plain words'), 'HTTP 400 Bad Request\nplain words');
    assert.equal(
      await saidAt(500, '<h1>Oops</h1>', { 'content-type': 'text/html' }),
      'HTTP 500 Internal Server Error\n<h1>Oops</h1>',
    );
    assert.equal(await saidAt(503, ''), 'HTTP 503 Service Unavailable');
    assert.equal(await saidAt(422, Buffer.from([0xff, 0xfe, 0])), 'HTTP 422 Unprocessable Entity');
    const result = await one.call(
      await one.serve({ url: '/fails', response_transform: 'data', output_schema: { type: 'object' } }),
    );
    assert.deepEqual(Object.keys(result).sort(), ['content', 'isError']);
    assert.equal(textOf(result), 'HTTP 422 Unprocessable Entity');
  });

  it('[behaviour The tool result] contains Retry-After of a 429 or 503 response', async () => {
    assert.equal(
      await saidAt(429, 'slow down', { 'retry-after': '7' }),
      'HTTP 429 Too Many Requests\nRetry-After: 7\nslow down',
    );
    const date = 'Wed, 21 Oct 2026 07:28:00 GMT';
    assert.equal(await saidAt(503, '', { 'retry-after': date }), `HTTP 503 Service Unavailable\nRetry-After: ${date}`);
  });

  it('[behaviour The tool result] truncates an error body at 8 KiB, between characters', async () => {
    const bodyOf = (text: string) => text.slice(text.indexOf('\n') + 1);
    assert.equal(bodyOf(await saidAt(500, 'x'.repeat(8192))), 'x'.repeat(8192));
    assert.equal(bodyOf(await saidAt(500, 'x'.repeat(8193))), `${'x'.repeat(8192)}\n… (8193 bytes in all)`);
    assert.equal(bodyOf(await saidAt(500, `x${'é'.repeat(10_000)}`)), `x${'é'.repeat(4095)}\n… (20001 bytes in all)`);
    assert.equal(bodyOf(await saidAt(500, '☃'.repeat(10_000))), `${'☃'.repeat(2730)}\n… (30000 bytes in all)`);
  });

  it('[sec A4] [find D5] names the target of a redirect without its query instead of following it', async () => {
    const token = 'a'.repeat(41);
    const targets = new Map([
      [`${other.url}/elsewhere?secret-query=1`, '/elsewhere on a host that is specified by its IP address'],
      [`//127.0.0.1:${other.port}/x`, '/x on a host that is specified by its IP address'],
      [`http://me:secret@localhost:${other.port}/a?b=c#d`, `http://localhost:${other.port}/a`],
      ['https://api.example.com/v2/things', 'https://api.example.com/v2/things'],
      ['/v1/things', '/v1/things on the same host'],
      [`/login/${token}/${callerToken}`, '/login/…/[redacted] on the same host'],
      [`https://${callerToken}.example.com/`, 'another URL'],
      ['javascript:alert(1)', 'another URL'],
      ['', 'another URL'],
      ['http://', 'another URL'],
    ]);
    for (const method of ['GET', 'POST']) {
      const slug = await one.serve({ method, url: '/moved' }, { authentication: { type: 'Bearer' } });
      for (const status of [301, 302, 303, 307, 308]) {
        for (const [location, target] of targets) {
          one.upstream.on(`${method} /moved`, () => ({ status, headers: { location }, body: `Moved to ${location}` }));
          one.upstream.take();
          const text = errorOf(await one.call(slug));
          const hint = method === 'GET' && target !== 'another URL' ? ' unless the tool has redirects: "follow"' : '';
          assert.equal(
            text,
            `HTTP ${status} ${STATUS_CODES[status]}: the upstream redirects to ${target}; redirects are not followed${hint}`,
          );
          assert.equal(one.upstream.take().length, 1);
        }
      }
    }
    assert.equal(other.connections, 0);
    one.upstream.on('GET /moved', () => ({ status: 304 }));
    assert.equal(await message({ url: '/moved' }), 'HTTP 304 Not Modified');
  });

  it('[spec 4.3.8] reports that the request timed out after timeout_ms', async () => {
    one.upstream.on('GET /held', () => 'hold');
    assert.equal(await message({ url: '/held', timeout_ms: 1000 }), 'upstream did not answer within 1000 ms');
    const [request] = one.upstream.take().filter(({ url }) => url === '/held');
    assert.equal(await request?.closed, 'aborted');
    one.upstream.on('GET /slow', () => ({ delayMs: 80, body: 'at last' }));
    assert.equal(textOf(await one.call(await one.serve({ url: '/slow', timeout_ms: 5000 }))), 'at last');
  });

  it('[behaviour The tool result] has a specific message for each connection failure, without IP address, path, or query', async () => {
    const query = '/secret-path?q=secret-query';
    const cases: [string, string][] = [
      [`http://127.0.0.1:${closedPort}`, 'the upstream refused the connection'],
      ['https://missing.example.com', 'the host missing.example.com was not found'],
      ['https://private.example.com', 'the upstream host does not resolve to an address that may be called'],
      [
        `https://127.0.0.1:${one.upstream.port}`,
        'no TLS connection to the upstream could be established; check that it uses https on this port',
      ],
    ];
    for (const [origin, sentence] of cases) assert.equal(await message({ url: `${origin}${query}` }), sentence);
  });

  it('[behaviour The tool result] rejects a response over the limit with advice', async () => {
    const hint =
      '. Request less data with filters or paging, or have the server return fewer fields with response_fields';
    const sized = (size: number, headers: Record<string, string> = {}) => {
      one.upstream.on('GET /large', () => ({
        body: 'x'.repeat(size),
        headers: { 'content-type': 'text/plain', ...headers },
      }));
      return { url: '/large', response_limit_bytes: 1000 };
    };
    assert.equal(textOf(await one.call(await one.serve(sized(1000)))).length, 1000);
    assert.equal(await message(sized(1001)), `the response is larger than 1000 bytes${hint}`);
    assert.equal(
      await message(sized(1001, { 'transfer-encoding': 'chunked' })),
      `the response is larger than 1000 bytes${hint}`,
    );
    const limit = 10 * 1024 * 1024;
    const { response_limit_bytes: _, ...unlimited } = sized(limit + 1);
    assert.equal(await message(unlimited), `the response is larger than ${limit} bytes${hint}`);
    assert.equal(
      textOf(await one.call(await one.serve({ ...sized(limit), response_limit_bytes: limit }))).length,
      limit,
    );
  });
});

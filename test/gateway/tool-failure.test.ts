import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { describe, it } from 'node:test';
import { callerToken, getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('the tool result of an upstream failure', () => {
  const otherUpstream = useFixture(startRecordingUpstream);
  const fixture = useFixture(() => startOneTool({ egressPorts: [otherUpstream.port] }));

  const callTool = async (tool: Json, args: Json = {}) => fixture.call(await fixture.createToolServer(tool), args);
  const callForMessage = async (tool: Json) => getErrorText(await callTool(tool));
  /** Calls a tool whose upstream responds with this status and body, and returns the error message. */
  const callForError = (status: number, body: unknown, headers: Record<string, string> = {}) => {
    fixture.upstream.on('GET /fails', () => ({ status, body, headers }));
    return callForMessage({ url: '/fails' });
  };

  it('[behaviour The tool result] contains the status, reason phrase, Retry-After, and body of a 4xx or 5xx response', async () => {
    const retryDate = 'Wed, 21 Oct 2026 07:28:00 GMT';
    const cases: [status: number, body: unknown, message: string, headers?: Record<string, string>][] = [
      [404, { error: 'no such row' }, 'HTTP 404 Not Found\n{"error":"no such row"}'],
      [400, 'plain words', 'HTTP 400 Bad Request\nplain words'],
      [500, '<h1>Oops</h1>', 'HTTP 500 Internal Server Error\n<h1>Oops</h1>', { 'content-type': 'text/html' }],
      [503, '', 'HTTP 503 Service Unavailable'],
      [429, 'slow down', 'HTTP 429 Too Many Requests\nRetry-After: 7\nslow down', { 'retry-after': '7' }],
      [503, '', `HTTP 503 Service Unavailable\nRetry-After: ${retryDate}`, { 'retry-after': retryDate }],
      [422, Buffer.from([0xff, 0xfe, 0]), 'HTTP 422 Unprocessable Entity'],
    ];
    for (const [status, body, message, headers] of cases)
      assert.equal(await callForError(status, body, headers), message);
    const result = await callTool({ url: '/fails', response_transform: 'data', output_schema: { type: 'object' } });
    assert.deepEqual(Object.keys(result).sort(), ['content', 'isError']);
    assert.equal(getResultText(result), 'HTTP 422 Unprocessable Entity');
  });

  it('[behaviour The tool result] truncates an error body at 8 KiB, between characters', async () => {
    for (const [body, expected] of [
      ['x'.repeat(8192), 'x'.repeat(8192)],
      ['x'.repeat(8193), `${'x'.repeat(8192)}\n… (8193 bytes in all)`],
      [`x${'é'.repeat(10_000)}`, `x${'é'.repeat(4095)}\n… (20001 bytes in all)`],
      ['☃'.repeat(10_000), `${'☃'.repeat(2730)}\n… (30000 bytes in all)`],
    ] as const)
      assert.equal(await callForError(500, body), `HTTP 500 Internal Server Error\n${expected}`);
  });

  it('[sec A4] [find D5] names the target of a redirect without its query instead of following it', async () => {
    const token = 'a'.repeat(41);
    const targets = new Map([
      [`${otherUpstream.url}/elsewhere?secret-query=1`, '/elsewhere on a host that is specified by its IP address'],
      [`//127.0.0.1:${otherUpstream.port}/x`, '/x on a host that is specified by its IP address'],
      [`http://me:secret@localhost:${otherUpstream.port}/a?b=c#d`, `http://localhost:${otherUpstream.port}/a`],
      ['https://api.example.com/v2/things', 'https://api.example.com/v2/things'],
      ['/v1/things', '/v1/things on the same host'],
      [`/login/${token}/${callerToken}`, '/login/…/[redacted] on the same host'],
      [`https://${callerToken}.example.com/`, 'another URL'],
      ['javascript:alert(1)', 'another URL'],
      ['', 'another URL'],
      ['http://', 'another URL'],
    ]);
    for (const method of ['GET', 'POST']) {
      const slug = await fixture.createToolServer({ method, url: '/moved' }, { authentication: { type: 'Bearer' } });
      for (const status of [301, 302, 303, 307, 308]) {
        for (const [location, target] of targets) {
          const body = `Moved to ${location}`;
          fixture.upstream.on(`${method} /moved`, () => ({ status, headers: { location }, body }));
          fixture.upstream.take();
          const hint = method === 'GET' && target !== 'another URL' ? ' unless the tool has redirects: "follow"' : '';
          const explanation = `the upstream redirects to ${target}; redirects are not followed${hint}`;
          const text = getErrorText(await fixture.call(slug));
          assert.equal(text, `HTTP ${status} ${STATUS_CODES[status]}: ${explanation}`);
          assert.equal(fixture.upstream.take().length, 1);
        }
      }
    }
    assert.equal(otherUpstream.connections, 0);
    fixture.upstream.on('GET /moved', () => ({ status: 304 }));
    assert.equal(await callForMessage({ url: '/moved' }), 'HTTP 304 Not Modified');
  });

  it('[spec 4.3.8] reports that the request timed out after timeout_ms', async () => {
    fixture.upstream.on('GET /held', () => 'hold');
    assert.equal(await callForMessage({ url: '/held', timeout_ms: 1000 }), 'upstream did not answer within 1000 ms');
    const [request] = fixture.upstream.take().filter(({ url }) => url === '/held');
    assert.equal(await request?.closed, 'aborted');
    fixture.upstream.on('GET /slow', () => ({ delayMs: 80, body: 'at last' }));
    assert.equal(getResultText(await callTool({ url: '/slow', timeout_ms: 5000 })), 'at last');
  });

  it('[behaviour The tool result] rejects a response over the limit with advice', async () => {
    const hint =
      '. Request less data with filters or paging, or have the server return fewer fields with response_fields';
    const toolWithSize = (size: number, headers: Record<string, string> = {}) => {
      const head = { 'content-type': 'text/plain', ...headers };
      fixture.upstream.on('GET /large', () => ({ body: 'x'.repeat(size), headers: head }));
      return { url: '/large', response_limit_bytes: 1000 };
    };
    assert.equal(getResultText(await callTool(toolWithSize(1000))).length, 1000);
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
      const message = await callForMessage(toolWithSize(1001, headers as Record<string, string>));
      assert.equal(message, `the response is larger than 1000 bytes${hint}`);
    }
    const limit = 10 * 1024 * 1024;
    const { response_limit_bytes: _, ...unlimited } = toolWithSize(limit + 1);
    assert.equal(await callForMessage(unlimited), `the response is larger than ${limit} bytes${hint}`);
    const atLimit = await callTool({ ...toolWithSize(limit), response_limit_bytes: limit });
    assert.equal(getResultText(atLimit).length, limit);
  });
});

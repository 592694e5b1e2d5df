import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import { startScriptedUpstream } from '../../../test/support/responses/scripted-upstream.ts';
import { createExchange, createTestClient } from '../../../test/support/upstreams/http-client.ts';
import { useFixtures } from '../../../test/support/use-fixtures.ts';
import type { Exchange } from './exchange.ts';

const ok = 'HTTP/1.1 200 OK\r\n';
const sized = 'content-length: 2\r\n\r\nok';
const chunked = 'transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n';
const noContent = 'HTTP/1.1 204 No Content\r\n';

/** Responses after which the connection carries the next request, although the upstream closes none. */
const reusing: readonly [name: string, bytes: string][] = [
  ['a length', `${ok}${sized}`],
  ['chunks', `${ok}${chunked}`],
  ['trailers', `${ok}transfer-encoding: chunked\r\n\r\n0\r\nx-a: 1\r\n\r\n`],
  ['an empty body', `${ok}content-length: 0\r\n\r\n`],
  ['an error', `HTTP/1.1 500 X\r\n${sized}`],
  ['204', `${noContent}\r\n`],
  ['304', 'HTTP/1.1 304 Not Modified\r\n\r\n'],
  ['interim responses', `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${ok}${sized}`],
  ['connection: keep-alive', `${ok}connection: keep-alive\r\n${sized}`],
  ['keep-alive: timeout=5', `${ok}keep-alive: timeout=5, max=100\r\n${sized}`],
  ['a keep-alive that is not a number', `${ok}keep-alive: timeout=x\r\n${sized}`],
  ['HTTP/1.0 with connection: keep-alive', `HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\n${sized}`],
];

/** Responses after which the connection must not be used. */
const ending: readonly [name: string, bytes: string, request?: Partial<Exchange>][] = [
  ['connection: close', `${ok}connection: close\r\n${sized}`],
  ['connection: Close', `${ok}Connection: Close\r\n${sized}`],
  ['connection: close with chunks', `${ok}connection: close\r\n${chunked}`],
  ['connection: keep-alive, close', `${ok}connection: keep-alive, close\r\n${sized}`],
  ['connection: close, keep-alive', `${ok}connection: close, keep-alive\r\n${sized}`],
  ['two connection headers', `${ok}connection: keep-alive\r\nconnection: close\r\n${sized}`],
  ['HTTP/1.0', `HTTP/1.0 200 OK\r\n${sized}`],
  ['HTTP/1.0 with chunks', `HTTP/1.0 200 OK\r\n${chunked}`],
  ['keep-alive: timeout=1', `${ok}keep-alive: timeout=1\r\n${sized}`],
  ['keep-alive: timeout=0', `${ok}keep-alive: timeout=0\r\n${sized}`],
  ['204 with a length', `${noContent}content-length: 2\r\n\r\n`],
  ['204 with chunked', `${noContent}transfer-encoding: chunked\r\n\r\n`],
  ['304 with a length', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\n\r\n'],
  ['HEAD', `${ok}content-length: 2\r\n\r\n`, { method: 'HEAD' }],
  ['a byte after the end', `${ok}${sized}x`],
  ['a response after the end', `${ok}${sized}${ok}${sized}`],
  ['a request without a credential digest', `${ok}${sized}`, { credentialHash: undefined }],
];

describe('a connection of the HTTP client', () => {
  let aheadMs = 0;
  let workspaces = 0;
  const fixtures = useFixtures();
  const upstream = fixtures.start(startScriptedUpstream);
  const http = fixtures.start(async () =>
    createTestClient(`127.0.0.1:${upstream.port}`, {
      // Runs at a tenth of the real speed, so that a busy machine does not end the keep-alive time.
      clock: () => performance.now() / 10 + aheadMs,
    }),
  );

  /** Returns true if a second request, after a quiet period, uses the connection of the first one. */
  async function isReused(bytes: string, request: Partial<Exchange> = {}): Promise<boolean> {
    const workspaceId = `w-${workspaces++}`;
    const send = async (text: string) => {
      const { path, played } = upstream.prepare({ pieces: [Buffer.from(text)] });
      await http.send(createExchange(upstream.url, { workspaceId, path, ...request }));
      return played;
    };
    const first = await send(bytes);
    aheadMs += 100;
    for (let turn = 0; turn < 3; turn++) await immediate();
    return (await send(`${ok}${sized}`)) === first;
  }

  for (const [name, bytes] of reusing) {
    it(`carries the next request after a response with ${name}`, async () => {
      assert.equal(await isReused(bytes), true);
    });
  }

  for (const [name, bytes, request] of ending) {
    it(`carries no other request after ${name}`, async () => {
      assert.equal(await isReused(bytes, request), false);
    });
  }
});

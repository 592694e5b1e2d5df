import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { MemoryBudget } from '@toolhost/limits/memory-budget';
import {
  type AdversarialUpstream,
  startAdversarialUpstream,
} from '../../../test/support/upstreams/adversarial-upstream.ts';
import { createExchange, createTestClient, getFailure } from '../../../test/support/upstreams/http-client.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../../../test/support/upstreams/recording-upstream.ts';
import type { Exchange } from './exchange.ts';
import type { HttpClient } from './http-client.ts';

describe('the HTTP client', () => {
  let upstream: RecordingUpstream;
  let adversary: AdversarialUpstream;
  let http: HttpClient;
  beforeEach(async () => {
    [upstream, adversary] = await Promise.all([startRecordingUpstream(), startAdversarialUpstream()]);
    const allow = `127.0.0.1:${upstream.port},127.0.0.1:${adversary.port}`;
    http = createTestClient(allow);
  });
  afterEach(() => Promise.all([http.close(), upstream.close(), adversary.close()]));

  const exchange = (origin: string, path: string, more: Partial<Exchange> = {}) =>
    createExchange(origin, { path, timeoutMs: 5000, limitBytes: 100_000, ...more });
  const getReason = async (sent: Promise<unknown>) => (await getFailure(sent)).reason;

  it('[find A7] charges a response by its decoded size', async () => {
    const budget = new MemoryBudget(200_000);
    const reservations = [0, 1, 2].map(() => budget.reserve('w'));
    const send = (at: number, bytes: number) => {
      upstream.on('GET /packed', () => ({
        headers: { 'content-encoding': 'gzip' },
        body: gzipSync(Buffer.alloc(bytes, 'a')),
      }));
      return http.send(exchange(upstream.url, '/packed', { reservation: reservations[at] }));
    };
    assert.equal((await send(0, 90_000)).body.length, 90_000);
    assert.equal(await getReason(send(1, 20_000)), 'no_memory');
    assert.equal((await send(2, 10_000)).body.length, 10_000);
    const reserved = reservations.map(({ bytes }) => bytes);
    assert.deepEqual(reserved, [90_000, 0, 0]);
    for (const reservation of reservations) reservation.release();
    assert.equal(budget.bytes, 0);
  });

  for (const [event, sent, reason] of [
    ['a deadline', { path: '/silence', timeoutMs: 100 }, 'timeout'],
    ['a deadline in the middle of the response', { path: '/drip', timeoutMs: 200, limitBytes: 2e9 }, 'timeout'],
    ['a response that is too large', { path: '/endless' }, 'oversize'],
  ] as const) {
    it(`[sec G1] closes the connection after ${event} and opens no spare one`, async () => {
      const { path, ...more } = sent;
      assert.equal(await getReason(http.send(exchange(adversary.url, path, more))), reason);
      await (await adversary.waitForRequest()).closed;
      assert.equal((await http.send(exchange(adversary.url, '/status/200'))).status, 200);
      assert.equal(adversary.openSockets, 1);
    });
  }

  it('[find C5] returns a response that arrived in time, although the process was too busy to read it by then', async () => {
    upstream.on('GET /busy', () => 'hold');
    // Less than the half second that counts as a pause of the process.
    const timeoutMs = 400;
    const sent = http.send(exchange(upstream.url, '/busy', { timeoutMs }));
    const request = await upstream.waitForRequest();
    request.release({ body: { fine: true } });
    // The response is written now, and the event loop reads it in its next iteration.
    await immediate();
    for (const until = performance.now() + timeoutMs + 50; performance.now() < until; );
    assert.equal((await sent).status, 200);
  });

  it('[sec G3] closes the connection when the call is canceled, and opens no spare one', async () => {
    const disconnected = Promise.withResolvers<void>();
    const registerCancel = (cancel: () => void) => void disconnected.promise.then(cancel);
    const sent = getReason(http.send(exchange(adversary.url, '/silence', { registerCancel })));
    const request = await adversary.waitForRequest();
    disconnected.resolve();
    assert.equal(await sent, 'cancelled');
    await request.closed;
    assert.equal(adversary.openSockets, 0);
    assert.equal((await http.send(exchange(adversary.url, '/status/200'))).status, 200);
    assert.equal(adversary.openSockets, 1);
  });

  it('ends only the exchange whose sender cannot process the head or a chunk of its response', async () => {
    const failing: NonNullable<Exchange['onHead']>[] = [
      () => assert.fail('the head'),
      () => () => assert.fail('the chunk'),
    ];
    for (const onHead of failing) {
      assert.equal(await getReason(http.send(exchange(adversary.url, '/status/200', { onHead }))), 'unreachable');
      assert.equal((await http.send(exchange(adversary.url, '/status/200'))).status, 200);
    }
    assert.equal(http.getLoad().running, 0);
  });

  it('[sec G1] skips interim responses, and rejects an unsolicited upgrade as malformed without its bytes', async () => {
    const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
    const switching = 'HTTP/1.1 101 Switching Protocols\r\n';
    const finalResponses = new Map([
      ['/upgrade', `${switching}upgrade: x\r\nconnection: upgrade\r\n\r\n`],
      ['/bare-upgrade', `${switching}\r\n`],
      ['/continue', `HTTP/1.1 100 Continue\r\n\r\n${ok}`],
      ['/no-status', ok.replace('200 OK', '000 X')],
    ]);
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', (data) => {
        const finalResponse = finalResponses.get(data.toString().split(' ')[1] ?? '') ?? ok;
        socket.end(`HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${finalResponse}`);
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const received: string[] = [];
    const client = createTestClient(`127.0.0.1:${port}`, {
      onMalformed: (_workspaceId, _origin, bytes) => received.push(bytes.toString()),
    });
    for (const path of ['/', '/continue']) {
      const response = await client.send(exchange(`http://127.0.0.1:${port}`, path));
      assert.deepEqual([response.status, response.body.toString()], [200, 'ok']);
    }
    for (const path of ['/upgrade', '/bare-upgrade', '/no-status']) {
      const { reason, message } = await getFailure(client.send(exchange(`http://127.0.0.1:${port}`, path)));
      assert.equal(reason, 'malformed', path);
      assert.match(
        message,
        /^the response of the upstream is not plain HTTP\/1; found (status 101|an invalid status line)/,
      );
    }
    assert.deepEqual([client.getLoad().malformed, received.length], [3, 3]);
    for (const bytes of received) assert.match(bytes, /^HTTP\/1\.1 103 Early Hints\r\n/);
    await client.close();
    server.close();
  });
});

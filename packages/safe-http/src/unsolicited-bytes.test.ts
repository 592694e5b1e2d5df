import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises';
import tls from 'node:tls';
import { eventually } from '../../../test/support/eventually.ts';
import { createSelfSigned } from '../../../test/support/upstreams/certificate.ts';
import { createExchange, createTestClient } from '../../../test/support/upstreams/http-client.ts';
import { type LocalServer, listenLocally } from '../../../test/support/upstreams/local-server.ts';
import { formatRawResponse } from '../../../test/support/upstreams/raw-responses.ts';
import { startTunnelThread, type TunnelThread } from '../../../test/support/upstreams/tunnel-thread.ts';
import type { Exchange } from './exchange.ts';
import type { HttpClient } from './http-client.ts';

const host = 'upstream.example';
const certificate = createSelfSigned(host);
/** Number of quiet periods after which an upstream is trusted, and some more. */
const trustingExchanges = 110;
/** Longer than the quiet period of a connection. */
const afterQuietPeriodMs = 100;

/** Longer than the time for which an upstream that sent unsolicited bytes is not trusted. */
const afterDistrustMs = 11 * 60_000;

const plantedBody = '{"planted":true}';
const planted = formatRawResponse(plantedBody);
/** Tolerated after a response in the same packet, because it cannot be taken for a response. */
const emptyLine = Buffer.from('\r\n');
const plantedPieces = new Map([
  ['a response', planted],
  ['two responses', Buffer.concat([planted, planted])],
  ['a head without its body', planted.subarray(0, planted.length - plantedBody.length)],
  ['the beginning of a status line', planted.subarray(0, 10)],
  ['an interim response', Buffer.from('HTTP/1.1 103 Early Hints\r\n\r\n')],
  ['100 Continue', Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')],
  ['an empty line', emptyLine],
  ['bytes that are not HTTP', Buffer.from(plantedBody)],
]);

/** Way to the upstream. */
type Transport = { name: string; scheme: 'http' | 'https'; hasProxy: boolean };
const transports: readonly Transport[] = [
  { name: 'TCP', scheme: 'http', hasProxy: false },
  { name: 'TLS', scheme: 'https', hasProxy: false },
  { name: 'TLS through the egress proxy', scheme: 'https', hasProxy: true },
];

/** Events in which a request may be sent. Each is in a different phase of the event loop. */
const events: readonly [name: string, wait: () => Promise<unknown>][] = [
  ['a timer', () => delay(1)],
  ['an event of a thread or socket', () => stat('.')],
  ['an immediate', () => immediate()],
];

for (const { name, scheme, hasProxy } of transports) {
  describe(`unsolicited bytes over ${name}`, () => {
    let server: LocalServer;
    let tunnel: TunnelThread | undefined;
    let http: HttpClient;
    let sockets: Socket[];
    let requestCounts: Map<Socket, number>;
    let paths: number;
    /** Bytes at the beginning of each connection. */
    let greeting: Buffer;
    /** Bytes after each response, in the same packet. */
    let trailingBytes: Buffer;
    /** Offset of the HTTP client's clock from the real clock, in ms. */
    let aheadMs: number;
    const trustedAuthorities = tls.getCACertificates('default');

    /** Responds to each request with its path. */
    const respond = (socket: Socket) => {
      sockets.push(socket);
      socket.setNoDelay(true).on('error', () => undefined);
      if (greeting.length > 0) socket.write(greeting);
      socket.on('data', (data) => {
        requestCounts.set(socket, (requestCounts.get(socket) ?? 0) + 1);
        const path = data.toString('latin1').split(' ')[1] ?? '';
        socket.write(Buffer.concat([formatRawResponse(path), trailingBytes]));
      });
    };

    beforeEach(async () => {
      requestCounts = new Map();
      [sockets, paths, greeting, trailingBytes, aheadMs] = [[], 0, Buffer.alloc(0), Buffer.alloc(0), 0];
      tls.setDefaultCACertificates([...trustedAuthorities, certificate.cert]);
      server = await listenLocally(scheme === 'https' ? tls.createServer(certificate, respond) : createServer(respond));
      tunnel = hasProxy ? await startTunnelThread() : undefined;
      http = createTestClient(hasProxy ? '' : `${host}:${server.port}`, {
        // Runs at a tenth of the real speed, so that a busy machine does not end the keep-alive time.
        clock: () => performance.now() / 10 + aheadMs,
        proxy: tunnel && { host: '127.0.0.1', port: tunnel.port, authorization: undefined },
        getResolver: () => (_name, callback) => {
          if (hasProxy) callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), []);
          else callback(null, [{ address: '127.0.0.1', family: 4 }]);
        },
      });
    });
    afterEach(async () => {
      await http.close();
      await Promise.all([server.close(), tunnel?.close()]);
      tls.setDefaultCACertificates(trustedAuthorities);
    });

    /** Sends a request and checks that its response is its own. */
    const send = async (more: Partial<Exchange> = {}) => {
      const path = `/${paths++}`;
      const { body } = await http.send(createExchange(`${scheme}://${host}:${server.port}`, { path, ...more }));
      assert.equal(body.toString(), path);
    };
    const endQuietPeriod = () => {
      aheadMs += afterQuietPeriodMs;
    };
    const makeTrusted = async () => {
      for (let n = 0; n < trustingExchanges; n++) {
        await send();
        endQuietPeriod();
      }
      assert.equal(sockets.length, 1);
    };
    /** Sends bytes on the last connection, and blocks the process until they have arrived. */
    const plant = (bytes: Buffer) => {
      const receivedBytes = tunnel?.receivedBytes ?? 0;
      sockets.at(-1)?.write(bytes);
      tunnel?.waitForBytes(receivedBytes + bytes.length);
    };
    const waitForReport = () => eventually(() => assert.equal(http.getLoad().unsolicited, 1));

    for (const [kind, bytes] of plantedPieces) {
      it(`[find B2] close an idle connection: ${kind}`, async () => {
        await send();
        plant(bytes);
        await waitForReport();
        assert.equal(http.getLoad().connections, 0);
        endQuietPeriod();
        await send();
        assert.equal(sockets.length, 2);
      });

      if (bytes === emptyLine) continue;
      it(`[find B2] close their connection if they arrive with the end of a response: ${kind}`, async () => {
        trailingBytes = bytes;
        await send();
        await waitForReport();
        trailingBytes = Buffer.alloc(0);
        endQuietPeriod();
        await send();
        assert.equal(sockets.length, 2);
      });
    }

    it('[find B2] let a connection carry no second request if they arrive before the first one', async () => {
      greeting = planted;
      for (let n = 0; n < 3; n++) {
        // Nothing distinguishes the first bytes of a new connection from the response to its first request.
        await Promise.allSettled([http.send(createExchange(`${scheme}://${host}:${server.port}`))]);
        await eventually(() => assert.equal(http.getLoad().connections, 0));
        endQuietPeriod();
      }
      assert.deepEqual(
        [...requestCounts.values()].filter((count) => count > 1),
        [],
      );
      assert.ok(sockets.length >= 3);
    });

    it('[find B2] close an idle connection to a trusted upstream', async () => {
      await makeTrusted();
      plant(planted);
      await waitForReport();
      await send();
      assert.equal(sockets.length, 2);
    });

    for (const [event, waitForEvent] of events) {
      it(`[find B2] never reach a request that is sent while ${event} keeps the process busy`, async () => {
        for (const [round, timeoutMs] of [15_000, 900].entries()) {
          await send();
          await waitForEvent();
          endQuietPeriod();
          plant(planted);
          // A request with the short timeout does not wait for the quiet period of a connection.
          await send({ timeoutMs });
          assert.equal(http.getLoad().unsolicited, round + 1);
          aheadMs += afterDistrustMs;
        }
      });

      it(`[find B2] never reach a request to a trusted upstream that is sent while ${event} keeps the process busy`, async () => {
        await makeTrusted();
        await waitForEvent();
        plant(planted);
        await send();
        assert.equal(http.getLoad().unsolicited, 1);
      });
    }

    it('[find B2] never reach a request that waits for the quiet period of their connection', async () => {
      await send();
      const waiting = send();
      assert.equal(http.getLoad().waiting, 1);
      plant(planted);
      await waiting;
      assert.equal(http.getLoad().unsolicited, 1);
    });

    it('close an idle connection without distrust if they are a 408, which servers send before they close it', async () => {
      await send();
      plant(formatRawResponse('{}', {}, '408 Request Timeout'));
      await eventually(() => assert.equal(http.getLoad().connections, 0));
      endQuietPeriod();
      for (let n = 0; n < 2; n++) {
        await send();
        endQuietPeriod();
      }
      assert.deepEqual([sockets.length, http.getLoad().unsolicited], [2, 0]);
    });
  });
}

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import https from 'node:https';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises';
import tls from 'node:tls';
import { hopHeader } from '../../src/domain/http/headers.ts';
import { getTenantId, newWorkspaceId } from '../../src/domain/ids.ts';
import { createFairCache } from '../../src/domain/work/owned-memory.ts';
import { OutboundError } from '../../src/errors.ts';
import { parseEgressAllow } from '../../src/outbound/egress.ts';
import type { Exchange } from '../../src/outbound/exchange.ts';
import { createHttpClient, type HttpClient } from '../../src/outbound/http-client.ts';
import { decodeOnThread } from '../support/decode-here.ts';
import { eventually } from '../support/eventually.ts';
import { selfSigned } from '../support/upstreams/certificate.ts';
import { type EchoingUpstream, echo, said, startEchoingUpstream } from '../support/upstreams/echoing-upstream.ts';
import { startListener } from '../support/upstreams/listener.ts';
import { whole } from '../support/upstreams/raw-answers.ts';

/** Enough calls to make an upstream trusted, and enough time to make an untrusted one usable again. */
const provenCalls = 110;
const elevenMinutes = 11 * 60_000;

const exchangeAt = (origin: string, more: Partial<Exchange> = {}): Exchange => ({
  workspaceId: 'w',
  origin,
  credentialHash: 'one',
  path: '/say',
  method: 'GET',
  headers: [],
  body: undefined,
  timeoutMs: 15_000,
  limitBytes: 100_000,
  ...more,
});

const failureOf = async (sent: Promise<unknown>): Promise<OutboundError> => {
  const error = await sent.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error instanceof OutboundError ? error : assert.fail(String(error));
};

describe('connection limits of the HTTP client', () => {
  let upstream: EchoingUpstream;
  let http: HttpClient;
  let plants: boolean;
  /** Offset of the HTTP client's clock from the real clock, in ms. */
  let aheadMs: number;
  const maxConnections = 20;
  let warned: string[];
  beforeEach(async () => {
    [plants, aheadMs, warned] = [false, 0, []];
    upstream = await startEchoingUpstream({
      answer: (request) => [
        { afterMs: 0, bytes: echo(request) },
        ...(plants ? [{ afterMs: 3, bytes: said('{}') }] : []),
      ],
    });
    http = clientTo(upstream.port);
  });
  afterEach(() => Promise.all([http.close(), upstream.close()]));

  /** Runs at a tenth of the real speed, so that work with a limit of 2 s has 20 s. */
  const clock = () => performance.now() / 10 + aheadMs;

  const clientTo = (port: number) =>
    createHttpClient({
      containsOwnCredential: () => false,
      decodeOnThread,
      createCache: createFairCache,
      getTenant: getTenantId,
      allow: parseEgressAllow(`127.0.0.1:${port}`),
      getResolver: () => () => undefined,
      hopHeader,
      maxConnections,
      clock,
      onUnsolicited: (_workspaceId, origin) => warned.push(origin),
    });
  const send = (more: Partial<Exchange> = {}) => http.send(exchangeAt(upstream.url, more));
  /**
   * Makes calls after which the upstream is trusted. Each sees an idle connection, because the clock is moved ahead.
   */
  const prove = async () => {
    for (let n = 0; n < provenCalls; n += 1) {
      await send();
      aheadMs += 100;
    }
  };

  it('[find B2] never shares a connection between different credentials, but reuses it for the same one', async () => {
    await prove();
    const before = upstream.connections;
    for (let n = 0; n < 30; n += 1) {
      const user = `user-${n % 3}`;
      await send({ credentialHash: user, headers: ['Authorization', user] });
    }
    assert.equal(upstream.connections - before, 3);
    assert.ok(upstream.usersOfConnections.every((users) => users.size === 1));
  });

  it('reuses connections over TLS, where a small request counts as sent before TLS confirms it', async (t) => {
    const certificate = selfSigned('kept.example');
    const trusted = tls.getCACertificates('default');
    tls.setDefaultCACertificates([...trusted, certificate.cert]);
    let connections = 0;
    const server = https.createServer(certificate, (_request, response) => response.end('{}'));
    server.keepAliveTimeout = 0;
    server.on('secureConnection', () => {
      connections += 1;
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const own = createHttpClient({
      containsOwnCredential: () => false,
      decodeOnThread,
      createCache: createFairCache,
      getTenant: getTenantId,
      allow: parseEgressAllow(`kept.example:${port}`),
      getResolver: () => (_name, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]),
      hopHeader,
      clock,
    });
    t.after(async () => {
      tls.setDefaultCACertificates(trusted);
      await own.close();
      server.close();
    });
    for (let n = 0; n < 200; n += 1) {
      await own.send(exchangeAt(`https://kept.example:${port}`, { method: 'POST', body: '{}' }));
      aheadMs += 100;
    }
    assert.equal(connections, 1);
  });

  it('[find B2] gives a request whose response contains tokens its own connection, and closes it afterwards', async () => {
    for (let n = 0; n < 5; n += 1) await send({ credentialHash: undefined });
    assert.equal(upstream.connections, 5);
    await eventually(() => assert.equal(upstream.openSockets, 0));
    assert.deepEqual([http.getLoad().connections, http.getPoolCount()], [0, 0]);
  });

  it('[find B2] uses connections for one request each for 10 minutes after one unsolicited byte', async () => {
    await prove();
    plants = true;
    await send();
    await eventually(() => assert.equal(http.getLoad().unasked, 1));
    plants = false;
    const before = upstream.connections;
    for (let n = 0; n < 5; n += 1) await send({ credentialHash: `user-${n % 2}` });
    assert.equal(upstream.connections - before, 5);
    assert.deepEqual(warned, [upstream.url]);
    aheadMs += elevenMinutes;
    await prove();
    const again = upstream.connections;
    for (let n = 0; n < 5; n += 1) await send();
    assert.equal(upstream.connections, again);
  });

  for (const [during, reach] of [
    ['a timer', () => delay(1)],
    ['an event of a thread or socket', () => stat('.')],
    ['an immediate', () => immediate()],
  ] as const) {
    it(`[find B2] detects bytes that arrived while ${during} kept the process busy, before it reuses the connection`, async (t) => {
      const sockets: Socket[] = [];
      const server = createServer((socket) => {
        sockets.push(socket);
        socket.on('error', () => undefined);
        socket.on('data', () => socket.write(whole('{"own":true}')));
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const own = clientTo(Number(new URL(origin).port));
      t.after(() => own.close().then(() => server.close()));
      // A request with the short timeout does not wait for an idle period of the connection.
      for (const [before, timeoutMs] of [15_000, 500].entries()) {
        await own.send(exchangeAt(origin));
        await reach();
        // The connection is idle while something blocks the process, and the upstream sends an unsolicited response.
        aheadMs += 100;
        sockets.at(-1)?.write(whole('{"planted":true}'));
        const { body } = await own.send(exchangeAt(origin, { timeoutMs }));
        assert.equal(body.toString(), '{"own":true}');
        assert.equal(own.getLoad().unasked, before + 1);
        aheadMs += elevenMinutes;
      }
    });
  }

  it('[find B2] returns an early response to its caller, and does not reuse its connection', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      // The server never reads the rest of the request, so the client cannot send it.
      socket.once('data', () => socket.pause().write(whole('{"early":true}', {}, '413 Content Too Large')));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const own = clientTo(port);
    const body = Buffer.alloc(30 * 1024 * 1024);
    for (const connections of [1, 2]) {
      const answer = await own.send(exchangeAt(`http://127.0.0.1:${port}`, { method: 'POST', body }));
      assert.deepEqual([answer.status, answer.body.toString()], [413, '{"early":true}']);
      assert.deepEqual([sockets.length, own.getLoad().connections], [connections, 0]);
    }
    await own.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it('closes idle connections to stay within its limit', async () => {
    for (let n = 0; n < 5; n += 1) await send({ workspaceId: 'quiet', credentialHash: `quiet-${n}` });
    for (let n = 0; n < 10; n += 1) {
      await Promise.all(Array.from({ length: 9 }, (_, m) => send({ credentialHash: `caller-${n}-${m}` })));
      assert.ok(http.getLoad().connections <= maxConnections);
    }
    // The client closes the workspace's own idle connections first.
    for (let n = 0; n < 5; n += 1) await send({ workspaceId: 'quiet', credentialHash: `quiet-${n}`, timeoutMs: 5000 });
    assert.deepEqual(
      upstream.usersOfConnections.map((users) => users.size),
      upstream.usersOfConnections.map(() => 1),
    );
    assert.equal(upstream.connections, 5 + 90);
  });

  it('[sec F5] leaves connections for other workspaces, however many requests one workspace has', async () => {
    const silent = await startListener();
    const own = clientTo(silent.port);
    const hold = (workspaceId: string, n: number) =>
      failureOf(own.send(exchangeAt(`http://127.0.0.1:${silent.port}`, { workspaceId, credentialHash: String(n) })));
    // Workspaces of one creator count together.
    const greedy = Array.from({ length: 11 }, () => newWorkspaceId(randomBytes, `usr_${'a'.repeat(22)}`));
    const held = greedy.slice(1).map((id, n) => hold(id, n));
    const refused = await hold(greedy[0] as string, 10);
    assert.equal(refused.reason, 'no_connection');
    assert.match(
      refused.message,
      /^the workspaces of this owner have 10 upstream requests in progress, which is their share /,
    );
    held.push(...Array.from({ length: 5 }, (_, n) => hold('other', n)));
    assert.equal((await hold('other', 5)).reason, 'no_connection');
    held.push(hold('third', 0));
    await eventually(() => assert.equal(silent.connections, 16));
    await own.close();
    assert.deepEqual(new Set((await Promise.all(held)).map(({ reason }) => reason)), new Set(['reset']));
    await silent.close();
  });

  it('[find B2] does not send a request whose caller disconnects, or whose client closes, before it is written', async () => {
    for (const end of ['leave', 'close'] as const) {
      await send();
      aheadMs += 100;
      const before = upstream.requests.length;
      let leave = (): void => assert.fail('nothing to cancel');
      const sent = failureOf(
        send({
          registerCancel: (cancel) => {
            leave = cancel;
          },
        }),
      );
      assert.equal(http.getLoad().running, 1);
      if (end === 'leave') leave();
      else await http.close();
      assert.equal((await sent).reason, end === 'leave' ? 'cancelled' : 'reset');
      await eventually(() => assert.equal(upstream.openSockets, 0));
      assert.deepEqual([upstream.requests.length, http.getLoad().connections, http.getLoad().running], [before, 0, 0]);
    }
  });

  it('abandons a connection attempt when its caller disconnects', async () => {
    const gone = Promise.withResolvers<void>();
    const own = createHttpClient({
      containsOwnCredential: () => false,
      decodeOnThread,
      createCache: createFairCache,
      getTenant: getTenantId,
      allow: parseEgressAllow('192.0.2.1:9'),
      getResolver: () => () => undefined,
      hopHeader,
    });
    const registerCancel = (cancel: () => void) => void gone.promise.then(cancel);
    const sent = failureOf(own.send(exchangeAt('http://192.0.2.1:9', { registerCancel })));
    assert.equal(own.getLoad().connections, 1);
    gone.resolve();
    assert.equal((await sent).reason, 'cancelled');
    assert.deepEqual([own.getLoad().connections, own.getLoad().running], [0, 0]);
    await own.close();
  });
});

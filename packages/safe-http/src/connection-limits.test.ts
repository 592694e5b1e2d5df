import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import https from 'node:https';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import tls from 'node:tls';
import { newWorkspaceId } from '@toolhost/credentials/ids';
import { eventually } from '../../../test/support/eventually.ts';
import { createSelfSigned } from '../../../test/support/upstreams/certificate.ts';
import {
  type EchoingUpstream,
  formatEcho,
  formatJsonResponse,
  startEchoingUpstream,
} from '../../../test/support/upstreams/echoing-upstream.ts';
import { createExchange, createTestClient, getFailure } from '../../../test/support/upstreams/http-client.ts';
import { startListener } from '../../../test/support/upstreams/listener.ts';
import { formatRawResponse } from '../../../test/support/upstreams/raw-responses.ts';
import { assertWithinDeadline } from '../../../test/support/within-deadline.ts';
import type { Exchange } from './exchange.ts';
import type { HttpClient } from './http-client.ts';

/** Number of calls after which an upstream is trusted. */
const trustingCalls = 110;
/** Time after which an untrusted upstream may be trusted again. */
const elevenMinutes = 11 * 60_000;

/** Starts a server that responds to the bytes of a connection. */
async function startRawServer(onConnection: (socket: Socket) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { sockets, server, port: (server.address() as AddressInfo).port };
}

describe('connection limits of the HTTP client', () => {
  let upstream: EchoingUpstream;
  let http: HttpClient;
  let sendsUnsolicited: boolean;
  /** Offset of the HTTP client's clock from the real clock, in ms. */
  let aheadMs: number;
  const maxConnections = 20;
  let warnedOrigins: string[];
  beforeEach(async () => {
    [sendsUnsolicited, aheadMs, warnedOrigins] = [false, 0, []];
    upstream = await startEchoingUpstream({
      respond: (request) => [
        { afterMs: 0, bytes: formatEcho(request) },
        ...(sendsUnsolicited ? [{ afterMs: 3, bytes: formatJsonResponse('{}') }] : []),
      ],
    });
    http = createClient(upstream.port);
  });
  afterEach(() => Promise.all([http.close(), upstream.close()]));

  /** Runs at a tenth of the real speed, so that work with a limit of 2 s has 20 s. */
  const clock = () => performance.now() / 10 + aheadMs;

  const createClient = (port: number) =>
    createTestClient(`127.0.0.1:${port}`, {
      maxConnections,
      clock,
      onUnsolicited: (_workspaceId, origin) => warnedOrigins.push(origin),
    });
  const send = (more: Partial<Exchange> = {}) =>
    http.send(createExchange(upstream.url, { credentialHash: 'one', ...more }));
  /**
   * Makes calls after which the upstream is trusted. Each sees an idle connection, because the clock is moved ahead.
   */
  const makeTrusted = async () => {
    for (let n = 0; n < trustingCalls; n += 1) {
      await send();
      aheadMs += 100;
    }
  };

  it('[find B2] never shares a connection between different credentials, but reuses it for the same one', async () => {
    await makeTrusted();
    const before = upstream.connections;
    for (let n = 0; n < 30; n += 1) {
      const userToken = `user-${n % 3}`;
      await send({ credentialHash: userToken, headers: ['Authorization', userToken] });
    }
    assert.equal(upstream.connections - before, 3);
    assert.ok(upstream.connectionUsers.every((users) => users.size === 1));
  });

  it('reuses connections over TLS, where a small request counts as sent before TLS confirms it', async (t) => {
    const certificate = createSelfSigned('kept.example');
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
    const client = createTestClient(`kept.example:${port}`, { clock });
    t.after(async () => {
      tls.setDefaultCACertificates(trusted);
      await client.close();
      server.close();
    });
    for (let n = 0; n < 200; n += 1) {
      await client.send(createExchange(`https://kept.example:${port}`, { method: 'POST', body: '{}' }));
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
    await makeTrusted();
    sendsUnsolicited = true;
    await send();
    await eventually(() => assert.equal(http.getLoad().unsolicited, 1));
    sendsUnsolicited = false;
    const before = upstream.connections;
    for (let n = 0; n < 5; n += 1) await send({ credentialHash: `user-${n % 2}` });
    assert.equal(upstream.connections - before, 5);
    assert.deepEqual(warnedOrigins, [upstream.url]);
    aheadMs += elevenMinutes;
    await makeTrusted();
    const trustedConnections = upstream.connections;
    for (let n = 0; n < 5; n += 1) await send();
    assert.equal(upstream.connections, trustedConnections);
  });

  it('[find B2] returns an early response to its caller, and does not reuse its connection', async () => {
    // The server never reads the rest of the request, so the client cannot send it.
    const response = formatRawResponse('{"early":true}', {}, '413 Content Too Large');
    const respond = (socket: Socket) => socket.once('data', () => socket.pause().write(response));
    const { sockets, server, port } = await startRawServer(respond);
    const client = createClient(port);
    const body = Buffer.alloc(30 * 1024 * 1024);
    for (const connections of [1, 2]) {
      const reply = await client.send(createExchange(`http://127.0.0.1:${port}`, { method: 'POST', body }));
      assert.deepEqual([reply.status, reply.body.toString()], [413, '{"early":true}']);
      assert.deepEqual([sockets.length, client.getLoad().connections], [connections, 0]);
    }
    await client.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it('closes idle connections at its limit, first those of the workspace that needs a new one', async () => {
    for (let n = 0; n < 5; n += 1) await send({ workspaceId: 'quiet', credentialHash: `quiet-${n}` });
    for (let n = 0; n < 10; n += 1) {
      await Promise.all(Array.from({ length: 9 }, (_, m) => send({ credentialHash: `caller-${n}-${m}` })));
      assert.ok(http.getLoad().connections <= maxConnections);
    }
    // The five connections of `quiet` are still open, so these requests open none.
    for (let n = 0; n < 5; n += 1) await send({ workspaceId: 'quiet', credentialHash: `quiet-${n}`, timeoutMs: 5000 });
    assert.ok(upstream.connectionUsers.every((users) => users.size === 1));
    assert.equal(upstream.connections, 5 + 90);
  });

  it('[sec F5] leaves connections for other workspaces, however many requests one workspace has', async () => {
    const listener = await startListener();
    const client = createClient(listener.port);
    const origin = `http://127.0.0.1:${listener.port}`;
    const startRequest = (workspaceId: string, n: number) =>
      getFailure(client.send(createExchange(origin, { workspaceId, credentialHash: String(n) })));
    // Workspaces of one creator count together.
    const workspaceIds = Array.from({ length: 11 }, () => newWorkspaceId(randomBytes, `usr_${'a'.repeat(22)}`));
    const pending = workspaceIds.slice(1).map((id, n) => startRequest(id, n));
    const refused = await startRequest(workspaceIds[0] as string, 10);
    assert.equal(refused.reason, 'no_connection');
    assert.match(
      refused.message,
      /^the workspaces of this owner have 10 upstream requests in progress, .* their share /,
    );
    pending.push(...Array.from({ length: 5 }, (_, n) => startRequest('other', n)));
    assert.equal((await startRequest('other', 5)).reason, 'no_connection');
    pending.push(startRequest('third', 0));
    await eventually(() => assert.equal(listener.connections, 16));
    await client.close();
    assert.deepEqual(new Set((await Promise.all(pending)).map(({ reason }) => reason)), new Set(['reset']));
    await listener.close();
  });

  it('[find B2] does not send a request if its caller disconnects or the HTTP client is closed before it is written', async () => {
    for (const ending of ['leave', 'close'] as const) {
      await send();
      aheadMs += 100;
      const before = upstream.requests.length;
      const disconnected = Promise.withResolvers<void>();
      const registerCancel = (cancel: () => void) => void disconnected.promise.then(cancel);
      const pending = getFailure(send({ registerCancel }));
      assert.equal(http.getLoad().running, 1);
      if (ending === 'leave') disconnected.resolve();
      else await http.close();
      assert.equal((await pending).reason, ending === 'leave' ? 'cancelled' : 'reset');
      await eventually(() => assert.equal(upstream.openSockets, 0));
      assert.deepEqual([upstream.requests.length, http.getLoad().connections, http.getLoad().running], [before, 0, 0]);
    }
  });

  it('abandons a connection attempt when its caller disconnects', async () => {
    const disconnected = Promise.withResolvers<void>();
    const client = createTestClient('192.0.2.1:9', { getResolver: () => () => undefined });
    const registerCancel = (cancel: () => void) => void disconnected.promise.then(cancel);
    const pending = getFailure(client.send(createExchange('http://192.0.2.1:9', { registerCancel })));
    assert.equal(client.getLoad().connections, 1);
    disconnected.resolve();
    assert.equal((await pending).reason, 'cancelled');
    assert.deepEqual([client.getLoad().connections, client.getLoad().running], [0, 0]);
    await client.close();
  });

  it('closes its connection to a proxy that does not respond when its caller disconnects', async () => {
    const arrived = Promise.withResolvers<Socket>();
    const { port, server } = await startRawServer((socket) => arrived.resolve(socket.resume()));
    const disconnected = Promise.withResolvers<void>();
    const client = createTestClient('', {
      proxy: { host: '127.0.0.1', port, authorization: undefined },
      getResolver: () => (_name, callback) => callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), []),
    });
    const registerCancel = (cancel: () => void) => void disconnected.promise.then(cancel);
    const pending = getFailure(client.send(createExchange('https://api.example', { registerCancel })));
    const closed = once(await arrived.promise, 'close');
    disconnected.resolve();
    assert.equal((await pending).reason, 'cancelled');
    await assertWithinDeadline(1000, () => closed);
    await client.close();
    server.close();
  });
});

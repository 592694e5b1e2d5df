import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises';
import { afterRunning, runningNow } from '../../src/domain/work/running-time.ts';
import { createSharedTime } from '../../src/domain/work/shared-time.ts';
import { closeSilentConnections } from '../../src/edge/client-connections.ts';
import { eventually } from '../support/eventually.ts';
import { startOneTool, textOf } from '../support/one-tool.ts';
import { stopFor } from '../support/stop-for.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';

describe('time in which the process was stopped', () => {
  it('[find C5] does not count for clients that read slowly', async () => {
    let hasExpired = false;
    const expired = new Promise<void>((resolve) => {
      afterRunning(1500, () => {
        hasExpired = true;
        resolve();
      });
    });
    stopFor(3000);
    for (let turn = 0; turn < 10; turn++) await immediate();
    assert.equal(hasExpired, false);
    // The timer keeps no process alive, and this test has nothing else to wait for.
    const alive = setInterval(() => undefined, 1000);
    await expired;
    clearInterval(alive);
  });

  it('[find C5] counts a little each time, so that every wait ends where one stop follows the other', async () => {
    let hasExpired = false;
    afterRunning(1000, () => {
      hasExpired = true;
    });
    for (let stops = 0; !hasExpired; stops++) {
      assert.ok(stops < 10, 'the clock stands still');
      stopFor(800);
      await immediate();
    }
  });

  it('[find C5] keeps no silent connection open for ever, however often it happens', async () => {
    const silentMs = 1500;
    const server = createServer();
    closeSilentConnections(server, silentMs);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1').resume();
    let isClosed = false;
    client.once('close', () => {
      isClosed = true;
    });
    // Once in each period of a connection.
    for (let stops = 0; !isClosed; stops++) {
      assert.ok(stops < 10, 'it is still open');
      stopFor(800);
      await delay(silentMs - 800);
    }
    server.close();
  });

  it('[find C5] keeps no unfinished request open for ever, however often it happens', async (t) => {
    const headersMs = 1500;
    const toolhost = await startToolhost({ surroundings: { headersMs } });
    t.after(toolhost.stop);
    const { hostname, port } = new URL(toolhost.url);
    const client = connect(Number(port), hostname).resume();
    client.write('GET / HTTP/1.1\r\nHost: ');
    let isClosed = false;
    client.once('close', () => {
      isClosed = true;
    });
    for (let stops = 0; !isClosed; stops++) {
      assert.ok(stops < 20, 'it is still open');
      stopFor(800);
      await delay(headersMs - 800);
    }
  });

  it('[find A4] is paid for by work of this event loop, whose long turns look the same', async () => {
    const workClock = () => performance.now();
    const options = { atOnce: 1, share: 0.1, mostWaiting: 1, rule: 'work takes a tenth of the time' };
    const shared = createSharedTime({ ...options, clock: runningNow, workClock });
    await shared.run('one', async () => stopFor(3000));
    const next = assert.rejects(
      shared.run('one', async () => undefined),
      /this was not begun within 5 s; work takes/,
    );
    await immediate();
    assert.deepEqual(shared.counts(), { running: 0, waiting: 1, refused: 0 });
    // The timer keeps no process alive.
    const alive = setInterval(() => undefined, 1000);
    await next;
    clearInterval(alive);
  });

  it('[find C5] does not count for silent connections: what came meanwhile is read', async () => {
    const silentMs = 1000;
    const server = createServer((_request, response) => response.end('answered'));
    closeSilentConnections(server, silentMs);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    server.once('connection', () => {
      client.write('GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n');
      stopFor(2 * silentMs);
    });
    assert.match(await text(client), /answered$/);
    server.close();
  });

  it('[find C5] does not count for calls that wait for a slot, nor for those that follow a redirect', async (t) => {
    const patienceMs = 8000;
    const one = await startOneTool({ env: { CONCURRENT_CALLS: '1' }, surroundings: { queueMs: patienceMs } });
    t.after(one.stop);
    const { upstream, toolhost } = one;
    upstream.on('GET /slow', () => 'hold');
    upstream.on('GET /moved', () => 'hold');
    upstream.on('GET /new', () => ({ body: { found: true } }));
    const slow = await one.serve({ url: '/slow' });
    const moved = await one.serve({ url: '/moved', redirects: 'follow', timeout_ms: patienceMs });
    const calls = [one.call(moved), one.call(slow), one.call(slow)];
    await upstream.waitForRequest(2);
    await eventually(async () => {
      const { body } = await toolhost.rest('GET', `/servers/${slow}/limits`);
      assert.equal((body.use as Json).waiting, 1, JSON.stringify(body));
    });
    upstream.on('GET /slow', () => ({ body: { found: true } }));
    for (const request of upstream.requests)
      request.release(
        request.url === '/moved' ? { status: 302, headers: { location: '/new' } } : { body: { found: true } },
      );
    stopFor(patienceMs + 1000);
    for (const result of await Promise.all(calls)) assert.match(textOf(result), /found/);
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import { afterRunning } from '../../src/domain/work/running-time.ts';
import { closeSilentConnections } from '../../src/edge/silent-connections.ts';

/** Does nothing in this process for so long, as if it were stopped. */
function stopFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

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
});

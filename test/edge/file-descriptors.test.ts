import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';

/** Opens a connection that has received its response and stays open. */
async function openIdleConnection(url: string, localAddress: string): Promise<Socket> {
  const { host, port } = new URL(url);
  const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  socket.write(`GET /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  // The server may close the connection before it responds.
  await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  return socket.resume();
}

describe('the client connection limit with a low file descriptor limit', () => {
  it('[find A6] leaves connections for other networks', async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-connections-'));
    t.after(() => rmSync(dataDir, { recursive: true }));
    const program = join(import.meta.dirname, '..', '..', 'bin', 'toolhost');
    const limited = ['-c', 'ulimit -n 400 && exec "$0" serve', program];
    const toolhost = await startChildToolhost({ DATA_DIR: dataDir }, '/bin/sh', limited);
    t.after(() => toolhost.end());
    const sockets: Socket[] = [];
    while (sockets.length < 500) sockets.push(await openIdleConnection(toolhost.url, '127.0.0.2'));
    const otherSocket = await openIdleConnection(toolhost.url, '127.0.0.3');
    assert.equal(!otherSocket.destroyed, true);
    assert.ok(sockets.filter(({ destroyed }) => !destroyed).length <= 200);
    for (const socket of [otherSocket, ...sockets]) socket.destroy();
  });
});

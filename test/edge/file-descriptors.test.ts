import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { openIdleConnection } from '../support/idle-connection.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';

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

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, describe, it } from 'node:test';
import type { Resolve } from '@toolhost/safe-http/connector';
import { readConfig } from '../../apps/server/src/config.ts';
import { getResultText } from '../support/one-tool.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startClientDocuments } from '../support/upstreams/client-documents.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** A proxy that accepts CONNECT with a password. It resolves every name to this machine. */
async function startProxy() {
  const asked: string[] = [];
  const openSockets = new Set<Socket>();
  const server: Server = createServer();
  server.on('connect', (request, client: Socket) => {
    asked.push(request.url ?? '');
    if (
      request.headers['proxy-authorization'] !== `Basic ${btoa('me:secret')}` ||
      request.url?.startsWith('refused.')
    ) {
      client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      return;
    }
    const upstream = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(client).pipe(upstream);
    });
    for (const socket of [client, upstream]) {
      openSockets.add(socket);
      socket.on('error', () => socket.destroy()).on('close', () => openSockets.delete(socket));
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    async close() {
      for (const socket of openSockets) socket.destroy();
      await once(server.close(), 'close');
    },
  };
}

describe('a service with an egress proxy', async () => {
  const [proxy, site, internalUpstream] = await Promise.all([
    startProxy(),
    startClientDocuments(),
    startRecordingUpstream(),
  ]);
  // The name server of this network only knows internal names.
  const internalAddresses = new Map([
    ['inside.example.com', '10.0.0.1'],
    ['ranged.example.com', '127.0.0.1'],
  ]);
  const resolve: Resolve = (name, callback) => {
    const address = internalAddresses.get(name);
    if (address !== undefined) callback(null, [{ address, family: 4 }]);
    else callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), []);
  };
  const toolhost = await startToolhost({
    env: { EGRESS_PROXY: `http://me:secret@127.0.0.1:${proxy.port}` },
    egressPorts: [internalUpstream.port, site.port],
    runtimeOptions: { resolve },
  });
  const key = await toolhost.createKey();
  after(async () => {
    await toolhost?.stop();
    await Promise.all([proxy?.close(), site?.close(), internalUpstream?.close()]);
  });

  async function createAndCall(slug: string, address: string): Promise<string> {
    await toolhost.createServer(buildServerAt(slug, address));
    return getResultText(await toolhost.callTool(slug, key, 'get'));
  }

  it('reaches a host through a tunnel, with TLS to the host itself', async () => {
    site.serve('/thing', { body: { found: true } });
    const address = `https://agents.example.com:${site.port}`;
    assert.match(await createAndCall('outside', address), /found/);
    assert.deepEqual(proxy.asked.splice(0), [`agents.example.com:${site.port}`]);
  });

  it('does not send names of internal addresses, or internal addresses, to the proxy', async () => {
    const text = await createAndCall('name', 'https://inside.example.com');
    assert.match(text, /does not resolve to an address that may be called/);
    assert.deepEqual(proxy.asked.splice(0), []);
  });

  it('reaches exempted addresses directly', async () => {
    internalUpstream.on('*', () => ({ body: { direct: true } }));
    assert.match(await createAndCall('excepted', internalUpstream.url), /direct/);
    site.serve('/ranged', { body: { found: true } });
    await createAndCall('ranged', `https://ranged.example.com:${site.port}`);
    assert.deepEqual(proxy.asked.splice(0), []);
  });

  it('reports a failed proxy connection without the proxy password', async () => {
    const text = await createAndCall('refused', 'https://refused.example.com');
    assert.match(text, /the egress proxy could not connect to refused\.example\.com/);
    assert.doesNotMatch(text, /secret/);
    assert.throws(
      () => readConfig({ EGRESS_PROXY: 'socks5://me:secret@proxy' }, () => ''),
      (error: Error) => /EGRESS_PROXY: allowed: .*CONNECT/.test(error.message) && !error.message.includes('secret'),
    );
  });
});

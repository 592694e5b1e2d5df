import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, describe, it } from 'node:test';
import tls from 'node:tls';
import fc from 'fast-check';
import { createSelfSigned } from '../../../test/support/upstreams/certificate.ts';
import { createExchange, createTestClient } from '../../../test/support/upstreams/http-client.ts';

/** Returns a body that differs from the body of every other path in every 32 bytes. */
function createBody(path: string, length: number): Buffer {
  const body = Buffer.alloc(length);
  for (let at = 0; at < length; at += 32) createHash('sha256').update(`${path} ${at}`).digest().copy(body, at);
  return body;
}

/** Serves `/{number}/{bytes of the body}/{bytes of its first chunk}`. Every third response closes its connection. */
const respond: RequestListener = ({ url = '' }, response) => {
  const [, number, length, first] = url.split('/').map(Number) as [number, number, number, number];
  if (number % 3 === 0) response.setHeader('Connection', 'close');
  const body = createBody(url, length);
  response.write(body.subarray(0, first));
  setImmediate(() => response.end(body.subarray(first)));
};

describe('responses that arrive at the same time', async () => {
  const certificate = createSelfSigned('tls.example');
  const trusted = tls.getCACertificates('default');
  const servers: Server[] = [createServer(respond), createTlsServer(certificate, respond)];
  tls.setDefaultCACertificates([...trusted, certificate.cert]);
  for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening');
  const [plain, secure] = servers.map((server) => (server.address() as AddressInfo).port);
  const origins = [`http://plain.example:${plain}`, `https://tls.example:${secure}`];
  const http = createTestClient(`plain.example:${plain},tls.example:${secure}`);
  after(async () => {
    await http.close();
    for (const server of servers) server.close();
    tls.setDefaultCACertificates(trusted);
  });

  it('[find B2] contain their own bytes, although all sockets read into one buffer (property)', async () => {
    const length = fc.oneof(fc.nat(2000), fc.nat(200_000), fc.constantFrom(65_535, 65_536, 65_537, 1_500_000));
    const requestArbitrary = fc.record({ over: fc.constantFrom(0, 1), length, first: fc.nat(70_000) });
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(requestArbitrary, { minLength: 1, maxLength: 30 }), async (requests) => {
        const mismatches = await Promise.all(
          requests.map(async ({ over, length, first }) => {
            const path = `/${count++}/${length}/${first}`;
            const { body } = await http.send(createExchange(origins[over] as string, { path }));
            return body.equals(createBody(path, length)) ? undefined : path;
          }),
        );
        assert.deepEqual(mismatches.filter(Boolean), []);
      }),
      { numRuns: 15 },
    );
  });
});

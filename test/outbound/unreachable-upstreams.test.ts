import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, describe, it } from 'node:test';
import tls from 'node:tls';
import { getErrorText } from '../support/one-tool.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { type Certificate, createSelfSigned } from '../support/upstreams/certificate.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

async function startTls(certificate: Certificate) {
  const server = tls.createServer(certificate);
  server.on('tlsClientError', () => undefined);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

describe('an unreachable upstream', async () => {
  const certificates = {
    expired: createSelfSigned('expired.example', 2021),
    elsewhere: createSelfSigned('elsewhere.example'),
    unknown: createSelfSigned('unknown.example'),
  };
  const trusted = tls.getCACertificates('default');
  /** The error code of connections to `coded.example`. */
  let nextCode = '';
  tls.setDefaultCACertificates([...trusted, certificates.expired.cert, certificates.elsewhere.cert]);
  const plain = await startRecordingUpstream();
  const servers = await Promise.all(Object.values(certificates).map(startTls));
  const [expired, elsewhere, unknown] = servers.map(({ port }) => port);
  const closed = await findFreePort();
  const noTls = 'could be established; check that it uses https on this port';
  const cases: [scheme: string, host: string, message: (host: string) => string][] = [
    ['http', `closed.example:${closed}`, (host) => `${host} refused the connection`],
    ['http', `missing.example:${closed}`, (host) => `the host ${host} was not found`],
    ['http', `flaky.example:${closed}`, (host) => `the name ${host} could not be resolved; try again in a moment`],
    ['https', `expired.example:${expired}`, (host) => `the TLS certificate of ${host} has expired`],
    ['https', `wrong.example:${elsewhere}`, (host) => `the TLS certificate of ${host} is for another host name`],
    ['https', `unknown.example:${unknown}`, (host) => `the TLS certificate of ${host} is self-signed`],
    ['https', `plain.example:${plain.port}`, (host) => `no TLS connection to ${host} ${noTls}`],
    // The error does not repeat an address, not even one from the configuration.
    ['http', `127.0.0.1:${closed}`, () => 'the upstream refused the connection'],
  ];
  const codes: Record<string, string> = { 'missing.example': 'ENOTFOUND', 'flaky.example': 'EAI_AGAIN' };
  const toolhost = await startToolhost({
    env: { EGRESS_ALLOW: ['coded.example:1', ...cases.map(([, host]) => host)].join(',') },
    runtimeOptions: {
      resolve(hostname, callback) {
        const code = hostname === 'coded.example' ? nextCode : codes[hostname];
        const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
        if (code !== undefined) callback(Object.assign(new Error('127.0.0.1 is not it'), { code }), []);
        else callback(null, hostname === 'closed.example' ? addresses : addresses.slice(0, 1));
      },
    },
  });
  after(async () => {
    tls.setDefaultCACertificates(trusted);
    await Promise.all([toolhost.stop(), plain.close()]);
    for (const { server } of servers) server.close();
  });

  it('[find D5] returns errors that name the host and its fault, without address, path, or query', async () => {
    const tools = cases.map(([scheme, host], n) =>
      buildToolAt(`${scheme}://${host}/secret-path?q=secret-query`, { name: `get_${n}` }),
    );
    await toolhost.createServer({ name: 'Unreachable', slug: 'unreachable', tools });
    for (const [n, [, host, message]] of cases.entries())
      assert.equal(getErrorText(await toolhost.callTool('unreachable', 'some-token', `get_${n}`)), message(host));
    const { body } = await toolhost.rest('GET', '/calls?slug=unreachable');
    const outcomes = (body.calls as { outcome: string }[]).map(({ outcome }) => outcome);
    assert.deepEqual(new Set(outcomes), new Set(['unreachable']));
  });

  it('[find D5] turns any system error into a sentence about the host that repeats none of the error', async () => {
    await toolhost.createServer({ name: 'Coded', slug: 'coded', tools: [buildToolAt('http://coded.example:1/')] });
    const host = 'coded.example:1';
    const sentences = {
      EHOSTUNREACH: `there is no route to ${host}`,
      ETIMEDOUT: `${host} did not accept a connection in time`,
      EMFILE: `this service has no file descriptor or port left for a connection to ${host}; try again in a moment`,
      CERT_NOT_YET_VALID: `the TLS certificate of ${host} is not valid yet`,
      UNABLE_TO_VERIFY_LEAF_SIGNATURE: `the TLS certificate of ${host} is not signed by a trusted authority`,
      CERT_UNHEARD_OF: `the TLS certificate of ${host} is not valid`,
      EUNHEARDOF: `no connection to ${host} could be established`,
    };
    for (const [code, message] of Object.entries(sentences)) {
      nextCode = code;
      assert.equal(getErrorText(await toolhost.callTool('coded', 'some-token', 'get')), message);
    }
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import { startAdversarialUpstream } from '../support/upstreams/adversarial-upstream.ts';
import { streamedRows } from '../support/upstreams/broken-responses.ts';
import { startListener } from '../support/upstreams/listener.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { assertWithinDeadline } from '../support/within-deadline.ts';

const closedError = /^the upstream closed the connection before it responded$/;
const truncatedError = /^the upstream closed the connection before the end of its response$/;
const oversizeError = /^the response is larger than 1048576 bytes\. /;
const timeoutError = /^upstream did not answer within 300 ms$/;
const invalidHttpError =
  /^the response of [\w-]+\.example:\d+ is not plain HTTP\/1; found (bytes that are not HTTP\/1$|an invalid |both )/;

/** Error of a call during which a busy machine paused this process. It says nothing about the upstream. */
const pausedError = /^this service was paused during the call/;

const tooMuchFramingError = /^the upstream responded with too many (header bytes|bytes around its body)$/;

const expectOf = (names: string, timeoutMs: number, expected: RegExp) =>
  names.split(' ').map((name): [string, number, RegExp] => [`/${name}`, timeoutMs, expected]);

/** Each behavior of the adversarial upstream, the tool timeout, and the expected error. */
const cases: [path: string, timeoutMs: number, expected: RegExp][] = [
  ['/silence', 300, timeoutError],
  ['/drip', 300, oversizeError],
  ...expectOf('drip-headers drip-body long-length', 300, timeoutError),
  ...expectOf('reset close', 2000, closedError),
  ...expectOf('reset-in-headers reset-after-interim reset-mid-body close-in-headers half-close', 2000, truncatedError),
  ...expectOf('bomb gzip-bomb deflate-bomb br-bomb zstd-bomb endless', 10_000, oversizeError),
  ...expectOf('garbage two-lengths no-length length-and-chunks bad-chunks http2 banner', 2000, invalidHttpError),
  ['/huge-headers', 2000, tooMuchFramingError],
  ['/endless-headers', 2000, tooMuchFramingError],
  ['/interim-flood', 2000, /^the upstream responded with too many interim responses$/],
  [
    '/upgrade',
    2000,
    /^the response of upgrade\.example:\d+ is not plain HTTP\/1; found status 101, which was not requested$/,
  ],
  ['/bad-gzip', 2000, /^the upstream responded with a body that cannot be decompressed$/],
  ['/status/418', 2000, /^HTTP 418 Chosen\n\{"status":418\}$/],
  ['/status/599', 2000, /^HTTP 599 Chosen\n/],
  [
    '/redirect/302?to=https://target.example/?secret',
    2000,
    /^HTTP 302 Elsewhere: the upstream redirects to https:\/\/target\.example\/; redirects are not followed$/,
  ],
];

/** Starts an upstream that sends a space every 20 ms and never ends its response. */
async function startSlowUpstream() {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const timer = setInterval(() => response.write(' '), 20);
    response.once('close', () => clearInterval(timer));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { server, port: (server.address() as AddressInfo).port, close: () => server.close() };
}

describe('a call to an adversarial upstream', () => {
  const adversarialUpstream = useFixture(startAdversarialUpstream);
  const slowUpstream = useFixture(startSlowUpstream);
  /** Returns an own origin for each behavior, because the circuit breaker would stop most calls to a shared one. */
  const getHost = (path: string) => `${path.split(/[/?]/)[1]}.example:${adversarialUpstream.port}`;
  const otherPaths = ['/short-length', '/bad-json', '/deep-json', '/bad-utf8', '/wrong-type', '/extra-response'];
  const allPaths = [...cases.map(([path]) => path), ...otherPaths, '/keep-alive-close', '/rows', '/tiny-chunks'];
  const fixture = useFixture(() =>
    startOneTool({
      env: { EGRESS_ALLOW: [...allPaths.map(getHost), `127.0.0.1:${slowUpstream.port}`].join() },
      runtimeOptions: { resolve: (_name, response) => response(null, [{ address: '127.0.0.1', family: 4 }]) },
    }),
  );

  const serve = (path: string, timeout_ms: number, overrides = {}) => {
    const tool = { url: `http://${getHost(path)}${path}`, timeout_ms, response_limit_bytes: 1024 * 1024 };
    return fixture.createToolServer({ ...tool, ...overrides });
  };

  for (const [path, timeoutMs, expected] of cases) {
    it(`[sec G1] returns a tool error for ${path} within timeout_ms + 0.5 s and closes the connection`, async () => {
      const slug = await serve(path, timeoutMs, { method: 'POST' });
      let requestCount: number;
      let message: string;
      do {
        requestCount = adversarialUpstream.requests.length;
        message = getErrorText(await assertWithinDeadline(timeoutMs, () => fixture.call(slug)));
      } while (pausedError.test(message));
      assert.match(message, expected);
      assert.equal(adversarialUpstream.requests.length, requestCount + 1);
      if (expected === timeoutError || expected === oversizeError)
        await adversarialUpstream.requests[requestCount]?.closed;
    });
  }

  it('[sec G1] ends at timeout_ms even if the upstream keeps sending bytes', async () => {
    const closed = once(slowUpstream.server, 'request').then(([, response]) => once(response, 'close'));
    const slug = await fixture.createToolServer({ url: `http://127.0.0.1:${slowUpstream.port}/`, timeout_ms: 300 });
    assert.match(getErrorText(await assertWithinDeadline(300, () => fixture.call(slug))), timeoutError);
    await closed;
  });

  it('[sec G1] passes on a body that is not what it claims to be as text', async () => {
    for (const name of ['short-length', 'bad-json', 'deep-json', 'bad-utf8'])
      assert.match(getResultText(await fixture.call(await serve(`/${name}`, 2000))), /^[{["]/, name);
    assert.equal(getResultText(await fixture.call(await serve('/wrong-type', 2000))), '<html>No image.</html>');
  });

  it('[sec G1] ends at timeout_ms if the upstream accepts a connection and never starts TLS', async (t) => {
    const silentListener = await startListener();
    const silent = await startOneTool({ egressPorts: [silentListener.port] });
    t.after(() => Promise.all([silent.stop(), silentListener.close()]));
    const slug = await silent.createToolServer({ url: `https://127.0.0.1:${silentListener.port}/`, timeout_ms: 300 });
    assert.match(getErrorText(await silent.call(slug)), timeoutError);
  });

  for (const [rule, path, expected] of [
    ['returns an unsolicited response of an earlier call', '/extra-response', '{"first":true}'],
    ['fails because a keep-alive connection closed after the previous call', '/keep-alive-close', '{"last":true}'],
  ] as const) {
    it(`[sec G1] never ${rule}`, async () => {
      const slug = await serve(path, 2000);
      for (let i = 0; i < 3; i++) assert.equal(getResultText(await fixture.call(slug)), expected);
    });
  }

  it('[sec G1] reads a long list that arrives row by row, and rejects a flood of single bytes', async () => {
    const rows = await serve('/rows', 10_000, { response_limit_bytes: 10 * 1024 * 1024 });
    assert.equal(JSON.parse(getResultText(await fixture.call(rows))).length, streamedRows);
    const flood = await serve('/tiny-chunks', 10_000);
    assert.match(getErrorText(await fixture.call(flood)), /^the upstream responded with too many body chunks$/);
  });

  it('[sec G1] does not stop the service, even with all behaviors simultaneously', async () => {
    const slugs = await Promise.all(cases.filter(([path]) => !path.includes('bomb')).map(([path]) => serve(path, 500)));
    const results = await Promise.all(slugs.map((slug) => fixture.call(slug)));
    for (const result of results) getErrorText(result);
    assert.equal(getResultText(await fixture.call(await serve('/extra-response', 2000))), '{"first":true}');
    assert.equal((await fetch(`${fixture.toolhost.url}/readyz`)).status, 200);
  });
});

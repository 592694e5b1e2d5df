import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import tls from 'node:tls';
import type { Outcome } from '@toolhost/errors/errors';
import { getRunningTimeMs } from '@toolhost/limits/running-time';
import { countActiveResources, measureReachableBytes } from '../support/collect-garbage.ts';
import { eventually } from '../support/eventually.ts';
import { getErrorText, getResultText } from '../support/one-tool.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { type AdversarialUpstream, startAdversarialUpstream } from '../support/upstreams/adversarial-upstream.ts';
import { createSelfSigned } from '../support/upstreams/certificate.ts';
import { findFreePort, type Listener, startListener } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Call timeout for faults that only the timeout ends. */
const shortTimeoutMs = 400;
/** Call timeout for all other faults. They must never end by timeout, however busy the machine is. */
const longTimeoutMs = 15_000;
const limitBytes = 256 * 1024;
const mebibyte = 1024 * 1024;

type ExpectedResult = { outcome: Outcome; message: RegExp };

const expectResult = (outcome: Outcome, message: RegExp): ExpectedResult => ({ outcome, message });
const timedOut = expectResult('timeout', /^upstream did not answer within 400 ms$/);
const closed = expectResult('unreachable', /^the upstream closed the connection before it responded$/);
const broken = expectResult('malformed', /^the upstream closed the connection before the end of its response$/);
const invalidHttp = expectResult('malformed', /^the response of \S+ is not plain HTTP\/1; found /);
/** A body that is not valid JSON is passed on as text. */
const asText = expectResult('ok', /^[{["]/);
const oversize = expectResult('oversize', /^the response is larger than 262144 bytes\. /);
const malformed = (message: RegExp) => expectResult('malformed', message);
const tooMuchFraming = malformed(/^the upstream responded with too many bytes around its body$/);
const refusedConnection = expectResult('unreachable', /^the upstream refused the connection$/);
const noTls = expectResult(
  'unreachable',
  /^no TLS connection to the upstream could be established; check that it uses https on this port$/,
);
const unsolicited = expectResult('malformed', / is not plain HTTP\/1; found status 101, which was not requested$/);
const selfSignedTls = expectResult('unreachable', /^the TLS certificate of the upstream is self-signed$/);

/** Number of faults that are complete HTTP responses, so that their connections may be reused. */
const completeResponseCount = 9;
const expectOf = (names: string, result: ExpectedResult) =>
  Object.fromEntries(names.split(' ').map((name) => [name, result]));

/** Every fault of the adversarial upstream, with the outcome and the message that a call must report. */
const faults: Record<string, ExpectedResult> = {
  ...expectOf('silence drip-headers drip-body long-length', timedOut),
  ...expectOf('reset close', closed),
  ...expectOf('reset-in-headers reset-after-interim reset-mid-body close-in-headers half-close', broken),
  upgrade: unsolicited,
  ...expectOf('bomb gzip-bomb deflate-bomb br-bomb zstd-bomb endless drip', oversize),
  ...expectOf('huge-headers endless-headers', tooMuchFraming),
  ...expectOf('garbage two-lengths no-length length-and-chunks bad-chunks http2 banner', invalidHttp),
  ...expectOf('short-length bad-json deep-json bad-utf8', asText),
  'wrong-type': expectResult('ok', /^<html>No image\.<\/html>$/),
  'bad-gzip': malformed(/^the upstream responded with a body that cannot be decompressed$/),
  'interim-flood': malformed(/^the upstream responded with too many interim responses$/),
  'tiny-chunks': malformed(/^the upstream responded with too many body chunks$/),
};

describe('concurrent upstream faults of every kind', () => {
  let good: RecordingUpstream;
  let adversarial: AdversarialUpstream;
  let foreignTlsServer: tls.Server;
  let silentListener: Listener;
  let toolhost: TestToolhost;
  let key: string;
  let expectedByTool: Map<string, ExpectedResult & { timeoutMs: number }>;
  /** Names of echo tools: one on the same origin as each fault, and one elsewhere. */
  let echoToolNames: string[];
  let socketsBefore: number;
  before(async () => {
    socketsBefore = countActiveResources('TCPSocketWrap');
    const servers = [startRecordingUpstream(), startAdversarialUpstream(), startListener()] as const;
    [good, adversarial, silentListener] = await Promise.all(servers);
    foreignTlsServer = tls.createServer(createSelfSigned('elsewhere.example'));
    foreignTlsServer.on('tlsClientError', () => undefined);
    await once(foreignTlsServer.listen(0, '127.0.0.1'), 'listening');
    const tlsPort = (foreignTlsServer.address() as AddressInfo).port;
    const closedPort = await findFreePort();
    // Each fault has its own origin. With a shared origin, the circuit breaker would prevent most of them from being
    // tried.
    const getOrigin = (name: string) => `http://${name}.example:${adversarial.port}`;
    const allowed = Object.keys(faults).map((name) => `${name}.example:${adversarial.port}`);
    const ports = [good.port, silentListener.port, tlsPort, closedPort].map((port) => `127.0.0.1:${port}`);
    toolhost = await startToolhost({
      env: { CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0', EGRESS_ALLOW: [...allowed, ...ports].join(',') },
      runtimeOptions: { resolve: (_name, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]) },
    });
    key = await toolhost.createKey();
    const cases: (readonly [name: string, origin: string, path: string, ending: ExpectedResult])[] = [
      ...Object.entries(faults).map(([name, end]) => [name, getOrigin(name), `/${name}`, end] as const),
      ['foreign-certificate', `https://127.0.0.1:${tlsPort}`, '/', selfSignedTls],
      ['plain-on-tls', `https://127.0.0.1:${good.port}`, '/', noTls],
      ['silent-on-tls', `https://127.0.0.1:${silentListener.port}`, '/', timedOut],
      ['absent', `http://127.0.0.1:${closedPort}`, '/', refusedConnection],
    ];
    expectedByTool = new Map();
    const tools: Json[] = [];
    for (const [label, origin, path, end] of cases) {
      for (const method of ['GET', 'POST']) {
        const name = `${method.toLowerCase()}-${label}`;
        const timeoutMs = end === timedOut ? shortTimeoutMs : longTimeoutMs;
        expectedByTool.set(name, { ...end, timeoutMs });
        const url = `${origin}${path}?q=secret-query`;
        tools.push(buildToolAt(url, { name, method, timeout_ms: timeoutMs, response_limit_bytes: limitBytes }));
      }
    }
    const stored = { authentication: { type: 'Bearer', token: 'stored-token' } };
    const input_schema = { text: { type: 'string' } };
    const buildEchoTool = (name: string, url: string) =>
      buildToolAt(url, { name, input_schema, timeout_ms: longTimeoutMs });
    const echoTools = [
      ...Object.keys(faults).map((name) => buildEchoTool(`same-origin-${name}`, `${getOrigin(name)}/say/:text`)),
      buildEchoTool('elsewhere', `${good.url}/say`),
    ];
    echoToolNames = echoTools.map(({ name }) => String(name));
    good.on('GET /say', ({ url }) => ({ body: { said: new URL(url, good.url).searchParams.get('text') } }));
    await toolhost.createServer({ name: 'Faults', slug: 'faults', tools, ...stored });
    await toolhost.createServer({ name: 'Good', slug: 'good', tools: echoTools, ...stored });
  });
  let stopped = false;
  const stop = async () => {
    if (stopped) return;
    stopped = true;
    await toolhost.stop();
    // A stopped service holds no connections, so nothing else needs to close them.
    await eventually(() => assert.equal(adversarial.openSockets, 0));
    await Promise.all([good, adversarial, silentListener].map((server) => server.close()));
    await new Promise((resolve) => foreignTlsServer.close(resolve));
  };
  after(stop);

  /** Returns the duration of a good call in ms, after checking its result. */
  const goodCall = async (name: string, text: string): Promise<number> => {
    const startedAt = getRunningTimeMs();
    assert.equal(getResultText(await toolhost.callTool('good', key, name, { text })), JSON.stringify({ said: text }));
    return getRunningTimeMs() - startedAt;
  };
  const faultyCall = async (name: string) => {
    const startedAt = getRunningTimeMs();
    const result = await toolhost.callTool('faults', key, name);
    const text = expectedByTool.get(name)?.outcome === 'ok' ? getResultText(result) : getErrorText(result);
    return { name, text, durationMs: getRunningTimeMs() - startedAt };
  };

  let rounds = 0;
  /**
   * Calls every fault once with GET and once with POST, among as many good calls over the same connections. Repeats the
   * round if the machine paused the process, because calls then report the pause instead of their faults. `seen` is the
   * number of requests before the round.
   */
  const runRound = async () => {
    for (;;) {
      const seen = adversarial.requests.length;
      const finished = await runRoundOnce();
      if (!finished.faultResults.some(({ text }) => /this service was paused/.test(text))) return { ...finished, seen };
    }
  };
  const runRoundOnce = async () => {
    const number = ++rounds;
    const goodDurations: Promise<number>[] = [];
    const faultResults = [...expectedByTool.keys()].map((name, n) => {
      goodDurations.push(goodCall(echoToolNames[n % echoToolNames.length] ?? '', `${number}-${n}`));
      return faultyCall(name);
    });
    return { goodDurations: await Promise.all(goodDurations), faultResults: await Promise.all(faultResults) };
  };

  it("[sec G1] reports each call's own fault in time, and gives good calls their own results", async () => {
    const { goodDurations, faultResults } = await runRound();
    // Current duration of a call on this machine, without the wait for its upstream.
    const slack = 1000 + Math.max(...goodDurations);
    for (const { name, text, durationMs } of faultResults) {
      const expected = expectedByTool.get(name);
      assert.match(text, expected?.message ?? /^$/, name);
      assert.doesNotMatch(text, /127\.0\.0\.1|secret-query|stored-token/);
      const maxMs = (expected?.timeoutMs ?? 0) + slack;
      assert.ok(durationMs < maxMs, `${name} took ${durationMs} ms; allowed: ${maxMs} ms`);
    }
    const { body } = await toolhost.rest('GET', `/calls?slug=faults&limit=${expectedByTool.size}`);
    const recorded = (body.calls as Json[]).map(({ tool, outcome }) => `${tool}: ${outcome}`);
    const expected = [...expectedByTool].map(([name, { outcome }]) => `${name}: ${outcome}`);
    assert.deepEqual(recorded.toSorted(), expected.toSorted());
  });

  it('[sec G3] sends every request exactly once', async () => {
    const sent = new Map<string, number>();
    const { seen } = await runRound();
    for (const { line } of adversarial.requests.slice(seen)) sent.set(line, (sent.get(line) ?? 0) + 1);
    for (const [name, end] of Object.entries(faults)) {
      const [post = 0, get = 0] = ['POST', 'GET'].map((method) => sent.get(`${method} /${name}?q=secret-query`));
      // On a busy machine, a short timeout may pass before anything is sent.
      const expectedCounts = end === timedOut ? [Math.min(post, 1), Math.min(get, 1)] : [1, 1];
      assert.deepEqual([post, get], expectedCounts, name);
    }
  });

  it('[sec G1] leaks no memory, no timers, and no connections', async () => {
    /** Waits until every connection that a fault has tainted is closed. Reusable connections may stay open. */
    const waitUntilSettled = async () => {
      const maxOpenSockets = expectedByTool.size + 2 * completeResponseCount;
      await eventually(() =>
        assert.ok(adversarial.openSockets <= maxOpenSockets, `${adversarial.openSockets} connections`),
      );
      // This request also waits for call records that are written later.
      await toolhost.rest('GET', '/calls?limit=1');
      good.take();
    };
    await waitUntilSettled();
    const timers = countActiveResources('Timeout');
    const bytes = measureReachableBytes();
    const memory = process.memoryUsage.rss();
    for (let n = 0; n < 4; n += 1) {
      for (const { name, text } of (await runRound()).faultResults)
        assert.match(text, expectedByTool.get(name)?.message ?? /^$/, name);
    }
    await waitUntilSettled();
    await eventually(() => assert.ok(countActiveResources('Timeout') <= timers + 2));
    const grownBytes = measureReachableBytes() - bytes;
    assert.ok(grownBytes < 4 * mebibyte, `memory grew by ${grownBytes} bytes`);
    assert.ok(process.memoryUsage.rss() - memory < 200 * mebibyte);
    assert.equal((await fetch(`${toolhost.url}/readyz`)).status, 200);
    await stop();
    await eventually(() => assert.ok(countActiveResources('TCPSocketWrap') <= socketsBefore));
  });
});

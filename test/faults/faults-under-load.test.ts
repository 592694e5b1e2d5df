import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import tls from 'node:tls';
import { getRunningTimeMs } from '../../src/domain/work/running-time.ts';
import type { Outcome } from '../../src/errors.ts';
import { activeResources, reachableBytes } from '../support/collect-garbage.ts';
import { toolAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { errorOf, textOf } from '../support/one-tool.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { selfSigned } from '../support/upstreams/certificate.ts';
import { type HostileUpstream, startHostileUpstream } from '../support/upstreams/hostile-upstream.ts';
import { freePort, type Listener, startListener } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/** Call timeout for faults that only the timeout ends. */
const shortMs = 400;
/** Call timeout for all other faults. They must never end by timeout, however busy the machine is. */
const longMs = 15_000;
const limitBytes = 256 * 1024;
const mebibyte = 1024 * 1024;

type Ending = { outcome: Outcome; said: RegExp };

const ending = (outcome: Outcome, said: RegExp): Ending => ({ outcome, said });
const late = ending('timeout', /^upstream did not answer within 400 ms$/);
const closed = ending('unreachable', /^the upstream closed the connection before it responded$/);
const broken = ending('malformed', /^the upstream closed the connection before the end of its response$/);
const noHttp = ending('malformed', /^the upstream response is not valid HTTP$/);
/** A body that is not valid JSON is passed on as text. */
const asText = ending('ok', /^[{["]/);
const oversize = ending('oversize', /^the response is larger than 262144 bytes; /);
const malformed = (said: RegExp) => ending('malformed', said);
const tooMuchAround = malformed(/^the upstream responded with too many bytes around its body$/);
const nobody = ending('unreachable', /^the upstream refused the connection$/);
const noTls = ending(
  'unreachable',
  /^no TLS connection to the upstream could be established; check that it uses https on this port$/,
);
const unasked = ending('malformed', /^the upstream responded with 101, which was not requested$/);
const selfSignedTls = ending('unreachable', /^the TLS certificate of the upstream is self-signed$/);

/** Number of faults that are complete HTTP responses, so that their connections may be reused. */
const wholeAnswers = 9;
/** Every fault of the adversarial upstream, with the outcome and the message that a call must report. */
const faults: Record<string, Ending> = {
  silence: late,
  'drip-headers': late,
  'drip-body': late,
  'long-length': late,
  reset: closed,
  close: closed,
  'reset-in-headers': broken,
  'reset-after-interim': broken,
  'reset-mid-body': broken,
  'close-in-headers': broken,
  'half-close': broken,
  upgrade: unasked,
  bomb: oversize,
  'gzip-bomb': oversize,
  'deflate-bomb': oversize,
  'br-bomb': oversize,
  'zstd-bomb': oversize,
  endless: oversize,
  drip: oversize,
  'huge-headers': tooMuchAround,
  'endless-headers': tooMuchAround,
  garbage: noHttp,
  'two-lengths': noHttp,
  'no-length': noHttp,
  'length-and-chunks': noHttp,
  'bad-chunks': noHttp,
  http2: noHttp,
  banner: noHttp,
  'short-length': asText,
  'bad-json': asText,
  'deep-json': asText,
  'wrong-type': ending('ok', /^<html>No image\.<\/html>$/),
  'bad-gzip': malformed(/^the upstream responded with a body that cannot be decompressed$/),
  'bad-utf8': asText,
  'interim-flood': malformed(/^the upstream responded with too many interim responses$/),
  'tiny-chunks': malformed(/^the upstream responded with too many body chunks$/),
};

describe('concurrent upstream faults of every kind', () => {
  let good: RecordingUpstream;
  let hostile: HostileUpstream;
  let foreign: tls.Server;
  let silent: Listener;
  let toolhost: TestToolhost;
  let key: string;
  let endings: Map<string, Ending & { timeoutMs: number }>;
  /** Names of echo tools: one on the same origin as each fault, and one elsewhere. */
  let sayings: string[];
  let socketsBefore: number;
  before(async () => {
    socketsBefore = activeResources('TCPSocketWrap');
    [good, hostile, silent] = await Promise.all([startRecordingUpstream(), startHostileUpstream(), startListener()]);
    foreign = tls.createServer(selfSigned('elsewhere.example'));
    foreign.on('tlsClientError', () => undefined);
    await once(foreign.listen(0, '127.0.0.1'), 'listening');
    const tlsPort = (foreign.address() as AddressInfo).port;
    const closedPort = await freePort();
    // Each fault has its own origin. With a shared origin, the circuit breaker would prevent most of them from being
    // tried.
    const originOf = (name: string) => `http://${name}.example:${hostile.port}`;
    const allowed = Object.keys(faults).map((name) => `${name}.example:${hostile.port}`);
    const ports = [good.port, silent.port, tlsPort, closedPort].map((port) => `127.0.0.1:${port}`);
    toolhost = await startToolhost({
      env: { CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0', EGRESS_ALLOW: [...allowed, ...ports].join(',') },
      surroundings: { resolve: (_name, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]) },
    });
    key = await toolhost.key();
    const cases: (readonly [name: string, origin: string, path: string, ending: Ending])[] = [
      ...Object.entries(faults).map(([name, end]) => [name, originOf(name), `/${name}`, end] as const),
      ['foreign-certificate', `https://127.0.0.1:${tlsPort}`, '/', selfSignedTls],
      ['plain-on-tls', `https://127.0.0.1:${good.port}`, '/', noTls],
      ['silent-on-tls', `https://127.0.0.1:${silent.port}`, '/', late],
      ['nobody', `http://127.0.0.1:${closedPort}`, '/', nobody],
    ];
    endings = new Map();
    const tools: Json[] = [];
    for (const [label, origin, path, end] of cases) {
      for (const method of ['GET', 'POST']) {
        const name = `${method.toLowerCase()}-${label}`;
        const timeoutMs = end === late ? shortMs : longMs;
        endings.set(name, { ...end, timeoutMs });
        const url = `${origin}${path}?q=secret-query`;
        tools.push(toolAt(url, { name, method, timeout_ms: timeoutMs, response_limit_bytes: limitBytes }));
      }
    }
    const stored = { authentication: { type: 'Bearer', token: 'stored-token' } };
    const input_schema = { text: { type: 'string' } };
    const spoken = [
      ...Object.keys(faults).map((name) =>
        toolAt(`${originOf(name)}/say/:text`, { name: `beside-${name}`, input_schema, timeout_ms: longMs }),
      ),
      toolAt(`${good.url}/say`, { name: 'elsewhere', input_schema, timeout_ms: longMs }),
    ];
    sayings = spoken.map(({ name }) => String(name));
    good.on('GET /say', ({ url }) => ({ body: { said: new URL(url, good.url).searchParams.get('text') } }));
    await toolhost.createServer({ name: 'Faults', slug: 'faults', tools, ...stored });
    await toolhost.createServer({ name: 'Good', slug: 'good', tools: spoken, ...stored });
  });
  let stopped = false;
  const stop = async () => {
    if (stopped) return;
    stopped = true;
    await toolhost.stop();
    // A stopped service holds no connections, so nothing else needs to close them.
    await eventually(() => assert.equal(hostile.openSockets, 0));
    await Promise.all([good, hostile, silent].map((server) => server.close()));
    await new Promise((resolve) => foreign.close(resolve));
  };
  after(stop);

  /** Returns the duration of a good call in ms, after checking its result. */
  const goodCall = async (name: string, text: string): Promise<number> => {
    const begun = getRunningTimeMs();
    assert.equal(textOf(await toolhost.callTool('good', key, name, { text })), JSON.stringify({ said: text }));
    return getRunningTimeMs() - begun;
  };
  const faultyCall = async (name: string) => {
    const begun = getRunningTimeMs();
    const result = await toolhost.callTool('faults', key, name);
    const text = endings.get(name)?.outcome === 'ok' ? textOf(result) : errorOf(result);
    return { name, text, took: getRunningTimeMs() - begun };
  };

  let rounds = 0;
  /**
   * Calls every fault once with GET and once with POST, among as many good calls over the same connections. Repeats the
   * round if the machine paused the process, because calls then report the pause instead of their faults. `seen` is the
   * number of requests before the round.
   */
  const round = async () => {
    for (;;) {
      const seen = hostile.requests.length;
      const ended = await roundOnce();
      if (!ended.wrong.some(({ text }) => /this service was paused/.test(text))) return { ...ended, seen };
    }
  };
  const roundOnce = async () => {
    const number = ++rounds;
    const fine: Promise<number>[] = [];
    const wrong = [...endings.keys()].map((name, n) => {
      fine.push(goodCall(sayings[n % sayings.length] ?? '', `${number}-${n}`));
      return faultyCall(name);
    });
    return { fine: await Promise.all(fine), wrong: await Promise.all(wrong) };
  };

  it("[sec G1] reports each call's own fault in time, and gives good calls their own results", async () => {
    const { fine, wrong } = await round();
    // Current duration of a call on this machine, without the wait for its upstream.
    const slack = 1000 + Math.max(...fine);
    for (const { name, text, took } of wrong) {
      const expected = endings.get(name);
      assert.match(text, expected?.said ?? /^$/, name);
      assert.doesNotMatch(text, /127\.0\.0\.1|secret-query|stored-token/);
      assert.ok(
        took < (expected?.timeoutMs ?? 0) + slack,
        `${name} took ${took} ms; allowed: its timeout and ${slack} ms`,
      );
    }
    const { body } = await toolhost.rest('GET', `/calls?slug=faults&limit=${endings.size}`);
    const recorded = (body.calls as Json[]).map(({ tool, outcome }) => `${tool}: ${outcome}`);
    const expected = [...endings].map(([name, { outcome }]) => `${name}: ${outcome}`);
    assert.deepEqual(recorded.toSorted(), expected.toSorted());
  });

  it('[sec G3] sends every request exactly once', async () => {
    const sent = new Map<string, number>();
    const { seen } = await round();
    for (const { line } of hostile.requests.slice(seen)) sent.set(line, (sent.get(line) ?? 0) + 1);
    for (const [name, end] of Object.entries(faults)) {
      const [post = 0, get = 0] = ['POST', 'GET'].map((method) => sent.get(`${method} /${name}?q=secret-query`));
      // On a busy machine, a short timeout may pass before anything is sent.
      const wanted = end === late ? [Math.min(post, 1), Math.min(get, 1)] : [1, 1];
      assert.deepEqual([post, get], wanted, name);
    }
  });

  it('[sec G1] leaks no memory, no timers, and no connections', async () => {
    /** Waits until every connection that a fault has tainted is closed. Reusable connections may stay open. */
    const settled = async () => {
      const kept = endings.size + 2 * wholeAnswers;
      await eventually(() => assert.ok(hostile.openSockets <= kept, `${hostile.openSockets} connections`));
      // This request also waits for call records that are written later.
      await toolhost.rest('GET', '/calls?limit=1');
      good.take();
    };
    await settled();
    const timers = activeResources('Timeout');
    const bytes = reachableBytes();
    const memory = process.memoryUsage.rss();
    for (let n = 0; n < 4; n += 1) {
      for (const { name, text } of (await round()).wrong) assert.match(text, endings.get(name)?.said ?? /^$/, name);
    }
    await settled();
    await eventually(() => assert.ok(activeResources('Timeout') <= timers + 2));
    const grown = reachableBytes() - bytes;
    assert.ok(grown < 4 * mebibyte, `memory grew by ${grown} bytes`);
    assert.ok(process.memoryUsage.rss() - memory < 200 * mebibyte);
    assert.equal((await fetch(`${toolhost.url}/readyz`)).status, 200);
    await stop();
    await eventually(() => assert.ok(activeResources('TCPSocketWrap') <= socketsBefore));
  });
});

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import { freshCall, freshRequest, loadPauseMs } from '../support/fresh-request.ts';
import { createHangingJob, type HangingJob, hangingJobOptions } from '../support/hanging-job.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { startRoundRobin } from '../support/upstreams/round-robin.ts';
import { type Fixtures, useFixtures } from '../support/use-fixtures.ts';

const host = 'tools.example.com';
const headers = { host };

/** Returns the settings that production mode requires. No test signs in. */
function getProductionSettings(dataDir: string, upstream: RecordingUpstream) {
  return {
    BASE_URL: `https://${host}`,
    HOST: '127.0.0.1',
    MASTER_KEY: randomBytes(32).toString('base64'),
    OIDC_ISSUER: 'https://login.example.com',
    OIDC_CLIENT_ID: 'toolhost',
    OIDC_CLIENT_SECRET: 'not-used-here',
    DATA_DIR: dataDir,
    EGRESS_ALLOW: `127.0.0.1:${upstream.port}`,
    CALLS_PER_SECOND: '0',
  };
}

/** Prepares a server `things` and a key for it, and the environment of a service that is then started with them. */
function useThings(fixtures: Fixtures, getMore: () => Record<string, string> = () => ({})) {
  const dataDir = fixtures.folder();
  const upstream = fixtures.start(startRecordingUpstream);
  const prepared = fixtures.start(async () => {
    const env = { ...getProductionSettings(dataDir, upstream), ...getMore() };
    const { MASTER_KEY, DATABASE_URL } = env as Record<string, string>;
    const local = { MASTER_KEY, ...(DATABASE_URL !== undefined && { DATABASE_URL }) } as Record<string, string>;
    const toolhost = await startToolhost({ dataDir, egressPorts: [upstream.port], env: local });
    await toolhost.createServer(buildServerAt('things', upstream.url));
    const key = await toolhost.createKey();
    await toolhost.stop();
    return { env, key };
  });
  return { upstream, prepared };
}

function assertAnswered({ status, text }: { status: number; text: string }): void {
  assert.equal(status, 200, text);
  assert.match(text, /from the upstream/);
}

/** Length of a response that is long enough to be parsed on a worker thread. */
const longResponseBytes = 2 * 1024 * 1024;

/** Makes a call whose client can disconnect. */
async function postCall(url: string, key: string, signal: AbortSignal): Promise<string> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } };
  const sent = request(url, {
    signal,
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  });
  sent.end(JSON.stringify(message));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return text(response);
}

const upstreamResponse = { body: { said: 'from the upstream' } };

describe('graceful shutdown', () => {
  const { upstream, prepared } = useThings(useFixtures());
  let child: ChildToolhost | undefined;
  beforeEach(() => {
    upstream.on('*', () => 'hold');
    upstream.take();
  });
  afterEach(() => child?.end('SIGKILL'));

  /**
   * Runs a scenario that must finish within the five seconds in which a service still listens after its first signal.
   * Repeats it with another service if a busy machine took most of that time.
   */
  const runWithinShutdownPeriod = async (scenario: (stop: (serving: ChildToolhost) => void) => Promise<void>) => {
    for (let attempts = 3; ; attempts -= 1) {
      let signaledAt = Infinity;
      try {
        return await scenario((serving) => {
          serving.signal('SIGTERM');
          signaledAt = performance.now();
        });
      } catch (error) {
        const sinceSignalMs = performance.now() - signaledAt;
        if (attempts === 1 || sinceSignalMs < 4000) throw error;
        await child?.end('SIGKILL');
        upstream.take();
      }
    }
  };

  for (const WORKERS of ['1', '2']) {
    const finishesCalls = async (stop: (serving: ChildToolhost) => void) => {
      const PORT = String(await findFreePort());
      const serving = await startChildToolhost({ ...prepared.env, PORT, WORKERS });
      child = serving;
      const url = `http://127.0.0.1:${PORT}`;
      const call = () => freshCall(url, 'things', { key: prepared.key, headers });
      const early = Array.from({ length: 4 }, call);
      // Without this, a failure before the calls are awaited would be reported as an unhandled rejection.
      for (const one of early) one.catch(() => undefined);
      await upstream.waitForRequest(early.length);
      stop(serving);
      await eventually(async () => {
        const probes = await Promise.all(Array.from({ length: 4 }, () => freshRequest(`${url}/readyz`)));
        for (const { status } of probes) assert.equal(status, 503);
      });
      const late = call();
      await Promise.race([upstream.waitForRequest(early.length + 1), late]);
      for (const request of upstream.requests) request.release(upstreamResponse);
      for (const reply of await Promise.all([...early, late])) assertAnswered(reply);
      assert.equal((await late).headers.connection, 'close');
      assert.equal(await serving.ended(), 0);
    };
    it(`[sec G4] stops being ready immediately, finishes every call, and exits with 0 (${WORKERS} process(es))`, () =>
      runWithinShutdownPeriod(finishesCalls));
  }

  it('exits immediately with code 1 after a second signal', () =>
    runWithinShutdownPeriod(async (stop) => {
      const serving = await startChildToolhost({ ...prepared.env, PORT: String(await findFreePort()), WORKERS: '2' });
      child = serving;
      stop(serving);
      await eventually(() => assert.match(serving.output(), /running calls finish first/));
      assert.equal(await serving.end('SIGTERM'), 1);
    }));
});

describe('graceful shutdown while a thread runs native code that cannot be interrupted', () => {
  const { upstream, prepared } = useThings(useFixtures(), () => ({ NODE_OPTIONS: hangingJobOptions }));
  let child: ChildToolhost | undefined;
  let job: HangingJob;
  before(() => {
    const contentType = { 'content-type': 'application/json' };
    upstream.on('*', () => ({ headers: contentType, body: job.body(longResponseBytes) }));
  });
  afterEach(async () => {
    await child?.end('SIGKILL');
    await job.release();
  });

  for (const WORKERS of ['1', '2'])
    it(`[sec G4] exits with 0 when the call on that thread was canceled (${WORKERS} process(es))`, async () => {
      job = createHangingJob();
      const PORT = String(await findFreePort());
      const serving = await startChildToolhost({ ...prepared.env, PORT, WORKERS });
      child = serving;
      const disconnect = new AbortController();
      const call = postCall(`http://127.0.0.1:${PORT}/mcp/things`, prepared.key, disconnect.signal);
      await job.waitUntilHanging();
      disconnect.abort();
      await assert.rejects(call);
      assert.equal(await serving.end(), 0);
      assert.match(serving.output(), /without waiting for threads/);
    });
});

describe('two replicas that are restarted one after the other under load', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const { upstream, prepared } = useThings(fixtures, () => database.env);

  it('[sec G4] complete every call', async () => {
    upstream.on('*', () => ({ ...upstreamResponse, delayMs: 20 }));
    const proxy = await startRoundRobin();
    const startReplica = async () => {
      const PORT = String(await findFreePort());
      const child = await startChildToolhost({ ...prepared.env, PORT });
      const url = `http://127.0.0.1:${PORT}`;
      proxy.add(url);
      await proxy.waitForReadiness(url, true);
      return { child, url };
    };
    const first = await Promise.all([startReplica(), startReplica()]);
    const started = [...first];
    let over = false;
    let calls = 0;
    const callOn = async () => {
      while (!over) {
        assertAnswered(await freshCall(proxy.url, 'things', { key: prepared.key, headers }));
        calls += 1;
        await delay(loadPauseMs);
      }
    };
    const load = Promise.all(Array.from({ length: 8 }, callOn));
    try {
      for (const { child, url } of first) {
        started.push(await startReplica());
        const before = calls;
        assert.equal(await child.end(), 0);
        await proxy.remove(url);
        assert.ok(calls > before);
      }
    } finally {
      over = true;
      await Promise.allSettled([load]);
      await Promise.all(started.map(({ child }) => child.end('SIGKILL')));
      await proxy.close();
    }
    await load;
  });
});

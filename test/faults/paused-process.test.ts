import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { defaultRuntimeOptions } from '../../apps/server/src/process/start.ts';
import { eventually } from '../support/eventually.ts';
import { freshCall, retryUntilServed } from '../support/fresh-request.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Tool timeout. All calls must reach the upstream within this time, before the process is paused. */
const timeoutMs = 10_000;
const shortTimeoutMs = 3000;
/** Time by which the pause exceeds the tool timeout, which this test is about. */
const extraPauseMs = 1500;

describe('a process that is paused and resumed', () => {
  const fixtures = useFixtures();
  const dataDir = fixtures.folder();
  const upstream = fixtures.start(startRecordingUpstream);
  /** An upstream that never responds, and its connections once they have carried a request. */
  let silentUpstream: Server;
  const silentSockets: Socket[] = [];
  let key: string;
  let child: ChildToolhost;
  before(async () => {
    silentUpstream = createServer((socket) =>
      socket.on('error', () => undefined).once('data', () => silentSockets.push(socket)),
    );
    await once(silentUpstream.listen(0, '127.0.0.1'), 'listening');
    const silentPort = (silentUpstream.address() as AddressInfo).port;
    const env = { MASTER_KEY: randomBytes(32).toString('base64') };
    const toolhost = await startToolhost({ dataDir, env, egressPorts: [upstream.port, silentPort] });
    key = await toolhost.createKey();
    const tools = [
      buildToolAt(`${upstream.url}/things`, { timeout_ms: timeoutMs }),
      buildToolAt(`${upstream.url}/things`, { name: 'brief', timeout_ms: shortTimeoutMs }),
      buildToolAt(`http://127.0.0.1:${silentPort}/`, { name: 'post', method: 'POST', timeout_ms: timeoutMs }),
    ];
    await toolhost.createServer(buildServerAt('things', upstream.url, { authentication: { type: 'Bearer' }, tools }));
    await toolhost.stop();
    const EGRESS_ALLOW = [upstream.port, silentPort].map((port) => `127.0.0.1:${port}`).join(',');
    child = await startChildToolhost({ ...env, DATA_DIR: dataDir, EGRESS_ALLOW, CONCURRENT_CALLS_PER_KEY: '0' });
  });
  beforeEach(() => {
    upstream.on('*', () => 'hold');
    upstream.take();
  });
  afterEach(() => child.signal('SIGCONT'));
  after(async () => {
    await child.end('SIGKILL');
    silentUpstream.close();
  });

  const call = async (name: string) => {
    const reply = await freshCall(child.url, 'things', { tool: name, key: 'a-token' });
    return reply.text;
  };
  const get = async (path: string) => {
    const { body } = await retryUntilServed(async () => {
      const reply = await fetch(`${child.url}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } });
      return { status: reply.status, headers: reply.headers, body: (await reply.json()) as Json };
    });
    return body;
  };
  const getUpstreamState = async (at = 0) => ((await get('/servers/things/limits')).upstreams as Json[])[at] as Json;
  /** Pauses the process when `calls` calls have reached the upstream. */
  const pauseDuring = async (calls: number, name: string, duringPause: () => void) => {
    const replies = Array.from({ length: calls }, () => call(name));
    if (name === 'post') await eventually(() => assert.equal(silentSockets.length, calls));
    else await upstream.waitForRequest(calls);
    child.signal('SIGSTOP');
    duringPause();
    await delay((name === 'brief' ? shortTimeoutMs : timeoutMs) + extraPauseMs);
    child.signal('SIGCONT');
    return Promise.all(replies);
  };

  it('[find C5] reads the responses that arrived during its pause', async () => {
    const texts = await pauseDuring(25, 'get', () => {
      for (const request of upstream.requests) request.release({ body: { fine: true } });
    });
    for (const text of texts) assert.match(text, /fine/);
    const { state, failures: failed } = await getUpstreamState();
    assert.deepEqual([state, failed], ['closed', 0]);
  });

  it('[find C5] reads the requests that arrived during its pause', async () => {
    const { hostname, port, host } = new URL(child.url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    socket.write(`GET /livez HTTP/1.1\r\nHost: ${host}\r\n`);
    // A later connection was served, so the process has accepted this one.
    assert.equal((await fetch(`${child.url}/livez`)).status, 200);
    child.signal('SIGSTOP');
    socket.write('Connection: close\r\n\r\n');
    await delay(defaultRuntimeOptions.headersTimeoutMs + 2 * extraPauseMs);
    child.signal('SIGCONT');
    assert.match(await text(socket), /^HTTP\/1\.1 200 /);
  });

  it('[find C5] gives a silent upstream its remaining time and then reports the timeout', async () => {
    const texts = await pauseDuring(1, 'brief', () => undefined);
    assert.match(texts[0] ?? '', /upstream did not answer within 3000 ms/);
  });

  it('[find C5] does not count connections lost during its pause as upstream failures', async () => {
    const texts = await pauseDuring(25, 'post', () => {
      for (const socket of silentSockets) socket.destroy();
    });
    for (const text of texts) assert.match(text, /this service was paused during the call/);
    const { state, failures: failed } = await getUpstreamState(1);
    assert.deepEqual([state, failed], ['closed', 0]);
    const { calls } = await get('/calls?slug=things&outcome=unavailable&limit=100');
    assert.equal((calls as Json[]).length, 25);
  });
});

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { callUntil } from '../support/tool-calls.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import { type Json, startToolhost, type ToolCallResult } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startAdversarialUpstream } from '../support/upstreams/adversarial-upstream.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const openAfter = 20;
const isBlocked = (result: ToolCallResult | undefined) =>
  result?.isError === true && /so nothing was sent/.test(result.content[0]?.text ?? '');

describe('[sec 4.1] the circuit breaker', async () => {
  /** The monotonic clock of the service. */
  let clockMs = 1_000_000;
  let count = 0;
  const closedPort = await findFreePort();
  const [upstream, adversary] = await Promise.all([startRecordingUpstream(), startAdversarialUpstream()]);
  const toolhost = await startToolhost({
    egressPorts: [upstream.port, adversary.port, closedPort],
    env: { CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' },
    runtimeOptions: {
      clock: () => clockMs,
      resolve: (_, callback) => callback(null, [{ address: '10.0.0.1', family: 4 }]),
    },
  });
  after(() => Promise.all([toolhost.stop(), upstream.close(), adversary.close()]));

  type Server = { slug: string; key: string; call: () => Promise<ToolCallResult> };

  /** Creates a server in its own workspace, so that no test sees the circuits of another one. */
  const createBreakerServer = async (url: string, tool: Json = {}, more: Json = {}): Promise<Server> => {
    const workspace = `breaker-${++count}`;
    const key = await toolhost.createKey({ workspace });
    const slug = `${workspace}-server`;
    const body = buildServerAt(slug, '', { tools: [buildToolAt(url, tool)], ...more });
    assert.equal((await toolhost.rest('POST', '/servers', { key, body })).status, 201);
    return { slug, key, call: () => toolhost.callTool(slug, 'token-of-the-caller', 'get') };
  };
  const callTimes = (n: number, { call }: Server) => Promise.all(Array.from({ length: n }, call));
  const respondWith = (path: string, status: number) => upstream.on(`GET ${path}`, () => ({ status, body: {} }));
  const failUntilOpen = async (server: Server, path: string) => {
    respondWith(path, 503);
    const failed = await callTimes(openAfter, server);
    assert.equal(failed.filter(isBlocked).length, 0);
  };
  const countRequests = (path: string) => upstream.requests.filter(({ url }) => url === path).length;
  const getState = async ({ slug, key }: Server) => {
    const { body } = await toolhost.rest('GET', `/servers/${slug}/limits`, { key });
    return (body.upstreams as Json[])[0] as Json;
  };

  it('opens after 20 failures, sends nothing, and reports the time of the next attempt', async () => {
    const server = await createBreakerServer(`${upstream.url}/opens`);
    assert.equal((await scrapeMetrics(toolhost.url)).sum('toolhost_circuit_breakers'), 0);
    await failUntilOpen(server, '/opens');
    clockMs += 3000;
    const before = Date.now();
    const result = await server.call();
    assert.ok(isBlocked(result));
    assert.match(result.content[0]?.text ?? '', /so nothing was sent; retry in 7 s$/);
    assert.equal(countRequests('/opens'), openAfter);
    const { body } = await toolhost.rest('GET', '/calls?outcome=circuit_open', { key: server.key });
    assert.equal((body.calls as Json[]).length, 1);
    const metrics = await scrapeMetrics(toolhost.url);
    assert.equal(metrics.value('toolhost_circuit_breakers', { state: 'open' }), 1);
    assert.equal(metrics.value('toolhost_circuit_breakers', { state: 'half_open' }), 0);
    assert.equal(metrics.sum('toolhost_calls_total', { outcome: 'circuit_open' }), 1);
    const state = await getState(server);
    assert.deepEqual([state.origin, state.state], [upstream.url, 'open']);
    const nextAt = Date.parse(String(state.next_attempt_at)) - 7000;
    assert.ok(nextAt > before - 5000 && nextAt < Date.now() + 5000, String(state.next_attempt_at));
  });

  it('makes one attempt after 10 seconds, which closes it or keeps it open for another 10', async () => {
    const path = '/half-opens';
    const server = await createBreakerServer(`${upstream.url}${path}`);
    await failUntilOpen(server, path);
    clockMs += 10_000;
    assert.equal((await getState(server)).state, 'half_open');
    const failedAttempt = await server.call();
    assert.match(failedAttempt.content[0]?.text ?? '', /HTTP 503/);
    assert.ok(isBlocked(await server.call()));

    clockMs += 10_000;
    upstream.on(`GET ${path}`, () => 'hold');
    const attempt = server.call();
    const heldRequest = await upstream.waitForRequest(upstream.requests.length + 1);
    const blockedResult = await server.call();
    assert.ok(isBlocked(blockedResult));
    assert.match(blockedResult.content[0]?.text ?? '', /a probe request is in progress/);
    respondWith(path, 200);
    heldRequest.release({ body: { fine: true } });
    assert.equal((await attempt).content[0]?.text, '{"fine":true}');
    assert.equal((await getState(server)).state, 'closed');
    assert.equal((await callTimes(5, server)).filter((result) => result.isError).length, 0);
    assert.equal(countRequests(path), openAfter + 7);
  });

  it('applies to one workspace and one origin', async () => {
    const server = await createBreakerServer(`${upstream.url}/shared`);
    const otherWorkspace = await createBreakerServer(`${upstream.url}/shared`);
    await failUntilOpen(server, '/shared');
    respondWith('/shared', 200);
    assert.ok(isBlocked(await server.call()));
    assert.equal((await otherWorkspace.call()).isError, undefined);
    const tools = [buildToolAt(`${adversary.url}/status/200`)];
    const body = buildServerAt('breaker-other-origin', adversary.url, { tools });
    await toolhost.rest('POST', '/servers', { key: server.key, body });
    assert.equal((await toolhost.callTool('breaker-other-origin', 'token', 'get')).isError, undefined);
  });

  it('stays closed while half of the calls succeed, and forgets failures after 30 seconds', async () => {
    const path = '/mixed';
    const server = await createBreakerServer(`${upstream.url}${path}`);
    respondWith(path, 200);
    await callTimes(25, server);
    respondWith(path, 503);
    await callTimes(25, server);
    assert.partialDeepStrictEqual(await getState(server), { state: 'closed', failures: 25 });
    clockMs += 31_000;
    await callTimes(openAfter - 1, server);
    clockMs += 31_000;
    assert.match((await server.call()).content[0]?.text ?? '', /HTTP 503/);
    assert.equal((await getState(server)).state, 'closed');
  });

  const failures: [name: string, url: string, tool?: Json][] = [
    ...[502, 503, 504].map((status): [string, string] => [`${status}`, `${adversary.url}/status/${status}`]),
    ['no response', `${adversary.url}/silence`, { timeout_ms: 50 }],
    ['a closed port', `http://127.0.0.1:${closedPort}/`],
    ['a connection reset', `${adversary.url}/reset`, { method: 'POST' }],
    ['a truncated response', `${adversary.url}/half-close`],
    ['an invalid response', `${adversary.url}/garbage`],
  ];
  for (const [name, url, tool] of failures) {
    it(`counts ${name} as a failure`, async () => {
      let server: Server;
      let results: ToolCallResult[];
      do {
        server = await createBreakerServer(url, tool);
        results = await callTimes(openAfter, server);
        // A call during which a busy machine paused this process counts neither way.
      } while (results.some(({ content }) => /this service was paused/.test(content[0]?.text ?? '')));
      assert.equal(results.filter((result) => result.isError && !isBlocked(result)).length, openAfter);
      assert.ok(isBlocked(await server.call()));
    });
  }

  const nonFailures: [name: string, url: string, counted: number, tool?: Json][] = [
    ['404', `${adversary.url}/status/404`, openAfter + 5],
    ['429', `${adversary.url}/status/429`, openAfter + 5],
    ['500', `${adversary.url}/status/500`, openAfter + 5],
    ['a response that is too large', `${adversary.url}/status/200`, openAfter + 5, { response_limit_bytes: 2 }],
    ['a call that the address guard blocks', 'https://private.example.com/x', 0],
  ];
  for (const [name, url, counted, tool] of nonFailures) {
    it(`does not count ${name} as a failure`, async () => {
      const server = await createBreakerServer(url, tool);
      const results = await callTimes(openAfter + 5, server);
      assert.equal(results.filter((result) => result.isError && !isBlocked(result)).length, openAfter + 5);
      const { state, calls, failures: failed } = await getState(server);
      assert.deepEqual([state, calls, failed], ['closed', counted, 0]);
    });
  }

  it('does not count calls that the caller cancels, not even as the attempt', async () => {
    const path = '/cancelled';
    const server = await createBreakerServer(`${upstream.url}${path}`);
    const cancelled = async (n: number) => {
      upstream.on(`GET ${path}`, () => 'hold');
      const from = upstream.requests.length;
      const abortController = new AbortController();
      const { signal } = abortController;
      const calls = Array.from({ length: n }, () => callUntil(signal, toolhost, server.slug, 'token-of-the-caller'));
      await upstream.waitForRequest(from + n);
      abortController.abort();
      for (const call of calls) await assert.rejects(call, { name: 'AbortError' });
      for (const request of upstream.requests.slice(from)) assert.equal(await request.closed, 'aborted');
    };
    await cancelled(openAfter + 5);
    const { state, calls } = await getState(server);
    assert.deepEqual([state, calls], ['closed', 0]);
    await failUntilOpen(server, path);
    clockMs += 10_000;
    await cancelled(1);
    respondWith(path, 200);
    assert.equal((await server.call()).isError, undefined);
    assert.equal((await getState(server)).state, 'closed');
  });

  it('counts the calls of all callers of the workspace together', async () => {
    const authentication = { type: 'Bearer', token: 'stored' };
    const tools = [buildToolAt(`${upstream.url}/stored`)];
    await toolhost.createServer(buildServerAt('stored', upstream.url, { authentication, tools }));
    respondWith('/stored', 503);
    const [first, second, third] = [await toolhost.createKey(), await toolhost.createKey(), await toolhost.createKey()];
    const text = async (key: string) => JSON.stringify(await toolhost.callTool('stored', key, 'get'));
    for (let n = 0; n < openAfter / 2; n++)
      for (const key of [first, second]) assert.match(await text(key), /HTTP 503/);
    assert.match(await text(third), /so nothing was sent/);
  });

  it('[find A6] has a separate circuit for unverified callers: made-up tokens do not block callers that the API has accepted', async () => {
    const server = await createBreakerServer(`${upstream.url}/theirs`, {}, { authentication: { type: 'Bearer' } });
    let isDown = false;
    upstream.on('GET /theirs', ({ headers }) =>
      headers.authorization === 'Bearer token-of-the-caller' && !isDown ? { body: {} } : { status: 503, body: {} },
    );
    assert.equal((await server.call()).isError, undefined);
    const callWithUnknownToken = (n: number) => toolhost.callTool(server.slug, `made-up-${n}`, 'get');
    for (let n = 0; n < openAfter; n++)
      assert.match((await callWithUnknownToken(n)).content[0]?.text ?? '', /HTTP 503/);
    assert.ok(isBlocked(await callWithUnknownToken(openAfter)));
    assert.equal((await server.call()).isError, undefined);
    isDown = true;
    await callTimes(openAfter, server);
    assert.ok(isBlocked(await server.call()));
  });
});

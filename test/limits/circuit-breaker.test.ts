import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { serverAt, toolAt } from '../support/configs.ts';
import { mirrors, modernMessage } from '../support/mcp.ts';
import { type Json, startToolhost, type TestToolhost, type ToolReply } from '../support/toolhost/toolhost.ts';
import { type HostileUpstream, startHostileUpstream } from '../support/upstreams/hostile-upstream.ts';
import { freePort } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const openAfter = 20;
const isHeldBack = (result: ToolReply | undefined) =>
  result?.isError === true && /so nothing was sent/.test(result.content[0]?.text ?? '');

/** A call that the caller can cancel by disconnecting. */
const modernCall = {
  method: 'POST',
  headers: {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    authorization: 'Bearer token-of-the-caller',
    ...mirrors('tools/call', 'get'),
  },
  body: JSON.stringify(modernMessage('tools/call', { name: 'get', arguments: {} })),
};

describe('[sec 4.1] the circuit breaker', () => {
  let upstream: RecordingUpstream;
  let hostile: HostileUpstream;
  let closedPort: number;
  let toolhost: TestToolhost;
  /** The monotonic clock of the service. */
  let at = 1_000_000;
  let count = 0;
  before(async () => {
    closedPort = await freePort();
    [upstream, hostile] = await Promise.all([startRecordingUpstream(), startHostileUpstream()]);
    toolhost = await startToolhost({
      egress: [upstream.port, hostile.port, closedPort],
      env: { CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' },
      surroundings: {
        clock: () => at,
        resolve: (_, callback) => callback(null, [{ address: '10.0.0.1', family: 4 }]),
      },
    });
  });
  after(() => Promise.all([toolhost.stop(), upstream.close(), hostile.close()]));

  type Server = { slug: string; key: string; call: () => Promise<ToolReply> };

  /** Creates a server in its own workspace, so that no test sees the circuits of another one. */
  const serve = async (url: string, tool: Json = {}, more: Json = {}): Promise<Server> => {
    const workspace = `breaker-${++count}`;
    const key = await toolhost.key({ workspace });
    const slug = `${workspace}-server`;
    const body = serverAt(slug, '', { tools: [toolAt(url, tool)], ...more });
    assert.equal((await toolhost.rest('POST', '/servers', { key, body })).status, 201);
    return { slug, key, call: () => toolhost.callTool(slug, 'token-of-the-caller', 'get') };
  };
  const times = (n: number, { call }: Server) => Promise.all(Array.from({ length: n }, call));
  const answering = (path: string, status: number) => upstream.on(`GET ${path}`, () => ({ status, body: {} }));
  const fail = async (server: Server, path: string) => {
    answering(path, 503);
    const failed = await times(openAfter, server);
    assert.equal(failed.filter(isHeldBack).length, 0);
  };
  const requestsAt = (path: string) => upstream.requests.filter(({ url }) => url === path).length;
  const stateOf = async ({ slug, key }: Server) => {
    const { body } = await toolhost.rest('GET', `/servers/${slug}/limits`, { key });
    return (body.upstreams as Json[])[0] as Json;
  };

  it('opens after 20 failures, sends nothing, and reports the time of the next attempt', async () => {
    const server = await serve(`${upstream.url}/opens`);
    await fail(server, '/opens');
    const begun = at;
    at += 3000;
    const before = Date.now();
    const result = await server.call();
    assert.ok(isHeldBack(result));
    assert.match(result.content[0]?.text ?? '', /the next request is allowed in 7 s$/);
    assert.equal(requestsAt('/opens'), openAfter);
    const { body } = await toolhost.rest('GET', '/calls?outcome=circuit_open', { key: server.key });
    assert.equal((body.calls as Json[]).length, 1);
    const state = await stateOf(server);
    assert.deepEqual([state.origin, state.state], [upstream.url, 'open']);
    assert.equal(at - begun, 3000);
    const nextAt = Date.parse(String(state.next_attempt_at)) - 7000;
    assert.ok(nextAt > before - 5000 && nextAt < Date.now() + 5000, String(state.next_attempt_at));
  });

  it('makes one attempt after 10 seconds, which closes it or keeps it open for another 10', async () => {
    const path = '/half-opens';
    const server = await serve(`${upstream.url}${path}`);
    await fail(server, path);
    at += 10_000;
    assert.equal((await stateOf(server)).state, 'half_open');
    const failedAttempt = await server.call();
    assert.match(failedAttempt.content[0]?.text ?? '', /HTTP 503/);
    assert.ok(isHeldBack(await server.call()));

    at += 10_000;
    upstream.on(`GET ${path}`, () => 'hold');
    const attempt = server.call();
    const held = await upstream.waitForRequest(upstream.requests.length + 1);
    const meanwhile = await server.call();
    assert.ok(isHeldBack(meanwhile));
    assert.match(meanwhile.content[0]?.text ?? '', /a probe request is in progress/);
    answering(path, 200);
    held.release({ body: { fine: true } });
    assert.equal((await attempt).content[0]?.text, '{"fine":true}');
    assert.equal((await stateOf(server)).state, 'closed');
    assert.equal((await times(5, server)).filter((result) => result.isError).length, 0);
    assert.equal(requestsAt(path), openAfter + 7);
  });

  it('applies to one workspace and one origin', async () => {
    const server = await serve(`${upstream.url}/shared`);
    const neighbour = await serve(`${upstream.url}/shared`);
    await fail(server, '/shared');
    answering('/shared', 200);
    assert.ok(isHeldBack(await server.call()));
    assert.equal((await neighbour.call()).isError, undefined);
    const body = serverAt('breaker-other-origin', hostile.url, { tools: [toolAt(`${hostile.url}/status/200`)] });
    await toolhost.rest('POST', '/servers', { key: server.key, body });
    assert.equal((await toolhost.callTool('breaker-other-origin', 'token', 'get')).isError, undefined);
  });

  it('stays closed while half of the calls succeed, and forgets failures after 30 seconds', async () => {
    const path = '/mixed';
    const server = await serve(`${upstream.url}${path}`);
    answering(path, 200);
    await times(25, server);
    answering(path, 503);
    await times(25, server);
    assert.deepEqual([(await stateOf(server)).state, (await stateOf(server)).failures], ['closed', 25]);
    at += 31_000;
    await times(openAfter - 1, server);
    at += 31_000;
    assert.match((await server.call()).content[0]?.text ?? '', /HTTP 503/);
    assert.equal((await stateOf(server)).state, 'closed');
  });

  const failures: [string, () => [url: string, tool?: Json]][] = [
    ['502', () => [`${hostile.url}/status/502`]],
    ['503', () => [`${hostile.url}/status/503`]],
    ['504', () => [`${hostile.url}/status/504`]],
    ['no response', () => [`${hostile.url}/silence`, { timeout_ms: 50 }]],
    ['a closed port', () => [`http://127.0.0.1:${closedPort}/`]],
    ['a connection reset', () => [`${hostile.url}/reset`, { method: 'POST' }]],
    ['a truncated response', () => [`${hostile.url}/half-close`]],
    ['an invalid response', () => [`${hostile.url}/garbage`]],
  ];
  for (const [name, tool] of failures) {
    it(`counts ${name} as a failure`, async () => {
      let server: Server;
      let results: ToolReply[];
      do {
        server = await serve(...tool());
        results = await times(openAfter, server);
        // A call during which a busy machine paused this process counts neither way.
      } while (results.some(({ content }) => /this service was paused/.test(content[0]?.text ?? '')));
      assert.equal(results.filter((result) => result.isError && !isHeldBack(result)).length, openAfter);
      assert.ok(isHeldBack(await server.call()));
    });
  }

  const noFailures: [string, () => [url: string, tool?: Json]][] = [
    ['4xx', () => [`${hostile.url}/status/404`]],
    ['429', () => [`${hostile.url}/status/429`]],
    ['500', () => [`${hostile.url}/status/500`]],
    ['a response that is too large', () => [`${hostile.url}/status/200`, { response_limit_bytes: 2 }]],
  ];
  for (const [name, tool] of noFailures) {
    it(`does not count ${name} as a failure`, async () => {
      const server = await serve(...tool());
      const results = await times(openAfter + 5, server);
      assert.equal(results.filter((result) => result.isError && !isHeldBack(result)).length, openAfter + 5);
      const { calls, failures: failed } = await stateOf(server);
      assert.deepEqual([calls, failed], [openAfter + 5, 0]);
    });
  }

  it('does not count calls that the address guard blocks', async () => {
    const server = await serve('https://private.example.com/x');
    const results = await times(openAfter + 5, server);
    assert.equal(results.filter((result) => result.isError && !isHeldBack(result)).length, openAfter + 5);
    const { state, calls } = await stateOf(server);
    assert.deepEqual([state, calls], ['closed', 0]);
  });

  it('does not count calls that the caller cancels, not even as the attempt', async () => {
    const path = '/cancelled';
    const server = await serve(`${upstream.url}${path}`);
    const cancelled = async (n: number) => {
      upstream.on(`GET ${path}`, () => 'hold');
      const from = upstream.requests.length;
      const leaving = new AbortController();
      const { signal } = leaving;
      const calls = Array.from({ length: n }, () =>
        fetch(`${toolhost.url}/mcp/${server.slug}`, { ...modernCall, signal }),
      );
      await upstream.waitForRequest(from + n);
      leaving.abort();
      for (const call of calls) await assert.rejects(call, { name: 'AbortError' });
      for (const request of upstream.requests.slice(from)) assert.equal(await request.closed, 'aborted');
    };
    await cancelled(openAfter + 5);
    const { state, calls } = await stateOf(server);
    assert.deepEqual([state, calls], ['closed', 0]);
    await fail(server, path);
    at += 10_000;
    await cancelled(1);
    answering(path, 200);
    assert.equal((await server.call()).isError, undefined);
    assert.equal((await stateOf(server)).state, 'closed');
  });

  it('counts the calls of all callers of the workspace together', async () => {
    const authentication = { type: 'Bearer', token: 'stored' };
    const tools = [toolAt(`${upstream.url}/stored`)];
    await toolhost.createServer(serverAt('stored', upstream.url, { authentication, tools }));
    answering('/stored', 503);
    const [first, second, third] = [await toolhost.key(), await toolhost.key(), await toolhost.key()];
    const text = async (key: string) => JSON.stringify(await toolhost.callTool('stored', key, 'get'));
    for (let n = 0; n < openAfter / 2; n++)
      for (const key of [first, second]) assert.match(await text(key), /HTTP 503/);
    assert.match(await text(third), /so nothing was sent/);
  });

  it('[find A6] has a separate circuit for unverified callers: made-up tokens do not block callers that the API has accepted', async () => {
    const server = await serve(`${upstream.url}/theirs`, {}, { authentication: { type: 'Bearer' } });
    let isDown = false;
    upstream.on('GET /theirs', ({ headers }) =>
      headers.authorization === 'Bearer token-of-the-caller' && !isDown ? { body: {} } : { status: 503, body: {} },
    );
    assert.equal((await server.call()).isError, undefined);
    const madeUp = (n: number) => toolhost.callTool(server.slug, `made-up-${n}`, 'get');
    for (let n = 0; n < openAfter; n++) assert.match((await madeUp(n)).content[0]?.text ?? '', /HTTP 503/);
    assert.ok(isHeldBack(await madeUp(openAfter)));
    assert.equal((await server.call()).isError, undefined);
    isDown = true;
    await times(openAfter, server);
    assert.ok(isHeldBack(await server.call()));
  });
});

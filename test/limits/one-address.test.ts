import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { serverAt, toolAt } from '../support/configs.ts';
import { type LoginWorld, startLoginWorld } from '../support/oauth/login-world.ts';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

const users = ['token-of-ann', 'token-of-bob', 'token-of-cid'];
const isUser = ({ headers }: RecordedRequest) => users.some((token) => headers.authorization === `Bearer ${token}`);
const madeUp = (n: number) => `made-up-${n}`;
const statuses = (replies: readonly Reply[]) => replies.map(({ status }) => status);

describe('callers without a key', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  /** The monotonic clock of the service. */
  let at: number;
  beforeEach(async () => {
    at = 1_000_000;
    upstream = await startRecordingUpstream();
  });
  afterEach(async () => {
    for (const request of upstream.requests) request.release({ status: 401 });
    await Promise.all([toolhost.stop(), upstream.close()]);
  });

  const start = async (env: Record<string, string> = {}) => {
    toolhost = await startToolhost({
      egress: [upstream.port],
      env: { TRUSTED_PROXIES: '1', ...env },
      surroundings: { clock: () => at },
    });
    await toolhost.createServer(serverAt('fair', upstream.url, { authentication: { type: 'Bearer' } }));
    // Whoever is no user is slow to be refused.
    upstream.on('*', (request) => (isUser(request) ? { body: { fine: true } } : 'hold'));
  };
  const call = (token: string, from: string) =>
    toolhost.rpc('fair', token, 'tools/call', { name: 'get', arguments: {} }, { 'x-forwarded-for': from });
  /** Calls that go on while others are made. */
  const flood = (count: number, token: (n: number) => string, from: (n: number) => string) => {
    for (let n = 0; n < count; n++) void call(token(n), from(n)).catch(() => undefined);
  };
  const held = () => upstream.requests.length;
  const userCalls = async (from: string) => {
    const replies = await Promise.all([...users, ...users, ...users].map((token) => call(token, from)));
    assert.deepEqual(new Set(statuses(replies)), new Set([200]));
    for (const { body } of replies)
      assert.deepEqual((body.result as Json).content, [{ type: 'text', text: '{"fine":true}' }]);
  };

  it('[find A6] 60 slow calls with one made-up bearer take nothing from others of the same address', async () => {
    await start();
    const before = upstream.requests.length;
    flood(
      60,
      () => madeUp(1),
      () => '198.51.100.1',
    );
    await upstream.waitForRequest(before + 10);
    await userCalls('198.51.100.1');
    await userCalls('198.51.100.2');
    assert.ok(held() - before < 60);
  });

  it('[find A6] made-up bearers of many addresses take nothing from known callers', async () => {
    await start();
    await userCalls('203.0.113.1');
    flood(300, madeUp, (n) => `198.51.100.${n % 250}`);
    await upstream.waitForRequest(9 + 25);
    for (let round = 0; round < 3; round++) await userCalls('203.0.113.1');
    await userCalls('198.51.100.7');
  });

  it('[find A6] made-up bearers take no more than half of the rate', async () => {
    await start({ CALLS_PER_SECOND: '20', CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' });
    for (const token of users) assert.equal((await call(token, '203.0.113.1')).status, 200);
    at += 10_000;
    upstream.on('*', (request) => (isUser(request) ? { body: { fine: true } } : { status: 401 }));
    const replies = await Promise.all(Array.from({ length: 100 }, (_, n) => call(madeUp(n), `198.51.100.${n}`)));
    const refused = replies.filter(({ status }) => status === 429);
    assert.ok(refused.length >= 88, String(refused.length));
    assert.match(refused[0]?.text ?? '', /credentials that are not known to be good/);
    await userCalls('203.0.113.1');
  });

  it('[find A6] failing calls with made-up bearers do not hold back others', async () => {
    await start();
    await userCalls('203.0.113.1');
    upstream.on('*', (request) => (isUser(request) ? { body: { fine: true } } : { status: 503, body: {} }));
    for (let round = 0; round < 6; round++) {
      await Promise.all(Array.from({ length: 10 }, () => call(madeUp(1), '198.51.100.1')));
      await Promise.all(Array.from({ length: 20 }, (_, n) => call(madeUp(n), `198.51.100.${(n % 5) + 1}`)));
    }
    await userCalls('203.0.113.1');
    await userCalls('203.0.113.2');
    const { body } = await toolhost.rest('GET', '/servers/fair/limits');
    assert.equal(((body.upstreams as Json[])[0] as Json).state, 'closed');
    const last = await call(madeUp(1), '198.51.100.1');
    assert.match(last.text, /nothing was sent to it/);
  });

  it('[find A6] one known caller whose calls fail does not hold back others, several of several addresses do', async () => {
    await start();
    upstream.on('*', (request) => (isUser(request) ? { body: { fine: true } } : { status: 401 }));
    await call(madeUp(1), '198.51.100.1');
    for (const [n, token] of users.entries()) await call(token, `203.0.113.${n + 1}`);
    const failing = new Set([users[0]]);
    upstream.on('*', ({ headers }) =>
      failing.has(String(headers.authorization).replace('Bearer ', ''))
        ? { status: 503, body: {} }
        : { body: { fine: true } },
    );
    const results = async (token: string, times: number) => {
      const replies = await Promise.all(Array.from({ length: times }, () => call(token, '203.0.113.1')));
      return replies.map(({ text }) =>
        /nothing was sent to it/.test(text) ? 'held back' : /HTTP 503/.test(text) ? 'failed' : 'fine',
      );
    };
    for (let n = 0; n < 3; n++) await results(users[0] as string, 10);
    assert.deepEqual(await results(users[0] as string, 1), ['held back']);
    assert.deepEqual(await results(users[1] as string, 5), Array(5).fill('fine'));
    assert.deepEqual(await results('a-new-user', 2), ['fine', 'fine']);
    failing.add(users[1] as string);
    failing.add(users[2] as string);
    for (let n = 0; n < 3; n++) for (const token of users.slice(1)) await results(token, 10);
    for (const token of [...users, 'a-new-user']) assert.deepEqual(await results(token, 1), ['held back']);
    at += 10_000;
    failing.clear();
    assert.deepEqual(await results(users[2] as string, 1), ['fine']);
    for (const token of [...users, 'a-new-user']) assert.deepEqual(await results(token, 2), ['fine', 'fine']);
  });
});

describe('logins of one person, whose calls fail', () => {
  let world: LoginWorld;
  beforeEach(async () => {
    world = await startLoginWorld({
      env: { CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' },
      // What is held back stays so until the test has asked.
      surroundings: { clock: () => 0 },
    });
    world.upstream.on('*', ({ url }) => (url.endsWith('bad') ? { status: 503, body: {} } : { body: { fine: true } }));
  });
  afterEach(() => world.stop());

  const [home, elsewhere] = ['198.51.100.1', '203.0.113.1'];
  const call = async (slug: string, token: string, which: string, from: string) => {
    const params = { name: 'run', arguments: { which } };
    const { text } = await world.toolhost.rpc(slug, token, 'tools/call', params, { 'x-forwarded-for': from });
    return /nothing was sent to it/.test(text) ? 'held back' : /HTTP 503/.test(text) ? 'failed' : 'fine';
  };
  /** A server, the token of an honest login with good calls, and three tokens that one client and browser got. */
  const serve = async (token_mode: string) => {
    const slug = await world.serve({ tools: [tool(world.upstream.url)] }, { token_mode });
    const honest = (await world.tokens(await world.client(slug))).access_token;
    for (let n = 0; n < 20; n++) assert.equal(await call(slug, honest, 'good', elsewhere), 'fine');
    const [client, browser] = [await world.client(slug), world.browser()];
    const tokens: string[] = [];
    for (let n = 0; n < 3; n++) tokens.push((await world.tokens(client, browser)).access_token);
    for (const token of tokens) assert.equal(await call(slug, token, 'good', home), 'fine');
    return { slug, honest, tokens };
  };
  const tool = (url: string) => ({
    ...toolAt(`${url}/things?which=:which`, { name: 'run' }),
    input_schema: { which: { type: 'string', description: 'Which' } },
  });

  it('[find A6] count as one caller of their address, and are held back themselves', async () => {
    const { slug, honest, tokens } = await serve('issued');
    for (const token of tokens) for (let n = 0; n < 25; n++) await call(slug, token, 'bad', home);
    assert.equal(await call(slug, honest, 'good', elsewhere), 'fine');
    assert.equal(await call(slug, tokens[0] as string, 'good', home), 'held back');
    assert.equal(await call(slug, honest, 'good', home), 'fine');
  });
});

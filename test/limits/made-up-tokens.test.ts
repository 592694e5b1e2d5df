import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { serverAt, toolAt } from '../support/configs.ts';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import {
  type Answer,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

const home = '198.51.100.1';
const elsewhere = '203.0.113.1';
const fine: Answer = { body: { fine: true } };
const users = ['ann', 'bob', 'cid', 'dan'];
const tokenOf = (headers: { authorization?: string | undefined }) => String(headers.authorization).slice(7);

describe('[find A6] tokens that a generator makes up at one address', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  /** Answers of an API to an invalid token, by the id of the thing that is asked for; the users' tokens are good. */
  let answerTo: (path: string) => Answer | 'hold';
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
    upstream.on('*', ({ url, headers }) => (/^(user|ann|bob|cid|dan)/.test(tokenOf(headers)) ? fine : answerTo(url)));
  });
  afterEach(async () => {
    for (const request of upstream.requests) request.release({ status: 404 });
    await Promise.all([toolhost.stop(), upstream.close()]);
  });

  const start = async (env: Record<string, string> = {}) => {
    toolhost = await startToolhost({ egress: [upstream.port], env: { TRUSTED_PROXIES: '1', ...env } });
    const input_schema = { id: { type: 'string', description: 'Id' } };
    const tools = ['private', 'public'].map((name) => toolAt(`${upstream.url}/${name}/:id`, { name, input_schema }));
    await toolhost.createServer(serverAt('apis', upstream.url, { authentication: { type: 'Bearer' }, tools }));
  };
  const call = (token: string, from: string, name = 'private', id = '1') =>
    toolhost.rpc('apis', token, 'tools/call', { name, arguments: { id } }, { 'x-forwarded-for': from });
  /** The same tokens twice: first they are answered, then each has a call that does not end or fails. */
  const flood = async (then: Answer | 'hold', name: string, from = home, id = 'x') => {
    const tokens = Array.from({ length: 60 }, (_, n) => `made-up-${n}`);
    for (let at = 0; at < tokens.length; at += 10)
      await Promise.all(tokens.slice(at, at + 10).map((token) => call(token, from, name, id)));
    const before = answerTo;
    answerTo = (path) => (path.endsWith(`/${id}`) ? then : before(path));
    const begun = upstream.requests.length;
    const calls = tokens.map((token) => call(token, from, name, id).catch(() => undefined));
    if (then === 'hold') await upstream.waitForRequest(begun + 10);
    else await Promise.all(calls);
  };
  const userCalls = async (from: string, id = '1') => {
    for (const token of users) assertFine([await call(token, from, 'private', id)]);
    const replies = await Promise.all(users.flatMap((token) => [1, 2, 3].map(() => call(token, from, 'private', id))));
    assertFine(replies);
  };
  const circuit = async () => {
    const { body } = await toolhost.rest('GET', '/servers/apis/limits');
    return ((body.upstreams as Json[])[0] as Json).state;
  };

  const apis: { title: string; answer: (path: string) => Answer; tool: string; userAt: string }[] = [
    {
      title: 'that answers 404 before it looks at the token',
      answer: () => ({ status: 404 }),
      tool: 'private',
      userAt: home,
    },
    {
      title: 'of which one tool is open to anybody',
      answer: (path) => (path.startsWith('/public') ? fine : { status: 401 }),
      tool: 'public',
      userAt: home,
    },
    { title: 'that never looks at the token', answer: () => fine, tool: 'private', userAt: elsewhere },
  ];
  for (const { title, answer, tool, userAt } of apis) {
    it(`take no slots from others at an API ${title}`, async () => {
      await start();
      answerTo = answer;
      await call('made-up', home, 'private', '1');
      await userCalls(userAt);
      await flood('hold', tool);
      for (let round = 0; round < 3; round++) await userCalls(userAt);
    });

    it(`open no circuit at an API ${title}`, async () => {
      await start({ CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' });
      answerTo = answer;
      await call('made-up', home, 'private', '1');
      await userCalls(userAt);
      for (let round = 0; round < 2; round++) await flood({ status: 503, body: {} }, tool);
      await userCalls(userAt);
      assert.equal(await circuit(), 'closed');
    });
  }

  it('do not hold back a caller of their address whose last call succeeded', async () => {
    await start({ CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' });
    answerTo = () => fine;
    await userCalls(home);
    for (let round = 0; round < 2; round++) await flood({ status: 503, body: {} }, 'private');
    await userCalls(home);
  });

  it('do not affect a thousand honest callers behind one address', async () => {
    await start({ CONCURRENT_CALLS: '64', CONCURRENT_CALLS_PER_KEY: '2' });
    answerTo = (path) => (path.endsWith('/x') ? fine : { status: 401 });
    const rounds = async () => {
      for (let n = 0; n < 1000; n += 50)
        assertFine(await Promise.all(Array.from({ length: 50 }, (_, i) => call(`user-${n + i}`, elsewhere))));
    };
    await rounds();
    await flood('hold', 'private');
    await rounds();
  });
});

describe('tokens that one person makes up, in networks of one IPv6 network', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
    toolhost = await startToolhost({
      egress: [upstream.port],
      env: { TRUSTED_PROXIES: '1', CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' },
      surroundings: { clock: () => 0 },
    });
    const which = { which: { type: 'string', description: 'Which' } };
    const open = toolAt(`${upstream.url}/open?which=:which`, { input_schema: which });
    await toolhost.createServer(serverAt('open', upstream.url, { tools: [open], authentication: { type: 'Bearer' } }));
    await toolhost.createServer(
      serverAt('inside', upstream.url, { authentication: { type: 'Bearer', token: 'stored' } }),
    );
  });
  afterEach(() => Promise.all([toolhost.stop(), upstream.close()]));

  const from = (network: number) => ({ 'x-forwarded-for': `2001:db8:1:${network.toString(16)}::1` });
  const call = (network: number, which: string) =>
    toolhost.rpc('open', `made-up-${network}`, 'tools/call', { name: 'get', arguments: { which } }, from(network));

  it('[find A6] are one caller, so a circuit does not open for others', async () => {
    upstream.on('*', ({ url }) => (url.endsWith('bad') ? { status: 503, body: {} } : { body: {} }));
    const networks = [1, 2, 3, 4];
    for (const network of networks) await call(network, 'good');
    for (let n = 0; n < 25; n++) for (const network of networks) await call(network, 'bad');
    const result = await toolhost.callTool('inside', await toolhost.key(), 'get');
    assert.equal(result.isError, undefined, JSON.stringify(result));
  });
});

function assertFine(replies: readonly Reply[]): void {
  for (const { status, body, text } of replies) {
    assert.equal(status, 200, text);
    assert.deepEqual((body.result as Json).content, [{ type: 'text', text: '{"fine":true}' }], text);
  }
}

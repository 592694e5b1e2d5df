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

describe('[find A6] generated tokens from one address', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  /**
   * Returns the API's response to an invalid token, by the path of the requested resource. Tokens of users are valid.
   */
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
  /** Sends the same tokens twice: first they get a response, then each has a call that does not end. */
  const flood = async (name: string, from = home, id = 'x') => {
    const tokens = Array.from({ length: 60 }, (_, n) => `made-up-${n}`);
    for (let at = 0; at < tokens.length; at += 10)
      await Promise.all(tokens.slice(at, at + 10).map((token) => call(token, from, name, id)));
    const before = answerTo;
    answerTo = (path) => (path.endsWith(`/${id}`) ? 'hold' : before(path));
    const begun = upstream.requests.length;
    for (const token of tokens) void call(token, from, name, id).catch(() => undefined);
    await upstream.waitForRequest(begun + 10);
  };
  const userCalls = async (from: string, id = '1') => {
    for (const token of users) assertFine([await call(token, from, 'private', id)]);
    const replies = await Promise.all(users.flatMap((token) => [1, 2, 3].map(() => call(token, from, 'private', id))));
    assertFine(replies);
  };
  const apis: { title: string; answer: (path: string) => Answer; tool: string; userAt: string }[] = [
    {
      title: 'that responds with 404 before it checks the token',
      answer: () => ({ status: 404 }),
      tool: 'private',
      userAt: home,
    },
    {
      title: 'with one public tool',
      answer: (path) => (path.startsWith('/public') ? fine : { status: 401 }),
      tool: 'public',
      userAt: elsewhere,
    },
    { title: 'that never checks the token', answer: () => fine, tool: 'private', userAt: elsewhere },
  ];
  for (const { title, answer, tool, userAt } of apis) {
    it(`take no slots from other callers at an API ${title}`, async () => {
      await start();
      answerTo = answer;
      await call('made-up', home, 'private', '1');
      await userCalls(userAt);
      await flood(tool);
      for (let round = 0; round < 3; round++) await userCalls(userAt);
    });
  }

  it('do not affect 1,000 legitimate callers behind one address', async () => {
    await start({ CONCURRENT_CALLS: '64', CONCURRENT_CALLS_PER_KEY: '2' });
    answerTo = (path) => (path.endsWith('/x') ? fine : { status: 401 });
    const rounds = async () => {
      for (let n = 0; n < 1000; n += 50)
        assertFine(await Promise.all(Array.from({ length: 50 }, (_, i) => call(`user-${n + i}`, elsewhere))));
    };
    await rounds();
    await flood('private');
    await rounds();
  });
});

function assertFine(replies: readonly Reply[]): void {
  for (const { status, body, text } of replies) {
    assert.equal(status, 200, text);
    assert.deepEqual((body.result as Json).content, [{ type: 'text', text: '{"fine":true}' }], text);
  }
}

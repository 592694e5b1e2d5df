import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import {
  type CannedResponse,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

const attackerAddress = '198.51.100.1';
const otherAddress = '203.0.113.1';
const successResponse: CannedResponse = { body: { fine: true } };
const users = ['ann', 'bob', 'cid', 'dan'];
const getToken = (headers: { authorization?: string | undefined }) => String(headers.authorization).slice(7);

describe('[find A6] generated tokens from one address', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  /**
   * Returns the API's response to an invalid token, by the path of the requested resource. Tokens of users are valid.
   */
  let getInvalidTokenResponse: (path: string) => CannedResponse | 'hold';
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
    upstream.on('*', ({ url, headers }) =>
      /^(user|ann|bob|cid|dan)/.test(getToken(headers)) ? successResponse : getInvalidTokenResponse(url),
    );
  });
  afterEach(async () => {
    for (const request of upstream.requests) request.release({ status: 404 });
    await Promise.all([toolhost.stop(), upstream.close()]);
  });

  const start = async (env: Record<string, string> = {}) => {
    toolhost = await startToolhost({ egressPorts: [upstream.port], env: { TRUSTED_PROXIES: '1', ...env } });
    const input_schema = { id: { type: 'string', description: 'Id' } };
    const tools = ['private', 'public'].map((name) =>
      buildToolAt(`${upstream.url}/${name}/:id`, { name, input_schema }),
    );
    await toolhost.createServer(buildServerAt('apis', upstream.url, { authentication: { type: 'Bearer' }, tools }));
  };
  const call = (token: string, from: string, name = 'private', id = '1') =>
    toolhost.rpc('apis', token, 'tools/call', { name, arguments: { id } }, { 'x-forwarded-for': from });
  /** Sends the same tokens twice: first they get a response, then each has a call that does not end. */
  const flood = async (name: string, from = attackerAddress, id = 'x') => {
    const tokens = Array.from({ length: 60 }, (_, n) => `made-up-${n}`);
    for (let at = 0; at < tokens.length; at += 10)
      await Promise.all(tokens.slice(at, at + 10).map((token) => call(token, from, name, id)));
    const before = getInvalidTokenResponse;
    getInvalidTokenResponse = (path) => (path.endsWith(`/${id}`) ? 'hold' : before(path));
    const requestsBefore = upstream.requests.length;
    for (const token of tokens) void call(token, from, name, id).catch(() => undefined);
    await upstream.waitForRequest(requestsBefore + 10);
  };
  const userCalls = async (from: string, id = '1') => {
    for (const token of users) assertFine([await call(token, from, 'private', id)]);
    const replies = await Promise.all(users.flatMap((token) => [1, 2, 3].map(() => call(token, from, 'private', id))));
    assertFine(replies);
  };
  const apiKinds: { title: string; getResponse: (path: string) => CannedResponse; tool: string; userAt: string }[] = [
    {
      title: 'that responds with 404 before it checks the token',
      getResponse: () => ({ status: 404 }),
      tool: 'private',
      userAt: attackerAddress,
    },
    {
      title: 'with one public tool',
      getResponse: (path) => (path.startsWith('/public') ? successResponse : { status: 401 }),
      tool: 'public',
      userAt: otherAddress,
    },
    { title: 'that never checks the token', getResponse: () => successResponse, tool: 'private', userAt: otherAddress },
  ];
  for (const { title, getResponse, tool, userAt } of apiKinds) {
    it(`take no slots from other callers at an API ${title}`, async () => {
      await start();
      getInvalidTokenResponse = getResponse;
      await call('made-up', attackerAddress, 'private', '1');
      await userCalls(userAt);
      await flood(tool);
      for (let round = 0; round < 3; round++) await userCalls(userAt);
    });
  }

  it('do not affect 1,000 legitimate callers behind one address', async () => {
    await start({ CONCURRENT_CALLS: '64', CONCURRENT_CALLS_PER_KEY: '2' });
    getInvalidTokenResponse = (path) => (path.endsWith('/x') ? successResponse : { status: 401 });
    const callAllUsers = async () => {
      for (let n = 0; n < 1000; n += 50)
        assertFine(await Promise.all(Array.from({ length: 50 }, (_, i) => call(`user-${n + i}`, otherAddress))));
    };
    await callAllUsers();
    await flood('private');
    await callAllUsers();
  });
});

function assertFine(replies: readonly Reply[]): void {
  for (const { status, body, text } of replies) {
    assert.equal(status, 200, text);
    assert.deepEqual((body.result as Json).content, [{ type: 'text', text: '{"fine":true}' }], text);
  }
}

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type Json, type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

const users = ['token-of-ann', 'token-of-bob', 'token-of-cid'];
const isUser = ({ headers }: RecordedRequest) => users.some((token) => headers.authorization === `Bearer ${token}`);
const unknownToken = (n: number) => `made-up-${n}`;
const statuses = (replies: readonly Reply[]) => replies.map(({ status }) => status);

describe('callers without a key', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  /** The monotonic clock of the service. */
  let clockMs: number;
  beforeEach(async () => {
    clockMs = 1_000_000;
    upstream = await startRecordingUpstream();
  });
  afterEach(async () => {
    for (const request of upstream.requests) request.release({ status: 401 });
    await Promise.all([toolhost.stop(), upstream.close()]);
  });

  const start = async (env: Record<string, string> = {}) => {
    toolhost = await startToolhost({
      egressPorts: [upstream.port],
      env: { TRUSTED_PROXIES: '1', ...env },
      runtimeOptions: { clock: () => clockMs },
    });
    await toolhost.createServer(buildServerAt('fair', upstream.url, { authentication: { type: 'Bearer' } }));
    // Tokens of other callers are rejected slowly.
    upstream.on('*', (request) => (isUser(request) ? { body: { fine: true } } : 'hold'));
  };
  const call = (token: string, from: string) =>
    toolhost.rpc('fair', token, 'tools/call', { name: 'get', arguments: {} }, { 'x-forwarded-for': from });
  /** Starts calls that run while others are made. */
  const flood = (count: number, token: (n: number) => string, from: (n: number) => string) => {
    for (let n = 0; n < count; n++) void call(token(n), from(n)).catch(() => undefined);
  };
  const countRequests = () => upstream.requests.length;
  const assertUsersServed = async (from: string) => {
    const replies = await Promise.all([...users, ...users, ...users].map((token) => call(token, from)));
    assert.deepEqual(new Set(statuses(replies)), new Set([200]));
    for (const { body } of replies)
      assert.deepEqual((body.result as Json).content, [{ type: 'text', text: '{"fine":true}' }]);
  };

  it('[find A6] with one made-up bearer token and 60 slow calls do not affect verified callers at the same address', async () => {
    await start();
    await assertUsersServed('198.51.100.1');
    const before = upstream.requests.length;
    const [getToken, getAddress] = [() => unknownToken(1), () => '198.51.100.1'];
    flood(60, getToken, getAddress);
    await upstream.waitForRequest(before + 10);
    await assertUsersServed('198.51.100.1');
    await assertUsersServed('198.51.100.2');
    assert.ok(countRequests() - before < 60);
  });

  it('[find A6] with made-up bearer tokens from many addresses do not affect verified callers', async () => {
    await start();
    await assertUsersServed('203.0.113.1');
    flood(300, unknownToken, (n) => `198.51.100.${n % 250}`);
    await upstream.waitForRequest(9 + 25);
    for (let round = 0; round < 3; round++) await assertUsersServed('203.0.113.1');
    await assertUsersServed('198.51.100.7');
  });

  it('[find A6] with made-up bearer tokens use at most half of the rate, until verified callers were idle for 10 minutes', async () => {
    await start({ CALLS_PER_SECOND: '20', CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' });
    for (const token of users) assert.equal((await call(token, '203.0.113.1')).status, 200);
    clockMs += 10_000;
    upstream.on('*', (request) => (isUser(request) ? { body: { fine: true } } : { status: 401 }));
    const countRejected = async () => {
      const replies = await Promise.all(
        Array.from({ length: 100 }, (_, n) => call(unknownToken(n), `198.51.100.${n}`)),
      );
      return replies.filter(({ status }) => status === 429);
    };
    const whileUsersCall = await countRejected();
    assert.ok(whileUsersCall.length >= 88, String(whileUsersCall.length));
    assert.match(whileUsersCall[0]?.text ?? '', /unverified callers/);
    await assertUsersServed('203.0.113.1');
    clockMs += 10 * 60_000;
    const withoutUsers = (await countRejected()).length;
    assert.ok(withoutUsers >= 78 && withoutUsers <= 80, String(withoutUsers));
  });
});

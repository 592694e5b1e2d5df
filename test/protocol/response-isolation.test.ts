import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { getRunCount } from '../sets.ts';
import { getResultText } from '../support/one-tool.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import {
  type DelayedBytes,
  type EchoedRequest,
  formatEcho,
  formatJsonResponse,
  startEchoingUpstream,
} from '../support/upstreams/echoing-upstream.ts';

const foreignBody = '{"planted":true}';
const input_schema = { text: { type: 'string' } };
const echoTool = (url: string, overrides: Json = {}) =>
  buildToolAt(`${url}/say`, { input_schema, timeout_ms: 15_000, ...overrides });
const unlimited = { CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' };

/** Caller with the bearer token that it sends and the credential that the upstream receives. */
type User = { token: string; credential: string };

/** Sends the calls of each user sequentially and all users concurrently. Returns expected and received results. */
async function runCalls(toolhost: TestToolhost, slug: string, users: readonly User[], calls: number) {
  const results: { expected: string; received: string; isError: boolean }[] = [];
  await Promise.all(
    users.map(async ({ token, credential }, number) => {
      for (let n = 0; n < calls; n += 1) {
        const text = `text-${number}-${n}`;
        const result = await toolhost.callTool(slug, token, 'get', { text });
        const expected = JSON.stringify({ user: credential, text });
        results.push({ expected, received: getResultText(result), isError: result.isError === true });
      }
    }),
  );
  return results;
}

const createUsers = (count: number) =>
  Array.from({ length: count }, (_, n): User => ({ token: `token-${n}`, credential: `Bearer token-${n}` }));

describe('response isolation with an upstream that sends unsolicited responses', async () => {
  const upstream = await startEchoingUpstream({
    respond: (request) => [
      { afterMs: 0, bytes: formatEcho(request) },
      ...(request.index % 10 === 3 ? [{ afterMs: 5, bytes: formatJsonResponse(foreignBody) }] : []),
    ],
  });
  const toolhost = await startToolhost({ egressPorts: [upstream.port], env: unlimited });
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  it('[find B2] [sec F1] returns only the own results to each of eight concurrent users with equal message ids', async () => {
    const tools = [echoTool(upstream.url)];
    await toolhost.createServer({ name: 'Own', slug: 'own', authentication: { type: 'Bearer' }, tools });
    const results = await runCalls(toolhost, 'own', createUsers(8), 25);
    for (const { expected, received } of results) assert.equal(received, expected);
    assert.ok(upstream.connectionUsers.every((users) => users.size <= 1));
  });
});

/** Behavior of an upstream for one request, including bytes that it sends in addition. */
type Violation = (request: EchoedRequest) => DelayedBytes[];

/** Splits bytes into pieces of random sizes and delays the first one. */
const splitBytes = (bytes: string, afterMs: number, cuts: readonly number[]): DelayedBytes[] => {
  const ends = [...cuts.map((cut) => Math.floor(cut * bytes.length)).sort((a, b) => a - b), bytes.length];
  const pieces = ends.map((end, index) => bytes.slice(ends[index - 1] ?? 0, end)).filter((piece) => piece !== '');
  return pieces.map((piece, index) => ({ afterMs: index === 0 ? afterMs : 1, bytes: piece }));
};
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 });
/** Less than the 50 ms before a connection is reused. Stalls delay service and upstream alike on their event loop. */
const delayMs = fc.integer({ min: 0, max: 20 });
const unsolicitedBytes = fc.constantFrom(
  formatJsonResponse(foreignBody),
  formatJsonResponse(foreignBody) + formatJsonResponse(foreignBody),
  formatJsonResponse(foreignBody, { connection: 'close' }),
  'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n',
  'HTTP/1.1 2',
  'HTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nlink: </planted>\r\n\r\n',
  `HTTP/1.1 408 Request Timeout\r\ncontent-length: 16\r\n\r\n${foreignBody}`,
  '\r\n',
  foreignBody,
  'GET /planted HTTP/1.1\r\n\r\n',
);
const chunked = (body: string, end: string) =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n${end}`;
const toBody = ({ user, text }: EchoedRequest) => JSON.stringify({ user, text });

/** HTTP violations that could make a response look like the response of another request. */
const echo = (request: EchoedRequest): DelayedBytes => ({ afterMs: 0, bytes: formatEcho(request) });
const echoOfLength = (request: EchoedRequest, moreBytes: number): DelayedBytes => {
  return { afterMs: 0, bytes: formatEcho(request, { 'content-length': toBody(request).length + moreBytes }) };
};
const interim = 'HTTP/1.1 103 Early Hints\r\n\r\n';
const foreignResponse = formatJsonResponse(foreignBody);
const chunkEnds = ['0\r\n\r\n', '0\r\nx-trailer: planted\r\n\r\n', `0\r\n\r\n${foreignResponse}`];
const violation: fc.Arbitrary<Violation> = fc.oneof(
  fc.constant<Violation>((request) => [echo(request)]),
  fc.tuple(unsolicitedBytes, delayMs, cuts).map<Violation>(([bytes, afterMs, at]) => (request) => [
    echo(request),
    ...splitBytes(bytes, afterMs, at),
  ]),
  unsolicitedBytes.map<Violation>((bytes) => (request) => [{ afterMs: 0, bytes: formatEcho(request) + bytes }]),
  fc.tuple(delayMs, cuts).map<Violation>(([ms, at]) => (request) => [
    echo(request),
    ...splitBytes(formatEcho(request), ms, at),
  ]),
  fc
    .integer({ min: 1, max: 120 })
    .map<Violation>((count) => (request) => [{ afterMs: 0, bytes: interim.repeat(count) + formatEcho(request) }]),
  fc
    .integer({ min: 1, max: 10 })
    .map<Violation>((missing) => (request) => [
      echoOfLength(request, -missing),
      { afterMs: 3, bytes: foreignResponse },
    ]),
  fc.tuple(fc.integer({ min: 1, max: 200 }), delayMs).map<Violation>(([extra, afterMs]) => (request) => [
    echoOfLength(request, extra),
    { afterMs, bytes: foreignResponse.repeat(3) },
  ]),
  fc
    .constantFrom(...chunkEnds)
    .map<Violation>((end) => (request) => [{ afterMs: 0, bytes: chunked(toBody(request), end) }]),
  delayMs.map<Violation>((afterMs) => (request) => [
    { afterMs, bytes: formatEcho(request, { connection: 'close' }) + foreignResponse },
  ]),
);

describe('response isolation with upstreams that violate HTTP', async () => {
  const runs = getRunCount(15);
  let violations: readonly Violation[] = [];
  let runCount = 0;
  const toHost = (run: number) => `run-${run}.example:${upstream.port}`;
  const upstream = await startEchoingUpstream({
    respond: (request) => violations[request.index % violations.length]?.(request) ?? [],
  });
  const allowed = Array.from({ length: runs * 40 }, (_, run) => toHost(run));
  const toolhost = await startToolhost({
    env: { ...unlimited, EGRESS_ALLOW: allowed.join(',') },
    runtimeOptions: { resolve: (_name, response) => response(null, [{ address: '127.0.0.1', family: 4 }]) },
  });
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  it('[find B2] detects unsolicited bytes that arrived while the process was busy before the connection is reused', async () => {
    const afterMs = 30;
    const planted = { afterMs, bytes: formatJsonResponse(foreignBody) };
    violations = [(request) => [{ afterMs: 0, bytes: formatEcho(request) }, planted]];
    for (let round = 0; round < 5; round++) {
      const run = runCount++;
      const tools = [echoTool(`http://${toHost(run)}`)];
      await toolhost.createServer({ name: 'Busy', slug: `busy-${run}`, authentication: { type: 'Bearer' }, tools });
      const [user] = createUsers(1) as [User];
      await runCalls(toolhost, `busy-${run}`, [user], 1);
      const next = runCalls(toolhost, `busy-${run}`, [user], 1);
      await delay(afterMs / 2);
      // The upstream sends and the idle time of the connection ends in the same turn of the event loop.
      for (const until = performance.now() + 100; performance.now() < until; );
      for (const { expected, received } of await next) assert.equal(received, expected);
    }
  });

  for (const isStored of [false, true]) {
    it(`[find B2] returns only the own results to each user, with ${isStored ? 'one stored credential' : 'separate credentials'}`, async () => {
      const key = await toolhost.createKey();
      const users = isStored ? Array<User>(3).fill({ token: key, credential: 'Bearer stored' }) : createUsers(3);
      const authentication = { type: 'Bearer', ...(isStored && { token: 'stored' }) };
      await fc.assert(
        fc.asyncProperty(fc.array(violation, { minLength: 1, maxLength: 5 }), async (plan) => {
          violations = plan;
          // A new origin without connection history.
          const run = runCount++;
          const slug = `broken-${run}`;
          const tools = [echoTool(`http://${toHost(run)}`, { timeout_ms: 2000 })];
          await toolhost.createServer({ name: 'Broken', slug, authentication, tools });
          for (const { expected, received, isError } of await runCalls(toolhost, slug, users, 4)) {
            if (isError) assert.doesNotMatch(received, /planted|text-/);
            // A wrong Content-Length ends a body too early or too late. A body that is then invalid JSON is passed on as text.
            else assert.ok(received && (expected.startsWith(received) || received.startsWith(expected)), received);
          }
        }),
        { numRuns: runs },
      );
      assert.ok(upstream.connectionUsers.every((users) => users.size <= 1));
    });
  }
});

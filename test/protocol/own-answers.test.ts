import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { tries } from '../sets.ts';
import { toolAt } from '../support/configs.ts';
import { textOf } from '../support/one-tool.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import {
  type EchoedRequest,
  type EchoingUpstream,
  echo,
  type Piece,
  said,
  startEchoingUpstream,
} from '../support/upstreams/echoing-upstream.ts';

const planted = '{"planted":true}';
const input_schema = { text: { type: 'string' } };
const echoTool = (url: string, more: Json = {}) => toolAt(`${url}/say`, { input_schema, timeout_ms: 15_000, ...more });
const noLimits = { CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' };

/** Caller with the bearer token that it sends and the credential that the upstream receives. */
type User = { token: string; credential: string };

/** Sends the calls of each user sequentially and all users concurrently. Returns expected and received results. */
async function callsOf(toolhost: TestToolhost, slug: string, users: readonly User[], calls: number) {
  const told: { own: string; got: string; isError: boolean }[] = [];
  await Promise.all(
    users.map(async ({ token, credential }, number) => {
      for (let n = 0; n < calls; n += 1) {
        const text = `text-${number}-${n}`;
        const result = await toolhost.callTool(slug, token, 'get', { text });
        const own = JSON.stringify({ user: credential, text });
        told.push({ own, got: textOf(result), isError: result.isError === true });
      }
    }),
  );
  return told;
}

const bearers = (count: number) =>
  Array.from({ length: count }, (_, n): User => ({ token: `token-${n}`, credential: `Bearer token-${n}` }));

describe('response isolation with an upstream that sends unsolicited responses', () => {
  let upstream: EchoingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    upstream = await startEchoingUpstream({
      answer: (request) => [
        { afterMs: 0, bytes: echo(request) },
        ...(request.index % 10 === 3 ? [{ afterMs: 5, bytes: said(planted) }] : []),
      ],
    });
    toolhost = await startToolhost({ egress: [upstream.port], env: noLimits });
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  it('[find B2] returns only the own results to each of eight concurrent users', async () => {
    const tools = [echoTool(upstream.url)];
    await toolhost.createServer({ name: 'Own', slug: 'own', authentication: { type: 'Bearer' }, tools });
    const told = await callsOf(toolhost, 'own', bearers(8), 25);
    assert.deepEqual(
      told.filter(({ own, got }) => own !== got),
      [],
    );
    assert.ok(upstream.usersOfConnections.every((users) => users.size <= 1));
  });
});

/** Behavior of an upstream for one request, including bytes that it sends in addition. */
type Fault = (request: EchoedRequest) => Piece[];

/** Splits bytes into pieces of random sizes and delays the first one. */
const inPieces = (bytes: string, afterMs: number, cuts: readonly number[]): Piece[] => {
  const ends = [...cuts.map((cut) => Math.floor(cut * bytes.length)).sort((a, b) => a - b), bytes.length];
  const pieces = ends.map((end, index) => bytes.slice(ends[index - 1] ?? 0, end)).filter((piece) => piece !== '');
  return pieces.map((piece, index) => ({ afterMs: index === 0 ? afterMs : 1, bytes: piece }));
};
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 });
/** Less than the 50 ms before a connection is reused. Stalls delay service and upstream alike on their event loop. */
const laterMs = fc.integer({ min: 0, max: 20 });
const unasked = fc.constantFrom(
  said(planted),
  said(planted) + said(planted),
  said(planted, { connection: 'close' }),
  'HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n',
  'HTTP/1.1 2',
  'HTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nlink: </planted>\r\n\r\n',
  `HTTP/1.1 408 Request Timeout\r\ncontent-length: 16\r\n\r\n${planted}`,
  '\r\n',
  planted,
  'GET /planted HTTP/1.1\r\n\r\n',
);
const chunked = (body: string, end: string) =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n${end}`;
const bodyOf = ({ user, text }: EchoedRequest) => JSON.stringify({ user, text });

/** HTTP violations that could make a response look like the response of another request. */
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.constant<Fault>((request) => [{ afterMs: 0, bytes: echo(request) }]),
  fc.tuple(unasked, laterMs, cuts).map<Fault>(([bytes, afterMs, at]) => (request) => [
    { afterMs: 0, bytes: echo(request) },
    ...inPieces(bytes, afterMs, at),
  ]),
  unasked.map<Fault>((bytes) => (request) => [{ afterMs: 0, bytes: echo(request) + bytes }]),
  fc.tuple(laterMs, cuts).map<Fault>(([afterMs, at]) => (request) => [
    { afterMs: 0, bytes: echo(request) },
    ...inPieces(echo(request), afterMs, at),
  ]),
  fc
    .integer({ min: 1, max: 120 })
    .map<Fault>((count) => (request) => [
      { afterMs: 0, bytes: 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(count) + echo(request) },
    ]),
  fc.integer({ min: 1, max: 10 }).map<Fault>((less) => (request) => [
    { afterMs: 0, bytes: echo(request, { 'content-length': bodyOf(request).length - less }) },
    { afterMs: 3, bytes: said(planted) },
  ]),
  fc.tuple(fc.integer({ min: 1, max: 200 }), laterMs).map<Fault>(([more, afterMs]) => (request) => [
    { afterMs: 0, bytes: echo(request, { 'content-length': bodyOf(request).length + more }) },
    { afterMs, bytes: said(planted).repeat(3) },
  ]),
  fc
    .constantFrom('0\r\n\r\n', '0\r\nx-trailer: planted\r\n\r\n', `0\r\n\r\n${said(planted)}`)
    .map<Fault>((end) => (request) => [{ afterMs: 0, bytes: chunked(bodyOf(request), end) }]),
  laterMs.map<Fault>((afterMs) => (request) => [
    { afterMs, bytes: echo(request, { connection: 'close' }) + said(planted) },
  ]),
);

describe('response isolation with upstreams that violate HTTP', () => {
  const runs = tries(15);
  let upstream: EchoingUpstream;
  let toolhost: TestToolhost;
  let faults: readonly Fault[] = [];
  let served = 0;
  const hostOf = (run: number) => `run-${run}.example:${upstream.port}`;
  before(async () => {
    upstream = await startEchoingUpstream({
      answer: (request) => faults[request.index % faults.length]?.(request) ?? [],
    });
    const allowed = Array.from({ length: runs * 40 }, (_, run) => hostOf(run));
    toolhost = await startToolhost({
      env: { ...noLimits, EGRESS_ALLOW: allowed.join(',') },
      surroundings: { resolve: (_name, answer) => answer(null, [{ address: '127.0.0.1', family: 4 }]) },
    });
  });
  after(async () => {
    await toolhost.stop();
    await upstream.close();
  });

  it('[find B2] detects unsolicited bytes that arrived while the process was busy before the connection is reused', async () => {
    const afterMs = 30;
    faults = [
      (request) => [
        { afterMs: 0, bytes: echo(request) },
        { afterMs, bytes: said(planted) },
      ],
    ];
    for (let round = 0; round < 5; round++) {
      const run = served++;
      const tools = [echoTool(`http://${hostOf(run)}`)];
      await toolhost.createServer({ name: 'Busy', slug: `busy-${run}`, authentication: { type: 'Bearer' }, tools });
      const [user] = bearers(1) as [User];
      await callsOf(toolhost, `busy-${run}`, [user], 1);
      const next = callsOf(toolhost, `busy-${run}`, [user], 1);
      await delay(afterMs / 2);
      // The upstream sends and the idle time of the connection ends in the same turn of the event loop.
      for (const until = performance.now() + 100; performance.now() < until; );
      for (const { own, got } of await next) assert.equal(got, own);
    }
  });

  for (const stored of [false, true]) {
    it(`[find B2] returns only the own results to each user, with ${stored ? 'one stored credential' : 'separate credentials'}`, async () => {
      const key = await toolhost.key();
      const users = stored
        ? Array.from({ length: 3 }, (): User => ({ token: key, credential: 'Bearer stored' }))
        : bearers(3);
      const authentication = { type: 'Bearer', ...(stored && { token: 'stored' }) };
      await fc.assert(
        fc.asyncProperty(fc.array(fault, { minLength: 1, maxLength: 5 }), async (plan) => {
          faults = plan;
          // A new origin without connection history.
          const run = served++;
          const slug = `broken-${run}`;
          const tools = [echoTool(`http://${hostOf(run)}`, { timeout_ms: 2000 })];
          await toolhost.createServer({ name: 'Broken', slug, authentication, tools });
          for (const { own, got, isError } of await callsOf(toolhost, slug, users, 4)) {
            if (isError) assert.doesNotMatch(got, /planted|text-/);
            // A wrong Content-Length ends a body too early or too late. A body that is then invalid JSON is passed on as text.
            else assert.ok(got.length > 0 && (own.startsWith(got) || got.startsWith(own)), got);
          }
        }),
        { numRuns: runs },
      );
      assert.ok(upstream.usersOfConnections.every((users) => users.size <= 1));
    });
  }
});

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { newWorkspaceId } from '../../src/domain/ids.ts';
import { ConcurrencyLimiter } from '../../src/domain/work/gate.ts';
import { MemoryBudget } from '../../src/domain/work/memory-budget.ts';
import { createFairCache } from '../../src/domain/work/owned-memory.ts';
import { createPreemptibleSlots } from '../../src/domain/work/places.ts';
import { Limits } from '../../src/gateway/limits/limits.ts';
import { maxConcurrentModels } from '../../src/operations/quotas/gate.ts';
import { ThreadPool } from '../../src/threads/thread-pool.ts';
import { personSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { serverAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('[find A8] model requests', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  before(async () => {
    upstream = await startRecordingUpstream();
    upstream.on('*', () => 'hold');
    toolhost = await startToolhost({ egress: [upstream.port] });
  });
  after(async () => {
    await upstream.close();
    await toolhost.stop();
  });

  const model = () => toolhost.running.app.runner.concurrencyLimiters.model.getCounts();

  /** Sends model requests from a workspace with two keys, as many as one workspace may have. */
  async function askWith(slug: string, keys: readonly string[]): Promise<Promise<unknown>[]> {
    const [key = ''] = keys;
    const saved = { kind: 'anthropic', url: `${upstream.url}/v1`, model: 'held' };
    const server = await toolhost.rest('POST', '/servers', { key, body: serverAt(slug, upstream.url) });
    const stored = await toolhost.rest('PUT', '/models/held', { key, body: saved });
    assert.deepEqual([server.status, stored.status], [201, 200], server.text + stored.text);
    const body = { model: { saved: 'held' }, messages: [{ role: 'user', text: 'Hello' }] };
    return keys
      .flatMap((each) => Array.from({ length: maxConcurrentModels.perTenant / 2 }, () => each))
      .map((each) => toolhost.rest('POST', `/servers/${slug}/playground`, { key: each, body }).catch(() => undefined));
  }

  it('of many workspaces of one creator are limited like those of one workspace, and all creators together by the total', async () => {
    const { perTenant, total } = maxConcurrentModels;
    const session = await personSession(toolhost, { name: 'Ada' });
    const as = async (path: string, body: Json) => (await personRequest(toolhost, session, 'POST', path, body)).body;
    const asked: Promise<unknown>[] = [];
    for (const slug of ['ada-1', 'ada-2', 'ada-3']) {
      await as('/workspaces', { name: slug });
      const keys = [1, 2].map(async (n) => (await as('/keys', { name: `${n}`, scopes: ['manage', 'call'] })).key);
      asked.push(...(await askWith(slug, (await Promise.all(keys)).map(String))));
    }
    await eventually(() => assert.deepEqual([model().running, model().waiting], [perTenant, 2 * perTenant]));
    for (let n = 0; n < total / perTenant + 3; n++) {
      const workspace = `of person ${n}`;
      const keys = [await toolhost.key({ workspace }), await toolhost.key({ workspace })];
      asked.push(...(await askWith(`person-${n}`, keys)));
      await eventually(() => assert.equal(model().running + model().waiting, asked.length));
    }
    assert.equal(model().running, total);
    await upstream.waitForRequest(total);
    assert.equal(upstream.requests.length, total);
  });
});

/** Requests units of a share alternately for these workspaces. Resolves with the number of granted units. */
type Take = (workspaceIds: readonly string[]) => Promise<number> | number;

const turns = Array.from({ length: 20 }, (_, n) => n);
const inTurn = (ids: readonly string[]) => turns.map((n) => ids[n % ids.length] as string);
const never = () => new Promise<never>(() => undefined);

const shares: Record<string, Take> = {
  'concurrency limiter slots'(ids) {
    const gate = new ConcurrencyLimiter({ rule: 'a rule', maxConcurrent: 12, maxQueued: 0 });
    for (const [n, workspaceId] of inTurn(ids).entries())
      gate.run({ workspaceId, id: `usr_${n}` }, never).catch(() => undefined);
    return gate.getCounts().running;
  },
  'concurrency limiter CPU time'(ids) {
    const gate = new ConcurrencyLimiter({ rule: 'a rule', maxConcurrent: 30, perTenant: 1, cpuShare: () => 0.1 });
    for (const [n, workspaceId] of inTurn(ids).entries())
      gate.run({ workspaceId, id: `usr_${n}` }, never).catch(() => undefined);
    return gate.getCounts().running;
  },
  'memory budget'(ids) {
    const budget = new MemoryBudget(12);
    return inTurn(ids).filter((id) => budget.reserve(id).grow(1)).length;
  },
  'preemptible slots'(ids) {
    let begun = 0;
    const limits = { perTenant: 3, total: 12 };
    const inPlace = createPreemptibleSlots({
      limits,
      minHoldMs: 1000,
      clock: () => 0,
      noSlotMessage: 'no room',
      evictedMessage: 'lost',
    });
    const work = () => {
      begun++;
      return never();
    };
    for (const id of inTurn(ids)) inPlace(id, work).catch(() => undefined);
    return begun;
  },
  async 'thread pool queue'(ids) {
    const { threads, queue } = { threads: 1, queue: { perTenant: 4, total: 12 } };
    const ms = { longJobMs: 60_000, idleMs: 60_000, threadBytes: 64 * 1024 * 1024 };
    const pool = new ThreadPool({ threads, queue, ...ms, after: () => () => undefined });
    const input = { schema: '{}', args: '{}' };
    for (const workspaceId of inTurn(ids))
      pool
        .run({ kind: 'check-arguments', input, workspaceId, limitMs: 60_000, queueTimeoutMs: 60_000 })
        .catch(() => undefined);
    const { running, waiting } = pool.counts();
    await pool.close();
    return running + waiting;
  },
  'fair cache entries'(ids) {
    const memory = createFairCache<{ owner: string }>({ max: 12, getOwner: ({ owner }) => owner });
    for (const n of [1, 2, 3]) memory.set(`kept ${n}`, { owner: 'another' });
    for (const [n, owner] of inTurn(ids).entries()) memory.set(`${n}`, { owner });
    return memory.size();
  },
  async 'concurrent calls'(ids) {
    const gate = new Limits({ concurrentPerKey: 0, clock: () => 0, lag: { ms: 0 }, queueMs: 10, capacity: 12 });
    const none = { callsPerSecond: 0, concurrentCalls: 0 };
    const anyone = { id: undefined, keyId: undefined, network: '198.51.100.1', isVerified: false };
    const entered = inTurn(ids).map(async (workspaceId) =>
      gate.enter({ id: `server of ${workspaceId}`, workspaceId, limits: { server: none, workspace: none } }, anyone),
    );
    return (await Promise.allSettled(entered)).filter(({ status }) => status === 'fulfilled').length;
  },
};

describe('[find A8] a process-wide share', () => {
  const random = (bytes: number) => randomBytes(bytes);
  const workspacesOf = (creator: string) => turns.map(() => newWorkspaceId(random, `usr_${creator.repeat(22)}`));

  for (const [name, take] of Object.entries(shares)) {
    it(`is no larger for many workspaces of one creator than for one workspace: ${name}`, async () => {
      const [ada, bea, cleo] = ['a', 'b', 'c'].map(workspacesOf) as [string[], string[], string[]];
      const ofOne = await take(ada.slice(0, 1));
      assert.equal(await take(ada), ofOne);
      const ofSeveral = await take([ada, bea, cleo].flatMap((ids) => ids.slice(0, 1)));
      assert.ok(ofSeveral > ofOne, `${ofSeveral} for three creators, ${ofOne} for one`);
    });
  }
});

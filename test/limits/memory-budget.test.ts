import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { processMemory } from '../../src/app/process-memory.ts';
import { MemoryBudget } from '../../src/domain/work/memory-budget.ts';
import { partyOf } from '../../src/gateway/callers/known-callers.ts';
import { enterLimits, memoryParty } from '../../src/gateway/limits/call-memory.ts';
import { createLimits } from '../../src/gateway/limits/limits.ts';
import { toolAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { countGivenUp } from '../support/toolhost/scrape.ts';
import { type Reply, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const megabyte = 1024 * 1024;

/** A hold of 30 bytes that can be ended; `ended` collects its name then. */
function holdIn(budget: MemoryBudget, ended: string[]) {
  return (workspaceId: string, party: string, bytes = 30) => {
    const held = budget.hold(workspaceId, party);
    held.ending = { giveUp: () => ended.push(workspaceId + party) };
    return { held, isHeld: held.add(bytes) };
  };
}

describe('[find A7] memory that is used up', () => {
  it('is taken from the workspace that holds most, of it from the party that holds most, and there from the last', () => {
    const [budget, ended] = [new MemoryBudget(200), [] as string[]];
    const hold = holdIn(budget, ended);
    for (const party of ['1', '1', '2', '1']) assert.ok(hold('a', party).isHeld);
    assert.ok(hold('b', '1', 60).isHeld);
    assert.ok(hold('c', '1', 40).isHeld);
    assert.deepEqual(ended, ['a1']);
    assert.ok(hold('a', '3', 10).isHeld);
    assert.equal(hold('a', '1', 10).isHeld, false, 'it is the last one of the party that holds most');
    assert.ok(hold('a', '3', 10).isHeld);
    assert.deepEqual(ended, ['a1', 'a1'], 'the party that holds most loses, whoever asks');
    assert.ok(budget.bytes <= 200);
  });

  it('is not taken from one who holds less, and what cannot be ended stays', () => {
    const [budget, ended] = [new MemoryBudget(100), [] as string[]];
    const hold = holdIn(budget, ended);
    assert.ok(hold('small', '1').isHeld);
    const firm = hold('large', '1', 70);
    firm.held.ending = undefined;
    assert.equal(hold('large', '1').isHeld, false);
    assert.equal(hold('third', '1').isHeld, false);
    firm.held.end();
    firm.held.end();
    assert.ok(hold('third', '1').isHeld);
    assert.deepEqual([budget.bytes, ended], [60, []]);
  });

  it('is waited for by work that keeps it to its end, of a workspace for half of what others leave', async () => {
    const budget = new MemoryBudget(100);
    const take = async (workspaceId: string, bytes: number) => {
      const held = budget.hold(workspaceId);
      await held.takeUpTo(bytes);
      return held;
    };
    const first = await take('a', 30);
    let isSecond = false;
    const second = take('a', 30).then((held) => {
      isSecond = true;
      return held;
    });
    const others = [await take('b', 20), await take('c', 20)];
    assert.equal(isSecond, false);
    await first.takeUpTo(80);
    assert.equal(budget.bytes, 90, 'what has begun is not held up, and takes half of all at most');
    first.end();
    for (const held of [await second, ...others]) held.end();
    assert.equal(budget.bytes, 0);
  });
});

describe('[find A7] memory that nobody can take back', () => {
  it('leaves a quarter of all to work that does not wait', async () => {
    const budget = new MemoryBudget(100);
    const [first, second, third] = [budget.hold('a'), budget.hold('b'), budget.hold('c')];
    await first.takeUpTo(40);
    await second.takeUpTo(35);
    const waiting = third.takeUpTo(5);
    assert.ok(budget.hold('d').add(25));
    assert.equal(third.bytes, 0);
    second.end();
    await waiting;
    assert.equal(third.bytes, 5);
  });

  it('refuses no workspace that holds little, until a quarter more than all is held', () => {
    const budget = new MemoryBudget(160);
    assert.ok(budget.hold('large').add(160));
    assert.equal(budget.hold('large').add(1), false);
    const small = ['1', '2', '3', '4'].map((workspaceId) => budget.hold(workspaceId));
    for (const held of small) assert.ok(held.add(10));
    assert.equal(small[0]?.add(1), false, 'it holds more than a sixteenth');
    assert.equal(budget.hold('5').add(1), false);
    assert.equal(budget.bytes, 200);
  });

  it('is not taken by ending others in vain', async () => {
    const [budget, ended] = [new MemoryBudget(64), [] as string[]];
    const hold = holdIn(budget, ended);
    const firm = budget.hold('a');
    assert.ok(firm.add(31));
    for (let n = 0; n < 5; n++) assert.ok(hold('a', '', 2).isHeld);
    const beside = budget.hold('b');
    assert.ok(beside.add(20));
    const [asking, next] = [budget.hold('c'), budget.hold('d')];
    const waiting = asking.takeUpTo(30);
    await next.takeUpTo(3);
    next.end();
    assert.deepEqual([asking.bytes, ended.length], [0, 0]);
    beside.end();
    firm.end();
    await waiting;
    assert.equal(ended.length, 0);
  });

  it('is taken by ending those who hold more, where that is enough', async () => {
    const [budget, ended] = [new MemoryBudget(100), [] as string[]];
    const hold = holdIn(budget, ended);
    for (let n = 0; n < 3; n++) assert.ok(hold('a', `${n}`).isHeld);
    await budget.hold('b').takeUpTo(30);
    assert.deepEqual([ended.length, budget.bytes], [1, 90]);
  });

  it('costs nothing for a hold of nothing', () => {
    const budget = new MemoryBudget(0);
    const held = budget.hold('a');
    assert.ok(held.add(0));
    assert.equal(held.add(1), false);
    held.end();
    assert.equal(budget.bytes, 0);
  });
});

describe('[find A7] the party that holds the memory of a call', () => {
  const caller = { kind: 'oauth' as const, keyId: undefined, id: 'one', network: undefined, token: undefined };
  const credential = { workspaceId: 'w', network: '192.0.2.1', tools: new Set<string>(), isFailing: false, usedAt: 0 };

  it('is the address of callers who are not known and of logins, and otherwise the credential', () => {
    const party = partyOf('192.0.2.1');
    assert.equal(memoryParty({ ...caller, network: '192.0.2.1' }), party);
    assert.equal(memoryParty({ ...caller, credential: { ...credential, party, isProven: false } }), party);
    assert.equal(memoryParty({ ...caller, party }), party, 'one person can log in many times');
    assert.equal(memoryParty({ ...caller, credential: { ...credential, party, isProven: true } }), 'one');
    assert.equal(memoryParty(caller), 'one');
  });
});

describe('a call that gives its memory up', () => {
  it('in the moment in which its slot comes uses neither the slot nor the quota', async () => {
    let givenBack = 0;
    const quotas = {
      take: () => undefined,
      giveBack: () => {
        givenBack++;
      },
    };
    const limits = createLimits({ concurrentPerKey: 0, clock: () => 0, lagMs: () => 0, queueMs: 60_000, quotas });
    const noLimit = { callsPerSecond: 0, concurrentCalls: 0 };
    const server = {
      id: 's',
      workspaceId: 'w',
      limits: { server: { callsPerSecond: 0, concurrentCalls: 1, callsPerDay: 9 }, workspace: noLimit },
    };
    const caller = { kind: 'api_key', keyId: 'k', id: 'k', network: undefined, token: undefined } as const;
    const held = new MemoryBudget(1000).hold('w');
    assert.ok(held.add(100));
    const first = await limits.enter(server, 'k', undefined);
    const second = enterLimits({ server, caller, held, asked: { bytesIn: 0 }, onGone: undefined }, limits);
    limits.leave(first);
    held.ending?.giveUp();
    await assert.rejects(async () => second, { kind: 'unavailable' });
    assert.deepEqual([givenBack, limits.snapshot().running, limits.snapshot().waiting], [1, 0, 0]);
  });
});

describe('[find A7] the memory of calls', () => {
  let toolhost: TestToolhost;
  let upstream: Server;
  let held: ServerResponse[];
  let keys: Record<'greedy' | 'modest', string>;
  before(async () => {
    held = [];
    // The path says how many megabytes come; the rest of an answer at /held is missing.
    upstream = createServer((request, response) => {
      const [, kind, megabytes] = (request.url ?? '').split('/');
      request.resume();
      response.setHeader('Content-Type', 'text/plain');
      if (kind === 'held') held.push(response);
      const body = 'x'.repeat(Number(megabytes) * megabyte);
      if (kind === 'held' && body !== '') response.write(body);
      else if (kind !== 'held') response.end(body);
    }).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const { port } = upstream.address() as AddressInfo;
    const memory = () => ({ ...processMemory(1), work: 20 * megabyte, waitingInputs: 20 * megabyte });
    toolhost = await startToolhost({ egress: [port], surroundings: { memory, queueMs: 60_000 } });
    keys = { greedy: await toolhost.key({ workspace: 'greedy' }), modest: await toolhost.key({ workspace: 'modest' }) };
    const url = `http://127.0.0.1:${port}`;
    const wait = { timeout_ms: 20_000, method: 'POST', input_schema: { a: { type: 'object' } } };
    const tools = [
      toolAt(`${url}/whole/3`),
      toolAt(`${url}/held/5`, { name: 'long', timeout_ms: 20_000 }),
      toolAt(`${url}/held/0`, { ...wait, name: 'wait' }),
    ];
    for (const [slug, key] of Object.entries(keys)) {
      const made = await toolhost.rest('POST', '/servers', { key, body: { name: slug, slug, tools } });
      assert.equal(made.status, 201, made.text);
    }
  });
  after(async () => {
    upstream.closeAllConnections();
    await toolhost.stop();
    upstream.close();
  });

  const call = (slug: 'greedy' | 'modest', name: string, args = {}) =>
    toolhost.rpc(slug, keys[slug], 'tools/call', { name, arguments: args });

  it('is that of the workspace which holds most of it, while answers arrive', async () => {
    const replies: Reply[] = [];
    const all = Array.from({ length: 6 }, () => call('greedy', 'long').then((reply) => replies.push(reply)));
    await eventually(() => assert.equal(replies.length, 2));
    assert.ok((await countGivenUp(toolhost.url, 'memory')) >= 2);
    const modest = await Promise.all([call('modest', 'get'), call('modest', 'get')]);
    for (const { text } of modest) assert.doesNotMatch(text, /isError":true/);
    for (const { status, text } of replies) {
      assert.equal(status, 200);
      assert.match(text, /no memory left for its answer, and this workspace uses most of it; .* fewer large calls/);
    }
    for (const response of held.splice(0)) response.end();
    await Promise.all(all);
    await eventually(() => assert.equal(toolhost.running.app.runner.memory.bytes, 0));
  });

  it('is that of the workspace which holds most of it, for arguments', async () => {
    const replies: Reply[] = [];
    const a = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`name${n}`, 1]));
    const all = Array.from({ length: 20 }, () => call('greedy', 'wait', { a }).then((reply) => replies.push(reply)));
    await eventually(() => assert.ok(replies.length > 8, `${replies.length} were refused`), 20_000);
    for (const { text } of replies) assert.match(text, /no memory left for .*this workspace uses most of it/);
    const before = held.length;
    let said: string | undefined;
    const own = call('modest', 'wait', { a }).then(({ text }) => {
      said = text;
    });
    await eventually(() => assert.ok(held.length > before));
    assert.doesNotMatch((await call('modest', 'get')).text, /isError":true|error/);
    // Others of the greedy one may still be on their way to the upstream.
    await eventually(() => {
      for (const response of held.splice(0)) response.end('done');
      assert.ok(said !== undefined && replies.length === all.length);
    }, 20_000);
    await Promise.all([own, ...all]);
    assert.match(said ?? '', /done/);
    await eventually(() => assert.equal(toolhost.running.app.runner.memory.bytes, 0));
  });

  it('is taken from calls that wait for a slot, too', async () => {
    const limit = (concurrent_calls: number | null) =>
      toolhost.rest('PATCH', '/servers/greedy/limits', { key: keys.greedy, body: { concurrent_calls } });
    assert.equal((await limit(1)).status, 200);
    const a = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`name${n}`, 1]));
    const { memory } = toolhost.running.app.runner;
    const send = async () => {
      const before = memory.bytes;
      const reply = call('greedy', 'wait', { a });
      await eventually(() => assert.ok(memory.bytes > before && held.length === 1));
      return { reply };
    };
    const first = await send();
    const [second, third] = [await send(), await send()];
    const others = ['b', 'c', 'd'].map((workspaceId) => memory.hold(workspaceId));
    for (const other of others) assert.ok(other.add(5 * megabyte));
    const { status, text } = await third.reply;
    assert.equal(status, 503);
    assert.match(text, /no memory left for the arguments of this call, .*; this call was not made/);
    for (const other of others) other.end();
    for (const { reply } of [first, second]) {
      await eventually(() => assert.equal(held.length, 1));
      held.pop()?.end('done');
      assert.match((await reply).text, /done/);
    }
    await limit(null);
    await eventually(() => assert.equal(memory.bytes, 0));
  });

  it('is waited for by operations with large configurations, and by none with a small one', async () => {
    const described = {
      description: 'x'.repeat(1900),
      input_schema: { a: { type: 'string', description: 'y'.repeat(1900) } },
    };
    const tools = Array.from({ length: 450 }, (_, n) =>
      toolAt('https://api.example.com/x', { ...described, name: `t${n}` }),
    );
    for (const [name, key] of Object.entries(keys)) {
      const body = { name, slug: `${name}-large`, tools };
      assert.equal((await toolhost.rest('POST', '/servers', { key, body })).status, 201);
    }
    const reads = Object.entries(keys).flatMap(([name, key]) =>
      Array.from({ length: 5 }, () => toolhost.rest('GET', `/servers/${name}-large`, { key })),
    );
    let isOver = false;
    const all = Promise.all(reads).finally(() => {
      isOver = true;
    });
    assert.equal((await toolhost.rest('GET', '/servers/modest', { key: keys.modest })).status, 200);
    assert.equal(isOver, false);
    for (const { status, text } of await all) assert.equal(status, 200, text.slice(0, 300));
    assert.equal(toolhost.running.app.runner.memory.bytes, 0);
  });
});

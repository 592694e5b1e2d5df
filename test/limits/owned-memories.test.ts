import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createOwnHosts } from '../../src/domain/http/own-hosts.ts';
import type { UpstreamRequest } from '../../src/domain/request/upstream-request.ts';
import { takeOfLargest } from '../../src/domain/work/largest-owner.ts';
import { createOwnedMemory } from '../../src/domain/work/owned-memory.ts';
import { AppError } from '../../src/errors.ts';
import type { Called } from '../../src/gateway/callers/caller.ts';
import { createKnownCallers } from '../../src/gateway/callers/known-callers.ts';
import { createTokenIds } from '../../src/gateway/callers/recent-digests.ts';
import { createCircuits, noteSuccess, windowMs } from '../../src/gateway/limits/circuits.ts';
import { createClientDocuments } from '../../src/oauth/clients/client-document.ts';
import { createUnsavedTokens } from '../../src/oauth/tokens/unsaved-tokens.ts';
import { Connections } from '../../src/outbound/connections.ts';
import type { Exchange, HttpClient } from '../../src/outbound/http-client.ts';
import { root } from '../files.ts';

/** A memory of the process: it keeps the nth value of an owner, and says whether it still has it. */
type Memory = {
  keep(owner: string, n: number): unknown;
  has(owner: string, n: number): unknown;
  end?(): unknown;
};

const request: UpstreamRequest = {
  method: 'GET',
  origin: 'https://api.example',
  path: '/x',
  headers: [],
  body: undefined,
};
const aTool = { name: 'get' } as Called['tool'];
const aCaller = (id: string, network: string) => ({ id, network }) as Called['caller'];

/** Credentials that callers bring to one server of each workspace, each from an address of its own; see `known-callers.ts`. */
function knownCallers(isProven: boolean): Memory {
  const known = createKnownCallers(() => 0);
  const tools = new Map<string, Called['tool']>();
  const note = (owner: string, n: number, id: string, status: number) => {
    const tool = tools.get(owner) ?? { ...aTool };
    tools.set(owner, tool);
    const caller = { ...aCaller(id, `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`), credential: known.find(id) };
    known.noteAnswer({ caller, tool, server: { workspaceId: owner } }, request, status);
  };
  return {
    keep(owner, n) {
      if (isProven && n === 0) note(owner, n, `${owner} bad`, 401);
      note(owner, n, `${owner} ${n}`, 200);
    },
    has: (owner, n) => known.find(`${owner} ${n}`)?.isProven === isProven,
  };
}

function tokenIds(): Memory {
  const ids = createTokenIds(() => true);
  const server = (owner: string) => ({ id: `server of ${owner}`, workspaceId: owner });
  return {
    keep: (owner, n) => ids.idOf(server(owner), `token ${n}`),
    has: (owner, n) => ids.find(server(owner).id, `token ${n}`) !== undefined,
  };
}

function upstreams(): Memory {
  const connections = new Connections({
    createMemory: createOwnedMemory,
    connectorOf: () => () => undefined,
    clock: () => 0,
    onUnasked: () => undefined,
    mostConnections: undefined,
  });
  const upstreamOf = (owner: string, n: number) => {
    const exchange = { workspaceId: owner, origin: `http://h${n}.example`, credentialHash: undefined } as Exchange;
    return connections.poolFor(exchange).upstream;
  };
  return {
    // A number of rests that no new upstream has.
    keep: (owner, n) => Object.assign(upstreamOf(owner, n), { rests: 7 }),
    has: (owner, n) => upstreamOf(owner, n).rests === 7,
  };
}

function clientDocuments(): Memory {
  let fetched = 0;
  const send: HttpClient['send'] = async ({ origin, path }) => {
    fetched++;
    const document = { client_id: origin + path, client_name: 'A client', redirect_uris: ['https://client.example/'] };
    return {
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(document)),
    } as Awaited<ReturnType<HttpClient['send']>>;
  };
  const ownHosts = createOwnHosts({ baseUrl: 'https://tools.example.com', mode: 'production', serverHosts: undefined });
  const documents = createClientDocuments({ send } as HttpClient, ownHosts);
  const find = (owner: string, n: number) => documents(owner).find(`https://client.example/${owner}/${n}`);
  return {
    keep: find,
    async has(owner, n) {
      const before = fetched;
      await find(owner, n);
      return fetched === before;
    },
  };
}

const tokens = { accessToken: 'x'.repeat(2000), refreshToken: undefined, expiresAt: undefined, scope: undefined };

function unsavedLogins(): Memory {
  const unsaved = createUnsavedTokens({ log: () => undefined });
  const grant = (owner: string, n: number) => ({ id: `${owner} ${n}`, tokens_version: 1, workspace_id: owner });
  const isDown = () => Promise.reject(new AppError('unavailable', 'the database does not answer'));
  return {
    keep: (owner, n) => unsaved.keep(grant(owner, n), tokens, isDown),
    has: (owner, n) => unsaved.find(grant(owner, n)) !== undefined,
    end: unsaved.close,
  };
}

function unsavedAnswers(): Memory {
  const { answers } = createUnsavedTokens({ log: () => undefined });
  return {
    keep: (owner, n) => answers.set(`${owner} ${n}`, { workspaceId: owner, tokens }),
    has: (owner, n) => answers.peek(`${owner} ${n}`) !== undefined,
  };
}

/**
 * Everything that a process remembers of tenants and strangers, and that is not read from the database; with a number
 * above its bound.
 */
const memories: [name: string, create: () => Memory, flood: number][] = [
  ['accepted credentials of callers', () => knownCallers(false), 30_000],
  ['proven credentials of callers', () => knownCallers(true), 30_000],
  ['ids of tokens', tokenIds, 3000],
  ['upstreams', upstreams, 4000],
  ['documents of clients', clientDocuments, 2000],
  ['refreshed tokens that wait for the database', unsavedLogins, 20_000],
  ['answers of providers that wait to be passed on', unsavedAnswers, 20_000],
];

describe('[find A6] what a process remembers', () => {
  for (const [name, create, flood] of memories) {
    it(`of ${name}: a flood of one owner displaces its own`, async () => {
      const memory = create();
      for (let n = 0; n < 20; n++) await memory.keep('victim', n);
      for (let n = 0; n < flood; n++) await memory.keep('flooder', n);
      for (let n = 20; n < 40; n++) await memory.keep('victim', n);
      for (let n = 0; n < 40; n++) assert.ok(await memory.has('victim', n), `value ${n} of the victim`);
      await memory.end?.();
    });
  }

  it('is in no other list of recent things: each has its reason', () => {
    const withList = globSync('src/**/*.ts', { cwd: root }).filter((file) =>
      /from 'lru-cache'/.test(readFileSync(join(root, file), 'utf8')),
    );
    assert.deepEqual(withList.toSorted(), [
      'src/domain/work/owned-memory.ts',
      // On a thread, and without it a text is compiled again.
      'src/gateway/compiled-texts.ts',
      // In a server, by which it counts.
      'src/gateway/hosted/hosted-server.ts',
      // Slugs that do not exist are nobody's; for a second.
      'src/gateway/hosted/hosted-servers.ts',
      // Statements are ours.
      'src/store/engine/sqlite-file.ts',
    ]);
  });

  it('of a workspace is not displaced by strangers at its server, who come from one place', () => {
    const known = createKnownCallers(() => 0);
    const note = (id: string, network: string, status: number) => {
      const caller = { ...aCaller(id, network), credential: known.find(id) };
      known.noteAnswer({ caller, tool: aTool, server: { workspaceId: 'ours' } }, request, status);
    };
    note('bad', '192.0.2.1', 401);
    for (let n = 0; n < 50; n++) note(`user ${n}`, `198.51.100.${n}`, 200);
    for (let n = 0; n < 30_000; n++) note(`made up ${n}`, `8193:3512:1:${n}`, 200);
    for (let n = 0; n < 50; n++) assert.ok(known.find(`user ${n}`)?.isProven, `user ${n}`);
  });

  it('of the tools of a credential is 50 names, and none once it is proven; the last ones stay accepted', () => {
    const known = createKnownCallers(() => 0);
    const toolsOf = (id: string) => known.find(id)?.tools.size;
    const note = (id: string, tool: Called['tool'], status: number) => {
      const caller = { ...aCaller(id, '192.0.2.1'), credential: known.find(id) };
      known.noteAnswer({ caller, tool, server: { workspaceId: 'ours' } }, request, status);
    };
    const isAccepted = (name: string) => {
      const caller = { ...aCaller('agent', '192.0.2.1'), credential: known.find('agent') };
      known.grade(caller, { ...aTool, name });
      return caller.network === undefined;
    };
    for (let n = 0; n < 1000; n++) note('agent', { ...aTool, name: `tool-${n}` }, 200);
    assert.equal(toolsOf('agent'), 50);
    assert.deepEqual(['tool-949', 'tool-950', 'tool-999'].map(isAccepted), [false, true, true]);
    note('agent', { ...aTool, name: 'tool-949' }, 200);
    assert.deepEqual(['tool-949', 'tool-950', 'tool-951'].map(isAccepted), [true, false, true]);
    note('other', aTool, 401);
    note('agent', aTool, 200);
    assert.deepEqual([known.find('agent')?.isProven, toolsOf('agent')], [true, 0]);
  });

  it('of refused requests of a tool is not displaced by one who is refused ever again', () => {
    const known = createKnownCallers(() => 0);
    const server = { workspaceId: 'ours' };
    const note = (id: string, network: string, path: string, status: number) => {
      const caller = { ...aCaller(id, network), credential: known.find(id) };
      known.noteAnswer({ caller, tool: aTool, server }, { ...request, path }, status);
    };
    note('expired', '192.0.2.1', '/mine', 401);
    for (let n = 0; n < 50; n++) note(`made up ${n}`, '203.0.113.1', `/made-up/${n}`, 401);
    note('renewed', '192.0.2.1', '/mine', 200);
    assert.equal(known.find('renewed')?.isProven, true);
  });

  it('is dropped from the part that is largest, the oldest first, and then from the next (property)', () => {
    const item = fc.record({ owner: fc.constantFrom('a', 'b', 'c'), n: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(item, { minLength: 1 }), fc.nat(9), (items, most) => {
        const left = [...items];
        const taken = takeOfLargest(left, ({ owner }) => owner, most);
        const of = (owner: string, all = items) => all.filter((one) => one.owner === owner);
        assert.equal(taken.length, Math.min(most, items.length));
        assert.deepEqual(
          left,
          items.filter((one) => !taken.includes(one)),
        );
        const losers = ['a', 'b', 'c'].filter((owner) => of(owner, taken).length > 0);
        for (const loser of losers) {
          assert.deepEqual(of(loser, taken), of(loser).slice(0, of(loser, taken).length));
          for (const owner of ['a', 'b', 'c']) {
            // Who has more than one that loses has lost everything.
            if (of(owner).length > of(loser).length) assert.equal(of(owner, left).length, 0);
          }
        }
      }),
    );
  });

  it('is dropped from many small parts in one go, so that a full list is not searched for each new one', () => {
    const waiting = Array.from({ length: 20_001 }, (_, n) => ({ owner: String(n % 2000) }));
    assert.equal(takeOfLargest(waiting, ({ owner }) => owner, 250).length, 250);
    assert.equal(waiting.length, 19_751);
  });

  it('is limited by number and by size: of what nobody owns, that which was not used for longest is dropped (property)', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
    const size = fc.integer({ min: 1, max: 11 });
    const step = fc.oneof(fc.record({ key, size }), fc.record({ key, size: fc.constant(undefined) }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        const [max, maxSize] = [4, 10];
        const memory = createOwnedMemory<{ size: number }>({
          max,
          maxSize,
          sizeOf: (value) => value.size - 1,
          ownerOf: () => undefined,
        });
        let kept: { key: string; size: number }[] = [];
        const total = () => kept.reduce((sum, one) => sum + one.size, 0);
        for (const { key, size } of steps) {
          const before = kept.find((one) => one.key === key);
          assert.equal(size === undefined ? memory.get(key)?.size : memory.peek(key)?.size, before?.size);
          kept = kept.filter((one) => one !== before);
          const now = size === undefined ? before : { key, size };
          if (size !== undefined) memory.set(key, { size });
          if (now && now.size <= maxSize) kept.push(now);
          while (kept.length > max || total() > maxSize) kept.shift();
          assert.deepEqual(
            [...memory.keys()],
            kept.map((one) => one.key),
          );
        }
      }),
    );
  });
});

describe('[find A6] circuits', () => {
  const call = (circuits: ReturnType<typeof createCircuits>, origin: number, caller: number) =>
    circuits.callerOf(circuits.of('one', `https://${origin}.example`), { id: `key_${caller}`, network: undefined });
  const sizes = (circuits: ReturnType<typeof createCircuits>) => [...circuits.all()].map(({ callers }) => callers.size);

  it('forget callers that have not called lately, of upstreams that others call as well', () => {
    let now = 0;
    const circuits = createCircuits(() => now);
    for (let origin = 0; origin < 199; origin++)
      for (let caller = 0; caller < 50; caller++) noteSuccess(call(circuits, origin, caller), now);
    assert.equal(sizes(circuits).length, 199);
    now += windowMs / 2;
    for (let origin = 0; origin < 3; origin++) noteSuccess(call(circuits, origin, 0), now);
    now += windowMs / 2 + 2000;
    for (let caller = 0; caller <= 50; caller++) noteSuccess(call(circuits, 199, caller), now);
    assert.deepEqual(sizes(circuits), [1, 1, 1, 51]);
  });

  it('keep callers that are held back, and those whose attempt is under way', () => {
    let now = 0;
    const circuits = createCircuits(() => now);
    call(circuits, 0, 0).openUntil = 3 * windowMs;
    call(circuits, 1, 1).isTried = true;
    for (let caller = 2; caller < 10_000; caller++) call(circuits, caller % 400, caller);
    now += 2 * windowMs;
    call(circuits, 2, 2);
    assert.deepEqual(sizes(circuits), [1, 1, 1]);
  });
});

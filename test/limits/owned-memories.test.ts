import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { UpstreamRequest } from '../../src/domain/request/upstream-request.ts';
import type { Called } from '../../src/gateway/callers/caller.ts';
import { createKnownCallers } from '../../src/gateway/callers/known-callers.ts';

/** A memory of the process: it keeps the nth value of an owner, and says whether it still has it. */
type Memory = {
  keep(owner: string, n: number): void;
  has(owner: string, n: number): boolean;
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

const memories: [name: string, create: () => Memory][] = [
  ['accepted credentials of callers', () => knownCallers(false)],
  ['proven credentials of callers', () => knownCallers(true)],
];
/** More than the memory keeps. */
const flood = 30_000;

describe('[find A6] what a process remembers', () => {
  for (const [name, create] of memories) {
    it(`of ${name}: a flood of one owner displaces its own`, () => {
      const memory = create();
      for (let n = 0; n < 20; n++) memory.keep('victim', n);
      for (let n = 0; n < flood; n++) memory.keep('flooder', n);
      for (let n = 20; n < 40; n++) memory.keep('victim', n);
      for (let n = 0; n < 40; n++) assert.ok(memory.has('victim', n), `value ${n} of the victim`);
    });
  }
});

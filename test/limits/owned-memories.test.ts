import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Caller } from '../../src/gateway/callers/caller.ts';
import { createVerifiedCallers } from '../../src/gateway/callers/resolve-caller.ts';

/** A cache of the process: stores the nth value of an owner, and reports if it still has it. */
type Memory = {
  keep(owner: string, n: number): void;
  has(owner: string, n: number): boolean;
};

/** Stores credentials of callers of one server per workspace, each from its own address. See `known-callers.ts`. */
function knownCallers(): Memory {
  const known = createVerifiedCallers(() => 0);
  return {
    keep(owner, n) {
      const network = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
      known.recordResponse({ id: `${owner} ${n}`, network } as Caller, owner, 200);
    },
    has: (owner, n) => known.has(`${owner} ${n}`),
  };
}

const memories: [name: string, create: () => Memory][] = [['verified caller credentials', knownCallers]];
/** More entries than the cache holds. */
const flood = 30_000;

describe('[find A6] caches of a process', () => {
  for (const [name, create] of memories) {
    it(`evict only the entries of the owner that floods the cache: ${name}`, () => {
      const memory = create();
      for (let n = 0; n < 20; n++) memory.keep('victim', n);
      for (let n = 0; n < flood; n++) memory.keep('flooder', n);
      for (let n = 20; n < 40; n++) memory.keep('victim', n);
      for (let n = 0; n < 40; n++) assert.ok(memory.has('victim', n), `value ${n} of the victim`);
    });
  }
});

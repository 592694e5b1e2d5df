import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Caller } from '../../src/gateway/callers/caller.ts';
import { createVerifiedCallers } from '../../src/gateway/callers/resolve-caller.ts';

/** A memory of the process: it keeps the nth value of an owner, and says whether it still has it. */
type Memory = {
  keep(owner: string, n: number): void;
  has(owner: string, n: number): boolean;
};

/** Credentials that callers bring to one server of each workspace, each from an address of its own; see `known-callers.ts`. */
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

const memories: [name: string, create: () => Memory][] = [['known credentials of callers', knownCallers]];
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

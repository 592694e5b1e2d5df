import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Caller } from './caller.ts';
import { createVerifiedCallers } from './resolve-caller.ts';

/** A cache of the process: stores the nth value of an owner, and reports if it still has it. */
type OwnedCache = {
  store(owner: string, n: number): void;
  has(owner: string, n: number): boolean;
};

/** Stores credentials of callers of one server per workspace, each from its own address. See `known-callers.ts`. */
function createVerifiedCallerCache(): OwnedCache {
  const verifiedCallers = createVerifiedCallers(() => 0);
  return {
    store(owner, n) {
      const network = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
      verifiedCallers.recordResponse({ id: `${owner} ${n}`, network } as Caller, owner, 200);
    },
    has: (owner, n) => verifiedCallers.has(`${owner} ${n}`),
  };
}

const caches: [name: string, create: () => OwnedCache][] = [['verified caller credentials', createVerifiedCallerCache]];
/** More entries than the cache holds. */
const floodCount = 30_000;

describe('[find A6] caches of a process', () => {
  for (const [name, create] of caches) {
    it(`evict only the entries of the owner that floods the cache: ${name}`, () => {
      const cache = create();
      for (let n = 0; n < 20; n++) cache.store('victim', n);
      for (let n = 0; n < floodCount; n++) cache.store('flooder', n);
      for (let n = 20; n < 40; n++) cache.store('victim', n);
      for (let n = 0; n < 40; n++) assert.ok(cache.has('victim', n), `value ${n} of the victim`);
    });
  }
});

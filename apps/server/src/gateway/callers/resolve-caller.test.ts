import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Caller } from './caller.ts';
import { createVerifiedCallers, maxVerifiedCallers } from './resolve-caller.ts';

/** More entries than the cache holds. */
const floodCount = maxVerifiedCallers + 3000;

describe('[find A6] cached credentials of verified callers', () => {
  it('are evicted only for the workspace whose server floods the cache', () => {
    const verifiedCallers = createVerifiedCallers(() => 0);
    /** Stores the credentials of callers, each from its own address. */
    const store = (owner: string, from: number, to: number) => {
      for (let n = from; n < to; n++) {
        const caller = { id: `${owner} ${n}`, network: `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}` } as Caller;
        verifiedCallers.recordResponse(caller, owner, 200);
      }
    };
    store('victim', 0, 20);
    store('flooder', 0, floodCount);
    store('victim', 20, 40);
    for (let n = 0; n < 40; n++) assert.ok(verifiedCallers.has(`victim ${n}`), `credential ${n} of the victim`);
  });
});

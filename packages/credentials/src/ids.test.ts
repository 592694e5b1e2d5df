import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { measureReachableBytes } from '../../../test/support/collect-garbage.ts';
import { hashPresentedSecret, hashSecret } from './ids.ts';

describe('the hash of a presented secret', () => {
  it('is the hash of the secret, also when it is cached', () => {
    for (const secret of ['a', 'b', 'a', 'b']) assert.equal(hashPresentedSecret(secret), hashSecret(secret));
  });

  it('takes a few megabytes of memory for any number of short secrets', () => {
    const before = measureReachableBytes();
    for (let count = 0; count < 250_000; count++) hashPresentedSecret(count.toString(36));
    const growth = measureReachableBytes() - before;
    assert.ok(growth < 8 * 1024 * 1024, `${growth} bytes`);
  });
});

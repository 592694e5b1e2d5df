import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { measureAll, tooMuch } from './support/yardstick/yardstick.ts';

describe('the yardstick', () => {
  it('has no request that runs more of the code than before, and no more lines of it', async () => {
    const risen = tooMuch(await measureAll());
    assert.equal(risen.length, 0, risen.join('\n'));
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { measureAll, tooMuch } from './support/yardstick/yardstick.ts';

describe('the yardstick', () => {
  it('finds no request that executes more code than its budget, and no folder with more lines', async () => {
    const risen = tooMuch(await measureAll());
    assert.equal(risen.length, 0, risen.join('\n'));
  });
});

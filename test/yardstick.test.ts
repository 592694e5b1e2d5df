import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { describeOverruns, measureAll } from './support/yardstick/yardstick.ts';

describe('the yardstick', () => {
  it('finds no request that executes more code than its budget, and no folder with more lines', async () => {
    const overruns = describeOverruns(await measureAll());
    assert.equal(overruns.length, 0, overruns.join('\n'));
  });
});

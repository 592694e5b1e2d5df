import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { whileSignalsWait } from '../../src/cli/profiles/credentials.ts';

describe('work during which signals wait', () => {
  it('[ship 7] leaves one listener behind, however often a command that goes on renews its login', async () => {
    const before = process.listenerCount('SIGINT');
    for (let renewal = 0; renewal < 20; renewal++) await whileSignalsWait(async () => undefined);
    assert.equal(process.listenerCount('SIGINT'), before + 1);
  });
});

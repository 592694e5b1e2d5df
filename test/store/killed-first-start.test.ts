import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createRandomInt, seed } from '../support/seeded-numbers.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { spawnToolhost, waitForExit } from '../support/toolhost/toolhost-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('a first start', () => {
  const parent = useFixtures().folder();
  let child: ChildToolhost | undefined;
  afterEach(() => child?.end('SIGKILL'));

  it('[sec G6] succeeds after a first start that was killed at any moment', async () => {
    const randomBelow = createRandomInt(seed);
    for (let round = 0; round < 20; round++) {
      const env = { DATA_DIR: join(parent, `${round}`), LOG_LEVEL: 'warn' };
      if (round % 3 === 0) await (await startChildToolhost(env)).end('SIGKILL');
      else {
        const startingProcess = spawnToolhost(['serve'], { env: { ...env, PORT: '0', DEMO: '0' } });
        await delay(randomBelow(1500));
        startingProcess.kill('SIGKILL');
        await waitForExit(startingProcess);
      }
      child = await startChildToolhost(env).catch((cause) => {
        throw new Error(`TEST_SEED=${seed}, start ${round + 1}`, { cause });
      });
      assert.equal(await child.end(), 0);
    }
  });
});

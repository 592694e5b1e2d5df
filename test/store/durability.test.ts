import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { getRunCount } from '../sets.ts';
import { ChangeLedger, waitForRandomMoment } from '../support/store/change-ledger.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Number of kills. The complete run of sec G5 uses `KILL_ROUNDS=200`. */
const rounds = Number(process.env.KILL_ROUNDS ?? getRunCount(10));
const writers = ['a', 'b', 'c'];

describe('durability on SQLite', () => {
  const dataDir = useFixtures().folder();

  it(`[sec G5] keeps everything that was acknowledged when the service is killed at ${rounds} moments under writes`, async (t) => {
    const env = { DATA_DIR: dataDir, MASTER_KEY: randomBytes(32).toString('base64'), LOG_LEVEL: 'warn' };
    const toolhost = await startToolhost({ dataDir, env });
    const key = await toolhost.createKey();
    await toolhost.stop();
    let child: ChildToolhost | undefined;
    t.after(() => child?.end('SIGKILL'));
    const ledger = new ChangeLedger();
    for (let round = 0; round < rounds; round += 1) {
      child = await startChildToolhost(env);
      const { url } = child;
      await ledger.check(url, key);
      let isOver = false;
      const writes = writers.map((name) => ledger.write(url, key, `${name}${round}`, () => isOver));
      await waitForRandomMoment(round, ledger);
      assert.equal(await child.end('SIGKILL'), 'SIGKILL');
      isOver = true;
      await Promise.all(writes);
    }
    child = await startChildToolhost(env);
    await ledger.check(child.url, key);
    assert.equal(await child.end(), 0);
    assert.ok(ledger.acknowledged > 0, String(ledger.acknowledged));
    const file = new DatabaseSync(join(dataDir, 'toolhost.sqlite'));
    assert.deepEqual({ ...file.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
    assert.deepEqual(file.prepare('pragma foreign_key_check').all(), []);
    file.close();
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { ChangeLedger, waitForRandomMoment } from '../support/store/change-ledger.ts';
import { startDedicatedPostgres } from '../support/store/postgres.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/** Number of kills; sec G5 requires `KILL_ROUNDS=200`. */
const rounds = Number(process.env.KILL_ROUNDS ?? 10);
const writers = ['a', 'b', 'c'];

describe('durability on PostgreSQL', () => {
  const fixtures = useFixtures();
  const dataDir = fixtures.folder();
  const { postgres, database } = usePostgres(fixtures, startDedicatedPostgres);

  it(`[sec G5] keeps everything it acknowledged when service or database is killed with kill -9, ${rounds} times`, async (t) => {
    const env = { ...database.env, DATA_DIR: dataDir, LOG_LEVEL: 'warn' };
    const toolhost = await startToolhost({ dataDir, env });
    const key = await toolhost.createKey();
    await toolhost.stop();
    const ledger = new ChangeLedger();
    let service = await startChildToolhost(env);
    t.after(() => service.end('SIGKILL'));
    for (let round = 0; round < rounds; round += 1) {
      let over = false;
      const writing = writers.map((name) => ledger.write(service.url, key, `${name}${round}`, () => over));
      await waitForRandomMoment(round, ledger);
      if (round % 2 === 0) {
        assert.equal(await service.end('SIGKILL'), 'SIGKILL');
        over = true;
        service = await startChildToolhost(env);
      } else {
        await postgres.crash();
        over = true;
        await postgres.restart();
        const headers = { authorization: `Bearer ${key}` };
        await eventually(async () => {
          assert.equal((await fetch(`${service.url}/api/v1/servers`, { headers })).status, 200);
        }, 10_000);
      }
      await Promise.all(writing);
      await ledger.check(service.url, key);
    }
    assert.equal(await service.end(), 0);
    assert.doesNotMatch(service.output(), /"level":[56]0/);
    assert.ok(ledger.acknowledged > 0, String(ledger.acknowledged));
  });
});

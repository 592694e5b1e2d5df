import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { ChangeLedger, waitForRandomMoment } from '../support/store/change-ledger.ts';
import { type DedicatedPostgres, startDedicatedPostgres } from '../support/store/postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';

/** Number of kills; sec G5 requires `KILL_ROUNDS=200`. */
const rounds = Number(process.env.KILL_ROUNDS ?? 10);
const writers = ['a', 'b', 'c'];

describe('durability on PostgreSQL', () => {
  let postgres: DedicatedPostgres;
  let dataDir: string;
  let env: Record<string, string>;
  let key: string;
  let child: ChildToolhost | undefined;
  before(async () => {
    postgres = await startDedicatedPostgres();
    dataDir = mkdtempSync(join(tmpdir(), 'toolhost-durability-'));
    env = {
      DATA_DIR: dataDir,
      DATABASE_URL: await postgres.createDatabase(),
      MASTER_KEY: randomBytes(32).toString('base64'),
      LOG_LEVEL: 'warn',
    };
    const toolhost = await startToolhost({ dataDir, env });
    key = await toolhost.createKey();
    await toolhost.stop();
  });
  after(async () => {
    await child?.end('SIGKILL');
    await postgres.stop();
    rmSync(dataDir, { recursive: true });
  });

  it(`[sec G5] keeps everything it acknowledged when service or database is killed with kill -9, ${rounds} times`, async () => {
    const ledger = new ChangeLedger();
    let service = await startChildToolhost(env);
    child = service;
    for (let round = 0; round < rounds; round += 1) {
      let over = false;
      const writing = writers.map((name) => ledger.write(service.url, key, `${name}${round}`, () => over));
      await waitForRandomMoment(round, ledger);
      if (round % 2 === 0) {
        assert.equal(await service.end('SIGKILL'), 'SIGKILL');
        over = true;
        service = await startChildToolhost(env);
        child = service;
      } else {
        await postgres.crash();
        over = true;
        await postgres.restart();
        await eventually(
          async () =>
            assert.equal(
              (await fetch(`${service.url}/api/v1/servers`, { headers: { authorization: `Bearer ${key}` } })).status,
              200,
            ),
          10_000,
        );
      }
      await Promise.all(writing);
      await ledger.check(service.url, key);
    }
    assert.equal(await service.end(), 0);
    assert.doesNotMatch(service.output(), /"level":[56]0/);
    assert.ok(ledger.acknowledged > 0, String(ledger.acknowledged));
  });
});

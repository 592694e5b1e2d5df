import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { openDatabase } from '../../src/store/database.ts';
import type { Db } from '../../src/store/db.ts';
import { eventually } from '../support/eventually.ts';
import { Ledger } from '../support/store/ledger.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/store/postgres.ts';
import { usualOptions } from '../support/store/usual-options.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';

/** Ten with every run of the tests; `KILL_ROUNDS=200` for the whole of sec G5. */
const rounds = Number(process.env.KILL_ROUNDS ?? 10);
const writers = ['a', 'b', 'c'];

/** A key for a service that is yet to be started. */
async function prepare(dataDir: string, env: Record<string, string>): Promise<string> {
  const toolhost = await startToolhost({ dataDir, env });
  const key = await toolhost.key();
  await toolhost.stop();
  return key;
}

/** In half of the rounds a change is acknowledged before it: on a busy machine that may take longer than the rest. */
async function someMoment(round: number, ledger: Ledger): Promise<void> {
  const before = ledger.acknowledged;
  if (round % 4 < 2) await eventually(() => assert.ok(ledger.acknowledged > before));
  await delay(randomInt(20, 250));
}

describe('durability on SQLite', () => {
  let dataDir: string;
  let env: Record<string, string>;
  let key: string;
  let child: ChildToolhost | undefined;
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'toolhost-durability-'));
    env = { DATA_DIR: dataDir, MASTER_KEY: randomBytes(32).toString('base64'), LOG_LEVEL: 'warn' };
    key = await prepare(dataDir, env);
  });
  after(async () => {
    await child?.end('SIGKILL');
    rmSync(dataDir, { recursive: true });
  });

  const openApart = () => openDatabase({ ...usualOptions, postgres: undefined, file: join(dataDir, 'apart.sqlite') });

  it(`[sec G5] kill -9 at ${rounds} moments under writes: everything acknowledged is there`, async () => {
    const ledger = new Ledger();
    for (let round = 0; round < rounds; round += 1) {
      child = await startChildToolhost(env);
      const { url } = child;
      await ledger.check(url, key);
      let over = false;
      const writing = writers.map((name) => ledger.write(url, key, `${name}${round}`, () => over));
      await someMoment(round, ledger);
      assert.equal(await child.end('SIGKILL'), 'SIGKILL');
      over = true;
      await Promise.all(writing);
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

  it('[sec G5] what is acknowledged waits for the disk; call records do not', async () => {
    const database = await openApart();
    const synchronous = (db: Db) =>
      sql<{ synchronous: number }>`pragma synchronous`.execute(db).then(({ rows }) => rows[0]?.synchronous);
    // 2 is FULL, 1 is NORMAL (SQLite, PRAGMA synchronous).
    assert.equal(await synchronous(database.db), 2);
    assert.equal(await synchronous(database.records), 1);
    await database.close();
  });

  it('a thread that ends in the middle of a transaction fails it at once', async () => {
    const database = await openApart();
    const cut = database.records.transaction().execute(async (transaction) => {
      await sql`select 1`.execute(transaction);
      const closed = database.records.destroy();
      await assert.rejects(sql`select 2`.execute(transaction), /has ended/);
      await closed;
    });
    await assert.rejects(cut);
    await database.db.destroy();
  });

  it('a process ends only after the writes of its thread', async () => {
    const program = `
      const { STORE, FILE: file, MIGRATIONS: migrations } = process.env;
      const { openDatabase } = await import(STORE);
      const database = await openDatabase({ file, migrations, exclusive: true, version: '0.1.0', now: Date.now, onError() {}, onFault() {}, onWarning() {} });
      database.records.selectFrom('calls').selectAll().execute();
      await new Promise(setImmediate);
      await database.close();
      console.log('closed');`;
    const root = join(import.meta.dirname, '..', '..');
    const places = {
      STORE: join(root, 'src', 'store', 'database.ts'),
      FILE: join(dataDir, 'ending.sqlite'),
      MIGRATIONS: join(root, 'migrations'),
    };
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
      env: { ...process.env, ...places },
    });
    assert.equal(stdout, 'closed\n');
  });

  it('[sec E7] a second process refuses the file with a sentence, and the first goes on', async () => {
    const first = await startChildToolhost(env);
    child = first;
    await assert.rejects(startChildToolhost(env), (error: Error) => {
      assert.match(
        error.message,
        /another toolhost process serves from \S+toolhost\.sqlite; stop it, or give this one its own DATA_DIR/,
      );
      assert.doesNotMatch(error.message, /\n\s+at /);
      return true;
    });
    assert.equal((await fetch(`${first.url}/readyz`)).status, 200);
    assert.equal(await first.end(), 0);
  });
});

describe('durability on PostgreSQL', () => {
  let postgres: OwnPostgres;
  let dataDir: string;
  let env: Record<string, string>;
  let key: string;
  let child: ChildToolhost | undefined;
  before(async () => {
    postgres = await startOwnPostgres();
    dataDir = mkdtempSync(join(tmpdir(), 'toolhost-durability-'));
    env = {
      DATA_DIR: dataDir,
      DATABASE_URL: await postgres.createDatabase(),
      MASTER_KEY: randomBytes(32).toString('base64'),
      LOG_LEVEL: 'warn',
    };
    key = await prepare(dataDir, env);
  });
  after(async () => {
    await child?.end('SIGKILL');
    await postgres.stop();
    rmSync(dataDir, { recursive: true });
  });

  it(`[sec G5] ${rounds} times kill -9 of the service and the database: everything acknowledged is there`, async () => {
    const ledger = new Ledger();
    let service = await startChildToolhost(env);
    child = service;
    for (let round = 0; round < rounds; round += 1) {
      let over = false;
      const writing = writers.map((name) => ledger.write(service.url, key, `${name}${round}`, () => over));
      await someMoment(round, ledger);
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

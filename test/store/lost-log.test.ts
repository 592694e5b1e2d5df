import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isFullSuite } from '../sets.ts';
import { assertNone } from '../support/assert-lists.ts';
import { eventually } from '../support/eventually.ts';
import { createRandomInt, seed } from '../support/seeded-numbers.ts';
import { AcknowledgedServers } from '../support/store/acknowledged-servers.ts';
import {
  buildOlderFrames,
  damageBytes,
  findTransactions,
  getFrameBytes,
  withTrailingBytes,
} from '../support/store/wal-file.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import {
  runToolhostCommand,
  runToolhostJson,
  spawnToolhost,
  waitForExit,
} from '../support/toolhost/toolhost-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const rounds = Number(process.env.KILL_ROUNDS ?? (isFullSuite ? 100 : 4));
const writers = ['a', 'b', 'c'];
const createKeyArgs = (name: string) => ['keys', 'create', '--name', name, '--scopes', 'manage,call'];

/** A killed service: its log, and the environment of the next start. */
type KilledService = { log: string; env: Record<string, string>; randomBelow: (bound: number) => number };

/** Damages the log in a transaction that is counted from the end. */
function damageTransaction({ log, randomBelow }: KilledService, fromEnd: (count: number) => number): void {
  const content = readFileSync(log);
  const transactions = findTransactions(content);
  const { from, to } =
    transactions.at(-fromEnd(transactions.length)) ?? assert.fail('the log has too few transactions');
  const at = from + randomBelow(to - from);
  writeFileSync(log, damageBytes(content, at, Math.min(1 + randomBelow(10_000), to - at)));
}

const lossKinds: { [title: string]: (killed: KilledService) => void } = {
  'is deleted': ({ log }) => rmSync(log),
  'is damaged in its first half': (killed) =>
    damageTransaction(killed, (count) => count - killed.randomBelow(Math.floor(count / 2)) || count),
  'is emptied': ({ log }) => truncateSync(log),
  'is damaged before its last two transactions': (killed) => damageTransaction(killed, () => 3),
  'has another header': ({ log, randomBelow }) =>
    writeFileSync(log, damageBytes(readFileSync(log), randomBelow(32), 1)),
  'ends in its first frame': ({ log, randomBelow }) => truncateSync(log, randomBelow(getFrameBytes(readFileSync(log)))),
};

const createKeys = async (env: Record<string, string>, names: string[]) => {
  for (const { code, stderr } of await Promise.all(
    names.map((name) => runToolhostCommand(createKeyArgs(name), { env, usesProcess: true })),
  ))
    assert.equal(code, 0, stderr);
};

/** Events between a kill and the next start that lose nothing, or at most the last transaction. */
const endingKinds: { [title: string]: (killed: KilledService) => unknown } = {
  'with the log as it was': () => undefined,
  'after a command': ({ env }) => createKeys(env, ['one']),
  'after two commands at the same time': ({ env }) => createKeys(env, ['one', 'two']),
  'with half of a frame': ({ log, randomBelow }) => {
    const content = readFileSync(log);
    const half = content.subarray(32, 32 + 1 + randomBelow(getFrameBytes(content) - 1));
    writeFileSync(log, withTrailingBytes(content, half));
  },
  'with bytes after the last frame': ({ log, randomBelow }) =>
    writeFileSync(log, withTrailingBytes(readFileSync(log), randomBytes(1 + randomBelow(20_000)))),
  'with frames of an older log': ({ log }) => {
    const content = readFileSync(log);
    writeFileSync(log, withTrailingBytes(content, buildOlderFrames(content)));
  },
  'with damage in the last transaction': (killed) => {
    // Frames of a transaction that had begun would prove that the last one was acknowledged.
    truncateSync(killed.log, findTransactions(readFileSync(killed.log)).at(-1)?.to);
    damageTransaction(killed, () => 1);
  },
  'after a stop that was killed': async ({ env, randomBelow }) => {
    const child = await startChildToolhost(env);
    child.signal('SIGTERM');
    await delay(randomBelow(400));
    await child.end('SIGKILL');
  },
  'after a command that was killed': async ({ env, randomBelow }) => {
    const command = spawnToolhost(createKeyArgs('killed'), { env });
    // On a fast machine, the command has exited before it is killed.
    const ended = waitForExit(command);
    await delay(300 + randomBelow(700));
    command.kill('SIGKILL');
    await ended;
  },
};

/** Reads the files of a folder, which does not change while no process runs. */
function readFiles(folder: string): Map<string, Buffer> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** Number of rounds per test, so that none reaches the time limit on a busy machine. */
const roundsPerTest = 20;

describe('a start after a service was killed', () => {
  const dataDir = useFixtures().folder();
  const file = join(dataDir, 'toolhost.sqlite');
  let env: Record<string, string>;
  let key: string;
  let child: ChildToolhost;
  const acknowledged = new AcknowledgedServers();
  const randomBelow = createRandomInt(seed);
  before(async () => {
    const MASTER_KEY = randomBytes(32).toString('base64');
    env = { DATA_DIR: dataDir, MASTER_KEY, LOG_LEVEL: 'warn', QUOTAS: 'writes=0,servers=0' };
    ({ key } = await runToolhostJson<{ key: string }>(createKeyArgs('load'), { env }));
    child = await startChildToolhost(env);
  });
  after(() => child?.end('SIGKILL'));

  /** Creates servers until the service is killed at a random moment. */
  const killUnderLoad = async (round: number) => {
    // The service does so above 16 MB, and afterwards a loss affects only later transactions.
    if (randomBelow(2) === 0 || statSync(`${file}-wal`).size > 4_000_000) restartLog(file);
    const before = acknowledged.count;
    const writes = writers.map((name) => acknowledged.create(child.url, key, `${name}${round}`));
    await eventually(() => assert.ok(acknowledged.count >= before + 8));
    await delay(randomBelow(200));
    await child.end('SIGKILL');
    await Promise.all(writes);
    assert.deepEqual(acknowledged.findMissing(dataDir), []);
  };

  const assertLossRefused = async (loss: string, killed: KilledService) => {
    const intactFiles = readFiles(dataDir);
    lossKinds[loss]?.(killed);
    const damagedFiles = readFiles(dataDir);
    await assert.rejects(async () => {
      child = await startChildToolhost(env);
    }, /write-ahead log \S+-wal is (missing|damaged).* add --accept-loss/);
    assert.deepEqual(readFiles(dataDir), damagedFiles, 'a refused start changed a file');
    // The last transactions may not be creations of servers.
    if (loss !== 'is damaged before its last two transactions')
      assert.notDeepEqual(acknowledged.findMissing(dataDir), []);
    for (const [name, content] of intactFiles) writeFileSync(join(dataDir, name), content);
  };

  const assertStartAfter = async (ending: string, killed: KilledService) => {
    await endingKinds[ending]?.(killed);
    const missing = acknowledged.findMissing(dataDir);
    assert.ok(missing.length <= (ending === 'with damage in the last transaction' ? 1 : 0), missing.join());
    acknowledged.forget(missing);
    child = await startChildToolhost(env);
    assert.deepEqual(acknowledged.findMissing(dataDir), []);
  };

  for (let first = 0; first < rounds; first += roundsPerTest) {
    const last = Math.min(first + roundsPerTest, rounds);
    it(`[sec G6] refuses a write-ahead log with losses and accepts one without, kills ${first + 1} to ${last} under load`, async () => {
      for (let round = first; round < last; round++) {
        const [loss = '', ending = ''] = [lossKinds, endingKinds].map((kinds) => {
          const names = Object.keys(kinds);
          return names[(seed + round) % names.length];
        });
        const killed = { log: `${file}-wal`, env, randomBelow };
        try {
          await killUnderLoad(round);
          await assertLossRefused(loss, killed);
          await assertStartAfter(ending, killed);
        } catch (error) {
          throw new Error(`TEST_SEED=${seed}, kill ${round + 1}: the log ${loss}; a start ${ending}`, { cause: error });
        }
      }
    });
  }

  it('[sec G6] finds no write-ahead log and no marker file after a service that was stopped properly', async () => {
    assert.equal(await child.end(), 0);
    assertNone(readdirSync(dataDir), (name) => name.includes('-wal'));
  });
});

/**
 * Makes the next transaction overwrite the log from its beginning, so that frames of this log follow those of the next
 * one.
 */
function restartLog(file: string): void {
  const database = new DatabaseSync(file, { timeout: 20_000 });
  database.exec('pragma wal_checkpoint(restart)');
  database.close();
}

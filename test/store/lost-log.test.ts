import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { isWhole } from '../sets.ts';
import { eventually } from '../support/eventually.ts';
import { numbersOf, seed } from '../support/seeded-numbers.ts';
import { Acknowledged } from '../support/store/acknowledged.ts';
import { frameBytesOf, olderFrames, transactionsOf, withBytesAfter, withDamage } from '../support/store/log-file.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { beginToolhost, endOf, toolhost, toolhostJson } from '../support/toolhost/toolhost-command.ts';

const rounds = Number(process.env.KILL_ROUNDS ?? (isWhole ? 100 : 4));
const writers = ['a', 'b', 'c'];
const keyNamed = (name: string) => ['keys', 'create', '--name', name, '--scopes', 'manage,call'];

/** A killed service: its log, and the environment of the next start. */
type Killed = { log: string; env: Record<string, string>; below: (bound: number) => number };

/** Damages the log in a transaction that is counted from the end. */
function damage({ log, below }: Killed, fromEnd: (count: number) => number): void {
  const content = readFileSync(log);
  const transactions = transactionsOf(content);
  const { from, to } =
    transactions.at(-fromEnd(transactions.length)) ?? assert.fail('the log has too few transactions');
  const at = from + below(to - from);
  writeFileSync(log, withDamage(content, at, Math.min(1 + below(10_000), to - at)));
}

const losses: { [how: string]: (killed: Killed) => void } = {
  'is deleted': ({ log }) => rmSync(log),
  'is damaged in its first half': (killed) =>
    damage(killed, (count) => count - killed.below(Math.floor(count / 2)) || count),
  'is emptied': ({ log }) => truncateSync(log),
  'is damaged before its last two transactions': (killed) => damage(killed, () => 3),
  'has another header': ({ log, below }) => writeFileSync(log, withDamage(readFileSync(log), below(32), 1)),
  'ends in its first frame': ({ log, below }) => truncateSync(log, below(frameBytesOf(readFileSync(log)))),
};

const createKeys = async (env: Record<string, string>, names: string[]) => {
  for (const { code, stderr } of await Promise.all(
    names.map((name) => toolhost(keyNamed(name), { env, isChild: true })),
  ))
    assert.equal(code, 0, stderr);
};

/** Events between a kill and the next start that lose nothing, or at most the last transaction. */
const endings: { [how: string]: (killed: Killed) => unknown } = {
  'with the log as it was': () => undefined,
  'after a command': ({ env }) => createKeys(env, ['one']),
  'after two commands at the same time': ({ env }) => createKeys(env, ['one', 'two']),
  'with half of a frame': ({ log, below }) => {
    const content = readFileSync(log);
    const half = content.subarray(32, 32 + 1 + below(frameBytesOf(content) - 1));
    writeFileSync(log, withBytesAfter(content, half));
  },
  'with bytes after the last frame': ({ log, below }) =>
    writeFileSync(log, withBytesAfter(readFileSync(log), randomBytes(1 + below(20_000)))),
  'with frames of an older log': ({ log }) => {
    const content = readFileSync(log);
    writeFileSync(log, withBytesAfter(content, olderFrames(content)));
  },
  'with damage in the last transaction': (killed) => {
    // Frames of a transaction that had begun would prove that the last one was acknowledged.
    truncateSync(killed.log, transactionsOf(readFileSync(killed.log)).at(-1)?.to);
    damage(killed, () => 1);
  },
  'after a stop that was killed': async ({ env, below }) => {
    const child = await startChildToolhost(env);
    child.signal('SIGTERM');
    await delay(below(400));
    await child.end('SIGKILL');
  },
  'after a command that was killed': async ({ env, below }) => {
    const command = beginToolhost(keyNamed('killed'), { env });
    // On a fast machine, the command has exited before it is killed.
    const ended = endOf(command);
    await delay(300 + below(700));
    command.kill('SIGKILL');
    await ended;
  },
};

/** Reads the files of a folder, which does not change while no process runs. */
function contentOf(folder: string): Map<string, Buffer> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** Number of rounds per test, so that none reaches the time limit on a busy machine. */
const roundsOfTest = 20;

describe('a start after a service was killed', () => {
  let dataDir: string;
  let env: Record<string, string>;
  let file: string;
  let key: string;
  let child: ChildToolhost;
  const acknowledged = new Acknowledged();
  const below = numbersOf(seed);
  before(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'toolhost-log-'));
    file = join(dataDir, 'toolhost.sqlite');
    const MASTER_KEY = randomBytes(32).toString('base64');
    env = { DATA_DIR: dataDir, MASTER_KEY, LOG_LEVEL: 'warn', QUOTAS: 'writes=0,servers=0' };
    ({ key } = await toolhostJson<{ key: string }>(keyNamed('load'), { env }));
    child = await startChildToolhost(env);
  });
  after(async () => {
    await child?.end('SIGKILL');
    rmSync(dataDir, { recursive: true });
  });

  /** Creates servers until the service is killed at a random moment. */
  const killUnderLoad = async (round: number) => {
    // The service does so above 16 MB, and afterwards a loss affects only later transactions.
    if (below(2) === 0 || statSync(`${file}-wal`).size > 4_000_000) restartLog(file);
    const before = acknowledged.count;
    const writing = writers.map((name) => acknowledged.create(child.url, key, `${name}${round}`));
    await eventually(() => assert.ok(acknowledged.count >= before + 8));
    await delay(below(200));
    await child.end('SIGKILL');
    await Promise.all(writing);
    assert.deepEqual(acknowledged.missingIn(dataDir), []);
  };

  const refuseLoss = async (loss: string, killed: Killed) => {
    const whole = contentOf(dataDir);
    losses[loss]?.(killed);
    const lost = contentOf(dataDir);
    await assert.rejects(async () => {
      child = await startChildToolhost(env);
    }, /write-ahead log \S+-wal is (missing|damaged).* add --accept-loss/);
    assert.deepEqual(contentOf(dataDir), lost, 'a refused start changed a file');
    // The last transactions may not be creations of servers.
    if (loss !== 'is damaged before its last two transactions')
      assert.notDeepEqual(acknowledged.missingIn(dataDir), []);
    for (const [name, content] of whole) writeFileSync(join(dataDir, name), content);
  };

  const startAfter = async (ending: string, killed: Killed) => {
    await endings[ending]?.(killed);
    const missing = acknowledged.missingIn(dataDir);
    assert.ok(missing.length <= (ending === 'with damage in the last transaction' ? 1 : 0), missing.join());
    acknowledged.forget(missing);
    child = await startChildToolhost(env);
    assert.deepEqual(acknowledged.missingIn(dataDir), []);
  };

  for (let first = 0; first < rounds; first += roundsOfTest) {
    const last = Math.min(first + roundsOfTest, rounds);
    it(`[sec G6] refuses a write-ahead log with losses and accepts one without, kills ${first + 1} to ${last} under load`, async () => {
      for (let round = first; round < last; round++) {
        const [loss = '', ending = ''] = [losses, endings].map((kinds) => {
          const names = Object.keys(kinds);
          return names[(seed + round) % names.length];
        });
        const killed = { log: `${file}-wal`, env, below };
        try {
          await killUnderLoad(round);
          await refuseLoss(loss, killed);
          await startAfter(ending, killed);
        } catch (error) {
          throw new Error(`TEST_SEED=${seed}, kill ${round + 1}: the log ${loss}; a start ${ending}`, { cause: error });
        }
      }
    });
  }

  it('[sec G6] finds no write-ahead log and no marker file after a service that was stopped properly', async () => {
    assert.equal(await child.end(), 0);
    assert.deepEqual(
      readdirSync(dataDir).filter((name) => name.includes('-wal')),
      [],
    );
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

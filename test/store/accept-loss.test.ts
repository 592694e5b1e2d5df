import assert from 'node:assert/strict';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import { assertNone } from '../support/assert-lists.ts';
import { damageBytes, findTransactions } from '../support/store/wal-file.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const toWords = (text: string) => text.split(' ');
const listKeys = ['keys', 'list'];
const createKeyArgs = (name: string) => ['keys', 'create', '--name', name, '--scopes', 'call'];
const refusalPattern =
  /write-ahead log \S+toolhost\.sqlite-wal is missing or cannot be read.* To start without these changes, add --accept-loss\.\n$/;

describe('a SQLite database with a lost write-ahead log', () => {
  const parent = useFixtures().folder();
  /** Files of a killed service: the first key is in the database, and the second only in the log. */
  const killedDataDir = join(parent, 'left');
  const backup = join(parent, 'backup');
  let folder: string;
  let file: string;
  let env: Record<string, string>;
  let child: ChildToolhost | undefined;

  const run = async (args: readonly string[], at = env) => {
    const { code, stdout, stderr } = await runToolhostCommand(args, { env: at, usesProcess: true });
    assert.equal(code, 0, stderr);
    return { stdout, stderr };
  };
  const start = async (args = ['serve'], more = {}) => {
    child = await startChildToolhost({ ...env, ...more }, undefined, args);
    return child;
  };
  const damageWriteAheadLog = () => {
    const log = readFileSync(`${file}-wal`);
    const { from } = findTransactions(log).at(-3) ?? assert.fail('the log has too few transactions');
    writeFileSync(`${file}-wal`, damageBytes(log, from + 100, 10));
  };
  const readFiles = () => readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'base64')]);

  before(async () => {
    const at = { DATA_DIR: killedDataDir, LOG_LEVEL: 'warn' };
    await run(createKeyArgs('in-database'), at);
    await run(['backup', backup], at);
    const killed = await startChildToolhost(at);
    await run(createKeyArgs('in-log'), at);
    await killed.end('SIGKILL');
  });

  beforeEach(() => {
    folder = mkdtempSync(join(parent, 'data-'));
    file = join(folder, 'toolhost.sqlite');
    env = { DATA_DIR: folder, LOG_LEVEL: 'warn' };
    cpSync(killedDataDir, folder, { recursive: true });
  });
  afterEach(() => child?.end('SIGKILL'));

  it('[sec G6] refuses every command that opens the database, and changes no file', async () => {
    rmSync(`${file}-wal`);
    const content = readFiles();
    const operatorCommands = ['limits show', 'quotas show', 'master-key status', 'master-key reseal'];
    const backupArgs = ['backup', join(parent, 'refused')];
    for (const args of [['serve'], listKeys, createKeyArgs('more'), backupArgs, ...operatorCommands.map(toWords)]) {
      const { code, stderr } = await runToolhostCommand(args, { env: { ...env, PORT: '0', DEMO: '0' } });
      assert.equal(code, 1, args.join(' '));
      assert.match(stderr, refusalPattern, args.join(' '));
    }
    assert.deepEqual(readFiles(), content);
    copyFileSync(join(killedDataDir, 'toolhost.sqlite-wal'), `${file}-wal`);
    assert.match((await run(listKeys)).stdout, /in-log/);
  });

  it('[sec G6] serves with --accept-loss, logs the missing changes, and needs no option afterwards', async () => {
    rmSync(`${file}-wal`);
    const acceptingService = await start(['serve', '--accept-loss'], { WORKERS: '2' });
    assert.match(acceptingService.output('stderr'), /is missing or cannot be read, and with it the changes/);
    await run(createKeyArgs('since'));
    await acceptingService.end('SIGKILL');
    const laterService = await start();
    assert.equal(laterService.output('stderr').includes('write-ahead'), false);
    const { stdout } = await run(listKeys);
    assert.deepEqual(
      ['in-database', 'in-log', 'since'].filter((name) => stdout.includes(name)),
      ['in-database', 'since'],
    );
  });

  it('[sec G6] keeps the transactions before the damage, and reports how many are given up', async () => {
    damageWriteAheadLog();
    const { code, stderr } = await runToolhostCommand(listKeys, { env });
    assert.deepEqual(
      [code, /-wal is damaged at frame \d+, so the changes of 3 or more/.test(stderr)],
      [1, true],
      stderr,
    );
    const acceptedRun = await run([...listKeys, '--accept-loss']);
    assert.match(acceptedRun.stderr, /damaged at frame \d+, so the changes of 3 or more transactions cannot be read/);
    assert.match(acceptedRun.stderr, /The database file was last written at \d{4}-/);
    assert.match(acceptedRun.stdout, /in-database/);
    assert.deepEqual(await run([...listKeys, '--accept-loss']), { stdout: acceptedRun.stdout, stderr: '' });
    await (await start()).end('SIGKILL');
    await start();
  });

  it('[sec G6] refuses a database that is damaged without its log, even with --accept-loss', async () => {
    rmSync(`${file}-wal`);
    const database = readFileSync(file);
    // The root page of a table. Its first byte is the page type.
    writeFileSync(file, damageBytes(database, 4096, 4096));
    for (const more of [['--accept-loss'], []]) {
      const { code, stderr } = await runToolhostCommand([...listKeys, ...more], { env });
      assert.equal(code, 1);
      assert.match(stderr, more.length > 0 ? /is damaged without its log|is damaged or not a SQLite/ : refusalPattern);
    }
  });

  it('[sec G6] needs no --accept-loss after a backup was restored', async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix);
    assert.match((await runToolhostCommand(['serve'], { env: { ...env, PORT: '0' } })).stderr, refusalPattern);
    await run(['restore', backup, '--unverified']);
    assert.match((await run(listKeys)).stdout, /in-database/);
  });

  it('[sec G6] leaves a running service alone with --accept-loss, and opens a copy of the database file without it', async () => {
    await start();
    assert.match((await run([...listKeys, '--accept-loss'])).stdout, /in-log/);
    assert.ok(existsSync(`${file}-wal-expected`));
    assert.equal(await child?.end(), 0);
    assertNone(readdirSync(folder), (name) => name.includes('-wal'));
    const copy = mkdtempSync(join(parent, 'copy-'));
    copyFileSync(file, join(copy, 'toolhost.sqlite'));
    assert.match((await run(listKeys, { DATA_DIR: copy })).stdout, /in-log/);
  });
});

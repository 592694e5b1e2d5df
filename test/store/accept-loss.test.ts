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
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { transactionsOf, withDamage } from '../support/store/log-file.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

const list = ['keys', 'list'];
const keyNamed = (name: string) => ['keys', 'create', '--name', name, '--scopes', 'call'];
const refused =
  /write-ahead log \S+toolhost\.sqlite-wal is missing or cannot be read.* To start without these changes, add --accept-loss\.\n$/;

describe('a SQLite database with a lost write-ahead log', () => {
  let parent: string;
  /** Files of a killed service: the first key is in the database, and the second only in the log. */
  let left: string;
  let backup: string;
  let folder: string;
  let file: string;
  let env: Record<string, string>;
  let child: ChildToolhost | undefined;

  const run = async (args: readonly string[], at = env) => {
    const { code, stdout, stderr } = await toolhost(args, { env: at, isChild: true });
    assert.equal(code, 0, stderr);
    return { stdout, stderr };
  };
  const start = async (args = ['serve'], more = {}) => {
    child = await startChildToolhost({ ...env, ...more }, undefined, args);
    return child;
  };
  const damageLog = () => {
    const log = readFileSync(`${file}-wal`);
    const { from } = transactionsOf(log).at(-3) ?? assert.fail('the log has too few transactions');
    writeFileSync(`${file}-wal`, withDamage(log, from + 100, 10));
  };
  const contentOf = () => readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'base64')]);

  before(async () => {
    parent = mkdtempSync(join(tmpdir(), 'toolhost-accept-'));
    left = join(parent, 'left');
    backup = join(parent, 'backup');
    const at = { DATA_DIR: left, LOG_LEVEL: 'warn' };
    await run(keyNamed('in-database'), at);
    await run(['backup', backup], at);
    const killed = await startChildToolhost(at);
    await run(keyNamed('in-log'), at);
    await killed.end('SIGKILL');
  });
  after(() => rmSync(parent, { recursive: true }));
  beforeEach(() => {
    folder = mkdtempSync(join(parent, 'data-'));
    file = join(folder, 'toolhost.sqlite');
    env = { DATA_DIR: folder, LOG_LEVEL: 'warn' };
    cpSync(left, folder, { recursive: true });
  });
  afterEach(() => child?.end('SIGKILL'));

  it('[sec G6] refuses every command that opens the database, and changes no file', async () => {
    rmSync(`${file}-wal`);
    const content = contentOf();
    const commands = [
      ...[['serve'], list, keyNamed('more'), ['limits', 'show'], ['quotas', 'show']],
      ...[
        ['master-key', 'status'],
        ['master-key', 'reseal'],
        ['backup', join(parent, 'refused')],
      ],
    ];
    for (const args of commands) {
      const { code, stderr } = await toolhost(args, { env: { ...env, PORT: '0', DEMO: '0' } });
      assert.equal(code, 1, args.join(' '));
      assert.match(stderr, refused, args.join(' '));
    }
    assert.deepEqual(contentOf(), content);
    copyFileSync(join(left, 'toolhost.sqlite-wal'), `${file}-wal`);
    assert.match((await run(list)).stdout, /in-log/);
  });

  it('[sec G6] serves with --accept-loss, logs the missing changes, and needs no option afterwards', async () => {
    rmSync(`${file}-wal`);
    const accepting = await start(['serve', '--accept-loss'], { WORKERS: '2' });
    assert.match(accepting.output('stderr'), /is missing or cannot be read, and with it the changes/);
    await run(keyNamed('since'));
    await accepting.end('SIGKILL');
    const later = await start();
    assert.equal(later.output('stderr').includes('write-ahead'), false);
    const { stdout } = await run(list);
    assert.deepEqual(
      ['in-database', 'in-log', 'since'].filter((name) => stdout.includes(name)),
      ['in-database', 'since'],
    );
  });

  it('[sec G6] keeps the transactions before the damage, and reports how many are given up', async () => {
    damageLog();
    const { code, stderr } = await toolhost(list, { env });
    assert.deepEqual(
      [code, /-wal is damaged at frame \d+, so the changes of 3 or more/.test(stderr)],
      [1, true],
      stderr,
    );
    const accepted = await run([...list, '--accept-loss']);
    assert.match(accepted.stderr, /damaged at frame \d+, so the changes of 3 or more transactions cannot be read/);
    assert.match(accepted.stderr, /The database file was last written at \d{4}-/);
    assert.match(accepted.stdout, /in-database/);
    assert.deepEqual(await run([...list, '--accept-loss']), { stdout: accepted.stdout, stderr: '' });
    await (await start()).end('SIGKILL');
    await start();
  });

  it('[sec G6] refuses a database that is damaged without its log, even with --accept-loss', async () => {
    rmSync(`${file}-wal`);
    const database = readFileSync(file);
    // The root page of a table. Its first byte is the page type.
    writeFileSync(file, withDamage(database, 4096, 4096));
    for (const more of [['--accept-loss'], []]) {
      const { code, stderr } = await toolhost([...list, ...more], { env });
      assert.equal(code, 1);
      assert.match(stderr, more.length > 0 ? /is damaged without its log|is damaged or not a SQLite/ : refused);
    }
  });

  it('[sec G6] needs no --accept-loss after a backup was restored', async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix);
    assert.match((await toolhost(['serve'], { env: { ...env, PORT: '0' } })).stderr, refused);
    await run(['restore', backup, '--unverified']);
    assert.match((await run(list)).stdout, /in-database/);
  });

  it('[sec G6] leaves a running service alone with --accept-loss, and opens a copy of the database file without it', async () => {
    await start();
    assert.match((await run([...list, '--accept-loss'])).stdout, /in-log/);
    assert.ok(existsSync(`${file}-wal-expected`));
    assert.equal(await child?.end(), 0);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes('-wal')),
      [],
    );
    const copy = mkdtempSync(join(parent, 'copy-'));
    copyFileSync(file, join(copy, 'toolhost.sqlite'));
    assert.match((await run(list, { DATA_DIR: copy })).stdout, /in-log/);
  });
});

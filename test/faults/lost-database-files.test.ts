import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import {
  runToolhostCommand,
  runToolhostJson,
  spawnToolhost,
  waitForExit,
} from '../support/toolhost/toolhost-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const detectionTimeoutMs = 10_000;

describe('loss of the SQLite files while a service runs', () => {
  const parent = useFixtures().folder();
  let folder: string;
  let file: string;
  let env: Record<string, string>;
  let child: ChildToolhost | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(parent, 'test-'));
    file = join(folder, 'toolhost.sqlite');
    env = { DATA_DIR: folder, DEMO: '0' };
  });
  afterEach(() => child?.end('SIGKILL'));
  const makeKey = () => runToolhostJson(['keys', 'create', '--name', 'kept', '--scopes', 'call'], { env });
  const listKeys = async () => (await runToolhostCommand(['keys', 'list', '--json'], { env })).stdout;

  /**
   * Starts a service that must refuse to start. If it does start, it is stopped, so that the test fails immediately.
   */
  const startExpectingRefusal = () => {
    const attempt = spawnToolhost(['serve'], { env: { ...env, PORT: '0' } });
    attempt.stdout.on('data', (output) => /toolhost ready/.test(String(output)) && attempt.kill());
    return waitForExit(attempt);
  };

  /**
   * Starts a service, deletes its lock file, and starts a second service. On a busy machine the first one may notice
   * too late and the second one serves. In that case both are stopped and started again.
   */
  const startSecond = async (WORKERS: string) => {
    for (let attempts = 3; ; attempts -= 1) {
      const serving = await startChildToolhost({ ...env, WORKERS });
      child = serving;
      rmSync(`${file}.lock`);
      const second = await startExpectingRefusal();
      if (attempts === 1 || !/toolhost ready/.test(second.stdout)) return { serving, second };
      await serving.end('SIGKILL');
    }
  };

  for (const WORKERS of ['1', '2']) {
    it(`[find C1] refuses to start a second service even if the lock file was deleted (${WORKERS} processes)`, async () => {
      const { serving, second } = await startSecond(WORKERS);
      assert.equal(second.code, 1, second.stdout);
      assert.match(second.stderr, /another toolhost process serves from/);
      const warning = /\.lock was deleted or replaced while the service was running; it was created again/;
      await eventually(() => assert.match(serving.output(), warning));
      assert.equal((await fetch(`${serving.url}/readyz`)).status, 200);
      assert.equal(await serving.end(), 0);
    });

    const losses: [how: string, said: RegExp, lose: () => void][] = [
      ['deleted', /toolhost\.sqlite was deleted while the service was running/, () => rmSync(file)],
      [
        'replaced',
        /toolhost\.sqlite was replaced by another file while the service was running/,
        () => {
          renameSync(file, `${file}.moved`);
          writeFileSync(file, 'another file');
        },
      ],
    ];
    for (const [how, message, lose] of losses)
      it(`[find C1] saves a database that was ${how}, reports it, and exits with 1 (${WORKERS} processes)`, async () => {
        child = await startChildToolhost({ ...env, WORKERS });
        await makeKey();
        lose();
        assert.equal(await child.ended(), 1);
        assert.match(child.output(), message);
        const copy =
          /had open was saved to (\S+\.rescued-\d+)/.exec(child.output())?.[1] ?? assert.fail(child.output());
        assert.equal(statSync(copy).mode & 0o777, 0o600);
        if (how === 'deleted') {
          const secondStart = await startExpectingRefusal();
          assert.equal(secondStart.code, 1);
          assert.match(secondStart.stderr, /contains the data that a service had open|is missing or empty/);
        }
        for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
        renameSync(copy, file);
        assert.match(await listKeys(), /kept/);
      });
  }

  it('[find C1] reports a database that was emptied, and exits with 1', async () => {
    child = await startChildToolhost(env);
    truncateSync(file);
    assert.equal(await child.ended(), 1);
    assert.match(child.output(), /toolhost\.sqlite was emptied while the service was running/);
  });

  it('[find C1] refuses an empty database file next to an existing master key in every command', async () => {
    child = await startChildToolhost(env);
    await child.end();
    assert.ok(existsSync(join(folder, 'master.key')));
    rmSync(file);
    writeFileSync(file, '');
    for (const args of [['serve'], ['keys', 'list'], ['keys', 'create', '--name', 'x', '--scopes', 'call']]) {
      const { code, stderr } = await runToolhostCommand(args, { env: { ...env, PORT: '0' } });
      assert.equal(code, 1);
      assert.match(
        stderr,
        /toolhost\.sqlite is empty, but the master key \S+master\.key of an earlier database exists; r/,
      );
    }
    assert.equal(statSync(file).size, 0);
  });

  it('[find C1] starts after a crash even if the lock file is missing', async () => {
    child = await startChildToolhost(env);
    await makeKey();
    await child.end('SIGKILL');
    rmSync(`${file}.lock`);
    child = await startChildToolhost(env);
    assert.match(await listKeys(), /kept/);
    await eventually(async () => assert.equal((await fetch(`${child?.url}/readyz`)).status, 200), detectionTimeoutMs);
  });
});

import assert from 'node:assert/strict';
import { appendFileSync, copyFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { BackupReport, BackupResult } from '../../apps/server/src/app/backups.ts';
import { root } from '../files.ts';
import { readBackupLines, writeBackup } from '../support/store/backup-text.ts';
import { type BackupFixture, masterKey, startBackupFixture } from '../support/toolhost/backup-fixture.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

const otherKey = 'Zx0pVdvl5R7mDnq3PaY1uH8kTjW2sOeC4bQfGi6XyNo=';

describe('the signature of a backup', () => {
  let world: BackupFixture;
  let file: string;
  let lines: string[];
  before(async () => {
    world = await startBackupFixture(['sqlite', 'postgres']);
    file = await backUpService();
    lines = readBackupLines(file);
  });
  after(() => world?.stopAll());

  async function backUpService(): Promise<string> {
    const env = await world.newDatabase('sqlite');
    const running = await world.serve(env);
    for (const name of ['one', 'two']) await running.rest('POST', '/keys', { body: { name, scopes: ['manage'] } });
    await world.stop(running);
    return world.backUp(env);
  }

  function writeChangedBackup(changed: readonly string[]): string {
    const path = world.newPath('changed');
    writeBackup(path, changed);
    return path;
  }

  /** Returns the lines with an added API key and the matching row count in the end line. */
  function addKeyToLines(): string[] {
    const index = lines.findIndex((line) => /^\["key_\w+".*"one"/.test(line));
    const addedLine = (lines[index] ?? '').replace(/"key_\w+"/, '"key_attacker"');
    const countedEnd = (lines.at(-2) ?? '').replace(/"api_keys":(\d+)/, (_, rows) => `"api_keys":${Number(rows) + 1}`);
    assert.ok(index > 0 && countedEnd !== lines.at(-2));
    return lines.with(-2, countedEnd).toSpliced(index, 0, addedLine);
  }

  for (const engine of ['sqlite', 'postgres'] as const) {
    it(`[ship 10] keeps an added API key out of ${engine} unless the operator accepts an unverified backup`, async () => {
      const changed = writeChangedBackup(addKeyToLines());
      const env = await world.newDatabase(engine);
      const refusedRestore = await runToolhostCommand(['restore', changed], { env });
      assert.equal(refusedRestore.code, 1);
      assert.match(
        refusedRestore.stderr,
        /^error: The backup was changed after it was signed\. Nothing was restored\./,
      );
      assert.equal(
        (await runToolhostCommand(['backup', world.newPath('none')], { env })).code,
        1,
        'there is no database to back up',
      );
      const restored = await runToolhostCommand(['restore', changed, '--unverified', '--json'], { env });
      const report = JSON.parse(restored.stdout) as BackupReport;
      assert.deepEqual([restored.code, report.signature], [0, 'changed'], restored.stderr);
      assert.ok(readBackupLines(await world.backUp(env)).some((line) => line.includes('"key_attacker"')));
    });
  }

  it('[ship 10] detects every changed, added, removed, repeated, and moved line', async () => {
    const tables = lines.flatMap((line, index) => (line.startsWith('{"table"') ? [index] : []));
    const [first = 0, second = 0, third = 0] = tables;
    const row = lines.findIndex((line) => /^\["key_\w+".*"one"/.test(line));
    const signature = lines.at(-1) ?? '';
    const otherSignature = readBackupLines(await backUpService()).at(-1) ?? '';
    const changes: Record<string, string[]> = {
      'an added row': addKeyToLines(),
      'a changed value': lines.with(row, (lines[row] ?? '').replace('"one"', '"0ne"')),
      'white space in a row': lines.with(row, (lines[row] ?? '').replace(',', ', ')),
      'two rows in another order': lines.with(row, lines[row + 1] ?? '').with(row + 1, lines[row] ?? ''),
      'two tables in another order': [
        ...lines.slice(0, first),
        ...lines.slice(second, third),
        ...lines.slice(first, second),
        ...lines.slice(third),
      ],
      'no migrations in the header': lines.with(0, JSON.stringify({ ...JSON.parse(lines[0] ?? ''), migrations: [] })),
      'another time in the header': lines.with(0, (lines[0] ?? '').replace(/"made_at":"\d/, '"made_at":"3')),
      'the signature of another backup': lines.with(-1, otherSignature),
      'a changed signature': lines.with(
        -1,
        signature.replace(/"mac":"(.)/, (_, first) => `"mac":"${first === 'A' ? 'B' : 'A'}`),
      ),
      'an empty signature': lines.with(-1, signature.replace(/"mac":"[^"]+"/, '"mac":""')),
      'no signature': lines.slice(0, -1),
      'a signature with another field': lines.with(-1, signature.replace('{', '{"a":1,')),
      'two signatures': [...lines, signature],
      'a row after the signature': [...lines, lines[row] ?? ''],
      'a signature before the end': lines.with(-1, lines.at(-2) ?? '').with(-2, signature),
      'a backup without an end': lines.toSpliced(-2, 1),
    };
    for (const [name, changed] of Object.entries(changes)) {
      const env = await world.newDatabase('sqlite');
      for (const command of ['restore', 'verify']) {
        const { code, stdout, stderr } = await runToolhostCommand([command, writeChangedBackup(changed)], { env });
        assert.equal(code, 1, `${command}: ${name}`);
        if (command === 'restore' || stderr !== '')
          assert.match(stderr, /^error: (the backup is damaged: |The backup (is not signed|was changed))/, name);
        else
          assert.match(
            stdout,
            /^(Not valid: .*\nModified after it was signed|Complete, but not verified: .*\nNot signed)/,
            name,
          );
      }
      assert.deepEqual(readdirSync(env.DATA_DIR ?? ''), ['toolhost.sqlite.lock'], name);
    }
  });

  it('[ship 10] detects compressed text that is appended to the file', async () => {
    const longerFile = world.newPath('longer');
    copyFileSync(file, longerFile);
    appendFileSync(longerFile, gzipSync(`${lines.at(1)}\n`));
    const { code, stderr } = await runToolhostCommand(['restore', longerFile], {
      env: await world.newDatabase('sqlite'),
    });
    assert.equal(code, 1);
    assert.match(stderr, /^error: the backup is damaged: data follows its end line/);
  });

  it('[ship 10] verifies a backup with any of the master keys, and rejects it without the key that signed it', async () => {
    const id = (JSON.parse(lines.at(-1) ?? '') as { key: string }).key;
    for (const [keys, isKeyAvailable] of [
      [masterKey, true],
      [`${otherKey},${masterKey}`, true],
      [otherKey, false],
      ['', false],
    ] as const) {
      const { DATA_DIR = '' } = await world.newDatabase('sqlite');
      const env = { DATA_DIR, ...(keys && { MASTER_KEY: keys }) };
      const { code, stdout, stderr } = await runToolhostCommand(['restore', file, '--json'], { env });
      if (isKeyAvailable) {
        const { signature, signed_with } = JSON.parse(stdout) as BackupReport;
        assert.deepEqual([code, signature, signed_with], [0, 'valid', id], stderr);
      } else {
        assert.equal(code, 1);
        assert.match(
          stderr,
          new RegExp(`The backup is signed with the master key ${id}, which is not configured here`),
        );
        assert.equal((await runToolhostCommand(['restore', file, '--unverified'], { env })).code, 0);
      }
    }
  });

  it('[ship 10] verifies a backup from standard input', async () => {
    const env = { ...(await world.newDatabase('sqlite')), TOOLHOST: join(root, 'bin', 'toolhost') };
    const restore = (path: string) =>
      runToolhostCommand(['-c', `"$TOOLHOST" restore - < "${path}"`], { program: '/bin/sh', env });
    const refusedRestore = await restore(writeChangedBackup(addKeyToLines()));
    assert.equal(refusedRestore.code, 1);
    assert.match(refusedRestore.stderr, /The backup was changed after it was signed/);
    const { code, stderr } = await restore(file);
    assert.equal(code, 0, stderr);
  });

  it('[ship 10] creates an unsigned backup if no master key is set, and reports that in every command', async () => {
    const source = await world.newDatabase('sqlite');
    await world.stop(await world.serve(source));
    const { DATA_DIR = '' } = source;
    const unsigned = world.newPath('unsigned');
    const backupRun = await runToolhostCommand(['backup', unsigned, '--json'], { env: { DATA_DIR } });
    assert.deepEqual([backupRun.code, 'signed_with' in (JSON.parse(backupRun.stdout) as BackupResult)], [0, false]);
    const { stderr } = await runToolhostCommand(['backup', world.newPath('unsigned')], { env: { DATA_DIR } });
    assert.match(stderr, /The backup is not signed, because no master key is set/);
    const verified = await runToolhostCommand(['verify', unsigned], { env: source });
    assert.deepEqual([verified.code, /^Complete, but not verified: .*\nNot signed/.test(verified.stdout)], [1, true]);
    const env = await world.newDatabase('sqlite');
    const refusedRestore = await runToolhostCommand(['restore', unsigned], { env });
    assert.match(
      refusedRestore.stderr,
      /^error: The backup is not signed, so anyone who can write the file may have changed it/,
    );
    const restored = await runToolhostCommand(['restore', unsigned, '--unverified'], { env });
    assert.deepEqual([restored.code, /\nNot signed/.test(restored.stdout)], [0, true], restored.stderr);
  });

  it('[ship 10] restores an unsigned backup of an earlier format if the operator accepts an unverified backup', async () => {
    const earlierFile = writeChangedBackup([
      (lines[0] ?? '').replace('"toolhost_backup":2', '"toolhost_backup":1'),
      ...lines.slice(1, -1),
    ]);
    const env = await world.newDatabase('sqlite');
    assert.match((await runToolhostCommand(['restore', earlierFile], { env })).stderr, /The backup is not signed/);
    assert.equal((await runToolhostCommand(['restore', earlierFile, '--unverified'], { env })).code, 0);
  });
});

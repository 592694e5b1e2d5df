import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { assertSome } from '../support/assert-lists.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const getMode = (path: string) => (statSync(path).mode & 0o777).toString(8);

function getModes(folder: string): Record<string, string> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, getMode(join(folder, name))]));
}

describe('the data folder', () => {
  const parent = useFixtures().folder();
  let folder: string;
  beforeEach(() => {
    folder = join(mkdtempSync(join(parent, 'test-')), 'data');
  });

  const assertPrivate = (names: RegExp[]) => {
    const modes = getModes(folder);
    for (const name of names) assertSome(Object.keys(modes), (fileName) => name.test(fileName), String(name));
    assert.deepEqual(new Set(Object.values(modes)), new Set(['600']), JSON.stringify(modes));
    assert.equal(getMode(folder), '700');
  };
  const servingFiles = [
    /^toolhost\.sqlite$/,
    /-wal$/,
    /-shm$/,
    /\.lock$/,
    /^master\.key$/,
    /^projects-example\.sqlite$/,
  ];

  it('[find B8] keeps the data folder and every file in it private to its owner, under any umask', async () => {
    const before = process.umask(0);
    try {
      for (const WORKERS of ['1', '2']) {
        const child = await startChildToolhost({ DATA_DIR: folder, DEMO: '1', WORKERS });
        assertPrivate(servingFiles);
        assert.equal(await child.end(), 0);
        rmSync(folder, { recursive: true });
      }
    } finally {
      process.umask(before);
    }
  });

  it('[find B8] creates a private data folder from the command line', async () => {
    const args = ['keys', 'create', '--name', 'x', '--scopes', 'call'];
    assert.equal((await runToolhostCommand(args, { env: { DATA_DIR: folder } })).code, 0);
    assertPrivate([/^toolhost\.sqlite$/]);
  });

  it('[find B8] makes a readable data folder of an older version private at the next start', async () => {
    const env = { DATA_DIR: folder, DEMO: '1' };
    assert.equal(await (await startChildToolhost(env)).end(), 0);
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o644);
    chmodSync(folder, 0o755);
    const child = await startChildToolhost(env);
    assertPrivate(servingFiles);
    assert.equal(await child.end(), 0);
    assert.doesNotMatch(child.output(), /can read/);
  });

  it('[find B8] leaves a data folder with other files readable, and logs what others can read', async () => {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o755);
    writeFileSync(join(folder, 'notes.txt'), 'not ours', { mode: 0o644 });
    const child = await startChildToolhost({ DATA_DIR: folder });
    const { 'notes.txt': notes, ...ownModes } = getModes(folder);
    assert.equal(notes, '644');
    assert.deepEqual(new Set(Object.values(ownModes)), new Set(['600']));
    assert.equal(getMode(folder), '755');
    assert.equal(await child.end(), 0);
    assert.match(
      child.output(),
      /"level":40.*other users of this machine can read \S+data; restrict access with: chmod go= /,
    );
  });

  if (process.getuid?.() === 0) {
    it('[find B8] leaves the data folder of another user unchanged, and logs that once', async () => {
      mkdirSync(folder, { recursive: true });
      chmodSync(folder, 0o777);
      chownSync(folder, 65_534, 65_534);
      const child = await startChildToolhost({ DATA_DIR: folder, WORKERS: '2' });
      assert.equal(getMode(folder), '777');
      assert.equal(await child.end(), 0);
      assert.equal(child.output().split('can read').length, 2, child.output());
    });
  }
});

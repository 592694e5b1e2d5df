import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { root } from '../files.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

type Locked = Record<string, { optionalDependencies?: Record<string, string> }>;

describe('the lock file', () => {
  it('[ship 1] has every package that any platform needs, without which npm ci refuses it', () => {
    const text = readFileSync(join(root, 'package-lock.json'), 'utf8');
    const { packages } = JSON.parse(text) as { packages: Locked };
    /** Where Node looks for a package that another one needs: beside its own packages, then further up. */
    const isLocked = (path: string, name: string): boolean =>
      Object.hasOwn(packages, join(path, 'node_modules', name)) ||
      (path !== '' && isLocked(path.slice(0, Math.max(0, path.lastIndexOf('node_modules/') - 1)), name));
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies)
        .filter((name) => !isLocked(path, name))
        .map((name) => `${name}, which ${path} names`),
    );
    assert.deepEqual(
      missing,
      [],
      'take a version that the registry has for every platform, and lock it without node_modules',
    );
  });
});

describe('the sources', () => {
  it('[ship 1] call the command line by the name that it has in this installation', () => {
    const literal = globSync('src/**/*.ts', { cwd: root })
      .filter((path) => path !== 'src/version.ts')
      .filter((path) => {
        const text = readFileSync(join(root, path), 'utf8');
        return (
          /^(?!\s*(?:\/\/|\/?\*)).*bin\/toolhost/m.test(text) || /(?:"|: |with )toolhost [a-z-]+(?! command)/.test(text)
        );
      });
    assert.deepEqual(
      literal,
      [],
      'these name a command by heart; `programName` of src/version.ts is how this process was run',
    );
  });
});

describe('the two launchers', () => {
  it('[ship 1] give Node the same flags', () => {
    const shell = readFileSync(join(root, 'bin', 'toolhost'), 'utf8');
    const script = readFileSync(join(root, 'bin', 'toolhost.js'), 'utf8');
    const flagsOf = (text: string) => [...text.matchAll(/(?<=[ '])--[a-z-]+(?:=\d+)?(?=[ '])/g)].map(String);
    const [, shellLine = ''] = /^exec (.*)$/m.exec(shell) ?? [];
    const [, list = ''] = /const flags = \[([^\]]*)\]/.exec(script) ?? [];
    assert.ok(flagsOf(shellLine).length > 2);
    assert.deepEqual(flagsOf(list), flagsOf(shellLine));
  });

  it('[ship 1] that of the package says what to do where nothing was compiled', async () => {
    const folder = mkdtempSync(join(root, 'node_modules', '.cache', 'launcher-'));
    try {
      await mkdir(join(folder, 'bin'));
      const program = join(folder, 'bin', 'toolhost.mjs');
      await copyFile(join(root, 'bin', 'toolhost.js'), program);
      const { code, stderr } = await toolhost([program], { program: process.execPath });
      assert.equal(code, 1);
      assert.match(stderr, /^toolhost: the compiled program is missing\. .*npm run build/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

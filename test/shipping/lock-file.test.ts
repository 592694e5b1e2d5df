import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { root } from '../files.ts';

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

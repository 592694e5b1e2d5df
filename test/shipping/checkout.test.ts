import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { loadConfigFromFile } from 'vite';
import { type Repository, repositoryUrl } from '../../build/package/repository.ts';
import { root } from '../files.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

type LockedPackages = Record<string, { optionalDependencies?: Record<string, string> }>;

describe('the lock file', () => {
  it('[ship 1] contains every package that any platform needs, because npm ci fails otherwise', () => {
    const text = readFileSync(join(root, 'package-lock.json'), 'utf8');
    const { packages } = JSON.parse(text) as { packages: LockedPackages };
    /** Searches like Node: in the package's own node_modules, then in those further up. */
    const isLocked = (path: string, name: string): boolean =>
      Object.hasOwn(packages, join(path, 'node_modules', name)) ||
      (path !== '' && isLocked(path.slice(0, Math.max(0, path.lastIndexOf('node_modules/') - 1)), name));
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies)
        .filter((name) => !isLocked(path, name))
        .map((name) => `${name}, required by ${path}`),
    );
    assert.deepEqual(
      missing,
      [],
      'use a version that the registry has for every platform, and lock it without node_modules',
    );
  });
});

describe('the sources', () => {
  it('[ship 1] name the command line by `programName`, never by a fixed name', () => {
    const offendingFiles = globSync('{apps,packages}/*/src/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] })
      .filter((path) => path !== 'apps/server/src/version.ts')
      .filter((path) => {
        const text = readFileSync(join(root, path), 'utf8');
        return (
          /^(?!\s*(?:\/\/|\/?\*)).*bin\/toolhost/m.test(text) || /(?:"|: |with )toolhost [a-z-]+(?! command)/.test(text)
        );
      });
    assert.deepEqual(
      offendingFiles,
      [],
      'these files contain a fixed command name; use `programName` of apps/server/src/version.ts, which is how this process was started',
    );
  });
});

describe('the two launchers', () => {
  it('[ship 1] give Node the same flags as the image and the systemd unit', () => {
    const findFlags = (path: string, pattern: RegExp) => {
      const [, text = ''] = pattern.exec(readFileSync(join(root, path), 'utf8')) ?? [];
      return text.match(/--[a-z\d-]+=\d+/g) ?? [];
    };
    const flags = findFlags('bin/toolhost', /^exec (.*)$/m);
    assert.equal(flags.length, 2);
    assert.deepEqual(findFlags('bin/toolhost.js', /const flags = \[([^\]]*)\]/), flags);
    for (const path of ['Dockerfile', 'deploy/systemd/toolhost.service'])
      assert.deepEqual(findFlags(path, /NODE_OPTIONS=(.*)/), flags, path);
  });

  it('[ship 1] explain what to do if the program is not compiled', async () => {
    const folder = mkdtempSync(join(root, 'node_modules', '.cache', 'launcher-'));
    try {
      await mkdir(join(folder, 'bin'));
      const program = join(folder, 'bin', 'toolhost.mjs');
      await copyFile(join(root, 'bin', 'toolhost.js'), program);
      const { code, stderr } = await runToolhostCommand([program], { program: process.execPath });
      assert.equal(code, 1);
      assert.match(stderr, /^toolhost: the compiled program is missing\. .*npm run build/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

type Manifest = { repository?: Repository; bugs?: { url: string }; homepage?: string; version: string };

const readManifest = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;

describe('the repository URL', () => {
  const folder = useFixtures().folder();

  it('[ship 1] writes the repository URL into package.json, which has none, in the release workflow', () => {
    const before = readManifest(root);
    assert.deepEqual([before.repository, before.bugs, before.homepage], [undefined, undefined, undefined]);
    const [step] = /(?<=run: )node build\/package\/repository\.ts$/m.exec(
      readFileSync(join(root, '.github', 'workflows', 'release.yml'), 'utf8'),
    ) ?? ['the workflow has no such step'];
    copyFileSync(join(root, 'package.json'), join(folder, 'package.json'));
    const host = 'https://git.example.com';
    const env = { PATH: process.env.PATH, GITHUB_SERVER_URL: host, GITHUB_REPOSITORY: 'acme/toolhost' };
    execFileSync('/bin/sh', ['-c', step.replace('build/', `${root}/build/`)], { cwd: folder, env });
    const url = `${host}/acme/toolhost`;
    const { repository, bugs, homepage, ...rest } = readManifest(folder);
    assert.deepEqual(repository, { type: 'git', url: `git+${url}.git` });
    assert.deepEqual([bugs, homepage], [{ url: `${url}/issues` }, `${url}#readme`]);
    assert.deepEqual(rest, before);
    assert.equal(repositoryUrl(repository), url);
  });

  it('[ship 1] reads the repository URL from every form that npm supports', () => {
    const url = 'https://github.com/acme/toolhost';
    for (const field of ['acme/toolhost', 'github:acme/toolhost', url, `git+${url}.git`, { url: `git+${url}.git` }])
      assert.equal(repositoryUrl(field), url, JSON.stringify(field));
    for (const field of [undefined, 'gist:11081aaa281', 'git@example.com:acme/toolhost.git'])
      assert.equal(repositoryUrl(field), undefined, String(field));
  });

  it('[ship 1] builds the dashboard with links to the repository, whether the field is a string or an object', async (t) => {
    // The configuration imports packages, so the copy is below node_modules.
    const copy = mkdtempSync(join(root, 'node_modules', '.cache', 'repository-'));
    t.after(() => rmSync(copy, { recursive: true, force: true }));
    for (const path of ['apps/dashboard/vite.config.ts', 'build/package/repository.ts']) {
      mkdirSync(join(copy, dirname(path)), { recursive: true });
      copyFileSync(join(root, path), join(copy, path));
    }
    const url = 'https://github.com/acme/toolhost';
    for (const repository of ['acme/toolhost', `git+${url}.git`, { type: 'git', url: `git+${url}.git` }]) {
      writeFileSync(join(copy, 'package.json'), JSON.stringify({ type: 'module', repository }));
      const file = join(copy, 'apps', 'dashboard', 'vite.config.ts');
      const loaded = await loadConfigFromFile({ command: 'build', mode: 'production' }, file);
      const { __DOCUMENTATION__: documentation } = loaded?.config.define ?? {};
      assert.deepEqual(documentation, { site: process.env.SITE_URL, repository: url });
    }
  });
});

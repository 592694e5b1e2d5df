import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type Repository, repositoryUrl } from '../../build/package/repository.ts';
import { root } from '../files.ts';

type Manifest = { repository?: Repository; bugs?: { url: string }; homepage?: string; version: string };

const readManifest = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;

describe('the repository URL', () => {
  it('[ship 1] writes the repository URL into package.json, which has none, in the release workflow', () => {
    const before = readManifest(root);
    assert.deepEqual([before.repository, before.bugs, before.homepage], [undefined, undefined, undefined]);
    const [step] = /(?<=run: )node build\/package\/repository\.ts$/m.exec(
      readFileSync(join(root, '.github', 'workflows', 'release.yml'), 'utf8'),
    ) ?? ['the workflow has no such step'];
    const folder = mkdtempSync(join(tmpdir(), 'toolhost-repository-'));
    try {
      copyFileSync(join(root, 'package.json'), join(folder, 'package.json'));
      execFileSync('/bin/sh', ['-c', step.replace('build/', `${root}/build/`)], {
        cwd: folder,
        env: {
          PATH: process.env.PATH,
          GITHUB_SERVER_URL: 'https://git.example.com',
          GITHUB_REPOSITORY: 'acme/toolhost',
        },
      });
      const url = 'https://git.example.com/acme/toolhost';
      const { repository, bugs, homepage, ...rest } = readManifest(folder);
      assert.deepEqual(repository, { type: 'git', url: `git+${url}.git` });
      assert.deepEqual([bugs, homepage], [{ url: `${url}/issues` }, `${url}#readme`]);
      assert.deepEqual(rest, before);
      assert.equal(repositoryUrl(repository), url);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('[ship 1] reads the repository URL from every form that npm supports', () => {
    const url = 'https://github.com/acme/toolhost';
    for (const field of ['acme/toolhost', 'github:acme/toolhost', url, `git+${url}.git`, { url: `git+${url}.git` }])
      assert.equal(repositoryUrl(field), url, JSON.stringify(field));
    for (const field of [undefined, 'gist:11081aaa281', 'git@example.com:acme/toolhost.git'])
      assert.equal(repositoryUrl(field), undefined, String(field));
  });
});

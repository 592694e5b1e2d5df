import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { ensureProgram } from '../support/browser/ensure-program.ts';
import { eventually } from '../support/eventually.ts';
import { createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import { toolhostProgram } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

const run = promisify(execFile);

describe('shell completion', async () => {
  const { running, env: serviceEnv } = await startCommandService();
  const folder = createTestFolder();
  symlinkSync(toolhostProgram, join(folder, 'toolhost'));
  const env = { PATH: `${folder}:${process.env.PATH}`, HOME: folder, ...serviceEnv };
  await running.createServer(buildServerAt('things', 'https://api.example.com'));

  /** Returns the words that bash would offer. The last argument is the word being typed. */
  async function completeInBash(...words: string[]): Promise<{ words: string[]; files: boolean }> {
    const script = `
      compopt() { files=1; }
      source <(toolhost completion bash)
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); files=0
      _toolhost toolhost
      printf '%s\\n' "$files" "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = await run('bash', ['--norc', '-c', script, 'bash', 'toolhost', ...words], { env });
    assert.equal(stderr, '');
    const [files, ...offered] = stdout.trimEnd().split('\n');
    return { files: files === '1', words: offered.filter((word) => word !== '').toSorted() };
  }

  it('[ship 7] completes commands, options, and slugs in bash', async () => {
    // A busy machine may exceed the completion timeout. Retrying is what a person does by pressing Tab again.
    await eventually(async () => {
      assert.deepEqual(await completeInBash('ver'), { words: ['verify', 'versions'], files: false });
      // bash splits words at `=`.
      const choices = { words: ['unavailable', 'unreachable'], files: false };
      assert.deepEqual(await completeInBash('calls', '--outcome', '=', 'un'), choices);
      assert.deepEqual(await completeInBash('servers', 'create', ''), { words: [], files: true });
      assert.deepEqual(await completeInBash('servers', 'get', 'th'), { words: ['things'], files: false });
    });
  });

  it('[ship 7] completes commands and files in zsh', async () => {
    const zsh = await ensureProgram(['/usr/bin/zsh', '/bin/zsh'], 'zsh');
    const script = `
      compdef() { :; }; _describe() { print -l -- "\${(@P)4}"; }; _files() { print FILES; }
      source <(toolhost completion zsh)
      words=(toolhost ver); CURRENT=2; _toolhost
      words=(toolhost servers create ''); CURRENT=4; _toolhost`;
    const file = join(folder, 'script.zsh');
    writeFileSync(file, script);
    await eventually(async () => {
      const { stdout } = await run(zsh, ['-f', file], { env });
      assert.match(stdout, /^versions:.*\nverify:.*\nFILES\n$|^verify:.*\nversions:.*\nFILES\n$/);
    });
  });

  it('[ship 7] completes slugs in fish', async () => {
    const fish = await ensureProgram(['/usr/bin/fish', '/opt/homebrew/bin/fish'], 'fish');
    const script = 'toolhost completion fish | source; complete -C "toolhost servers get th"';
    // As in bash, a busy machine may exceed the completion timeout.
    await eventually(async () => {
      const { stdout } = await run(fish, ['--no-config', '-c', script], { env });
      assert.match(stdout, /^things\tthings$/m);
    });
  });
});

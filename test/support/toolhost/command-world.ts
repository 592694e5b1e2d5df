import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { type StartOptions, startToolhost } from './toolhost.ts';
import { type CommandOptions, type CommandResult, runToolhostCommand, runToolhostJson } from './toolhost-command.ts';

/** Creates a folder that is removed after the tests of the suite. */
export function createTestFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-cli-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a service that stops after the tests of the suite, and returns functions that run commands with its key. */
export async function startCommandService(options: StartOptions = {}) {
  const running = await startToolhost(options);
  after(() => running.stop());
  const env = { TOOLHOST_URL: running.url, TOOLHOST_API_KEY: await running.createKey() };
  return {
    running,
    env,
    run: (args: readonly string[], more: CommandOptions = {}) => runToolhostCommand(args, { env, ...more }),
    runJson: <Output>(args: readonly string[], more: CommandOptions = {}) =>
      runToolhostJson<Output>(args, { env, ...more }),
  };
}

/** Asserts that a command printed nothing but this error. */
export function assertFailed({ code, stdout, stderr }: CommandResult, message: RegExp, expectedCode = 1): void {
  assert.deepEqual([code, stdout], [expectedCode, ''], stderr);
  assert.match(stderr, message);
}

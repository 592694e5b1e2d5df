import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readConfig } from '../../apps/server/src/config.ts';
import manifest from '../../package.json' with { type: 'json' };
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { type CommandResult, runToolhostCommand, toolhostProgram } from '../support/toolhost/toolhost-command.ts';

/** Asserts an error in sentences: exit code 1, nothing on standard output, and no stack trace. */
function assertRefused({ code, stdout, stderr }: CommandResult, ...sentences: RegExp[]): void {
  assert.deepEqual([code, stdout], [1, ''], stderr);
  assert.match(stderr, /^error: /);
  assert.doesNotMatch(stderr, /^\s+at /m);
  for (const sentence of sentences) assert.match(stderr, sentence);
}

describe('bin/toolhost', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-cli-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('prints its version and help, also from another folder and through a symbolic link', async () => {
    const program = join(folder, 'toolhost');
    symlinkSync(toolhostProgram, program);
    const version = await runToolhostCommand(['--version'], { program, cwd: folder });
    assert.match(version.stdout, new RegExp(`^${manifest.version} \\(commit [0-9a-f]{40}\\)\n$`));
    assert.deepEqual([version.code, version.stderr], [0, '']);
    const help = await runToolhostCommand(['--help']);
    assert.equal(help.code, 0);
    for (const command of ['serve', 'keys', 'servers', 'secrets', 'call', 'check']) {
      assert.match(help.stdout, new RegExp(`^  ${command} `, 'm'));
    }
    assert.match(help.stdout, /Examples:/);
  });

  it('prints examples in the help of its commands, and every setting in the help of serve', async () => {
    const helps = await Promise.all(
      [['keys', 'create'], ['servers', 'create'], ['secrets', 'set'], ['call'], ['check']].map((args) =>
        runToolhostCommand([...args, '--help']),
      ),
    );
    for (const { code, stdout } of helps) assert.match(`${code} ${stdout}`, /^0 [\s\S]*--json[\s\S]*Examples:/);
    const { stdout } = await runToolhostCommand(['serve', '--help']);
    assert.match(stdout, /MASTER_KEY .*32 bytes[\s\S]*DEMO /);
  });

  it('exits with 2 and writes to standard error when it does not understand a command', async () => {
    const wrong = await Promise.all([
      runToolhostCommand([]),
      runToolhostCommand(['keys']),
      runToolhostCommand(['serv']),
      runToolhostCommand(['servers', 'list', '--jsn']),
      runToolhostCommand(['servers', 'get']),
      runToolhostCommand(['servers', 'list', '--url', 'localhost']),
    ]);
    assert.deepEqual(
      wrong.map(({ code, stdout }) => [code, stdout]),
      wrong.map(() => [2, '']),
    );
    assert.match(wrong[2]?.stderr ?? '', /Did you mean serve\?/);
    assert.match(wrong[5]?.stderr ?? '', /allowed: an http:\/\/ or https:\/\/ URL/);
  });
});

describe('toolhost serve', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-cli-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));
  const localEnv = (name: string) => ({ PORT: '0', DEMO: '0', DATA_DIR: join(folder, name) });

  it('prints one ready line, logs to standard error, and exits with 0 on a signal', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const serving = await startChildToolhost({ ...localEnv('signals'), LOG_LEVEL: 'info' });
      assert.match(serving.readyLine, /^toolhost ready http:\/\/127\.0\.0\.1:\d+$/);
      // The other signal follows immediately after the ready line.
      if (signal === 'SIGTERM') assert.equal((await fetch(`${serving.url}/readyz`)).status, 200);
      const code = await serving.end(signal);
      const [stdout, stderr] = [serving.output('stdout'), serving.output('stderr')];
      assert.deepEqual([code, stdout], [0, `${serving.readyLine}\n`]);
      const logged = stderr
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as { signal?: string });
      assert.ok(
        logged.some((entry) => entry.signal === signal),
        stderr,
      );
    }
    assert.equal(statSync(join(folder, 'signals', 'master.key')).mode & 0o777, 0o600);
  });

  it('[sec E7] lists all missing production settings in one error', async () => {
    const ended = await runToolhostCommand(['serve'], {
      env: { ...localEnv('missing'), BASE_URL: 'https://tools.example.com' },
    });
    assertRefused(
      ended,
      /MASTER_KEY: required/,
      /OIDC_ISSUER: required/,
      /OIDC_CLIENT_ID: required/,
      /OIDC_CLIENT_SECRET: required/,
    );
  });

  it('[sec E7] rejects plain HTTP in production and invalid settings', async () => {
    const env = { ...localEnv('http'), BASE_URL: 'http://tools.example.com', PORT: 'http', EGRESS_ALLOW: '10.0.0.1' };
    assertRefused(
      await runToolhostCommand(['serve'], { env }),
      /BASE_URL: .*https/,
      /PORT: found "http"/,
      /EGRESS_ALLOW: .*allowed: /,
    );
  });

  it('[sec E7] rejects master keys that are not 32 random bytes, and prints none of them', async () => {
    const keys = [
      'change-me-to-a-long-random-string-before-production!!',
      Buffer.from(Array.from({ length: 32 }, (_, i) => i)).toString('base64'),
      'c2hvcnQ=',
      'A'.repeat(44),
      '00'.repeat(32),
      'deadbeef'.repeat(8),
    ];
    const refusal =
      /MASTER_KEY: is (too short|not random|neither base64 nor hex); allowed: 32 random bytes.*openssl rand -base64 32/;
    const isRefused = (message: string, key: string) => refusal.test(message) && !message.includes(key);
    for (const key of keys)
      assert.throws(
        () => readConfig({ MASTER_KEY: key }, () => ''),
        (error: Error) => isRefused(error.message, key),
      );
    const [key = ''] = keys;
    const file = join(folder, 'key');
    writeFileSync(file, `${key}\n`);
    const ended = await runToolhostCommand(['serve'], { env: { ...localEnv('weak'), MASTER_KEY_FILE: file } });
    assertRefused(ended, refusal);
    assert.ok(!ended.stderr.includes(key));
  });

  it('[sec E7] rejects a second process on one SQLite file, and a port in use', async () => {
    const serving = await startChildToolhost({ ...localEnv('taken'), LOG_LEVEL: 'silent' });
    try {
      const [second, port] = await Promise.all([
        runToolhostCommand(['serve'], { env: localEnv('taken') }),
        runToolhostCommand(['serve'], { env: { ...localEnv('other'), PORT: new URL(serving.url).port } }),
      ]);
      assertRefused(second, /another toolhost process serves from .*toolhost\.sqlite; stop it, or /);
      assertRefused(port, /port \d+ is in use; stop the process that uses it, or set PORT/);
      assert.equal((await fetch(`${serving.url}/readyz`)).status, 200);
    } finally {
      await serving.end();
    }
  });

  it('explains why its folder or database cannot be used, without printing the password', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const [noFolder, noDatabase] = await Promise.all([
      runToolhostCommand(['serve'], { env: { ...localEnv('x'), DATA_DIR: join(file, 'data') } }),
      runToolhostCommand(['serve'], {
        env: { ...localEnv('y'), DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:9/none' },
      }),
    ]);
    assertRefused(noFolder, /ENOTDIR/);
    assertRefused(noDatabase, /the database does not (answer|respond): .*ECONNREFUSED/);
    assert.doesNotMatch(noDatabase.stderr, /hunter2/);
  });
});

import assert from 'node:assert/strict';
import { statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { createProgram } from '../../apps/cli/src/program.ts';
import { readConfig } from '../../apps/server/src/config.ts';
import manifest from '../../package.json' with { type: 'json' };
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { assertFailed, createTestFolder } from '../support/toolhost/command-world.ts';
import { type CommandResult, runToolhostCommand, toolhostProgram } from '../support/toolhost/toolhost-command.ts';

/** Asserts an error in sentences: exit code 1, nothing on standard output, and no stack trace. */
function assertRefused(ended: CommandResult, ...sentences: RegExp[]): void {
  assert.doesNotMatch(ended.stderr, /^\s+at /m);
  for (const sentence of [/^error: /, ...sentences]) assertFailed(ended, sentence);
}

/** Commands that print no data and therefore have no --json. */
const commandsWithoutJson = ['serve', 'dev', 'schema', 'completion', 'complete'];

type LeafCommand = { name: string; command: Command };
function findLeafCommands(command: Command, name = ''): LeafCommand[] {
  if (command.commands.length === 0) return [{ name, command }];
  return command.commands.flatMap((subcommand) => findLeafCommands(subcommand, `${name} ${subcommand.name()}`.trim()));
}

describe('bin/toolhost', async () => {
  const folder = createTestFolder();

  it('prints its version and help, also from another folder and through a symbolic link', async () => {
    const program = join(folder, 'toolhost');
    symlinkSync(toolhostProgram, program);
    const version = await runToolhostCommand(['--version'], { program, cwd: folder });
    assert.match(version.stdout, new RegExp(`^${manifest.version} \\(commit [0-9a-f]{40}\\)\n$`));
    assert.deepEqual([version.code, version.stderr], [0, '']);
    const help = await runToolhostCommand(['--help']);
    assert.equal(help.code, 0);
    for (const command of ['serve', 'keys', 'servers', 'secrets', 'call', 'check'])
      assert.match(help.stdout, new RegExp(`^  ${command} `, 'm'));
    assert.match(help.stdout, /Examples:/);
  });

  it('prints examples in the help of its commands, and every setting in the help of serve', async () => {
    for (const args of [['keys', 'create'], ['servers', 'create'], ['secrets', 'set'], ['call'], ['check']]) {
      const { code, stdout } = await runToolhostCommand([...args, '--help']);
      assert.match(`${code} ${stdout}`, /^0 [\s\S]*--json[\s\S]*Examples:/);
    }
    const { stdout } = await runToolhostCommand(['serve', '--help']);
    assert.match(stdout, /MASTER_KEY .*32 bytes[\s\S]*DEMO /);
  });

  it('exits with 2 and writes to standard error when it does not understand a command', async () => {
    for (const [args, message] of [
      [[], /Usage/],
      [['keys'], /Usage/],
      [['serv'], /Did you mean serve\?/],
      [['servers', 'list', '--jsn'], /--jsn/],
      [['servers', 'get'], /the argument <slug> is missing/],
      [['servers', 'list', '--url', 'localhost'], /allowed: an http:\/\/ or https:\/\/ URL/],
    ] as const)
      assertFailed(await runToolhostCommand(args), message, 2);
  });
});

describe('toolhost serve', async () => {
  const folder = createTestFolder();
  const localEnv = (name: string) => ({ PORT: '0', DEMO: '0', DATA_DIR: join(folder, name) });

  it('prints one ready line and one sign-in link, logs to standard error, and exits with 0 on a signal', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const serving = await startChildToolhost({ ...localEnv('signals'), LOG_LEVEL: 'info' });
      assert.match(serving.readyLine, /^toolhost ready http:\/\/127\.0\.0\.1:\d+$/);
      // The other signal follows immediately after the ready line.
      if (signal === 'SIGTERM') assert.equal((await fetch(`${serving.url}/readyz`)).status, 200);
      const code = await serving.end(signal);
      const [stdout, stderr] = [serving.output('stdout'), serving.output('stderr')];
      assert.deepEqual([code, stdout.split('\n').length], [0, 3], stdout);
      assert.match(stdout, /^toolhost ready \S+\nOpen the dashboard \(.*\): http:\S+\/login\/link\/\w{43}\n$/);
      const signals = stderr.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line).signal] : []));
      assert.ok(signals.includes(signal), stderr);
    }
    assert.equal(statSync(join(folder, 'signals', 'master.key')).mode & 0o777, 0o600);
  });

  it('[sec E7] lists all missing production settings in one error', async () => {
    const names = ['MASTER_KEY', 'OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'];
    const env = { ...localEnv('missing'), BASE_URL: 'https://tools.example.com' };
    const missing = names.map((name) => new RegExp(`${name}: required`));
    assertRefused(await runToolhostCommand(['serve'], { env }), ...missing);
  });

  it('[sec E7] rejects plain HTTP in production and invalid settings', async () => {
    const env = { ...localEnv('http'), BASE_URL: 'http://tools.example.com', PORT: 'http', EGRESS_ALLOW: '10.0.0.1' };
    const refused = await runToolhostCommand(['serve'], { env });
    assertRefused(refused, /BASE_URL: .*https/, /PORT: found "http"/, /EGRESS_ALLOW: .*allowed: /);
  });

  it('[sec E7] rejects master keys that are not 32 random bytes, and prints none of them', async () => {
    const counted = Buffer.from(Array.from({ length: 32 }, (_, i) => i)).toString('base64');
    const repeated = ['A'.repeat(44), '00'.repeat(32), 'deadbeef'.repeat(8)];
    const keys = ['change-me-to-a-long-random-string-before-production!!', counted, 'c2hvcnQ=', ...repeated];
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
      const second = await runToolhostCommand(['serve'], { env: localEnv('taken') });
      assertRefused(second, /another toolhost process serves from .*toolhost\.sqlite; stop it, or /);
      const takenPort = { ...localEnv('other'), PORT: new URL(serving.url).port };
      const other = await runToolhostCommand(['serve'], { env: takenPort });
      assertRefused(other, /port \d+ is in use; stop the process that uses it, or set PORT/);
      assert.equal((await fetch(`${serving.url}/readyz`)).status, 200);
    } finally {
      await serving.end();
    }
  });

  it('explains why its folder or database cannot be used, without printing the password', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const serve = (more: Record<string, string>) =>
      runToolhostCommand(['serve'], { env: { ...localEnv('x'), ...more } });
    assertRefused(await serve({ DATA_DIR: join(file, 'data') }), /is below a file/);
    const noDatabase = await serve({ DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:9/none' });
    assertRefused(noDatabase, /the database does not (answer|respond): .*ECONNREFUSED/);
    assert.doesNotMatch(noDatabase.stderr, /hunter2/);
  });
});

describe('every command', () => {
  let help = '';
  const leafCommands = findLeafCommands(createProgram({ width: 80, write: (text) => (help += text) }));

  it('[ship 7] prints JSON with --json', () => {
    assert.ok(leafCommands.length > 30);
    for (const { name, command } of leafCommands)
      assert.ok(commandsWithoutJson.includes(name) || command.options.some(({ long }) => long === '--json'), name);
  });

  it('[ship 7] fits its help into 80 columns and describes each argument and option', () => {
    for (const { name, command } of leafCommands) {
      assert.notEqual(command.description(), '', name);
      for (const argument of command.registeredArguments)
        assert.notEqual(argument.description, '', `${name} ${argument.name()}`);
      for (const { flags, description } of command.options) assert.notEqual(description, '', `${name} ${flags}`);
      help = '';
      command.outputHelp();
      // URLs and command lines are not wrapped.
      const longLines = help.split('\n').filter((line) => line.length > 80 && !/^ {2}\S|^ {2,}.*https?:/.test(line));
      assert.deepEqual(name === 'serve' ? [] : longLines, [], name);
    }
  });

  it('[ship 7] reports a failure as one JSON object with --json, with the same exit codes', async () => {
    const env = { TOOLHOST_URL: 'http://127.0.0.1:1', TOOLHOST_API_KEY: 'thk_x' };
    const cases: [string[], number, string][] = [
      [['servers', 'list'], 1, 'unavailable'],
      [['servers', 'list', '--jsn'], 2, 'usage'],
      [['servers', 'get'], 2, 'usage'],
      [['calls', '--since', 'tomorrow'], 2, 'usage'],
      [['diff'], 1, 'usage'],
      [['servers', 'create', '/nowhere.yaml'], 1, 'notFound'],
      [['profiles', 'use', 'absent'], 1, 'notFound'],
      [['restore', '/nowhere.backup'], 1, 'notFound'],
    ];
    for (const [args, code, kind] of cases) {
      const ended = await runToolhostCommand([...args, '--json'], { env: { ...env, XDG_CONFIG_HOME: '/nowhere' } });
      assert.deepEqual([ended.code, ended.stdout], [code, ''], args.join(' '));
      const { error } = JSON.parse(ended.stderr) as { error: { kind: string; message: string; problems: object[] } };
      assert.deepEqual([error.kind, Array.isArray(error.problems)], [kind, true], ended.stderr);
      assert.doesNotMatch(error.message, /^error|^\s+at /m);
    }
  });
});

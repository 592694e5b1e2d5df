import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import type { KeyScope } from '@toolhost/credentials/credential';
import { readConfig } from '../../apps/server/src/config.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { assertFailed, createTestFolder } from '../support/toolhost/command-world.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand, runToolhostJson, toolhostProgram } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const checkout = resolve(import.meta.dirname, '..', '..');

describe('first use of the command line', async () => {
  const folder = createTestFolder();

  it('[find D3] creates no database when reading, and reports where it looked for one', async () => {
    const empty = mkdtempSync(join(folder, 'empty-'));
    const commands = [
      ['keys', 'list'],
      ['keys', 'revoke', 'key_x', '--yes'],
      ['limits', 'show'],
      ['limits', 'set', '--calls-per-second', '5'],
      ['limits', 'reset', '--server', 'x'],
    ];
    for (const command of commands) {
      for (const dir of command[0] === 'keys' ? [empty, join(empty, 'not-there')] : [empty]) {
        const ended = await runToolhostCommand(command, { env: { DATA_DIR: dir } });
        assertFailed(ended, /^error: there is no database in .*; .*DATA_DIR/);
        assert.ok(ended.stderr.includes(dir), ended.stderr);
      }
    }
    assert.deepEqual(readdirSync(empty), []);
  });

  it('[find D3] reports a database that the first key creates, and reports it only once', async () => {
    const dir = join(folder, 'made');
    const args = ['keys', 'create', '--name', 'me', '--scopes', 'manage', '--json'];
    const create = () => runToolhostCommand(args, { env: { DATA_DIR: dir } });
    const first = await create();
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, /^created a new database in .*; start the service with the same DATA_DIR\n$/);
    assert.ok(first.stderr.includes(dir));
    assert.deepEqual(Object.keys(JSON.parse(first.stdout) as object), ['id', 'key', 'scopes']);
    assert.equal((await create()).stderr, '');
  });

  it('stores data in ./data in a checkout or if that folder exists, and otherwise in the user data folder', async () => {
    assert.equal(readConfig({}, () => '').config.dataDir, './data');
    const home = mkdtempSync(join(folder, 'home-'));
    const args = ['keys', 'create', '--name', 'me', '--scopes', 'manage', '--quiet'];
    const create = async (env: Record<string, string>) => {
      const created = await runToolhostCommand(args, { usesProcess: true, cwd: home, env: { HOME: home, ...env } });
      assert.match(created.stdout, /^thk_\w+\n$/);
      return /^created a new database in (.*); start/.exec(created.stderr)?.[1] ?? created.stderr;
    };
    const defaultFolder =
      process.platform === 'darwin' ? 'Library/Application Support/Toolhost' : '.local/share/toolhost';
    assert.equal(await create({}), join(home, defaultFolder));
    if (process.platform === 'linux')
      assert.equal(await create({ XDG_DATA_HOME: join(home, 'xdg') }), join(home, 'xdg', 'toolhost'));
    mkdirSync(join(home, 'data'));
    assert.equal(await create({}), join(home, 'data'));
  });

  it('serves from the folder and at the port of its options, and prints where the data is', async () => {
    const dir = join(folder, 'option');
    const port = String(await findFreePort());
    for (const workers of ['1', '2']) {
      const args = ['serve', '--port', port, '--data-dir', dir];
      const env = { PORT: '1', WORKERS: workers, DATA_DIR: join(folder, 'unused'), LOG_LEVEL: 'silent' };
      const serving = await startChildToolhost(env, toolhostProgram, args);
      assert.equal(serving.url, `http://127.0.0.1:${port}`);
      assert.ok(serving.output('stderr').includes(`\n  Data           ${dir}\n`), serving.output('stderr'));
      assert.equal((await fetch(`${serving.url}/readyz`)).status, 200);
      assert.equal(await serving.end(), 0);
    }
    assert.deepEqual([existsSync(join(dir, 'toolhost.sqlite')), existsSync(join(folder, 'unused'))], [true, false]);
  });

  it('[find D3] starts the service in a folder, and prints a command that creates a key', async () => {
    const dir = join(folder, "it's here");
    const serving = await startChildToolhost({ PORT: '0', DEMO: '0', DATA_DIR: dir, LOG_LEVEL: 'silent' });
    try {
      const stderr = serving.output('stderr');
      const line = stderr.split('\n').find((text) => text.includes('keys create')) ?? assert.fail(stderr);
      const script = `${line}\necho $TOOLHOST_API_KEY`;
      const created = await runToolhostCommand(['-c', script], { program: '/bin/sh', cwd: checkout });
      assert.deepEqual([created.code, created.stderr], [0, '']);
      const key = created.stdout.trim();
      const { status } = await fetch(`${serving.url}/api/v1/servers`, { headers: { authorization: `Bearer ${key}` } });
      assert.equal(status, 200);
    } finally {
      await serving.end();
    }
  });
});

describe('commands printed with a new key', async () => {
  const upstream = await startRecordingUpstream();
  const running = await startToolhost({ egressPorts: [upstream.port] });
  await running.createServer(buildServerAt('open-api', upstream.url, { tools: [buildToolAt(`${upstream.url}/x`)] }));
  after(() => Promise.all([running.stop(), upstream.close()]));

  const limits: [scopes: KeyScope[], servers: string[]][] = [
    [['manage'], []],
    [['manage:read'], []],
    [['manage:write', 'call'], []],
    [['call'], ['--server', 'open-api']],
  ];
  for (const [scopes, servers] of limits) {
    it(`[find D3] work with the scopes of the key: ${scopes.join(',')} ${servers.join(' ')}`, async () => {
      const env = { DATA_DIR: running.dataDir, TOOLHOST_URL: running.url };
      const args = ['keys', 'create', '--name', 'n', '--scopes', scopes.join(','), ...servers];
      const { code, stdout, stderr } = await runToolhostCommand(args, { env });
      assert.deepEqual([code, stderr], [0, '']);
      const key = /thk_\w+/.exec(stdout)?.[0] ?? '';
      const commands = [...stdout.matchAll(/^ {2}((?:bin\/toolhost|curl) .*)$/gm)].map(([, text = '']) => text);
      assert.ok(commands.length > 0, stdout);
      for (const command of commands) {
        const text = command
          .replaceAll('SLUG', 'open-api')
          .replaceAll('TOOL ', 'get ')
          .replaceAll('/TOOL/', '/get/')
          .replaceAll(' name=value', '')
          .replace('server.yaml', '/dev/null')
          .replace('bin/toolhost', toolhostProgram);
        const keyEnv = { TOOLHOST_API_KEY: key, TOOLHOST_URL: running.url };
        const finished = await runToolhostCommand(['-c', text], { program: '/bin/sh', env: keyEnv });
        const refusal = /needs the scope|"status":40[13]|is limited to/;
        assert.doesNotMatch(finished.stdout + finished.stderr, refusal, command);
      }
    });
  }

  it('[find D3] [find D5] suggests the nearest slug for an unknown server, and creates no key', async () => {
    const env = { DATA_DIR: running.dataDir };
    const args = ['keys', 'create', '--name', 'n', '--scopes', 'call', '--server', 'open-ap'];
    const refused = await runToolhostCommand(args, { env });
    assertFailed(refused, /"open-ap" in this workspace; did you mean `open-api`\?/);
    const { keys } = await runToolhostJson<{ keys: { servers?: string[] }[] }>(['keys', 'list'], { env });
    assert.ok(keys.every(({ servers }) => !servers?.includes('open-ap')));
  });
});

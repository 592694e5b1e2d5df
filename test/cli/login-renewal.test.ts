import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, beforeEach, describe, it } from 'node:test';
import { withDeferredSignals } from '../../src/cli/profiles/own-files.ts';
import { eventually } from '../support/eventually.ts';
import { logInWithCommand } from '../support/toolhost/login-command.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { beginToolhost, toolhost } from '../support/toolhost/toolhost-command.ts';
import { freePort } from '../support/upstreams/listener.ts';
import { type SilentProxy, startSilentProxy } from '../support/upstreams/silent-proxy.ts';

type Login = { access_token: string; refresh_token: string; token_endpoint: string };
const withinMs = 30_000;

describe('login renewal', () => {
  let running: TestToolhost;
  /** Runs in front of the service. */
  let proxy: SilentProxy;
  let folder: string;
  let env: { XDG_CONFIG_HOME: string };
  let aheadMs = 0;
  /** Runs in front of the token endpoint: counts its responses, and can delay them. */
  let watched: Server;
  let url: string;
  let asked = 0;
  let answered = 0;
  let held: Promise<void> | undefined;
  let fails = false;
  before(async () => {
    const port = await freePort();
    proxy = await startSilentProxy({ host: '127.0.0.1', port });
    running = await startToolhost({
      env: { PORT: String(port), BASE_URL: `http://127.0.0.1:${proxy.port}` },
      surroundings: { now: () => Date.now() + aheadMs },
    });
    folder = mkdtempSync(join(tmpdir(), 'toolhost-renewal-'));
    watched = createServer(async (request, response) => {
      const body = await text(request);
      if (fails) return void response.writeHead(503).end();
      const answer = await fetch(`${running.url}/mcp/manage/token`, {
        method: 'POST',
        headers: { 'content-type': request.headers['content-type'] ?? '' },
        body,
      });
      const tokens = await answer.text();
      asked += 1;
      await held;
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(tokens, () => {
        answered += 1;
      });
    });
    await new Promise<void>((resolve) => watched.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(watched.address() as AddressInfo).port}/token`;
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    watched.closeAllConnections();
    watched.close();
    await running.stop();
    await proxy.close();
  });
  beforeEach(async () => {
    env = { XDG_CONFIG_HOME: mkdtempSync(join(folder, 'person-')) };
    assert.equal((await logInWithCommand([running.url], { env })).code, 0);
    change((login) => ({ ...login, token_endpoint: url }));
    aheadMs += 61 * 60_000;
    asked = 0;
    answered = 0;
    held = undefined;
    fails = false;
  });

  const file = () => join(env.XDG_CONFIG_HOME, 'toolhost', 'credentials.json');
  const stored = () => (JSON.parse(readFileSync(file(), 'utf8')) as { profiles: { default: Login } }).profiles.default;
  const change = (next: (login: Login) => Login) =>
    writeFileSync(file(), JSON.stringify({ profiles: { default: next(stored()) } }));
  const list = () => toolhost(['servers', 'list'], { env, isChild: true });

  it('[ship 7] stores the new tokens when the command is interrupted during renewal, and then exits', async () => {
    const before = stored();
    let release = () => {};
    held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const child = beginToolhost(['servers', 'list'], { env });
    const ended = once(child, 'exit');
    await eventually(() => assert.equal(asked, 1), withinMs);
    // The request with the new tokens gets no response, so only the signal can end the command.
    proxy.silence();
    // The command finds the signal and the response at the same time.
    child.kill('SIGSTOP');
    child.kill('SIGINT');
    release();
    await eventually(() => assert.equal(answered, 1), withinMs);
    child.kill('SIGCONT');
    assert.deepEqual(await ended, [null, 'SIGINT']);
    proxy.cut();
    proxy.heal();
    assert.notEqual(stored().refresh_token, before.refresh_token);
    assert.equal((await list()).code, 0);
    assert.equal(asked, 1);
    assert.deepEqual(
      readdirSync(join(env.XDG_CONFIG_HOME, 'toolhost')).filter((name) => name.endsWith('.draft')),
      [],
    );
  });

  it('[ship 7] keeps the tokens when the service does not respond', async () => {
    const before = readFileSync(file(), 'utf8');
    fails = true;
    const end = await list();
    assert.deepEqual([end.code, /returned no tokens: 503/.test(end.stderr)], [1, true], end.stderr);
    assert.equal(readFileSync(file(), 'utf8'), before);
    fails = false;
    assert.equal((await list()).code, 0);
  });

  it('[ship 7] is not blocked by a process that died while it held the lock', async () => {
    const lock = join(env.XDG_CONFIG_HOME, 'toolhost', 'credentials.lock');
    const holds = `
      const { DatabaseSync } = require('node:sqlite');
      new DatabaseSync(process.argv[1]).exec('BEGIN EXCLUSIVE');
      console.log('held');
      setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, ['-e', holds, lock], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(holder.stdout, 'data');
    const listing = list();
    holder.kill('SIGKILL');
    assert.equal((await listing).code, 0);
    assert.equal(asked, 1);
  });

  it('[ship 7] leaves one signal listener behind, however often a long-running command renews its login', async () => {
    const before = process.listenerCount('SIGINT');
    for (let renewal = 0; renewal < 20; renewal++) await withDeferredSignals(async () => undefined);
    assert.equal(process.listenerCount('SIGINT'), before + 1);
  });
});

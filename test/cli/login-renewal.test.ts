import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, beforeEach, describe, it } from 'node:test';
import { withDeferredSignals } from '../../apps/cli/src/profiles/private-files.ts';
import { eventually } from '../support/eventually.ts';
import { assertFailed, createTestFolder } from '../support/toolhost/command-world.ts';
import { logInWithCommand } from '../support/toolhost/login-command.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand, spawnToolhost } from '../support/toolhost/toolhost-command.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startSilentProxy } from '../support/upstreams/silent-proxy.ts';

type Login = { access_token: string; refresh_token: string; token_endpoint: string };
const timeoutMs = 30_000;

describe('login renewal', async () => {
  let env: { XDG_CONFIG_HOME: string };
  let aheadMs = 0;
  let tokenRequests = 0;
  let tokenResponses = 0;
  let tokenDelay: Promise<void> | undefined;
  let isFailing = false;
  const port = await findFreePort();
  /** Runs in front of the service. */
  const proxy = await startSilentProxy({ host: '127.0.0.1', port });
  const running = await startToolhost({
    env: { PORT: String(port), BASE_URL: `http://127.0.0.1:${proxy.port}` },
    runtimeOptions: { now: () => Date.now() + aheadMs },
  });
  const folder = createTestFolder();
  /** Runs in front of the token endpoint: counts its responses, and can delay them. */
  const tokenEndpoint = createServer(async (request, response) => {
    const body = await text(request);
    if (isFailing) return void response.writeHead(503).end();
    const headers = { 'content-type': request.headers['content-type'] ?? '' };
    const tokenResponse = await fetch(`${running.url}/mcp/manage/token`, { method: 'POST', headers, body });
    const tokens = await tokenResponse.text();
    tokenRequests += 1;
    await tokenDelay;
    response.writeHead(tokenResponse.status, { 'content-type': 'application/json' });
    response.end(tokens, () => (tokenResponses += 1));
  });
  await new Promise<void>((resolve) => tokenEndpoint.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(tokenEndpoint.address() as AddressInfo).port}/token`;
  after(async () => {
    tokenEndpoint.closeAllConnections();
    tokenEndpoint.close();
    await running.stop();
    await proxy.close();
  });
  beforeEach(async () => {
    env = { XDG_CONFIG_HOME: mkdtempSync(join(folder, 'person-')) };
    assert.equal((await logInWithCommand([running.url], { env })).code, 0);
    changeLogin((login) => ({ ...login, token_endpoint: url }));
    aheadMs += 61 * 60_000;
    [tokenRequests, tokenResponses, tokenDelay] = [0, 0, undefined];
    isFailing = false;
  });

  const credentialsFile = () => join(env.XDG_CONFIG_HOME, 'toolhost', 'credentials.json');
  const readLogin = () =>
    (JSON.parse(readFileSync(credentialsFile(), 'utf8')) as { profiles: { default: Login } }).profiles.default;
  const changeLogin = (update: (login: Login) => Login) =>
    writeFileSync(credentialsFile(), JSON.stringify({ profiles: { default: update(readLogin()) } }));
  const listServers = () => runToolhostCommand(['servers', 'list'], { env, usesProcess: true });

  it('[ship 7] stores the new tokens when the command is interrupted during renewal, and then exits', async () => {
    const before = readLogin();
    const { promise, resolve: release } = Promise.withResolvers<void>();
    tokenDelay = promise;
    const child = spawnToolhost(['servers', 'list'], { env });
    const ended = once(child, 'exit');
    await eventually(() => assert.equal(tokenRequests, 1), timeoutMs);
    // The request with the new tokens gets no response, so only the signal can end the command.
    proxy.silence();
    // The command finds the signal and the response at the same time.
    child.kill('SIGSTOP');
    child.kill('SIGINT');
    release();
    await eventually(() => assert.equal(tokenResponses, 1), timeoutMs);
    child.kill('SIGCONT');
    assert.deepEqual(await ended, [null, 'SIGINT']);
    proxy.cut();
    proxy.heal();
    assert.notEqual(readLogin().refresh_token, before.refresh_token);
    assert.equal((await listServers()).code, 0);
    assert.equal(tokenRequests, 1);
    for (const name of readdirSync(join(env.XDG_CONFIG_HOME, 'toolhost'))) assert.doesNotMatch(name, /\.draft$/);
  });

  it('[ship 7] keeps the tokens when the service does not respond', async () => {
    const before = readFileSync(credentialsFile(), 'utf8');
    isFailing = true;
    assertFailed(await listServers(), /returned no tokens: 503/);
    assert.equal(readFileSync(credentialsFile(), 'utf8'), before);
    isFailing = false;
    assert.equal((await listServers()).code, 0);
  });

  it('[ship 7] is not blocked by a process that died while it held the lock', async () => {
    const lock = join(env.XDG_CONFIG_HOME, 'toolhost', 'credentials.lock');
    const lockScript = `
      const { DatabaseSync } = require('node:sqlite');
      new DatabaseSync(process.argv[1]).exec('BEGIN EXCLUSIVE');
      console.log('held');
      setInterval(() => {}, 1000);`;
    const lockHolder = spawn(process.execPath, ['-e', lockScript, lock], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(lockHolder.stdout, 'data');
    const listing = listServers();
    lockHolder.kill('SIGKILL');
    assert.equal((await listing).code, 0);
    assert.equal(tokenRequests, 1);
  });

  it('[ship 7] leaves one signal listener behind, however often a long-running command renews its login', async () => {
    const before = process.listenerCount('SIGINT');
    for (let renewal = 0; renewal < 20; renewal++) await withDeferredSignals(async () => undefined);
    assert.equal(process.listenerCount('SIGINT'), before + 1);
  });
});

import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { signInLocalUser } from '../support/oauth/signed-in-agent.ts';
import { logInWithCommand, startLogin } from '../support/toolhost/login-command.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

type Stored = {
  profiles: Record<string, { url: string; client_id: string; access_token: string; refresh_token: string }>;
};

describe('toolhost login details', () => {
  let running: TestToolhost;
  let folder: string;
  before(async () => {
    running = await startToolhost();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-login-'));
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await running.stop();
  });

  let personCount = 0;
  /** Returns the environment of a person who has never used the command line. */
  const newPerson = () => ({ XDG_CONFIG_HOME: join(folder, `person-${++personCount}`) });
  const configFolder = (env: { XDG_CONFIG_HOME: string }) => join(env.XDG_CONFIG_HOME, 'toolhost');
  const readCredentials = (env: { XDG_CONFIG_HOME: string }) =>
    JSON.parse(readFileSync(join(configFolder(env), 'credentials.json'), 'utf8')) as Stored;
  async function logInNewPerson(...args: string[]) {
    const env = newPerson();
    const ended = await logInWithCommand([running.url, ...args], { env });
    assert.equal(ended.code, 0, ended.stderr);
    return env;
  }
  const listServers = (env: Record<string, string>, ...args: string[]) =>
    runToolhostCommand(['servers', 'list', ...args], { env });

  it('[ship 7] keeps waiting after a request with a forged state reaches the loopback address', async () => {
    const env = newPerson();
    const login = startLogin([running.url], { env });
    const redirect = await signInLocalUser(await login.address);
    const forged = new URL(redirect);
    forged.searchParams.set('state', 'forged');
    assert.equal((await fetch(forged)).status, 400);
    assert.equal((await fetch(new URL('/else', redirect))).status, 404);
    const page = await fetch(redirect);
    assert.equal(page.status, 200);
    assert.match(await page.text(), /You are logged in/);
    assert.equal((await login.ended).code, 0);
  });

  it('[ship 7] opens the configured browser', async () => {
    const env = newPerson();
    const openedFile = join(folder, 'opened');
    const browser = join(folder, 'browser.sh');
    writeFileSync(browser, `#!/bin/sh\nprintf %s "$1" > '${openedFile}'\n`);
    chmodSync(browser, 0o755);
    const login = startLogin([running.url], { env: { ...env, BROWSER: browser } });
    const address = await login.address;
    await eventually(() => assert.equal(readFileSync(openedFile, 'utf8'), address));
    await fetch(await signInLocalUser(address));
    assert.equal((await login.ended).code, 0);
  });

  it('[ship 7] ends the previous login when the same profile logs in again', async () => {
    const env = await logInNewPerson();
    const first = readCredentials(env).profiles.default?.access_token ?? '';
    assert.equal((await logInWithCommand([], { env })).code, 0);
    assert.equal((await running.rest('GET', '/servers', { key: first })).status, 401);
    assert.equal((await listServers(env)).code, 0);
  });

  it('[ship 7] requests fewer scopes with --read-only', async () => {
    const env = await logInNewPerson('--read-only');
    assert.equal((await listServers(env)).code, 0);
    const file = join(folder, 'never.json');
    writeFileSync(file, JSON.stringify({ name: 'Never', slug: 'never', tools: [] }));
    const refused = await runToolhostCommand(['servers', 'create', file], { env });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /needs the scope manage:write; the credential has manage:read/);
  });

  it('[ship 7] keeps the tokens of a service that is down', async () => {
    const service = await startToolhost();
    const env = newPerson();
    assert.equal((await logInWithCommand([service.url], { env })).code, 0);
    await service.stop();
    const whileDown = await listServers(env);
    assert.deepEqual([whileDown.code, /no service is listening at/.test(whileDown.stderr)], [1, true]);
    const loggedOut = await runToolhostCommand(['logout'], { env });
    assert.deepEqual(
      [loggedOut.code, /cannot be reached: .*Nothing was removed/.test(loggedOut.stderr)],
      [1, true],
      loggedOut.stderr,
    );
    assert.ok(readCredentials(env).profiles.default);
    assert.equal((await runToolhostCommand(['logout', '--local'], { env })).code, 0);
    assert.deepEqual(readCredentials(env).profiles, {});
    const repeated = await startLogin([service.url], { env }).ended;
    assert.deepEqual([repeated.code, /cannot be reached/.test(repeated.stderr)], [1, true]);
  });
});

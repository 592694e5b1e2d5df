import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { signInPerson } from '../support/oauth/signed-in-agent.ts';
import { beginLogin, logInWithCommand } from '../support/toolhost/login-command.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

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

  let homes = 0;
  /** Returns the environment of a person who has never used the command line. */
  const newPerson = () => ({ XDG_CONFIG_HOME: join(folder, `person-${++homes}`) });
  const files = (env: { XDG_CONFIG_HOME: string }) => join(env.XDG_CONFIG_HOME, 'toolhost');
  const stored = (env: { XDG_CONFIG_HOME: string }) =>
    JSON.parse(readFileSync(join(files(env), 'credentials.json'), 'utf8')) as Stored;
  async function loggedIn(...args: string[]) {
    const env = newPerson();
    const end = await logInWithCommand([running.url, ...args], { env });
    assert.equal(end.code, 0, end.stderr);
    return env;
  }
  const list = (env: Record<string, string>, ...args: string[]) => toolhost(['servers', 'list', ...args], { env });

  it('[ship 7] keeps waiting after a request with a forged state reaches the loopback address', async () => {
    const env = newPerson();
    const login = beginLogin([running.url], { env });
    const answer = await signInPerson(await login.address);
    const forged = new URL(answer);
    forged.searchParams.set('state', 'forged');
    assert.equal((await fetch(forged)).status, 400);
    assert.equal((await fetch(new URL('/else', answer))).status, 404);
    const page = await fetch(answer);
    assert.equal(page.status, 200);
    assert.match(await page.text(), /You are logged in/);
    assert.equal((await login.ended).code, 0);
  });

  it('[ship 7] opens the configured browser', async () => {
    const env = newPerson();
    const opened = join(folder, 'opened');
    const browser = join(folder, 'browser.sh');
    writeFileSync(browser, `#!/bin/sh\nprintf %s "$1" > '${opened}'\n`);
    chmodSync(browser, 0o755);
    const login = beginLogin([running.url], { env: { ...env, BROWSER: browser } });
    const address = await login.address;
    await eventually(() => assert.equal(readFileSync(opened, 'utf8'), address));
    await fetch(await signInPerson(address));
    assert.equal((await login.ended).code, 0);
  });

  it('[ship 7] ends the previous login when the same profile logs in again', async () => {
    const env = await loggedIn();
    const first = stored(env).profiles.default?.access_token ?? '';
    assert.equal((await logInWithCommand([], { env })).code, 0);
    assert.equal((await running.rest('GET', '/servers', { key: first })).status, 401);
    assert.equal((await list(env)).code, 0);
  });

  it('[ship 7] requests fewer scopes with --read-only', async () => {
    const env = await loggedIn('--read-only');
    assert.equal((await list(env)).code, 0);
    const file = join(folder, 'never.json');
    writeFileSync(file, JSON.stringify({ name: 'Never', slug: 'never', tools: [] }));
    const refused = await toolhost(['servers', 'create', file], { env });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /needs the scope manage:write; the credential has manage:read/);
  });

  it('[ship 7] keeps the tokens of a service that is down', async () => {
    const service = await startToolhost();
    const env = newPerson();
    assert.equal((await logInWithCommand([service.url], { env })).code, 0);
    await service.stop();
    const down = await list(env);
    assert.deepEqual([down.code, /no service is listening at/.test(down.stderr)], [1, true]);
    const out = await toolhost(['logout'], { env });
    assert.deepEqual([out.code, /cannot be reached: .*Nothing was removed/.test(out.stderr)], [1, true], out.stderr);
    assert.ok(stored(env).profiles.default);
    assert.equal((await toolhost(['logout', '--local'], { env })).code, 0);
    assert.deepEqual(stored(env).profiles, {});
    const again = await beginLogin([service.url], { env }).ended;
    assert.deepEqual([again.code, /cannot be reached/.test(again.stderr)], [1, true]);
  });
});

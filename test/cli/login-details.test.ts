import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { signInLocalUser } from '../support/oauth/signed-in-agent.ts';
import { assertFailed } from '../support/toolhost/command-world.ts';
import { logInWithCommand, startLogin } from '../support/toolhost/login-command.ts';
import { createLoginProfiles } from '../support/toolhost/login-profiles.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

describe('toolhost login details', async () => {
  const running = await startToolhost();
  after(() => running.stop());
  const { folder, newPerson, readCredentials, logInNewPerson, listServers } = createLoginProfiles(running.url);

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
    assertFailed(refused, /needs the scope manage:write; the credential has manage:read/);
  });

  it('[ship 7] keeps the tokens of a service that is down', async () => {
    const service = await startToolhost();
    const env = newPerson();
    assert.equal((await logInWithCommand([service.url], { env })).code, 0);
    await service.stop();
    // In this process, the command could find an idle connection to the stopped service.
    const whileDown = await runToolhostCommand(['servers', 'list'], { env, usesProcess: true });
    assertFailed(whileDown, /no service is listening at/);
    assertFailed(await runToolhostCommand(['logout'], { env }), /cannot be reached: .*Nothing was removed/);
    assert.ok(readCredentials(env).profiles.default);
    assert.equal((await runToolhostCommand(['logout', '--local'], { env })).code, 0);
    assert.deepEqual(readCredentials(env).profiles, {});
    assertFailed(await startLogin([service.url], { env }).ended, /cannot be reached/);
  });
});

import assert from 'node:assert/strict';
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { parse } from 'yaml';
import { eventually } from '../support/eventually.ts';
import { signInLocalUser } from '../support/oauth/signed-in-agent.ts';
import { pluck } from '../support/pluck.ts';
import { assertFailed } from '../support/toolhost/command-world.ts';
import { logInWithCommand, startLogin } from '../support/toolhost/login-command.ts';
import { createLoginProfiles } from '../support/toolhost/login-profiles.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand, runToolhostJson } from '../support/toolhost/toolhost-command.ts';

describe('toolhost login', async () => {
  let aheadMs = 0;
  const running = await startToolhost({ runtimeOptions: { now: () => Date.now() + aheadMs } });
  after(() => running.stop());
  const { newPerson, getConfigFolder, readCredentials, logInNewPerson, listServers } = createLoginProfiles(running.url);

  it('[ship 7] logs in through a loopback address, stores the tokens readable only by the user, and then needs no key', async () => {
    const env = newPerson();
    const end = await logInWithCommand([running.url], { env });
    const report = `Logged in to ${running.url}; profile: default; scopes: manage:read, manage:write.\n`;
    assert.deepEqual([end.code, end.stdout], [0, report]);
    const { default: tokens } = readCredentials(env).profiles;
    assert.ok(tokens);
    for (const token of [tokens.access_token, tokens.refresh_token])
      assert.ok(!end.stdout.includes(token) && !end.stderr.includes(token));
    assert.equal(statSync(join(getConfigFolder(env), 'credentials.json')).mode & 0o777, 0o600);
    assert.equal(statSync(getConfigFolder(env)).mode & 0o777, 0o700);
    const config = parse(readFileSync(join(getConfigFolder(env), 'config.yaml'), 'utf8'));
    assert.deepEqual(config, { profile: 'default', profiles: { default: { url: running.url } } });
    const listed = await listServers(env);
    assert.deepEqual([listed.code, listed.stderr], [0, '']);
    for (const name of readdirSync(getConfigFolder(env)))
      assert.match(name, /^(config\.yaml|credentials\.(json|lock))$/);
  });

  it('[ship 7] accepts the redirected URL on standard input, and rejects anything else', async () => {
    const env = newPerson();
    const login = startLogin([running.url, '--no-browser'], { env });
    const address = await login.address;
    const redirect = await signInLocalUser(address);
    const otherState = new URL(redirect);
    otherState.searchParams.set('state', 'of-another-login');
    const otherIssuer = new URL(redirect);
    otherIssuer.searchParams.set('iss', 'https://evil.example');
    for (const line of ['', 'nothing', redirect.searchParams.get('code') ?? '', otherState.href, otherIssuer.href])
      login.pasteLine(line);
    await eventually(() => assert.match(login.stderrText(), /does not come from/));
    assert.match(login.stderrText(), /that is not the URL that the login redirected to/);
    assert.match(login.stderrText(), /the response belongs to another login/);
    login.pasteLine(`  ${redirect.href}  `);
    assert.equal((await login.ended).code, 0);
    assert.equal((await listServers(env)).code, 0);
  });

  it('[ship 7] exits with the reason when the person cancels', async () => {
    const login = startLogin([running.url], { env: newPerson() });
    const cancelled = new URL(new URL(await login.address).searchParams.get('redirect_uri') ?? '');
    const state = new URL(await login.address).searchParams.get('state') ?? '';
    cancelled.search = String(new URLSearchParams({ error: 'access_denied', state, iss: `${running.url}/mcp/manage` }));
    await fetch(cancelled);
    assertFailed(await login.ended, /^error: the login was canceled or refused; the browser shows which$/m);
  });

  it('[ship 7] renews expired tokens once, however many commands need them', async () => {
    const env = await logInNewPerson();
    aheadMs += 61 * 60_000;
    const before = readCredentials(env).profiles.default;
    const ends = await Promise.all(Array.from({ length: 6 }, () => listServers(env)));
    for (const { code, stderr } of ends) assert.deepEqual([code, stderr], [0, '']);
    const renewed = readCredentials(env).profiles.default;
    assert.notEqual(renewed?.access_token, before?.access_token);
    // Past the grace period in which the service accepts the previous refresh token again.
    aheadMs += 61 * 60_000;
    assert.equal((await listServers(env)).code, 0);
    assert.notEqual(readCredentials(env).profiles.default?.refresh_token, renewed?.refresh_token);
  });

  it('[ship 7] ends a login immediately on logout and on revocation elsewhere', async () => {
    const env = await logInNewPerson();
    const token = readCredentials(env).profiles.default?.access_token ?? '';
    const getStatus = async () => (await running.rest('GET', '/servers', { key: token })).status;
    assert.equal(await getStatus(), 200);
    const loggedOut = await runToolhostCommand(['logout'], { env });
    assert.deepEqual([loggedOut.code, loggedOut.stdout], [0, `Logged out of ${running.url}; profile: default.\n`]);
    assert.equal(await getStatus(), 401);
    assert.deepEqual(readCredentials(env).profiles, {});
    assertFailed(await listServers(env), /the profile "default" has no login .*login --profile default/);

    const other = await logInNewPerson();
    type Grants = { grants: { id: string; server: string; client: string; status: string }[] };
    const { grants } = await runToolhostJson<Grants>(['logins', 'list'], { env: other });
    const login = grants.find(({ status }) => status === 'active') ?? assert.fail();
    assert.match(login.client, /^Toolhost command line on /);
    assert.equal((await runToolhostCommand(['logins', 'end', login.id, '--yes'], { env: other })).code, 0);
    const ended = /the login of the profile "default" has ended; log in again with: .*login --profile/;
    assertFailed(await listServers(other), ended);
  });

  it('[ship 7] stores an API key from standard input', async () => {
    const env = newPerson();
    const key = await running.createKey();
    const end = await runToolhostCommand(['login', running.url, '--with-key'], { env, input: `${key}\n` });
    assert.deepEqual([end.code, end.stdout], [0, `Logged in to ${running.url}; profile: default.\n`]);
    assert.equal((await listServers(env)).code, 0);
    const bad = await runToolhostCommand(['login', running.url, '--with-key'], { env, input: 'thk_wrong\n' });
    assert.equal(bad.code, 1);
    assert.equal((await listServers(env)).code, 0, 'the good key stays');
  });

  it('[ship 7] rejects files that others may read or change', async () => {
    const env = await logInNewPerson();
    const credentials = join(getConfigFolder(env), 'credentials.json');
    chmodSync(credentials, 0o644);
    assertFailed(await listServers(env), /credentials\.json: has mode 644, .*chmod 600/);
    chmodSync(credentials, 0o600);
    chmodSync(join(getConfigFolder(env), 'config.yaml'), 0o666);
    assertFailed(await listServers(env), /config\.yaml: has mode 666, .*chmod 644/);
    const key = await running.createKey();
    assert.equal((await listServers({ ...env, TOOLHOST_API_KEY: key, TOOLHOST_URL: running.url })).code, 0);
  });

  it('[ship 7] says what to do about damaged files, and prints none of their content', async () => {
    const env = await logInNewPerson();
    const credentials = join(getConfigFolder(env), 'credentials.json');
    const token = readCredentials(env).profiles.default?.access_token ?? '';
    writeFileSync(credentials, `{"profiles": {"default": "${token}"`);
    const damaged = await listServers(env);
    assert.match(damaged.stderr, /credentials\.json: is damaged\. Remove the file and log in again/);
    assert.ok(!damaged.stderr.includes(token));
    writeFileSync(join(getConfigFolder(env), 'config.yaml'), 'profiles: [');
    assert.match((await listServers(env)).stderr, /config\.yaml: is not YAML/);
    writeFileSync(join(getConfigFolder(env), 'config.yaml'), 'profiles: {default: {url: "javascript:1"}}');
    assert.match((await listServers(env)).stderr, /profiles\.default\.url: allowed: an http/);
  });

  it('[ship 7] has several profiles; options override the environment, which overrides the current profile', async () => {
    const env = await logInNewPerson('--profile', 'work');
    const key = await running.createKey({ workspace: 'elsewhere' });
    const second = await startToolhost();
    try {
      assert.equal((await logInWithCommand([second.url], { env })).code, 0);
      type Listed = { profiles: { name: string; url: string; credential: string; in_use: boolean }[] };
      const listProfiles = (more = {}) => runToolhostJson<Listed>(['profiles'], { env: { ...env, ...more } });
      assert.deepEqual((await listProfiles()).profiles, [
        { name: 'work', url: running.url, credential: 'login', in_use: false },
        { name: 'default', url: second.url, credential: 'login', in_use: true },
      ]);
      assert.equal((await listProfiles({ TOOLHOST_PROFILE: 'work' })).profiles[0]?.in_use, true);
      await running.createServer({ name: 'Here', slug: 'only-here', tools: [] });
      const listsServer = async (more: Record<string, string>, ...args: string[]) =>
        (await listServers({ ...env, ...more }, ...args)).stdout.includes('only-here');
      const environmentKey = { TOOLHOST_API_KEY: key, TOOLHOST_URL: running.url };
      assert.equal(await listsServer({}), false);
      assert.equal(await listsServer({ TOOLHOST_PROFILE: 'work' }), true);
      assert.equal(await listsServer({}, '--profile', 'work'), true);
      assert.equal(await listsServer({ TOOLHOST_PROFILE: 'default' }, '--profile', 'work'), true);
      assert.equal(await listsServer(environmentKey, '--profile', 'work'), true);
      assert.equal(await listsServer({ ...environmentKey, TOOLHOST_PROFILE: 'work' }), false);
      assert.equal((await runToolhostCommand(['profiles', 'use', 'work'], { env })).code, 0);
      assert.equal(await listsServer({}), true);
      assert.equal((await runToolhostCommand(['profiles', 'remove', 'default'], { env })).code, 1);
      assert.equal((await runToolhostCommand(['logout', '--profile', 'default'], { env })).code, 0);
      assert.equal((await runToolhostCommand(['profiles', 'remove', 'default'], { env })).code, 0);
      assert.deepEqual(pluck((await listProfiles()).profiles, 'name'), ['work']);
      const unknown = await listServers(env, '--profile', 'nope');
      assert.match(unknown.stderr, /there is no profile "nope" \(existing profiles: work\)\. Create it with/);
    } finally {
      await second.stop();
    }
  });
});

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { startAdversarialService } from '../support/toolhost/adversarial-service.ts';
import { assertFailed, createTestFolder } from '../support/toolhost/command-world.ts';
import { logInWithCommand } from '../support/toolhost/login-command.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { type CommandResult, runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

type Json = { [field: string]: unknown };
/** Responses of the adversarial service by path. Every other path responds with a 401 that names its metadata. */
type Responses = { [path: string]: Json | number };

const resourcePath = '/.well-known/oauth-protected-resource/api/v1';
const issuerPath = '/.well-known/oauth-authorization-server/mcp/manage';

/** One command for each HTTP method, and those that send a credential in another form. */
const commands: readonly string[][] = [
  ['servers', 'list'],
  ['servers', 'delete', 'one', '--yes'],
  ['secrets', 'set', 'one', 'NAME'],
  ['tools', 'update', 'one', 'get', '--set', 'timeout_ms=1'],
  ['versions', 'restore', 'one', '3'],
  ['calls', '--since', '1h'],
  ['calls', '--follow'],
  ['export', 'one', '--out', 'exported'],
];

describe('commands with adversarial addresses', async () => {
  const realToolhost = await startToolhost();
  after(() => realToolhost.stop());
  const folder = createTestFolder();
  const adversary = await startAdversarialService();
  after(() => adversary.close());
  const redirectTarget = await startAdversarialService();
  after(() => redirectTarget.close());
  const { url } = adversary;
  /** Value of the Authorization header of each request. */
  const credentials: unknown[] = [];
  const respondWith = (responses: Responses) =>
    adversary.respondWith(({ url: target, headers }, response) => {
      credentials.push(headers.authorization);
      const configured = responses[new URL(target ?? '/', url).pathname] ?? responses['*'] ?? 401;
      response.statusCode = typeof configured === 'number' ? configured : 200;
      if (configured === 401)
        response.setHeader('www-authenticate', `Bearer resource_metadata="${url}${resourcePath}"`);
      if (configured === 302) response.setHeader('location', `${realToolhost.url}/api/v1/servers`);
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(typeof configured === 'number' ? { error: '\u001b[2Jescape' } : configured));
    });

  const getEnv = () => ({ XDG_CONFIG_HOME: join(folder, 'person') });
  const issuer = `${url}/mcp/manage`;
  const createMetadata = (changes: Json = {}): Json => ({
    ...{ issuer, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` },
    ...{ registration_endpoint: `${url}/register`, response_types_supported: ['code'] },
    ...{ code_challenge_methods_supported: ['S256'], ...changes },
  });
  const createResource = (changes: Json = {}): Json => ({
    ...{ resource: `${url}/api/v1`, authorization_servers: [issuer] },
    ...changes,
  });
  const assertRefused = (ended: CommandResult, reason: RegExp) => {
    assertFailed(ended, reason);
    assert.ok(!ended.stderr.includes('\u001b'));
  };
  const login = (...args: string[]) => runToolhostCommand(['login', url, ...args], { env: getEnv() });

  it('[ship 7] rejects metadata of another resource or issuer, and endpoints on another origin', async () => {
    const elsewhere = `${realToolhost.url}/mcp/manage`;
    const withResource = (changes: Json) => ({ [resourcePath]: createResource(changes) });
    const withMetadata = (changes: Json) => ({ ...withResource({}), [issuerPath]: createMetadata(changes) });
    const endpoints = ['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'revocation_endpoint'];
    const cases: [Responses, RegExp][] = [
      [withResource({ resource: `${realToolhost.url}/api/v1` }), /"resource" is/],
      [withResource({ authorization_servers: [elsewhere] }), /requests a login at/],
      [withMetadata({ issuer: elsewhere }), /"issuer" is/],
      [withMetadata({ code_challenge_methods_supported: [] }), /PKCE/],
      [withMetadata({ registration_endpoint: 'file:///etc' }), /register/],
      ...endpoints.map((name): [Responses, RegExp] => [
        withMetadata({ [name]: `${elsewhere}/token` }),
        /requests a login at .*nothing was sent there/,
      ]),
      [{ ...withMetadata({}), '/register': 500 }, /cannot register/],
      [{ [resourcePath]: 404 }, /a login at .* is not possible/],
      [{ '*': 200 }, /responded with 200, but not like toolhost/],
      [{ '*': 302 }, /responded with 302, but not like toolhost/],
      [{ '*': 404 }, /Check the URL/],
      [{ '*': 421 }, /BASE_URL/],
    ];
    for (const [responses, reason] of cases) {
      respondWith(responses);
      assertRefused(await login(), reason);
    }
    assert.deepEqual(new Set(credentials), new Set([undefined]));
  });

  it('[ship 7] rejects a URL over which tokens could be intercepted', async () => {
    assertRefused(await runToolhostCommand(['login', 'http://tools.example.com'], { env: getEnv() }), /Use https:\/\//);
  });

  it("[ship 7] sends nothing from a profile to another address, and no key to a profile's address", async () => {
    respondWith({});
    assert.equal((await logInWithCommand([realToolhost.url], { env: getEnv() })).code, 0);
    const list = (more: Record<string, string>, ...args: string[]) =>
      runToolhostCommand(['servers', 'list', ...args], { env: { ...getEnv(), ...more } });
    const otherAddressError = /its credential is not sent elsewhere\. Log in with: .*login http/;
    assertRefused(await list({}, '--url', url), otherAddressError);
    assertRefused(await list({ TOOLHOST_URL: url }), otherAddressError);
    assertRefused(await list({ TOOLHOST_PROFILE: 'default' }, '--url', url), otherAddressError);
    assertRefused(await list({}, '--url', url, '--profile', 'default'), otherAddressError);
    assert.deepEqual(adversary.requests, []);
    const config = join(folder, 'person', 'toolhost', 'config.yaml');
    const text = readFileSync(config, 'utf8');
    writeFileSync(config, text.replace(realToolhost.url, url));
    assertRefused(await list({}), /the profile "default" has no login at/);
    assert.deepEqual(adversary.requests, []);
    // The port of local mode. Nothing listens there.
    const local = await list({ TOOLHOST_API_KEY: await realToolhost.createKey(), PORT: '9' });
    assertRefused(local, /http:\/\/127\.0\.0\.1:9 cannot be reached/);
    assert.deepEqual(adversary.requests, []);
    writeFileSync(config, text);
    assert.equal((await list({})).code, 0);
  });

  it('[ship 7] stores no key that the service did not confirm', async () => {
    respondWith({ '*': 403 });
    const env = { XDG_CONFIG_HOME: join(folder, 'refused') };
    const stored = await runToolhostCommand(['login', url, '--with-key'], { env, input: 'thk_something\n' });
    assert.equal(stored.code, 1, 'a 403 that does not come from toolhost does not confirm a key');
  });

  it('[ship 7] follows no redirect, and prints its target', async () => {
    for (const [index, args] of commands.entries()) {
      const status = [301, 302, 303, 307, 308][index % 5] as number;
      const target = index % 2 === 0 ? `${redirectTarget.url}/api/v1/servers` : '//[evil';
      adversary.respondWith((request, response) => {
        const isTime = request.url === '/livez';
        response.writeHead(isTime ? 200 : status, isTime ? {} : { location: target });
        response.end('<html>');
      });
      const ended = await runToolhostCommand(args, { env: adversary.env, cwd: folder, input: 'value' });
      assertFailed(ended, new RegExp(`^error: [^\\n]*responded with ${status}, [^\\n]*\\n$`));
      if (index % 2 === 0) assert.ok(ended.stderr.includes(`It redirects to ${redirectTarget.url}`), ended.stderr);
    }
    assert.deepEqual(redirectTarget.requests, []);
  });

  it('[ship 7] sends nothing from a profile to its host over another scheme or port', async () => {
    const home = join(folder, 'other-person');
    mkdirSync(join(home, 'toolhost'), { recursive: true });
    const { port } = new URL(url);
    const stored = `https://127.0.0.1:${port}`;
    const writeProfileFile = (name: string, value: unknown) =>
      writeFileSync(join(home, 'toolhost', name), JSON.stringify(value), { mode: 0o600 });
    writeProfileFile('config.yaml', { profile: 'work', profiles: { work: { url: stored } } });
    writeProfileFile('credentials.json', { profiles: { work: { url: stored, api_key: 'thk_work' } } });
    adversary.respondWith((_request, response) => void response.end('{}'));
    const env = { XDG_CONFIG_HOME: home };
    const list = (...args: string[]) => runToolhostCommand(['servers', 'list', ...args], { env });
    const otherHost = stored.replace('.1:', '.2:');
    for (const other of [url, `http://localhost:${port}`, `${url}/`, redirectTarget.url, otherHost])
      assertFailed(await list('--url', other), /its credential is not sent elsewhere/);
    // The stored address uses TLS, which this service does not support.
    assertFailed(await list(), /it does not speak TLS|cannot be reached/);
    assert.deepEqual([adversary.requests, redirectTarget.requests], [[], []]);
  });
});

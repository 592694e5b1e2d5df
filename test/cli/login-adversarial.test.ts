import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { logInWithCommand } from '../support/toolhost/login-command.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type CommandResult, runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

type Json = { [field: string]: unknown };
/** Responses of the adversarial service by path. Every other path responds with a 401 that names its metadata. */
type Responses = { [path: string]: Json | number };

const resourcePath = '/.well-known/oauth-protected-resource/api/v1';
const issuerPath = '/.well-known/oauth-authorization-server/mcp/manage';

describe('toolhost login with adversarial addresses', () => {
  let realToolhost: TestToolhost;
  let folder: string;
  let adversary: Server;
  let url: string;
  let responses: Responses = {};
  const received: IncomingMessage[] = [];
  before(async () => {
    realToolhost = await startToolhost();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-login-'));
    adversary = createServer((request, response) => {
      received.push(request);
      const configured = responses[new URL(request.url ?? '/', url).pathname] ?? responses['*'] ?? 401;
      response.statusCode = typeof configured === 'number' ? configured : 200;
      if (configured === 401)
        response.setHeader('www-authenticate', `Bearer resource_metadata="${url}${resourcePath}"`);
      if (configured === 302) response.setHeader('location', `${realToolhost.url}/api/v1/servers`);
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(typeof configured === 'number' ? { error: '\u001b[2Jescape' } : configured));
    });
    await new Promise<void>((resolve) => adversary.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(adversary.address() as AddressInfo).port}`;
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    adversary.closeAllConnections();
    adversary.close();
    await realToolhost.stop();
  });
  afterEach(() => {
    responses = {};
    received.length = 0;
  });

  const getEnv = () => ({ XDG_CONFIG_HOME: join(folder, 'person') });
  const createMetadata = (changes: Json = {}): Json => ({
    issuer: `${url}/mcp/manage`,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    registration_endpoint: `${url}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    ...changes,
  });
  const createResource = (changes: Json = {}): Json => ({
    resource: `${url}/api/v1`,
    authorization_servers: [`${url}/mcp/manage`],
    ...changes,
  });
  const assertRefused = ({ code, stdout, stderr }: CommandResult, reason: RegExp) => {
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, reason);
    assert.ok(!stderr.includes('\u001b'));
  };
  const login = (...args: string[]) => runToolhostCommand(['login', url, ...args], { env: getEnv() });

  it('[ship 7] rejects metadata of another resource or issuer, and endpoints on another origin', async () => {
    const cases: [Responses, RegExp][] = [
      [{ [resourcePath]: createResource({ resource: `${realToolhost.url}/api/v1` }) }, /"resource" is/],
      [
        { [resourcePath]: createResource({ authorization_servers: [`${realToolhost.url}/mcp/manage`] }) },
        /requests a login at/,
      ],
      [
        {
          [resourcePath]: createResource(),
          [issuerPath]: createMetadata({ issuer: `${realToolhost.url}/mcp/manage` }),
        },
        /"issuer" is/,
      ],
      [
        { [resourcePath]: createResource(), [issuerPath]: createMetadata({ code_challenge_methods_supported: [] }) },
        /PKCE/,
      ],
      [
        { [resourcePath]: createResource(), [issuerPath]: createMetadata({ registration_endpoint: 'file:///etc' }) },
        /register/,
      ],
      ...['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'revocation_endpoint'].map(
        (name): [Responses, RegExp] => [
          {
            [resourcePath]: createResource(),
            [issuerPath]: createMetadata({ [name]: `${realToolhost.url}/mcp/manage/token` }),
          },
          /requests a login at .*nothing was sent there/,
        ],
      ),
      [{ [resourcePath]: createResource(), [issuerPath]: createMetadata(), '/register': 500 }, /cannot register/],
      [{ [resourcePath]: 404 }, /a login at .* is not possible/],
      [{ '*': 200 }, /responded with 200, but not like toolhost/],
      [{ '*': 302 }, /responded with 302, but not like toolhost/],
      [{ '*': 404 }, /Check the URL/],
      [{ '*': 421 }, /BASE_URL/],
    ];
    for (const [testResponses, reason] of cases) {
      responses = testResponses;
      assertRefused(await login(), reason);
    }
    assert.ok(received.every(({ headers }) => headers.authorization === undefined));
  });

  it('[ship 7] rejects a URL over which tokens could be intercepted', async () => {
    assertRefused(await runToolhostCommand(['login', 'http://tools.example.com'], { env: getEnv() }), /Use https:\/\//);
  });

  it("[ship 7] sends nothing from a profile to another address, and no key to a profile's address", async () => {
    assert.equal((await logInWithCommand([realToolhost.url], { env: getEnv() })).code, 0);
    const list = (more: Record<string, string>, ...args: string[]) =>
      runToolhostCommand(['servers', 'list', ...args], { env: { ...getEnv(), ...more } });
    const otherAddressError = /its credential is not sent elsewhere\. Log in with: .*login http/;
    assertRefused(await list({}, '--url', url), otherAddressError);
    assertRefused(await list({ TOOLHOST_URL: url }), otherAddressError);
    assertRefused(await list({ TOOLHOST_PROFILE: 'default' }, '--url', url), otherAddressError);
    assertRefused(await list({}, '--url', url, '--profile', 'default'), otherAddressError);
    assert.deepEqual(received, []);
    const config = join(folder, 'person', 'toolhost', 'config.yaml');
    const text = readFileSync(config, 'utf8');
    writeFileSync(config, text.replace(realToolhost.url, url));
    assertRefused(await list({}), /the profile "default" has no login at/);
    assert.deepEqual(received, []);
    // The port of local mode. Nothing listens there.
    const local = await list({ TOOLHOST_API_KEY: await realToolhost.createKey(), PORT: '9' });
    assertRefused(local, /http:\/\/127\.0\.0\.1:9 cannot be reached/);
    assert.deepEqual(received, []);
    writeFileSync(config, text);
    assert.equal((await list({})).code, 0);
  });

  it('[ship 7] stores no key that the service did not confirm', async () => {
    responses = { '*': 403 };
    const env = { XDG_CONFIG_HOME: join(folder, 'refused') };
    const stored = await runToolhostCommand(['login', url, '--with-key'], { env, input: 'thk_something\n' });
    assert.equal(stored.code, 1, 'a 403 that does not come from toolhost does not confirm a key');
  });
});

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { logInWithCommand } from '../support/toolhost/login-command.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type Ended, toolhost } from '../support/toolhost/toolhost-command.ts';

type Json = { [field: string]: unknown };
/** Responses of the adversarial service by path. Every other path responds with a 401 that names its metadata. */
type Answers = { [path: string]: Json | number };

const resourcePath = '/.well-known/oauth-protected-resource/api/v1';
const issuerPath = '/.well-known/oauth-authorization-server/mcp/manage';

describe('toolhost login with adversarial addresses', () => {
  let real: TestToolhost;
  let folder: string;
  let hostile: Server;
  let url: string;
  let answers: Answers = {};
  const seen: IncomingMessage[] = [];
  before(async () => {
    real = await startToolhost();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-login-'));
    hostile = createServer((request, response) => {
      seen.push(request);
      const found = answers[new URL(request.url ?? '/', url).pathname] ?? answers['*'] ?? 401;
      response.statusCode = typeof found === 'number' ? found : 200;
      if (found === 401) response.setHeader('www-authenticate', `Bearer resource_metadata="${url}${resourcePath}"`);
      if (found === 302) response.setHeader('location', `${real.url}/api/v1/servers`);
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(typeof found === 'number' ? { error: '\u001b[2Jescape' } : found));
    });
    await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    hostile.closeAllConnections();
    hostile.close();
    await real.stop();
  });
  afterEach(() => {
    answers = {};
    seen.length = 0;
  });

  const env = () => ({ XDG_CONFIG_HOME: join(folder, 'person') });
  const metadata = (changes: Json = {}): Json => ({
    issuer: `${url}/mcp/manage`,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    registration_endpoint: `${url}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    ...changes,
  });
  const resource = (changes: Json = {}): Json => ({
    resource: `${url}/api/v1`,
    authorization_servers: [`${url}/mcp/manage`],
    ...changes,
  });
  const refused = ({ code, stdout, stderr }: Ended, why: RegExp) => {
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, why);
    assert.ok(!stderr.includes('\u001b'));
  };
  const login = (...args: string[]) => toolhost(['login', url, ...args], { env: env() });

  it('[ship 7] rejects metadata of another resource or issuer, and endpoints on another origin', async () => {
    const cases: [Answers, RegExp][] = [
      [{ [resourcePath]: resource({ resource: `${real.url}/api/v1` }) }, /"resource" is/],
      [{ [resourcePath]: resource({ authorization_servers: [`${real.url}/mcp/manage`] }) }, /requests a login at/],
      [{ [resourcePath]: resource(), [issuerPath]: metadata({ issuer: `${real.url}/mcp/manage` }) }, /"issuer" is/],
      [{ [resourcePath]: resource(), [issuerPath]: metadata({ code_challenge_methods_supported: [] }) }, /PKCE/],
      [{ [resourcePath]: resource(), [issuerPath]: metadata({ registration_endpoint: 'file:///etc' }) }, /register/],
      ...['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'revocation_endpoint'].map(
        (name): [Answers, RegExp] => [
          { [resourcePath]: resource(), [issuerPath]: metadata({ [name]: `${real.url}/mcp/manage/token` }) },
          /requests a login at .*nothing was sent there/,
        ],
      ),
      [{ [resourcePath]: resource(), [issuerPath]: metadata(), '/register': 500 }, /cannot register/],
      [{ [resourcePath]: 404 }, /a login at .* is not possible/],
      [{ '*': 200 }, /responded with 200, but not like toolhost/],
      [{ '*': 302 }, /responded with 302, but not like toolhost/],
      [{ '*': 404 }, /Check the URL/],
      [{ '*': 421 }, /BASE_URL/],
    ];
    for (const [given, why] of cases) {
      answers = given;
      refused(await login(), why);
    }
    assert.ok(seen.every(({ headers }) => headers.authorization === undefined));
  });

  it('[ship 7] rejects a URL over which tokens could be intercepted', async () => {
    refused(await toolhost(['login', 'http://tools.example.com'], { env: env() }), /Use https:\/\//);
  });

  it("[ship 7] sends nothing from a profile to another address, and no key to a profile's address", async () => {
    assert.equal((await logInWithCommand([real.url], { env: env() })).code, 0);
    const list = (more: Record<string, string>, ...args: string[]) =>
      toolhost(['servers', 'list', ...args], { env: { ...env(), ...more } });
    const elsewhere = /its credential is not sent elsewhere\. Log in with: .*login http/;
    refused(await list({}, '--url', url), elsewhere);
    refused(await list({ TOOLHOST_URL: url }), elsewhere);
    refused(await list({ TOOLHOST_PROFILE: 'default' }, '--url', url), elsewhere);
    refused(await list({}, '--url', url, '--profile', 'default'), elsewhere);
    assert.deepEqual(seen, []);
    const config = join(folder, 'person', 'toolhost', 'config.yaml');
    const text = readFileSync(config, 'utf8');
    writeFileSync(config, text.replace(real.url, url));
    refused(await list({}), /the profile "default" has no login at/);
    assert.deepEqual(seen, []);
    // The port of local mode. Nothing listens there.
    const local = await list({ TOOLHOST_API_KEY: await real.key(), PORT: '9' });
    refused(local, /http:\/\/127\.0\.0\.1:9 cannot be reached/);
    assert.deepEqual(seen, []);
    writeFileSync(config, text);
    assert.equal((await list({})).code, 0);
  });

  it('[ship 7] stores no key that the service did not confirm', async () => {
    answers = { '*': 403 };
    const env = { XDG_CONFIG_HOME: join(folder, 'refused') };
    const stored = await toolhost(['login', url, '--with-key'], { env, input: 'thk_something\n' });
    assert.equal(stored.code, 1, 'a 403 that does not come from toolhost does not confirm a key');
  });
});

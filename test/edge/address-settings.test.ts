import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { freshRequest } from '../support/fresh-request.ts';
import { buildProductionEnv } from '../support/toolhost/production-env.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

const production = buildProductionEnv();

/** Invalid values by setting name. */
const invalidValues: Record<string, readonly string[]> = {
  ALLOWED_ORIGINS: [
    ...['*', 'null', 'app.example.org', 'https://app.example.com/x', 'https://*.example.com', 'https://'],
    ...['https://a.example https://b.example', 'https://app.example.com?x', 'https://me@app.example.com'],
    ...['wss://app.example.com', 'file:///', 'https://app.example.com:0x50', 'https://fine.example,app.example.org'],
  ],
  OIDC_ISSUER: ['id.example.com', 'ftp://id.example.com', 'https://', 'https://*.example.com', 'https://id.example/#x'],
  EGRESS_ALLOW: [
    ...[
      'http://10.1.2.3:8080',
      '*.internal:8080',
      '10.1.2.0/33:8080',
      '10.1.2.3 :8080',
      '10.1.2.3:0',
      '10.1.2.3:65536',
    ],
    ...[
      '10.1.2.3',
      '10.1/16:80',
      '10.1:80',
      '2130706433:80',
      '0x7f.1:80',
      'fd00::/129:80',
      '[fd00::1:80',
      'fd00:::1:80',
    ],
    ...['::ffff:10.0.0.0/104:80', 'intranet/:80', 'me@intranet:80', '-x:80', 'a..b:80', `${'a'.repeat(64)}:80`, ':80'],
    ...['10.1.2.3:80/path', 'fe80::1%eth0:80', '*:80', 'fine.example:80,10.1.2.3'],
  ],
  HOST: ['http://127.0.0.1', '127.0.0.1:8080', '[::1]', '*', '0.0.0.0/0', 'a b'],
  SERVER_HOSTS: ['tools.example.com', 'https://*.example.com', '*.10.0.0.1', `*.${'a'.repeat(64)}.com`, '*.a..b', '*'],
  MANAGEMENT_SLUG: ['/manage', 'Manage', 'a b', '-manage', 'mañana'],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['127.0.0.1:4318', 'grpc://127.0.0.1:4317', 'http://*:4318'],
  BASE_URL: [
    ...['tools.example.com', ...['x?y', 'x/../y', '.x', 'a b'].map((path) => `https://tools.example.com/${path}`)],
    ...['https://*.example.com', 'ftp://127.0.0.1', 'https://me:word@127.0.0.1'],
  ],
};

/** Starts the service with settings that it must accept, and stops it. */
async function assertStarts(env: Record<string, string>, dataDir?: string): Promise<void> {
  const toolhost = await startToolhost({ env, ...(dataDir && { dataDir }) });
  await toolhost.stop();
}

describe('a setting with an origin, a URL, a host, or an address', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-settings-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** Returns the error message of a start that must fail. */
  const getStartError = async (env: Record<string, string>) => {
    const started = startToolhost({ dataDir: folder, env });
    const error = await started.then(
      async (toolhost) => toolhost.stop().then(() => assert.fail(`started with ${JSON.stringify(env)}`)),
      (rejected: Error) => rejected,
    );
    assert.equal(error.name, 'ConfigError', String(error.stack));
    return error.message;
  };

  for (const [name, values] of Object.entries(invalidValues)) {
    it(`[sec E7] stops the start if ${name} is invalid, and the error lists the allowed forms`, async () => {
      for (const value of values) {
        const message = await getStartError({ ...(name === 'OIDC_ISSUER' && production), [name]: value });
        assert.match(message, new RegExp(`^ {2}- ${name}: .*allowed.*: `, 'm'), value);
        assert.doesNotMatch(message, /word|me@/, value);
      }
    });
  }

  it('[sec E7] stops the start if OIDC_ISSUER is not https:// in production, except on this machine, or if its client is missing', async () => {
    const message = await getStartError({ ...production, OIDC_ISSUER: 'http://id.example.com' });
    assert.match(message, /OIDC_ISSUER: found .*https:/);
    for (const name of ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'])
      assert.match(await getStartError({ ...production, BASE_URL: '', [name]: '' }), new RegExp(`${name}: required`));
    const b2c = 'https://b2c.example.com/v2.0/.well-known/openid-configuration?p=sign-in';
    for (const OIDC_ISSUER of ['http://localhost:9999/realms/x', b2c])
      await assertStarts({ ...production, OIDC_ISSUER });
    await assertStarts({ ...production, BASE_URL: '', OIDC_ISSUER: 'http://keycloak:8080' });
  });

  /** Origins as they are configured, and as browsers send them. */
  const allowedOrigins = {
    'https://app.example.com/': 'https://app.example.com',
    'HTTPS://Other.Example.com': 'https://other.example.com',
    'https://third.example:443': 'https://third.example',
    'http://127.0.0.1:6274': 'http://127.0.0.1:6274',
    'https://bücher.example': 'https://xn--bcher-kva.example',
    'http://[::1]:80': 'http://[::1]',
    'chrome-extension://abcdef': 'chrome-extension://abcdef',
    'tauri://localhost': 'tauri://localhost',
    ' https://last.example ': 'https://last.example',
  };

  it('[sec F2] normalizes ALLOWED_ORIGINS and then allows the origins that browsers send', async (t) => {
    const toolhost = await startToolhost({ env: { ALLOWED_ORIGINS: `${Object.keys(allowedOrigins).join(',')},` } });
    t.after(() => toolhost.stop());
    for (const origin of Object.values(allowedOrigins)) {
      const { status, headers } = await toolhost.post('absent-here', {}, { headers: { origin } });
      assert.deepEqual([status, headers.get('access-control-allow-origin')], [404, origin]);
    }
    const otherPorts = ['http://app.example.com', 'https://app.example.com:8443'];
    for (const origin of [...otherPorts, 'chrome-extension://abcdeg', 'null'])
      assert.equal((await toolhost.post('absent-here', {}, { headers: { origin } })).status, 403, origin);
  });

  /** Targets in EGRESS_ALLOW, each with the origins that it allows. */
  const allowedTargets = {
    '10.1.2.3:8080': ['http://10.1.2.3:8080'],
    'intranet.example.com:80': ['http://intranet.example.com'],
    'My_Service:3000': ['http://my_service:3000'],
    'db.:5000': ['http://db:5000', 'http://db.:5000'],
    '10.2.0.0/16:8081': ['http://10.2.255.1:8081'],
    'bücher.internal:80': ['http://bücher.internal'],
    '[fd00::1]:8080': ['http://[fd00::1]:8080'],
    'fd00::2:8080': ['http://[fd00::2]:8080'],
    'fd01::/16:8080': ['http://[fd01::9]:8080'],
    '[fd02::/16]:8080': ['http://[fd02::9]:8080'],
    '[fd03::]/16:8080': ['http://[fd03::9]:8080'],
    '[::ffff:10.4.0.1]:80': ['http://10.4.0.1'],
  };

  it('[sec B10] accepts names, addresses, and ranges in their usual notations in EGRESS_ALLOW', async (t) => {
    const toolhost = await startToolhost({ env: { EGRESS_ALLOW: `${Object.keys(allowedTargets).join(' , ')},` } });
    t.after(() => toolhost.stop());
    for (const [index, origin] of Object.values(allowedTargets).flat().entries())
      await toolhost.createServer(buildServerAt(`excepted-${index}`, origin));
    const others = ['http://10.1.2.4:8080', 'http://10.3.0.1:8081', 'http://[fd00::3]:8080', 'http://other:3000'];
    for (const origin of others) {
      const { status } = await toolhost.rest('POST', '/servers', { body: buildServerAt('refused', origin) });
      assert.equal(status, 400, origin);
    }
  });

  it('[sec E7] accepts the usual notations of HOST, BASE_URL, SERVER_HOSTS, and MANAGEMENT_SLUG', async () => {
    await assertStarts({ HOST: 'localhost', BASE_URL: 'http://LOCALHOST:8080/', SERVER_HOSTS: '*.Tools.localhost' });
    await assertStarts({ HOST: '::', LOCAL_MODE: 'container', MANAGEMENT_SLUG: 'admin-tools' });
    const OTEL_EXPORTER_OTLP_ENDPOINT = 'https://123:word@otlp.example.com/otlp';
    await assertStarts({ ...production, BASE_URL: 'https://Tools.example.com:443/', OTEL_EXPORTER_OTLP_ENDPOINT });
  });
});

describe('SERVER_HOSTS', () => {
  it('[sec E7] is accepted in any spelling that a URL allows', async () => {
    for (const [pattern, host] of [
      ['*.Bücher.localhost', 'projects.xn--bcher-kva.localhost'],
      ['*.tools.localhost.', 'projects.tools.localhost'],
    ] as const) {
      const toolhost = await startToolhost({ env: { SERVER_HOSTS: pattern } });
      await toolhost.createServer(buildServerAt('projects', 'https://api.example'));
      const { port } = new URL(toolhost.url);
      const response = await freshRequest(`${toolhost.url}/mcp`, { headers: { host: `${host}:${port}` } });
      await toolhost.stop();
      assert.equal(response.status, 401, pattern);
    }
  });
});

describe('MANAGEMENT_SLUG', () => {
  it('[sec E7] stops the start if a server has the same slug', async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-slug-'));
    t.after(() => rmSync(dataDir, { recursive: true, force: true }));
    const toolhost = await startToolhost({ dataDir });
    for (const slug of ['taken', 'deleted']) await toolhost.createServer(buildServerAt(slug, 'https://api.example'));
    assert.equal((await toolhost.rest('DELETE', '/servers/deleted')).status, 200);
    await toolhost.stop();
    await assert.rejects(
      startToolhost({ dataDir, env: { MANAGEMENT_SLUG: 'taken' } }),
      /MANAGEMENT_SLUG: a server has the slug taken, which cannot be changed; set another slug/,
    );
    for (const MANAGEMENT_SLUG of ['deleted', 'manage']) await assertStarts({ MANAGEMENT_SLUG }, dataDir);
  });
});

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Browser, createBrowser, next, type Page } from '../support/browser/browser.ts';
import { type HostileProvider, startHostileProvider } from '../support/oauth/hostile-provider.ts';
import { toolAt } from '../support/oauth/login-world.ts';
import {
  type Authorization,
  clientWithId,
  type OAuthClient,
  post,
  registerClient,
  tokensOf,
} from '../support/oauth/oauth-client.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import type { Reply } from '../support/toolhost/toolhost.ts';
import { toolhostJson } from '../support/toolhost/toolhost-command.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const canary = (name: string) => `canary-${name}-${randomBytes(12).toString('hex')}`;

/** Returns the forms that a secret could take inside other text. Its base64 form depends on the bytes before it. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const shifted = [0, 1, 2].flatMap((shift) => {
    const padded = Buffer.concat([Buffer.alloc(shift), bytes]);
    const whole = [padded.toString('base64'), padded.toString('base64url')];
    return whole.map((text) => text.slice(4, Math.floor(padded.length / 3) * 4));
  });
  const hex = bytes.toString('hex');
  return [secret, encodeURIComponent(secret), secret.split('').reverse().join(''), hex, hex.toUpperCase(), ...shifted];
}

function assertAbsent(secrets: ReadonlyMap<string, string>, where: string, content: string | Buffer): void {
  for (const [name, secret] of secrets) {
    for (const form of formsOf(secret))
      assert.ok(!content.includes(form), `${name} is in ${where}, as ${form.slice(0, 12)}…`);
  }
}

describe('[sec A10] secrets of a login', () => {
  const secrets = new Map<string, string>();
  /** All responses that must not contain any secret. */
  const answers: [where: string, text: string][] = [];
  let provider: HostileProvider;
  let upstream: RecordingUpstream;
  let service: ChildToolhost;
  let dataDir: string;
  let log: string;
  let key: string;

  const keep = (name: string, secret: string): string => {
    secrets.set(`${name} #${secrets.size}`, secret);
    return secret;
  };
  const clientSecret = keep('client secret', canary('client-secret'));
  const seen = <Answer extends Page | Reply>(where: string, answer: Answer): Answer => {
    answers.push([where, 'html' in answer ? answer.html : answer.text]);
    return answer;
  };
  const issuer = (slug: string) => `${service.url}/mcp/${slug}`;

  async function createServers(): Promise<void> {
    const headers = { authorization: `Bearer ${key}` };
    const oauth = provider.oauth({ client_secret: clientSecret });
    const authentication = { type: 'QueryParam' };
    const tools = [toolAt(`${upstream.url}/things`)];
    for (const [slug, more] of [
      ['issued', {}],
      ['passed-on', { token_mode: 'passthrough' }],
    ] as const) {
      const config = { name: 'Things', slug, authentication, oauth: { ...oauth, ...more }, tools };
      const created = await post(`${service.url}/api/v1/servers`, config, headers);
      assert.equal(created.status, 201, created.text);
      seen('the created server', created);
    }
  }

  /** Makes the provider issue canaries, with new values for every call. */
  function giveCanaries(): void {
    provider.onLogin(() => ({ code: keep('code of the provider', canary('provider-code')) }));
    provider.onToken(() => {
      return {
        body: {
          access_token: keep('access token of the provider', canary('provider-access')),
          refresh_token: keep('refresh token of the provider', canary('provider-refresh')),
          token_type: 'bearer',
          expires_in: 3600,
        },
      };
    });
  }

  /** Logs in, up to the provider's redirect, which is not yet followed. */
  async function toProvider(browser: Browser, { url, verifier, state }: Authorization): Promise<URL> {
    keep('verifier of the client', verifier);
    keep('state of the client', state);
    const consent = seen('the consent page', await browser.get(url));
    const departure = await browser.press(consent, 'Allow and log in');
    const returned = next(await browser.get(next(departure)));
    assertAbsent(secrets, 'the departure page', departure.html);
    keep('our state', returned.searchParams.get('state') ?? '');
    for (const [name, value] of browser.cookies('127.0.0.1')) keep(`cookie ${name}`, value);
    return returned;
  }

  async function logIn(client: OAuthClient): Promise<{ access_token: string; refresh_token: string }> {
    const browser = createBrowser();
    const authorization = client.authorization({ state: canary('state') });
    const back = seen('the return page', await browser.get(await toProvider(browser, authorization)));
    const code = keep('our code', next(back).searchParams.get('code') ?? '');
    const verifier = provider.takeTokens().at(-1)?.form.get('code_verifier');
    if (verifier) keep('our verifier', verifier);
    const tokens = tokensOf(await client.redeem(code, authorization.verifier));
    keep('our access token', tokens.access_token);
    keep('our refresh token', tokens.refresh_token);
    seen('a second redemption', await client.redeem(code, authorization.verifier));
    return tokens;
  }

  const call = (slug: string, token: string) =>
    post(
      issuer(slug),
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run', arguments: {} } },
      { authorization: `Bearer ${token}` },
    );

  /** Makes calls and logins fail, with a provider and an upstream that echo whatever they receive. */
  async function provoke(client: OAuthClient, slug: string): Promise<void> {
    const shout = () => JSON.stringify([...secrets]);
    upstream.on('*', ({ url, rawHeaders }) => ({ status: 500, body: { url, rawHeaders } }));
    const { access_token, refresh_token } = await logIn(client);
    seen('a failed call', await call(slug, access_token));
    upstream.on('*', ({ url }) => ({ status: 302, headers: { location: `https://evil.example${url}` } }));
    seen('a redirected call', await call(slug, access_token));
    provider.onToken((form) => ({ status: 400, body: { error: form.toString(), error_description: shout() } }));
    const failed = async (what: string) => {
      const browser = createBrowser();
      const authorization = client.authorization();
      const page = await browser.get(await toProvider(browser, authorization));
      // The link to the client contains the client's own state.
      seen(what, { ...page, html: page.html.replaceAll(authorization.state, '') });
    };
    await failed('a refused login');
    provider.onLogin(() => ({ error: clientSecret, error_description: shout() }));
    await failed('an error of the provider');
    giveCanaries();
    const captured = await toProvider(createBrowser(), client.authorization());
    seen('a login of another browser', await createBrowser().get(captured));
    const unknown = clientWithId(access_token, { issuer: issuer(slug) });
    seen('an unknown client', await createBrowser().get(unknown.authorization({ state: refresh_token }).url));
    seen('an unknown client at the token endpoint', await unknown.refresh(refresh_token));
    seen('a wrong refresh token', await client.refresh(access_token));
    seen('a wrong grant type', await client.refresh(refresh_token, { grant_type: refresh_token }));
    seen('a wrong place', await call('nowhere', access_token));
    seen('a wrong header', await post(issuer(slug), {}, { authorization: `Basic ${access_token}` }));
    seen('the other server', await call(slug === 'issued' ? 'passed-on' : 'issued', key));
  }

  before(async () => {
    [provider, upstream] = await Promise.all([startHostileProvider(), startRecordingUpstream()]);
    const ports = [...provider.ports, upstream.port].map((port) => `127.0.0.1:${port}`);
    const master = keep('master key', randomBytes(32).toString('base64'));
    const DATA_DIR = mkdtempSync(join(tmpdir(), 'toolhost-leaks-'));
    const env = {
      PORT: '0',
      DEMO: '0',
      DATA_DIR,
      MASTER_KEY: master,
      LOG_LEVEL: 'debug',
      EGRESS_ALLOW: ports.join(','),
    };
    dataDir = DATA_DIR;
    service = await startChildToolhost(env);
    const args = ['keys', 'create', '--name', 'test', '--scopes', 'manage,call'];
    ({ key } = await toolhostJson<{ key: string }>(args, { env }));
    keep('API key', key);
    await createServers();
    giveCanaries();
    for (const slug of ['issued', 'passed-on']) await provoke(await registerClient({ issuer: issuer(slug) }), slug);
    const headers = { authorization: `Bearer ${key}` };
    for (const path of ['/servers/issued', '/grants', '/calls', '/keys', '/audit-events']) {
      answers.push([path, await (await fetch(`${service.url}/api/v1${path}`, { headers })).text()]);
    }
    await service.end();
    log = service.output('stderr');
  });
  after(async () => {
    rmSync(dataDir, { recursive: true, force: true });
    await Promise.all([provider.close(), upstream.close()]);
  });

  it('do not appear in any log line', () => {
    assert.match(log, /a login failed/);
    assertAbsent(secrets, 'the log', log);
  });

  it('do not appear on any page, in any error, or in any management response', () => {
    assert.ok(answers.length > 30);
    for (const [where, text] of answers) assertAbsent(secrets, where, text);
  });

  it('do not appear in the database', () => {
    const files = readdirSync(dataDir);
    assert.ok(files.includes('toolhost.sqlite'));
    for (const file of files) assertAbsent(secrets, file, readFileSync(join(dataDir, file)));
  });
});

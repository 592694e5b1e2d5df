import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { type Browser, createBrowser, getNextUrl, type Page } from '../support/browser/browser.ts';
import { startAdversarialProvider } from '../support/oauth/adversarial-provider.ts';
import { createTool } from '../support/oauth/login-world.ts';
import {
  type Authorization,
  clientWithId,
  expectTokens,
  type OAuthClient,
  post,
  registerClient,
} from '../support/oauth/oauth-client.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import type { Reply } from '../support/toolhost/toolhost.ts';
import { runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const canary = (name: string) => `canary-${name}-${randomBytes(12).toString('hex')}`;

/** Returns the forms that a secret could take inside other text. Its base64 form depends on the bytes before it. */
function getEncodedForms(secret: string): string[] {
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
    for (const form of getEncodedForms(secret))
      assert.ok(!content.includes(form), `${name} is in ${where}, as ${form.slice(0, 12)}…`);
  }
}

describe('[sec A10] secrets of a login', async () => {
  const secrets = new Map<string, string>();
  /** All responses that must not contain any secret. */
  const responses: [where: string, text: string][] = [];
  let key: string;

  const recordSecret = (name: string, secret: string): string => {
    secrets.set(`${name} #${secrets.size}`, secret);
    return secret;
  };
  const clientSecret = recordSecret('client secret', canary('client-secret'));
  const recordResponse = <Result extends Page | Reply>(where: string, response: Result): Result => {
    responses.push([where, 'html' in response ? response.html : response.text]);
    return response;
  };
  const issuer = (slug: string) => `${service.url}/mcp/${slug}`;

  async function createServers(): Promise<void> {
    const headers = { authorization: `Bearer ${key}` };
    const oauth = provider.oauth({ client_secret: clientSecret });
    const tools = [createTool(`${upstream.url}/things`)];
    for (const [slug, token_mode] of [
      ['issued', 'issued'],
      ['passed-on', 'passthrough'],
    ] as const) {
      const config = {
        name: 'Things',
        slug,
        authentication: { type: 'QueryParam' },
        oauth: { ...oauth, token_mode },
        tools,
      };
      const created = await post(`${service.url}/api/v1/servers`, config, headers);
      assert.equal(created.status, 201, created.text);
      recordResponse('the created server', created);
    }
  }

  /** Makes the provider issue canaries, with new values for every call. */
  function issueCanaries(): void {
    provider.onLogin(() => ({ code: recordSecret('code of the provider', canary('provider-code')) }));
    provider.onToken(() => {
      const access_token = recordSecret('access token of the provider', canary('provider-access'));
      const refresh_token = recordSecret('refresh token of the provider', canary('provider-refresh'));
      return { body: { access_token, refresh_token, token_type: 'bearer', expires_in: 3600 } };
    });
  }

  /** Logs in, up to the provider's redirect, which is not yet followed. */
  async function logInAtProvider(browser: Browser, { url, verifier, state }: Authorization): Promise<URL> {
    recordSecret('verifier of the client', verifier);
    recordSecret('state of the client', state);
    const consent = recordResponse('the consent page', await browser.get(url));
    const departure = await browser.press(consent, 'Allow and log in');
    const returned = getNextUrl(await browser.get(getNextUrl(departure)));
    assertAbsent(secrets, 'the departure page', departure.html);
    recordSecret('our state', returned.searchParams.get('state') ?? '');
    for (const [name, value] of browser.cookies('127.0.0.1')) recordSecret(`cookie ${name}`, value);
    return returned;
  }

  async function logIn(client: OAuthClient): Promise<{ access_token: string; refresh_token: string }> {
    const browser = createBrowser();
    const authorization = client.authorization({ state: canary('state') });
    const back = recordResponse('the return page', await browser.get(await logInAtProvider(browser, authorization)));
    const code = recordSecret('our code', getNextUrl(back).searchParams.get('code') ?? '');
    const verifier = provider.takeTokenRequests().at(-1)?.form.get('code_verifier');
    if (verifier) recordSecret('our verifier', verifier);
    const tokens = expectTokens(await client.redeem(code, authorization.verifier));
    recordSecret('our access token', tokens.access_token);
    recordSecret('our refresh token', tokens.refresh_token);
    recordResponse('a second redemption', await client.redeem(code, authorization.verifier));
    return tokens;
  }

  const callBody = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run', arguments: {} } };
  const call = (slug: string, token: string) => post(issuer(slug), callBody, { authorization: `Bearer ${token}` });

  /** Makes calls and logins fail, with a provider and an upstream that echo whatever they receive. */
  async function triggerErrors(client: OAuthClient, slug: string): Promise<void> {
    const echoSecrets = () => JSON.stringify([...secrets]);
    upstream.on('*', ({ url, rawHeaders }) => ({ status: 500, body: { url, rawHeaders } }));
    const { access_token, refresh_token } = await logIn(client);
    recordResponse('a failed call', await call(slug, access_token));
    upstream.on('*', ({ url }) => ({ status: 302, headers: { location: `https://evil.example${url}` } }));
    recordResponse('a redirected call', await call(slug, access_token));
    provider.onToken((form) => ({ status: 400, body: { error: form.toString(), error_description: echoSecrets() } }));
    const failed = async (what: string) => {
      const browser = createBrowser();
      const authorization = client.authorization();
      const page = await browser.get(await logInAtProvider(browser, authorization));
      // The link to the client contains the client's own state.
      recordResponse(what, { ...page, html: page.html.replaceAll(authorization.state, '') });
    };
    await failed('a refused login');
    provider.onLogin(() => ({ error: clientSecret, error_description: echoSecrets() }));
    await failed('an error of the provider');
    issueCanaries();
    const captured = await logInAtProvider(createBrowser(), client.authorization());
    recordResponse('a login of another browser', await createBrowser().get(captured));
    const unknown = clientWithId(access_token, { issuer: issuer(slug) });
    recordResponse('an unknown client', await createBrowser().get(unknown.authorization({ state: refresh_token }).url));
    recordResponse('an unknown client at the token endpoint', await unknown.refresh(refresh_token));
    recordResponse('a wrong refresh token', await client.refresh(access_token));
    recordResponse('a wrong grant type', await client.refresh(refresh_token, { grant_type: refresh_token }));
    recordResponse('a wrong place', await call('nowhere', access_token));
    recordResponse('a wrong header', await post(issuer(slug), {}, { authorization: `Basic ${access_token}` }));
    recordResponse('the other server', await call(slug === 'issued' ? 'passed-on' : 'issued', key));
  }
  const [provider, upstream] = await Promise.all([startAdversarialProvider(), startRecordingUpstream()]);
  const ports = [...provider.ports, upstream.port].map((port) => `127.0.0.1:${port}`);
  const master = recordSecret('master key', randomBytes(32).toString('base64'));
  const DATA_DIR = mkdtempSync(join(tmpdir(), 'toolhost-leaks-'));
  const env = { PORT: '0', DEMO: '0', DATA_DIR, MASTER_KEY: master, LOG_LEVEL: 'debug', EGRESS_ALLOW: ports.join(',') };
  const dataDir = DATA_DIR;
  const service = await startChildToolhost(env);
  const args = ['keys', 'create', '--name', 'test', '--scopes', 'manage,call'];
  ({ key } = await runToolhostJson<{ key: string }>(args, { env }));
  recordSecret('API key', key);
  await createServers();
  issueCanaries();
  for (const slug of ['issued', 'passed-on']) await triggerErrors(await registerClient({ issuer: issuer(slug) }), slug);
  const headers = { authorization: `Bearer ${key}` };
  for (const path of ['/servers/issued', '/grants', '/calls', '/keys', '/audit-events'])
    responses.push([path, await (await fetch(`${service.url}/api/v1${path}`, { headers })).text()]);
  await service.end();
  const log = service.output('stderr');
  after(async () => {
    rmSync(dataDir, { recursive: true, force: true });
    await Promise.all([provider.close(), upstream.close()]);
  });

  it('do not appear in any log line', () => {
    assert.match(log, /a login failed/);
    assertAbsent(secrets, 'the log', log);
  });

  it('do not appear on any page, in any error, or in any management response', () => {
    assert.ok(responses.length > 30);
    for (const [where, text] of responses) assertAbsent(secrets, where, text);
  });

  it('do not appear in the database', () => {
    const files = readdirSync(dataDir);
    assert.ok(files.includes('toolhost.sqlite'));
    for (const file of files) assertAbsent(secrets, file, readFileSync(join(dataDir, file)));
  });
});
